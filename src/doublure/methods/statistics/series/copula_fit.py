"""Releases of count trees and products of normal scores, and the copula built from them.

There are up to six releases:

1. Trees of counts give each step's table, ``(parts, cells + 1)`` cumulative shares; a part is a step of a channel.
2. If steps may be missing, counts of pairs of steps give a Markov chain of gaps, and a noisy mean of each two channels
   how often theirs stand together.
3. If series are many, trees within groups give each group tables of its own.
4. The tables turn a series into normal scores. One noisy sum of outer products of the scores' cosines gives means,
   effects of attributes, and covariances.
5. One noisy mean measures the contrast of calm and busy stretches of a series.

All else is post-processing, and can be repeated without cost.

Series that end early count in no tree after their end, and their last score is continued; their synthetic
counterparts end where the attribute of length says.

Sensitivity of the products: a series adds v vᵀ with v of length at most 1, in the block of its own group, so that it
changes the sum by at most 1. v holds a constant, the one-hot values of attributes that form no groups, and weighted
cosines of normal scores, clipped to a public length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.fft import idct
from scipy.ndimage import gaussian_filter1d
from scipy.special import ndtr, ndtri
from torch import Tensor, nn

from doublure.encode.series_places import Cells, SeriesPlaces
from doublure.methods.statistics.series import copula_plan
from doublure.methods.statistics.series.coarse_scores import CoarseScores
from doublure.methods.statistics.series.covariance import (
    ScoreMoments,
    ScoreProducts,
    estimate_moments,
    make_positive,
    nearest_positive,
)
from doublure.methods.statistics.series.gap_chains import gap_chances
from doublure.methods.statistics.series.group_scores import ScoreMap, level_scores
from doublure.methods.statistics.series.joint_attributes import joint_shares, pair_query, pair_shares
from doublure.methods.statistics.series.looks import leans_for, posterior_shares
from doublure.methods.statistics.series.marginal_tables import (
    NoisyTree,
    cumulative,
    step_masses,
)
from doublure.methods.statistics.series.shared_gaps import count_asked, expected_steps, join_gaps, shared_steps
from doublure.methods.statistics.series.smooth_density import smooth_shares
from doublure.methods.statistics.settings import CONSTANT_SHARE, SeriesStatisticsSettings
from doublure.networks.copula import (
    CopulaGenerator,
    CopulaShape,
    fast_projection,
)
from doublure.networks.cosines import cosines
from doublure.networks.look_names import CUTS
from doublure.networks.series_summaries import SeriesSummaries, to_bins
from doublure.networks.shares import WithJointShares, WithShares, with_shares
from doublure.private.queries.counts import Axis, Counts
from doublure.private.queries.query import Sensitivity
from doublure.private.queries.sums import BoundedSums
from doublure.private.queries.trees import CountTrees
from doublure.training.job import Job

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

Floats: TypeAlias = npt.NDArray[np.float64]

_TRUSTED = 3.0
"""Standard deviations within which a noisy count of series is consistent with the declared number."""
_SIMULATED, _STRENGTHS = 2000, np.linspace(0, 2, 9)
_LEAST, _MOST_NEVER = 1e-9, 0.99
_EVENED = 2.0
"""Cells over which their numbers of values are evened, to tell what a grid does from what a curve does."""


def build(encoder: Encoder, settings: SeriesStatisticsSettings) -> CopulaGenerator:
    """Return an untrained generator of the encoder's shape."""
    return CopulaGenerator(_shape(_of_places(encoder), settings))


def fit(job: Job, settings: SeriesStatisticsSettings) -> nn.Module:
    """Make the plan's releases, and return the generator built from them, with its attributes' shares."""
    return _Fit(job, settings).generator()


def with_attributes(generator: CopulaGenerator, encoder: Encoder, settings: SeriesStatisticsSettings) -> nn.Module:
    """Return a generator with shares of its attributes; joint shares if some form groups, or all are drawn jointly."""
    shape, sizes = generator.shape, list(encoder.condition_sizes.values())
    if settings.joint_attributes:
        return WithJointShares(generator, sizes, [True] * len(sizes))
    if len(sizes) > 1 and any(shape.grouped):
        return WithJointShares(generator, sizes, shape.grouped)
    return with_shares(generator, sizes)


def _shape(places: SeriesPlaces, settings: SeriesStatisticsSettings) -> CopulaShape:
    grouped = settings.grouped or ()
    return CopulaShape(
        sizes=tuple(len(own) for own in places.cells),
        missing=tuple(places.may_be_missing),
        length=places.body_shape[1],
        blocks=tuple(places.condition_sizes.values()),
        grouped=tuple(name in grouped for name in places.condition_sizes),
        levels=settings.level_groups or 1,
        own_tables=bool(settings.own_tables),
        exact=bool(settings.exact_tables),
        calm=bool(settings.calm),
        candidates=settings.candidates or 1,
        steepest=bool(settings.steepest),
        shared_gaps=bool(settings.shared_gaps) and sum(places.may_be_missing) > 1,
    )


class _Fit:
    """The releases of a run, and the generator built from them.

    Args:
        job: The run.
        settings: The plan's.
    """

    def __init__(self, job: Job, settings: SeriesStatisticsSettings) -> None:
        self._job, self._settings = job, settings
        self._places = _of_places(job.encoder)
        self._made = build(job.encoder, settings)
        self._shape = self._made.shape
        self._paid = {access.purpose: access for access in job.accesses if access.path is None}
        self._order = list(self._paid)
        job.mechanism.refuse_lost(*self._paid.values())
        self._most = job.encoder.schema.most_records
        self._shortest = self._places.shortest
        job.progress.stage("count and add up", len(self._order))

    def generator(self) -> nn.Module:
        """Make the releases in order, and return the generator."""
        made, shape = self._made, self._shape
        step_tables = self._step_tables()
        made.step_tables.copy_(step_tables)
        self._pairs = self._attribute_pairs()
        scores = ScoreMap.of(shape, step_tables)
        if shape.own_tables:
            tables = self._own_tables(scores, step_tables.numpy())
            scores = ScoreMap.of(shape, step_tables, tables)
        made.tables.copy_(scores.tables)
        found = self._latent(scores)
        self._place_moments(found, self._coarse(step_tables))
        if shape.exact:
            made.mixed.copy_(self._mixed(scores.tables, found))
        whole = with_attributes(made, self._places, self._settings)
        if isinstance(whole, WithShares):
            whole.knowing(torch.from_numpy(attribute_shares(shape, found)))
        if isinstance(whole, WithJointShares):
            together, within = shares_by_attributes(shape, found)
            if self._pairs is not None:
                together = joint_shares(self._pairs)
                within = np.zeros((len(together), 0))
            whole.knowing_groups(torch.from_numpy(together), torch.from_numpy(within))
        if shape.calm:
            made.calm.fill_(self._strength(scores, whole))
        if shape.candidates > 1:
            self._look(whole, step_tables)
        return whole

    # -- releases --------------------------------------------------------------------------------------------------

    def _released(self, purpose: str, query: Any) -> npt.NDArray[Any]:
        """Make a release, or read the one that an interrupted run has kept."""
        job = self._job
        job.check_stop()
        found: npt.NDArray[Any] = job.mechanism.release(query, self._paid[purpose], job.records)
        job.progress.at(self._order.index(purpose) + 1)
        return found

    def _noise(self, purpose: str, sensitivity: Sensitivity) -> float:
        return self._job.mechanism.deviation(self._paid[purpose], sensitivity)

    def _trees(self, purpose: str, leaves: npt.NDArray[np.int64], sizes: list[int], scores: ScoreMap | None) -> _Trees:
        """Release trees of counts, with ``sizes`` leaves a channel."""
        weights = [copula_plan.tree_weights(size) for size in sizes]
        depth = max(len(own) for own in weights)
        # A shallow channel's tree ends early: its weights are 0 below, where a series adds nothing.
        padded = np.stack([np.pad(own, (0, depth - len(own))) for own in weights])
        query = CountTrees(
            leaves=leaves,
            weights=np.repeat(padded, self._shape.length, axis=0),
            unit=1 / copula_plan.WEIGHT,
            max_records=self._most,
            group=None if scores is None else scores.group,
            groups=1 if scores is None else self._shape.groups,
        )
        counted = query.split(self._released(purpose, query))
        return _Trees(
            levels=counted,
            weights=padded / copula_plan.WEIGHT,
            noise=self._noise(purpose, query.sensitivity),
            length=self._shape.length,
        )

    # -- tables ----------------------------------------------------------------------------------------------------

    def _step_tables(self) -> Tensor:
        """Return each step's table ``(parts, cells + 1)``, and store the number of series and the chain of gaps."""
        shape = self._shape
        sizes = list(shape.sizes)
        leaves = np.concatenate([np.tile(self._leaves(own), (shape.length, 1)) for own in sizes])
        trees = self._trees(copula_plan.TABLES, leaves, sizes, None)
        always = [channel for channel, missing in enumerate(shape.missing) if not missing]
        roots = np.stack([trees.levels[0][0, trees.of(channel), 0] for channel in range(len(sizes))])
        present = np.ones((len(sizes), shape.length))
        if copula_plan.GAPS in self._paid:
            self._series = self._gaps(present)
        if copula_plan.SHARED_GAPS in self._paid:
            self._shared_gaps = self._count_shared_gaps()
        if shape.shared_gaps:
            self._join_gaps(np.zeros(sum(shape.missing)))
        if always:
            each = trees.noise / trees.weights[0, 0]
            counted = roots[always, : self._shortest].mean()
            self._series = self._number(float(counted), each / math.sqrt(len(always) * self._shortest))
        if always and self._places.ends:
            present[always] = count_reaching(roots[always].mean(0), self._series) / self._series
        tables = torch.ones(shape.parts, max(sizes) + 1, dtype=torch.float64)
        for channel, size in enumerate(sizes):
            tree = trees.tree(0, channel, totals=self._series * present[channel])
            expected = np.zeros((1, 2 ** len(tree.levels)))  # of its leaves, those after the last cell are empty
            expected[0, :size] = _over_all_steps(tree, self._places.cells[channel])
            masses = step_masses(tree, np.tile(expected, (shape.length, 1)))[:, :size]
            tables[trees.of(channel), : size + 1] = torch.from_numpy(cumulative(masses))
        return tables

    def _leaves(self, size: int) -> npt.NDArray[np.int64]:
        """Return ``(codes,)`` the leaf of each code of a channel; -1 for missing steps and unused codes."""
        most = max(self._places.sizes)
        depth = max(len(copula_plan.tree_weights(own)) - 1 for own in self._shape.sizes)
        own = len(copula_plan.tree_weights(size)) - 1
        found = np.full(most, -1, dtype=np.int64)
        found[:size] = np.arange(size) << (depth - own)
        return found

    def _number(self, counted: float, deviation: float) -> float:
        """Return the number of series: the public one, unless the count is inconsistent with it."""
        if self._most == 1 and abs(counted - self._job.units) <= _TRUSTED * deviation:
            return float(self._job.units)
        return max(1.0, counted)

    def _gaps(self, present: Floats) -> float:
        """Release pairs of present and missing steps, store the chain of gaps, and return the number of series.

        As many channels are counted as were paid for, even if a bought fact shows that one has no gaps.
        """
        shape, codes, access = self._shape, self._places.sizes, self._paid[copula_plan.GAPS]
        tables, length = [], shape.length
        gappy = [channel for channel, missing in enumerate(shape.missing) if missing]
        others = [channel for channel, missing in enumerate(shape.missing) if not missing]
        counted_channels = [*gappy, *others][: copula_plan.channels_counted(access, length)]
        for channel in counted_channels:
            # Below 0: values. Then a missing step, if the channel may have one, and steps after the end.
            beyond = np.arange(codes[channel]) - shape.sizes[channel]
            cells = np.where(beyond < 0, 0, beyond + 1 + (not shape.missing[channel]))
            states = 2 + self._places.ends
            axes = [Axis(part=channel * length + step, cells=cells, size=states) for step in range(length)]
            tables += list(pairwise(axes))
        query = Counts(tables=tables, max_records=self._most)
        released = self._released(copula_plan.GAPS, query)
        counted = np.stack(query.split(released)).reshape(-1, length - 1, states, states).astype(np.float64)
        counted = counted[:, :, :2, :2]
        noise = self._job.mechanism.deviation(access, query.sensitivity)
        pairs = max(1, self._shortest - 1)  # pairs of steps that every series has
        number = float(counted[:, :pairs].sum((2, 3)).mean())
        series = self._number(number, 2 * noise / math.sqrt(len(counted) * pairs))
        reach = np.full(length - 1, series)
        if self._places.ends:
            reach = np.maximum(count_reaching(counted.sum((2, 3)).mean(0), series), 4 * noise / math.sqrt(len(counted)))
        self._counted_gaps = [(counted[place], reach, noise) for place in range(len(gappy))]
        self._reach = np.minimum(np.append(series, reach) / series, 1)
        for place, channel in enumerate(gappy):
            missing = self._place_gaps(place)
            present[channel] = np.maximum((1 - missing) * self._reach, _LEAST)
        return series

    def _place_gaps(self, place: int, never: float = 0.0) -> Floats:
        """Store a channel's chain of gaps, and return the share ``(steps,)`` of missing ones.

        Args:
            place: The channel's, among those that may have gaps.
            never: Share of the series that have no value of it at all; the chain is that of the others.
        """
        counted, reach, noise = self._counted_gaps[place]
        others = counted.copy()
        others[:, 1, 1] -= never * reach
        chances, missing = gap_chances(others, series=(1 - never) * reach, deviation=noise)
        self._made.gaps[place] = torch.from_numpy(chances).float()
        return missing

    def _count_shared_gaps(self) -> tuple[Floats, float]:
        """Release the mean share of steps at which channels both have a gap, and return it with its noise.

        It is released even if a bought fact shows that fewer than two channels have gaps.
        """
        shape = self._shape
        asked = count_asked(sum(shape.missing))
        size = max(1, asked)

        def factors(body: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
            shares = torch.zeros(len(body), size, dtype=torch.float64)
            shares[:, :asked] = shared_steps(body, shape.sizes, shape.missing)
            return (shares / math.sqrt(size)).float(), torch.ones(len(body), 1)

        noise = self._noise(copula_plan.SHARED_GAPS, Sensitivity.of_length(self._most, 1))
        query = BoundedSums(factors=factors, shape=(size, 1), max_records=self._most, noise=noise)
        counted = self._released(copula_plan.SHARED_GAPS, query).astype(np.float64).reshape(size)[:asked]
        scale = math.sqrt(size) / self._series
        return counted * scale, noise * scale

    def _join_gaps(self, never: Floats) -> None:
        """Store how gaps of two channels go together; ``never`` is the share of series without any value of each."""
        counted, noise = self._shared_gaps
        chances = self._made.gaps.double().numpy()
        expected = expected_steps(chances, never, self._reach)
        share, factor = join_gaps(counted, expected, noise=noise, chances=chances, never=never, reach=self._reach)
        self._made.gap_share.fill_(share)
        self._made.gap_factor.copy_(torch.from_numpy(factor))

    def _attribute_pairs(self) -> list[Floats] | None:
        """Release pairs of attributes, and return their shares; None where they are not drawn jointly."""
        if copula_plan.ATTRIBUTES not in self._paid:
            return None
        query = pair_query(self._shape.parts, map(np.arange, self._shape.blocks), self._most)
        counted = query.split(self._released(copula_plan.ATTRIBUTES, query))
        noise = self._job.mechanism.deviation(self._paid[copula_plan.ATTRIBUTES], query.sensitivity)
        numbers = self._places.condition_numbers
        return pair_shares([own.astype(np.float64) for own in counted], self._series, noise, numbers)

    def _pairs_that_shift(self) -> Floats | None:
        """Return the shares ``(K', K')`` of each two values of attributes that form no groups."""
        if self._pairs is None:
            return None
        ends = np.cumsum([0, *self._shape.blocks])
        whole = np.zeros((ends[-1], ends[-1]))
        for table, (one, other) in zip(self._pairs, combinations(range(len(self._shape.blocks)), 2), strict=True):
            own, beside = slice(ends[one], ends[one + 1]), slice(ends[other], ends[other + 1])
            whole[own, beside], whole[beside, own] = table, table.T
            whole[own, own], whole[beside, beside] = np.diag(table.sum(1)), np.diag(table.sum(0))
        kept = np.flatnonzero(np.repeat([not own for own in self._shape.grouped], self._shape.blocks))
        shares: Floats = whole[np.ix_(kept, kept)]
        return shares

    def _own_tables(self, scores: ScoreMap, step_tables: Floats) -> Tensor:
        """Return groups' own tables ``(groups, parts, cells + 1)``, from leaves of about equal mass in all groups.

        They are shrunk towards the common ones, moved to where a level's mean score lies.
        """
        shape, most = self._shape, max(self._places.sizes)
        leaves, sizes = np.full((shape.parts, most), -1, dtype=np.int64), [copula_plan.OWN_LEAVES] * len(shape.sizes)
        middles = (step_tables[:, 1:] + step_tables[:, :-1]) / 2
        for channel, size in enumerate(shape.sizes):
            steps = slice(channel * shape.length, (channel + 1) * shape.length)
            found = np.floor(middles[steps, :size] * copula_plan.OWN_LEAVES).astype(np.int64)
            leaves[steps, :size] = np.clip(found, 0, copula_plan.OWN_LEAVES - 1)
        trees = self._trees(copula_plan.OWN_TABLES, leaves, sizes, scores)
        ends, levels = ndtri(step_tables), level_scores(shape.levels)
        tables = torch.ones(shape.groups, shape.parts, step_tables.shape[1], dtype=torch.float64)
        for channel, size in enumerate(shape.sizes):
            part = trees.of(channel)
            among = leaves[part, :size]
            for group in range(shape.groups):
                mean, spread = levels[group % shape.levels]
                own = np.diff(ndtr((ends[part, : size + 1] - mean) / spread), axis=1) + _LEAST**2
                expected = np.zeros((shape.length, copula_plan.OWN_LEAVES))
                np.add.at(expected, (np.arange(shape.length)[:, None], among), own)
                counted = trees.levels[0][group, part, 0]
                totals = np.full(shape.length, max(1.0, counted.mean()))
                if self._places.ends:
                    totals = np.maximum(count_reaching(counted, math.inf), 1.0)
                held = step_masses(trees.tree(group, channel, totals=totals), expected) / np.maximum(
                    expected, _LEAST**3
                )
                own = np.take_along_axis(held, among, 1) * own
                tables[group, part, : size + 1] = torch.from_numpy(cumulative(own))
        return tables

    # -- scores ----------------------------------------------------------------------------------------------------

    def _coarse(self, step_tables: Tensor) -> CoarseScores:
        """Return what values that repeat do to scores."""
        single = np.zeros((self._shape.parts, step_tables.shape[1] - 1), dtype=bool)
        for channel, own in enumerate(self._places.cells):
            steps = slice(channel * self._shape.length, (channel + 1) * self._shape.length)
            single[steps, : len(own)] = own.single
        return CoarseScores.of(step_tables.double().numpy(), single, length=self._shape.length)

    def _latent(self, scores: ScoreMap) -> ScoreMoments:
        """Release the products of scores, and return the moments estimated from them."""
        shape, settings = self._shape, self._settings
        channels, length = len(shape.sizes), shape.length
        spectrum = copula_plan.prior_spectrum(length, memory=settings.memory)
        # Up to a factor, the bound is √(Σ s w²), and the noise of a cosine's mean is bound / w. By Cauchy and Schwarz
        # the sum of its squares over all cosines is least for w = s^(-1/4).
        weights = spectrum**-0.25
        weights = weights / weights[0]
        bound = settings.radius * math.sqrt(channels * float((spectrum * weights**2).sum()))
        shifts = sum(size > 0 for size, grouped in zip(shape.blocks, shape.grouped, strict=True) if not grouped)
        constant = math.sqrt(CONSTANT_SHARE / (1 + shifts))
        rest = math.sqrt(1 - CONSTANT_SHARE)
        waves = torch.from_numpy(weights)[:, None] * cosines(length)

        def vector(body: Tensor, condition: Tensor | None, group: Tensor) -> Tensor:
            found = (scores.scores(body, group) @ waves.T).transpose(1, 2).flatten(1)  # frequency by frequency
            found = found * (rest / bound)
            # Clipped to length √(1 - CONSTANT_SHARE); the constant and one-hot values have the rest, so that ‖v‖ ≤ 1.
            found = found * (rest / found.norm(dim=1, keepdim=True).clamp(min=rest))
            shifts = shape.shifts(condition, len(body)).double() * constant
            return torch.cat([torch.full((len(body), 1), constant, dtype=torch.float64), shifts, found], dim=1)

        common = settings.common_share or 0.0
        of_all, of_groups = math.sqrt(common), math.sqrt(1 - common)

        def factors(body: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
            group = scores.group(body, condition)
            own = vector(body, condition, group)
            if shape.groups == 1:
                return own.float(), own.float()
            there = torch.nn.functional.one_hot(group, shape.groups).double() * of_groups
            if common:
                there = torch.cat([torch.full((len(body), 1), of_all, dtype=torch.float64), there], dim=1)
            return torch.einsum("bg,bd->bgd", there, own).flatten(1).float(), own.float()

        size, blocks = 1 + shape.shifting + shape.parts, shape.groups + (common > 0)
        noise = self._noise(copula_plan.PRODUCTS, Sensitivity.of_length(self._most, 1))
        query = BoundedSums(factors=factors, shape=(blocks * size, size), max_records=self._most, noise=noise)
        sums = self._released(copula_plan.PRODUCTS, query).astype(np.float64).reshape(blocks, size, size)
        # Back from v to its parts' own units: (blocks, 1 + K' + D, 1 + K' + D), cosines still weighted.
        scale = np.concatenate([np.full(1 + shape.shifting, 1 / constant), np.full(shape.parts, bound / rest)])
        both = np.outer(scale, scale)
        # The sum is symmetric and its noise is not: the mean of both halves has less noise.
        sums, deviations = (sums + sums.transpose(0, 2, 1)) / 2 * both, noise / math.sqrt(2) * both
        total, of_total = sums.sum(0), deviations * math.sqrt(len(sums))
        if common:
            total, of_total = sums[0], deviations
            sums, deviations = sums[1:] / of_groups, deviations / of_groups
            precise = np.array([of_all**2, of_groups**2 / shape.groups])
            total = (precise[0] * total / of_all + precise[1] * sums.sum(0)) / precise.sum()
            of_total = of_total / math.sqrt(precise.sum())
        return estimate_moments(
            ScoreProducts(
                sums=sums,
                deviations=deviations,
                total=total,
                of_total=of_total,
                weights=weights,
                channels=channels,
                blocks=tuple(size for size, grouped in zip(shape.blocks, shape.grouped, strict=True) if not grouped),
                numbers=tuple(
                    numbers
                    for numbers, grouped in zip(self._places.condition_numbers, shape.grouped, strict=True)
                    if not grouped
                ),
                series=self._series,
                pairs=self._pairs_that_shift(),
            )
        )

    def _place_moments(self, found: ScoreMoments, coarse: CoarseScores) -> None:
        """Transform means, effects and covariances from cosines to steps, and correct what coarse scores weaken."""
        made, shape = self._made, self._shape
        channels, length = len(shape.sizes), shape.length

        def in_steps(rows: Floats) -> Floats:
            waves = idct(rows.reshape(len(rows), length, channels), axis=1, norm="ortho")
            flat: Floats = waves.transpose(0, 2, 1).reshape(rows.shape)
            return flat

        made.means.copy_(torch.from_numpy(in_steps(found.means)))
        if shape.shifting:
            made.effects.copy_(torch.from_numpy(in_steps(found.effects)))
        covariances = np.stack([in_steps(in_steps(own).T) for own in found.covariances])
        covariances = (covariances + covariances.transpose(0, 2, 1)) / 2
        corrected = coarse.between_channels(np.einsum("g,gij->ij", found.shares, covariances))
        for group, own in enumerate(covariances):
            covariance = make_positive(own) if corrected is None else nearest_positive(own * corrected)
            factor = np.linalg.cholesky(covariance + _LEAST * np.eye(len(covariance)))
            made.factors[group] = torch.from_numpy(factor)
        by_attribute = found.shares.reshape(shape.attribute_groups, shape.levels)
        ends = np.cumsum(by_attribute, axis=1) / by_attribute.sum(1, keepdims=True)
        made.level_ends.copy_(torch.from_numpy(ends))

    def _drawn(self, whole: nn.Module, count: int, *, each: int = 1) -> tuple[Tensor, Tensor | None]:
        """Return what the model draws so far, read as real series are, and its attributes; ``each`` for the same ones.

        Read so, a frequent value is always at its cell's middle.
        """
        source, shape = torch.Generator().manual_seed(0), self._shape
        condition = None
        if isinstance(whole, WithShares):
            condition = whole.draw_conditions(torch.zeros(count, sum(shape.blocks)), source)
            condition = condition.repeat_interleave(each, 0)
        places = self._made.drawn(torch.randn(count * each, shape.noise_of_one, generator=source), condition)
        rows = places.flatten(1) if condition is None else torch.cat([places.flatten(1), condition], dim=1)
        again = self._places.expand(torch.from_numpy(self._places.compact(self._places.decode(rows))))
        return self._places.split(again)

    def _strength(self, scores: ScoreMap, whole: nn.Module) -> float:
        """Release the mean concentration of fast parts in time, and return the strength that reproduces it."""
        fast = fast_projection(self._shape.length)

        def concentration(body: Tensor, condition: Tensor | None) -> Tensor:
            return _concentration(scores.scores(body, scores.group(body, condition)) @ fast.T)

        def factors(body: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
            return concentration(body, condition)[:, None].float(), torch.ones(len(body), 1)

        noise = self._noise(copula_plan.CALM, Sensitivity.of_length(self._most, 1))
        query = BoundedSums(factors=factors, shape=(1, 1), max_records=self._most, noise=noise)
        wanted = float(self._released(copula_plan.CALM, query)[0]) / self._series
        # There is no formula from concentration to strength: draw series at several strengths, and interpolate. They
        # are read as real ones are, because a value that is frequent concentrates scores by itself.
        reached = []
        for strength in _STRENGTHS:
            self._made.calm.fill_(float(strength))
            reached.append(float(concentration(*self._drawn(whole, _SIMULATED)).mean()))
        return float(np.interp(wanted, np.maximum.accumulate(reached), _STRENGTHS))

    def _look(self, whole: nn.Module, step_tables: Tensor) -> None:
        """Release histograms of what series look like as a whole, and let the model draw series that look like it."""
        made, channels = self._made, len(self._shape.sizes)
        single = torch.zeros(channels, max(self._shape.sizes), dtype=torch.bool)
        for channel, own in enumerate(self._places.cells):
            single[channel, : len(own)] = torch.from_numpy(own.single)
        shape = self._shape
        looks = SeriesSummaries.of(shape.sizes, step_tables, single, missing=shape.missing, steepest=shape.steepest)
        number = self._shape.summaries
        count = copula_plan.looked_at(self._shape.parts, self._shape.candidates)
        body, condition = self._drawn(whole, count, each=self._shape.candidates)
        drawn = looks(body)
        cuts = looks.cuts(drawn)

        def factors(body: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
            there = torch.nn.functional.one_hot(to_bins(looks(body), cuts), CUTS + 1)
            return there.flatten(1).float() / math.sqrt(number), torch.ones(len(body), 1)

        purpose = copula_plan.looks(self._settings)
        noise = self._noise(purpose, Sensitivity.of_length(self._most, 1))
        query = BoundedSums(factors=factors, shape=(number * (CUTS + 1), 1), max_records=self._most, noise=noise)
        counted = self._released(purpose, query).astype(np.float64).reshape(number, CUTS + 1)
        counted *= math.sqrt(number) / self._series
        noise *= math.sqrt(number) / self._series
        gappy = sum(self._shape.missing)
        if gappy:
            # The last bin of missing steps is that of series without a value: a person's part, which no chain has.
            shares = counted[-gappy:, -1]
            never = np.clip(
                shares * np.maximum(0, 1 - (noise / np.maximum(np.abs(shares), _LEAST)) ** 2), 0, _MOST_NEVER
            )
            for place, share in enumerate(never):
                self._place_gaps(place, float(share))
            made.never.copy_(torch.from_numpy(never))
            if shape.shared_gaps:
                self._join_gaps(never)
            body, condition = self._drawn(whole, count, each=self._shape.candidates)
            drawn = looks(body)
        bins = to_bins(drawn, cuts)
        model = torch.nn.functional.one_hot(bins, CUTS + 1).double().mean(0).numpy()
        wanted = torch.from_numpy(np.stack([
            posterior_shares(own, of_model, noise=noise, draws=len(bins))
            for own, of_model in zip(counted, model, strict=True)
        ]))  # fmt: skip
        made.high.copy_(looks.high)
        made.frequent.copy_(looks.frequent)
        made.cuts.copy_(cuts)
        each = self._shape.candidates
        conditions = None if condition is None else condition[::each]
        leans, holds = leans_for(bins, looks.waves(body), wanted, conditions, candidates=each)
        made.leans.copy_(leans)
        made.holds.copy_(holds)

    def _mixed(self, tables: Tensor, found: ScoreMoments) -> Tensor:
        """Return the model's cumulative shares at cells' ends, all groups together, ``(parts, cells + 1)``."""
        made = self._made
        effects = made.effects.double().numpy()
        shifted = ((found.effect_pairs @ effects) * effects).sum(0)
        total = torch.zeros(tables.shape[1:], dtype=torch.float64)
        for group, share in enumerate(found.shares):
            own = tables[group if self._shape.own_tables else 0].numpy()
            factor = made.factors[group].double().numpy()
            spread = np.sqrt((factor**2).sum(1) + shifted)[:, None]
            ends = ndtri(np.clip(own, 1e-12, 1 - 1e-12))
            given = ndtr((ends - made.means[group].double().numpy()[:, None]) / spread)
            total += share * torch.from_numpy(np.where(own <= 0, 0.0, np.where(own >= 1, 1.0, given)))
        return total


def _over_all_steps(tree: NoisyTree, cells: Cells) -> Floats:
    """Return the shares of a channel's cells ``(cells,)`` over all steps."""
    column, values = cells.column, np.ones(len(cells))
    if column.unit:
        ends = np.append(column.known_grid[0] - column.unit, cells.ends)
        values = np.maximum(np.diff(ends) / column.unit, 1)
    zero = np.flatnonzero(cells.single & (cells.ends == 0))
    return smooth_shares(
        [level.sum(0) for level in tree.levels],
        [deviation * math.sqrt(len(tree.totals)) for deviation in tree.deviations],
        total=float(tree.totals.sum()),
        base=np.log(values / gaussian_filter1d(values, _EVENED, mode="nearest")),
        zero=int(zero[0]) if zero.size else None,
    )


def count_reaching(counted: Floats, series: float) -> Floats:
    """Return how many series reach each step ``(steps,)``, from noisy counts: non-increasing, and at least 1."""
    from sklearn.isotonic import isotonic_regression

    found: Floats = isotonic_regression(counted, y_min=1.0, y_max=max(1.0, series), increasing=False)
    return found


def attribute_shares(shape: CopulaShape, found: ScoreMoments) -> Floats:
    """Return the shares ``(K,)`` of each attribute's values, in the order of the condition."""
    sizes = [size for size, grouped in zip(shape.blocks, shape.grouped, strict=True) if grouped]
    together, shifting = found.shares.reshape(*sizes, shape.levels), iter(found.effect_shares)
    blocks, axis = [], 0
    for size, grouped in zip(shape.blocks, shape.grouped, strict=True):
        if grouped:
            blocks.append(together.sum(tuple(other for other in range(together.ndim) if other != axis)))
            axis += 1
        else:
            blocks.append(np.fromiter(shifting, np.float64, count=size))
    return np.concatenate(blocks)


def shares_by_attributes(shape: CopulaShape, found: ScoreMoments) -> tuple[Floats, Floats]:
    """Return the shares of attribute groups ``(A,)``, and of shifting attributes' values in each ``(A, K')``.

    Levels are independent of attributes' names: an attribute group is the sum over its levels.
    """
    by_level = found.shares.reshape(shape.attribute_groups, shape.levels)
    together = by_level.sum(1)
    within = found.shares_within.reshape(shape.attribute_groups, shape.levels, shape.shifting)
    return together, np.einsum("al,alk->ak", by_level, within) / together[:, None]


@dataclass(frozen=True, kw_only=True)
class _Trees:
    """Released trees of all channels.

    Attributes:
        levels: The root ``(groups, parts, 1)``, and each level's differences, coarse to fine.
        weights: ``(channels, 1 + depth)``; 0 where a channel's tree ends.
        noise: Standard deviation for a weight of 1.
        length: Steps.
    """

    levels: list[Floats]
    weights: Floats
    noise: float
    length: int

    def of(self, channel: int) -> slice:
        """Return the parts of a channel."""
        return slice(channel * self.length, (channel + 1) * self.length)

    def tree(self, group: int, channel: int, *, totals: Floats) -> NoisyTree:
        """Return a channel's trees in a group."""
        weights = self.weights[channel, 1:]
        used = int((weights > 0).sum())
        return NoisyTree(
            levels=[level[group, self.of(channel)] for level in self.levels[1 : 1 + used]],
            deviations=[self.noise / weight for weight in weights[:used]],
            totals=totals,
        )


def _concentration(fast: Tensor) -> Tensor:
    """Return the concentration ``(B,)`` in time, in [0, 1], of fast parts ``(B, channels, length)``."""
    squares = fast.square()
    shares = squares.square().sum(2) / squares.sum(2).square().clamp(min=1e-12)
    return shares.mean(1).clamp(0, 1)


def _of_places(encoder: Any) -> SeriesPlaces:
    if not isinstance(encoder, SeriesPlaces):
        raise TypeError("a copula needs series as places")
    return encoder
