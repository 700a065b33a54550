"""Tools with known faults: a soak that does not find them finds nothing.

Each is the tool behind a script that spoils what it does.
"""

import sys

from .case import Case
from .report import Report

# In the scripts $1 and on are the arguments; `out` is the output, if there is one.
HEAD = """#!/bin/bash
tool={tool}
out= last=
for word; do [ "$last" = -o ] && out=$word; last=$word; done
"""
SPOILED = {
    ("drops a row", "wrong"): '"$tool" "$@"; code=$?; case $out in *.csv) sed -i \'$d\' "$out" ;; esac; exit $code',
    ("writes other bytes at a limit", "wrong"): '"$tool" "$@"; code=$?; case "$*" in *--memory-limit*) [ -f "$out" ] && echo >>"$out" ;; esac; exit $code',
    ("writes in place", "lost"): '[ -n "$out" ] && [ ! -d "$out" ] && echo begun >"$out"; exec "$tool" "$@"',
    ("forgets a file", "left over"): '"$tool" "$@"; code=$?; touch tmp/forgotten; exit $code',
    ("takes too much memory", "past limit"): 'exec {python} -S -c \'import os, sys; b"x" * (600 << 20); os.execv(sys.argv[1], sys.argv[1:])\' "$tool" "$@"',
    ("crashes on damage", "crashed"): '"$tool" "$@"; code=$?; [ $code = 3 ] && kill -SEGV $$; exit $code',
    ("waits for ever", "hung"): 'case "$*" in *bad/*) exec sleep 600 ;; esac; exec "$tool" "$@"',
    ("gives up without a fault", "refused"): 'case "$*" in *--explain*) ;; *--memory-limit*) echo no >&2; exit 5 ;; esac; exec "$tool" "$@"',
}
CASES = 200


def check(binary, work, soak):
    """Whether each is found; the tool itself has to be free of failures in as many cases."""
    missed = []
    Case.patience = 10
    for number, ((name, kind), body) in enumerate(SPOILED.items()):
        script = work / f"tool-{number}"
        script.write_text((HEAD + body + "\n").replace("{tool}", str(binary)).replace("{python}", sys.executable))
        script.chmod(0o755)
        report = Report(1, None)
        found = lambda: sum(counts[kind] for counts in report.counts.values())
        cases = (case for case in range(CASES) if not found())
        soak(script, 1, cases, 60, report, work)
        print(f"{name}: " + (f"{kind}, after {report.cases} cases" if found() else "NOT FOUND"), flush=True)
        if not found():
            missed.append(name)
    return 1 if missed else 0
