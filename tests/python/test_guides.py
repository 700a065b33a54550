"""The code of the documentation runs, page by page."""

import re
import shutil

import pytest
from conftest import LOG, ROOT

PAGES = [*sorted((ROOT / "docs/site").rglob("*.md")), ROOT / "python/README.md"]
# tests/daft runs that one.
PAGES.remove(ROOT / "docs/site/guides/daft.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page):
    """Runs the code of a page in one piece; returns the names that it defines."""
    shutil.copy(LOG, "orders_log.parquet")
    # DuckDB passes over the variables of modules that are named as it is.
    text, names = page.read_text(), {"__name__": "guide"}
    for block in BLOCK.finditer(text):
        # Lines of a traceback are those of the page.
        above = "\n" * (text.count("\n", 0, block.start()) + 1)
        exec(compile(above + block[1], str(page), "exec"), names)
    return names


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.stem)
def test_the_code_of_a_page(page):
    run(page)


@pytest.mark.parametrize("feature", ["DeletionVectors", "ColumnMapping", "RowTracking"])
def test_delta_tables_that_must_not_be_rewritten_are_refused(feature):
    from deltalake import DeltaTable, TableFeatures, write_deltalake

    names = run(ROOT / "docs/site/guides/delta.md")
    write_deltalake("hidden", names["wr"].sort("orders_log.parquet", by="lsn"))
    features = [getattr(TableFeatures, feature)]
    if feature == "RowTracking":
        features.append(TableFeatures.DomainMetadata)
    DeltaTable("hidden").alter.add_feature(features, allow_protocol_versions_increase=True)
    files = DeltaTable("hidden").file_uris()
    with pytest.raises(ValueError, match="not to be rewritten"):
        names["compact_sorted"]("hidden", {}, by="lsn")
    assert DeltaTable("hidden").file_uris() == files
