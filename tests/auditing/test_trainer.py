"""The trainer's audit finds nothing in the production mechanism, and finds each planted mutant.

This is the short audit: gross faults, in seconds. The long one, which sees finer faults and says how tight the bounds
are, is ``benchmarks/audit.py``; what it found stands in ``docs/evidence/benchmarks.md``.

The mechanism writes down what ran and ends where that is not what was priced. Where a fault shows there, it never
reaches the audit; the audit is for the same fault with that check misled or asleep.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiers import exhaustive

from doublure.auditing.trainer import TrainerAudit, audit_trainer
from doublure.errors import NotAsPriced, SettingError
from doublure.private import accounting, clipping
from doublure.private.critic_steps import CriticSteps
from doublure.private.executed import Executed
from doublure.private.filters import UnitFilters
from doublure.private.queries import lot_gradients

RUNS = 150
# At ε = 4, μ is about 0.92. A mutant that triples the signal lets the attacker err in 8 % of the runs either way, of
# which 150 runs show at most 21 % at this confidence, where the claim allows no less than 45 %: it is always caught for
# all practical purposes, and the honest mechanism is accused once in a million. Finer faults need the long audit.
CONFIDENCE = 1 - 1e-6
FAULT = 3.0


def audit(runs: int = RUNS) -> TrainerAudit:
    return audit_trainer(epsilon=4.0, delta=1e-5, iterations=1, runs=runs, confidence=CONFIDENCE)


def test_production_mechanism_is_not_violated() -> None:
    found = audit()
    assert not found.violated
    assert found.gaussian_lower_bound < found.claimed_epsilon
    assert found.lower_bound < found.claimed_epsilon
    assert "no violation" in found.sentence


def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from doublure.private.noise import OsKeyedNoise

    honest = OsKeyedNoise.normal
    monkeypatch.setattr(OsKeyedNoise, "normal", lambda self, size, std: honest(self, size, std / FAULT))
    with pytest.raises(NotAsPriced):
        audit()
    monkeypatch.setattr(
        OsKeyedNoise, "normal", lambda self, size, std: honest(self, size, std / FAULT)._replace(scale=std)
    )
    assert audit().violated


def test_too_wide_a_clip_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = clipping.clipped_sum

    def wide(lot: clipping.GradientLot, *, max_grad_norm: float, per_batch: float | None = None) -> clipping.ClippedSum:
        return honest(lot, max_grad_norm=FAULT * max_grad_norm, per_batch=per_batch)

    def misleading(
        lot: clipping.GradientLot, *, max_grad_norm: float, per_batch: float | None = None
    ) -> clipping.ClippedSum:
        return replace(wide(lot, max_grad_norm=max_grad_norm, per_batch=per_batch), sensitivity=max_grad_norm)

    monkeypatch.setattr(lot_gradients, "clipped_sum", wide)
    with pytest.raises(NotAsPriced):
        audit()
    monkeypatch.setattr(lot_gradients, "clipped_sum", misleading)
    assert audit().violated


def test_skipped_clip_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipping, "clip_factors", lambda norms, bound: torch.ones_like(norms))
    assert audit().violated


def test_uncounted_critic_steps_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = CriticSteps.gradient
    calls = {"made": 0}

    def uncounted(self: CriticSteps, *args: Any) -> torch.Tensor:
        before = self.taken
        gradient = honest(self, *args)
        calls["made"] += 1
        self._mechanism._taken[self._access] = before + (calls["made"] % 9 == 0)
        return gradient

    monkeypatch.setattr(CriticSteps, "gradient", uncounted)
    with pytest.raises(NotAsPriced):
        audit()
    monkeypatch.setattr(Executed, "note", lambda *_: None)
    assert audit(runs=90).violated  # of nine steps each: four deviations above 8 % leave 39 %, at this confidence


SHORT = {"iterations": 16, "filter_steps": 1, "runs": 30, "epsilon": 4.0, "confidence": 1 - 1e-4}
"""A filter that lets a record be in all 16 steps where one was paid for: μ is four times the claimed one."""


@exhaustive
def test_a_record_at_full_length_is_cut_off() -> None:
    found = audit_trainer(**SHORT)
    assert (found.filter_steps, found.steps, found.violated) == (1, 16, False)
    one = accounting.noise_multiplier(4.0, 1e-5, 1.0, 1)
    assert found.noise_multiplier == pytest.approx(one, rel=1e-2)


def test_filters_that_are_ignored_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnitFilters, "charge", lambda self, lengths, step: setattr(self, "_charged", step + 1))
    assert audit_trainer(**SHORT).violated


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(SettingError, match="runs"):
        audit_trainer(runs=3)
