"""Addresses, with moto as the store: it honours conditions, which is how a version of an object is held on to."""

import pathlib

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import windrow as wr
from conftest import shuffled
from moto.server import ThreadedMotoServer

BUCKET = "windrow"


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def options(endpoint):
    return {"endpoint": endpoint, "allow_http": True, "region": "us-east-1", "access_key_id": "k", "secret_access_key": "s", "max_retries": 2}


@pytest.fixture
def bucket(endpoint):
    """An empty bucket."""
    store = boto3.resource("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="k", aws_secret_access_key="s")
    bucket = store.Bucket(BUCKET)  # pyright: ignore[reportAttributeAccessIssue]
    bucket.create()
    yield bucket
    bucket.objects.all().delete()


def at(key):
    return f"s3://{BUCKET}/{key}"


def test_verbs_from_a_bucket_and_to_it(bucket, options, file):
    bucket.upload_file(file, "in/rows.parquet")
    for verb, arguments in [("sort", {"by": "id"}), ("dedupe", {"key": "id"}), ("head", {"rows": 5000})]:
        run = getattr(wr, verb)
        for extension in ["parquet", "csv", "arrow"]:
            run(file, **arguments, output=f"out.{extension}")
            stats = run(at("in/*.parquet"), **arguments, output=at(f"out.{extension}"), storage_options=options)
            assert stats.details.network["requests"] > 2 and stats.details.network["sent_bytes"] > 0
            bucket.download_file(f"out.{extension}", "copy")
            assert open("copy", "rb").read() == open(f"out.{extension}", "rb").read()
    assert wr.check(at("out.parquet"), by="id", storage_options=options) is not None
    facts = wr.inspect(at("in/rows.parquet"), storage_options=options)
    assert facts.rows == 20_000
    rows = pa.table(wr.sort(at("in/"), by="id:desc", storage_options=options))
    assert rows["id"].to_pylist() == list(reversed(range(20_000)))


VERBS = {
    "sort": {"by": "id"},
    "compact": {"key": "id", "order_by": "text0"},
    "dedupe": {"key": "id"},
    "head": {"rows": 5000},
    "merge": {"by": "id"},
    "diff": {"key": "id"},
    "partition": {"by": "id", "into": 3},
}


@pytest.mark.parametrize("extension", ["parquet", "arrow", "arrows", "csv", "ndjson", "csv.gz", "ndjson.zst"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_in_every_format(bucket, options, rows, verb, extension):
    """The bytes are those of local runs."""
    for name in ["a", "b"]:
        wr.sort(rows if name == "a" else rows.slice(1000), by="id", output=f"{name}.{extension}")
        bucket.upload_file(f"{name}.{extension}", f"in/{name}.{extension}")
    names = [f"{name}.{extension}" for name in "ab"]
    inputs = (lambda at: [at(names[0]), at(names[1])]) if verb == "diff" else (lambda at: [[at(name) for name in names]])
    run, output = getattr(wr, verb), "out" if verb == "partition" else f"out.{extension}"
    more = {"format": "csv" if extension.startswith("csv") else extension.split(".")[0]} if verb == "partition" else {}
    if more.get("format") == "arrows":
        more = {"format": "arrow-stream"}
    run(*inputs(str), **VERBS[verb], write=more, output=output)
    slash = "/" if verb == "partition" else ""
    run(*inputs(lambda name: at(f"in/{name}")), **VERBS[verb], write=more, output=at(output + slash), storage_options=options)
    made = sorted(str(path) for path in pathlib.Path(output).rglob("*") if path.is_file()) if slash else [output]
    stored = sorted(one.key for one in bucket.objects.all() if not one.key.startswith("in/") and not one.key.endswith("_SUCCESS"))
    assert stored and stored == [one for one in made if not one.endswith("_SUCCESS")]
    for one in stored:
        bucket.download_file(one, "copy")
        assert open("copy", "rb").read() == open(one, "rb").read(), one


def test_an_upload_in_parts(bucket, options):
    pq.write_table(shuffled(400_000, columns=2), "rows.parquet")
    wr.sort("rows.parquet", by="id", output="out.csv")
    wr.sort("rows.parquet", by="id", output=at("out.csv"), storage_options=options)
    assert bucket.Object("out.csv").e_tag.strip('"').endswith("-2")
    bucket.download_file("out.csv", "copy.csv")
    assert open("copy.csv", "rb").read() == open("out.csv", "rb").read()


def test_a_directory(bucket, options, file):
    wr.partition(file, by="id", into=4, output="parts")
    wr.partition(file, by="id", into=4, output=at("parts"), storage_options=options)
    keys = sorted(object.key for object in bucket.objects.all())
    assert keys == ["parts/_SUCCESS", *(f"parts/part-{i:05}.parquet" for i in range(4))]
    for key in keys[1:]:
        bucket.download_file(key, "copy")
        assert open("copy", "rb").read() == open(key, "rb").read()
    with pytest.raises(wr.UsageError, match="there are objects below it"):
        wr.partition(file, by="id", into=4, output=at("parts"), storage_options=options)


def test_a_version_is_held_on_to(bucket, options):
    rows = shuffled(200_000).sort_by("id")
    pq.write_table(rows, "rows.parquet", row_group_size=10_000)
    bucket.upload_file("rows.parquet", "rows.parquet")
    reader = wr.merge(at("rows.parquet"), by="id", threads=1, storage_options=options)
    batches = iter(reader)
    assert pa.record_batch(next(batches)).num_rows > 0
    # The same bytes are another version all the same, but not to a tag that is made of them.
    pq.write_table(rows.slice(1), "rows.parquet", row_group_size=10_000)
    bucket.upload_file("rows.parquet", "rows.parquet")
    with pytest.raises(wr.DataError, match="was replaced while it was read"):
        for _ in batches:
            pass


def test_errors(bucket, options, file):
    with pytest.raises(FileNotFoundError, match="no such object"):
        wr.sort(at("none.parquet"), by="id", output="out.parquet", storage_options=options)
    with pytest.raises(wr.UsageError, match="no store has an option"):
        wr.sort(at("none.parquet"), by="id", output="out.parquet", storage_options={"regoin": "x"})
    with pytest.raises(FileNotFoundError, match="no object matches"):
        wr.sort(at("*.csv"), by="id", output="out.parquet", storage_options=options)
    assert not list(bucket.objects.all())
