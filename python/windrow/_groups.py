"""Arguments that belong together. Each class is a dict; a plain dict is as good."""


class _Group(dict):
    """Arguments by name, those alone that are given."""

    def __init__(self, given):
        super().__init__({name: value for name, value in given.items() if name not in ("self", "__class__") and value is not None})

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


# generated: groups
class Read(_Group):
    r"""How inputs are read.

    Parameters
    ----------
    format
        The format of all inputs. ``"parquet"``: Apache Parquet. ``"arrow"``: The Arrow IPC file format, also
        called Feather version 2. ``"arrow-stream"``: The Arrow IPC streaming format. ``"csv"``: Delimited text
        with a record a line. ``"ndjson"``: A JSON object a line. ``"avro"``: Avro object files, of inputs.
    schema
        The types of columns of CSV and NDJSON inputs: name:type,... (int64, utf8, float64, bool, date32,
        timestamp_us, decimal128(12,2), ...). Other types are inferred from the first rows. Text, a dict, or an
        Arrow schema.
    hive_types
        The types of columns in names of directories, day=2026-01-31: name:type,... Other such columns are
        integers, dates or text. Text, a dict, or an Arrow schema.
    union_by_name
        Inputs may have other columns than the first. A missing column is null; numbers, decimals, times and
        structs get types that hold the values of all inputs.
    charset
        The encoding of CSV and NDJSON inputs: utf-8, utf-16le, utf-16be, latin1 (which is windows-1252),
        shift_jis, gbk, ...; UTF-8, or UTF-16 with a byte order mark, unless given. Output is UTF-8.
    """

    def __init__(
        self,
        *,
        format=None,
        schema=None,
        hive_types=None,
        union_by_name=None,
        charset=None,
    ):
        super().__init__(locals())


class Csv(_Group):
    r"""The dialect of CSV, in and out.

    Parameters
    ----------
    delimiter
        The separator of fields, in inputs and in the output: a character, or `tab`. In files that end in .tsv a
        tab; the first records tell it otherwise.
    header
        Header line with the names of the columns, in inputs and in the output.
    null
        The text for null, in inputs and in the output, as \N. The first of several is written. An empty field is
        then an empty string in columns of text, and null in others. In quotes the text is no null. Without this
        setting an empty field is null, and "" an empty string. A list stands for several.
    decimal
        The sign in front of fractions, in inputs and in the output. ``"point"``: 1.5. ``"comma"``: 1,5.
        ``"point"`` unless given.
    quote
        The quote around fields, in inputs and in the output: a character, or `none`. ``"`` unless given.
    escape
        The character in front of quotes within quotes, in inputs. Doubled quotes are known anyway.
    comment
        The character in front of comment lines, in inputs.
    skip_lines
        The number of lines to leave out in front of all else, in inputs. ``0`` unless given.
    """

    def __init__(
        self,
        *,
        delimiter=None,
        header=None,
        null=None,
        decimal=None,
        quote=None,
        escape=None,
        comment=None,
        skip_lines=None,
    ):
        super().__init__(locals())


class ChangeLog(_Group):
    r"""The format of a change log, and what a compaction makes of it.

    Parameters
    ----------
    as_of
        The time of the last change that counts, a value of ``changes["time"]`` or of the first column of
        ``order_by``.
    mode
        The form of the output. ``"snapshot"``: The live rows, sorted by the key. ``"log"``: The last change of
        each key, deletes included; or the summed changes. ``"snapshot"`` unless given.
    keep_bookkeeping
        A snapshot keeps the columns of the operation, of the envelope and of ``changes["diff"]``.
    op_map
        The meanings of words in ``op``: I=insert,REFRESH=snapshot,... A meaning is insert, update, delete,
        snapshot or ignore. An empty word stands for null, and * for any other value. Text, or a dict.
    table
        The wanted table of a log of several: NAME or SCHEMA.NAME. In a name * stands for any characters, and ?
        for one. All wanted tables are taken as one table. A list stands for several.
    unchanged
        Treatment of updates that lack columns of their row. ``"last"``: A missing column keeps its last known
        value. Without such a value the update is an error. ``"error"``: The update is an error, because the
        values of missing columns are unknown. ``"keep"``: The update is taken unchanged: a missing column is
        null, a placeholder is a value. ``"last"`` unless given.
    diff
        The column that says how often a row was added; negative if removed.
    time
        The column with the time of a change.
    """

    def __init__(
        self,
        *,
        as_of=None,
        mode=None,
        keep_bookkeeping=None,
        op_map=None,
        table=None,
        unchanged=None,
        diff=None,
        time=None,
    ):
        super().__init__(locals())


class Write(_Group):
    r"""How the output is written.

    Parameters
    ----------
    format
        The format of the output. ``"parquet"``: Apache Parquet. ``"arrow"``: The Arrow IPC file format, also
        called Feather version 2. ``"arrow-stream"``: The Arrow IPC streaming format. ``"csv"``: Delimited text
        with a record a line. ``"ndjson"``: A JSON object a line.
    compression
        For Parquet none, snappy, lz4, zstd[:LEVEL], gzip[:LEVEL] or brotli[:LEVEL]; zstd:2 unless given. For text
        none, lz4, zstd, gzip, bzip2[:LEVEL] or xz[:LEVEL]; the name tells it unless given: .csv.gz, .ndjson.zst,
        ...
    max_file_size
        The bytes of a file, at least 64KiB. ``output`` then names a directory, new or empty, of files
        part-00000.parquet and on, which follow from one another; ``write["format"]`` is their format. Rows that
        are equal in the order stay in one file, which may be larger for them.
    wait
        Waiting for another job that changes the directory. A job that does not wait fails.
    """

    def __init__(
        self,
        *,
        format=None,
        compression=None,
        max_file_size=None,
        wait=None,
    ):
        super().__init__(locals())


class Parquet(_Group):
    r"""The layout of Parquet files.

    Parameters
    ----------
    row_group_size
        Row bytes of a Parquet row group, before encoding; at least 64KiB. Row groups end at 122,880 rows, and are
        not cut below 8192 rows or 2 MiB. ``16MiB`` unless given.
    page_size
        Bytes of a Parquet page, before compression; at least 4KiB. ``512KiB`` unless given.
    encoding
        The encodings of Parquet columns. ``"delta"``: Small files: differences of integers and times, lengths and
        prefixes of text, dictionaries. ``"plain"``: Plain values and dictionaries, for readers without support
        for other encodings. Files are about a fifth larger. ``"delta"`` unless given.
    statistics
        Statistics of Parquet pages and column chunks.
    checksums
        Checksums of Parquet pages.
    """

    def __init__(
        self,
        *,
        row_group_size=None,
        page_size=None,
        encoding=None,
        statistics=None,
        checksums=None,
    ):
        super().__init__(locals())


class Spill(_Group):
    r"""Where rows go that do not fit into memory, and how.

    Parameters
    ----------
    temp_dir
        A directory for temporary files. Several are used side by side. A list stands for several.
    max_temp_size
        The bytes that temporary files may take.
    compression
        The compression of temporary files. ``"none"``: The fastest, unless the disk is slow or short. ``"lz4"``:
        About half the space. ``"zstd"``: About a third of the space. ``"none"`` unless given.
    to
        The place of rows that exceed the memory limit. ``"disk"``: Temporary files in ``spill["temp_dir"]``.
        ``"memory"``: Memory outside of the process that the system may swap out, for machines without a disk to
        spare. A cgroup counts this memory. ``"disk"`` unless given.
    direct
        Temporary files pass the page cache by. The job is slower; the cache is left to others, and a container's
        memory limit counts it.
    """

    def __init__(
        self,
        *,
        temp_dir=None,
        max_temp_size=None,
        compression=None,
        to=None,
        direct=None,
    ):
        super().__init__(locals())

# end
