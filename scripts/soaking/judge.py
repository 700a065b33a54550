"""What a run may leave behind, and what it may not."""

from dataclasses import dataclass, field

# Each is a failure of the tool, or of the soak.
FAILURES = ["wrong", "lost", "left over", "past limit", "hung", "crashed", "refused"]
# Results of runs that did not fail.
RESULTS = ["right", "error", "undetected"]
CODES = {0, 1, 2, 3, 4, 5, 6, 130, 141}


@dataclass
class Verdict:
    """What came of a run under a fault."""

    result: str = "right"
    problems: list = field(default_factory=list)

    def add(self, kind, text):
        self.problems.append((kind, text))


@dataclass
class Allowed:
    """What the fault excuses."""

    # An error in place of the output.
    error: bool = False
    # Another output than the right one: damage that nothing in the format shows.
    other: bool = False
    # A temporary output beside the target.
    leftovers: bool = False
    # Ends by this signal.
    signal: int = 0
    # Inputs that the fault changed.
    inputs: bool = False
    # No output, although it is done: standard output, or a folder that went away.
    elsewhere: bool = False


def ends_well(case, ended, verdict, allowed):
    """Whether it ended as the tool ends, with or without an error."""
    said = ended.said.strip()[-300:]
    if ended.hung:
        verdict.add("hung", f"no end after {ended.seconds:.0f} s")
    elif ended.code < 0 and -ended.code != allowed.signal:
        verdict.add("crashed", f"signal {-ended.code}: {said}")
    elif ended.code >= 0 and (ended.code not in CODES or "panicked" in ended.said):
        verdict.add("crashed", f"exit code {ended.code}: {said}")
    elif ended.code > 1 and ended.code != case.job.code and not ended.said.strip() and ended.code != 141:
        verdict.add("crashed", f"exit code {ended.code} without a word")
    elif ended.code >= 0 and ended.code != case.job.code and not allowed.error:
        verdict.add("refused", f"exit code {ended.code}: {said}")


def output_is_whole(case, ended, verdict, allowed):
    """The right output after success; that or what was there before after anything else."""
    state = case.state()
    if ended.code == case.job.code and not allowed.elsewhere:
        if state is None:
            verdict.add("lost", "done, but there is no output")
        elif state != case.right:
            if allowed.other:
                verdict.result = "undetected"
            else:
                verdict.add("wrong", "the output is not the right one")
    elif ended.code != case.job.code:
        verdict.result = "error"
        if case.job.output and state not in (case.before, case.right) and not allowed.other:
            verdict.add("lost", "the output is neither whole nor what was there before")


def nothing_is_left(case, verdict, allowed):
    if allowed.leftovers:
        return
    more = [path.name for path in (case.folder / "out").iterdir() if path.name != case.job.output]
    more += [f"tmp/{path.name}" for path in (case.folder / "tmp").iterdir()]
    if more:
        verdict.add("left over", ", ".join(sorted(more)[:5]))


def judged(case, ended, allowed=Allowed(), verdict=None):
    verdict = verdict or Verdict()
    ends_well(case, ended, verdict, allowed)
    if not ended.hung:
        output_is_whole(case, ended, verdict, allowed)
    nothing_is_left(case, verdict, allowed)
    if not allowed.inputs and case.look_at_inputs() != case.inputs:
        verdict.add("lost", "an input has changed")
    if case.limit and ended.rss > case.limit:
        verdict.add("past limit", f"{ended.rss >> 10} KiB resident at a limit of {case.limit >> 10} KiB, exit code {ended.code}")
    return verdict


def values_are_right(case):
    """The output, or what was said, beside the model; the first run of a case."""
    verdict = Verdict()
    try:
        if case.job.output:
            case.job.judge(case.output)
        else:
            case.job.judge((case.folder / "stdout").read_text(), (case.folder / "said").read_text())
    except AssertionError as error:
        verdict.add("wrong", str(error))
    except Exception as error:  # an output that cannot be read is not right
        verdict.add("wrong", f"{type(error).__name__}: {error}")
    return verdict
