"""What a plan says of its noise, and the card after it: the source that was asked for, and no figure that misleads."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import doublure as db
from doublure.access import Access
from doublure.methods.dpgan.method import Dpgan
from doublure.planning import planner
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent


def planned(small, method, **settings):
    return db.plan(small.declared, method=method, epsilon=1.0, delta=1e-4, accountant="rdp", **settings)


def check_the_card_prices_no_less_than_the_run(plan):
    """Whoever computes ε from the figures beside the claim gets the claim, or cannot compute it."""
    said = plan.guarantee
    if said.noise_multiplier is None:
        return
    event = GaussianEvent(noise_multiplier=said.noise_multiplier, sample_rate=said.sample_rate, steps=said.steps)
    computed = accounting.epsilon_of([event], said.delta, accountant=said.accountant)
    assert computed == pytest.approx(said.epsilon, rel=0.02)


def test_what_is_beside_the_claim_is_consistent_with_it(small):
    one, several = planned(small, "dpgan", **small.tiny), planned(small, "statistics", fit_steps=3)
    for plan in (one, several):
        check_the_card_prices_no_less_than_the_run(plan)
    assert one.guarantee.noise_multiplier == one.noise_multiplier
    assert several.guarantee.noise_multiplier is None
    assert several.noise_multiplier > 0  # the accesses are made from it again when the plan is read
    assert db.Plan.from_json(several.to_json()) == several
    scales = [access.to_json()["event"]["scale"] for access in several.touches]
    assert all(scale > 0 for scale in scales)


def test_a_plan_prints_each_accesses_own_noise_and_no_calibration(small):
    assert "Noise: σ" in planned(small, "dpgan", **small.tiny).explain()
    plan = planned(small, "statistics", fit_steps=3)
    told = plan.explain()
    assert "Noise: σ" not in told
    assert f"{plan.noise_multiplier:.4g}" not in told
    for access in plan.touches:
        assert f"{access.event.scale:.4g}" in told


def test_several_gaussians_have_no_one_multiplier(small, monkeypatch):
    """A rule about events, not about a method: two sums with noises of their own, in any method."""

    def two(self, schema, settings, noise_multiplier):
        return tuple(
            Access(purpose=purpose, event=GaussianEvent(noise_multiplier=share * noise_multiplier, steps=1))
            for purpose, share in (("a mean", 2.0), ("a second moment", 1.2))
        )

    monkeypatch.setattr(Dpgan, "accesses", two)
    plan = planned(small, "dpgan", **small.tiny)
    assert plan.guarantee.noise_multiplier is None
    for access in plan.touches:
        assert f"σ = {access.event.noise_multiplier:.4g}" in plan.explain()


def test_a_calibration_on_the_card_is_caught(small, monkeypatch):
    plan = planned(small, "statistics", fit_steps=3)
    monkeypatch.setattr(planner, "_single_multiplier", lambda training: plan.noise_multiplier)
    mistaken = planned(small, "statistics", fit_steps=3)
    with pytest.raises(AssertionError):
        check_the_card_prices_no_less_than_the_run(mistaken)


def test_the_noise_source_stands_in_the_plan_and_on_the_card(small, tmp_path):
    source, plan = "os-keyed", planned(small, "dpgan", **small.tiny | {"steps": 2})
    plan.save(tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())
    assert (written["settings"]["noise_source"], written["guarantee"]["noise_source"]) == (source, source)
    again = db.Plan.load(tmp_path / "plan.json")
    assert again == plan
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        from doublure.private import noise

        for kind in (noise.OsKeyedNoise, noise.OsKeyedDraws):

            def watched(self, *arguments, _normal=kind.normal, **named):
                drawn.append("os-keyed")
                return _normal(self, *arguments, **named)

            patch.setattr(kind, "normal", watched)
        syn = db.fit(small.frame(), again, ledger=small.book(tmp_path), out=tmp_path / "run", seed=1)
    assert drawn == [source] * 4  # the rows and the noise of two steps
    db.release(syn, tmp_path / "bundle", n=20, seed=1)
    card = json.loads((tmp_path / "bundle" / "card.json").read_text())
    assert card["guarantee"]["noise_source"] == source
    assert card["guarantee"]["noise_multiplier"] == plan.noise_multiplier


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"max_grad_norm": 1e-32}, "max_grad_norm"),
        ({"max_grad_norm": 1e38}, "max_grad_norm"),
        ({"clipping_decay": 1e-38}, "clipping_decay"),
    ],
    ids=str,
)
def test_noise_that_could_not_be_drawn_is_refused_by_the_plan(small, changes, field):
    """Not after the charge: the noise itself refuses a standard deviation that float32 cannot hold."""
    with pytest.raises(db.errors.SettingError) as refused:
        planned(small, "dpgan", **small.tiny | changes)
    assert refused.value.field == field


@pytest.mark.parametrize("ends", [(1e-9, 1e-6), (1e9, 1e-6), (1e9, 1.0), (1e-9, 1.0)])
@pytest.mark.parametrize("sigma", [0.01, 1e8])
def test_every_noise_that_can_be_planned_can_be_drawn(ends, sigma):
    from doublure.methods.dpgan.settings import DpganSettings
    from doublure.private.gradients import CriticLoss
    from doublure.private.mechanism import Mechanism
    from doublure.private.noise import OsKeyedNoise
    from doublure.private.queries.lot_gradients import CriticSettings
    from doublure.private.queries.query import Sensitivity

    settings = DpganSettings(max_grad_norm=ends[0], clipping_decay=ends[1], steps=50)
    step = CriticSettings(loss=CriticLoss(kind="wgan"), schedule=settings.schedule, expected_units=10.0)
    access = Access(purpose="train", event=GaussianEvent(noise_multiplier=sigma, sample_rate=0.1, steps=50))
    mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
    for number in range(50):
        std = mechanism.deviation(access, Sensitivity.of_length(step.bound(number), 8))
        assert std == sigma * step.schedule.at(number)
        assert np.isfinite(OsKeyedNoise().normal(8, std).values).all()


def test_an_edited_plan_with_such_noise_is_refused(small):
    plan = planned(small, "dpgan", **small.tiny)
    edited = plan.to_json() | {"settings": plan.settings.model_dump(mode="json") | {"max_grad_norm": 1e-32}}
    with pytest.raises(db.errors.DoublureError):
        db.Plan.from_json(edited)
    assert db.Plan.from_json(replace(plan).to_json()) == plan
