"""Who watches a job: a caller's function, a bar of tqdm's, or a line on a terminal."""

import collections
import contextlib
import sys
import time

Progress = collections.namedtuple("Progress", ["phase", "rows", "total_rows", "spilled_bytes"])
Progress.__doc__ = """A moment of a job: ``phase`` is ``"read"``, ``"settle"`` or ``"write"``."""
Progress.__module__ = "windrow"
Progress.rows.__doc__ = "Rows that went through the phase so far."
Progress.total_rows.__doc__ = "Rows that will, or None where that is not known."
Progress.spilled_bytes.__doc__ = "Bytes of rows that went to temporary files so far."


@contextlib.contextmanager
def watching(progress):
    """The function to call with the four parts of a `Progress`, or None."""
    if progress in (None, False):
        yield None
        return
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress= takes True, False or a function, not {type(progress).__name__}")
        yield lambda *moment: progress(Progress(*moment))
        return
    bar = _bar()
    if bar is None:
        yield None
        return
    try:
        yield bar.show
    finally:
        bar.close()


def _bar():
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        if sys.stderr is None:
            return None
        # Notebooks write over lines as terminals do.
        of_notebook = type(sys.stderr).__module__.startswith("ipykernel")
        return _Line(sys.stderr) if of_notebook or sys.stderr.isatty() else _Lines(sys.stderr)
    return _Tqdm(tqdm)


class _Tqdm:
    """A bar that starts again with each phase."""

    def __init__(self, tqdm):
        self.bar = tqdm(unit=" rows", unit_scale=True, leave=False)
        self.phase = None

    def show(self, phase, rows, total, spilled):
        if phase != self.phase:
            self.phase = phase
            self.bar.set_description(phase, refresh=False)
            self.bar.reset(total)
        if spilled:
            self.bar.set_postfix_str(f"{spilled >> 20} MiB spilled", refresh=False)
        self.bar.update(rows - self.bar.n)

    def close(self):
        self.bar.close()


class _Line:
    """A line that is written over."""

    def __init__(self, stream):
        self.stream = stream

    def show(self, *moment):
        self.stream.write(f"\r\x1b[K{_worded(*moment)}")
        self.stream.flush()

    def close(self):
        self.stream.write("\r\x1b[K")
        self.stream.flush()


class _Lines:
    """A line for each phase, and every few seconds, where lines cannot be written over."""

    SECONDS = 5

    def __init__(self, stream):
        self.stream = stream
        self.last = self.phase = self.shown = None
        self.at = time.monotonic()

    def show(self, *moment):
        if self.phase not in (None, moment[0]):
            self._write(self.last)
        self.last, self.phase = moment, moment[0]
        if time.monotonic() - self.at >= self.SECONDS:
            self._write(moment)

    def _write(self, moment):
        if moment != self.shown:
            self.stream.write(f"windrow: {_worded(*moment)}\n")
            self.stream.flush()
        self.at, self.shown = time.monotonic(), moment

    def close(self):
        if self.last is not None:
            self._write(self.last)


def _worded(phase, rows, total, spilled):
    of = f" of {total:,}" if total else ""
    spilled = f", {spilled >> 20} MiB spilled" if spilled else ""
    return f"{phase}: {rows:,}{of} rows{spilled}"
