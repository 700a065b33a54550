"""Threads that share a reader, a table, or a job's inputs: with a GIL, and in builds of CPython without one."""

import pathlib
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import windrow as wr

THREADS = 8


def together(work):
    """What `work` returns for each thread; all begin at once."""
    begin = threading.Barrier(THREADS)

    def run(thread):
        begin.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_the_import_leaves_the_gil_as_it_was():
    # CPython before 3.13 has a GIL always, and no function that tells.
    is_on = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert is_on == (not sysconfig.get_config_var("Py_GIL_DISABLED"))


def test_jobs_of_several_threads_write_the_same_bytes(file):
    together(lambda thread: wr.sort(file, "id", output=f"{thread}.parquet"))
    assert len({pathlib.Path(f"{thread}.parquet").read_bytes() for thread in range(THREADS)}) == 1


def test_threads_share_a_reader(rows):
    reader = wr.sort(rows, "id")
    taken = together(lambda _: [pa.record_batch(batch)["id"].to_pylist() for batch in reader])
    assert sorted(id for batches in taken for batch in batches for id in batch) == sorted(rows["id"].to_pylist())
    assert reader.stats.rows_out == rows.num_rows
    # One of them closes it: the others end, or are told.
    reader = wr.sort(rows, "id")

    def read_or_close(thread):
        if thread == 3:
            return reader.close()
        try:
            return sum(len(batch) for batch in reader)
        except ValueError as error:
            assert "closed" in str(error)

    together(read_or_close)


def test_threads_share_a_table():
    with wr.Table({"id": "int64", "by": "int64"}, key="id") as table:

        def change(thread):
            times = []
            for turn in range(50):
                ids = list(range(thread, 800, THREADS))
                times.append(table.upsert(pa.table({"id": ids, "by": [turn] * len(ids)})))
                times.append(table.delete(ids[:10]))
                # A time is seen whole.
                at = table.now
                assert table.scan(at=at).to_pylist() == table.scan(at=at).to_pylist()
                assert len(table.get(ids)) == 90
            return times

        times = together(change)
        assert len(table) == 90 * THREADS
        assert set(table.scan().to_arrow()["by"].to_pylist()) == {49}
        # Each change has a time of its own.
        assert sorted(time for of_thread in times for time in of_thread) == list(range(table.now + 1))
