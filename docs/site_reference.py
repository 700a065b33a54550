"""The Python reference, from the docstrings of the installed package, and the files of docs/ that the site shows.

A hook of MkDocs; see mkdocs.yml. Pages link files outside of docs/site by their relative paths, so that the links work on a
code host too: the hook turns such a link into one to the page or picture of the site, or else to the repository.
"""

import inspect
import posixpath
import re
from pathlib import Path

import windrow
from mkdocs.structure.files import File

DOCS = Path(__file__).resolve().parent
# Files of docs/ that are part of the site, under the same names.
SHARED = ["change-logs.md", "images/memory-light.svg", "images/memory-dark.svg"]
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#]+)")

CALLS = ["sort", "compact", "apply", "dedupe", "diff", "merge", "partition", "head", "check", "inspect", "col"]
GROUPS = ["Read", "Csv", "ChangeLog", "Write", "Parquet", "Spill"]
OBJECTS = [
    "Table", "Reader", "RecordBatch", "Schema", "Column", "Stats", "Details", "Applied", "Check", "Inspect", "Explain", "Progress",
]
ERRORS = [
    "WindrowError", "UsageError", "DataError", "UnsortedError", "InputNotFoundError", "AccessError", "StoreError", "MemoryFloorError",
    "SpaceError", "CorruptError",
]


def on_files(files, config):
    files.append(File.generated(config, "reference/python.md", content=python()))
    for name in SHARED:
        files.append(File.generated(config, name, abs_src_path=str(DOCS / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links of a page, as the site has them."""
    path = page.file.src_uri
    folder = posixpath.dirname(path if path in SHARED else f"site/{path}")

    def linked(match):
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if target.startswith("site/"):
            target = target.removeprefix("site/")
        elif target not in SHARED:
            # In docs/, or above it.
            in_repository = posixpath.normpath(posixpath.join("docs", target))
            return f"{config.repo_url.rstrip('/')}/blob/main/{in_repository}"
        return posixpath.relpath(target, posixpath.dirname(path) or ".")

    return LINK.sub(linked, markdown)


def python():
    lacking = {*windrow.__all__} - {*CALLS, *GROUPS, *OBJECTS, *ERRORS, "__version__", "explain"}
    assert not lacking, f"not in the reference: {lacking}"
    parts = [f"# Python\n\n{prose(inspect.getdoc(windrow))}\n\n## Calls"]
    parts += [call(name, getattr(windrow, name)) for name in CALLS]
    parts += ["## Groups of arguments\n\nEach is a dict; a plain dict is as good."]
    parts += [an_object(name, getattr(windrow, name)) for name in GROUPS]
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
    # Outside of code a star is no emphasis.
    text = "\0".join(part if number % 2 else part.replace("*", r"\*") for number, part in enumerate(text.split("\0")))

    def linked(match):
        name = match[1]
        known = name in CALLS + GROUPS + OBJECTS + ERRORS
        return f"[`{name}`](python.md#{name.lower()})" if known else f"`{name}`"

    return re.sub(r"`(\w+)`", linked, text).replace("\0", "`")
