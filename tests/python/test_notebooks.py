"""Notebooks run from an empty directory to their last plot."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[2] / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert "image/png" in shown[-1]
    tables = [data["text/html"] for data in shown if "text/html" in data]
    assert len(tables) == 3 and all("<table" in table or "<pre" in table for table in tables)
