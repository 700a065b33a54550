"""Processes of the tool, and what the kernel says of each.

A child's ru_maxrss begins with the memory of the process that forked it, and the libraries of a soak take more than the tool
may. So a process that imports next to nothing (`serve`) starts the tool, and stays its parent:

    soak -- argv, streams, limits --> starter -- fork, exec --> tool
         <-- pid ------------------           \\-- feeder, taker: pipes that end when they are told to
         -- reap, once it has ended --> wait4 <-- exit code, ru_maxrss

A process keeps its id until it is reaped, so a signal never meets another one.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# ---- the starter ------------------------------------------------------------------------------


def opened(path, flags, onto):
    """A file as one of the standard streams."""
    handle = os.open(path, flags, 0o644)
    os.dup2(handle, onto)
    if handle != onto:
        os.close(handle)


def piped(request, pid_list):
    """The ends of pipes that the tool gets, with a process at each other end."""
    ends = {}
    if feed := request.get("feed"):
        mine, others = os.pipe()
        pid_list.append(copier(feed["path"], feed["bytes"], others, mine))
        os.close(others)
        ends[0] = mine
    if take := request.get("take"):
        mine, others = os.pipe()
        pid_list.append(taker(take["path"], take["bytes"], mine, others))
        os.close(mine)
        ends[1] = others
    return ends


def copier(path, count, into, other_end):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(other_end)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        with open(path, "rb") as source:
            while count and (piece := source.read(min(count, 1 << 16))):
                count -= len(piece)
                while piece:
                    piece = piece[os.write(into, piece) :]
    finally:
        os._exit(0)


def taker(path, count, source, other_end):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(other_end)
        with open(path, "wb") as target:
            while count and (piece := os.read(source, min(count, 1 << 16))):
                count -= len(piece)
                target.write(piece)
    finally:
        os._exit(0)


def started(request):
    helpers = []
    ends = piped(request, helpers)
    pid = os.fork()
    if pid:
        for end in ends.values():
            os.close(end)
        return pid, helpers
    try:
        os.setsid()
        for stream, end in ends.items():
            os.dup2(end, stream)
            os.close(end)
        if 0 not in ends:
            opened(os.devnull, os.O_RDONLY, 0)
        if 1 not in ends:
            opened(request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1)
        opened(request["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 2)
        os.chdir(request["folder"])
        for name, value in request["limits"].items():
            kind = getattr(resource, name)
            resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))
        # As a shell leaves them; Python ignores both.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execve(request["argv"][0], request["argv"], {**os.environ, **request["env"]})
    finally:
        os._exit(127)


def serve():
    # A signal for the tool may come before it runs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    helpers = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "argv" in request:
            pid, helpers[pid] = started(request)
            answer = {"pid": pid}
        else:
            pid = request["reap"]
            _, status, usage = os.wait4(pid, 0)
            for helper in helpers.pop(pid):
                # One may wait for a pipe that nobody reads any more.
                if request["kill"]:
                    os.kill(helper, signal.SIGKILL)
                os.waitpid(helper, 0)
            answer = {"code": os.waitstatus_to_exitcode(status), "rss": usage.ru_maxrss * 1024}
        print(json.dumps(answer), flush=True)


# ---- its client -------------------------------------------------------------------------------


@dataclass
class Ended:
    """How a run of the tool ended; `code` is negative for a signal."""

    code: int
    rss: int
    said: str
    seconds: float
    hung: bool = False


class Running:
    def __init__(self, starter, pid, said):
        self.starter, self.pid, self.said = starter, pid, said
        self.since = time.monotonic()
        self.watch = select.poll()
        self.handle = os.pidfd_open(pid)
        self.watch.register(self.handle, select.POLLIN)

    def over(self, seconds=0.0):
        """Whether it has ended, after at most so many seconds."""
        return bool(self.watch.poll(max(0.0, seconds) * 1000))

    def until(self, condition, seconds=5.0):
        """Waits for what the tool does; whether it came before the end."""
        end = time.monotonic() + seconds
        while not self.over(0.0003) and time.monotonic() < end:
            if condition():
                return True
        return False

    def signal(self, number):
        signal.pidfd_send_signal(self.handle, number)

    def open_files(self):
        """Paths in /proc of its open files, with what they lead to."""
        folder = f"/proc/{self.pid}/fd"
        try:
            for name in os.listdir(folder):
                yield f"{folder}/{name}", os.readlink(f"{folder}/{name}")
        except OSError:
            return

    def end(self, patience):
        hung = not self.over(patience)
        if hung:
            # With all that it started; it leads a group of its own.
            os.killpg(self.pid, signal.SIGKILL)
            self.over(30)
        seconds = time.monotonic() - self.since
        answer = self.starter.ask({"reap": self.pid, "kill": hung})
        os.close(self.handle)
        return Ended(answer["code"], answer["rss"], self.said.read_text(errors="replace"), seconds, hung)


class Starter:
    def __init__(self):
        argv = [sys.executable, "-I", "-S", __file__]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, argv, folder, streams, limits, env):
        """`streams`: files `out` and `said`, and perhaps `feed` and `take`, each a path and a number of bytes."""
        named = {name: str(value) if isinstance(value, Path) else value for name, value in streams.items()}
        answer = self.ask({"argv": argv, "folder": str(folder), "limits": limits, "env": env, **named})
        return Running(self, answer["pid"], streams["said"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


if __name__ == "__main__":
    serve()
