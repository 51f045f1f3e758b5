"""Every method with an ε keeps it on four rows and five, as far as a short audit sees; without its noise it is caught.

The long audits are ``benchmarks/attacks.py run --only worst-case``.
"""

from __future__ import annotations

import pytest

from doublure.auditing import audit_method
from doublure.private import statistics

QUICK = {"components": 4, "fit_steps": 20, "bins": 2}
GAN = {
    "steps": 2,
    "lot_size": 4,
    "width": 8,
    "critic_width": 8,
    "noise_width": 4,
    "generator_batch": 8,
    "checkpoints": 1,
}
SETTINGS = {"statistics": QUICK, "guided": QUICK, "dpgan": GAN}


@pytest.mark.parametrize("method", sorted(SETTINGS))
def test_a_method_keeps_its_claim(method):
    report = audit_method(method, epsilon=1.0, delta=1e-5, runs=25, **SETTINGS[method])
    (found,) = report.attacks
    assert found.claim.epsilon == pytest.approx(1.0, abs=0.02)
    assert not found.alarm, found.sentence


def test_a_method_without_its_noise_is_caught(monkeypatch):
    monkeypatch.setattr(statistics, "noisy_histogram", lambda counts, sigma: counts)
    report = audit_method("statistics", epsilon=0.5, delta=1e-5, runs=60, **QUICK)
    assert report.alarms
    assert report.lower_bound > 1.0
    assert "Alarm" in report.verdict.headline
