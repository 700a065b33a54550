"""Faults: each does something to a case's run, and says what came of it.

A fault returns a `Verdict`, or None where the case has nothing that it could hit.
"""

import os
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from . import disks, files
from .judge import Allowed, Verdict, judged, values_are_right

ERROR = Allowed(error=True)
# Formats whose end is told, so that a cut shows.
FRAMED = {"parquet", "arrow", "avro", "arrow-stream"}
# Compressed text with checksums over all that it holds.
CHECKED = {"gz", "bz2", "xz", "zst"}


# ---- the process ------------------------------------------------------------------------------


def kill_9(case):
    running = case.start()
    case.wait(running)
    case.stop(running)
    first = running.end(case.patience)
    verdict = judged(case, first, Allowed(error=True, leftovers=True, signal=signal.SIGKILL))
    # The next run of the same job clears up. One that is done is not repeated into its own input or folder.
    if not case.in_place and not (case.job.directory and case.state() == case.right):
        old, case.before = case.before, case.state()
        judged(case, case.run(stage=False), verdict=verdict)
        case.before = old
    return verdict


def interrupted(case):
    number = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP][int(case.rng.integers(3))]
    running = case.start()
    case.wait(running)
    case.stop(running, number)
    # Handlers are there after some milliseconds.
    ended = running.end(case.patience)
    return judged(case, ended, Allowed(error=True, signal=number))


def stopped(case):
    """SIGSTOP, and on again."""
    running = case.start()
    case.wait(running)
    case.stop(running, signal.SIGSTOP)
    running.over(0.005)
    case.stop(running, signal.SIGCONT)
    return judged(case, running.end(case.patience))


def two_runs(case):
    """The same job twice, into one output."""
    if not case.job.output or case.in_place:
        return None
    first = case.start()
    first.over(case.rng.random() * case.seconds)
    second = case.start(stage=False, name="-2")
    ends = [running.end(case.patience) for running in (first, second)]
    verdict = Verdict()
    for ended in ends:
        # A folder that has files is refused.
        judged(case, ended, Allowed(error=case.job.directory), verdict)
    if all(ended.code for ended in ends):
        verdict.add("refused", f"neither of two runs ended well: {ends[0].said}")
    verdict.result = "right"
    return verdict


def few_files(case):
    most = int(case.rng.integers(5, 40))
    return judged(case, case.run(limits={"RLIMIT_NOFILE": most}), ERROR)


def closed_pipe(case):
    """The reader of standard output goes away."""
    plain = case.job.output == f"out.{files.SUFFIX.get(case.job.target)}"
    if not plain or case.in_place or case.right is None:
        return None
    case.stage(old=False)
    size = case.size
    count = int(case.rng.integers(0, size + 1)) if case.rng.random() < 0.8 else size + 1
    taken = case.folder / "stdout"
    streams = {"take": {"path": str(taken), "bytes": count}}
    ended = case.start(output="-", more=["--output-format", case.job.target], streams=streams, stage=False).end(case.patience)
    verdict = judged(case, ended, Allowed(error=count <= size, elsewhere=True))
    got = taken.read_bytes()
    if got != case.right_bytes[: len(got)] or (ended.code == 0 and count > size and len(got) != size):
        verdict.add("wrong", f"standard output got {len(got)} bytes, which are not those of the file")
    return verdict


def sorted_again(case):
    """The output as the input of the same job: its row groups are in order, and are copied as they are. Some are damaged."""
    job = case.job
    plain = job.verb in ("sort", "merge") and job.target == "parquet" and job.source not in ("csv", "ndjson")
    if not plain or job.directory or job.stdin or job.whole_folder or case.in_place or "--select" in job.options:
        return None
    case.empty("bad")
    again = case.folder / "bad" / "again.parquet"
    raw = bytearray(case.right_bytes)
    pages = 4 + sum(group.total_compressed_size for group in columns_of(case.right_bytes))
    flipped = pages > 4 and "--no-checksums" not in job.options and case.rng.random() < 0.6
    if flipped:
        place = int(case.rng.integers(4, pages))
        raw[place] ^= 1 << int(case.rng.integers(8))
        case.notes.append(f"again.parquet: bit at {place}")
    again.write_bytes(raw)
    # The floor is that of another input.
    knobs, limit = case.knobs, case.limit
    case.set_knobs(int(case.rng.integers(1, 5)))
    ended = case.start(inputs=[Path("bad/again.parquet")]).end(case.patience)
    verdict = judged(case, ended, Allowed(error=flipped, other=True))
    case.knobs, case.limit = knobs, limit
    if verdict.result == "undetected":
        # The same rows, in row groups that may end elsewhere.
        verdict.result = "right"
        verdict.problems += values_are_right(case).problems
    return verdict


def columns_of(raw):
    footer = pq.read_metadata(pa.BufferReader(raw))
    return [footer.row_group(group).column(column) for group in range(footer.num_row_groups) for column in range(footer.num_columns)]


# ---- disks ------------------------------------------------------------------------------------


def full_disk(case):
    if not case.job.output or case.in_place:
        return None
    case.stage(old=False)
    with disks.small(case.folder / "out", int(case.rng.random() * case.size * 1.1)) as there:
        if not there:
            return None
        return judged(case, case.run(stage=False), ERROR)


def full_temp(case):
    if not case.job.big:
        return None
    case.stage()
    with disks.small(case.folder / "tmp", int(case.rng.random() * 20_000_000)) as there:
        if not there:
            return None
        return judged(case, case.run(stage=False), ERROR)


def file_size(case):
    """ulimit -f"""
    # Messages go to a file, too.
    most = max(1024, int(case.rng.random() * (case.size if not case.job.big else 12_000_000) * 1.1))
    return judged(case, case.run(limits={"RLIMIT_FSIZE": most}), ERROR)


def quota(case):
    if not case.job.big:
        return None
    most = 1 + int(case.rng.random() * 20_000_000)
    return judged(case, case.run(more=["--max-temp-size", str(most)]), ERROR)


def read_only(case):
    if not case.job.output or case.in_place:
        return None
    name = "out" if case.rng.random() < 0.6 else "tmp"
    case.stage(old=name == "tmp")
    with disks.read_only(case.folder / name) as there:
        if not there:
            return None
        verdict = judged(case, case.run(stage=False), Allowed(error=True))
    if name == "out" and verdict.result != "error":
        verdict.add("lost", "done in a folder that takes no files")
    return verdict


# ---- inputs -----------------------------------------------------------------------------------


def damaged(case, change):
    """A run on a copy of the inputs in which `change` changed the bytes of one; with these bytes, before that."""
    if case.in_place:
        return None, None
    case.empty("bad")
    for path in case.job.inputs:
        shutil.copy(case.folder / path, case.folder / "bad" / path.name)
    copies = [Path("bad") / path.name for path in case.job.inputs]
    victim = case.folder / copies[int(case.rng.integers(len(copies)))]
    whole = victim.read_bytes()
    if not whole:
        return None, None
    raw = bytearray(whole)
    case.notes.append(f"{victim.name}: {change(raw)}")
    victim.write_bytes(raw)
    return case.start(inputs=copies).end(case.patience), (whole, len(raw))


def flipped_input(case):
    def flip(raw):
        # Heads and footers are where structure is.
        size = len(raw)
        start, end = [(0, size), (0, size), (0, size), (0, min(64, size)), (max(0, size - 300), size)][int(case.rng.integers(5))]
        places = [int(case.rng.integers(start, end)) for _ in range(int(case.rng.choice([1, 1, 1, 3])))]
        for place in places:
            raw[place] ^= 1 << int(case.rng.integers(8))
        return f"bits at {places}"

    ended, _ = damaged(case, flip)
    if ended is None:
        return None
    return judged(case, ended, Allowed(error=True, other=case.job.packed not in CHECKED))


def cut_input(case):
    def cut(raw):
        # Some bytes from the end, or anywhere.
        most = min(len(raw), 40) if case.rng.random() < 0.4 else len(raw)
        del raw[len(raw) - int(case.rng.integers(1, most, endpoint=True)) :]
        return f"cut to {len(raw)}"

    ended, sizes = damaged(case, cut)
    if ended is None:
        return None
    shows = (case.job.packed or case.job.source in FRAMED) and not at_a_boundary(case.job, *sizes)
    return judged(case, ended, Allowed(error=True, other=not shows))


def at_a_boundary(job, whole, length):
    """A cut that leaves a whole file: nothing at all, behind a block of Avro, or behind a member."""
    if length == 0:
        return True
    if job.source == "avro":
        return whole[length - 16 : length] == whole[-16:]
    if job.packed:
        return any(whole[length:].startswith(magic) for magic, kind in files.MAGIC.items() if kind == job.packed)
    return False


def replaced_input(case):
    """Another file takes the place of an input during the run: rows of one of the two, or an error."""
    # What `inspect` tells may be of both, and a folder may have been read before or after.
    if case.in_place or case.job.stdin or case.job.whole_folder or case.job.verb == "inspect":
        return None
    path = case.folder / case.job.inputs[int(case.rng.integers(len(case.job.inputs)))]
    other = case.folder / case.job.inputs[int(case.rng.integers(len(case.job.inputs)))]
    kept, new = case.folder / "bad" / "kept", case.folder / "bad" / "new"
    shutil.copy2(path, kept)
    vanishes = case.rng.random() < 0.5
    if other != path:
        shutil.copy(other, new)
    else:
        new.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    running = case.start()
    case.wait(running)
    path.unlink() if vanishes else os.replace(new, path)
    ended = running.end(case.patience)
    verdict = judged(case, ended, Allowed(error=True, other=not vanishes, inputs=True))
    if verdict.result == "undetected":
        # The other file's rows are right as well.
        state = case.state()
        case.run()
        if case.state() != state:
            verdict.add("wrong", "rows of neither the old input nor the new one")
    os.replace(kept, path)
    return verdict


def changed_input(case):
    """An input is written to, or cut, during the run: anything but a crash."""
    if case.in_place or case.job.stdin:
        return None
    path = case.folder / case.job.inputs[int(case.rng.integers(len(case.job.inputs)))]
    kept = case.folder / "bad" / "kept"
    shutil.copy2(path, kept)
    running = case.start()
    case.wait(running)
    size = path.stat().st_size
    if case.rng.random() < 0.6:
        os.truncate(path, int(case.rng.integers(size + 1)))
    else:
        with open(path, "ab") as target:
            target.write(case.rng.bytes(int(case.rng.integers(1, 5000))))
    verdict = judged(case, running.end(case.patience), Allowed(error=True, other=True, inputs=True))
    os.replace(kept, path)
    return verdict


# ---- temporary files --------------------------------------------------------------------------


def temporary_folder_goes(case):
    """Somebody clears up the folder of temporary files, which have no names there."""
    running = case.start()
    case.wait(running)
    shutil.rmtree(case.folder / "tmp")
    ended = running.end(case.patience)
    (case.folder / "tmp").mkdir()
    return judged(case, ended, ERROR)


def temporary_files(case, change):
    """Changes temporary files while the job runs; None if there were none."""
    running = case.start()
    hit = 0
    for _ in range(int(case.rng.integers(1, 6))):
        found = []
        if not running.until(lambda: found.extend(case.temporary(running)) or found, 5):
            break
        running.over(case.rng.random() * case.seconds * 0.5)
        hit += sum(change(path) for path, _ in list(case.temporary(running)) if case.rng.random() < 0.7)
    ended = running.end(case.patience)
    return judged(case, ended, ERROR) if hit else None


def flipped_temp(case):
    if not case.job.big:
        return None

    def flip(path):
        try:
            with open(path, "r+b", buffering=0) as handle:
                place = int(case.rng.integers(os.fstat(handle.fileno()).st_size))
                was = os.pread(handle.fileno(), 1, place)
                # A byte of a hole holds nothing; a byte that changes in between is one more fault.
                return os.pwrite(handle.fileno(), bytes([was[0] ^ 1 << int(case.rng.integers(8))]), place)
        except (OSError, ValueError, IndexError):
            return 0

    return temporary_files(case, flip)


def cut_temp(case):
    if not case.job.big or "memory" in case.knobs:
        return None

    def cut(path):
        try:
            os.truncate(path, int(case.rng.integers(os.stat(path).st_size)))
            return 1
        except (OSError, ValueError):
            return 0

    return temporary_files(case, cut)


SMALL = {
    kill_9: 3, interrupted: 3, stopped: 0.5, two_runs: 2, few_files: 1, closed_pipe: 2, full_disk: 2, file_size: 2, read_only: 1,
    flipped_input: 5, cut_input: 4, sorted_again: 4, temporary_folder_goes: 0.5, replaced_input: 2, changed_input: 2,
}
BIG = {
    kill_9: 2, interrupted: 2, stopped: 0.3, two_runs: 1, few_files: 0.5, closed_pipe: 0.5, full_disk: 1, full_temp: 2, file_size: 1,
    quota: 2, read_only: 0.3, flipped_input: 1, cut_input: 1, replaced_input: 2, changed_input: 2, flipped_temp: 4, cut_temp: 2, sorted_again: 1,
    temporary_folder_goes: 1,
}


def name_of(fault):
    return fault.__name__.replace("_", " ")
