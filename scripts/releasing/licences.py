#!/usr/bin/env python3
"""Prints the licence texts of the crates that a program links.

    scripts/releasing/licences.py [--features FEATURES] PACKAGE

The script asks Cargo for the normal dependencies of PACKAGE on this machine. Build scripts and procedural macros are not part of
a program, so the script leaves their dependencies out. From each crate's source the script copies every file whose name begins
with LICENSE, LICENCE, COPYING, COPYRIGHT, NOTICE or UNLICENSE. Libraries in C lie inside their crates, and their files count, too.
A crate without a file gets the standard text of its licence, below the names of its authors. A crate with neither is an error.

The output is a list of crates, and then each text once, below the crates that carry it. The script needs Cargo, Python 3.10,
and no network once the crates are downloaded.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

NAMES = re.compile(r"(LICEN[SC]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-_.].*|S)?", re.IGNORECASE)
# Source files that happen to have such a name.
CODE = {".c", ".cc", ".go", ".h", ".html", ".py", ".rs", ".sh"}
# The licences whose standard texts are in this repository. A crate that offers a choice gets the first.
ROOT = pathlib.Path(__file__).resolve().parents[2]
STANDARD = {
    "MIT": ROOT / "LICENSE-MIT",
    "Apache-2.0": ROOT / "LICENSE-APACHE",
    "BSD-3-Clause": ROOT / "scripts/releasing/BSD-3-Clause.txt",
}
RULE = "-" * 100


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", default="", help="features of PACKAGE, with commas between them")
    parser.add_argument("package", metavar="PACKAGE")
    options = parser.parse_args()

    crates = linked(options)
    # Copies of a text differ in their spaces.
    written, carriers, without = {}, {}, []
    for crate in crates:
        found = texts(crate) or standard(crate)
        if not found:
            without.append(f"{title(crate)}: no licence file, and no standard text for {crate['license']!r}")
        for text in found:
            words = " ".join(text.split())
            written.setdefault(words, text)
            carriers.setdefault(words, []).append(title(crate))
    if without:
        sys.exit("\n".join(without))

    print(f"{options.package} links these {len(crates)} crates. Their licence texts follow.\n")
    for crate in crates:
        print(f"  {title(crate)}: {crate['license'] or 'see its text'}, {crate['repository'] or crate['homepage'] or 'crates.io'}")
    for words, names in carriers.items():
        print(f"\n{RULE}\n{', '.join(dict.fromkeys(names))}\n{RULE}\n\n{written[words]}")


def linked(options):
    """The crates that are linked into the package and are not of this repository, by name.

    `cargo tree` downloads the crates that it shows, and no more; `cargo metadata` those of the whole workspace.
    """
    edges = ["--edges=normal,no-proc-macro", "--prefix=none", "--no-dedupe", "--format={p}"]
    command = ["cargo", "tree", "--locked", *edges, "--features", options.features, "--package", options.package]
    tree = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    # A line is "NAME vVERSION", and for a crate of this repository its folder.
    return [crate(*line.split(" v")) for line in sorted(set(tree.splitlines())) if not line.endswith(")")]


def crate(name, version):
    """What a crate's manifest says, and its folder."""
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    folder = next(home.glob(f"registry/src/*/{name}-{version}"))
    package = tomllib.loads((folder / "Cargo.toml").read_text())["package"]
    known = dict.fromkeys(("license", "license-file", "repository", "homepage")) | {"authors": []}
    return known | package | {"folder": folder}


def title(crate):
    return f"{crate['name']} {crate['version']}"


def texts(crate):
    """The texts in the crate's source."""
    folder = crate["folder"]
    files = [folder / crate["license-file"]] if crate["license-file"] else []
    files += sorted(p for p in folder.rglob("*") if NAMES.fullmatch(p.name) and p.suffix not in CODE and p.is_file())
    read = (file.read_text(encoding="utf-8", errors="replace") for file in files)
    return [text.strip("\n") for text in read if text.strip()]


def standard(crate):
    """The standard text of the crate's licence; none if it is not one of those that are known here."""
    # Cargo once took a slash for "OR".
    choices = re.split(r" OR | */ *", crate["license"] or "")
    for licence, file in STANDARD.items():
        if licence in choices:
            authors = ", ".join(crate["authors"]) or f"the authors of {crate['name']}"
            line = f"Copyright (c) {authors}"
            if licence == "Apache-2.0":
                # Its text names nobody.
                return [f"{line}\n\n{file.read_text()}"]
            return [re.sub(r"^Copyright .*$", line, file.read_text(), count=1, flags=re.MULTILINE)]
    return []


if __name__ == "__main__":
    main()
