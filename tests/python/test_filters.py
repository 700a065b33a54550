"""Conditions in the words of other libraries let through the rows that these libraries do."""

# pyarrow makes the functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false

import datetime
import decimal
import random

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import windrow as wr

NAN = float("nan")
TABLE = pa.table({
    "row": pa.array(range(8)),
    "id": pa.array([1, 2, 3, None, 5, -6, 2, 0]),
    "x": pa.array([1.5, None, NAN, -0.0, 0.0, 2.0, -1e300, NAN]),
    "name": pa.array(["ann", "b%b", None, "", "O'Hara", 'q"q', "a_n", "back\\slash"]),
    "day": pa.array([datetime.date(2026, 1, day) if day else None for day in (1, 2, 0, 4, 5, 6, 7, 8)]),
    "at": pa.array([datetime.datetime(2026, 1, 1, hour, 0, 0, 5) for hour in range(8)], pa.timestamp("us")),
    "money": pa.array([decimal.Decimal(f"{n}.25") for n in range(8)], pa.decimal128(10, 2)),
    "yes": pa.array([True, False, None, True, False, None, True, False]),
    "user": pa.array([{"age": n, "the.name": str(n)} for n in range(8)]),
    "a.b": pa.array(range(8, 0, -1)),
})
FRAME = pl.DataFrame(TABLE)
col, lit, field = pl.col, pl.lit, pc.field

POLARS = [
    col("id") > 2, 2 < col("id"), col("id") == 2, col("id") != 2, (col("id") <= 2) | (col("x") > 1), ~(col("id") > 2),
    col("x") > 1, col("x").is_nan(), ~col("x").is_nan(), col("x").is_not_nan(), col("x") == 0, ~(col("x") < 0), col("x").is_null(), col("x").is_not_null() & ~col("yes"),
    col("yes"), ~col("yes"), col("yes") == False, col("id").is_in([1, 2]), ~col("id").is_in([1, 2]), col("id").is_in([]),
    col("name").is_in(["ann", "O'Hara"]), col("name") == "O'Hara", col("name") == 'q"q', col("name") == "", col("name") > "a_",
    col("name").str.starts_with("b%"), col("name").str.ends_with("n"), ~col("name").str.contains("_", literal=True),
    col("name").str.starts_with("back\\"), col("id").is_between(2, 5), col("id").is_between(2, 5, closed="none"),
    ~col("id").is_between(1, 2, closed="left"), col("day") >= datetime.date(2026, 1, 4), col("day") == pl.date(2026, 1, 2),
    col("at") < datetime.datetime(2026, 1, 1, 3, 0, 0, 5), col("money") > decimal.Decimal("3.25"), col("money") <= 3.25,
    col("user").struct.field("age") > 5, col("user").struct.field("the.name") == "3", col("a.b") > 6, col("id") > lit(1) + 1,
    pl.all_horizontal(col("id") > 1, col("yes")), pl.any_horizontal(col("id") > 2, ~col("yes")), (col("id") > 1).not_(),
]
PYARROW = [
    field("id") > 2, field("id") == 2, ~(field("id") != 2), (field("id") <= 2) | field("yes"), field("yes"), ~field("yes"),
    field("id").isin([1, 2]), ~field("id").isin([1, 2]), field("id").isin(pa.array([], pa.int64())), field("name").is_null(), field("name").is_valid(),
    field("name") == "O'Hara", field("name") == 'q"q', pc.match_like(field("name"), "%a%"), pc.starts_with(field("name"), "a_"),
    ~pc.ends_with(field("name"), "n"), pc.match_substring(field("name"), "%"), field("day") >= datetime.date(2026, 1, 4),
    field("at") < datetime.datetime(2026, 1, 1, 3, 0, 0, 5), field("money") > decimal.Decimal("3.25"), field("x") < 1.5,
    field("user", "age") > 5, field("a.b") > 6, (field("yes") == True) & (field("id") >= 0) & ~(field("x") > 1.5),
]


def rows(where):
    return wr.sort(TABLE, "row", where=where).to_arrow()["row"].to_pylist()


@pytest.mark.parametrize("expression", POLARS, ids=str)
def test_expressions_of_polars(expression):
    assert rows(expression) == FRAME.filter(expression)["row"].to_list()


@pytest.mark.parametrize("expression", PYARROW, ids=str)
def test_expressions_of_pyarrow(expression):
    # In pyarrow a NaN is less and greater than nothing.
    numbers = TABLE.filter(~pc.is_nan(TABLE["x"]).fill_null(False).combine_chunks()) if "x" in str(expression).split() else TABLE
    kept = set(numbers["row"].to_pylist())
    assert [row for row in rows(expression) if row in kept] == numbers.filter(expression)["row"].to_pylist()


@pytest.mark.parametrize("seed", range(30))
def test_expressions_of_expressions(seed):
    random.seed(seed)

    def tree(leaves, depth):
        if depth == 0:
            return random.choice(leaves)
        one, other = tree(leaves, depth - 1), tree(leaves, random.randrange(depth))
        return random.choice([one & other, one | other, ~one & other, ~(one | other), ~(one & ~other)])

    expression = tree(POLARS[:-3], 3)
    assert rows(expression) == FRAME.filter(expression)["row"].to_list()
    expression = tree([leaf for leaf in PYARROW if "x" not in str(leaf).split()], 3)
    assert rows(expression) == TABLE.filter(expression)["row"].to_pylist()


CONDITIONS = [
    "id > 2 or yes = true", "not (id > 2 or yes = true)", "not (id between 1 and 2) and name not like '%n'", "name like 'b\\%%'",
    "id not in (1, 2) or name is null", "not name like '_\\_%'", "x between -1 and 2", "not not (id is not null)", "x > 1 and not x > 2",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_text_is_as_in_sql(condition):
    con = duckdb.connect()
    con.register("t", TABLE)
    query = condition.replace("'b\\%%'", "'b\\%%' escape '\\'").replace("'_\\_%'", "'_\\_%' escape '\\'")
    assert rows(condition) == [row for (row,) in con.sql(f"select row from t where {query} order by row").fetchall()]


def test_expressions_of_duckdb_and_lists():
    of = duckdb.ColumnExpression
    assert rows((of("id") > 1) & of("name").isnotnull()) == rows("id > 1 and name is not null")
    assert rows(of("id").isin(duckdb.ConstantExpression(1), duckdb.ConstantExpression(2))) == rows("id in (1, 2)")
    assert rows([("id", ">", 1), ("name", "!=", "a_n")]) == rows("id > 1 and name != 'a_n'")
    assert rows([[("id", "in", {1})], [("id", "not in", [1, 2]), ("a.b", "<=", 3)]]) == rows('id = 1 or (id not in (1, 2) and "a.b" <= 3)')


@pytest.mark.parametrize("where, text", [
    (col("id") + 1 > 2, "lazy.filter"),
    (col("id").cast(pl.Int8) > 2, "lazy.filter"),
    (col("id") > col("a.b"), "one of a column and a value"),
    (col("name").str.contains("a.*"), "Contains"),
    (col("name").str.to_lowercase() == "a", "lazy.filter"),
    (col("id").is_in([1], nulls_equal=True), "IsIn"),
    (col("id").eq_missing(None), "lazy.filter"),
    (col("id") == None, "null"),
    (col("x") == NAN, "is_nan()"),
    (col("x") < float("inf"), "infinity"),
    (lit(True), "as a condition"),
    (col("id").sum() > 1, "lazy.filter"),
    (field("id") + 1 > 2, "dataset.scanner"),
    (field("id").cast("int8") > 2, "dataset.scanner"),
    (field("id").isin([1, None]), "null"),
    (field("name") == b"ann", "bytes"),
    (field("name\n") == "ann", "a name"),
    (pc.scalar(True), "as a condition"),
    ([], "a list of"),
    ([("id", "~", 1)], "knows no '~'"),
    (5, "not int"),
    (pl.Series([True]), "not Series"),
])
def test_what_has_no_words_is_refused_with_the_call(where, text):
    with pytest.raises(TypeError) as raised:
        rows(where)
    assert text in str(raised.value)
