"""Conditions on rows that come as expressions of other libraries, as the text that the library parses.

An expression is translated whole, or refused with the call that does it: the library that it is from filters, and hands
over the rows.
"""

import datetime
import decimal
import json
import re

_OPS = {"==": "=", "=": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TAKES = 'text as "id > 1 or name like \'a%\'", an expression of Polars or pyarrow, or a list of (column, op, value)'


class _Column(str):
    """A column, as text of a filter."""


class _Untold(Exception):
    """A part of an expression that filters have no words for."""


def text(where):
    """The text of a condition."""
    library = type(where).__module__.partition(".")[0].lstrip("_")
    if isinstance(where, list):
        return _listed(where)
    try:
        if library == "polars" and hasattr(where, "meta"):
            return _condition(_of_polars(json.loads(where.meta.serialize(format="json"))))
        if library == "pyarrow" and hasattr(where, "to_substrait"):
            return _condition(_of_pyarrow(where))
    except _Untold as untold:
        call = "lazy.filter(...)" if library == "polars" else "dataset.scanner(filter=...)"
        raise TypeError(f"where= has no words for {untold} of this expression; {library} filters by inputs={call}") from None
    if library == "duckdb" and type(where).__name__ != "DuckDBPyRelation":
        return str(where)
    raise TypeError(f"where= takes {_TAKES}, not {type(where).__name__}")


def _listed(where):
    """pyarrow's and pandas' filters: a list of (column, op, value), all of which hold, or a list of such lists."""
    if where and all(isinstance(some, list) for some in where):
        return " or ".join(f"({_listed(some)})" for some in where)
    if not where or not all(isinstance(one, tuple) and len(one) == 3 for one in where):
        raise TypeError(f"where= takes {_TAKES}")
    return " and ".join(_compared(_column(column), op, value) for column, op, value in where)


def _compared(column, op, value):
    if op in ("in", "not in"):
        return _within(column, value, op)
    if op not in _OPS:
        raise TypeError(f"where= knows no {op!r}; it knows {', '.join(_OPS)}, in, not in")
    return f"{column} {_OPS[op]} {_value(value)}"


def _within(column, values, op="in"):
    values = [_value(value) for value in values]
    if values:
        return f"{column} {op} ({', '.join(values)})"
    return f"({column} is null and {column} is not null)" if op == "in" else f"{column} is not null"


def _column(name, *members):
    # Quotes keep a dot in a name from being a step to a member.
    return _Column(".".join('"' + step.replace('"', '""') + '"' for step in (name, *members)))


def _value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, decimal.Decimal)):
        return format(value, "f") if isinstance(value, decimal.Decimal) else repr(value)
    if isinstance(value, (datetime.date, datetime.time)):
        value = value.isoformat()
    if not isinstance(value, str):
        raise _Untold("null" if value is None else f"a value of type {type(value).__name__}")
    return "'" + value.replace("'", "''") + "'"


def _pattern(text):
    return re.sub(r"([%_\\])", r"\\\1", text)


def _condition(found):
    """A condition; a column by itself is true."""
    if isinstance(found, _Column):
        return f"{found} = true"
    if not isinstance(found, str):
        raise _Untold(f"the value {found!r} as a condition")
    return found


def _binary(op, left, right):
    if op in ("and", "or"):
        return f"({_condition(left)} {op} {_condition(right)})"
    if isinstance(right, _Column):
        left, right, op = right, left, _FLIPPED[op]
    if not isinstance(left, _Column) or isinstance(right, _Column):
        raise _Untold(f"a comparison {op} that is not one of a column and a value")
    return f"{left} {op} {_value(right[0])}"


# Values travel in lists of one, so that text is no condition.

_POLARS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=", "And": "and", "Or": "or"}
_POLARS |= {"LogicalAnd": "and", "LogicalOr": "or"}


def _of_polars(node):
    [(kind, of)] = node.items() if isinstance(node, dict) and len(node) == 1 else [(str(node), None)]
    if kind == "Column":
        return _column(of)
    if kind == "BinaryExpr" and of["op"] in _POLARS:
        return _binary(_POLARS[of["op"]], _of_polars(of["left"]), _of_polars(of["right"]))
    if kind == "Function":
        return _function_of_polars(of["function"], of["input"])
    if '"Column"' in json.dumps(node):
        raise _Untold(of["op"] if kind == "BinaryExpr" else kind)
    return [_constant(node)]


def _constant(node):
    """The value of an expression of Polars without columns."""
    if '{"Float": null}' in json.dumps(node):
        # JSON has one word for both.
        raise _Untold("NaN or an infinity (NaN is is_nan())")
    import io

    import polars

    try:
        found = polars.select(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series().to_list()
    except polars.exceptions.PolarsError as error:
        raise _Untold(str(error)) from None
    if len(found) != 1:
        raise _Untold("several values")
    return found[0]


def _function_of_polars(function, inputs):
    group, name = next(iter(function.items())) if isinstance(function, dict) else ("", function)
    name, options = next(iter(name.items())) if isinstance(name, dict) else (name, {})
    if '"Column"' not in json.dumps(inputs):
        return [_constant({"Function": {"input": inputs, "function": function}})]
    first, *rest = (_of_polars(part) for part in inputs)
    if (group, name) == ("Boolean", "Not"):
        return f"(not {_condition(first)})"
    if (group, name) in (("Boolean", "AllHorizontal"), ("Boolean", "AnyHorizontal")):
        word = " and " if name == "AllHorizontal" else " or "
        return f"({word.join(map(_condition, (first, *rest)))})"
    if not isinstance(first, _Column) or any(isinstance(part, str) for part in rest):
        raise _Untold(f"{name} of an expression")
    if (group, name) == ("StructExpr", "FieldByName"):
        return _Column(f"{first}.{_column(options)}")
    values = [part[0] for part in rest]
    if (group, name) == ("Boolean", "IsNull"):
        return f"{first} is null"
    if (group, name) == ("Boolean", "IsNotNull"):
        return f"{first} is not null"
    if (group, name) in (("Boolean", "IsNan"), ("Boolean", "IsNotNan")):
        return f"{first} {'!=' if name == 'IsNotNan' else '='} NaN"
    if (group, name) == ("Boolean", "IsIn") and not options.get("nulls_equal"):
        return _within(first, values[0])
    if (group, name) == ("Boolean", "IsBetween"):
        least = ">=" if options["closed"] in ("Both", "Left") else ">"
        most = "<=" if options["closed"] in ("Both", "Right") else "<"
        return f"({first} {least} {_value(values[0])} and {first} {most} {_value(values[1])})"
    if (group, name) == ("StringExpr", "StartsWith"):
        return f"{first} like {_value(_pattern(values[0]) + '%')}"
    if (group, name) == ("StringExpr", "EndsWith"):
        return f"{first} like {_value('%' + _pattern(values[0]))}"
    if (group, name) == ("StringExpr", "Contains") and options.get("literal"):
        return f"{first} like {_value('%' + _pattern(values[0]) + '%')}"
    raise _Untold(f"{group} {name}".strip())


_PYARROW = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_PYARROW |= {"and_kleene": "and", "or_kleene": "or", "and": "and", "or": "or"}


def _of_pyarrow(expression):
    """An expression as pyarrow pickles it: calls in metadata, and values in the columns of a record batch."""
    import pyarrow  # type: ignore[import-untyped]

    _, (data,) = expression.__reduce__()
    batch = pyarrow.ipc.open_file(data).get_batch(0)
    lines = batch.schema.to_string(truncate_metadata=False).partition("-- schema metadata --\n")[2].splitlines()
    steps = [re.fullmatch(r"(\w+): '(.*)'", line) for line in lines]
    if not steps or not all(steps):
        raise _Untold("a name")
    steps = [step.groups() for step in reversed(steps)]

    def value(index):
        return batch.column(int(index)).to_pylist()[0]

    def tree():
        kind, of = steps.pop()
        if kind == "field_ref":
            return _column(of)
        if kind == "nested_field_ref":
            return _column(*(steps.pop()[1] for _ in range(int(of))))
        if kind == "literal":
            return [value(of)]
        parts, options = [], {}
        while steps[-1][0] != "end":
            if steps[-1][0] == "options":
                options = value(steps.pop()[1])
            else:
                parts.append(tree())
        steps.pop()
        return _call_of_pyarrow(of, parts, options)

    return tree()


def _call_of_pyarrow(name, parts, options):
    if name in _PYARROW:
        return _binary(_PYARROW[name], *parts)
    first = parts[0]
    if name == "invert":
        return f"(not {_condition(first)})"
    if not isinstance(first, _Column):
        raise _Untold(f"{name} of an expression")
    if name == "is_null" and not options.get("nan_is_null"):
        return f"{first} is null"
    if name == "is_valid":
        return f"{first} is not null"
    if name == "is_in":
        # A null is in no list, and therefore passes where the list is negated.
        return f"({_within(first, options['value_set'])} and {first} is not null)"
    patterns = {"match_like": "{}", "starts_with": "{}%", "ends_with": "%{}", "match_substring": "%{}%"}
    if name in patterns and not options["ignore_case"]:
        pattern = options["pattern"] if name == "match_like" else _pattern(options["pattern"])
        return f"{first} like {_value(patterns[name].format(pattern))}"
    raise _Untold(name)
