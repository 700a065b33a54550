"""Inputs and outputs that people have in hand beside paths and Arrow objects.

Rows that a library computes are read record batch by record batch, and an open file goes through a file on disk, so that
a call keeps its promise about memory. What would be held whole is refused with the call that makes something of it.
"""

import io
import os

from windrow import _arguments

# The line to write, by the library and the class of what is not taken as it is.
_INSTEAD = {
    ("deltalake", "DeltaTable"): "table.to_pyarrow_dataset(), or table.file_uris()",
    ("pyiceberg", "Table"): "table.scan().to_arrow_batch_reader()",
    ("pyiceberg", "DataScan"): "scan.to_arrow_batch_reader()",
    # Its result is held whole.
    ("duckdb", "DuckDBPyConnection"): "con.sql(query), which is computed as it is read",
    ("pyspark", "DataFrame"): "frame.toArrow()",
    ("polars", "Series"): "series.to_frame()",
    ("pandas", "Series"): "series.to_frame()",
    ("polars", "GroupBy"): "the frame itself",
    ("numpy", "ndarray"): 'pyarrow.table({"name": array})',
    ("pyarrow", "Array"): 'pyarrow.table({"name": array})',
    ("pyarrow", "ChunkedArray"): 'pyarrow.table({"name": array})',
}
_TAKES = "paths, Arrow objects, frames, dicts, open files, or a list or an iterator of these"
_TEXT = 'a file opened in binary mode: open(path, "{}b")'


def taken(value, temp_dir, kept):
    """What the library reads for a value. Directories with copies of open files are added to ``kept``."""
    kinds = {(of.__module__.partition(".")[0].lstrip("_"), of.__name__) for of in type(value).__mro__}
    if isinstance(value, (dict, list)):
        return _table(value)
    for kind in kinds & _INSTEAD.keys():
        raise TypeError(f"inputs= takes no {kind[1]} of {kind[0]}; give {_INSTEAD[kind]}")
    if ("pandas", "DataFrame") in kinds:
        return _frame(value)
    if ("polars", "LazyFrame") in kinds:
        return _collected(value)
    if ("pyarrow", "Dataset") in kinds:
        value = _scanned(value)
    if kinds & {("pyarrow", "Dataset"), ("pyarrow", "Scanner")}:
        return value.to_reader()
    if kinds & {("fsspec", "OpenFile")}:
        with value as file:
            return _file(file, temp_dir, kept)
    if hasattr(value, "read"):
        return _file(value, temp_dir, kept)
    if _arguments.is_arrow(value):
        return value
    if hasattr(value, "__next__"):
        first = next(value, value)
        rest = () if first is value else _first(first, value)
        return rest if _arguments.is_arrow(first) else [taken(one, temp_dir, kept) for one in rest]
    if isinstance(value, (str, os.PathLike)):
        return value
    raise TypeError(f"inputs= takes {_TAKES}, not {type(value).__name__}")


def _first(first, rest):
    yield first
    yield from rest


def _table(rows):
    """A dict of columns, or a list of dicts, as a table of a library that is there."""
    if isinstance(rows, dict) and not all(hasattr(column, "__len__") and not isinstance(column, str) for column in rows.values()):
        raise TypeError('inputs= takes a dict of columns, as {"id": [1, 2]}; a row is a dict in a list: [{"id": 1}]')
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        try:
            import polars
        except ImportError:
            raise ImportError("dicts as inputs= need pyarrow or polars: pip install pyarrow") from None
        return polars.DataFrame(rows)
    if isinstance(rows, dict):
        return pyarrow.table(rows)
    # pyarrow has the columns of the first row alone.
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pyarrow.table({name: [row.get(name) for row in rows] for name in names})


def _frame(frame):
    index = frame.index
    if type(index).__name__ != "RangeIndex":
        names = [name for name in index.names if name is not None]
        text = f"the index {', '.join(map(repr, names))} of the DataFrame is" if names else "the index of the DataFrame is"
        _arguments.warned(f"{text} left out; frame.reset_index() makes it a column")
    return frame


def _collected(lazy):
    if not hasattr(lazy, "collect_batches"):
        raise TypeError("inputs= takes a LazyFrame of Polars 1.34 or later; give lazy.collect(), or lazy.sink_parquet(...) and the path")

    def frames():
        frame = None
        for frame in lazy.collect_batches(lazy=True):
            yield frame
        if frame is None:
            yield lazy.clear().collect()

    return frames()


def _scanned(dataset):
    """A scanner that holds few record batches, where the usual one reads row groups ahead."""
    ahead = {"batch_readahead": 1, "fragment_readahead": 1}
    if getattr(getattr(dataset, "format", None), "default_extname", "") == "parquet":
        from pyarrow.dataset import ParquetFragmentScanOptions  # type: ignore[import-untyped]

        ahead["fragment_scan_options"] = ParquetFragmentScanOptions(pre_buffer=False)
    return dataset.scanner(**ahead)


def _file(file, temp_dir, kept):
    import shutil
    import tempfile

    if isinstance(file, io.TextIOBase):
        raise TypeError(f"inputs= takes {_TEXT.format('r')}")
    name = _name(file)
    if isinstance(file, (io.BufferedReader, io.FileIO)) and _is_whole(file, name):
        return os.path.abspath(name)
    kept.append(tempfile.mkdtemp(prefix="windrow-", dir=temp_dir))
    path = os.path.join(kept[-1], os.path.basename(name) or "input")
    with open(path, "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
    return path


def _name(file):
    """The name of an open file, of which the extension says the format."""
    names = (getattr(file, name, None) for name in ("name", "path", "full_name"))
    return next((name for name in names if isinstance(name, str)), "")


def _is_whole(file, name):
    """Whether the path of an open file is still that of its bytes, of which none was read."""
    try:
        return file.tell() == 0 and os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except OSError:
        return False


def copied(output, temp_dir, write, kept):
    """The path to write for an open file, and the function that copies it there."""
    import shutil
    import tempfile

    if isinstance(output, io.TextIOBase):
        raise TypeError(f"output= takes {_TEXT.format('w')}")
    name = os.path.basename(_name(output))
    if not (write or {}).get("format") and not os.path.splitext(name)[1]:
        raise TypeError('the format of an open file is in write=: write={"format": "parquet"}')
    kept.append(tempfile.mkdtemp(prefix="windrow-", dir=temp_dir))
    path = os.path.join(kept[-1], name or "output")

    def copy():
        if not os.path.exists(path):
            # The call explained what it would do.
            return
        with open(path, "rb") as file:
            shutil.copyfileobj(file, output, 1 << 20)

    return path, copy


def removed(directories, at_exit):
    """Removes copies of open files: now, or where a reader reads them, when the process ends."""
    import atexit
    import shutil

    for directory in directories:
        if at_exit:
            atexit.register(shutil.rmtree, directory, True)
        else:
            shutil.rmtree(directory, True)
