"""The pages of the reference, from the package as it is installed: docstrings, and the command's own help.

A hook of MkDocs; see mkdocs.yml.
"""

import inspect
import os
import re
import subprocess
import sys

import windrow
from mkdocs.structure.files import File

CALLS = ["sort", "compact", "dedupe", "diff", "merge", "partition", "head", "check", "inspect", "col"]
OBJECTS = ["Table", "Reader", "RecordBatch", "Schema", "Column", "Stats", "Check", "Inspect", "Explain", "Progress"]
ERRORS = [
    "WindrowError", "UsageError", "DataError", "UnsortedError", "InputNotFoundError", "MemoryFloorError", "SpaceError",
    "CorruptError",
]


def on_files(files, config):
    files.append(File.generated(config, "reference/python.md", content=python()))
    files.append(File.generated(config, "reference/cli.md", content=command()))
    return files


def python():
    parts = [f"# Python\n\n{prose(inspect.getdoc(windrow))}\n\n## Calls"]
    parts += [call(name, getattr(windrow, name)) for name in CALLS]
    parts += [f"## What a job would do\n\n{prose(inspect.getdoc(windrow.explain))}", "## Objects"]
    parts += [an_object(name, getattr(windrow, name)) for name in OBJECTS]
    parts += ["## Exceptions"]
    parts += [an_object(name, getattr(windrow, name)) for name in ERRORS]
    return "\n\n".join(parts) + "\n"


def call(name, function):
    signature = f"{name}{inspect.signature(function)}"
    if len(signature) > 90:
        parameters = inspect.signature(function).parameters.values()
        first = [str(p) for p in parameters if p.kind is not p.KEYWORD_ONLY]
        keywords = [str(p) for p in parameters if p.kind is p.KEYWORD_ONLY]
        lines = [f"    {parameter}," for parameter in [*first, "*", *keywords]]
        signature = "\n".join([f"{name}(", *lines, ")"])
    return f"### {name}\n\n```python\n{signature}\n```\n\n{prose(inspect.getdoc(function))}"


def an_object(name, cls):
    bases = [base.__name__ for base in cls.__bases__ if base not in (object, tuple) and not base.__name__.startswith("_")]
    of = f" ({', '.join(bases)})" if bases else ""
    parts = [f"### {name}\n\n{prose(inspect.getdoc(cls) or '')}{of and chr(10) * 2 + '*Is also:* ' + ', '.join(f'`{b}`' for b in bases)}"]
    members = [(key, value) for key, value in vars(cls).items() if not key.startswith("_")]
    lines = []
    for key, value in members:
        text = inspect.getdoc(value) if callable(value) or inspect.isdatadescriptor(value) else None
        if text:
            lines.append(f"- `{key}{'()' if callable(value) else ''}`: {inline(' '.join(text.split()))}")
    return "\n\n".join(parts + (["\n".join(lines)] if lines else []))


def prose(text):
    """A docstring as Markdown: sections, definitions and examples."""
    lines, out, example = text.splitlines(), [], False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if re.fullmatch(r"-+", line) and out:
            out[-1] = f"**{out[-1]}**"
            out.append("")
        elif line.startswith(">>>") and not example:
            example = True
            out += ["```pycon", line]
        elif example and not line:
            example = False
            out += ["```", ""]
        elif example:
            out.append(line)
        elif re.fullmatch(r"[a-z_, ]+", line) and following.startswith("    "):
            out += ["", ", ".join(f"`{name.strip()}`" for name in line.split(",")) + ":"]
        else:
            out.append(inline(line.strip()))
    return "\n".join(out + (["```"] if example else []))


def inline(text):
    """`name` of a docstring is a call or an object of this page."""
    text = re.sub(r"``(.+?)``", "\0\\1\0", text)

    def linked(match):
        name = match[1]
        known = name in CALLS + OBJECTS + ERRORS
        return f"[`{name}`](python.md#{name.lower()})" if known else f"`{name}`"

    return re.sub(r"`(\w+)`", linked, text).replace("\0", "`")


def command():
    def help_of(*verb):
        done = subprocess.run(
            [sys.executable, "-m", "windrow", "help", *verb], capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "100"}
        )
        return done.stdout

    verbs = re.findall(r"^  ([a-z]+) ", help_of().split("Commands:")[1].split("Options:")[0], re.M)
    parts = ["# Command line", f"```text\n{help_of()}```"]
    parts += [f"## windrow {verb}\n\n```text\n{help_of(verb)}```" for verb in verbs if verb != "help"]
    return "\n\n".join(parts) + "\n"
