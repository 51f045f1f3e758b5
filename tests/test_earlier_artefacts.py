"""What an earlier version has written is read by this one, or refused in one line that says what to do.

``tests/support/artefacts.py`` says what is kept. A version that has to refuse something adds it to ``REFUSED``.
"""

from __future__ import annotations

import json
from pathlib import Path

import artefacts
import pytest

import doublure as db
from doublure.errors import DoublureError
from doublure.guarantee import claim_as_worded_now
from doublure.schema import columns
from golden import cases

REFUSED: dict[str, str] = {
    "0.2.0/meters-statistics/plan": "gaps that are still to be bought",  # they are priced now
    "0.2.0/digits-latentgan-mixture/run": "features: is no setting any more, and always 4096",
}
"""``VERSION/CASE/WHAT`` -> what of it is refused says: plan, run, bundle, generator, ledger or resume."""


@pytest.fixture(scope="module", autouse=True)
def _registered():
    """Let the types of the cases be known here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, empty in (("_REGISTERED", {}), ("_WITH_REGISTERED", [])):
            patch.setattr(columns.registry, name, empty)
        cases.register()
        yield


@pytest.fixture(scope="module", params=artefacts.archives(), ids=lambda path: path.name.removesuffix(".tar.xz"))
def kept(request, tmp_path_factory) -> Path:
    """Return a folder with a version's files, named for it."""
    folder = tmp_path_factory.mktemp("kept") / request.param.name.removesuffix(".tar.xz").removeprefix("artefacts-")
    folder.mkdir()
    artefacts.unpack(request.param, folder)
    return folder


def reads(kept, case, what, act):
    """Do what reads an artefact, and return what came of it; None where it is refused as it should be."""
    said = REFUSED.get(f"{kept.name}/{case}/{what}")
    if said is None:
        return act()
    with pytest.raises(DoublureError) as caught:
        act()
    assert said in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return None


def of(kept: Path, what: str) -> list[Path]:
    """Return the cases of which there is such a file or folder."""
    found = sorted(path.parent for path in kept.glob(f"*/{what}") if path.parent.name != artefacts.CUT_OFF)
    assert found
    return found


def test_all_that_is_made_is_kept(kept):
    names = {path.name for path in kept.iterdir()}
    assert {artefacts.CUT_OFF, artefacts.PLANS, *artefacts.PUBLISHED} < names
    assert {json.loads(path.read_text())["kind"] for path in kept.glob("*/bundle/dictionary.json")} == {
        "table", "relational", "series", "images",
    }  # fmt: skip
    assert {path.name for path in kept.glob("plans/*.json")}


def test_plans_are_read_and_say_what_they_said(kept, tmp_path):
    plans = sorted((kept / artefacts.PLANS).glob("*.json"))
    assert len(plans) > 15
    for path in plans:
        plan = reads(kept, path.stem, "plan", lambda path=path: db.Plan.load(path))
        if plan is not None:
            plan.save(tmp_path / path.name)
            said = json.loads(path.read_text())
            said["guarantee"] = claim_as_worded_now(said["guarantee"])
            found = json.loads((tmp_path / path.name).read_text())
            assert {*said.pop("warnings")} <= {*found.pop("warnings")}  # those of today, beside its own
            assert found == said


def test_runs_are_read_and_sampled(kept, monkeypatch):
    for folder in of(kept, "run"):
        monkeypatch.chdir(folder)  # a public generator is named beside it
        syn = reads(kept, folder.name, "run", lambda folder=folder: db.load(folder / "run"))
        if syn is not None:
            assert len(syn.sample(7, seed=1)) == (2 if syn.schema.kind == "relational" else 7)  # of tables, two
            assert syn.plan.may_claim(syn.guarantee)
            assert syn.executed


def test_bundles_are_verified_against_their_ledgers(kept):
    for folder in of(kept, "bundle"):
        found = reads(
            kept, folder.name, "bundle", lambda folder=folder: db.verify(folder / "bundle", ledger=folder / "ledger")
        )
        assert found is None or found


def test_generators_that_were_published_are_read_and_verified(kept):
    for folder in of(kept, "generator"):
        syn = reads(kept, folder.name, "generator", lambda folder=folder: db.load(folder / "generator"))
        if syn is not None:
            assert len(syn.sample(3, seed=1)) == 3
            assert db.verify(folder / "generator", ledger=folder / "ledger")


def test_ledgers_are_read(kept):
    for folder in of(kept, "ledger"):
        ledger = reads(kept, folder.name, "ledger", lambda folder=folder: db.Ledger.open(folder / "ledger"))
        if ledger is not None:
            kinds = [entry.kind for entry in ledger.entries]
            assert (kinds[0], kinds.count("reserve"), kinds.count("close")) == ("open", 1, 1)
            claimed = json.loads((folder / "run" / "guarantee.json").read_text())["epsilon"]
            assert ledger.spent.epsilon == (claimed or 0.0)


def test_a_run_that_was_cut_off_goes_on(kept):
    folder = kept / artefacts.CUT_OFF
    plan = db.Plan.load(folder / "run" / "plan.json")
    syn = reads(
        kept, folder.name, "resume",
        lambda: db.fit(artefacts.few(), plan, ledger=folder / "ledger", out=folder / "run", resume=True),
    )  # fmt: skip
    if syn is not None:
        assert len(syn.sample(5)) == 5
        (line,) = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()
                   if "resumed_at" in line]  # fmt: skip
        assert line["resumed_at"] == 4  # the draw that was cut off is spent
