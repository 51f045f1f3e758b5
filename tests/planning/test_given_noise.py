"""σ given in place of ε: ε follows, learned facts included, and the plan is charged, read and refused as any other."""

from __future__ import annotations

import json
import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import InputError, SettingError
from doublure.planning import machine
from doublure.private import accounting

SIGMA = 7.0
KINDS = {
    "table": "kind: table\ncolumns: {job: {type: category, values: [cook, nurse], missing: false}}\n",
    "images": "kind: images\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1], roles: [target, condition]}\n",
    "series": "kind: series\nunit: {name: day}\nseries: {length: 8, gaps: refuse}\n"
    "channels: {kw: {type: real, bounds: [0, 10], missing: false}}\n",
}
UNLABELLED = {"unlabelled": "kind: images\nimages: {shape: [8, 8, 1]}\n"}


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("named", ["declared", "bought"])
def test_epsilon_follows(small, named, accountant):
    schema = getattr(small, named)
    plan = db.plan(schema, method="dpgan", delta=1e-4, accountant=accountant, noise_multiplier=SIGMA, **small.tiny)
    exact = accounting.epsilon_of([access.event for access in plan.touches], 1e-4, accountant=accountant)
    assert exact <= plan.epsilon <= exact * 1.001
    assert plan.guarantee.epsilon == plan.epsilon
    assert plan.noise_multiplier == plan.training[0].event.noise_multiplier == SIGMA
    assert db.Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_epsilon_is_dp_accountings_for_every_kind(kind):
    """By its own accountant and events, not through ours."""
    schema = db.Schema.parse(f"doublure: 1\nunits: 5000\n{KINDS[kind]}")
    plan = db.plan(schema, method="dpgan", delta=1e-5, noise_multiplier=1.5, lot_size=100, steps=200)
    accountant = PLDAccountant()
    step = dp_accounting.PoissonSampledDpEvent(100 / 5000, dp_accounting.GaussianDpEvent(1.5))
    exact = accountant.compose(step, 200).get_epsilon(1e-5)
    assert plan.epsilon == pytest.approx(exact, rel=5e-3)
    assert plan.epsilon >= exact * 0.9999
    (access,) = plan.touches
    assert (access.event.noise_multiplier, access.event.sample_rate, access.event.steps) == (1.5, 0.02, 200)


def test_it_is_the_plan_that_its_epsilon_would_have_given(small):
    """Calibrated to the ε that followed, σ comes out as it was given."""
    own = {"method": "dpgan", "delta": 1e-4, "accountant": "rdp"} | small.tiny
    given = db.plan(small.declared, noise_multiplier=SIGMA, **own)
    calibrated = db.plan(small.declared, epsilon=given.epsilon, **own)
    assert calibrated.noise_multiplier == pytest.approx(SIGMA, rel=2e-3)
    assert calibrated.guarantee.sentence == given.guarantee.sentence


@pytest.mark.parametrize("accountant", ["auto", "rdp"])
def test_noise_of_which_no_epsilon_follows_is_refused(small, monkeypatch, accountant):
    monkeypatch.setattr(accounting, "epsilon_of", lambda *given, **more: math.inf)
    with pytest.raises(SettingError, match="too little for any ε") as caught:
        db.plan(small.declared, method="dpgan", delta=1e-4, accountant=accountant, noise_multiplier=SIGMA, **small.tiny)
    assert caught.value.field == "noise_multiplier"


def test_less_noise_costs_more(small):
    own = {"method": "dpgan", "delta": 1e-4, "accountant": "rdp"} | small.tiny
    found = [db.plan(small.declared, noise_multiplier=sigma, **own).epsilon for sigma in (5.0, 1.0, 0.5)]
    assert found == sorted(found)
    assert found[2] > 3 * found[0]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--epsilon", "1", "--delta", "1e-4"], "noise_multiplier: stands beside epsilon"),
        ([], "delta: has no default"),
        (["--delta", "0.5"], "delta: 0.5 is at least 1/units"),
    ],
)
def test_both_together_and_no_delta_are_refused(small, tmp_path, capsys, words, field):
    (tmp_path / "s.yaml").write_text(small.declared_text)
    code = run_guarded(
        app, ["plan", str(tmp_path / "s.yaml"), "--method", "dpgan", "--set", "noise_multiplier=7", *words]
    )
    (said,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("  ")]  # beside progress
    assert code == 2
    assert field in said


def test_neither_is_refused(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(f"doublure: 1\nunits: 5000\n{KINDS['table']}")
    code = run_guarded(app, ["plan", str(tmp_path / "s.yaml"), "--method", "dpgan", "--delta", "1e-5"])
    (said,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("  ")]  # beside progress
    assert code == 2
    assert "epsilon: has no default" in said


def test_from_the_command_line(small, tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(small.declared_text)
    words = ["--method", "dpgan", "--set", "noise_multiplier=7", "--delta", "1e-4", "--set", "steps=20"]
    assert run_guarded(app, ["plan", str(tmp_path / "s.yaml"), *words, "-o", str(tmp_path / "plan.json")]) == 0
    assert "σ = 7" in capsys.readouterr().out
    assert db.Plan.load(tmp_path / "plan.json").noise_multiplier == SIGMA


def test_a_run_is_charged_what_followed(small, tmp_path):
    plan = db.plan(small.declared, method="dpgan", delta=1e-4, accountant="rdp", noise_multiplier=SIGMA, **small.tiny)
    book = small.book(tmp_path)
    syn = db.fit(small.frame(), plan, ledger=book)
    assert book.spent.epsilon == pytest.approx(plan.epsilon)
    assert [entry["event"]["noise_multiplier"] for entry in syn.executed] == pytest.approx([SIGMA])


@pytest.mark.parametrize("edit", [{"noise_multiplier": 70.0}, {"epsilon": 0.001}])
def test_an_edited_plan_is_refused(small, edit):
    plan = db.plan(small.declared, method="dpgan", delta=1e-4, accountant="rdp", noise_multiplier=0.5, **small.tiny)
    with pytest.raises(InputError):
        db.Plan.from_json(json.loads(json.dumps(plan.to_json())) | edit)


def test_methods_where_one_sigma_means_nothing_refuse_it(small, letters):
    for method in ("statistics", "guided", "gan"):
        with pytest.raises(SettingError, match="is not a setting of this method"):
            db.plan(small.declared, method=method, delta=1e-4, noise_multiplier=SIGMA)
    with pytest.raises(SettingError, match="teacher=critic labeller_share=0"):
        letters.plan(noise_multiplier=SIGMA, teacher="mixture", epsilon=None)
    with pytest.raises(SettingError, match="teacher=critic labeller_share=0"):
        letters.plan(noise_multiplier=SIGMA, labeller_share=0.5, epsilon=None)


def test_latentgan_takes_the_sigma_of_its_critic(letters):
    plan = letters.plan(noise_multiplier=SIGMA, epsilon=None)
    assert plan.training[0].event.noise_multiplier == SIGMA
    assert plan.epsilon == pytest.approx(
        accounting.epsilon_of([plan.training[0].event], 1e-5, accountant="rdp"), rel=1e-3
    )


def test_bayesgan_keeps_its_ceiling_beside_it(small):
    own = small.tiny | {"distances": 3}
    plan = db.plan(small.declared, method="bayesgan", epsilon=2.0, delta=1e-4, noise_multiplier=SIGMA, **own)
    assert (plan.guarantee.epsilon_mu, plan.noise_multiplier) == (2.0, SIGMA)


@pytest.mark.parametrize("kind", sorted(KINDS | UNLABELLED))
@pytest.mark.parametrize("asked", [{"epsilon": 1.0}, {"noise_multiplier": 1.5}])
def test_what_this_machine_cannot_hold_is_refused_either_way(monkeypatch, kind, asked):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 10**6)
    schema = db.Schema.parse(f"doublure: 1\nunits: 5000\n{(KINDS | UNLABELLED)[kind]}")
    with pytest.raises(SettingError, match=r"and this machine has 0\.001 GB") as caught:
        db.plan(schema, method="dpgan", delta=1e-5, lot_size=100, steps=200, **asked)
    assert caught.value.field == "memory"


@pytest.mark.parametrize(("named", "asked"), [("declared", {"method": "gan"}), ("bought", {"method": "statistics"})])
@pytest.mark.parametrize("price", [0.001, "0.5"])
def test_no_other_price_stands_where_none_follows_from_an_event(small, named, asked, price):
    """What is not protected has none, and that of a fact to be learned is the schema's."""
    budget = {} if asked["method"] == "gan" else {"epsilon": 2.0, "delta": 1e-4}
    plan = db.plan(getattr(small, named), **asked, **budget)
    written = json.loads(json.dumps(plan.to_json()))
    assert db.Plan.from_json(written | {"seconds_estimate": 0}).seconds_estimate == 0
    first, *others = written["touches"]
    edited = written | {"touches": [first | {"epsilon": price}, *others]}
    for reprice in (True, False):
        with pytest.raises(InputError, match="does not follow from the plan's settings"):
            db.Plan.from_json(edited, reprice=reprice)
