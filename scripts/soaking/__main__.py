"""scripts/soak: its arguments, and the loop over cases."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from . import processes

# Before the libraries take memory: see processes.py.
STARTER = processes.Starter()

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

import numpy as np  # noqa: E402

from . import faults, files, self_check  # noqa: E402
from .case import MIB, Case  # noqa: E402
from .commands import weighted  # noqa: E402
from .judge import judged, values_are_right  # noqa: E402
from .report import Report  # noqa: E402

# By how much the memory that is resident at the start differs from run to run: docs/memory.md.
SWAY = 2 << 20
# Cases whose rows do not fit the least limit.
BIG = 0.08


def options():
    parser = argparse.ArgumentParser(prog="scripts/soak", description="Random jobs, faults while they run, and what came of it.")
    parser.add_argument("minutes", nargs="?", type=float, default=1)
    parser.add_argument("seed", nargs="?", type=int, default=None)
    parser.add_argument("--case", metavar="SEED:NUMBER", help="this case alone, with a line for each run")
    parser.add_argument("--cases", type=int, help="so many cases at the most")
    parser.add_argument("--self-check", action="store_true", help="whether tools with known faults are found out")
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    parser.add_argument("--work", type=Path, help="where cases are run; a tmpfs if there is one")
    parser.add_argument("--keep", type=Path, default=ROOT / "target" / "soak", help="where failures go")
    return parser.parse_args()


def work_folder(chosen):
    memory = Path("/dev/shm")
    parent = chosen or (memory if os.access(memory, os.W_OK) else None)
    return Path(tempfile.mkdtemp(prefix="windrow-soak-", dir=parent))


def first_run(case, report, number):
    """The job as it is: beside the model. Later runs are compared with it."""
    case.set_knobs(threads=int(case.rng.integers(1, 4)))
    ended = case.run()
    case.right = case.state()
    verdict = judged(case, ended)
    if ended.code == case.job.code:
        verdict.problems += values_are_right(case).problems
    report.told(case, number, "no fault", verdict)
    case.seconds = ended.seconds
    if case.output.is_file():
        case.right_bytes = case.output.read_bytes()
    case.size = files.size_of(case.output) if case.output.exists() else 0
    return ended.code == case.job.code


def second_run(case, report, number):
    """The same bytes at a small limit, with other threads."""
    rng = case.rng
    more = ["--spill-compression", str(rng.choice(["none", "lz4", "zstd"]))]
    more += ["--spill-to", "memory"] if rng.random() < 0.1 else ["--spill-direct"] if rng.random() < 0.1 else []
    threads = int(rng.integers(1, 5))
    case.set_knobs(threads, more=more)
    floor = case.floor()
    if floor is None:
        return
    above = [0, 0, 1, 3] if case.job.big else [0, 0, 1, 4, 16, 100]
    case.set_knobs(threads, floor + int(rng.choice(above)) * MIB, more)
    ended = case.run()
    # Long rows that no plan knows before they are read: the message says what is enough, as far as it was read.
    while ended.code == 4 and (case.needed(ended) or 0) > case.limit:
        case.set_knobs(threads, case.needed(ended), more)
        ended = case.run()
    case.seconds = ended.seconds
    report.told(case, number, "no fault, at a limit", judged(case, ended))
    # A row that no plan knows may fit in this run by little, and not in the next, which starts with other memory resident.
    case.set_knobs(threads, case.limit + SWAY, more)


def one_case(number, seed, folder, binary, report):
    rng = np.random.default_rng([seed, number])
    big = bool(rng.random() < BIG)
    case = Case(rng, folder, STARTER, binary, big)
    report.cases += 1
    if not first_run(case, report, number):
        return
    second_run(case, report, number)
    chances = faults.BIG if big else faults.SMALL
    for turn in range(8 if big else 4):
        # Its own dice: how often a fault throws them depends on the moment.
        case.rng = np.random.default_rng([seed, number, turn])
        fault = weighted(case.rng, chances)
        case.commands, case.notes = case.commands[:1], []
        verdict = fault(case)
        if verdict is not None:
            report.told(case, number, faults.name_of(fault), verdict)


def soak(binary, seed, numbers, seconds, report, work):
    """Cases until the time is up."""
    end = time.monotonic() + seconds
    for number in numbers:
        if time.monotonic() > end:
            break
        folder = work / str(number)
        try:
            one_case(number, seed, folder, binary, report)
        except Exception:  # a fault of the soak, which is no reason to stop
            report.failed += 1
            print(f"FAILED {seed}:{number}: the soak itself", flush=True)
            traceback.print_exc()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    chosen = options()
    binary = Path(os.environ.get("WINDROW") or ROOT / "target" / "release" / "windrow").resolve()
    seed = chosen.seed if chosen.seed is not None else random.randrange(1 << 32)
    numbers, seconds = range(chosen.cases or 1 << 62), chosen.minutes * 60
    if chosen.case:
        seed, number = (int(part) for part in chosen.case.split(":"))
        numbers, seconds = [number], 3600
    # Also where a shell starts it in the background: with its table, and without a trace of cases.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    work = work_folder(chosen.work)
    try:
        if chosen.self_check:
            return self_check.check(binary, work, soak)
        report = Report(seed, chosen.keep, chosen.verbose or bool(chosen.case))
        print(f"seed {seed}; {binary}", flush=True)
        since = time.monotonic()
        try:
            soak(binary, seed, numbers, seconds, report, work)
        except KeyboardInterrupt:
            pass
        print(report.table(time.monotonic() - since))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
