"""A purpose is a label: a plan, a run and a ledger with another wording are read, and nothing else may differ."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import doublure as db
from doublure.access import exchanged, same_accesses
from doublure.errors import BudgetRefused, DoublureError, GateFailed, InputError, PrivacyWarning, RunFolderError
from doublure.planning import planner, plans
from doublure.releasing.generator import publish

TABLE = """
doublure: 1
kind: table
units: {learn: 1.0, magnitude: 90}
columns:
  a: {type: category, values: {learn: 1.0}, other: z, missing: false}
  b: {type: boolean, missing: false}
"""
FEW = {"components": 2, "fit_steps": 2, "critic_share": 0.4, "critic_steps": 3, "critic_lot": 30, "critic_width": 4}


@pytest.fixture(scope="module")
def plan():
    return db.plan(db.Schema.parse(TABLE), method="guided", epsilon=20.0, delta=1e-4, accountant="rdp", **FEW)


@pytest.fixture
def reworded(monkeypatch):
    """Let this version word every purpose otherwise than the one that wrote the files."""

    def assembled(*args, **kwargs):
        made = assemble(*args, **kwargs)
        return replace(made, touches=tuple(replace(each, purpose=f"now {each.purpose}") for each in made.touches))

    assemble = plans.assemble
    return lambda: monkeypatch.setattr(plans, "assemble", assembled)


def written(plan):
    """Return what ``plan.json`` holds."""
    return json.loads(json.dumps(plan.to_json()))


def frame(rows=90):
    import pandas as pd

    return pd.DataFrame({"a": ["x", "y"] * (rows // 2), "b": [True, False] * (rows // 2)})


# -- plans -------------------------------------------------------------------------------------------------------------


def test_a_plan_in_other_words_is_read_and_says_todays(plan, tmp_path):
    said = written(plan)
    for touch in said["touches"]:
        touch["purpose"] = "publish only what everybody knows"
    (tmp_path / "plan.json").write_text(json.dumps(said))
    read = db.Plan.load(tmp_path / "plan.json")
    assert read == plan
    assert read.sha256 == plan.sha256
    assert "everybody" not in read.explain() + json.dumps(read.to_json())


def of_touch(number, **changes):
    def edit(said):
        said["touches"][number] |= changes

    return edit


def noise(said):
    event = next(touch["event"] for touch in said["touches"] if "scale" in touch["event"])
    event["scale"] *= 0.5


def rate(said):
    said["touches"][-1]["event"]["sample_rate"] *= 0.5


def dropped(said):
    del said["touches"][0]


def doubled(said):
    said["touches"].append(said["touches"][-1])


def turned(said):
    said["touches"][:2] = reversed(said["touches"][:2])


def names_turned(said):
    """Facts of one price differ in their purposes alone."""
    first, second = said["touches"][:2]
    first["purpose"], second["purpose"] = second["purpose"], first["purpose"]


def named_as_another(said):
    said["touches"][0]["purpose"] = said["touches"][-1]["purpose"]


FORGED = {
    "less noise": noise,
    "another rate": rate,
    "an access fewer": dropped,
    "an access more": doubled,
    "another order": turned,
    "purposes exchanged": names_turned,
    "the purpose of another": named_as_another,
    "another event": of_touch(0, event={"type": "pure", "epsilon": 0.5}),
    "a lower price": of_touch(0, epsilon=0.5),
    "a smaller δ": of_touch(1, delta=0.0),
    "no purpose": lambda said: said["touches"][0].pop("purpose"),
    "a number for a purpose": of_touch(0, purpose=3),
    "a further key": of_touch(0, note="x"),
    "a query of another column": lambda said: said["schema"]["columns"].update(
        b={"type": "category", "values": {"learn": 1.0}, "other": "z", "missing": False}
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_all_else_of_an_access_is_checked(plan, name):
    said = written(plan)
    FORGED[name](said)
    with pytest.raises(InputError) as caught:
        db.Plan.from_json(said)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_accesses_are_compared_without_their_words():
    own = [{"purpose": "count", "epsilon": 1.0}, {"purpose": "sum", "epsilon": 1.0}]
    assert same_accesses([{**own[0], "purpose": "number"}, own[1]], own)
    for other in (None, "count", own[:1], [own[1], own[0]], [own[0], own[0]], [own[0], 3], [own[0], {"epsilon": 1.0}]):
        assert not same_accesses(other, own)
    assert exchanged(["sum", "x"], ["count", "sum"])
    assert not exchanged(["count", "x"], ["count", "sum"])


# -- runs --------------------------------------------------------------------------------------------------------------


def test_what_was_fitted_in_other_words_is_loaded_released_and_verified(small, tmp_path, reworded):
    run, ledger = small.copies(tmp_path)
    reworded()
    syn = db.load(run)
    assert all(each.purpose.startswith("now ") for each in syn.plan.touches)
    db.release(syn, tmp_path / "bundle", n=20, ledger=ledger)
    publish(syn, tmp_path / "gen", ledger=ledger)
    for name in ("bundle", "gen"):
        card = json.loads((tmp_path / name / "card.json").read_text())
        assert card["executed"] is True
        assert {touch["purpose"].split()[0] for touch in card["touches"]} == {"now"}
        assert db.verify(tmp_path / name, ledger=ledger)
        assert "now train" in (tmp_path / name / "card.html").read_text()


def test_a_bundle_of_before_is_verified_and_its_generator_loaded(small, tmp_path, reworded):
    run, ledger = small.copies(tmp_path)
    syn = db.load(run)
    publish(syn, tmp_path / "gen", ledger=ledger)
    reworded()
    assert db.verify(tmp_path / "gen", ledger=ledger)
    assert db.load(tmp_path / "gen").plan.touches[0].purpose.startswith("now ")
    with pytest.raises(GateFailed, match="words its accesses otherwise"):  # a forger's words, for all that it can tell
        db.verify(tmp_path / "gen")


def test_a_plan_that_was_charged_in_other_words_is_not_charged_again(small, tmp_path, reworded):
    _, ledger = small.copies(tmp_path)
    said = small.plan.to_json()
    reworded()
    plan = db.Plan.from_json(json.loads(json.dumps(said)))
    with pytest.raises(BudgetRefused, match="was charged to people already"):
        db.fit(small.frame(), plan, ledger=ledger, out=tmp_path / "again")


class CutOffError(Exception):
    """Ends a run at a place of the test's choice."""


def test_a_fact_that_was_drawn_in_other_words_is_not_drawn_again(plan, tmp_path, monkeypatch):
    """Its mark in the ledger is the purpose as it was reserved; the answer that was kept is handed out again."""
    from doublure.private import facts
    from doublure.private.mechanism import Mechanism

    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=99.0, delta=0.1)
    asked = []
    learn = facts.learn

    def ends_at_the_second(question, *args, **kwargs):
        asked.append(question.fact)
        if len(asked) == 2:
            raise CutOffError
        return learn(question, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(facts, "learn", ends_at_the_second)
        with pytest.raises(CutOffError):
            db.fit(frame(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    assert [one.kind for one in db.Ledger.open(tmp_path / "l").entries].count("noise") == 1

    purposes = {fact: f"now {purpose}" for fact, purpose in planner._PURPOSES.items()}
    monkeypatch.setattr(planner, "_PURPOSES", purposes)
    paid, pay = [], Mechanism._pay
    monkeypatch.setattr(Mechanism, "_pay", lambda self, access: (paid.append(access.purpose), pay(self, access)))
    read = db.Plan.load(tmp_path / "run" / "plan.json")
    syn = db.fit(frame(), read, ledger=db.Ledger.open(tmp_path / "l"), out=tmp_path / "run", resume=True)
    assert not [purpose for purpose in paid if purpose == read.touches[0].purpose]
    assert read.touches[1].purpose in paid
    assert all(entry["drawn"] == 1 for entry in syn.executed[:2])
    marks = [one.body["what"] for one in db.Ledger.open(tmp_path / "l").entries if one.kind == "noise"]
    assert marks == [each.purpose for each in plan.touches[:2]]


def test_a_known_fault_is_not_hidden_by_other_words(plan, tmp_path):
    """The plan of a run that is known to be wrong says what it draws, whatever its file calls that."""
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=99.0, delta=0.1)
    db.fit(frame(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    for name, edit in (("run.json", {"doublure_version": "0.1.0"}), ("plan.json", {})):
        path = tmp_path / "run" / name
        said = json.loads(path.read_text()) | edit
        for number, touch in enumerate(said.get("touches", ())):
            touch["purpose"] = f"draw {number}"
        path.write_text(json.dumps(said))
    with pytest.warns(PrivacyWarning, match="its ε is wrong"):
        syn = db.load(tmp_path / "run")
    with pytest.raises(RunFolderError, match="its ε is wrong"):
        db.release(syn, tmp_path / "bundle", n=5)


@pytest.mark.parametrize("name", ["another order", "less noise"])
def test_a_run_whose_record_differs_in_more_than_words_is_not_released(small, tmp_path, name):
    run, ledger = small.copies(tmp_path)
    path = run / "executed.json"
    said = json.loads(path.read_text())
    if name == "less noise":
        event = said[-1]["expected"]
        event["noise_multiplier" if "noise_multiplier" in event else "scale"] *= 2
    else:
        said[0]["purpose"] = said[-1]["purpose"]
        said = said if len(said) > 1 else [*said, *said]
    path.write_text(json.dumps(said))
    with pytest.raises(DoublureError, match=r"^executed\.json: "):
        db.release(db.load(run), tmp_path / "bundle", n=5, ledger=ledger)
