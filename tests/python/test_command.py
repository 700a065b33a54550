"""The command that comes with the package is the tool."""

import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
import windrow
from conftest import LOG, shuffled

COMMANDS = {
    "script": [str(pathlib.Path(sys.executable).with_name("windrow"))],
    "module": [sys.executable, "-m", "windrow"],
}


@pytest.fixture(params=COMMANDS)
def command(request):
    def run(*args, **options):
        return subprocess.run([*COMMANDS[request.param], *map(str, args)], capture_output=True, timeout=60, **options)

    return run


def test_it_writes_the_bytes_of_the_tool(command, tool):
    flags = ["--key", "o_orderkey", "--order-by", "lsn", "--op-column", "op"]
    tool("compact", LOG, *flags, "-o", "theirs.parquet")
    done = command("compact", LOG, *flags, "-o", "ours.parquet")
    assert (done.returncode, done.stdout) == (0, b"") and b"28752 rows out" in done.stderr
    assert pathlib.Path("ours.parquet").read_bytes() == pathlib.Path("theirs.parquet").read_bytes()
    done = command("sort", LOG, "--by", "lsn", "--select", "lsn", "-o", "-", "--output-format", "csv", "--quiet")
    lines = done.stdout.splitlines()
    assert len(lines) == 51_685 and lines[0] == b"lsn" and done.stderr == b""


def test_help_and_exit_codes(command):
    done = command("--version")
    assert done.returncode == 0 and done.stdout.startswith(b"windrow ")
    assert b"Usage: windrow sort" in command("sort", "--help").stdout
    assert command("sort").returncode == 2
    assert command("check", LOG, "--by", "lsn").returncode == 1
    done = command("sort", "missing.parquet", "--by", "a", "-o", "a.parquet")
    assert done.returncode == 3 and done.stderr.startswith(b"windrow: missing.parquet") and b"Traceback" not in done.stderr
    assert command("sort", LOG, "--by", "lsn", "-o", "a.parquet", "--memory-limit", "1MiB").returncode == 4
    assert os.listdir() == []


# What the package says otherwise, and what is the command line's alone.
RENAMED = {"op-column": "op", "op-preset": "preset", "memory-limit": "memory", "store-option": "storage_options", "range-at": "ranges", "if-exists": "mode"}
OF_THE_TOOL = {"help", "version", "quiet", "progress", "stats", "explain", "json"}
# `diff=` says one, and `ranges=` the other.
IMPLIED = {"consolidate", "range"}


@pytest.mark.parametrize("verb", ["sort", "compact", "merge", "partition", "dedupe", "diff", "head", "check", "inspect"])
def test_a_call_has_all_options_of_its_command(command, verb):
    said = command(verb, "--help").stdout.decode()
    options = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)(?: [<\[]|$)", said, re.MULTILINE)) - OF_THE_TOOL - IMPLIED
    arguments = set(inspect.signature(getattr(windrow, verb)).parameters)
    groups = [windrow.Csv, windrow.Read, windrow.Write, windrow.Parquet, windrow.Spill, windrow.ChangeLog]
    grouped = {name for group in groups for name in inspect.signature(group).parameters}
    named = {RENAMED.get(option, re.sub("^(csv_|input_|output_|spill_)?(no_)?", "", option.replace("-", "_"))) for option in options - {"output"}}
    assert len(named) > 10 and named <= arguments | grouped


def test_ctrl_c_ends_it():
    pq.write_table(shuffled(100_003, 2), "in.parquet")
    flags = ["--by", "id", "-o", "out.parquet", "--memory-limit", "96MiB", "--temp-dir", ".", "--quiet"]
    child = subprocess.Popen([*COMMANDS["script"], "sort", *["in.parquet"] * 60, *flags], stderr=subprocess.PIPE)
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 130 and said.startswith(b"windrow: interrupted") and b"Traceback" not in said
    assert os.listdir() == ["in.parquet"]


def test_a_reader_that_goes_away_is_no_error():
    script = f"{COMMANDS['script'][0]} sort {LOG} --by lsn -o - --output-format csv --quiet | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("lsn,op,") and done.stderr == "" and done.returncode in (0, 141)
