"""Hidden rows of tables: deletion vectors of Delta, and position deletes of Iceberg.

    the library: which rows of each file are hidden, as 64-bit Roaring bitmaps
    Delta        bitmaps in _vectors/deletion_vector_<uuid>.bin, and a commit that names them: deltalake reads vectors, and writes none
    Iceberg      a Parquet file of paths and positions, and a manifest of deletes, see `windrow._deletes`

A full vacuum of deltalake removes the vectors of live files, unless their directory begins with an underscore.
"""

import base64
import json
import os
import re
import struct
import urllib.parse
import uuid
import zlib

from windrow._errors import DataError, UsageError

MODES = ("copy", "vectors", "auto")
FOLDER = "_vectors"
# What a bitmap begins with in a vector of Delta.
MAGIC = struct.pack("<i", 1681511377)
# Base 85 in the alphabets of Python and of Delta.
_PYTHON = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_DELTA = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
# What the numbers of the columns of position deletes are.
_FILE_PATH, _POS = 2147483546, 2147483545


class Conflict(Exception):
    """Another writer's commit has the version."""


def mode_of(given):
    """The mode of a call."""
    mode = "copy" if given is None else given
    if mode not in MODES:
        raise UsageError(f'write_mode= takes "copy", "vectors" or "auto", not {given!r}')
    return mode


# ---- Delta ----


def adds(place, version, paths):
    """The actions that added these files, which a version of a table has."""
    from arro3.core import Table

    from windrow import _verbs

    wanted, found, parts = set(paths), {}, {}
    for name in place.names("_delta_log"):
        match = re.fullmatch(r"(\d{20})\.checkpoint(\.\d+\.\d+)?\.parquet", name)
        if match and int(match[1]) <= version:
            parts.setdefault(int(match[1]), []).append(name)
    last = max(parts, default=-1)

    def take(action):
        path = None if action is None else urllib.parse.unquote(action["path"])
        if path in wanted:
            wanted.remove(path)
            found[path] = action

    for number in range(version, last, -1):
        lines = place.read(f"_delta_log/{number:020}.json") if wanted else None
        if lines is None:
            break
        for line in lines.splitlines():
            take(json.loads(line).get("add"))
    for name in parts.get(last, []) if wanted else []:
        rows = _verbs.head(f"{place.directory}/_delta_log/{name}", 2**62, select=["add"], **place.reading)
        for action in Table.from_arrow(rows).column("add").to_pylist():
            if action is not None:
                action["partitionValues"] = dict(action["partitionValues"] or ())
            take(action)
    if wanted:
        raise UsageError(f"{place.directory}: the log has no action for {min(wanted)}; `DeltaTable.create_checkpoint` writes a checkpoint that has it")
    return found


def read(place, vector):
    """The bitmap of a deletion vector."""
    kind, text = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        data = _decoded(text)[: vector["sizeInBytes"]]
    else:
        name = urllib.parse.unquote(text.removeprefix("file://")).removeprefix(f"{place.directory}/")
        if kind == "u":
            name = f"{text[:-20]}/deletion_vector_{uuid.UUID(bytes=_decoded(text[-20:]))}.bin".lstrip("/")
        content, start, size = place.read(name), vector.get("offset") or 0, vector["sizeInBytes"]
        if content is None:
            raise DataError(f"{place.directory}: the deletion vectors {name} are not there")
        data = content[start + 4 : start + 4 + size]
        ends = content[start : start + 4], content[start + 4 + size : start + 8 + size]
        if ends != (struct.pack(">i", size), struct.pack(">I", zlib.crc32(data))):
            raise DataError(f"{place.directory}/{name}: the deletion vector at {start} is damaged")
    if not data.startswith(MAGIC):
        raise DataError(f"{place.directory}: a deletion vector has another form than a Roaring bitmap of 64 bits")
    return data[len(MAGIC) :]


def write(place, bitmaps):
    """Writes vectors to a file. Returns its name, its size, and the descriptor of each vector."""
    name, content, vectors = uuid.uuid4(), b"\x01", []
    for bitmap, count in bitmaps:
        data = MAGIC + bitmap
        at = {"storageType": "u", "pathOrInlineDv": FOLDER + _encoded(name.bytes), "offset": len(content)}
        vectors.append({**at, "sizeInBytes": len(data), "cardinality": count})
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    path = f"{FOLDER}/deletion_vector_{name}.bin"
    place.write(path, content)
    return path, len(content), vectors


def commit(place, version, actions):
    """Adds a version to the log of a table, unless there is one."""
    lines = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    if not place.create(f"_delta_log/{version:020}.json", lines.encode()):
        raise Conflict(f"version {version}")


def with_vector(add, vector, rows):
    """The action that adds a file again, with some of its rows hidden."""
    stats = {**(json.loads(add.get("stats") or "null") or {"numRecords": rows}), "tightBounds": False}
    kept = {name: add[name] for name in ("path", "size", "modificationTime")}
    tags = {"tags": dict(add["tags"])} if add.get("tags") else {}
    return {**kept, "partitionValues": add["partitionValues"], "dataChange": True, "stats": json.dumps(stats), **tags, "deletionVector": vector}


def removal(add, now):
    """The action that removes a file."""
    vector = {name: value for name, value in (add.get("deletionVector") or {}).items() if value is not None}
    known = {"extendedFileMetadata": True, "partitionValues": add["partitionValues"], "size": add["size"]}
    action = {"path": add["path"], "deletionTimestamp": now, "dataChange": True, **known}
    return {**action, "deletionVector": vector} if vector else action


def _encoded(data):
    return base64.b85encode(data).decode().translate(str.maketrans(_PYTHON, _DELTA))


def _decoded(text):
    return base64.b85decode(text.translate(str.maketrans(_DELTA, _PYTHON)))


# ---- Iceberg ----


def known_version():
    """Whether the producer of snapshots is the one that was extended."""
    import pyiceberg

    return pyiceberg.__version__.split(".")[:2] == ["0", "12"]


def positions(delete_files, io):
    """The hidden rows of data files by path, as bitmaps."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from pyroaring import BitMap64

    found = {}
    for file in delete_files:
        with io.new_input(file.file_path).open() as source:
            rows = pq.ParquetFile(source).read(columns=["file_path", "pos"])
        for path in pc.unique(rows["file_path"]).to_pylist():
            of_path = rows.filter(pc.equal(rows["file_path"], path))["pos"]
            found.setdefault(path, BitMap64()).update(of_path.to_pylist())
    return found


def write_positions(uri, path, rows, like):
    """Writes position deletes of data files that are in one partition, and returns the entry of a manifest.

    `rows` are bitmaps by data file, and `like` is a data file of the partition."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    def field(name, kind, number):
        return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(number)})

    schema = pa.schema([field("file_path", pa.string(), _FILE_PATH), field("pos", pa.int64(), _POS)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for name in sorted(rows):
            numbers = pa.array(list(rows[name]), pa.int64())
            writer.write_table(pa.table([pa.array([name]).take(pa.array([0] * len(numbers))), numbers], schema))
    least = [rows[name].min() for name in rows]
    most = [rows[name].max() for name in rows]
    count = sum(map(len, rows.values()))
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=like.partition,
        record_count=count,
        file_size_in_bytes=os.path.getsize(path),
        value_counts={_FILE_PATH: count, _POS: count},
        null_value_counts={_FILE_PATH: 0, _POS: 0},
        lower_bounds={_FILE_PATH: min(rows).encode(), _POS: struct.pack("<q", min(least))},
        upper_bounds={_FILE_PATH: max(rows).encode(), _POS: struct.pack("<q", max(most))},
    )
    file.spec_id = like.spec_id
    return file
