"""What a call raises, by the remedy that it needs.

Each is also the built-in exception that Python has for it. The fields are those of the place that an error is
about, and ``None`` where there is none.
"""


class WindrowError(Exception):
    """Anything that Windrow reports."""

    file = None
    """The input or output, as the message names it."""
    row = None
    """The row in its file, from 0."""
    line = None
    """The line in its file, from 1."""
    column = None
    """The name of the column."""


class UsageError(WindrowError, ValueError):
    """The call asks for what cannot be."""


class DataError(WindrowError, ValueError):
    """An input cannot be read, or holds what it must not."""


class UnsortedError(DataError):
    """An input of a merge is not sorted: sort it first."""


class InputNotFoundError(WindrowError, FileNotFoundError):
    """An input is not there, or no file matches a pattern."""


class AccessError(WindrowError, PermissionError):
    """A file or an object must not be read, or must not be written."""


class StoreError(WindrowError, ConnectionError):
    """An object store cannot be reached, or does not answer as it should: its address and settings, or try again."""


class MemoryFloorError(WindrowError, MemoryError):
    """``memory`` is below what the job needs. Nothing was read."""

    floor = None
    """The least ``memory`` that the job needs, in bytes."""
    limit = None
    """The ``memory`` that it has, in bytes."""


class SpaceError(WindrowError, OSError):
    """The output or temporary files cannot be written: no space, no such place."""


class CorruptError(WindrowError):
    """Bytes that were read back from temporary files are not those written."""
