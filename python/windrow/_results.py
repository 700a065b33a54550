"""What calls return: plain objects with a text, a table for notebooks, and a dict."""

from windrow._rows import escaped


class _Result:
    """Attributes by name, in order."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def to_dict(self):
        """All of it as plain Python objects, which JSON takes."""
        return dict(self.__dict__)

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def _repr_html_(self):
        return _table(_flat(self.__dict__))


_FIGURES = [
    "rows_in",
    "rows_out",
    "rows_dropped",
    "keys_deleted",
    "bytes_in",
    "bytes_out",
    "partitions",
    "spilled_bytes",
    "peak_rss_bytes",
    "seconds",
]


class Details(_Result):
    """Figures of a job for who looks into its memory, temporary files, threads and network."""

    network = None

    def __repr__(self):
        return "\n".join(f"{name:<32} {value}" for name, value in _flat(self.__dict__))


class Stats(_Result):
    """The figures of a job; ``details`` has more.

    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> stats = wr.sort(pa.table({"id": [2, 1]}), by="id", output="ids.parquet")
    >>> stats.rows_in, stats.rows_out, stats.spilled_bytes
    (2, 2, 0)
    """

    def __init__(self, *, ended=True, **figures):
        super().__init__(**{name: figures.pop(name, None) for name in _FIGURES})
        self.details = Details(**figures)
        # Rows of a reader are still to be read.
        self._ended = ended

    def to_dict(self):
        """All of it, and the details, as plain Python objects, which JSON takes."""
        return {**{name: getattr(self, name) for name in _FIGURES}, **self.details.to_dict()}

    def __getattr__(self, name):
        details = self.__dict__.get("details")
        if details is not None and hasattr(details, name):
            raise AttributeError(f"{name} is one of the details: stats.details.{name}")
        raise AttributeError(f"Stats has no {name!r}; it has {', '.join(_FIGURES)}, details")

    def __repr__(self):
        spilled = f", spilled {_size(self.spilled_bytes)}" if self.spilled_bytes else ""
        written = f" ({_size(self.bytes_out)})" if self.bytes_out else ""
        files = f" in {self.partitions['files']} files" if self.partitions else ""
        rest = "" if self._ended else "; not all rows were read"
        return f"<Stats: {self.rows_in:,} rows in, {self.rows_out:,} rows out{files}{written} in {self.seconds:.2f} s{spilled}{rest}>"

    def _repr_html_(self):
        figures = ((name, getattr(self, name)) for name in _FIGURES)
        shown = [(name, _shown(name, figure)) for name, figure in figures if figure is not None]
        return _table(shown + [("rows", "not all were read")] * (not self._ended))


class Applied(_Result):
    """What became of changes to a table: counts of rows, and the files that were removed, added and left."""

    version = None
    """The version of a Delta table, or the snapshot of an Iceberg table."""

    def __repr__(self):
        files = "would be replaced" if self.dry_run else "replaced"
        return (
            f"<Applied: {self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted; "
            f"{len(self.files_removed)} files {files}, {len(self.files_left)} left, in {self.seconds:.2f} s>"
        )

    def _repr_html_(self):
        shown = {name: len(value) if isinstance(value, list) else value for name, value in self.to_dict().items()}
        return _table(shown.items())


class Check(_Result):
    """Whether inputs are sorted; true if they are.

    >>> import pyarrow as pa
    >>> import windrow as wr
    >>> checked = wr.check(pa.table({"id": [1, 3, 2]}), by="id")
    >>> bool(checked), checked.row
    (False, 2)
    """

    def __bool__(self):
        return self.ok

    def __repr__(self):
        return f"<Check: {self.message}>"


class Inspect(_Result):
    """What is known of a file without sorting it."""

    parquet = None

    def __init__(self, text, fields):
        super().__init__(**fields)
        self._text = text

    def to_dict(self):
        """All of it as plain Python objects, which JSON takes."""
        return {name: value for name, value in self.__dict__.items() if name != "_text"}

    def __repr__(self):
        return self._text.rstrip("\n")

    def _repr_html_(self):
        return f"<pre>{escaped(self._text)}</pre>"


class Explain(_Result):
    """What a job would do: its order, threads, memory and limits."""

    def to_dict(self):
        """The lines of the plan by what each is about."""
        return dict(self.lines)

    def __repr__(self):
        return "\n".join(f"{name:<14} {value}" for name, value in self.lines)

    def _repr_html_(self):
        return _table(self.lines)


def _shown(name, figure):
    if name.endswith("bytes") or name.startswith("bytes"):
        return _size(figure)
    if isinstance(figure, dict):
        return ", ".join(f"{part} {count:,}" for part, count in figure.items())
    return f"{figure:.2f}" if isinstance(figure, float) else f"{figure:,}"


def _size(size):
    for unit in ["B", "KiB", "MiB"]:
        if size < 10 * 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} GiB"


def _flat(figures):
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", figure) for part, figure in value.items())
        else:
            yield name, value


def _table(rows):
    cells = (f"<tr><th>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"
