"""Changes applied to tables of Delta and Iceberg in a store: only what the changes touch is read, and what fails leaves
nothing behind."""

import concurrent.futures
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
import windrow as wr
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from test_stores import at, bucket, options

__all__ = ["bucket", "options"]
# In a process of its own: deltalake's file system keeps others from running Python. Tells the bytes of each answer.
SERVER = """
import os
import time
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer
get = S3Response.get_object
def counted(self):
    answer, range = get(self), self.headers.get("Range", "")
    first, _, last = range.removeprefix("bytes=").partition("-")
    size = len(answer[2])
    size = size if not range else int(last) if not first else min(int(last or size), size - 1) + 1 - int(first)
    os.write(1, b"%d\\n" % size)
    return answer
S3Response.get_object = counted
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    told = tmp_path_factory.mktemp("store") / "told"
    with open(told, "w") as out, subprocess.Popen([sys.executable, "-c", SERVER], stdout=out, stderr=subprocess.DEVNULL) as child:
        end = time.monotonic() + 60
        while not told.read_text().endswith("\n"):
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        yield told
        child.kill()


@pytest.fixture(scope="module")
def endpoint(server):
    return f"http://127.0.0.1:{server.read_text().split()[0]}"


@pytest.fixture
def stored(endpoint):
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "aws_conditional_put": "etag",
    }


def rows(ids, text):
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"{text} {i * 7919 % 100_003}" for i in ids], "part": [f"p {i % 3}" for i in ids]})


def model(first, *logs):
    found = {row["id"]: row for row in first.to_pylist()}
    for log in logs:
        for row in log.to_pylist():
            found[row["id"]] = row
    return sorted(found.values(), key=lambda row: row["id"])


def read(table):
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("by", [[], ["part"]], ids=["whole", "partitioned"])
def test_delta(bucket, options, stored, by):
    first = rows(range(0, 60_000, 2), "old")
    write_deltalake(at("lake"), first, storage_options=stored, partition_by=by)
    log = rows(np.arange(1000, 1100), "new")
    table = DeltaTable(at("lake"), storage_options=stored)
    done = wr.apply(table, log, "id", storage_options=options)
    assert (done.version, done.updated, done.inserted) == (1, 50, 50)
    assert table.version() == 1
    assert read(table.to_pyarrow_table()) == model(first, log)
    more = rows(np.arange(0, 60_000, 5_000), "more")
    assert wr.apply(at("lake"), more, "id", storage_options=options).version == 2
    table.update_incremental()
    assert read(table.to_pyarrow_table()) == model(first, log, more)
    names = {object.key.removeprefix("lake/") for object in bucket.objects.filter(Prefix="lake/part")}
    live = {uri.removeprefix(at("lake/")) for uri in table.file_uris()}
    assert live <= names
    assert wr.apply(at("lake"), more, "id", storage_options=options).files_added == []
    with pytest.raises(wr.UsageError, match="the table has none"):
        wr.apply(at("lake"), pa.table({"id": [1], "x": [1]}), "id", storage_options=options)
    assert len(list(bucket.objects.filter(Prefix="lake/part"))) == len(names)


def test_iceberg(bucket, options, endpoint, tmp_path):
    properties = {"s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": "k", "s3.secret-access-key": "s"}
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=at("warehouse"), **properties)
    catalog.create_namespace("n")
    first = rows(range(0, 60_000, 2), "old")
    table = catalog.create_table("n.t", schema=first.schema)
    table.append(first)
    log = rows(np.arange(1000, 1100), "new")
    done = wr.apply(table, log, "id")
    assert (done.updated, done.inserted) == (50, 50)
    assert read(table.scan().to_arrow()) == model(first, log)
    names = {object.key for object in bucket.objects.filter(Prefix="warehouse/") if object.key.endswith(".parquet")}
    assert len(names) == 2, "the old file and the new one"
    logs = [log, rows(np.arange(0, 2000, 7), "hides"), rows(np.arange(0, 2000, 3), "hides more")]
    for count, log in enumerate(logs[1:], start=2):
        done = wr.apply(table, log, "id", write_mode="vectors")
        assert (done.write_mode, done.files_removed) == ("vectors", [])
        assert read(table.scan().to_arrow()) == model(first, *logs[:count])
    wr.apply(table, rows([14], "copied"), "id")
    assert read(table.scan().to_arrow()) == model(first, *logs, rows([14], "copied"))


def test_files_out_of_order(bucket, options, stored):
    """The look finds rows out of order, and the whole file is sorted."""
    rng = np.random.default_rng(3)
    first = pa.concat_tables([rows(rng.permutation(np.arange(start, start + 5000)), "old") for start in range(0, 20_000, 5000)])
    write_deltalake(at("lake"), first, storage_options=stored, writer_properties=WriterProperties(max_row_group_size=5000))
    log = rows(np.arange(0, 25_000, 700), "new")
    wr.apply(at("lake"), log, "id", storage_options=options)
    found = DeltaTable(at("lake"), storage_options=stored).to_pyarrow_table()
    assert read(found) == model(first, log)
    assert found["id"].to_pylist() == sorted(found["id"].to_pylist())


def by_readers(table):
    """The rows of a Delta table with hidden rows, as deltalake reads them."""
    found = pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def test_delta_vectors(bucket, options, stored):
    first = rows(range(0, 60_000, 2), "old")
    write_deltalake(at("lake"), first, storage_options=stored, configuration={"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"})
    logs = [rows(np.arange(start, start + 100 * step, step), f"new {step}") for start, step in [(1000, 1), (0, 500), (1050, 3)]]
    for version, log in enumerate(logs, start=1):
        done = wr.apply(DeltaTable(at("lake"), storage_options=stored), log, "id", write_mode="vectors", storage_options=options)
        assert (done.version, done.write_mode, done.files_removed) == (version, "vectors", [])
        assert by_readers(DeltaTable(at("lake"), storage_options=stored)) == model(first, *logs[:version])
    # A copy folds the vectors in, and reads the actions of files from the checkpoint.
    done = wr.apply(at("lake"), rows([1002], "copied"), "id", storage_options=options)
    assert by_readers(DeltaTable(at("lake"), storage_options=stored)) == model(first, *logs, rows([1002], "copied"))


def test_writers_of_delta_vectors_do_not_lose_each_other(bucket, options, stored):
    first = rows(range(0, 20_000, 2), "old")
    write_deltalake(at("lake"), first, storage_options=stored, configuration={"delta.enableDeletionVectors": "true"})
    logs = [rows(np.arange(turn, 2000, 20), f"turn {turn}") for turn in range(4)]

    def write(log):
        return wr.apply(at("lake"), log, "id", write_mode="vectors", storage_options=options).version or 0

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, logs)) == [1, 2, 3, 4]
    assert by_readers(DeltaTable(at("lake"), storage_options=stored)) == model(first, *logs)
    live = {name for name in DeltaTable(at("lake"), storage_options=stored).file_uris()}
    assert len(list(bucket.objects.filter(Prefix="lake/part"))) == len(live)


def test_untouched_row_groups_are_not_read(bucket, options, stored, server):
    """Bytes that the store sends: footers, key columns of candidates, and touched files."""
    parts = [rows(range(start, start + 20_000), "x" * 200) for start in range(0, 200_000, 20_000)]
    for part in parts:
        write_deltalake(at("lake"), part, storage_options=stored, mode="append")
    table = DeltaTable(at("lake"), storage_options=stored)
    sizes = pa.table(table.get_add_actions(flatten=True))["size_bytes"].to_pylist()
    before = len(server.read_text().split())
    done = wr.apply(table, rows([50_000], "new"), "id", storage_options=options)
    assert (done.updated, len(done.files_removed)) == (1, 1)
    sent = list(map(int, server.read_text().split()[before:]))
    # The ends of files with footers, when they are opened and for bounds, and the touched row group once.
    most = max(sizes) + 2 * len(sizes) * (64 << 10) + (128 << 10)
    assert 0 < sum(sent) < most < sum(sizes), (sent, sizes)
