"""Estimate of expected privacy loss: the effect of one real record on the synthetic ones.

Triastcyn & Faltings 2019, §4.2. For each of N real records drawn at random, its k nearest synthetic neighbours are
removed, as if the record had never been there. The Kullback-Leibler divergence between all synthetic records and the
remaining ones is estimated from nearest-neighbour distances (Pérez-Cruz 2008). The N losses give a μ that the loss of
one more record exceeds with probability at most γ.

The estimate is no ε, no bound on the risk of any person, and says nothing about another data set. The generator is not
fitted again without the record, so anything its weights remember stays invisible. k is a rule of thumb that largely
decides the figure. The estimate is computed from real records, without noise.

=================  ===================================================================================================
choice             here
=================  ===================================================================================================
k                  the paper's heuristic, "assuming that all the difference comes from one point": the smallest of 1, 2,
                   5, 10, … whose removal changes the synthetic records, on average over other real records (the
                   *trials*), by as much as they differ from the real ones; at most a tenth of them
neighbours         Euclidean distances in the extractor's features; a k-d tree where the features are few
a record itself    is in both sets, and not its own neighbour: otherwise the divergence of a set from a subset would be
                   infinite
negative losses    are kept (the estimator may fall below 0); μ itself is at least 0
equal records      have no density: :mod:`doublure.measures.divergence` says when they are refused
=================  ===================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import Field

from doublure.errors import DataError, SettingError, counted
from doublure.intervals import Interval, Result
from doublure.measures.divergence import Neighbourhood, Rows, divergence
from doublure.measures.embedding import embed_table
from doublure.measures.images import feature_extractors as extractors
from doublure.measures.tables.coding import Coder
from doublure.results import INTERNAL
from doublure.schema import ResolvedSchema
from doublure.schema.images import ImageSchema
from doublure.support.arrays import Floats

PAPER_GAMMA = 1e-5
"""γ of the paper's table 2, which would need 10⁵ pairs."""

_LADDER = (1, 2, 5)
_LARGEST_SHARE = 0.1  # of the synthetic records, for k
_FEWEST_TRIALS = 10
_TRIALS_SHARE = 20  # pairs for each trial
_RESAMPLES = 1000


class EstimatorConfig(Result):
    """Configuration fixed before any result is seen.

    Attributes:
        pairs: N, the number of real records drawn.
        features: The extractor's name.
        artificial: The number of synthetic records drawn.
        seed: Fixes the synthetic records and the choice of real ones.
    """

    pairs: int = Field(default=1000, ge=2, le=1_000_000)
    features: str = "student"
    artificial: int = Field(default=5000, ge=20, le=20_000)
    seed: int = Field(default=0, ge=0, lt=2**31)

    @property
    def trials(self) -> int:
        """Number of other real records that choose k."""
        return max(_FEWEST_TRIALS, self.pairs // _TRIALS_SHARE)

    @property
    def gamma(self) -> float:
        """Smallest γ that this number of pairs can reach."""
        return reachable(self.pairs)


class ExpectedLoss(Result):
    """The estimate. Computed on real data: internal.

    Attributes:
        features: The features that distances were measured in.
        width: Number of features.
        artificial: Number of synthetic records.
        pairs: N.
        seed: Fixed all draws.
        k: Neighbours removed for each record.
        k_reached: Whether removing k changes as much as the rule asks; otherwise k is the largest allowed.
        divergence: Estimated divergence of the real records from the synthetic ones, by which k was chosen.
        mean: Mean of the losses.
        upper_deviation: σ₊, the root of their upper semi-variance.
        gamma: γ, which is 1/(N + 1).
        mu: μ at γ by Saw, Yang and Mo (1984), who assume neither mean nor variance known.
        interval: 95 % interval of μ over resamples of the pairs, given the synthetic records and k. Redrawing these may
            change μ by more.
        mu_chebyshev: μ at γ by Chebyshev with the upper semi-variance, as if mean and variance were known.
        mu_paper: The same at the paper's γ of 1e-5.
        interval_paper: 95 % interval of the latter over resamples.
    """

    version: Literal[1] = 1
    internal: str = INTERNAL
    features: str
    width: int
    artificial: int
    pairs: int
    seed: int
    k: int
    k_reached: bool
    divergence: float
    mean: float
    upper_deviation: float
    gamma: float
    mu: float
    interval: Interval
    mu_chebyshev: float
    mu_paper: float
    interval_paper: Interval

    @property
    def space(self) -> str:
        """The feature space of the distances, in words."""
        return extractors.CLASSIFIER_OF_SYNTHETIC if self.features == "student" else self.features

    @property
    def basis(self) -> str:
        """The basis of μ in words; it holds no figure of the data, but says whether k meets the rule."""
        short = "" if self.k_reached else "; here the rule asks for more, so that μ may be far too low"
        return (
            f"μ is estimated from {self.pairs} pairs: {self.artificial} synthetic records, and the same without "
            "those nearest to a record of the data that their owner names as the fit's, by distances in the features "
            f"{self.space}; how many are left out follows the rule of thumb of Triastcyn & Faltings (2019), at most a "
            f"tenth of them{short}; the bound is that of Saw, Yang and Mo (1984)"
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """The estimate in words."""
        low, high = self.interval
        reached = "" if self.k_reached else " (the largest allowed: the rule asks for more)"
        return (
            f"Empirical estimate for this data set only: expected privacy loss μ={self.mu:.4g} (95 % over "
            f"the pairs alone: {low:.4g} to {high:.4g}) at γ={self.gamma:.3g}, the least that {self.pairs} pairs can "
            "show. This is not ε and bounds no individual's risk.",
            f"It rests on distances in the features {self.space} ({self.width} numbers), "
            f"{counted(self.artificial, 'synthetic record')}, k={self.k}{reached}; mean loss {self.mean:.4g}, upper "
            f"deviation {self.upper_deviation:.4g}. By the paper’s formula, as if these two were known, "
            f"μ={self.mu_chebyshev:.4g} at γ={self.gamma:.3g}, {self.mu_paper:.4g} at γ={PAPER_GAMMA:g}.",
        )


# -- formulae ----------------------------------------------------------------------------------------------------------


def reachable(pairs: int) -> float:
    """Return the smallest γ that Saw, Yang and Mo's inequality can show with this number of pairs."""
    return 1 / (pairs + 1)


def chebyshev(losses: Floats, gamma: float) -> float:
    """Return μ = mean + σ₊ / √γ, by Chebyshev's inequality with the upper semi-variance (2019, equation 5).

    The sample mean and semi-variance stand for those of the distribution.

    Example:
        >>> chebyshev(np.array([1.0, 2.0, 3.0, 10.0]), 0.01)
        34.0
    """
    return float(losses.mean() + upper_deviation(losses) / math.sqrt(gamma))


def upper_deviation(losses: Floats) -> float:
    """Return σ₊: the root of the mean of max(x − mean, 0)²."""
    return float(np.sqrt(np.square(np.maximum(losses - losses.mean(), 0)).mean()))


def saw_yang_mo(losses: Floats, gamma: float) -> float:
    """Return the μ that one more loss exceeds with probability at most γ, with mean and variance estimated.

    Saw, Yang and Mo 1984: P(abs(X − X̄) ≥ λQ) ≤ ⌊(N+1)/N · ((N−1)/λ² + 1)⌋ / (N+1) with Q = S √((N+1)/N), for any
    exchangeable draws. The right side only takes the values j/(N+1), j ≥ 1; this is the limit of the λ that reach γ.

    Args:
        losses: ``(N,)``, at least two.
        gamma: γ, at least 1/(N+1).

    Raises:
        SettingError: There are too few losses to show so small a γ.
    """
    return float(losses.mean() + _multiple(len(losses), gamma) * np.std(losses, ddof=1))


def _multiple(n: int, gamma: float) -> float:
    """Return the distance from the mean that a loss must exceed, in sample deviations S."""
    steps = math.floor(gamma * (n + 1) * (1 + 1e-12))  # 1/(N+1) times N+1 is not always 1 in floating point
    if n < 2 or steps < 1:
        remedy = f"{n} pairs can show {reachable(n):.3g}; draw more pairs"
        raise SettingError("is below what so many pairs can show", field="gamma", remedy=remedy)
    room = (steps + 1) * n / (n + 1) - 1
    return math.sqrt((n - 1) / room) * math.sqrt((n + 1) / n)


# -- the estimate ------------------------------------------------------------------------------------------------------


def choose_k(near: Neighbourhood, trials: Rows, wanted: float) -> tuple[int, bool]:
    """Return the smallest k whose removal changes the synthetic records by ``wanted`` on average.

    Args:
        near: The synthetic records.
        trials: ``(T, most)`` the synthetic records nearest to each of T real ones, the nearest first.
        wanted: The divergence of the real records from the synthetic ones.

    Returns:
        k, and whether it changes them by that much; if no k does, the largest.
    """
    most = trials.shape[1]
    ladder = [step * 10**power for power in range(len(str(most))) for step in _LADDER if step * 10**power < most]
    for k in (*ladder, most):
        if np.mean([near.loss(own[:k]) for own in trials]) >= wanted:
            return k, True
    return most, False


def estimate(artificial: Floats, real: Floats, rule: EstimatorConfig) -> ExpectedLoss:
    """Estimate the expected privacy loss.

    Args:
        artificial: ``(n, d)`` features of synthetic records.
        real: ``(R, d)`` features of the real records the synthesizer was fitted on.
        rule: Configuration fixed beforehand.

    Raises:
        DataError: There are too few records, or too many equal ones.
    """
    rng = np.random.default_rng(rule.seed)
    return _of_drawn(artificial, real[_drawn(len(real), len(artificial), rule, rng)], rule, rng)


def _drawn(real: int, artificial: int, rule: EstimatorConfig, rng: np.random.Generator) -> Rows:
    """Return the indices of the real records used, in the order of their use.

    Raises:
        DataError: There are too few.
    """
    needed = rule.pairs + rule.trials
    if real < needed:
        remedy = f"give {needed}, or plan with fewer pairs"
        raise DataError("has too few records for the pairs that were planned", field="the real data", remedy=remedy)
    return rng.permutation(real)[: max(needed, artificial)]


def _of_drawn(artificial: Floats, sample: Floats, rule: EstimatorConfig, rng: np.random.Generator) -> ExpectedLoss:
    most = max(1, int(_LARGEST_SHARE * len(artificial)))
    near = Neighbourhood(artificial, most)
    apart = divergence(sample, artificial, named="the real data")
    k, reached = choose_k(near, near.nearest(sample[rule.pairs : rule.pairs + rule.trials], most), apart)
    holes = near.nearest(sample[: rule.pairs], k)
    losses = np.array([near.loss(removed) for removed in holes])
    return _summed_up(losses, rule, artificial.shape, apart, (k, reached), rng)


def _summed_up(
    losses: Floats,
    rule: EstimatorConfig,
    shape: Sequence[int],
    apart: float,
    chosen: tuple[int, bool],
    rng: np.random.Generator,
) -> ExpectedLoss:
    resamples = losses[rng.integers(len(losses), size=(_RESAMPLES, len(losses)))]
    multiple = _multiple(len(losses), rule.gamma)
    sampled = np.maximum(resamples.mean(axis=1) + multiple * resamples.std(axis=1, ddof=1), 0)
    papers = [max(0.0, chebyshev(each, PAPER_GAMMA)) for each in resamples]
    return ExpectedLoss(
        features=rule.features,
        width=shape[1],
        artificial=shape[0],
        pairs=len(losses),
        seed=rule.seed,
        k=chosen[0],
        k_reached=chosen[1],
        divergence=apart,
        mean=float(losses.mean()),
        upper_deviation=upper_deviation(losses),
        gamma=rule.gamma,
        mu=max(0.0, saw_yang_mo(losses, rule.gamma)),
        interval=_middle(sampled),
        mu_chebyshev=max(0.0, chebyshev(losses, rule.gamma)),
        mu_paper=max(0.0, chebyshev(losses, PAPER_GAMMA)),
        interval_paper=_middle(np.array(papers)),
    )


def _middle(values: Floats) -> Interval:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


# -- of a synthesizer --------------------------------------------------------------------------------------------------


class FittedSynthesizer(Protocol):
    """A fitted synthesizer, as the estimate needs it."""

    @property
    def schema(self) -> ResolvedSchema:
        """Every fact known."""

    def draw(self, n: int, *, seed: int | None = None) -> Any:
        """Return ``n`` synthetic records in the container of their kind."""


def of_synthesizer(
    syn: FittedSynthesizer, real: Any, rule: EstimatorConfig, *, extractor: extractors.Extractor | None = None
) -> ExpectedLoss:
    """Estimate the expected privacy loss of a synthesizer's records. The result is internal.

    Args:
        syn: The synthesizer.
        real: The records it was fitted on, as its schema's source loads them.
        rule: Configuration fixed beforehand.
        extractor: An extractor without a name in the rule, such as
            :func:`doublure.measures.images.feature_extractors.inception_v3`; its name replaces the rule's.

    Raises:
        DataError: There are too few records, or too many equal ones.
        SettingError: The extractor is not available.
    """
    artificial = syn.draw(rule.artificial, seed=rule.seed + 1)
    if syn.schema.only_columns:
        coder = Coder(schema=syn.schema)
        drawn = embed_table(coder, coder.read(artificial, "the synthetic table")).values
        return estimate(drawn, embed_table(coder, coder.read(real, "the real table")).values, rule)
    wrong = SettingError("is estimated of tables and images", field="expected loss", remedy="leave it out")
    schema = ImageSchema.of(syn.schema, wrong)
    if extractor is None:
        # The classifier is trained on other synthetic images than those measured: it would have memorised these.
        training = syn.draw(rule.artificial, seed=rule.seed + 2)
        labels = extractors.encode_labels(schema, training)
        extractor = extractors.find_extractor(rule.features, training, labels, rule.seed)
    named, rng = rule.model_copy(update={"features": extractor.name}), np.random.default_rng(rule.seed)
    drawn = real.take(_drawn(len(real), len(artificial), rule, rng))  # spares a large extractor the other records
    return _of_drawn(extractor.extract(artificial), extractor.extract(drawn), named, rng)
