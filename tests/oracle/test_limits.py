"""The limit is peak RSS, and no knob changes the answer: not a row, not its place, not a byte of the file."""

import hashlib
import json
import subprocess
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import conftest
import data
import oracle

pytestmark = pytest.mark.floor

MIB = 1 << 20
KNOBS = [(threads, limit) for limit in ("64MiB", "256MiB", "unlimited") for threads in (1, 2)]
ROWS = 1_000_000


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A change log of some 100 MB in memory, more than the least limit."""
    rng = np.random.default_rng(conftest.SEED)
    words = pa.array([f"{'comment ' * (i % 5)}{i:x}" for i in range(20_000)])
    table = pa.table(
        {
            "id": rng.integers(0, ROWS // 3, ROWS),
            "lsn": rng.integers(0, ROWS // 2, ROWS),
            "op": pa.array(["I", "U", "D"]).take(pa.array(rng.choice(3, ROWS, p=[0.3, 0.6, 0.1]))),
            "amount": rng.normal(size=ROWS),
            "day": pa.array(rng.integers(10_000, 10_400, ROWS).astype(np.int32)).view(pa.date32()),
            "comment": words.take(pa.array(rng.integers(0, len(words), ROWS))),
            "tags": pa.ListArray.from_arrays(np.arange(0, 2 * ROWS + 1, 2, dtype=np.int32), rng.integers(0, 99, 2 * ROWS)),
        }
    )
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pq.write_table(table, path, row_group_size=100_000)
    return path, table


def digest(path):
    return hashlib.file_digest(path.open("rb"), "sha256").hexdigest()


def every_way(windrow, tmp_path, *arguments, knobs=KNOBS, suffix="parquet"):
    """Runs with all the knobs; the files are the same. Returns one of them."""
    digests = {}
    for threads, limit in knobs:
        out = tmp_path / f"out-{threads}-{limit}.{suffix}"
        done = windrow(*arguments, "--threads", threads, "--memory-limit", limit, "-o", out).ok()
        if limit != "unlimited":
            assert done.stats["peak_rss_bytes"] <= int(limit[:-3]) * MIB, (threads, limit)
            assert done.stats["memory_limit_bytes"] == int(limit[:-3]) * MIB
        if limit == "64MiB":
            assert done.stats["spilled_bytes"] > 0, "this test is to spill"
        digests[threads, limit] = digest(out)
    assert len(set(digests.values())) == 1, digests
    return out


def test_sort(windrow, log, tmp_path):
    path, table = log
    out = every_way(windrow, tmp_path, "sort", path, "--by", "day:desc,comment")
    data.same(data.read(out), oracle.sort(table, "day:desc,comment"))


def test_compact(windrow, log, tmp_path):
    path, table = log
    out = every_way(windrow, tmp_path, "compact", path, "--key", "id", "--order-by", "lsn", "--op-column", "op")
    data.same(data.read(out), oracle.latest(table, "id", "lsn", "op", "op <> 'D'").drop_columns("op"))


def test_compact_of_one_hot_key(windrow, log, tmp_path):
    """What meets under one key is decided as it comes: it never piles up."""
    path, table = log
    for threads, limit in KNOBS[:2]:
        out = tmp_path / "out.parquet"
        done = windrow("compact", path, "--key", "op", "--order-by", "lsn", "--threads", threads, "--memory-limit", limit, "-o", out).ok()
        assert done.stats["peak_rss_bytes"] <= 64 * MIB
        assert done.stats["spilled_bytes"] < MIB
        data.same(data.read(out), oracle.latest(table, "op", "lsn"))


def test_diffs(windrow, log, tmp_path, rng):
    _, table = log
    rows = table.select(["comment", "day", "id"]).append_column("delta", pa.array(rng.integers(-1, 2, ROWS)))
    path = data.write(rows, tmp_path / "diffs.parquet", row_group_size=100_000)
    out = every_way(windrow, tmp_path, "compact", path, "--key", "day", "--diff", "delta", "--mode", "log")
    sql = f"""
        SELECT min({oracle.ROW}) AS {oracle.ROW} FROM t GROUP BY day, comment, id HAVING sum(delta) <> 0
        ORDER BY day, comment, id"""
    wanted = rows.take(oracle.rows(rows, rows.column_names, sql))
    got = data.read(out)
    data.same(got.drop_columns("delta"), wanted.drop_columns("delta"))
    sums = rows.group_by(["comment", "day", "id"]).aggregate([("delta", "sum")])
    assert np.sort(got["delta"]).tolist() == np.sort(sums["delta_sum"].filter(pa.compute.not_equal(sums["delta_sum"], 0))).tolist()


def test_merge(windrow, log, tmp_path):
    _, table = log
    paths, parts = [], []
    for i in range(12):
        parts.append(oracle.sort(table.slice(i * ROWS // 24, ROWS // 24), "id,lsn:desc"))
        paths.append(data.write(parts[-1], tmp_path / f"in{i:02}.parquet", row_group_size=20_000))
    whole = pa.concat_tables(parts)
    for more, wanted in [((), oracle.sort(whole, "id,lsn:desc")), (("--unique",), oracle.latest(whole, "id,lsn:desc"))]:
        digests = set()
        for threads, limit in KNOBS:
            out = tmp_path / "out.parquet"
            done = windrow("merge", *paths, "--by", "id,lsn:desc", *more, "--threads", threads, "--memory-limit", limit, "-o", out).ok()
            if limit != "unlimited":
                assert done.stats["peak_rss_bytes"] <= int(limit[:-3]) * MIB, (threads, limit)
            digests.add(digest(out))
        assert len(digests) == 1
        data.same(data.read(out), wanted)


@pytest.mark.parametrize("target", ["arrow", "arrows", "csv", "ndjson"])
def test_other_outputs(windrow, log, tmp_path, target):
    path, table = log
    select = "id,lsn,op,amount,day,comment" + ("" if target == "csv" else ",tags")
    out = every_way(windrow, tmp_path, "sort", path, "--by", "comment,amount:desc", "--select", select, knobs=KNOBS[:2] + KNOBS[-1:], suffix=target)
    if target.startswith("arrow"):
        data.same(data.read(out), oracle.sort(table, "comment,amount:desc"))


@pytest.mark.parametrize("source", ["arrow", "arrows", "csv", "ndjson"])
def test_other_inputs(windrow, log, tmp_path, source):
    path, table = log
    select = table.column_names if source != "csv" else table.column_names[:-1]
    given = tmp_path / f"log.{source}"
    windrow("sort", path, "--by", "lsn", "--select", ",".join(select), "-o", given).ok()
    wanted = oracle.sort(oracle.sort(table, "lsn"), "id").select(select)
    out = every_way(windrow, tmp_path, "sort", given, "--by", "id", knobs=KNOBS[:2] + KNOBS[-1:])
    got = data.read(out).select(select)
    if source in ("csv", "ndjson"):
        got = got.cast(wanted.schema)
    data.same(got, wanted)


@pytest.mark.parametrize("group", [1000, 8192, 50_000])
def test_how_the_input_is_cut_changes_nothing(windrow, log, tmp_path, group):
    _, table = log
    rows = table.slice(0, 150_000)
    digests = set()
    for size in (group, 150_000):
        path, out = data.write(rows, tmp_path / "in.parquet", row_group_size=size), tmp_path / "out.parquet"
        windrow("sort", path, "--by", "day", "--memory-limit", "64MiB", "-o", out).ok()
        digests.add(digest(out))
    halves = [data.write(rows.slice(at, 75_000), tmp_path / f"{at}.arrow") for at in (0, 75_000)]
    windrow("sort", *halves, "--by", "day", "-o", out).ok()
    data.same(data.read(out), oracle.sort(rows, "day"))
    assert len(digests) == 1


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_compressed_spills(windrow, log, tmp_path, codec):
    path, table = log
    out = tmp_path / "out.parquet"
    done = windrow("sort", path, "--by", "amount", "--memory-limit", "64MiB", "--spill-compression", codec, "--temp-dir", tmp_path, "-o", out).ok()
    assert done.stats["peak_rss_bytes"] <= 64 * MIB
    data.same(data.read(out), oracle.sort(table, "amount"))
    assert [p.name for p in tmp_path.iterdir()] == ["out.parquet"]


def test_wide_and_big_rows(windrow, tmp_path, rng):
    """200 columns, and strings of 100 KB among short ones.

    Every column costs a compression context and a page, so that 200 of them are encoded in turn at a small limit:
    their floor is about 75 MiB, and below it the job is refused, not tried."""
    wide = pa.table({f"c{i}": rng.integers(0, 10**9, 60_000) for i in range(200)})
    sizes = np.where(rng.random(6000) < 0.1, 100_000, 50)
    big = pa.table({"k": rng.permutation(6000), "s": pa.array([f"{i:06}" + "x" * int(size) for i, size in enumerate(sizes)])})
    for name, table, by in (("wide", wide, "c7"), ("big", big, "k")):
        path = data.write(table, tmp_path / f"{name}.parquet", row_group_size=5000)
        digests = set()
        for threads, limit in [(1, 96 if name == "wide" else 224), (2, 256), (2, None)]:
            out = tmp_path / "out.parquet"
            memory = f"{limit}MiB" if limit else "unlimited"
            done = windrow("sort", path, "--by", by, "--threads", threads, "--memory-limit", memory, "-o", out).ok()
            if limit:
                assert done.stats["peak_rss_bytes"] <= limit * MIB
            digests.add(digest(out))
        assert len(digests) == 1
        data.same(data.read(out), oracle.sort(table, by))
    wide = data.write(wide, tmp_path / "wide.parquet", row_group_size=5000)
    refused = windrow("sort", wide, "--by", "c7", "--memory-limit", "64MiB", "-o", tmp_path / "no.parquet")
    assert refused.code == 4 and "floor" in refused.stderr
    assert not (tmp_path / "no.parquet").exists()


def test_rows_of_100_megabytes(windrow, tmp_path, rng):
    """Rows of a fifth of the limit, which no codec makes smaller, one a page and one a record batch."""
    ids = [3, 1, 4, 0, 2]
    digests = {}
    given = {kind: tmp_path / f"given.{kind}" for kind in ("parquet", "arrow")}
    schema = pa.schema({"id": pa.int64(), "body": pa.binary()})
    with pq.ParquetWriter(given["parquet"], schema, write_batch_size=1, data_page_size=1 << 20, use_dictionary=False) as parquet:
        with pa.ipc.new_file(given["arrow"], schema) as arrow:
            for i in ids:
                body = rng.bytes(100_000_000)
                digests[i] = hashlib.sha256(body).hexdigest()
                row = pa.record_batch([[i], [body]], schema=schema)
                arrow.write_batch(row)
                parquet.write_batch(row)
    for source, target, threads in [("parquet", "parquet", 2), ("parquet", "arrow", 1), ("arrow", "parquet", 1), ("arrow", "arrow", 2)]:
        out = tmp_path / f"out.{target}"
        done = windrow("sort", given[source], "--by", "id", "--memory-limit", "512MiB", "--threads", threads, "--temp-dir", tmp_path, "-o", out).ok()
        assert done.stats["peak_rss_bytes"] <= 512 * MIB, (source, target, threads)
        rows = pq.ParquetFile(out).iter_batches(1) if target == "parquet" else pa.ipc.open_file(pa.memory_map(str(out)))
        batches = rows if target == "parquet" else (rows.get_batch(i) for i in range(rows.num_record_batches))
        got = [(row["id"], hashlib.sha256(row["body"]).hexdigest()) for batch in batches for row in batch.to_pylist()]
        assert got == sorted(digests.items())


def test_the_peak_that_is_told_is_the_kernels(log, tmp_path):
    """VmHWM as /proc has it while the process runs never passes the limit, and is what the figures say.

    They are taken before they are written, which with the end of the process touches some pages more."""
    path, _ = log
    stats, seen = tmp_path / "stats.json", 0
    command = ["sort", path, "--by", "comment", "--memory-limit", "96MiB", "--quiet", "--stats", stats, "-o", tmp_path / "out.parquet"]
    process = subprocess.Popen([str(conftest.binary()), *map(str, command)])
    while process.poll() is None:
        try:
            lines = open(f"/proc/{process.pid}/status").read().splitlines()
        except OSError:
            break
        # Until it has become windrow it is a copy of this interpreter.
        if lines[0].split()[1] == "windrow":
            seen = max([seen, *(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))])
        time.sleep(0.002)
    assert process.wait() == 0
    told = json.loads(stats.read_text())["peak_rss_bytes"]
    assert 0 < seen <= 96 * MIB and told <= 96 * MIB
    assert told <= seen + MIB and seen <= told + MIB


def test_limits_that_cannot_be(windrow, log, tmp_path):
    path, _ = log
    out = tmp_path / "out.parquet"
    windrow("sort", path, "--by", "id", "--memory-limit", "4MiB", "-o", out).fails(4, "floor", "--memory-limit")
    windrow("sort", path, "--by", "id", "--memory-limit", "64MiB", "--max-temp-size", "1MiB", "-o", out).fails(5)
    windrow("sort", path, "--by", "id", "--memory-limit", "lots", "-o", out).fails(2, "lots")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", ["dictionary.arrow", "dictionary.parquet", "lists.parquet"])
def test_rows_longer_than_in_their_file(windrow, rng, tmp_path, shape):
    """A dictionary has a long value once, a row has it each time: what is planned are rows."""
    keys = pa.array(rng.integers(0, 1 << 40, 60_000))
    if shape.startswith("dictionary"):
        values = pa.array([f"{i}" + "x" * 2500 for i in range(50)])
        held = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 50, 60_000), pa.int32()), values)
    else:
        keys = keys.slice(0, 12_000)
        held = pa.array([list(range(i % 3000)) for i in range(12_000)], pa.list_(pa.int32()))
    table = pa.table({"k": keys, "v": held})
    path, out = tmp_path / f"in-{shape}", tmp_path / shape
    if path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        data.write(table, path)
    for threads, limit in [(1, 64), (2, 64), (2, 128)]:
        done = windrow("sort", path, "--by", "k", "--threads", threads, "--memory-limit", f"{limit}MiB", "-o", out).ok()
        assert done.stats["peak_rss_bytes"] <= limit * MIB
    order = pc.sort_indices(table["k"])
    data.same(data.read(out), data.take(table, order))
