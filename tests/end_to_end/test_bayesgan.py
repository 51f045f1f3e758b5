"""``bayesgan`` from the command line: plan, fit, sample, label, evaluate, release, verify; and how it ends with 4."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import doublure as db
from doublure.errors import CeilingPassed, LedgerError
from doublure.ledger.store import LedgerStore

TEXT = "doublure: 1\nkind: images\nunits: 120\nimages: {shape: [8, 8, 1]}\n"
TEXT += "label: {values: [a, b, c], shares: {learn: 0.2}}\n"
TINY = {
    "lot_size": 12, "steps": 6, "n_critic": 2, "checkpoints": 3, "distances": 5, "labeller_steps": 3, "tries": 3,
    "view_images": 100, "view_width": 10, "noise_width": 4, "features": 5, "generator_batch": 6,
    "critic_channels": [4, 6], "channels": [6, 4], "accountant": "rdp",
}  # fmt: skip
DELTA = 1e-6


@pytest.fixture
def world(tmp_path, doublure):
    """Files of a private set and its schema, and a ledger with room for a worst case."""
    rng = np.random.default_rng(2)
    np.savez(
        tmp_path / "d.npz",
        images=rng.integers(0, 256, (120, 8, 8, 1), dtype=np.uint8),
        labels=rng.choice(list("abc"), 120),
    )
    (tmp_path / "s.yaml").write_text(TEXT)
    doublure("budget", "init", tmp_path / "l", "--dataset", "letters", "--epsilon", 100, "--delta", 0.01)
    return tmp_path


def asked(world, **changes):
    settings = {name: json.dumps(value) for name, value in (TINY | changes).items()}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return ["--schema", world / "s.yaml", "--method", "bayesgan", "--delta", DELTA, *words]


def test_the_whole_way(world, doublure, monkeypatch):
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    words = asked(world)
    planned = doublure("plan", world / "s.yaml", *words[2:], "--epsilon", 8, "-o", world / "plan.json")
    worst = planned["guarantee"]["epsilon"]
    assert (planned["epsilon"], planned["guarantee"]["kind"]) == (8.0, "bayesian-dp")
    fitted = doublure(
        "fit", world / "d.npz", "--plan", world / "plan.json", "--ledger", world / "l", "-o", world / "run"
    )
    claim = fitted["guarantee"]
    assert (claim["kind"], claim["delta_mu"], claim["epsilon"]) == ("bayesian-dp", DELTA, worst)
    assert claim == planned["guarantee"]
    measured = json.loads((world / "run" / "internal" / "estimate.json").read_text())["epsilon_mu"]
    assert 0 < measured <= 8
    shown = doublure("budget", "show", world / "l")
    assert shown["spent"]["epsilon"] == worst
    assert doublure("sample", world / "run", "-n", 40, "--given", "label=b", "-o", world / "b.npz")["rows"] == 40
    with np.load(world / "b.npz") as arrays:
        assert set(arrays["labels"]) == {"b"}
        assert "Bayesian" in str(arrays["watermark"])
    found = doublure("evaluate", world / "run", "--real", world / "d.npz", "-o", world / "page.html")
    assert len(found["report"]["images"]["classifiers"]) == 4
    assert (found["internal"], found["estimate"]["epsilon_mu"]) == (True, measured)
    card = doublure("release", world / "run", "-n", 60, "-o", world / "bundle")["card"]
    assert card["guarantee"] == claim
    assert [touch["purpose"] for touch in card["touches"]][1:] == ["train the critic", "train the annotator"]
    checked = doublure("verify", world / "bundle", "--ledger", world / "l")
    assert checked["guarantee"].startswith("(ε=5.207, δ=0.0001)-differentially private")
    assert "Whatever is measured, this holds, too: (ε_μ ≤ 8, δ_μ=1e-06)-Bayesian DP" in checked["guarantee"]
    again = db.load(world / "run")
    assert np.array_equal(again.sample(20, seed=3).images, db.load(world / "run").sample(20, seed=3).images)
    again.save(world / "copy")
    assert db.load(world / "copy").guarantee == again.guarantee


def test_above_the_ceiling_it_ends_with_4_and_keeps_the_worst_case(world, run, doublure):
    words = asked(world, noise_multiplier=0.5, labeller_noise=5.0)
    code, said = run("fit", world / "d.npz", *words, "--epsilon", 0.9, "--ledger", world / "l", "-o", world / "run")
    assert (code, said["ok"], said["error"]["code"]) == (4, False, "ceiling")
    why = "ε_μ came out above the ceiling, or distances did not decide it, so the claim is the worst case"
    assert said["error"]["message"] == why
    assert "internal/estimate.json" in said["error"]["remedy"]
    guarantee = db.load(world / "run").guarantee
    assert guarantee.kind == "dp"
    assert doublure("budget", "show", world / "l")["spent"]["epsilon"] == guarantee.epsilon
    card = doublure("release", world / "run", "-n", 20, "-o", world / "bundle")["card"]
    assert (card["guarantee"]["kind"], card["guarantee"]["epsilon_mu"]) == ("dp", None)
    doublure("verify", world / "bundle", "--ledger", world / "l")
    # It is finished: going on says the same again, and draws nothing.
    code, said = run(
        "fit", world / "d.npz", *words, "--epsilon", 0.9, "--ledger", world / "l", "-o", world / "run", "--resume"
    )
    assert code == 2
    assert "finished" in said["error"]["message"]


def test_above_the_ceiling_nothing_is_released_under_it(world):
    """Not in memory either, where the claim is one field of an object: the ledger knows what the run ended as."""
    plan = db.plan(
        db.Schema.load(world / "s.yaml"), method="bayesgan", epsilon=0.9, delta=DELTA, noise_multiplier=0.5,
        labeller_noise=5.0, **TINY,
    )  # fmt: skip
    with pytest.raises(CeilingPassed) as caught:
        db.fit(world / "d.npz", plan, ledger=world / "l")
    better = replace(caught.value.synthesizer, guarantee=plan.guarantee)
    better.save(world / "better")
    for made in (better, db.load(world / "better")):
        with pytest.raises(LedgerError, match="ended as dp and cannot be released as bayesian-dp"):
            db.release(made, world / "bundle", n=20)
    assert not (world / "bundle").exists()
    card = db.release(caught.value.synthesizer, world / "bundle", n=20).card
    assert card["guarantee"]["kind"] == "dp"
    assert db.Ledger.open(world / "l").verify().releases == 1


def test_a_run_that_was_cut_off_when_it_had_found_so_does_not_find_otherwise(world, monkeypatch):
    plan = db.plan(
        db.Schema.load(world / "s.yaml"), method="bayesgan", epsilon=0.9, delta=DELTA, noise_multiplier=0.5,
        labeller_noise=5.0, **TINY,
    )  # fmt: skip

    class Killed(BaseException):
        pass

    def dies(store, kind, body, **named):
        if kind == "close":
            raise Killed
        return append(store, kind, body, **named)

    append = LedgerStore.append
    with monkeypatch.context() as patch:
        patch.setattr(LedgerStore, "append", dies)
        with pytest.raises(Killed):
            db.fit(world / "d.npz", plan, ledger=world / "l", out=world / "run")
    monkeypatch.setattr("doublure.methods.bayesgan.claim.final_claim", lambda planned, *_: (planned, 0.1))
    with pytest.raises(CeilingPassed):
        db.fit(world / "d.npz", plan, ledger=world / "l", out=world / "run", resume=True)
    assert db.load(world / "run").guarantee.kind == "dp"


def test_a_run_that_ended_between_ledger_and_folder_still_says_4(world, run, monkeypatch):
    from doublure.run.folder import RunFolder

    class Killed(Exception):
        pass

    update = RunFolder.update_run

    def dies(folder, **changes):
        if changes.get("status") == "done":
            raise Killed
        update(folder, **changes)

    words = asked(world, noise_multiplier=0.5, labeller_noise=5.0)
    made = ["fit", world / "d.npz", *words, "--epsilon", 0.9, "--ledger", world / "l", "-o", world / "run"]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "update_run", dies)
        code, _ = run(*made)
    assert code not in (0, 4)
    assert run(*made, "--resume")[0] == 4
    assert db.load(world / "run").guarantee.kind == "dp"


def test_labelling_by_hand(world, run, doublure, monkeypatch):
    """Images out, labels back, a set of labelled images to learn from."""
    for name, few in (("EPOCHS", 1), ("LEAST_STEPS", 5)):
        monkeypatch.setattr(f"doublure.measures.images.classifiers.{name}", few)
    text = TEXT.partition("label")[0]
    (world / "s.yaml").write_text(text)
    words = asked(world, labeller_steps=3)
    doublure("fit", world / "d.npz", *words, "--epsilon", 8, "--ledger", world / "l", "-o", world / "run")
    made = doublure("label", "out", world / "run", "-n", 12, "-o", world / "task", "--seed", 5)
    assert made["images"] == 12
    code, said = run("label", "read", world / "task", "-o", world / "labelled.npz")
    assert (code, said["error"]["field"]) == (2, "labels.csv")
    with (world / "task" / "labels.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    filled = [rows[0]] + [[name, "cat" if number % 2 else ""] for number, (name, _) in enumerate(rows[1:])]
    with (world / "task" / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(filled)
    found = doublure("label", "read", world / "task", "-o", world / "labelled.npz")
    assert (found["images"], found["left"]) == (6, 6)
    sampled = db.load(world / "run").sample(12, seed=5).images
    with np.load(world / "labelled.npz") as arrays:
        assert np.array_equal(arrays["images"], sampled[1::2])
        assert arrays["labels"].tolist() == ["cat"] * 6
        assert "Bayesian" in str(arrays["watermark"])
    (world / "public.yaml").write_text(TEXT)
    code, said = run("label", "curve", world / "task", "--real", world / "d.npz")
    assert (code, said["error"]["field"]) == (2, "label")  # the run's schema lists no classes
    code, said = run("label", "read", world / "task", "--schema", world / "public.yaml", "-o", world / "other.npz")
    assert (code, said["error"]["message"]) == (2, "has a label that is not listed")
    filled[1:] = [[name, "abc"[number % 3]] for number, (name, _) in enumerate(rows[1:])]
    with (world / "task" / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(filled)
    words = ["--schema", world / "public.yaml", "--classifier", "logistic"]
    learned = doublure("label", "curve", world / "task", "--real", world / "d.npz", *words)
    assert [each["labels"] for each in learned["points"]] == [10, 12]
    assert learned["internal"].startswith("computed on real data")
    (world / "p.yaml").write_text("data: stripes of nobody\npeople: nobody at all\nlicence: CC0\n")
    words = ["--schema", world / "public.yaml", "--provenance", world / "p.yaml", "-n", 8, "--seed", 2]
    made = doublure("label", "public", world / "run", world / "d.npz", *words, "-o", world / "seen.npz")
    assert {key: made[key] for key in ("path", "images")} == {"path": str(world / "seen.npz"), "images": 8}
    assert "stripes of nobody" in made["labelled_by"]
    assert "Bayesian" in made["guarantee"]
    with np.load(world / "seen.npz") as arrays:
        assert set(arrays["labels"]) <= {"a", "b", "c"}
        assert "stripes of nobody. People: nobody at all. Licence: CC0." in str(arrays["labelled_by"])
    code, said = run("label", "public", world / "run", world / "d.npz", *words, "-o", world / "seen.npz")
    assert (code, said["error"]["code"]) == (2, "input")
    code, said = run("label", "public", world / "run", world / "nowhere.npz", *words, "-o", world / "task")
    assert (code, said["error"]["message"]) == (2, "is not empty")  # before anything is read or trained
    code, said = run("label", "public", world / "run", world / "nowhere.npz", *words, "-o", world / "none" / "a.npz")
    assert (code, "cannot be written" in said["error"]["message"]) == (2, True)
    code, said = run("label", "out", world / "run", "-n", 3, "-o", world / "task")
    assert (code, said["error"]["message"]) == (2, "is not empty")
