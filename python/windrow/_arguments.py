"""The arguments of calls, from the library's table of settings: documentation, signatures, and what is refused.

Modules that only `help` and errors need are imported there.
"""

from windrow import _windrow

# Sentences of this package in place of the library's.
_ABOUT = {
    "inputs": "Paths, directories, glob patterns, addresses of objects; Arrow objects and frames, lazy ones too, data sets and relations, "
    "which are read piece by piece; dicts, and lists of dicts; open binary files; lists and iterators of all these.",
    "target": "The directory of Parquet files to change; or a Delta table, as its path or a `DeltaTable`; or an Iceberg table of pyiceberg.",
    "transaction": 'An application and the version of its changes, ``("orders", 17)``: a table of Delta or Iceberg records both, and a version '
    "that is not greater than the recorded one changes nothing.",
    "write_mode": 'How a table of Delta or Iceberg is changed: ``"copy"``, the default, writes row groups with a change anew; ``"vectors"`` hides '
    'their changed rows and adds a file of new ones; ``"auto"`` takes the mode that writes less.',
    "old": "The old side, as the inputs of `sort`.",
    "new": "The new side, as the inputs of `sort`.",
    "descending": "Whether the greatest comes first: one for all columns, or a list.",
    "nulls_last": "Whether nulls come last: one for all columns, or a list.",
    "ranges": "Ranges of ``by``: their number, for about as many rows each, or a list of the values at which ranges start. "
    "Of several columns these are tuples.",
    "memory": 'What the call may add to the resident memory of the process: bytes, ``"256MiB"``, a share of what is free '
    '(``"50%"``), or ``"unlimited"``. A quarter of what is free unless given.',
    "mode": 'What becomes of the files that the directory has: ``"error"``, ``"overwrite"``, ``"append"`` or ``"replace_partitions"``, '
    "as of `Write`.",
    "progress": "``True`` for a bar, or a function of a `Progress`. What the function raises stops the job.",
}
_COLUMNS = 'Text, ``("id", "descending")``, `col`, or a list of these.'
# What follows the sentences of the library.
_FURTHER = {
    "by": _COLUMNS,
    "key": _COLUMNS,
    "order_by": _COLUMNS,
    "where": "Or an expression of Polars or pyarrow, or a list of (column, op, value). NaN is the greatest number.",
    "output": "The output appears whole or not at all, and may be an input. Without it the call returns a `Reader`. An open binary file is written at the end.",
    "select": 'Text, or a list of names. Of a struct, a member by its path: ``"user.id"``. ``columns=`` is the same.',
    "mode": "``mode=`` of `partition` is the same.",
    "schema": "Text, a dict, or an Arrow schema.",
    "hive_types": "Text, a dict, or an Arrow schema.",
    "op_map": "Text, or a dict.",
    "storage_options": "A dict.",
}
_LISTS = ["Values", "Texts", "Paths"]
# Names that other libraries have, or that this one had.
_OTHERS = {
    "store_options": ["storage_options"],
    "range": ["ranges"],
    "range_at": ["ranges"],
    "columns": ["select"],
    "on": ["key", "by"],
    "subset": ["key"],
    "key": ["by"],
    "by": ["key"],
    "sort_by": ["by", "sort"],
    "order_by": ["by", "sort"],
    "partition_by": ["by"],
    "partition_cols": ["by"],
    "partitioning": ["by"],
    "filter": ["where"],
    "filters": ["where"],
    "predicate": ["where"],
    "n": ["rows", "limit"],
    "limit": ["rows"],
    "num_rows": ["rows"],
    "ascending": ["descending"],
    "reverse": ["descending"],
    "na_position": ["nulls_last"],
    "null_placement": ["nulls_last"],
    "memory_limit": ["memory"],
    "memory_limit_bytes": ["memory"],
    "path": ["output"],
    "into": ["output"],
}
# What has no argument of its own.
_LINES = {
    "maintain_order": "equal rows keep their order",
    "stable": "equal rows keep their order",
    "inplace": "inputs stay as they are, and a call returns new rows",
    "partition_by": "wr.partition(inputs, by, hive=True, output=...) writes directories of values",
    "partition_cols": "wr.partition(inputs, by, hive=True, output=...) writes directories of values",
    "mode": "a single file is replaced; directories have write={'mode': ...}",
    "existing_data_behavior": "a directory has write={'mode': ...}, or mode= of partition",
    "if_exists": "a directory has write={'mode': ...}, or mode= of partition",
    "overwrite": "a single file is replaced; directories have write={'mode': ...}",
    "how": "wr.merge interleaves sorted inputs; join columns with Polars or DuckDB",
}
# Verbs whose jobs show progress have the argument; a sort has directions.
_MORE = {"sort": ["descending", "nulls_last"], "partition": ["mode"], "apply": ["transaction", "write_mode"]}
_QUIET = ["check", "inspect"]
GROUPS = {
    "read": ("Read", "How inputs are read."),
    "csv": ("Csv", "The dialect of CSV, in and out."),
    "changes": ("ChangeLog", "The format of a change log, and what a compaction makes of it."),
    "write": ("Write", "How the output is written, and what becomes of a directory's files."),
    "parquet": ("Parquet", "The layout of Parquet files."),
    "spill": ("Spill", "Where rows go that do not fit into memory, and how."),
}


_CALLS: dict = {}


def calls():
    """The settings of each call."""
    if not _CALLS:
        import json

        _CALLS.update(json.loads(_windrow.described()))
    return _CALLS


def flat(verb):
    """The arguments of a call by name, each with its setting or group, or None."""
    found = {}
    for setting in sorted(calls()[verb], key=lambda setting: not setting["required"]):
        found[setting["argument"] or setting["name"]] = setting
    found.update(dict.fromkeys(_MORE.get(verb, [])))
    if verb not in _QUIET:
        found["progress"] = None
    return found


def members(group, verbs=None):
    """The settings of a group, of any verb."""
    found = {}
    for verb in verbs or calls():
        for setting in calls()[verb]:
            if setting["argument"] == group:
                found.setdefault(setting["name"], setting)
    return found


def explained(setting):
    """The paragraph about a setting."""
    name, default = setting["name"], setting["default"]
    about = [_ABOUT.get(name, setting["about"]), _FURTHER.get(name, "")]
    about += ["A list stands for several."] * (setting["kind"] in _LISTS and name not in _ABOUT)
    about += [f'``"{choice}"``: {text}.' for choice, text in setting["choices"]]
    if default is not None and name not in _ABOUT:
        about.append(f'``"{default}"`` unless given.' if setting["choices"] else f"``{default}`` unless given.")
    return paragraph(name, " ".join(part for part in about if part))


def paragraph(name, text):
    import re
    import textwrap

    # A line does not end within code.
    text = re.sub("``.+?``", lambda code: code[0].replace(" ", "\xa0"), text)
    lines = textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([name, *lines]).replace("\xa0", " ")


def documentation(call, text):
    """The documentation of a call: what it does, its arguments, examples."""
    verb = call.__name__
    text, _, examples = text.partition("\n\nExamples\n")
    lines = [paragraph(name, _ABOUT[name]) for name in call.inputs]
    for name, setting in ordered(call):
        if name in GROUPS:
            of, about = GROUPS[name]
            lines.append(paragraph(name, f"{about} A `{of}`, or a dict of {', '.join(members(name, [verb]))}."))
        else:
            lines.append(explained(setting) if setting else paragraph(name, _ABOUT[name]))
    parts = [text.strip(), "Parameters\n----------\n" + "\n".join(lines)]
    return "\n\n".join(parts + [f"Examples\n{examples}"] * bool(examples))


def ordered(call):
    """The arguments of a call beside its inputs, those first that may be positional."""
    found, first = flat(call.__name__), call.positional
    return [*((name, found[name]) for name in first), *(named for named in found.items() if named[0] not in first)]


def signature(call):
    """The signature of a call."""
    import inspect

    Parameter = inspect.Parameter
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in call.inputs]
    for name, setting in ordered(call):
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in call.positional else Parameter.KEYWORD_ONLY
        required = setting and setting["required"]
        parameters.append(Parameter(name, kind, default=Parameter.empty if required else None))
    return inspect.Signature(parameters)


def group_documentation(group):
    """The documentation of a group of arguments."""
    explanations = "\n".join(map(explained, members(group).values()))
    return f"{GROUPS[group][1]}\n\nParameters\n----------\n{explanations}"


def group_signature(group):
    """The signature of the constructor of a group."""
    import inspect

    Parameter = inspect.Parameter
    names = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in members(group)]
    return inspect.Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *names])


def refused(call, group, name):
    """What to say about an argument that a call, or a group of its arguments, does not have."""
    import difflib

    if call == "Table":
        known = ["key", "memory", "spill"] if group is None else list(members(group))
    else:
        known = list(flat(call)) if group is None else list(members(group, [call]))
    whole = f"{call}()" if group is None else f"{group}= of {call}()"
    within = {}
    for setting in calls().get(call, []):
        if setting["argument"]:
            spelled = f"{setting['argument']}={{{setting['name']!r}: ...}}"
            # A name of two groups is either.
            for known_as in {setting["library"], setting["name"]}:
                within[known_as] = f"{within[known_as]} or {spelled}" if known_as in within else spelled
    if group is None and name in within:
        return f"{whole} has no argument {name}=: {name}= is {within[name]}"
    if group is None and name in _LINES and not (call == "partition" and name in _OTHERS):
        return f"{whole} has no argument {name}=: {_LINES[name]}"
    for other in _OTHERS.get(name, []) if group is None else []:
        if other in known:
            return f"{whole} has no argument {name}=: {name}= is {other}="
    near = difflib.get_close_matches(name, [*known, *(within if group is None else [])], 1)
    if near:
        return f"{whole} has no argument {name!r}; did you mean {within.get(near[0], near[0]) if group is None else near[0]}?"
    return f"{whole} has no argument {name!r}; it has {', '.join(known)}"


def is_arrow(value):
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def is_rows(value):
    return is_arrow(value) or isinstance(value, dict)


def positional(call, names, given):
    """What to say about more values than a call takes without names."""
    count, taken = len(names), names
    names, call, key = (*call.inputs, *call.positional[:1]), call.__name__, call.positional[0] if call.positional else ""
    if len(names) > 1 and any(map(is_rows, given[len(names) - 1 :])):
        more = "inputs are one list" if len(names) == 2 else f"{key}= comes behind {' and '.join(names[:-1])}"
        return f"{call}() takes rows as {', '.join(names[:-1])}; {more}: {call}({'[a, b]' if len(names) == 2 else 'old, new'}, {key}=...)"
    text = f"{call}() takes {count} positional arguments, not {len(given)}: {', '.join(taken)}"
    if count == len(names) and all(isinstance(value, str) for value in given[count - 1 :]):
        text += f"; several columns are a list: {key}={list(given[len(names) - 1 :])!r}"
    return text


def warned(text):
    """Warns the caller of this package."""
    import sys
    import warnings

    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "windrow":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
