"""``noisecritic`` the whole way, from the command line: no ε anywhere, and μ only where its owner says so."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import doublure as db
from doublure.cli import budget
from doublure.errors import RunFolderError, SettingError
from doublure.evaluate.evaluation import EVALUATIONS
from doublure.guarantee import figure, rounded_up
from doublure.measures import expected_loss
from doublure.measures.images import feature_extractors as extractors

TEXT = """
doublure: 1
kind: images
units: 120
images: {shape: [8, 8, 1]}
label: {values: [a, b, c]}
"""
TINY = {
    "steps": 6, "n_critic": 2, "lot_size": 12, "generator_batch": 6, "critic_channels": [4, 6], "channels": [6, 4],
    "features": 5, "checkpoints": 3, "noise_width": 4, "estimate_features": "pixels", "estimate_pairs": 60,
}  # fmt: skip
VOTES = {"labels": "votes", "label_epsilon": 2.0, "label_delta": 1e-4, "label_groups": 4}


@pytest.fixture(scope="module")
def private():
    rng = np.random.default_rng(2)
    return {"images": rng.integers(0, 256, (120, 8, 8, 1), dtype=np.uint8), "labels": rng.choice(list("abc"), 120)}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("doublure.methods.noisecritic.method.ESTIMATED_ON", 500)
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    few = replace(EVALUATIONS["images"], most=100)
    monkeypatch.setitem(EVALUATIONS, "images", few)


def fitted(folder, private, doublure, **more):
    """Return the run's and the ledger's paths."""
    np.savez(folder / "d.npz", **private)
    (folder / "s.yaml").write_text(TEXT)
    words = [word for key, value in (TINY | more).items() for word in ("--set", f"{key}={json.dumps(value)}")]
    doublure("budget", "init", folder / "l", "--dataset", "letters", "--epsilon", 1, "--delta", 1e-4)
    asked = ["--schema", folder / "s.yaml", "--method", "noisecritic", *words]
    result = doublure("fit", folder / "d.npz", *asked, "--ledger", folder / "l", "-o", folder / "run")
    assert (result["guarantee"]["kind"], result["guarantee"]["epsilon"]) == ("empirical", None)
    return folder / "run", folder / "l"


def test_the_whole_way_from_the_command_line(tmp_path, private, run, doublure):
    out, book = fitted(tmp_path, private, doublure)
    assert doublure("sample", out, "-n", 30, "--seed", 4, "-o", tmp_path / "a.png")["rows"] == 30
    before = (out / "guarantee.json").read_bytes()
    found = doublure("evaluate", out, "--real", tmp_path / "d.npz")
    loss = found["report"]["expected_loss"]
    assert (loss["pairs"], loss["features"], loss["artificial"]) == (60, "pixels", 500)
    assert loss["gamma"] == pytest.approx(1 / 61)
    assert loss["mu"] >= 0
    assert found["internal"]
    page = (out / "internal" / "report.html").read_text()
    assert "Expected privacy loss" in page
    assert "This is not ε" in page
    assert "not estimated" in page  # what may be claimed, until it is stated
    assert (out / "guarantee.json").read_bytes() == before  # evaluating publishes nothing
    card = doublure("release", out, "-n", 40, "-o", tmp_path / "bare")["card"]["guarantee"]
    assert (card["kind"], card["mu"], card["gamma"], card["epsilon"]) == ("empirical", None, None, None)
    assert "not estimated" in card["sentence"]

    assert doublure("evaluate", out, "--real", tmp_path / "d.npz", "--claim")["report"]["expected_loss"] == loss
    assert "not estimated" not in (out / "internal" / "report.html").read_text()
    card = doublure("release", out, "-n", 40, "-o", tmp_path / "stated")["card"]["guarantee"]
    assert (card["mu"], card["gamma"], card["epsilon"]) == (rounded_up(loss["mu"], 3), loss["gamma"], None)
    assert "computed from real records, without noise" in card["assumptions"][-1]
    words = re.sub(r"<[^>]+>", " ", (tmp_path / "stated" / "card.html").read_text())
    assert "μ, expected privacy loss (not ε)" in words
    for bundle in ("bare", "stated"):
        assert doublure("verify", tmp_path / bundle, "--ledger", book)["files"] == 6
    said = doublure("budget", "show", book)
    assert said["spent"]["epsilon"] == 0
    assert "no longer covers all releases" in said["note"]


def test_an_estimate_in_features_whose_weights_are_a_file(tmp_path, private, run, doublure, monkeypatch):
    out, _ = fitted(tmp_path, private, doublure, estimate_features="inception-v3")
    asked = ("evaluate", out, "--real", tmp_path / "d.npz")
    report = doublure(*asked)["report"]
    assert report["expected_loss"] is None
    assert "give evaluate --features inception-v3=FILE" in report["expected_loss_skipped"]
    assert doublure(*asked, "--features", "pixels")["report"]["expected_loss"] is None  # planned is planned
    code, said = run(*asked, "--features", "pixels", "--claim")
    assert (code, said["error"]["field"]) == (2, "claim")
    given = []

    def inception(weights):
        given.append(weights)
        return replace(extractors.pixels(), name="inception-v3")

    monkeypatch.setattr("doublure.measures.images.feature_extractors.inception_v3", inception)
    found = doublure(*asked, "--features", "inception-v3=weights.safetensors", "--claim")["report"]
    assert given == ["weights.safetensors"]
    assert found["expected_loss"]["features"] == "inception-v3"
    card = doublure("release", out, "-n", 20, "-o", tmp_path / "bundle")["card"]["guarantee"]
    assert card["mu"] == rounded_up(found["expected_loss"]["mu"], 3)


def test_a_budget_is_refused(tmp_path, private, run, doublure):
    (tmp_path / "s.yaml").write_text(TEXT)
    code, said = run("plan", tmp_path / "s.yaml", "--method", "noisecritic", "--epsilon", 1, "--delta", 1e-4)
    assert (code, said["error"]["field"]) == (2, "epsilon")


def test_a_vote_is_in_the_ledger_and_the_release_stays_empirical(tmp_path, private, run, doublure):
    out, book = fitted(tmp_path, private, doublure, **VOTES)
    (shown,) = doublure("budget", "show", book)["runs"]
    assert (shown["epsilon"], [each["delta"] for each in shown["apart"]]) == (None, [1e-4])
    (reserved,) = [record.body["plan"] for record in db.Ledger.open(book).entries if record.kind == "reserve"]
    votes, training = reserved["touches"]
    assert 1.98 < votes["epsilon"] <= 2.0
    assert votes["delta"] == 1e-4
    assert "labels alone" in votes["purpose"]
    assert training["epsilon"] is None
    assert shown["apart"][0]["epsilon"] == votes["epsilon"]
    assert (reserved["kind"], reserved["epsilon"]) == ("empirical", None)
    card = doublure("release", out, "-n", 10, "-o", tmp_path / "bundle")["card"]
    assert card["guarantee"]["kind"] == "empirical"
    assert card["guarantee"]["epsilon"] is None
    assert "together" not in budget.show(book).text
    plan = db.plan(db.Schema.parse(TEXT), method="noisecritic", **(TINY | VOTES))
    db.fit(private, plan, ledger=book, out=tmp_path / "again")  # the same labels are voted on once more
    shown = budget.show(book)
    assert f"the sum of these 2: ε = {figure(2 * votes['epsilon'])}, δ = 0.0002" in shown.text
    (together,) = shown.data["apart"]
    assert (together["times"], together["epsilon"]) == (2, 2 * votes["epsilon"])
    page = (tmp_path / "bundle" / "card.html").read_text()
    assert "on each count of votes; a label moves two" in page
    assert "tables 2" not in page
    assert card["touches"][0]["purpose"] == votes["purpose"]
    assert doublure("verify", tmp_path / "bundle", "--ledger", book)["ledger"]


def test_a_claim_that_cannot_be_made_is_refused(tmp_path, private, run, doublure):
    out, _ = fitted(tmp_path, private, doublure)
    with np.load(tmp_path / "d.npz") as arrays:
        few = {name: arrays[name][:65] for name in arrays.files}  # sixty pairs, and ten others that choose k
    np.savez(tmp_path / "few.npz", **few)
    before = (out / "guarantee.json").read_bytes()
    code, said = run("evaluate", out, "--real", tmp_path / "few.npz", "--claim")
    assert (code, said["error"]["field"]) == (2, "claim")
    assert "too few records for the pairs" in said["error"]["message"]
    assert str(out / "internal" / "report.html") in said["error"]["remedy"]
    assert (out / "guarantee.json").read_bytes() == before
    assert "too few records for the pairs" in (out / "internal" / "report.json").read_text()


def test_a_claim_is_for_empirical_runs_alone(tmp_path, small, run):
    code, said = run("evaluate", small.run, "--real", small.csv(tmp_path), "--claim")
    assert (code, said["error"]["field"]) == (2, "claim")


def test_an_edited_estimate_is_refused(tmp_path, private, doublure):
    """All but μ, γ and what they rest on is the plan's; and the sentence follows from the figures."""
    out, _ = fitted(tmp_path, private, doublure)
    written = json.loads((out / "guarantee.json").read_text())
    for edit in ({"unit": "person"}, {"mu": 0.1, "gamma": 0.01}, {"assumptions": ["trust me"]}, {"kind": "none"}):
        (out / "guarantee.json").write_text(json.dumps(written | edit))
        with pytest.raises(RunFolderError):
            db.load(out)
    (out / "guarantee.json").write_text(json.dumps(written))
    doublure("evaluate", out, "--real", tmp_path / "d.npz", "--claim")
    stated = json.loads((out / "guarantee.json").read_text())
    assert stated["gamma"] == 1 / 61
    db.load(out)
    better = {"gamma": 1e-9, "sentence": stated["sentence"].replace(figure(1 / 61), "1e-09")}
    assert better["sentence"] != stated["sentence"]
    (out / "guarantee.json").write_text(json.dumps(stated | better))
    with pytest.raises(RunFolderError, match="plan"):
        db.load(out)


def test_a_table_goes_the_same_way(small, tmp_path):
    settings = small.tiny | {"estimate_pairs": 100, "n_critic": 2, "features": 4}
    plan = db.plan(small.declared, method="noisecritic", **settings)
    syn = db.fit(small.frame(), plan, ledger=small.book(tmp_path), out=tmp_path / "run", seed=1)
    assert len(syn.sample(20, seed=1)) == 20
    rule = expected_loss.EstimatorConfig(pairs=100, features="rows", artificial=500)
    loss = expected_loss.of_synthesizer(syn, small.frame(), rule)
    for change in ({"pairs": 90}, {"features": "pixels"}, {"artificial": 5000}, {"seed": 4}):
        with pytest.raises(SettingError, match="otherwise than the plan says"):
            syn.with_estimate(loss.model_copy(update=change))
    stated = syn.with_estimate(loss)
    assert stated.guarantee.mu == rounded_up(loss.mu, 3)
    stated.save(tmp_path / "stated")
    assert db.load(tmp_path / "stated").guarantee == stated.guarantee
    card = db.release(stated, tmp_path / "bundle", n=20).card
    assert card["guarantee"]["mu"] == rounded_up(loss.mu, 3)
