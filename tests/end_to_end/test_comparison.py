"""Runs of one data set under schemas that differ, side by side: one of them names no target and binds no columns."""

from __future__ import annotations

import json

import pytest
from tiers import exhaustive

import doublure as db

SETTINGS = ("--set", "starts=1", "--set", "fit_steps=60", "--set", "components=8")
PREDICTIONS = {"accuracy", "auc", "average_precision", "macro_f1", "coefficient_signs", "coefficients"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, doublure):
    """Return a folder with the runs ``plain`` and ``full``, and what they are compared on."""
    folder = tmp_path_factory.mktemp("comparison")
    train, holdout = db.datasets.demo_split()
    train.head(1500).to_csv(folder / "real.csv", index=False)
    holdout.head(800).to_csv(folder / "kept.csv", index=False)
    full = db.Schema.load(db.datasets.adult_schema_path()).to_plain()
    plain = {key: value for key, value in full.items() if key != "constraints"}
    plain["columns"] = {
        name: {key: value for key, value in column.items() if key not in {"roles", "shares"}}
        for name, column in full["columns"].items()
    }
    for name, schema in {"full": full, "plain": plain}.items():
        (folder / f"{name}.yaml").write_text(json.dumps(schema))
        ledger = folder / f"{name}.ledger"
        doublure("budget", "init", ledger, "--dataset", name, "--epsilon", 9, "--delta", 1e-5)
        budget = ("--method", "statistics", "--epsilon", 9, "--delta", 1e-6, *SETTINGS)
        words = ("--schema", folder / f"{name}.yaml", *budget, "--ledger", ledger, "-o", folder / name)
        doublure("fit", folder / "real.csv", *words)
    return folder


@pytest.mark.parametrize("order", [("plain", "full"), pytest.param(("full", "plain"), marks=exhaustive)])
def test_every_figure_stands_under_its_own_name(order, runs, doublure, tmp_path):
    page = tmp_path / "which.html"
    aside = ("--real", runs / "real.csv", "--holdout", runs / "kept.csv")
    found = doublure("compare", *(runs / name for name in order), *aside, "-o", page)
    scores = {one["name"]: {score["key"]: score for score in one["scores"]} for one in found["contenders"]}
    assert set(scores[str(runs / "full")]) - set(scores[str(runs / "plain")]) == PREDICTIONS
    assert all(one["columns"]["name"] == "One-way TVD" for one in scores.values())
    html = page.read_text()
    assert html.count("not measured for this run") == len(PREDICTIONS)
    assert "All were measured alike" not in html
    assert f"Not measured for {runs / 'plain'}" in html
    assert json.loads(page.with_suffix(".json").read_text()) == found


def test_nothing_is_written_on_a_defect(runs, run, tmp_path, monkeypatch):
    from doublure.report.comparison import Comparison

    def broken(self, width=None):
        raise ZeroDivisionError

    monkeypatch.setattr(Comparison, "text", broken)
    words = ("compare", runs / "full", "--real", runs / "real.csv", "-o", tmp_path / "which.html")
    code, said = run(*words)
    assert (code, said["ok"]) == (1, False)
    assert list(tmp_path.iterdir()) == []
