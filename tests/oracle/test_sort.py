"""`windrow sort` orders as DuckDB does, and equal rows keep their order."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import data
import oracle

WAYS = ["", ":desc", ":nulls-first", ":desc:nulls-first"]


def sorts(windrow, table, keys, tmp_path, source="in.arrow", target="out.arrow", *options):
    path = data.write(table, tmp_path / source)
    out = tmp_path / target
    done = windrow("sort", path, "--by", keys, "-o", out, *options).ok()
    assert done.stats["rows_in"] == done.stats["rows_out"] == table.num_rows
    got = data.read(out)
    data.same(got, oracle.sort(table, keys))
    return got


def numbered(rng, columns, rows):
    return pa.table({**columns, "row": pa.array(np.arange(rows, dtype=np.int64))})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", data.KEYS, ids=data.name_of)
def test_every_key_type(windrow, rng, tmp_path, kind, way):
    table = numbered(rng, {"k": data.column(rng, kind, 2500)}, 2500)
    sorts(windrow, table, "k" + way, tmp_path)


@pytest.mark.parametrize("kind", data.FLOATS, ids=data.name_of)
def test_floats_follow_total_order(windrow, rng, tmp_path, kind):
    """Against numpy, on the bits: -NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN."""
    width = kind.bit_width
    edges = np.array(data.FLOAT_EDGES[width], f"u{width // 8}")
    drawn = rng.integers(0, 1 << width, 3000, dtype=f"u{width // 8}", endpoint=False) if width < 64 else rng.integers(0, 1 << 63, 3000, dtype="u8") * 2
    values = rng.permutation(np.concatenate([edges, edges, drawn]))
    table = pa.table({"k": pa.array(values.view(f"f{width // 8}"))})
    for suffix in ("arrow", "parquet"):
        path = data.write(table, tmp_path / f"in.{suffix}")
        windrow("sort", path, "--by", "k", "-o", tmp_path / f"out.{suffix}").ok()
        got = np.asarray(data.bits(data.read(tmp_path / f"out.{suffix}")["k"])).view(values.dtype)
        sign = values.dtype.type(1 << (width - 1))
        code = np.where(values & sign, ~values, values | sign)
        assert (got == values[np.argsort(code, kind="stable")]).all()
        # The listed edges are in order already.
        got_edges = [int(bits) for bits in got if int(bits) in set(map(int, edges))]
        assert list(dict.fromkeys(got_edges)) == list(map(int, edges))


@pytest.mark.parametrize("case", range(24))
def test_several_keys_of_any_type(windrow, rng, tmp_path, case):
    kinds = [data.KEYS[i] for i in rng.choice(len(data.KEYS), int(rng.integers(2, 6)))]
    rows = int(rng.choice([1, 100, 5000]))
    pool = int(rng.choice([2, 6, 40]))
    columns = {f"c{i}": data.column(rng, kind, rows, pool) for i, kind in enumerate(kinds)}
    keys = ",".join(f"c{i}{rng.choice(WAYS)}" for i in rng.permutation(len(kinds))[: int(rng.integers(1, len(kinds) + 1))])
    sorts(windrow, numbered(rng, columns, rows), keys, tmp_path)


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_few_rows(windrow, rng, tmp_path, rows, suffix):
    table = numbered(rng, {"k": data.column(rng, pa.string(), rows)}, rows)
    sorts(windrow, table, "k:desc", tmp_path, f"in.{suffix}", f"out.{suffix}")


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.decimal128(30, 2)], ids=data.name_of)
def test_one_column_and_no_payload(windrow, rng, tmp_path, kind):
    sorts(windrow, pa.table({"k": data.column(rng, kind, 9000)}), "k", tmp_path, "in.parquet", "out.parquet")


def test_all_rows_equal_keep_their_order(windrow, rng, tmp_path):
    for values in (pa.array([7] * 20000), pa.nulls(20000, pa.string()), pa.array([""] * 20000)):
        sorts(windrow, numbered(rng, {"k": values}, 20000), "k:desc", tmp_path)


@pytest.mark.parametrize("shape", ["ascending", "descending", "sawtooth", "organ pipe", "two values"])
def test_patterns(windrow, rng, tmp_path, shape):
    n = 30000
    values = {
        "ascending": np.arange(n),
        "descending": np.arange(n)[::-1],
        "sawtooth": np.arange(n) % 977,
        "organ pipe": np.minimum(np.arange(n), np.arange(n)[::-1]),
        "two values": rng.integers(0, 2, n),
    }[shape]
    sorts(windrow, numbered(rng, {"k": pa.array(values)}, n), "k", tmp_path, "in.parquet", "out.parquet")


def test_wide_rows(windrow, rng, tmp_path):
    kinds = [data.KEYS[i % len(data.KEYS)] for i in range(200)]
    table = pa.table({f"c{i}": data.column(rng, kind, 1500) for i, kind in enumerate(kinds)})
    sorts(windrow, table, "c3,c199:desc,c50", tmp_path)
    # More keys than anyone has.
    sorts(windrow, table, ",".join(f"c{i}{WAYS[i % 4]}" for i in range(200)), tmp_path)


@pytest.mark.parametrize("kind", data.NESTED + data.ARROW_ONLY, ids=data.name_of)
def test_nested_payload(windrow, rng, tmp_path, kind):
    columns = {"before": data.column(rng, kind, 3000), "k": data.column(rng, pa.int16(), 3000, 20), "after": data.column(rng, kind, 3000, nulls=0)}
    sorts(windrow, numbered(rng, columns, 3000), "k:desc,row", tmp_path)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=data.name_of)
def test_big_strings(windrow, rng, tmp_path, kind):
    """Long keys that share long prefixes, and long values beside them."""
    prefix = "p" * 3000
    keys = [prefix + "".join(rng.choice(list("ab"), int(n))) for n in rng.integers(0, 40, 600)]
    big = ["x" * int(n) for n in rng.integers(0, 60_000, 600)]
    if kind == pa.binary():
        keys, big = [k.encode() for k in keys], [b.encode() for b in big]
    columns = {"k": pa.array(keys, kind), "big": pa.array(big, kind)}
    sorts(windrow, numbered(rng, columns, 600), "k", tmp_path)
    sorts(windrow, numbered(rng, columns, 600), "big:desc,k", tmp_path)


def test_names_that_need_quotes(windrow, rng, tmp_path):
    table = pa.table({"a,b:c": data.column(rng, pa.int32(), 500), "ü k": data.column(rng, pa.string(), 500), "": pa.array(range(500))})
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", '"a,b:c":desc,ü k', "-o", out).ok()
    renamed = table.rename_columns(["a", "b", ""])
    data.same(data.read(out).rename_columns(["a", "b", ""]), oracle.sort(renamed, "a:desc,b"))


def test_names_with_quotes(windrow, tmp_path):
    """Quoted as a field of CSV is; a quote within a name that is not quoted is itself."""
    table = pa.table({'5" disk': [2, 1, 3], 'a,"b"': [1, 1, 0], '"': ["x", "y", "z"]})
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", '"a,""b""",5" disk:desc', "-o", out).ok()
    assert data.read(out)['"'].to_pylist() == ["z", "x", "y"]
    windrow("sort", path, "--by", '""""', "--select", '"5"" disk"', "-o", out).ok()
    assert data.read(out).to_pylist() == [{'5" disk': value} for value in (2, 1, 3)]


def test_select(windrow, rng, tmp_path):
    table = numbered(rng, {"k": data.column(rng, pa.int32(), 500), "v": data.column(rng, pa.string(), 500)}, 500)
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "k:desc", "--select", "row,v", "-o", out).ok()
    data.same(data.read(out), oracle.sort(table, "k:desc").select(["row", "v"]))
    windrow("sort", path, "--by", "k", "--select", "nope", "-o", out).fails(2, "nope", "row")


def test_the_output_may_be_the_input(windrow, rng, tmp_path):
    table = numbered(rng, {"k": data.column(rng, pa.int32(), 4000)}, 4000)
    path = data.write(table, tmp_path / "in.parquet")
    windrow("sort", path, "--by", "k", "-o", path).ok()
    data.same(data.read(path), oracle.sort(table, "k"))
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_nested_keys_are_ordered_value_by_value(windrow, tmp_path):
    lists = [[3], [1, 2], None, [1], [], [1, 2]]
    structs = [{"a": 1, "b": "x"}, {"a": 1, "b": "w"}, None, {"a": 0, "b": "z"}, {"a": 2, "b": ""}, {"a": 1, "b": "x"}]
    table = pa.table({"n": pa.array(range(6)), "l": pa.array(lists, pa.list_(pa.int64())), "s": pa.array(structs)})
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "l", "-o", out).ok()
    assert data.read(out)["n"].to_pylist() == [4, 3, 1, 5, 0, 2]
    windrow("sort", path, "--by", "l:desc:nulls-first", "-o", out).ok()
    assert data.read(out)["n"].to_pylist() == [2, 0, 1, 5, 3, 4]
    windrow("sort", path, "--by", "s", "-o", out).ok()
    assert data.read(out)["n"].to_pylist() == [3, 1, 0, 5, 4, 2]


def test_keys_that_cannot_be(windrow, rng, tmp_path):
    table = pa.table({"k": data.column(rng, pa.int32(), 5), "l": data.column(rng, pa.list_(pa.int64()), 5)})
    path, out = data.write(table, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    windrow("sort", path, "--by", "x", "-o", out).fails(2, "x", "k, l")
    windrow("sort", path, "--by", "k,k", "-o", out).fails(2, "k")
    windrow("sort", path, "--by", "k:up", "-o", out).fails(2, "up")
    assert not out.exists()


def test_pyarrow_and_polars_sort_alike(windrow, rng, tmp_path):
    """Two more oracles, on their own terms."""
    import polars as pl

    rows = 20000
    table = numbered(rng, {"a": data.column(rng, pa.int32(), rows, 30), "b": data.column(rng, pa.string(), rows, 200)}, rows)
    got = sorts(windrow, table, "a:desc,b", tmp_path, "in.parquet", "out.parquet")
    indices = pc.sort_indices(table, sort_keys=[("a", "descending", "at_end"), ("b", "ascending", "at_end")])
    data.same(got, table.take(indices))
    frame = pl.from_arrow(table).sort(["a", "b"], descending=[True, False], nulls_last=True, maintain_order=True)
    assert pl.from_arrow(got).equals(frame)
