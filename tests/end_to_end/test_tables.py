"""The whole way from the command line, on real tables: schema check, plan, budget, fit, sample, release, verify."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.tables.opening import open_table
from doublure.releasing.catalogue_names import NAMES

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / ".." / "shared" / "data"
BUNDLED = Path(db.__file__).parent / "datasets" / "bundled"
TINY = {"steps": 6, "lot_size": 32, "width": 8, "critic_width": 8, "checkpoints": 3, "accountant": "rdp"}
TABLES = {
    "adult": (BUNDLED / "adult.schema.yaml", BUNDLED / "adult_train.csv.xz", {"sex": "Female"}),
    "mushroom": (ROOT / "examples/schemas/mushroom.schema.yaml", SHARED / "mushroom.csv.gz", None),
    "diabetes130": (ROOT / "examples/schemas/diabetes130.schema.yaml", SHARED / "diabetes130.csv.gz", None),
}


def doublure(*words: object) -> dict[str, object]:
    """Run a command with --json and return its result."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_guarded(app, [*map(str, words), "--json"])
    assert code == 0, out.getvalue() + err.getvalue()
    (line,) = out.getvalue().splitlines()
    return json.loads(line)["result"]


@pytest.mark.parametrize("name", TABLES)
def test_the_whole_way(name, tmp_path):
    schema_file, data, given = TABLES[name]
    if not data.exists():
        pytest.skip(f"{data.name} is not here")
    ledger, run, bundle = tmp_path / f"{name}.ledger", tmp_path / "run", tmp_path / "bundle"

    checked = doublure("schema", "check", schema_file, "--data", data)
    assert checked["ok"] is True

    settings = [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]
    budget = ["--epsilon", 3, "--delta", 1e-6]
    planned = doublure("plan", schema_file, "--method", "dpgan", *budget, *settings, "-o", tmp_path / "plan.json")
    assert planned["guarantee"]["epsilon"] == 3.0
    assert sum(touch["epsilon"] for touch in planned["touches"][:-1]) == pytest.approx(checked["learn_epsilon"])

    doublure("budget", "init", ledger, "--dataset", name, "--epsilon", 3, "--delta", 1e-5)
    fitted = doublure("fit", data, "--plan", tmp_path / "plan.json", "--ledger", ledger, "-o", run)
    assert fitted["guarantee"]["sentence"] == planned["guarantee"]["sentence"]

    asked = [] if given is None else ["--given", *(f"{key}={value}" for key, value in given.items())]
    sampled = doublure("sample", run, "-n", 200, *asked, "--seed", 7, "-o", tmp_path / "rows.parquet")
    assert sampled["rows"] == 200

    card = doublure("release", run, "-n", 300, "-o", bundle)["card"]
    assert card["guarantee"]["sentence"] == planned["guarantee"]["sentence"]
    assert doublure("verify", bundle, "--ledger", ledger)["files"] == 7
    assert {path.name for path in bundle.iterdir()} == {
        "data.csv", "data.parquet", "card.json", "card.html", "dictionary.json", *NAMES
    }  # fmt: skip

    shown = doublure("budget", "show", ledger)
    assert shown["remaining"]["epsilon"] == 0.0
    assert [entry["status"] for entry in shown["runs"]] == ["done"]
    assert len(shown["releases"]) == 1

    resolved = db.load(run).schema
    for file in ("data.csv", "data.parquet"):  # what was released is a table of the same schema
        table = open_table(bundle / file).load(resolved)
        assert len(table.frame) <= 300
        assert list(table.frame.columns) == [key for key, column in resolved.columns.items() if column.type != "id"]
