"""The Bayesian accountant, which adds up privacy costs step by step."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublure.errors import PrivacyWarning, SettingError
from doublure.private.bayesian.moments import bernstein_log_mean, log_moment, student_t_log_mean
from doublure.support.checks import require_number, require_whole

Bound = Literal["student-t", "bernstein"]
DEFAULT_ORDERS = (1, 2, 4, 8, 16, 32)
FEWEST_DISTANCES = 3
_STATE = ("costs", "calls", "steps_taken")
_CERTAIN = "certain"


class StepsOverrunWarning(PrivacyWarning):
    """More steps were taken than planned, so that the total is an underestimate."""


class EqualDistancesWarning(PrivacyWarning):
    """All sampled distances of a step are the same, so that the confidence bound adds nothing to their mean."""


class BayesianAccountant:
    """Adds up Bayesian privacy costs, step by step.

    Args:
        orders: The λ at which costs are kept, whole numbers >= 1; ε_μ is the best over all of them.
        total_steps: T, fixed before the first step.
        confidence: 1 − γ of each call of :meth:`step`, in (0, 1). γ times the number of calls comes off δ_μ, so γ must
            be far below δ_μ / T.
        bound: "student-t", as in the paper and with its flaws, or "bernstein", distribution-free.
        paper_literal: Use max(c_L, c_R), equation 5 to the letter, instead of c_L.
        max_distance: A public bound that no distance can pass, by construction of the mechanism. Larger ones are
            counted as this, and no step ever costs more than at this distance. "bernstein" needs it.
        gamma: γ itself, instead of ``confidence``: 1 − γ is 1 in float64 for γ below 1e-16.
        union: Spend γ over the orders, γ / len(orders) on the bound of each (union bound): ε_μ is the best over all of
            them, chosen after the fact, so that all have to hold. False, the paper's way, spends all of γ on each.
            "bernstein" always spends it over them.

    Raises:
        SettingError: An argument is out of its range.

    Example:
        >>> accountant = BayesianAccountant(orders=[8, 16, 32], total_steps=1000, confidence=1 - 1e-15)
        >>> for _ in range(1000):
        ...     accountant.step([0.01, 0.02, 0.03, 0.05], noise_std=0.5, sample_rate=0.01)
        >>> round(accountant.epsilon(1e-10), 3), f"{accountant.delta(1.0):.2g}"
        (1.022, '2e-10')
    """

    def __init__(
        self,
        orders: Sequence[int],
        total_steps: int,
        confidence: float | None = None,
        bound: Bound = "student-t",
        paper_literal: bool = False,
        *,
        max_distance: float | None = None,
        gamma: float | None = None,
        union: bool = False,
    ) -> None:
        self.orders = tuple(require_whole(order, "orders", least=1) for order in orders)
        if not self.orders:
            raise SettingError("must not be empty", field="orders", remedy="give whole numbers such as 2, 4, 8")
        self.total_steps = require_whole(total_steps, "total_steps", least=1)
        if (confidence is None) == (gamma is None):
            raise SettingError("stands in for gamma", field="confidence", remedy="give one of the two")
        if gamma is None:
            self.gamma = 1.0 - require_number(confidence, "confidence", above=0.0, below=1.0)
        else:
            self.gamma = require_number(gamma, "gamma", above=0.0, below=1.0)
        if bound not in get_args(Bound):
            raise SettingError("is unknown", field="bound", remedy=f"use one of {', '.join(get_args(Bound))}")
        self.bound: Bound = bound
        self.union = bool(union) or bound == "bernstein"
        self.paper_literal = bool(paper_literal)
        if bound == "bernstein" and max_distance is None:
            raise SettingError("is missing", field="max_distance", remedy="bernstein needs a public bound on distances")
        self.max_distance = None if max_distance is None else require_number(max_distance, "max_distance", above=0.0)
        self.steps_taken = 0
        self.calls = 0
        self._costs = np.zeros(len(self.orders))
        self._certain = np.zeros(len(self.orders))

    @property
    def costs(self) -> NDArray[np.float64]:
        """Σ c_t(λ) so far, one for each order: shape (orders,)."""
        return self._costs.copy()

    @property
    def failure_probability(self) -> float:
        """The probability that some confidence bound so far did not hold: 1 − (1 − γ)^calls."""
        return -math.expm1(self.calls * math.log1p(-self.gamma))

    # -- charging --------------------------------------------------------------------------------------------------

    def step(self, distances: ArrayLike, noise_std: float, sample_rate: float, steps: int = 1) -> None:
        """Charge one noisy step, or several alike, priced by the same sampled distances.

        Args:
            distances: ‖g − g′‖ for independent records x′ ~ μ, shape (m,) with m >= 3, in the units of the noise. A
                record is whatever one neighbour has and the other lacks: in federated training, all that a user sends.
            noise_std: Standard deviation of the noise on the quantity whose distances these are, > 0.
            sample_rate: Poisson sampling rate q in (0, 1].
            steps: How many steps are alike; they are then priced jointly, as in the authors' code, which by Jensen's
                inequality is never less than one by one.

        Raises:
            SettingError: An argument is out of its range, or too few distances.

        Warns:
            StepsOverrunWarning: More than ``total_steps`` steps were taken.
            EqualDistancesWarning: All distances are the same, and below the largest that there can be.
        """
        sampled = np.asarray(distances, dtype=np.float64)
        if sampled.ndim != 1 or sampled.size < FEWEST_DISTANCES:
            raise SettingError(
                "must be a list", field="distances", remedy=f"sample at least {FEWEST_DISTANCES} of them in each step"
            )
        if not bool(np.all(np.isfinite(sampled) & (sampled >= 0))):
            raise SettingError("must be finite and not negative", field="distances")
        self._check(noise_std, sample_rate, steps)
        if self.max_distance is not None:
            sampled = np.minimum(sampled, self.max_distance)
        if self.bound == "student-t" and np.ptp(sampled) == 0.0 and sampled[0] != self.max_distance:
            warnings.warn("all sampled distances of a step are equal", EqualDistancesWarning, stacklevel=2)
        with np.errstate(over="ignore"):  # a cost beyond float64 is infinite, and so is ε_μ then
            # many of them are alike where gradients are clipped, and a moment takes longer than a look
            relative, place = np.unique(sampled / noise_std, return_inverse=True)
            found = [self._cost(order, relative, place, noise_std, sample_rate, steps) for order in self.orders]
        self._costs += [cost for cost, _ in found]
        self._certain += [certain for _, certain in found]
        self.calls += 1
        self._count(steps)

    def lost(self, noise_std: float, sample_rate: float, steps: int) -> None:
        """Charge noisy steps whose distances are lost, at the largest distance; no confidence bound can fail.

        Args:
            noise_std: As in :meth:`step`.
            sample_rate: As in :meth:`step`.
            steps: How many.

        Raises:
            SettingError: An argument is out of its range, or there is no ``max_distance``.
        """
        self._check(noise_std, sample_rate, steps)
        largest = [steps * self._largest(order, noise_std, sample_rate) for order in self.orders]
        self._costs += largest
        self._certain += largest
        self._count(steps)

    def add(self, costs: ArrayLike) -> None:
        """Charge another mechanism that is not among the T steps, by a cost that holds for every record.

        A bound on E[e^(λ L)] that does not depend on x′ comes out of the expectation over x′ as a factor, whatever else
        stands in it: its logarithm is added, and nothing is estimated.

        Args:
            costs: log E[e^(λ L)], for each order, >= 0: shape (orders,).
        """
        known = np.asarray(costs, dtype=np.float64)
        if known.shape != self._costs.shape or not bool(np.all(known >= 0)):
            raise SettingError("must be one for each order, and not negative", field="costs")
        self._costs += known
        self._certain += known

    def joined(self, other: BayesianAccountant) -> BayesianAccountant:
        """Return the joint cost of two mechanisms' steps, for records that both have seen.

        Costs add up where the powers p_t that they were averaged at (``total_steps``, of each mechanism's own) have
        inverses that come to 1 at most over all of both mechanisms' steps (Hölder's inequality: E[Π X_t] is at most
        Π E[X_t^p_t]^(1/p_t), however X_t depend on one another). In what is returned ``total_steps`` is so small that
        no later step, and no third mechanism, gets more of that 1 than is left.

        Args:
            other: Of the same orders and the same γ, spent in the same way.

        Raises:
            SettingError: It has others, or the powers are too small.
        """
        if (self.orders, self.gamma, self.union) != (other.orders, other.gamma, other.union):
            raise SettingError("keeps other orders or another gamma", field="other", remedy="give both the same")
        inverses = self.steps_taken / self.total_steps + other.steps_taken / other.total_steps
        if inverses > 1:  # two quotients that come to 1 do so in floating point, too
            raise SettingError("adds up to more than 1", field="total_steps", remedy="average each at a higher power")
        both = copy.deepcopy(self)
        both._costs += other._costs
        both._certain += other._certain
        both.calls += other.calls
        both.steps_taken += other.steps_taken
        both.total_steps = min(self.total_steps, other.total_steps)
        if inverses:
            both.total_steps = math.floor(both.steps_taken / inverses)
        return both

    # -- figures -----------------------------------------------------------------------------------------------------

    def epsilon(self, delta: float) -> float:
        """Return ε_μ at δ_μ = ``delta``: the least over λ of (cost − log(δ_μ − failure)) / λ, from equation 9.

        Raises:
            SettingError: δ_μ is not above the failure probability of the confidence bounds.
        """
        require_number(delta, "delta", above=0.0, below=1.0)
        if self._nothing:
            return 0.0
        left = delta - self.failure_probability
        if left <= 0.0:
            raise SettingError(
                f"{delta:g} is used up by the {self.calls} confidence bounds, which fail with probability "
                f"{self.failure_probability:.3g}",
                field="delta",
                remedy="raise delta, or use a confidence nearer to 1",
            )
        return float(np.min((self._costs - math.log(left)) / np.asarray(self.orders)))

    def best_order(self, delta: float) -> int:
        """Return the λ that :meth:`epsilon` rests on."""
        left = math.log(delta - self.failure_probability)
        return self.orders[int(np.argmin((self._costs - left) / np.asarray(self.orders)))]

    def certain_epsilon(self, delta: float) -> float:
        """Return ε_μ by the empirical Bernstein bound, which holds whatever distances there are; infinite if unknown.

        Example:
            >>> accountant = BayesianAccountant([8, 16], 1000, gamma=1e-15, max_distance=1.0)
            >>> accountant.step([0.01, 0.02, 0.03, 0.05], noise_std=0.5, sample_rate=0.01, steps=1000)
            >>> accountant.certain_epsilon(1e-10) > accountant.epsilon(1e-10)
            True
        """
        if self.max_distance is None:
            return math.inf
        certain = copy.copy(self)
        certain._costs = self._certain
        return certain.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """Return δ_μ at ε_μ = ``epsilon``, the failure probability of the confidence bounds included."""
        require_number(epsilon, "epsilon", above=0.0)
        if self._nothing:
            return 0.0
        log_delta = float(np.min(self._costs - np.asarray(self.orders) * epsilon))
        return min(1.0, math.exp(min(log_delta, 0.0)) + self.failure_probability)

    # -- keeping state -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return the state that a resumed run needs. Private: it was estimated from private gradients."""
        return {
            "costs": self.costs,
            _CERTAIN: self._certain.copy(),
            "calls": np.array([float(self.calls)]),
            "steps_taken": np.array([float(self.steps_taken)]),
        }

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Restore what :meth:`state` returned.

        Raises:
            SettingError: The state is that of another accountant.
        """
        if set(state) - {_CERTAIN} != set(_STATE) or np.shape(state["costs"]) != self._costs.shape:
            raise SettingError("is another accountant's", field="state", remedy="begin anew")
        self._costs = np.array(state["costs"], dtype=np.float64)
        unknown = np.full(len(self.orders), math.inf)  # a state that an earlier version kept has no such costs
        self._certain = np.array(state.get(_CERTAIN, unknown), dtype=np.float64)
        self.calls, self.steps_taken = int(state["calls"][0]), int(state["steps_taken"][0])

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _nothing(self) -> bool:
        return self.steps_taken == 0 and not self._costs.any()

    def _check(self, noise_std: float, sample_rate: float, steps: int) -> None:
        require_number(noise_std, "noise_std", above=0.0)
        require_number(sample_rate, "sample_rate", above=0.0, most=1.0)
        require_whole(steps, "steps", least=1)

    def _count(self, steps: int) -> None:
        self.steps_taken += steps
        if self.steps_taken > self.total_steps:
            warnings.warn(
                f"{self.steps_taken} steps taken but total_steps={self.total_steps}: privacy is underestimated",
                StepsOverrunWarning,
                stacklevel=3,
            )

    def _cost(
        self,
        order: int,
        relative: NDArray[np.float64],
        place: NDArray[np.intp],
        noise_std: float,
        sample_rate: float,
        steps: int,
    ) -> tuple[float, float]:
        """Return two upper bounds on c_t(λ), equation 8's and Bernstein's, for distances relative to the noise."""
        exponent = self.total_steps * steps
        values = exponent * log_moment(relative, order, sample_rate, paper_literal=self.paper_literal)[place]
        gamma = self.gamma / len(self.orders) if self.union else self.gamma
        if self.max_distance is None:
            return student_t_log_mean(values, gamma) / self.total_steps, math.inf
        cap = exponent * self._largest(order, noise_std, sample_rate)
        certain = bernstein_log_mean(values, self.gamma / len(self.orders), cap) / self.total_steps
        if self.bound == "student-t":
            return min(cap, student_t_log_mean(values, gamma)) / self.total_steps, certain
        return certain, certain

    def _largest(self, order: int, noise_std: float, sample_rate: float) -> float:
        """Return the log-moment of one step at the largest distance."""
        if self.max_distance is None:
            raise SettingError("is missing", field="max_distance", remedy="give a public bound on distances")
        return _one_moment(self.max_distance / noise_std, order, sample_rate, self.paper_literal)


@lru_cache(maxsize=1024)
def _one_moment(relative: float, order: int, sample_rate: float, paper_literal: bool) -> float:
    return float(log_moment(np.array([relative]), order, sample_rate, paper_literal=paper_literal)[0])
