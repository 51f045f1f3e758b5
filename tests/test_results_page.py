"""``docs/results.md`` is what its command makes of the kept rows, and another row makes another page."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results.md"


@pytest.fixture
def maker(monkeypatch):
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("needs the benchmarks of a checkout")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in ("results_page", "results", "dots"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("results_page")


def test_the_page_and_its_charts_are_what_is_measured(maker):
    made = maker.files()
    assert len(made) == 5
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "run python benchmarks/results_page.py"


def test_another_row_makes_another_page_and_chart(maker, monkeypatch, tmp_path):
    before = maker.files()
    shutil.copytree(ROOT / "benchmarks" / "measured", tmp_path / "measured")
    rows = [json.loads(line) for line in (tmp_path / "measured" / "peers.jsonl").read_text().splitlines()]
    for row in rows:
        if (row["data"], row["peer"], row["epsilon"]) == ("adult", "ours:statistics", 1.0):
            row["boosting_auc"] = 0.7531
    (tmp_path / "measured" / "peers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr("results.MEASURED", tmp_path / "measured")
    after = maker.files()
    changed = {path.name for path in before if before[path] != after[path]}
    assert changed == {"results.md", "README.md", "results-tables.svg"}
    assert "| Adult | 1 | AUC ↑ | 0.753 | **0.901** (AIM) |" in after[PAGE]


def test_a_figure_without_its_rows_ends_the_command(maker, monkeypatch, tmp_path):
    shutil.copytree(ROOT / "benchmarks" / "measured", tmp_path / "measured")
    (tmp_path / "measured" / "images.jsonl").unlink()
    monkeypatch.setattr("results.MEASURED", tmp_path / "measured")
    with pytest.raises(SystemExit, match="no row is kept for auto on mnist"):
        maker.files()


def test_what_is_cut_off_keeps_what_it_has_and_says_how_it_goes_on(maker, monkeypatch, tmp_path, capsys):
    results = sys.modules["results"]
    monkeypatch.setattr(results, "MEASURED", tmp_path)

    def cut():
        raise KeyboardInterrupt

    first, second = ({"cell": 1}, lambda: {"value": 1}), ({"cell": 2}, lambda: {"value": 2})
    with pytest.raises(SystemExit) as ended:
        results.measure("some", [first, ({"cell": 2}, cut)])
    assert ended.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err
    results.measure("some", [({"cell": 1}, cut), second])
    assert [row["value"] for row in results.finished("some")] == [1, 2]


def test_ours_is_bold_only_where_it_is_fair_and_of_three_seeds(maker, monkeypatch):
    """At no larger δ than what is published, of the same pixels, beside others' work."""
    assert not any("**" in each.ours for each in maker.headline() if each.epsilon == "10" or "seed" in each.ours)
    monkeypatch.setattr(maker, "SEEDS", 1)
    bold = {(each.what, each.epsilon) for each in maker.headline() if "**" in each.ours and "acc" in each.measure}
    assert bold == {
        ("MNIST", "0.2"),
        ("MNIST", "1"),
        ("Fashion-MNIST", "1"),
    }  # not the JPEG copy, which nothing published compares with


def test_the_results_can_be_read_in_three_minutes():
    """A silent reader reads some 240 words a minute (Brysbaert 2019); a line of a table is given two seconds."""
    lines = re.sub(
        r"\]\([^)]*\)", "]", PAGE.read_text(encoding="utf-8").partition("\n## Beside other tools")[0]
    ).splitlines()
    words = sum(len(line.split()) for line in lines if not line.startswith("|"))
    rows = sum(line.startswith("|") for line in lines)
    assert words / 240 + rows / 30 <= 3


def test_the_journal_names_each_of_its_pages():
    index = (ROOT / "docs" / "evidence" / "journal" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs" / "evidence" / "journal").glob("*.md")} - {"index.md"}
    assert set(re.findall(r"^\| \[.+?\]\((\w+\.md)\)", index, flags=re.MULTILINE)) == pages
