#!/usr/bin/env python3
"""Packs the compiled module and the Python files of the package into a wheel.

    scripts/releasing/pack.py LIBRARY DIRECTORY

The wheel gets the lowest manylinux tag (PEP 600) that has every version of glibc whose symbols LIBRARY uses. A library that needs
more than glibc is an error. The same files make the same wheel.

pip builds a source distribution by maturin. For a wheel of this tree maturin would ask Cargo for the metadata of the whole
workspace, for which Cargo downloads the crates of every member and of every platform.

Needs Python 3.10, and `readelf` of the binutils, which come with every C compiler.
"""

import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import sysconfig
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Part of glibc and GCC on every system that PEP 600 speaks of.
EVERYWHERE = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[-\w]+)\.so\.\d+")


def main():
    library, directory = map(pathlib.Path, sys.argv[1:])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    stem = f"{project['name'].replace('-', '_')}-{version}"
    interpreter, suffix = abi()
    tag = f"{interpreter}-{manylinux(library)}"

    files = {f"windrow/{path.name}": path.read_bytes() for path in sorted((ROOT / "python/windrow").iterdir())
             if path.suffix in (".py", ".pyi", ".typed")}
    module = f"windrow/_windrow{suffix}"
    files[module] = library.read_bytes()
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = metadata(project, version)
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: {project['name']}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    scripts = "".join(f"{name}={target}\n" for name, target in project["scripts"].items())
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    for name in project["license-files"]:
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")

    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            # Of 1980, as zip files are that hold no time.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name == module else 0o100644) << 16
            archive.writestr(entry, content)
    print(wheel)


def abi():
    """The tags of interpreters that take the module, and the ending of its name. PyO3 knows a stable ABI of CPython with a GIL
    alone, and compiles for the very version of another."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        version = sysconfig.get_config_var("py_version_nodot")
        return f"cp{version}-cp{version}t", sysconfig.get_config_var("EXT_SUFFIX")
    return "cp310-abi3", ".abi3.so"


def manylinux(library):
    """The platform tag of a library."""
    dump = subprocess.run(["readelf", "--wide", "--dynamic", "--version-info", library], check=True, stdout=subprocess.PIPE, text=True)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dump.stdout)
    more = [name for name in needed if not EVERYWHERE.fullmatch(name)]
    used = [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", dump.stdout)]
    if more or not used:
        sys.exit(f"{library} fits no manylinux tag: it needs {', '.join(more) or 'no glibc'}")
    return f"manylinux_2_{max(used)}_{platform.machine()}"


def metadata(project, version):
    """Core metadata 2.4: what maturin writes into the source distribution, which scripts/test-python compares."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}"]
    lines += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    for extra, requirements in project["optional-dependencies"].items():
        lines += [f"Requires-Dist: {requirement} ; extra == '{extra}'" for requirement in requirements]
        lines.append(f"Provides-Extra: {extra}")
    lines += [f"License-File: {name}" for name in project["license-files"]]
    lines += [
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM",
    ]
    lines += [f"Project-URL: {name}, {url}" for name, url in sorted(project["urls"].items())]
    return ("\n".join(lines) + "\n\n" + (ROOT / project["readme"]).read_text() + "\n").encode()


def record(files, own):
    rows = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()]
    return "".join([*rows, f"{own},,\n"]).encode()


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


if __name__ == "__main__":
    main()
