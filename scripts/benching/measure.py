"""One run: a process of its own, and what the kernel says of it.

The caller imports nothing heavy: a child's ru_maxrss starts at the RSS of the process that forked
it. Time and memory are of the whole process, interpreter, start and library included, and of the
processes that it waited for. The input is in the page cache and the disk's queue is empty when a
run starts.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from . import engines
from .jobs import DATA, MIB, OUT, TEMP

# What an engine says when the limit is the cause.
OUT_OF_MEMORY = re.compile(r"out of memory|resources exhausted|memory.{0,40}(floor|limit)|MemoryError", re.I)


def warm(source):
    for file in source.iterdir() if source.is_dir() else [source]:
        with open(file, "rb") as opened:
            while opened.read(MIB):
                pass


def size_of(path):
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def waited(argv, messages, threads, timeout):
    """Exit code, wall seconds and usage of a process, which is killed with its children in time."""
    with open(messages, "wb") as said:
        start = time.monotonic()
        process = subprocess.Popen(list(map(str, argv)), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                   env=engines.environment(threads), start_new_session=True)
        kill = lambda *_: os.killpg(process.pid, signal.SIGKILL)
        signal.signal(signal.SIGALRM, kill)
        signal.alarm(timeout)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            kill()
            raise
        finally:
            signal.alarm(0)
        wall = time.monotonic() - start
        # Popen must not wait for what wait4 has reaped.
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, wall, usage


def measure(engine, job, limit, source, options, python, script):
    """The figures of one run and where its output is; `status` is ok if there is one."""
    for folder in (OUT, TEMP):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    out = OUT / (engine if job.directory else f"{engine}.{job.out}")
    run = {"engine": engine, "job": job.name, "limit": limit, "status": "missing"}
    argv = engines.command(engine, job, limit, options.threads, python, script, source, out, TEMP)
    if not Path(argv[0]).exists():
        return run, out
    warm(source)
    os.sync()
    messages = DATA / "jobs-said.txt"
    code, wall, usage = waited(argv, messages, options.threads, options.timeout)
    run |= {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss * 1024 / MIB, "exit": code}
    said = messages.read_text(errors="replace")
    if wall >= options.timeout:
        run["status"] = "timeout"
    elif code != 0:
        run["status"] = "memory" if OUT_OF_MEMORY.search(said) else f"exit {code}"
        # DuckDB's last line is a caret.
        run["said"] = [line for line in said.splitlines() if re.search(r"\w{3}", line)][-1:]
    elif not out.exists() or out.is_dir() != job.directory:
        run["status"] = "no output"
    else:
        run |= {"status": "ok", "size": size_of(out) / 1e6}
    return run, out
