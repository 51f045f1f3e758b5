"""The notebooks in examples/: they run, twice in the same folder, and what they show holds no machine's path."""

from __future__ import annotations

import json
import re
from pathlib import Path

import notebooks
import pytest
from tiers import exhaustive

import doublure as db

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = ("table", "water-meters", "digits")
EACH = pytest.mark.parametrize("name", NAMES)
SHOWN = {"TableSchema", "SeriesSchema", "ImageSchema", "Plan", "Ledger", "Synthesizer", "Bundle", "Figure"}


def path_of(name):
    return EXAMPLES / f"{name}.ipynb"


def test_there_are_no_others():
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == set(NAMES)


@EACH
def test_it_was_executed_in_order_without_an_error(name):
    executed = [cell for cell in notebooks.cells(path_of(name)) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in executed] == list(range(1, len(executed) + 1))
    outputs = [output for cell in executed for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    views = ["".join(output["data"]["text/html"]) for output in outputs if "text/html" in output.get("data", {})]
    assert sum("doublure-view" in view for view in views) >= 5


@EACH
def test_it_shows_no_path_and_loads_nothing(name):
    text = re.sub(r'"image/png": "[^"]*"', "", path_of(name).read_text(encoding="utf-8"))
    assert not re.search(r"/(?:tmp|home|root|work|Users)/|[A-Z]:\\\\", text)
    assert not re.search(r"""(?:src|href)=\\?["']?https?:|<script|@import""", text)
    assert len(path_of(name).read_bytes()) < 600_000


@EACH
@exhaustive
@pytest.mark.slow
def test_it_runs_twice_in_a_folder_and_pays_once(name, tmp_path):
    first = notebooks.execute(path_of(name), tmp_path)
    assert {kind for _, kind, _ in first if kind in SHOWN} >= {"Plan", "Synthesizer", "Bundle", "Figure"}
    assert all(shown > 0 for _, kind, shown in first if kind != "NoneType")
    (book,) = tmp_path.glob("*.ledger")
    spent = db.Ledger.open(book).spent
    assert spent.epsilon > 0
    assert notebooks.execute(path_of(name), tmp_path) is not None
    assert db.Ledger.open(book).spent == spent
    assert len(db.Ledger.open(book).show()["releases"]) == 2


@exhaustive
@pytest.mark.slow
def test_a_kernel_runs_one_too(tmp_path):
    """Where Jupyter is installed; the line of progress is seen there, and nothing on stderr."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.read(path_of("water-meters"), as_version=4)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    text = json.dumps(book)
    assert "fit: done in" in text
    assert '"name": "stderr"' not in text
