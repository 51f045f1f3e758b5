"""The audit by many runs: what leaks more than it claims is found, what keeps its claim is not accused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from doublure.attack.results import Claim
from doublure.auditing import worst_case
from doublure.errors import SettingError

CLAIM = Claim(kind="dp", epsilon=1.0, delta=1e-5)


def noisy(scale: float):
    """Counts of a Laplace mechanism of this scale: ε is 1/scale."""
    rng = np.random.default_rng(3)

    def make(fifth: bool, number: int) -> np.ndarray:
        counts = np.zeros(8)
        counts[0] = 4
        counts[7] = fifth + rng.laplace(0, scale)
        return counts

    return make


def test_a_mechanism_that_keeps_its_claim_is_not_accused():
    found = worst_case.audit_runs(noisy(1.0), CLAIM, runs=500)
    assert not found.alarm
    assert 0.0 < found.value < 1.0


def test_too_little_noise_is_found():
    found = worst_case.audit_runs(noisy(0.2), CLAIM, runs=500)
    assert found.alarm
    assert 1.0 < found.value < 5.0


def test_a_copy_shows_all_that_so_many_runs_can():
    def make(fifth, number):
        return np.eye(8)[7 * fifth] * 4.0

    found = worst_case.audit_runs(make, CLAIM, runs=250)
    assert found.value == pytest.approx(math.log((1 - 0.0362 - 1e-5) / 0.0362), abs=0.01)
    assert any("perfect attack" in note for note in found.notes)


def test_both_worlds_are_told_apart_by_other_runs_than_those_that_count(monkeypatch):
    """The classifier sees no run that the bounds rest on: pure noise gives nothing however many features there are."""
    rng = np.random.default_rng(0)
    found = worst_case.audit_runs(lambda fifth, number: rng.normal(size=8), CLAIM, runs=300)
    assert found.value < 0.3


def test_too_few_runs_are_refused():
    with pytest.raises(SettingError, match="runs"):
        worst_case.audit_runs(noisy(1.0), CLAIM, runs=5)
