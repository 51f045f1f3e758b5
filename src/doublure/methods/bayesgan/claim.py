"""Bayesian DP in a plan: what is known beforehand, and what is claimed afterwards.

σ, q, T and the worst case (ε, δ) are known before a record is read; so is the ε_μ that could not be passed, which is
the one of gradient distances that are all as long as they can be. The distances are not known. They are sampled while
the run goes on. If the ε_μ that comes out is at most the ceiling that the plan names, the ceiling is claimed; else the
run's kind is plain dp, at the worst case that was charged from the start. The ε_μ itself stays internal: it tells an
outlier from its absence. Which of the two is claimed tells a little too, and both claims say so.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from doublure.access import Access
from doublure.errors import SettingError
from doublure.guarantee import BAYESIAN_ASSUMPTIONS, CHOICE_OF_KIND, Guarantee, rounded_up
from doublure.methods.bayesgan.settings import BayesianSettings, bayesian
from doublure.methods.method import Method
from doublure.planning.budget import Budget, events, learned_facts
from doublure.private import accounting
from doublure.schema import Schema
from doublure.training.settings import MethodSettings

if TYPE_CHECKING:
    from doublure.planning.planner import Plan
    from doublure.private.bayesian import BayesianAccountant

_SIGMAS = (1e-4, 1e7)
_TURNS = 60
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Known:
    """What some accesses cost whoever a record is from, in the accountant's units.

    Attributes:
        costs: log E[e^(λ L)] for each λ.
        left: The δ_μ that is left for the tail, once they and the confidence bounds have taken their share.
    """

    costs: Sequence[float]
    left: float

    @classmethod
    def of(cls, accesses: Sequence[Access], settings: BayesianSettings, delta: float) -> _Known:
        """Compose accesses."""
        costs, set_aside = accounting.log_moments(events(accesses), settings.orders)
        return cls(costs, delta * (1 - settings.gamma_share) - set_aside)

    def epsilon(self, orders: Sequence[int], more: Sequence[float]) -> float:
        """Return ε_μ for these costs and some more, by equation 9."""
        costs = zip(orders, self.costs, more, strict=True)
        return min((known + one - math.log(self.left)) / order for order, known, one in costs)


# -- beforehand ------------------------------------------------------------------------------------------------------


def with_noise(chosen: Method, schema: Schema, settings: MethodSettings, budget: Budget) -> BayesianSettings:
    """Return the settings with every σ decided: those that were not given follow from the ceiling on ε_μ.

    At one λ, the one at which the critic needs least noise, full-batch steps spend their share of what the ceiling
    allows, and the critic's steps the rest, if every distance is as long as it is expected to be.

    Raises:
        SettingError: The ceiling is lower than anything can be shown to be.
    """
    own = bayesian(settings)
    if own.noise_multiplier is not None and (own.full_batch_noise is not None or not own.full_batches):
        return own
    rate = chosen.sample_rate(schema, own) or 1.0
    known = _Known.of(learned_facts(schema, budget.discovery_delta), own, budget.delta or 0.0)
    found = []
    for order, cost in zip(own.orders, known.costs, strict=True):
        allowed = order * (budget.epsilon or 0.0) + math.log(known.left) - cost
        full = own.full_batch_noise
        if own.full_batches and full is None and allowed > 0:
            full = math.sqrt(own.full_batches * order * (order + 1) / 2 / (own.full_batch_share * allowed))
        if own.full_batches and full is not None:
            allowed -= own.full_batches * order * (order + 1) / 2 / full**2
        if allowed > 0:
            critic = own.noise_multiplier or _least_noise(own, order, rate, allowed)
            found.append((critic, full or 0.0))
    if not found:
        least = known.epsilon(own.orders, [0.0] * len(own.orders))
        raise SettingError(
            f"{budget.epsilon:g} is less than can be shown at this delta with these orders",
            field="epsilon",
            remedy=f"raise it well above {least:.2g}, or name larger orders",
        )
    critic, full = min(found)
    return own.with_noise(_rounded(critic), _rounded(full) if own.full_batches else None)


def _least_noise(settings: BayesianSettings, order: int, rate: float, allowed: float) -> float:
    """Return the least σ at which all T steps cost no more than is allowed."""
    low, high = _SIGMAS
    for _ in range(_TURNS):
        middle = math.sqrt(low * high)
        enough = (settings.steps or 1) * _moment(settings, order, rate, middle) <= allowed
        low, high = (low, middle) if enough else (middle, high)
    return high


def _moment(settings: BayesianSettings, order: int, rate: float, sigma: float, share: float | None = None) -> float:
    """Return the log-moment of one step if every distance is that share of the largest, or as it is expected to be."""
    import numpy as np

    from doublure.private.bayesian import log_moment

    distance = np.array([(settings.expected_distance if share is None else share) / sigma])
    return float(log_moment(distance, order, rate, paper_literal=settings.paper_literal)[0])


def _rounded(sigma: float) -> float:
    """Return a σ that prints in a few digits, and is no smaller."""
    return rounded_up(min(sigma, _SIGMAS[1]), 6)


def forecast(made: Plan, share: float) -> float:
    """Return ε_μ if every gradient distance were this share of the largest; with 1, what it cannot pass."""
    own, rate = bayesian(made.settings), made.sample_rate or 1.0
    known = _Known.of([access for access in made.touches if not access.estimated], own, made.delta or 0.0)
    sigma = own.noise_multiplier or 1.0
    steps = [(own.steps or 1) * _moment(own, order, rate, sigma, share) for order in own.orders]
    return known.epsilon(own.orders, steps)


def noise_of(settings: MethodSettings) -> float:
    """Return σ, once it is decided.

    Raises:
        ValueError: It is not.
    """
    noise = bayesian(settings).noise_multiplier
    if noise is None:
        raise ValueError("σ is not decided")
    return noise


def delta_of(settings: MethodSettings) -> float:
    """Return δ of the worst case."""
    return bayesian(settings).worst_case_delta or 0.0


def worst_case(touches: Sequence[Access], settings: MethodSettings, accountant: str) -> float:
    """Return ε of everything a run touches, whoever a record is from; rounded up to what is printed."""
    found = accounting.epsilon_of(events(touches), delta_of(settings), accountant=accountant)  # type: ignore[arg-type]
    return rounded_up(found, 4)


def guarantee(worst: Guarantee, settings: MethodSettings, budget: Budget) -> Guarantee:
    """Return the claim of a run that keeps its ceiling: the ceiling, beside a worst case of kind dp."""
    own = bayesian(settings)
    return Guarantee.model_validate(
        worst.model_dump()
        | {
            "kind": "bayesian-dp",
            "epsilon_mu": budget.epsilon,
            "delta_mu": budget.delta,
            "gamma": float(f"{own.gamma_share * (budget.delta or 0.0):.6g}"),
            "assumptions": (*worst.assumptions, *BAYESIAN_ASSUMPTIONS),
            "excluded": (*worst.excluded, CHOICE_OF_KIND),
            "distances": own.distances,
            "bound": {"student-t": "Student-t", "bernstein": "empirical Bernstein"}[own.bound],
        }
    )


# -- afterwards ------------------------------------------------------------------------------------------------------


def claimed(made: Plan, accountant: BayesianAccountant | None) -> tuple[Guarantee, float]:
    """Return what may be claimed once the distances are known, and the ε_μ that decided it, which is internal.

    Args:
        made: The plan.
        accountant: Fed with all T steps of the critic; None where none was.

    Returns:
        The guarantee: the plan's if the estimate is at most its ceiling, else the worst case of kind dp.
    """
    own = bayesian(made.settings)
    if accountant is None or accountant.steps_taken < (own.steps or 1):
        return made.guarantee.worst_case, math.inf
    others = events([access for access in made.touches if not access.estimated])
    costs, set_aside = accounting.log_moments(others, accountant.orders)
    together = copy.deepcopy(accountant)
    together.add(costs)
    try:
        found = together.epsilon((made.delta or 0.0) - set_aside)
    except SettingError:  # facts and confidence bounds have used up all of δ_μ
        return made.guarantee.worst_case, math.inf
    kept = found <= (made.epsilon or 0.0) * (1 + _ROUNDING)
    return (made.guarantee if kept else made.guarantee.worst_case), found
