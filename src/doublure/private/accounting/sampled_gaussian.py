"""Vectorised privacy loss distribution of one Gaussian on a Poisson sample, equal to dp-accounting's.

dp-accounting computes the δ of each point of its grid separately, in Python, which takes most of the time of pricing a
run. Here the same operations are done on arrays and give the same bits (``tests/private/accounting``). The choice of
points, their joining and composition stay with dp-accounting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def of_sampled_gaussian(noise_multiplier: float, sample_rate: float, interval: float) -> Any:
    """Return dp-accounting's ``from_gaussian_mechanism`` of a sample, for add/remove of one unit.

    Args:
        noise_multiplier: σ over the clipping norm C, > 0.
        sample_rate: q of the Poisson sample, in (0, 1).
        interval: Between two points of the grid of losses, > 0.

    Returns:
        A ``PrivacyLossDistribution``.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution, privacy_loss_mechanism

    sides = []
    for kind in (privacy_loss_mechanism.AdjacencyType.REMOVE, privacy_loss_mechanism.AdjacencyType.ADD):
        loss = privacy_loss_mechanism.GaussianPrivacyLoss(
            noise_multiplier, sampling_prob=sample_rate, adjacency_type=kind
        )
        bounds = loss.connect_dots_bounds()
        first, last = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
        sign = 1.0 if kind is privacy_loss_mechanism.AdjacencyType.REMOVE else -1.0
        deltas = _deltas(loss, np.arange(first, last + 1) * interval, sign)
        sides.append(pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, first, last, deltas))
    return privacy_loss_distribution.PrivacyLossDistribution(*sides)


def _deltas(loss: Any, epsilons: Floats, sign: float) -> Floats:
    """Return δ at each ε: the mass of outcomes with at least that loss, less e^ε times their mass under the neighbour.

    Args:
        loss: dp-accounting's, of one neighbour.
        epsilons: ``(n,)``.
        sign: 1 where a unit is removed, -1 where it is added.
    """
    end = math.log1p(-loss.sampling_prob)  # the largest loss of a sample without the unit
    inside = sign * epsilons > end
    deltas = np.zeros_like(epsilons)
    if sign > 0:
        deltas[~inside] = -np.expm1(epsilons[~inside])
    points = _outcomes(loss, epsilons[inside], sign)
    deltas[inside] = loss.mu_upper_cdf(points) - np.exp(epsilons[inside] + loss.mu_lower_log_cdf(points))
    return np.clip(deltas, 0, 1)


def _outcomes(loss: Any, epsilons: Floats, sign: float) -> Floats:
    """Return the largest outcome whose privacy loss is at least ε, for each ε ``(n,)`` within the range of losses."""
    rate, sensitivity, variance = loss.sampling_prob, loss.sensitivity, loss.standard_deviation**2
    upper, lower = sign * epsilons + np.log(1 / rate), np.log(-(1 - 1 / rate))
    with np.errstate(divide="ignore"):  # at the end, or beyond it by rounding: the furthest outcome
        unsampled = upper + np.log1p(-np.exp(np.minimum(lower - upper, 0.0)))
    unsampled[epsilons == 0] = np.log(1 / rate + (1 - 1 / rate))
    end = math.log(1 - rate)
    last = int(np.abs(sign * epsilons - end).argmin())
    if math.isclose(sign * epsilons[last], end):
        unsampled[last] = -math.inf
    points: Floats = -0.5 * sensitivity - sign * unsampled * variance / sensitivity
    return points if sign > 0 else sensitivity + points
