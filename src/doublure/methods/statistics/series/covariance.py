"""Estimation of means and covariances of all channels' cosines from a noisy sum of outer products.

All of it is post-processing. The noise of an entry does not depend on their number, so that all entries are released
and noise is removed afterwards by shrinkage. For the covariance within groups, :func:`shrink_covariance` works in
three steps:

1. Frequencies of one octave share a variance for each channel and a correlation of channels, which is similar in all
   octaves.
2. From the rest, eigenvalues beyond the edge of noise are kept (a spiked Wigner matrix), in nested blocks of the lowest
   frequencies.
3. The correlation of channels over all frequencies is known best, and is restored by one linear map of channels.

Groups differ from their common moments as far as noise does not explain the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from doublure.methods.statistics.series.marginal_tables import Ints, octaves, shrink

Floats: TypeAlias = npt.NDArray[np.float64]

_FLOOR = 0.003
"""Least eigenvalue of a correlation matrix."""
_SWEEPS = 20
_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_FEWEST = 5.0
_LEAST_SHARE = 1e-6
_MOST_SCALED = 30.0


@dataclass(frozen=True, kw_only=True)
class ScoreProducts:
    """A noisy sum of outer products of ``(1, shifts, cosines)``, group by group, with the factors taken out.

    Attributes:
        sums: ``(groups, 1 + K + D, 1 + K + D)``, symmetric; cosines frequency by frequency, weighted.
        deviations: Standard deviation of the noise of each entry off the diagonal.
        total: ``(1 + K + D, 1 + K + D)`` of all groups together, as well as it is known.
        of_total: Its deviations.
        weights: ``(length,)`` weight of each frequency's cosines.
        channels: C, with D = length C.
        blocks: Number of values of each attribute that shifts the scores; K together.
        numbers: For each of these attributes the public numbers ``(values,)`` that its groups stand for; None where its
            values are no numbers.
        series: N, number of series.
        pairs: ``(K, K)`` shares of each two of these attributes' values, of one attribute on the diagonal alone; None:
            products alone say them.
    """

    sums: Floats
    deviations: Floats
    total: Floats
    of_total: Floats
    weights: Floats
    channels: int
    blocks: tuple[int, ...]
    numbers: tuple[Floats | None, ...]
    series: float
    pairs: Floats | None = None

    @property
    def shifts(self) -> int:
        """K, the values of all attributes that shift the scores."""
        return sum(self.blocks)


@dataclass(frozen=True, kw_only=True)
class ScoreMoments:
    """Estimated moments of normal scores' cosines, unweighted, frequency by frequency.

    Attributes:
        shares: ``(groups,)`` adding up to 1.
        means: ``(groups, D)``.
        covariances: ``(groups, D, D)``.
        effects: ``(K, D)`` shift of the mean by each value of a shifting attribute.
        effect_shares: ``(K,)`` share of each of these values.
        shares_within: ``(groups, K)`` their shares in each group.
        effect_pairs: ``(K, K)`` shares of each two of these values; of one attribute, on the diagonal alone.
    """

    shares: Floats
    means: Floats
    covariances: Floats
    effects: Floats
    effect_shares: Floats
    shares_within: Floats
    effect_pairs: Floats


def estimate_moments(moments: ScoreProducts) -> ScoreMoments:
    """Return means and covariances.

    Over all steps and series the second moment of a channel's scores is one by construction. Clipping and shrinkage
    reduce it, which a scale for each channel corrects.
    """
    groups, size, channels = len(moments.sums), len(moments.weights), moments.channels
    first = 1 + moments.shifts
    octave = np.repeat(octaves(size), channels)
    weights = np.repeat(moments.weights, channels)
    counts = np.maximum(moments.sums[:, 0, 0], _FEWEST) if groups > 1 else np.array([moments.series])
    counts = counts * moments.series / counts.sum()
    # Means: common to all groups, shrunk by octave; then effects of attributes; then each group's difference, shrunk.
    # What a group's own share of values shifts is no difference of the group: it counts once.
    total, series = moments.total, moments.series
    of_mean, of_entry = moments.deviations[0, first], moments.deviations[first, first]
    together = _by_octave(total[0, first:] / series, (moments.of_total[0, first] / series) ** 2, octave)
    pairs = _counted_pairs(moments) if moments.pairs is None else moments.pairs
    effects, effect_shares = _effects(moments, pairs, together, octave), np.diag(pairs).copy()
    shares, shares_within = counts / series, _within(moments, counts, effect_shares)
    means = np.tile(together, (groups, 1))
    if groups > 1:
        for place, count in enumerate(counts):
            own = moments.sums[place, 0, first:] / count - together - shares_within[place] @ effects
            means[place] += _by_octave(own, (of_mean / count) ** 2, octave)
    # Covariance within groups: second moments less those of means and effects, denoised and scaled.
    within = total[first:, first:] / series - np.einsum("g,gi,gj->ij", shares, means, means)
    within -= effects.T @ pairs @ effects
    deviation = moments.of_total[first, first] / series
    common = shrink_covariance(within, deviation, channels=channels, weights=moments.weights)
    scaled = _scale(common, means, effects, shares, pairs, weights, channels)
    common = common * np.outer(scaled, scaled)
    means, effects = means * scaled, effects * scaled
    # Each group's covariance: the common one and its difference, shrunk for each pair of octaves.
    shifted = effects.T @ pairs @ effects
    covariances = np.empty((groups, *common.shape))
    for place, count in enumerate(counts):
        block: Floats = common
        if groups > 1:
            found = moments.sums[place, first:, first:] / count * np.outer(scaled, scaled)
            apart = found - np.outer(means[place], means[place]) - shifted - common
            block = common + _by_blocks(apart, (of_entry * scaled.mean() ** 2 / count) ** 2, octave)
        covariances[place] = make_positive(block) / np.outer(weights, weights)
    return ScoreMoments(
        shares=shares,
        means=means / weights,
        covariances=covariances,
        effects=effects / weights,
        effect_shares=effect_shares,
        shares_within=shares_within,
        effect_pairs=pairs,
    )


def _effects(moments: ScoreProducts, pairs: Floats, together: Floats, octave: Ints) -> Floats:
    """Return the effects of shifting attributes' values ``(K, D)``.

    They are a least squares fit of the products with cosines, whose noise is the same in each: a value of few series
    says little. Those of a number's groups are shrunk towards a line through them, so that such a group is as its
    neighbours say.
    """
    if not moments.shifts:
        return np.zeros((0, len(together)))
    first, shares, noise = 1 + moments.shifts, np.diag(pairs), moments.of_total[1, 1 + moments.shifts]
    known = pairs * moments.series
    crossed = moments.total[1:first, first:] - np.outer(np.diag(known), together)
    # A number's groups on a line, then what the line leaves; values of lists by themselves.
    lines = [
        np.eye(size) if numbers is None else _line(numbers, own)
        for size, numbers, own in zip(
            moments.blocks, moments.numbers, np.split(shares, np.cumsum(moments.blocks)[:-1]), strict=True
        )
    ]
    basis, beside = block_diag(*lines), np.concatenate([np.full(len(own), own.shape[1] == 1) for own in lines])
    found: Floats = basis @ _regressed(known @ basis, crossed, noise, octave)
    if beside.any():
        rest = _regressed(known, crossed - known @ found, noise, octave)
        found += np.where(beside[:, None], rest, 0)
    return found


def _counted_pairs(moments: ScoreProducts) -> Floats:
    """Return the shares ``(K, K)`` of each two values, from products.

    A value's share stands in two of them: with the constant, and with itself, where noise has twice the variance. Two
    values of one attribute never meet. How far attributes depend on one another is shrunk.
    """
    if not moments.shifts:
        return np.zeros((0, 0))
    first = 1 + moments.shifts
    products = moments.total[1:first, 1:first] / moments.series
    shares = _shares((2 * moments.total[0, 1:first] / moments.series + np.diag(products)) / 3, moments.blocks)
    found, ends = _independent(shares, moments.blocks), np.cumsum([0, *moments.blocks])
    for one, other in combinations([slice(*own) for own in pairwise(ends)], 2):
        apart = shrink(products[one, other] - found[one, other], (moments.of_total[1, 1] / moments.series) ** 2)
        found[one, other] += apart
        found[other, one] += apart.T
    return found


def _independent(shares: Floats, blocks: tuple[int, ...]) -> Floats:
    """Return the shares ``(K, K)`` of each two values of attributes that do not depend on one another."""
    found = np.outer(shares, shares)
    for own in np.split(np.arange(len(shares)), np.cumsum(blocks)[:-1]):
        found[np.ix_(own, own)] = np.diag(shares[own])
    return found


def _line(numbers: Floats, shares: Floats) -> Floats:
    """Return a column ``(values, 1)`` along a number's groups, of mean zero and deviation one over series."""
    place = numbers - shares @ numbers
    found: Floats = (place / np.sqrt(shares @ place**2))[:, None]
    return found


def _regressed(known: Floats, crossed: Floats, noise: float, octave: Ints) -> Floats:
    """Return effects ``(B, D)`` by least squares, each expected to be of a deviation's size, and shrunk by octave.

    Args:
        known: ``(K, B)`` products that effects of size one would have.
        crossed: ``(K, D)`` products of values and cosines.
        noise: Standard deviation of one of them.
        octave: ``(D,)`` of each cosine.
    """
    solved = np.linalg.solve(known.T @ known + noise**2 * np.eye(known.shape[1]), known.T)
    found, spread = solved @ crossed, (solved**2).sum(1) * noise**2
    return np.stack([_by_octave(own, float(var), octave) for own, var in zip(found, spread, strict=True)])


def _shares(counted: Floats, blocks: tuple[int, ...]) -> Floats:
    """Return positive shares nearest to noisy ones, adding up to 1 in each block (projection to the simplex)."""
    found = []
    for block in np.split(counted, np.cumsum(blocks)[:-1]):
        falling = np.sort(block)[::-1]
        over = (np.cumsum(falling) - 1) / np.arange(1, len(block) + 1)
        own = np.maximum(block - over[np.flatnonzero(falling > over)[-1]], _LEAST_SHARE)
        found.append(own / own.sum())
    return np.concatenate(found)


def _within(moments: ScoreProducts, counts: Floats, together: Floats) -> Floats:
    """Return the shares of shifting attributes' values in each group, with their differences shrunk."""
    if not moments.blocks:
        return np.zeros((len(counts), 0))
    found = []
    for own, count in zip(moments.sums, counts, strict=True):
        apart = own[0, 1 : 1 + moments.shifts] / count - together
        noise = (moments.deviations[0, 1] / count) ** 2
        parts = np.split(apart, np.cumsum(moments.blocks)[:-1])
        found.append(_shares(together + np.concatenate([shrink(part, noise) for part in parts]), moments.blocks))
    return np.stack(found)


def _scale(
    common: Floats,
    means: Floats,
    effects: Floats,
    shares: Floats,
    pairs: Floats,
    weights: Floats,
    channels: int,
) -> Floats:
    """Return the scales ``(D,)`` that restore each channel's second moment to one."""
    length = len(weights) // channels
    own = np.diag(make_positive(common)) / weights**2
    own = own + shares @ (means / weights) ** 2 + ((pairs @ effects) * effects).sum(0) / weights**2
    found = length / np.maximum(own.reshape(length, channels).sum(0), 1e-6)
    return np.tile(np.sqrt(np.clip(found, 1, _MOST_SCALED)), length)


def shrink_covariance(noisy: Floats, deviation: float, *, channels: int, weights: Floats) -> Floats:
    """Return a denoised covariance of weighted cosines ``(D, D)``; see the module.

    Args:
        noisy: ``(D, D)``, frequency by frequency.
        deviation: Standard deviation of the noise of an entry off the diagonal.
        channels: C.
        weights: ``(D / C,)`` weight of each frequency.
    """
    size = len(weights)
    blocks = noisy.reshape(size, channels, size, channels)
    shared, correlations = _shared_by_octaves(blocks, deviation, weights)
    found = np.zeros_like(noisy)
    for frequency in range(size):
        own = slice(frequency * channels, (frequency + 1) * channels)
        found[own, own] = shared[frequency]
    found = found + _beyond_noise(noisy - found, deviation, channels)
    return found if channels == 1 else _with_correlations(found, correlations, weights, channels)


def _shared_by_octaves(blocks: Floats, deviation: float, weights: Floats) -> tuple[Floats, Floats]:
    """Return the covariances ``(length, C, C)`` that octaves share, and the channels' pooled correlation ``(C, C)``."""
    size, channels = blocks.shape[:2]
    octave = octaves(size)
    members = [np.flatnonzero(octave == one) for one in range(int(octave[-1]) + 1)]
    means = [np.mean([blocks[k, :, k] for k in own], axis=0) for own in members]
    means = [(mean + mean.T) / 2 for mean in means]
    noise = [deviation**2 / len(own) for own in members]
    strengths = [_strengths(np.diag(mean), var, deviation) for mean, var in zip(means, noise, strict=True)]
    found = np.zeros((size, channels, channels))
    if channels == 1:
        for own, strength in zip(members, strengths, strict=True):
            found[own, 0, 0] = strength
        return found, np.ones((1, 1))
    above = np.triu_indices(channels, 1)
    parts = [len(own) / np.mean(weights[own] ** 2) for own in members]
    whole = sum(part * mean for part, mean in zip(parts, means, strict=True))
    scale = sum(part * strength for part, strength in zip(parts, strengths, strict=True))
    scale = np.sqrt(np.outer(scale, scale))
    raw = whole / scale
    spread = sum(part**2 * var for part, var in zip(parts, noise, strict=True)) / scale**2
    pooled = make_correlation(raw * np.maximum(0, 1 - spread / np.maximum(raw**2, 1e-12)))
    for own, mean, strength, var in zip(members, means, strengths, noise, strict=True):
        unit = np.sqrt(np.outer(strength, strength))
        apart = mean / unit - pooled
        np.fill_diagonal(apart, 0)
        pairs, noise_of = channels * (channels - 1) / 2, (var / unit**2)[above].mean()
        share = max(0.0, 1 - noise_of * (pairs - 2) / max(float((apart[above] ** 2).sum()), 1e-12))
        block = make_correlation(pooled + share * apart) * unit
        np.fill_diagonal(block, strength)
        found[own] = block
    return found, pooled


def _strengths(diagonal: Floats, noise: float, deviation: float) -> Floats:
    """Return channels' variances in an octave, shrunk towards their mean."""
    channels = len(diagonal)
    if channels > 2:
        mean = max(float(diagonal.mean()), 1e-2 * deviation)
        diagonal = mean + shrink(diagonal - diagonal.mean(), 2 * noise * (1 - 1 / channels))
        diagonal = np.maximum(diagonal, 0.1 * mean)
    found: Floats = np.maximum(diagonal, 1e-3 * max(float(diagonal.max()), deviation))
    return found


def _with_correlations(covariance: Floats, pooled: Floats, weights: Floats, channels: int) -> Floats:
    """Return a covariance whose channels have the pooled correlations over all frequencies."""
    size = len(weights)
    covariance = make_positive(covariance)
    over_all = np.einsum("kckd,k->cd", covariance.reshape(size, channels, size, channels), 1 / weights**2)
    scale = np.sqrt(np.diag(over_all))
    turn = _power(pooled, 0.5) @ _power(over_all / np.outer(scale, scale), -0.5)
    whole = np.kron(np.eye(size), turn * np.outer(scale, 1 / scale))
    found: Floats = whole @ covariance @ whole.T
    return found


def _power(matrix: Floats, power: float) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    found: Floats = (vectors * np.maximum(values, 1e-4) ** power) @ vectors.T
    return found


def make_correlation(matrix: Floats) -> Floats:
    """Return a correlation matrix near a matrix: ones on the diagonal, and eigenvalues about the floor or above."""
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 1)
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, _FLOOR)) @ vectors.T
    scale = np.sqrt(np.diag(matrix))
    found: Floats = matrix / np.outer(scale, scale)
    return found


def make_positive(matrix: Floats) -> Floats:
    """Return a positive definite covariance with the same diagonal, by a floor on the correlation's eigenvalues."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-9))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    matrix = (vectors * np.maximum(values, _FLOOR)) @ vectors.T
    unit = np.sqrt(np.diag(matrix))
    found: Floats = matrix / np.outer(unit, unit) * np.outer(scale, scale)
    return found


def nearest_positive(matrix: Floats) -> Floats:
    """Return the covariance nearest to a symmetric matrix with the same diagonal (Higham, 2002, by sweeps).

    A floor on eigenvalues alone takes from all correlations of a channel what one of them is too large by.
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-9))
    found = matrix / np.outer(scale, scale)
    added = np.zeros_like(found)
    for _ in range(_SWEEPS):
        values, vectors = np.linalg.eigh(found - added)
        if values[0] > -_FLOOR:
            break
        positive = (vectors * np.maximum(values, 0)) @ vectors.T
        added += positive - found
        found = positive
        np.fill_diagonal(found, 1)
    return make_positive(found * np.outer(scale, scale))


def _by_octave(values: Floats, variance: float, octave: Ints) -> Floats:
    """Return numbers ``(D,)`` with each octave shrunk by itself."""
    return np.concatenate([shrink(values[octave == one], variance) for one in range(int(octave[-1]) + 1)])


def _beyond_noise(apart: Floats, deviation: float, channels: int) -> Floats:
    """Return the part of a symmetric matrix whose eigenvalues noise does not reach, in nested blocks of frequencies."""
    seen, size = np.zeros_like(apart), len(apart) // channels
    for block in sorted({min(block, size) for block in (*_BLOCKS, size)}):
        own = slice(0, block * channels)
        values, vectors = np.linalg.eigh((apart - seen)[own, own])
        edge = 2 * deviation * np.sqrt(block * channels)  # the semicircle's edge: eigenvalues within it may be noise
        beyond = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0))
        seen[own, own] += (vectors * beyond) @ vectors.T
    return seen


def _by_blocks(matrix: Floats, variance: float, octave: Ints) -> Floats:
    """Return a symmetric matrix with each pair of octaves shrunk by itself."""
    found = np.zeros_like(matrix)
    for one in range(int(octave[-1]) + 1):
        for other in range(one, int(octave[-1]) + 1):
            rows, columns = np.flatnonzero(octave == one), np.flatnonzero(octave == other)
            block = shrink(matrix[np.ix_(rows, columns)], variance)
            found[np.ix_(rows, columns)], found[np.ix_(columns, rows)] = block, block.T
    return found
