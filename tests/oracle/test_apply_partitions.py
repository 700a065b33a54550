"""Changes applied to Hive directories: rows whose value of a partition column changes move, and after any batches of
changes the table is what a dictionary of rows says."""

import datetime

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

REGIONS = ["nl", "be", "a b", "50%", "x=y", "ü", None, "fr", "gone/away", ""]
DAYS = [datetime.date(2026, 1, 1) + datetime.timedelta(days=7 * i) for i in range(5)] + [None]
# The columns in directories, and the key.
SHAPES = {
    "moves": (["region"], ["id"]),
    "local": (["region"], ["region", "id"]),
    "behind": (["region"], ["id", "region"]),
    "two": (["day", "region"], ["id"]),
    "half": (["day", "region"], ["day", "id"]),
    "only": (["day"], ["day"]),
}
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("v", pa.string()), ("region", pa.string()), ("day", pa.date32())])


def some(rng, count, at):
    return [
        {
            "id": int(rng.integers(400)),
            "at": int(at + rng.integers(3)),
            "v": f"v{rng.integers(20)}",
            "region": REGIONS[rng.integers(len(REGIONS) if at else 6)],
            "day": DAYS[rng.integers(len(DAYS))],
        }
        for _ in range(count)
    ]


def write(rows, by, lake, rng, how):
    """Writes the partitions as another writer would: several files in each, in order or not."""
    partitions = {}
    for row in rows:
        partitions.setdefault(tuple(row[name] for name in by), []).append(row)
    for values, part in partitions.items():
        name = lambda value: "__HIVE_DEFAULT_PARTITION__" if value is None else "".join(c if c.isalnum() or c == "-" else "".join(f"%{b:02X}" for b in c.encode()) for c in str(value))
        directory = lake.joinpath(*(f"{column}={name(value)}" for column, value in zip(by, values)))
        directory.mkdir(parents=True)
        part.sort(key=lambda row: row["id"])
        if how == "scattered":
            rng.shuffle(part)
        for i, rest in enumerate([part[::2], part[1::2]] if how == "halves" else [part[: len(part) // 2], part[len(part) // 2 :]]):
            if rest:
                columns = [field for field in SCHEMA if field.name not in by]
                pq.write_table(pa.Table.from_pylist(rest, pa.schema(columns)), directory / f"{i}.parquet", row_group_size=int(rng.integers(3, 30)))


def read(lake, by):
    types = pa.schema([SCHEMA.field(name) for name in by])
    files = sorted(str(path) for path in lake.rglob("*.parquet"))
    found = ds.dataset(files, partitioning=ds.partitioning(types, flavor="hive"), partition_base_dir=str(lake), format="parquet")
    return found.to_table(columns=SCHEMA.names).to_pylist()


def key_of(row, key):
    return tuple(row[name] for name in key)


def in_order(rows):
    return sorted(rows, key=lambda row: repr(list(row.values())))


@pytest.mark.parametrize("how", ["sorted", "scattered", "halves"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["", "--order-by at"])
def test_rows_move_between_partitions(w, rng, tmp_path, shape, how, order):
    by, key = SHAPES[shape]
    for turn in range(2):
        lake = tmp_path / f"lake{turn}"
        model = {key_of(row, key): row for row in some(rng, 300, 0)}
        write(list(model.values()), by, lake, rng, how)
        for number in range(1, int(rng.integers(2, 6))):
            changes = some(rng, int(rng.integers(1, 60)), int(rng.integers(0, 2)) * number)
            # One change of a key in a batch: which of two counts is a matter of `compact`.
            changes = list({key_of(row, key): row for row in changes}.values())
            counts = dict.fromkeys(["inserted", "updated", "deleted", "unchanged", "stale", "absent"], 0)
            for row in changes:
                row["op"] = str(rng.choice(["update", "delete"], p=[0.7, 0.3]))
                old = model.get(key_of(row, key))
                new = {name: value for name, value in row.items() if name != "op"}
                if old is not None and order and row["at"] < old["at"]:
                    counts["stale"] += 1
                elif row["op"] == "delete":
                    counts["absent" if old is None else "deleted"] += 1
                    model.pop(key_of(row, key), None)
                else:
                    counts["inserted" if old is None else "unchanged" if old == new else "updated"] += 1
                    model[key_of(row, key)] = new
            pq.write_table(pa.Table.from_pylist(changes, SCHEMA.append(pa.field("op", pa.string()))), tmp_path / "c.parquet")
            line = f"apply {lake} c.parquet --key {','.join(key)} --op-column op {order} --threads 2"
            dry = w(f"{line} --dry-run").ok().stats
            done = w(line).ok().stats
            assert {name: done[name] for name in counts} == counts
            assert {name: dry[name] for name in counts} == counts
            assert in_order(read(lake, by)) == in_order(model.values())
            assert done["rows_out"] == len(model)
            files = {str(path.relative_to(lake)) for path in lake.rglob("*.parquet")}
            assert files == set(done["files_left"]) | {file["path"] for file in done["files_added"]}
            again = w(line).ok().stats
            assert (again["inserted"], again["updated"], again["deleted"], again["bytes_out"]) == (0, 0, 0, 0)
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_partition_costs_what_changed(w, tmp_path):
    """The other partitions are not read, and their files stay."""
    lines = "\n".join(f'{{"day": "2026-01-{1 + i % 9:02}", "id": {i}, "v": "a"}}' for i in range(9_000))
    (tmp_path / "in.ndjson").write_text(lines)
    w("partition in.ndjson --by day --sort id --hive -o lake").ok()
    (tmp_path / "c.ndjson").write_text('{"day": "2026-01-03", "id": 2, "v": "b"}\n{"day": "2026-01-10", "id": 2, "v": "c"}\n')
    done = w("apply lake c.ndjson --key day,id").ok().stats
    assert (done["updated"], done["inserted"], len(done["files_removed"]), len(done["files_left"])) == (1, 1, 1, 8)
    added = {file["path"]: file["partition"] for file in done["files_added"]}
    assert list(added.values()) == [["2026-01-03"], ["2026-01-10"]]
    assert [path.split("/")[0] for path in added] == ["day=2026-01-03", "day=2026-01-10"]
    with duckdb.connect() as db:
        found = db.execute(f"SELECT day::VARCHAR, v FROM read_parquet('{tmp_path}/lake/*/*.parquet', hive_partitioning=true) WHERE id = 2 ORDER BY ALL").fetchall()
    assert found == [("2026-01-03", "b"), ("2026-01-10", "c")]
    plan = w("apply lake c.ndjson --key day,id --explain").ok().stdout.decode()
    assert "10, of which 2 have changes and 8 are left" in plan


def test_files_of_different_levels_are_refused(w, tmp_path):
    lake = tmp_path / "lake"
    for i, directory in enumerate(["a=1", "a=1/b=2"]):
        (lake / directory).mkdir(parents=True)
        pq.write_table(pa.table({"id": [i]}), lake / directory / "x.parquet")
    (tmp_path / "c.ndjson").write_text('{"id": 1, "a": 1}\n')
    w("apply lake c.ndjson --key id").fails(3, "column 'b' is missing")
    w("apply lake c.ndjson --key id --union-by-name").fails(2, "different columns in the names of their directories")
    assert len(list(lake.rglob("*.parquet"))) == 2


def test_a_value_must_be_one_of_the_column(w, tmp_path):
    (tmp_path / "lake" / "n=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "lake" / "n=1" / "x.parquet")
    (tmp_path / "c.ndjson").write_text('{"id": 1, "n": "many"}\n')
    w("apply lake c.ndjson --key id").fails(3, "does not fit the table")
