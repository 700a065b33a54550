"""A full disk, played by a limit on the size of files: a table of Delta or Iceberg stays as it was, and nothing is left over."""

import pathlib
import subprocess
import sys

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

CHILD = """
import resource, sys
import pyarrow as pa
import windrow as wr
kind, table, mode, most = sys.argv[1:]
if kind == "iceberg":
    from pyiceberg.catalog.sql import SqlCatalog
    table = SqlCatalog("c", uri=f"sqlite:///{table}/c.db", warehouse=f"file://{table}").load_table("n.t")
log = pa.table({"id": range(0, 90_000, 2), "v": [f"new {i * 7919 % 100_003}" for i in range(0, 90_000, 2)]})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
try:
    wr.apply(table, log, "id", write_mode=mode)
except wr.SpaceError as error:
    sys.exit(7)
"""


def by_delta(table):
    return pa.table(QueryBuilder().register("t", DeltaTable(table)).execute("select * from t").read_all())


def by_iceberg(table):
    return SqlCatalog("c", uri=f"sqlite:///{table}/c.db", warehouse=f"file://{table}").load_table("n.t").scan().to_arrow()


def there(table):
    return {path for path in pathlib.Path(table).rglob("*") if path.is_file() and path.suffix != ".db"}


@pytest.mark.parametrize("mode", ["copy", "vectors"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_full_disk_leaves_the_table(tmp_path, kind, mode):
    table, rows = str(tmp_path / "table"), pa.table({"id": range(60_000), "v": [f"{i * 7919 % 100_003}" for i in range(60_000)]})
    if kind == "delta":
        write_deltalake(table, rows, configuration={"delta.enableDeletionVectors": "true"})
    else:
        pathlib.Path(table).mkdir()
        catalog = SqlCatalog("c", uri=f"sqlite:///{table}/c.db", warehouse=f"file://{table}")
        catalog.create_namespace("n")
        catalog.create_table("n.t", schema=rows.schema).append(rows)
    read = {"delta": by_delta, "iceberg": by_iceberg}[kind]
    before, ends = there(table), set()
    # The catalogue of Iceberg takes less than the least limit.
    for most in [*range(40_000, 1_200_000, 290_000), 1 << 30]:
        child = subprocess.run([sys.executable, "-c", CHILD, kind, table, mode, str(most)], capture_output=True, text=True)
        ends.add(child.returncode)
        if child.returncode:
            assert child.returncode == 7, child.stderr
            assert there(table) == before
            assert read(table).num_rows == 60_000
        else:
            found = dict(zip(*(column.to_pylist() for column in read(table).select(["id", "v"]).columns)))
            assert len(found) == 75_000 and all(found[i].startswith("new ") == (i % 2 == 0) for i in found)
            break
    assert ends == {0, 7}


def test_a_vector_that_does_not_fit_is_not_there(tmp_path):
    code = "import resource, sys; from windrow._places import Local; place = Local(sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "
    child = subprocess.run([sys.executable, "-c", code + "place.write('a/b', bytes(1000))", str(tmp_path)], capture_output=True, text=True)
    assert "SpaceError" in child.stderr and not there(tmp_path)
