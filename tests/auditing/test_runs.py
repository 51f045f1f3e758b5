"""A run attacked with everything that its owner holds: from the folder to the page, and to the exit code."""

from __future__ import annotations

import json
import shlex
import stat
from dataclasses import replace

import numpy as np
import pytest

import doublure as db
from doublure.auditing import audit, audit_method
from doublure.auditing.white_box import WhiteBoxAccess, make_refit
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import DataError, RunFolderError, SettingError
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.run.synthesizer import Synthesizer


@pytest.fixture(scope="module")
def sides(small):
    """Return the rows that the small run has seen, and rows that it has not."""
    return small.frame(300), small.frame(700)[300:].reset_index(drop=True)


@pytest.fixture(scope="module")
def quick(small, sides):
    return audit(small.run, ["membership", "neighbours"], *sides)


def test_every_attack_without_another_fit_is_made(quick):
    made = {found.threat_model.attack: found for found in quick.attacks}
    assert set(made) == {
        "critic", "gan-leaks", "gan-leaks-partial", "gan-leaks-calibrated", "monte-carlo", "domias", "neighbours",
    }  # fmt: skip
    assert all(found.skipped is None for found in made.values())
    assert quick.claim.epsilon == 2.0
    assert not quick.alarms
    assert quick.about.method == "dpgan"
    assert "7 attacks were made and none contradicts the claim" in quick.verdict.headline
    assert str(quick).startswith("INTERNAL: computed on real data: do not publish\n")
    assert "AttackReport(computed on real data" in repr(quick)


def test_page_and_figures_are_their_owners_alone(quick, tmp_path):
    quick.save(tmp_path / "audit.html", tmp_path / "audit.json")
    page, figures = (tmp_path / name for name in ("audit.html", "audit.json"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in (page, figures)} == {0o600}
    found = json.loads(figures.read_text())
    assert set(found) == {"version", "internal", "about", "claim", "attacks", "seed", "versions", "sha256"}
    assert [entry["threat_model"]["attack"] for entry in found["attacks"]][:2] == ["critic", "gan-leaks"]
    text = page.read_text()
    assert "do not publish" in text
    assert "anonymous" not in text
    for entry in quick.attacks:
        assert entry.threat_model.cannot in text.replace("&#39;", "'")
    for row in quick.attacks[-1].pictures[0].rows:
        assert row[1] not in figures.read_text().replace('"', "").split()


def test_the_kept_critic_is_the_one_that_was_trained(small):
    """Its scores equal those of the network that training would go on with."""
    import torch

    folder = RunFolder.open(small.run)
    syn, kept = read_synthesizer(folder), folder.load()
    critic = WhiteBoxAccess(syn, kept).critic
    first = critic(small.frame(20))
    shifted = {name: value + (name == "critic") for name, value in kept.items()}
    assert not np.allclose(first, WhiteBoxAccess(syn, shifted).critic(small.frame(20)))
    assert WhiteBoxAccess(syn, None).critic is None
    assert WhiteBoxAccess(syn, {"critic": torch.zeros(3)}).critic is None


def test_crafted_records_fit_the_schema_and_are_like_no_other(small, sides):
    syn = db.load(small.run)
    crafted = WhiteBoxAccess(syn, None).crafted(200, np.random.default_rng(0))
    assert len(crafted.drop_duplicates(["height", "day", "gain"])) > 190
    assert set(crafted["income"]) == {"low", "high"}
    assert crafted["age"].between(17, 90).all()


def test_another_fit_takes_the_plan_and_other_records(small, sides):
    syn = db.load(small.run)
    again = make_refit(syn.schema, syn.plan, syn.guarantee)
    content = db.evaluate.evaluation.load_both(syn, sides[0], None)[0].content
    shadow = again(content[:100], 3)
    assert len(shadow.sample(10, 1)) == 10
    assert shadow.white_box.critic(content).shape == (300,)
    fresh = again(content[:100], 3).white_box.critic(content)
    assert not np.array_equal(shadow.white_box.critic(content), fresh)  # noise is never seeded


@pytest.fixture
def files(small, sides, tmp_path):
    """Return a copy of the run, and both sides as files."""
    run, _ = small.copies(tmp_path)
    for name, frame in zip(("real.csv", "holdout.csv"), sides, strict=True):
        frame.to_csv(tmp_path / name, index=False)
    return run, ["--real", str(tmp_path / "real.csv"), "--holdout", str(tmp_path / "holdout.csv")]


def say(capsys, *words):
    capsys.readouterr()
    code = run_guarded(app, ["audit", *map(str, words), "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    return code, json.loads(line)


def test_the_verb_writes_its_page_inside(files, capsys):
    run, data = files
    before = {path.name for path in run.iterdir()}
    code, said = say(capsys, run, "--attack", "gan-leaks", *data)
    assert code == 0
    assert said["result"]["internal"] is True
    assert {path.name for path in run.iterdir()} == before
    kept = json.loads((run / "internal/audit.json").read_text())
    assert len(kept.pop("sha256")) == 64
    assert kept == said["result"]["report"]
    assert kept["about"]["generator_sha256"] == json.loads((run / "run.json").read_text())["generator_sha256"]
    assert (run / "internal/audit.html").is_file()
    code, _ = say(capsys, run, "--attack", "linkage", *data, "-o", run.parent / "page.html")
    assert code == 0
    assert (run.parent / "page.json").is_file()
    code, said = say(capsys, run, "--attack", "linkage", *data, "-o", run / "page.html")
    assert (code, said["error"]["code"]) == (2, "input")


def test_more_than_is_claimed_ends_with_four(files, sides, capsys, monkeypatch):
    """The mutant: a synthesizer that hands out what it has seen, under a claim of ε = 2."""
    run, data = files
    leak = sides[0]

    def sample(self, n, given=None, seed=None):
        return leak.sample(n, replace=True, random_state=seed).reset_index(drop=True)

    monkeypatch.setattr(Synthesizer, "draw", sample)
    code, said = say(capsys, run, "--attack", "gan-leaks", "--attack", "neighbours", *data)
    assert code == 4
    assert (said["ok"], said["error"]["code"], said["error"]["field"]) == (False, "gate", "gan-leaks")
    assert "Alarm" in (run / "internal/audit.html").read_text()
    assert json.loads((run / "internal/audit.json").read_text())["attacks"][0]["alarm"] is True


@pytest.mark.parametrize(("violated", "ends"), [(False, 0), (True, 4)])
def test_a_trainer_that_leaks_ends_with_four(capsys, monkeypatch, violated, ends):
    from doublure.auditing import trainer

    honest = trainer.audit_trainer(epsilon=4.0, iterations=1, runs=20)
    monkeypatch.setattr(trainer, "audit_trainer", lambda **_: replace(honest, violated=violated))
    code, said = say(capsys, "--trainer", "--runs", "20")
    assert (code, said["ok"]) == (ends, not violated)
    if violated:
        assert (said["error"]["code"], said["error"]["field"]) == ("gate", "trainer")


def test_what_is_missing_is_asked_for(files, capsys, tmp_path):
    run, data = files
    cases = [
        ([], "audit"),
        ([run, "--trainer"], "audit"),
        ([run], "--attack"),
        ([run, "--attack", "magic", *data], "--attack"),
        ([run, "--attack", "gan-leaks"], "--real"),
        ([run, "--attack", "gan-leaks", *data[:2]], "--holdout"),
        ([run, "--attack", "gan-leaks", "--real", data[1], "--holdout", data[1]], "holdout"),
        ([tmp_path, "--attack", "gan-leaks", *data], str(tmp_path)),
        (["--method", "gan"], None),
        (["--method", "dpgan", *data], "--real"),
        (["--method", "dpgan", "--kind", "sounds"], "kind"),
        (["--trainer", "-o", str(tmp_path / "page.html")], "--out"),
        (["--trainer", "--set", "steps=4"], "--set"),
        ([run, "--attack", "gan-leaks", *data, "--set", "steps=4"], "--set"),
        (["--attack", "gan-leaks", *data], "run"),
    ]
    for words, field in cases:
        code, said = say(capsys, *words)
        assert code == 2, words
        assert field is None or said["error"]["field"] == field, said


def test_a_method_is_audited_by_four_rows_and_five(small):
    settings = {**small.tiny, "steps": 2, "lot_size": 4, "checkpoints": 1}
    report = audit_method("dpgan", epsilon=4.0, delta=1e-5, runs=20, **settings)
    (found,) = report.attacks
    assert found.threat_model.attack == "worst-case"
    assert report.about is None
    assert found.claim.epsilon == pytest.approx(4.0, abs=0.05)
    assert not found.alarm
    with pytest.raises(SettingError, match="gan gives no guarantee"):
        audit_method("gan")


def test_errors_of_the_library(small, sides, tmp_path):
    with pytest.raises(SettingError, match="holdout"):
        audit(small.run, "gan-leaks", sides[0])
    with pytest.raises(SettingError, match="--real DATA") as refused:
        audit(small.run, "gan-leaks", "postgresql://u:SECRET@h/d")
    assert "SECRET" not in str(refused.value)
    with pytest.raises(SettingError, match="shadows"):
        audit(small.run, "shadow", *sides, shadows=0)
    with pytest.raises(DataError, match="too few"):
        audit(small.run, "gan-leaks", sides[0], sides[1][:30])
    with pytest.raises(RunFolderError):
        audit(tmp_path, "gan-leaks", *sides)


def test_canaries_under_f_dp_are_judged_by_the_plans_own_noise(small, sides):
    (found,) = audit(small.run, "one-run", *sides).attacks
    assert found.skipped is None
    assert not found.alarm
    assert found.notes[1].startswith("Under the plan’s noise, as many right guesses or more")
    assert 0 <= found.lower_bound < small.epsilon


def test_canaries_need_no_rows_kept_aside(files, capsys):
    """A steward who kept none is told which attack is left, by a command that runs as it stands."""
    run, data = files
    code, said = say(capsys, run, "--attack", "gan-leaks", "--attack", "one-run", *data[:2])
    assert (code, said["error"]["field"]) == (2, "--holdout")
    assert said["error"]["message"] == "is needed by gan-leaks: fitted records are compared with others"
    command = said["error"]["remedy"].partition("doublure audit ")[2]
    code, said = say(capsys, *shlex.split(command))
    assert code == 0
    (found,) = said["result"]["report"]["attacks"]
    assert found["skipped"] is None
    assert found["rates"]


def test_a_plan_says_before_a_fit_what_an_audit_needs(small):
    plan = db.load(small.run).plan
    assert f"keep some units ({plan.schema.unit.name}) aside" in plan.explain()
