"""One sampled Gaussian's privacy loss distribution is the one that dp-accounting computes point by point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from doublure.private.accounting.sampled_gaussian import of_sampled_gaussian


def parts(found):
    """Return what a distribution is made of, for the unit that is removed and the one that is added."""
    for side in (found._pmf_remove.to_dense_pmf(), found._pmf_add.to_dense_pmf()):
        yield side._lower_loss, side._discretization, side._infinity_mass, side._probs


@pytest.mark.parametrize(
    ("noise", "rate", "interval"),
    [
        (1.1, 0.01, 1e-3),
        (0.5, 0.3, 0.02),
        (20.0, 1e-3, 1e-6),
        (3.0, 0.9, 2e-3),
        (100.0, 0.05, 1e-5),
        (2.0, 1e-6, 1e-7),
        (1.0, -math.expm1(-0.1), 0.1 / 16),  # a point of the grid lies where the losses of the unit added end
        (1.0, 1 - 1e-12, 0.01),
    ],
)
def test_it_is_dp_accountings_to_the_last_bit(noise, rate, interval):
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=interval
    )
    for ours, slow in zip(parts(of_sampled_gaussian(noise, rate, interval)), parts(theirs), strict=True):
        assert ours[:3] == slow[:3]
        assert len(ours[3]) > 50
        assert np.array_equal(ours[3], slow[3])
