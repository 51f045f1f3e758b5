"""No command writes over what it did not make: the ledger, the private data, a run, a bundle."""

from __future__ import annotations

import pytest

import doublure as db

CODEBOOK = "column,type,values,lower,upper,missing\nage,integer,,17,90,false\n"


@pytest.fixture
def house(small, tmp_path):
    """Return copies of everything that must survive, and what the commands need."""
    run, _ = small.copies(tmp_path)
    db.release(db.load(run), tmp_path / "bundle", n=5, seed=1)
    small.csv(tmp_path)
    (tmp_path / "s.yaml").write_text(small.declared_text)
    (tmp_path / "codes.csv").write_text(CODEBOOK)
    small.plan.save(tmp_path / "plan.json")
    return tmp_path


VERBS = {
    "plan": ["plan", "s.yaml", "--method", "gan", "-o"],
    "schema draft": ["schema", "draft", "people.csv", "-o"],
    "schema draft with a codebook": ["schema", "draft", "people.csv", "--codebook", "codes.csv", "-o"],
    "evaluate": ["evaluate", "run", "--real", "people.csv", "-o"],
    "audit": ["audit", "run", "--attack", "linkage", "--real", "people.csv", "--holdout", "others.csv", "-o"],
    "compare": ["compare", "run", "--real", "people.csv", "-o"],
    "inspect": ["inspect", "run", "-o"],
    "sample": ["sample", "run", "-n", "5", "-o"],
    "sample, in one word": ["sample", "run", "-n5", "-o"],
    "release": ["release", "run", "-n", "5", "-o"],
    "fit": ["fit", "people.csv", "--schema", "s.yaml", "--method", "gan", "--ledger", "people.ledger", "-o"],
    "demo": ["demo", "-o"],
    "datasets fetch": ["datasets", "fetch", "mushroom", "-o"],
    "budget init": ["budget", "init", "--dataset", "people", "--epsilon", "1", "--delta", "1e-4"],
}
PRECIOUS = (
    "people.ledger", "people.csv", "s.yaml", "codes.csv", "run/run.json", "run/plan.json", "run/generator.safetensors",
    "bundle/card.json", "bundle/card.html", "bundle/data.csv", "bundle/data.parquet", "bundle/dictionary.json",
)  # fmt: skip


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_precious_is_written_over(doublure, house, monkeypatch, verb):
    monkeypatch.chdir(house)
    before = contents(house)
    for target in PRECIOUS:
        for more in ([], ["--json"]) if target == PRECIOUS[0] else ([],):
            said = doublure(*VERBS[verb], target, *more)
            assert said.code == 2, (target, said)
            assert more or said.line
    assert contents(house) == before


def test_nothing_is_added_to_a_run_or_a_bundle(doublure, house, monkeypatch):
    monkeypatch.chdir(house)
    before = contents(house)
    for verb in ("plan", "schema draft", "evaluate", "audit", "compare", "inspect", "sample"):
        for target in ("run/new.csv", "bundle/new.csv", "run/plan.json", "bundle/new.json"):
            assert "lies in a" in doublure(*VERBS[verb], target).line, (verb, target)
            assert contents(house) == before, (verb, target)


def test_what_is_made_again_is_replaced(doublure, house, monkeypatch):
    monkeypatch.chdir(house)
    for verb, name in (("plan", "plan.json"), ("evaluate", "page.html"), ("compare", "runs.html")):
        for _ in range(2):
            assert doublure(*VERBS[verb], name).code == 0
    assert db.Plan.load("plan.json").method == "gan"
    said = doublure(*VERBS["evaluate"], "plan.html")  # whose figures would lie in plan.json
    assert "plan.json: already exists and is no figures of an evaluation" in said.line
    assert db.Plan.load("plan.json").method == "gan"


def test_rows_and_drafts_are_written_once(doublure, house, monkeypatch):
    monkeypatch.chdir(house)
    for verb, name in (("sample", "rows.csv"), ("schema draft", "draft.yaml")):
        assert doublure(*VERBS[verb], name).code == 0
        line = doublure(*VERBS[verb], name).line
        assert line == f"doublure: {name}: already exists; choose another -o, or give --force"
        assert doublure(*VERBS[verb], name, "--force").code == 0


def test_a_plan_replaces_a_file_of_another_kind_by_force_alone(doublure, house, monkeypatch):
    monkeypatch.chdir(house)
    line = doublure(*VERBS["plan"], "codes.csv").line
    assert line == "doublure: codes.csv: already exists and is no plan; choose another -o, or give --force"
    for target in ("people.ledger", "s.yaml", "run/plan.json"):
        assert doublure(*VERBS["plan"], target, "--force").code == 2, target
    assert doublure(*VERBS["plan"], "codes.csv", "--force").code == 0
    assert db.Plan.load("codes.csv").method == "gan"


def test_force_spares_ledgers_runs_bundles_and_what_is_read(doublure, house, monkeypatch):
    """A file of its own that sampling does not read is what --force is for, and a draft may replace a schema."""
    monkeypatch.chdir(house)
    before = contents(house)
    kept = [target for target in PRECIOUS if "/" in target or target == "people.ledger"]
    for verb, targets in (("sample", kept), ("schema draft with a codebook", [*kept, "people.csv", "codes.csv"])):
        for target in targets:
            assert doublure(*VERBS[verb], target, "--force").code == 2, (verb, target)
            assert contents(house) == before, (verb, target)
