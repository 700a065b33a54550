"""What was done: a line a case, a table at the end, and folders of what failed."""

import collections
import shutil
from pathlib import Path

from .judge import FAILURES, RESULTS

KEPT = 60


class Report:
    def __init__(self, seed, keep, verbose=False):
        """`keep`: where failures go, if they are shown and kept."""
        self.seed, self.keep, self.verbose = seed, keep and Path(keep), verbose
        self.counts = collections.defaultdict(collections.Counter)
        self.cases = self.failed = 0

    def told(self, case, number, fault, verdict):
        """One run under a fault, or without."""
        counts = self.counts[fault]
        counts["runs"] += 1
        counts[verdict.result] += 1
        counts.update({kind for kind, _ in verdict.problems})
        if self.verbose:
            job = f"{case.job.verb} of {case.job.source} {case.job.packed or ''}"
            print(f"{self.seed}:{number} {job}, {fault}: {verdict.result} {verdict.problems or ''} {case.notes or ''}", flush=True)
        if verdict.problems:
            self.failed += 1
            if self.keep:
                self.failure(case, number, fault, verdict)

    def failure(self, case, number, fault, verdict):
        print(f"FAILED {self.seed}:{number} {fault}: " + "; ".join(f"{kind}: {text}" for kind, text in verdict.problems), flush=True)
        print(f"    {case.commands[-1]}", flush=True)
        folder = self.keep / f"{self.seed}-{number}" / fault.replace(" ", "-")
        if self.failed > KEPT:
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(case.folder, folder, symlinks=True)
        lines = [f"# {kind}: {text}" for kind, text in verdict.problems] + [f"# {note}" for note in case.notes]
        repeat = [f"# The whole case: scripts/soak --case {self.seed}:{number}", 'cd "$(dirname "$0")"', *case.commands]
        (folder / "repeat.sh").write_text("\n".join(lines + repeat) + "\n")

    def table(self, seconds):
        """Runs by fault and verdict."""
        columns = ["runs", *RESULTS, *FAILURES]
        width = max(len(fault) for fault in [*self.counts, "all faults"])
        lines = [" " * width + "".join(f"{name:>12}" for name in columns)]
        faults = collections.Counter()
        for fault, counts in sorted(self.counts.items()):
            lines.append(f"{fault:<{width}}" + "".join(f"{counts[name] or '-':>12}" for name in columns))
            if not fault.startswith("no fault"):
                faults.update(counts)
        lines.append(f"{'all faults':<{width}}" + "".join(f"{faults[name] or '-':>12}" for name in columns))
        rate = faults["runs"] / seconds * 3600
        done = f"{self.cases} cases, {faults['runs']} faults in {seconds:.0f} s ({rate:.0f} an hour)"
        lines.append(f"seed {self.seed}: {done}, {self.failed} failures")
        return "\n".join(lines)
