"""Claims of Bayesian DP: the forecast in a plan, and the claim of a finished run.

σ, q, T and the worst case (ε, δ) are known before a record is read; so is the largest possible ε_μ, where all gradient
distances are as long as they can be. The distances themselves are unknown, and are sampled during the run. If they
decide ε_μ (:func:`is_measured`) and it is at most the plan's ceiling, the ceiling is claimed; else the run's kind is
plain dp, at the worst case that was charged from the start. The ε_μ itself stays internal: it would reveal an outlier.
The choice between the two claims reveals a little too, and both claims say so.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doublure.access import Access, events
from doublure.errors import SettingError
from doublure.guarantee import BAYESIAN_ASSUMPTIONS, CHOICE_OF_KIND, Guarantee, figure, rounded_up
from doublure.methods.bayesgan.settings import BayesianSettings
from doublure.methods.method import FixedNoise
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent

if TYPE_CHECKING:
    from doublure.private.bayesian import BayesianAccountant

_SIGMAS = (1e-4, 1e7)
_TURNS = 60
_ROUNDING = 1e-9
_SHARES = (0.75, 0.5, 0.25, 0.1)


@dataclass(frozen=True)
class _FixedCosts:
    """Costs of accesses that do not depend on the records, in the accountant's units.

    Attributes:
        costs: log E[e^(λ L)] for each λ.
        left: The δ_μ left for the tail, after the shares of these accesses and of the confidence bounds.
    """

    costs: Sequence[float]
    left: float

    @classmethod
    def of(cls, accesses: Sequence[Access], settings: BayesianSettings, delta: float) -> _FixedCosts:
        """Compose accesses."""
        costs, set_aside = accounting.log_moments(events(accesses), settings.orders)
        return cls(costs, delta * (1 - settings.gamma_share) - set_aside)

    def epsilon(self, orders: Sequence[int], more: Sequence[float]) -> float:
        """Return ε_μ for these costs and further ones, by equation 9."""
        costs = zip(orders, self.costs, more, strict=True)
        return min((known + one - math.log(self.left)) / order for order, known, one in costs)


# -- planning --------------------------------------------------------------------------------------------------------


def with_noise(
    own: BayesianSettings, learned: Sequence[Access], *, rate: float, ceiling: float, delta: float
) -> BayesianSettings:
    """Return the settings with every σ; those that were not given follow from the ceiling on ε_μ.

    At the λ at which the critic needs least noise, full-batch steps spend their share of the ceiling and the critic's
    steps the rest, if every distance has its expected length.

    Args:
        own: The settings.
        learned: The accesses that buy facts.
        rate: q of the critic's lots.
        ceiling: The ceiling on ε_μ.
        delta: δ_μ.

    Raises:
        SettingError: The ceiling is below the least ε_μ that can be shown.
    """
    if own.noise_multiplier is not None and (own.full_batch_noise is not None or not own.full_batches):
        return own
    known = _FixedCosts.of(learned, own, delta)
    found = []
    reach = own.expected_distance if own.samples_full_batches else 1.0
    for order, cost in zip(own.orders, known.costs, strict=True):
        allowed = order * ceiling + math.log(known.left) - cost
        full = own.full_batch_noise
        if own.full_batches and full is None and allowed > 0:
            full = reach * math.sqrt(own.full_batches * order * (order + 1) / 2 / (own.full_batch_share * allowed))
        if own.full_batches and full is not None:
            allowed -= own.full_batches * order * (order + 1) / 2 * (reach / full) ** 2
        if allowed > 0:
            critic = own.noise_multiplier or _least_noise(own, order, rate, allowed)
            found.append((critic, full or 0.0))
    if not found:
        least = known.epsilon(own.orders, [0.0] * len(own.orders))
        raise SettingError(
            f"{ceiling:g} is less than can be shown at this delta with these orders",
            field="epsilon",
            remedy=f"raise it well above {least:.2g}, or name larger orders",
        )
    critic, full = min(found)
    return own.with_noise(_rounded(critic), _rounded(full) if own.full_batches else None)


def _least_noise(settings: BayesianSettings, order: int, rate: float, allowed: float) -> float:
    """Return the least σ at which all T steps stay within the allowed cost."""
    low, high = _SIGMAS
    for _ in range(_TURNS):
        middle = math.sqrt(low * high)
        enough = (settings.steps or 1) * _moment(settings, order, rate, middle) <= allowed
        low, high = (low, middle) if enough else (middle, high)
    return high


def _moment(settings: BayesianSettings, order: int, rate: float, sigma: float, share: float | None = None) -> float:
    """Return the log-moment of one step if every distance is a share of the largest; None: the expected share."""
    import numpy as np

    from doublure.private.bayesian import log_moment

    distance = np.array([(settings.expected_distance if share is None else share) / sigma])
    return float(log_moment(distance, order, rate, paper_literal=settings.paper_literal)[0])


def _rounded(sigma: float) -> float:
    """Return a σ rounded up to a few digits."""
    return rounded_up(min(sigma, _SIGMAS[1]), 6)


def forecast_epsilon(own: BayesianSettings, touches: Sequence[Access], *, delta: float, share: float) -> float:
    """Return ε_μ if every gradient distance were this share of the largest; 1 gives its upper bound."""
    known = _FixedCosts.of([access for access in touches if not access.estimated], own, delta)
    sigma, rate = own.noise_multiplier or 1.0, _critic(touches).sample_rate
    steps = [(own.steps or 1) * _moment(own, order, rate, sigma, share) for order in own.orders]
    if own.samples_full_batches:
        full = own.full_batch_noise or 1.0
        more = [own.full_batches * _moment(own, order, 1.0, full, share) for order in own.orders]
        steps = [sum(pair) for pair in zip(steps, more, strict=True)]
    return known.epsilon(own.orders, steps)


def _critic(touches: Sequence[Access]) -> GaussianEvent:
    """Return the steps that sampled distances price."""
    for access in touches:
        if access.estimated and isinstance(access.event, GaussianEvent):
            return access.event
    raise ValueError("no access is priced by sampled distances")


def forecast_lines(own: BayesianSettings, planned: Guarantee, touches: Sequence[Access]) -> tuple[str, ...]:
    """Return lines about the claim, as far as it is known before a record is read."""

    def at(share: float) -> float:
        return forecast_epsilon(own, touches, delta=planned.delta_mu or 0.0, share=share)

    most = at(1.0)
    fixed = "not for sure" if CHOICE_OF_KIND in planned.excluded else "yes"
    guesses = ", ".join(f"{figure(at(share))} ({share:g})" for share in _SHARES)
    return (
        f"Known beforehand: σ, q, T and the worst case; ε_μ is at most {figure(most)}; under the ceiling: {fixed}",
        "Not known beforehand: how long gradient distances are, and so ε_μ. It would be, if each were this share of "
        f"the longest there can be: {guesses}",
        "The confidence of ε_μ is spent over all orders (union bound); it stays internal, its ceiling is claimed",
    )


def fixed_noise(own: BayesianSettings) -> FixedNoise:
    """Return the decided σ, and δ of the worst case.

    Raises:
        ValueError: σ is not decided.
    """
    if own.noise_multiplier is None:
        raise ValueError("σ is not decided")
    return FixedNoise(multiplier=own.noise_multiplier, delta=own.worst_case_delta or 0.0)


def planned_claim(
    worst: Guarantee, own: BayesianSettings, touches: Sequence[Access], *, ceiling: float, delta: float
) -> Guarantee:
    """Return the claim of a run within its ceiling: the ceiling, with a worst case of kind dp.

    If the ceiling holds where all distances are as long as they can be, no distance decides which claim is made.
    """
    chosen = forecast_epsilon(own, touches, delta=delta, share=1.0) > ceiling
    return Guarantee.model_validate(
        worst.model_dump()
        | {
            "kind": "bayesian-dp",
            "epsilon_mu": ceiling,
            "delta_mu": delta,
            "gamma": float(f"{own.gamma_share * delta:.6g}"),
            "assumptions": (*worst.assumptions, *BAYESIAN_ASSUMPTIONS),
            "excluded": (*worst.excluded, *((CHOICE_OF_KIND,) if chosen else ())),
            "distances": own.distances,
            "bound": {"student-t": "Student-t", "bernstein": "empirical Bernstein"}[own.bound],
        }
    )


# -- the finished run ------------------------------------------------------------------------------------------------


def final_claim(
    planned: Guarantee, own: BayesianSettings, touches: Sequence[Access], accountant: BayesianAccountant | None
) -> tuple[Guarantee, float]:
    """Return the claim of a finished run, and the ε_μ that decided it, which is internal.

    Args:
        planned: The plan's claim.
        own: The plan's settings.
        touches: All accesses of the plan.
        accountant: The accountant of all steps with sampled distances; None if there was none.

    Returns:
        The guarantee: the plan's if the estimate is at most its ceiling and was measured, or the ceiling holds for any
        distances; else the worst case of kind dp.
    """
    if accountant is None or accountant.steps_taken < own.sampled_steps:
        return planned.worst_case, math.inf
    together, left = _with_others(planned, touches, accountant)
    try:
        found = together.epsilon(left)
    except SettingError:  # facts and confidence bounds have used up all of δ_μ
        return planned.worst_case, math.inf
    kept = found <= (planned.epsilon_mu or 0.0) * (1 + _ROUNDING)
    kept = kept and (is_measured(own, accountant, together.best_order(left)) or _is_certain(planned, together, left))
    return (planned if kept else planned.worst_case), found


def _with_others(
    planned: Guarantee, touches: Sequence[Access], accountant: BayesianAccountant
) -> tuple[BayesianAccountant, float]:
    """Return the accountant with the accesses that no distance prices, and the δ_μ that is left."""
    others = events([access for access in touches if not access.estimated])
    costs, set_aside = accounting.log_moments(others, accountant.orders)
    together = copy.deepcopy(accountant)
    together.add(costs)
    return together, (planned.delta_mu or 0.0) - set_aside


def is_measured(own: BayesianSettings, accountant: BayesianAccountant, order: int) -> bool:
    """Return whether distances decide ε_μ, and not the grid of orders alone.

    ε_μ = (cost − ln δ) / λ at its best λ. Where lots are small, a cost is next to nothing at one order and beyond use
    at the next, as the few longest distances make it. Then the best order is the last before that, the cost adds
    nothing, and −ln δ / λ, a point of a grid, is all that is left. What distances tell has to be worth at least what
    asking them took: confidence bounds may fail with a share of δ_μ, which raises −ln δ by −ln(1 − share). A cost below
    that is no measurement, and no ceiling is claimed for it.

    Args:
        own: The plan's settings.
        accountant: The accountant of the steps with sampled distances alone.
        order: The λ that ε_μ rests on.
    """
    return float(accountant.costs[accountant.orders.index(order)]) >= -math.log1p(-own.gamma_share)


def _is_certain(planned: Guarantee, together: BayesianAccountant, left: float) -> bool:
    """Return whether the ceiling holds for any law of distances, so that nothing has to be measured."""
    return together.certain_epsilon(left) <= (planned.epsilon_mu or 0.0) * (1 + _ROUNDING)


def estimate_details(
    planned: Guarantee, own: BayesianSettings, touches: Sequence[Access], accountant: BayesianAccountant | None
) -> dict[str, float | int | bool]:
    """Return what an ε_μ rests on, for internal reports; nothing where there is none.

    Args:
        planned: The plan's claim.
        own: The plan's settings.
        touches: All accesses of the plan.
        accountant: The accountant of all steps with sampled distances; None if there was none.

    Returns:
        ``order``, its λ; ``conversion``, −ln δ / λ; ``bernstein``, ε_μ for any distances; ``measured``, whether
        distances decide it.
    """
    if accountant is None or accountant.steps_taken < own.sampled_steps:
        return {}
    together, left = _with_others(planned, touches, accountant)
    if left <= together.failure_probability:
        return {}
    order = together.best_order(left)
    certain = together.certain_epsilon(left)
    return {
        "order": order,
        "conversion": -math.log(left - together.failure_probability) / order,
        **({"bernstein": certain} if math.isfinite(certain) else {}),
        "measured": is_measured(own, accountant, order),
    }


def explain_estimate(estimate: Mapping[str, Any]) -> str:
    """Return an ε_μ in a sentence, with what it rests on; for internal reports alone.

    Example:
        >>> explain_estimate({"epsilon_mu": 1.4393, "order": 16, "conversion": 1.4391, "measured": False})
        'ε_μ as measured: 1.44, at λ = 16, of which −ln δ/λ is 1.44 (99.99 %). Distances did not decide it, ...'
    """
    found = estimate.get("epsilon_mu")
    if found is None:
        return "ε_μ was not measured: the worst case is the only claim."
    said = f"ε_μ as measured: {figure(found)}"
    if "order" in estimate:
        share = 100 * estimate["conversion"] / found if found else 100.0
        said += f", at λ = {estimate['order']}, of which −ln δ/λ is {figure(estimate['conversion'])} ({share:.4g} %)"
    said += "."
    if not estimate.get("measured", True):
        said += " Distances did not decide it, the grid of orders did: it is no measurement."
    if "bernstein" in estimate:
        said += f" For any distances at all (Bernstein): {figure(estimate['bernstein'])}."
    return said
