"""The Bayesian accountant of Triastcyn and Faltings (Algorithms 2022, section 2.4, equations 5 to 9).

Where differential privacy bounds the privacy loss for the worst record, the Bayesian accountant bounds it **in
expectation over a record x′ drawn from the data's own distribution μ**. It is fed, at every noisy step, with sampled
distances ‖g − g′‖ between gradients with and without one record, and returns (ε_μ, δ_μ)-Bayesian DP:

    c_t(λ) = (1/T) log E_x′[ E_{k~Bin(λ+1,q)}[exp((k² − k) ‖g − g′‖² / 2σ²)]^T ]      (6), "c_L"
    log δ_μ ≤ Σ_t c_t(λ) − λ ε_μ                                                    (9), Theorem 1

What a reader must know before using the figures:

- They are estimates from private gradients. They are not ε, never add to one, and protect no record from elsewhere.
- T, the number of noisy steps, is fixed in advance: it is an exponent. An upper bound is fine, an overrun is not.
- The expectation is replaced by an upper confidence bound from m sampled distances (equation 8). Its failure
  probability is charged against δ_μ, once for each call of :meth:`BayesianAccountant.step`.
- ``student-t`` is the paper's bound. It is a heuristic: e^(Tc) is so heavy-tailed that its coverage collapses for
  λ >= 4 (``benchmarks/bayesian_coverage.py``). ``bernstein`` holds for any distribution of distances up to a public
  maximum, and is often no better than that maximum.
- The paper takes the larger of c_L and a second cost c_R (7). For lots drawn by Poisson sampling under add/remove the
  first already dominates (Mironov, Talwar and Zhang 2019, Theorem 5), and c_R is merely loose; the authors' own code
  uses c_L only, and so does this accountant unless ``paper_literal``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, stdtrit, xlog1py, xlogy

from doublure.errors import PrivacyWarning, SettingError

Bound = Literal["student-t", "bernstein"]
DEFAULT_ORDERS = (1, 2, 4, 8, 16, 32)

_FEWEST_DISTANCES = 3


class StepsOverrunWarning(PrivacyWarning):
    """More steps were taken than were planned: the total is an underestimate."""


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
        max_distance: For "bernstein" (and only there): a public bound that no distance can pass, by construction of
            the mechanism. Larger ones are counted as this.

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
        confidence: float,
        bound: Bound = "student-t",
        paper_literal: bool = False,
        *,
        max_distance: float | None = None,
    ) -> None:
        self.orders = tuple(_whole(order, "orders") for order in orders)
        if not self.orders:
            raise SettingError("must not be empty", field="orders", remedy="give whole numbers such as 2, 4, 8")
        self.total_steps = _whole(total_steps, "total_steps")
        self.confidence = _number(confidence, "confidence", below=1.0)
        if bound not in get_args(Bound):
            raise SettingError("is unknown", field="bound", remedy=f"use one of {', '.join(get_args(Bound))}")
        self.bound: Bound = bound
        self.paper_literal = bool(paper_literal)
        if bound == "bernstein" and max_distance is None:
            raise SettingError("is missing", field="max_distance", remedy="bernstein needs a public bound on distances")
        if bound == "student-t" and max_distance is not None:
            raise SettingError("is not used by student-t", field="max_distance", remedy='use bound="bernstein"')
        self.max_distance = None if max_distance is None else _number(max_distance, "max_distance")
        self.steps_taken = 0
        self.calls = 0
        self._costs = np.zeros(len(self.orders))

    @property
    def costs(self) -> NDArray[np.float64]:
        """Σ c_t(λ) so far, one for each order: shape (orders,)."""
        return self._costs.copy()

    @property
    def failure_probability(self) -> float:
        """The probability that some confidence bound so far did not hold: 1 − (1 − γ)^calls."""
        return -math.expm1(self.calls * math.log(self.confidence))

    def step(self, distances: ArrayLike, noise_std: float, sample_rate: float, steps: int = 1) -> None:
        """Charge one noisy step, or several alike, priced by the same sampled distances.

        Args:
            distances: ‖g − g′‖ for independent records x′ ~ μ, shape (m,) with m >= 3, in the units of the noise.
            noise_std: Standard deviation of the noise on the quantity whose distances these are, > 0.
            sample_rate: Poisson sampling rate q in (0, 1].
            steps: How many steps are alike; they are then priced jointly, as in the authors' code, which by Jensen's
                inequality is never less than one by one.

        Raises:
            SettingError: An argument is out of its range, or too few distances.

        Warns:
            StepsOverrunWarning: More than ``total_steps`` steps were taken.
            EqualDistancesWarning: All distances are the same.
        """
        sampled = np.asarray(distances, dtype=np.float64)
        if sampled.ndim != 1 or sampled.size < _FEWEST_DISTANCES:
            raise SettingError(
                "must be a list", field="distances", remedy=f"sample at least {_FEWEST_DISTANCES} of them in each step"
            )
        if not bool(np.all(np.isfinite(sampled) & (sampled >= 0))):
            raise SettingError("must be finite and not negative", field="distances")
        _number(noise_std, "noise_std")
        _number(sample_rate, "sample_rate", most=1.0)
        _whole(steps, "steps")
        if self.max_distance is not None:
            sampled = np.minimum(sampled, self.max_distance)
        if float(np.ptp(sampled)) == 0.0 and self.bound == "student-t":
            warnings.warn("all sampled distances of a step are equal", EqualDistancesWarning, stacklevel=2)
        with np.errstate(over="ignore"):  # a cost beyond float64 is infinite, and so is ε_μ then
            relative = sampled / noise_std
            self._costs += [self._cost(order, relative, noise_std, sample_rate, steps) for order in self.orders]
        self.calls += 1
        self.steps_taken += steps
        if self.steps_taken > self.total_steps:
            warnings.warn(
                f"{self.steps_taken} steps taken but total_steps={self.total_steps}: privacy is underestimated",
                StepsOverrunWarning,
                stacklevel=2,
            )

    def epsilon(self, delta: float) -> float:
        """Return ε_μ at δ_μ = ``delta``: the least over λ of (cost − log(δ_μ − failure)) / λ, from equation 9.

        Raises:
            SettingError: δ_μ is not above the failure probability of the confidence bounds.
        """
        _number(delta, "delta", below=1.0)
        if self.calls == 0:
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

    def delta(self, epsilon: float) -> float:
        """Return δ_μ at ε_μ = ``epsilon``, the failure probability of the confidence bounds included."""
        _number(epsilon, "epsilon")
        if self.calls == 0:
            return 0.0
        log_delta = float(np.min(self._costs - np.asarray(self.orders) * epsilon))
        return min(1.0, math.exp(min(log_delta, 0.0)) + self.failure_probability)

    def _cost(
        self, order: int, relative: NDArray[np.float64], noise_std: float, sample_rate: float, steps: int
    ) -> float:
        """Return the upper confidence bound on c_t(λ), equation 8, for distances relative to the noise."""
        exponent = self.total_steps * steps
        values = exponent * log_moment(relative, order, sample_rate, paper_literal=self.paper_literal)
        gamma = 1.0 - self.confidence
        if self.bound == "student-t" or self.max_distance is None:
            return student_t_log_mean(values, gamma) / self.total_steps
        largest = np.array([self.max_distance / noise_std])
        cap = exponent * float(log_moment(largest, order, sample_rate, paper_literal=self.paper_literal)[0])
        # the best λ is chosen after the fact, so that the bounds must hold for all of them together
        return bernstein_log_mean(values, gamma / len(self.orders), cap) / self.total_steps


def log_moment(
    relative: NDArray[np.float64], order: int, sample_rate: float, *, paper_literal: bool = False
) -> NDArray[np.float64]:
    """Return log E_k[exp((k² − k) r² / 2)], k ~ Bin(λ + 1, q): the inner expectation of equation 6.

    Args:
        relative: Distances over the noise's standard deviation, r = ‖g − g′‖ / σ, shape (m,).
        order: λ.
        sample_rate: q.
        paper_literal: Take the larger of it and log E_k[exp((k² + k) r² / 2)], k ~ Bin(λ, q), equation 7.

    Returns:
        Shape (m,), >= 0.

    Example:
        >>> log_moment(np.array([0.0, 1.0]), order=1, sample_rate=1.0)
        array([0., 1.])
    """
    with np.errstate(over="ignore"):
        squares = np.asarray(relative, dtype=np.float64)[:, None] ** 2 / 2.0
    result = _log_one_plus_expectation(squares, order + 1, sample_rate, -1)
    if paper_literal:
        result = np.maximum(result, _log_one_plus_expectation(squares, order, sample_rate, +1))
    return result


def _log_one_plus_expectation(squares: NDArray[np.float64], trials: int, rate: float, sign: int) -> NDArray[np.float64]:
    """Return log E_k[exp((k² ± k) x)] as log(1 + E_k[exp(…) − 1]), which keeps its digits when it is near nought."""
    counts, log_weights = _binomial(trials, rate)
    pairs = counts**2 + sign * counts
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.where(pairs > 0, pairs * squares, 0.0)  # nought of an infinite square is nought
        terms = np.where(log_weights > -np.inf, log_weights + exponents + np.log(-np.expm1(-exponents)), -np.inf)
    return np.asarray(np.logaddexp(0.0, logsumexp(terms, axis=1)))


@lru_cache(maxsize=128)
def _binomial(trials: int, rate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return k = 0, 1, …, trials and the logarithms of their probabilities."""
    counts = np.arange(trials + 1, dtype=np.float64)
    ways = gammaln(trials + 1) - gammaln(counts + 1) - gammaln(trials - counts + 1)
    return counts, ways + xlogy(counts, rate) + xlog1py(trials - counts, -rate)


def student_t_log_mean(values: NDArray[np.float64], gamma: float) -> float:
    """Return the log of the paper's upper bound on E[e^value], equation 8; heuristic.

    mean + t(1 − γ; m − 1) · s / √(m − 1), where s is the sample's standard deviation with divisor m.

    Args:
        values: Logarithms of the sampled quantities, shape (m,).
        gamma: Nominal failure probability.
    """
    top = float(np.max(values))
    if top == math.inf:
        return math.inf
    excess = np.expm1(values - top)  # in units of e^top, less one: neither overflow nor lost digits
    spread = -float(stdtrit(values.size - 1, gamma)) * float(np.std(excess)) / math.sqrt(values.size - 1)
    return top + math.log1p(float(np.mean(excess)) + spread)


def bernstein_log_mean(values: NDArray[np.float64], gamma: float, cap: float) -> float:
    """Return the log of an upper bound on E[e^value] that holds with probability 1 − γ for any law on [0, cap].

    Empirical Bernstein (Maurer and Pontil 2009, Theorem 4) for e^value in [1, e^cap], never above e^cap:
    mean + √(2 V log(2/γ) / m) + 7 (e^cap − 1) log(2/γ) / (3 (m − 1)), where V has the divisor m − 1.

    Args:
        values: Logarithms of m independent samples, each in [0, cap], shape (m,).
        gamma: Failure probability.
        cap: The largest possible value.
    """
    if cap <= 0.0:
        return 0.0
    if cap == math.inf:
        return math.inf
    size, depth = values.size, math.log(2.0 / gamma)
    top = float(np.max(values))
    excess = np.expm1(values - top)
    spread = float(np.std(excess, ddof=1)) * math.sqrt(2.0 * depth / size)
    body = top + math.log1p(float(np.mean(excess)) + spread)
    log_range = cap + math.log(-math.expm1(-cap)) + math.log(7.0 * depth / (3.0 * (size - 1)))
    return min(cap, float(np.logaddexp(body, log_range)))


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return the Bayesian guarantee for k records of the same distribution: (kε_μ, k e^(kε_μ) δ_μ), Proposition 3.

    A δ_μ of 1 means that nothing is guaranteed.

    Example:
        >>> epsilon, delta = group_privacy(0.5, 1e-10, 4)
        >>> epsilon, f"{delta:.3g}"
        (2.0, '2.96e-09')
    """
    _number(epsilon, "epsilon")
    _number(delta, "delta", below=1.0)
    _whole(size, "size")
    return size * epsilon, math.exp(min(0.0, math.log(size) + size * epsilon + math.log(delta)))


@dataclass(frozen=True, kw_only=True)
class Percentile:
    """For a share of the records drawn from μ, the loss passes ε with probability at most δ."""

    share: float
    epsilon: float
    delta: float


def percentiles(
    epsilon: float, delta: float, shares: Sequence[float] = (0.9, 0.99, 0.999, 0.9999, 0.99999)
) -> tuple[Percentile, ...]:
    """Return what (ε_μ, δ_μ)-Bayesian DP means record by record, by Markov's inequality (equation 12).

    E_x′[Δ(ε, x′)] <= δ_μ, hence Pr_x′[Δ(ε, x′) > δ] <= δ_μ / δ: at least a share p of records drawn from μ enjoys
    (ε, δ_μ / (1 − p))-DP. It is a statement about one record drawn at random, not about all the records of a data set
    at once, and about none from elsewhere.

    Args:
        epsilon: ε_μ.
        delta: δ_μ.
        shares: The shares p, each in (0, 1).

    Example:
        >>> [f"{row.share} {row.delta:.0e}" for row in percentiles(1.0, 1e-10, (0.99, 0.99999))]
        ['0.99 1e-08', '0.99999 1e-05']
    """
    _number(epsilon, "epsilon")
    _number(delta, "delta", below=1.0)
    return tuple(
        Percentile(share=share, epsilon=epsilon, delta=min(1.0, delta / (1.0 - _number(share, "shares", below=1.0))))
        for share in shares
    )


def _number(value: object, field: str, *, below: float = math.inf, most: float = math.inf) -> float:
    """Return a finite number above 0, and refuse anything else by name, without printing it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < below or value > most:
        limit = f" and below {below:g}" if below < math.inf else f" and at most {most:g}" if most < math.inf else ""
        raise SettingError("is out of range", field=field, remedy=f"give a number above 0{limit}")
    return float(value)


def _whole(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingError("must be a whole number", field=field, remedy="give 1 or more")
    return value
