"""The code of the documentation runs, each page in a process of its own: engines of other pages would allocate beside it."""

import re
import runpy
import shutil
import subprocess
import sys

import pytest
from conftest import LOG, ROOT

PAGES = [*sorted((ROOT / "docs/site").rglob("*.md")), ROOT / "python/README.md"]
# tests/daft runs that one.
PAGES.remove(ROOT / "docs/site/guides/daft.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def written(page):
    """Writes the code of a page to a file, in one piece, beside the log that it reads."""
    shutil.copy(LOG, "orders_log.parquet")
    text, code = page.read_text(), ""
    for block in BLOCK.finditer(text):
        # Lines of a traceback are those of the page.
        code += "\n" * (text.count("\n", 0, block.start(1)) - code.count("\n")) + block[1]
    with open("guide.py", "w") as file:
        file.write(code)
    return file.name


def run(page):
    """Runs the code of a page in a process of its own."""
    done = subprocess.run([sys.executable, written(page)], stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.stem)
def test_the_code_of_a_page(page):
    run(page)


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
def test_both_lines_of_a_cheat_sheet_run(library):
    page = ROOT / f"docs/site/guides/from-{library}.md"
    names = runpy.run_path(written(page), run_name="guide")
    lines = re.findall(r"^\| `(.*)` \| `(wr.*)` \|$", page.read_text(), re.MULTILINE)
    assert len(lines) >= 12
    for theirs, ours in lines:
        eval(theirs, names)
        result = eval(ours, names)
        if isinstance(result, names["wr"].Reader):
            assert result.to_arrow().num_rows > 0


@pytest.mark.parametrize("feature", ["DeletionVectors", "ColumnMapping", "RowTracking"])
def test_delta_tables_that_must_not_be_rewritten_are_refused(feature):
    from deltalake import DeltaTable, TableFeatures, write_deltalake

    # DuckDB passes over the variables of modules that are named as it is.
    names = runpy.run_path(written(ROOT / "docs/site/guides/delta.md"), run_name="guide")
    write_deltalake("hidden", names["wr"].sort("orders_log.parquet", by="lsn"))
    features = [getattr(TableFeatures, feature)]
    if feature == "RowTracking":
        features.append(TableFeatures.DomainMetadata)
    DeltaTable("hidden").alter.add_feature(features, allow_protocol_versions_increase=True)
    files = DeltaTable("hidden").file_uris()
    with pytest.raises(ValueError, match="not to be rewritten"):
        names["compact_sorted"]("hidden", {}, by="lsn")
    assert DeltaTable("hidden").file_uris() == files
