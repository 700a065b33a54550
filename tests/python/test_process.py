"""A good guest: signals, memory, forks, imports, output."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import shuffled


def python(code, *args, **options):
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=120, **options)


INTERRUPTED = """
import os, sys, time, pyarrow as pa, windrow as wr
schema = pa.schema({"id": pa.int64()})
def batches():
    print("reading", flush=True)
    for i in range(10**9):
        yield pa.record_batch({"id": list(range(i, i + 8192))}, schema=schema)
source = sys.argv[1:] * 10 or pa.RecordBatchReader.from_batches(schema, batches())
if sys.argv[1:]:
    print("reading", flush=True)
try:
    wr.sort(source, by="id", output="out.parquet", memory="128MiB", spill={"temp_dir": "."})
except KeyboardInterrupt:
    print(f"stopped {time.time()}", flush=True)
    if "leave" in os.environ:
        raise
"""


@pytest.mark.parametrize("source", ["generator", "file"])
def test_ctrl_c_stops_within_a_moment_and_leaves_nothing(source):
    args = []
    if source == "file":
        pq.write_table(pa.concat_tables([shuffled(100_003, 2)] * 40), "in.parquet")
        args = ["in.parquet"]
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, *args], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "reading\n"
    time.sleep(1.0)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    word, at = child.stdout.readline().split()
    assert word == "stopped" and float(at) - sent < 0.2 * SLOW
    assert child.wait(20) == 0
    assert sorted(os.listdir()) == args


# A machine that tests share is slower than the promise is for.
SLOW = float(os.environ.get("WINDROW_SLOW", 3))


def test_ctrl_c_where_a_producer_hangs():
    code = """
import os, time, threading, pyarrow as pa, windrow as wr
schema = pa.schema({"id": pa.int64()})
released = threading.Event()
def batches():
    yield pa.record_batch({"id": [1]}, schema=schema)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), 2)).start()
    released.wait(60)
begun = time.time()
try:
    wr.sort(pa.RecordBatchReader.from_batches(schema, batches()), by="id", output="out.parquet")
except KeyboardInterrupt:
    print("stopped", time.time() - begun < 5)
released.set()
time.sleep(0.5)
print(os.listdir())
"""
    done = python(code)
    assert done.stdout == "stopped True\n[]\n", done.stderr


GROWTH = """
import gc, sys, windrow as wr
def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))
source, verb, memory, output = sys.argv[1:5]
if len(sys.argv) > 5:
    import pyarrow, polars, pandas, duckdb
options = dict(key="id", order_by="text0") if verb == "compact" else dict(by="id")
if verb == "partition":
    options.update(into=16)
def measured():
    gc.collect()
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    done = getattr(wr, verb)(source, output=output if output != "-" else None, memory=memory, spill={"temp_dir": "."}, **options)
    if output == "-":
        rows = sum(len(batch) for batch in done)
        done = done.stats
    print(verb, status("VmHWM") - before, done.spilled_bytes)
measured()
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    pq.write_table(pa.concat_tables([shuffled(200_003, 3)] * 10), path, row_group_size=50_000)
    yield path
    path.unlink()


@pytest.mark.parametrize("guests", [[], ["with others"]])
@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "-"])
@pytest.mark.parametrize("verb, memory", [("sort", 64), ("sort", 128), ("compact", 96)])
def test_resident_memory_grows_by_no_more_than_asked(large, verb, memory, output, guests):
    done = python(GROWTH, large, verb, f"{memory}MiB", output, *guests)
    assert done.returncode == 0, done.stderr
    _, growth, spilled = done.stdout.split()
    print(verb, memory, output, guests, int(growth) / 2**20, "MiB")
    assert int(growth) <= memory << 20, f"{int(growth) / 2**20:.1f} MiB"
    assert int(spilled) > 0


def test_partitions_grow_by_no_more_than_asked(large):
    done = python(GROWTH, large, "partition", "96MiB", "parts", "with others")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) <= 96 << 20


def test_an_import_is_cheap_and_quiet():
    code = """
import os, sys, time
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
before, begun = resident(), time.perf_counter()
import windrow
print(time.perf_counter() - begun, resident() - before, len(os.listdir("/proc/self/task")))
print({"numpy", "pyarrow", "polars", "tqdm", "inspect", "dataclasses", "typing"} & set(sys.modules))
"""
    done = python(code)
    seconds, grown, threads = done.stdout.splitlines()[0].split()
    assert float(seconds) < 0.06 * SLOW and int(grown) < 20 << 20 and threads == "1"
    assert done.stdout.splitlines()[1] == "set()" and done.stderr == ""


def test_forks_work_before_and_after_a_job():
    code = """
import os, pyarrow as pa, windrow as wr
rows = pa.table({"id": [2, 1]})
for number in range(3):
    child = os.fork()
    if not child:
        ok = pa.table(wr.sort(rows, by="id"))["id"].to_pylist() == [1, 2]
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    wr.sort(rows, by="id", output="a.parquet")
"""
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_printed(large):
    code = """
import sys, windrow as wr
wr.sort(sys.argv[1], by="id", output="a.parquet")
wr.check("a.parquet", by="id"); wr.inspect("a.parquet"); wr.explain.sort(sys.argv[1], by="id")
open("b.parquet", "wb").write(b"PAR1" + bytes(range(256)) * 10 + b"PAR1")
try: wr.inspect("b.parquet")
except wr.DataError: pass
"""
    done = python(code, large)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_reader_that_is_dropped_ends_its_job():
    code = """
import os, pyarrow as pa, windrow as wr
rows = pa.table({"id": list(range(100_000))})
threads = len(os.listdir("/proc/self/task"))
reader = wr.sort(rows, by="id")
next(reader)
del reader
reader = wr.sort(rows, by="id")
stream = pa.RecordBatchReader.from_stream(reader)
stream.read_next_batch()
del reader, stream
print(len(os.listdir("/proc/self/task")) - threads, os.listdir())
os._exit(0)
"""
    assert python(code).stdout == "0 []\n"
