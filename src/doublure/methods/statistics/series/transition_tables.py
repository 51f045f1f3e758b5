"""Training of Markov chains on time series: the releases of steps' tables, and the fit to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from doublure.encode.series_codes import SeriesCodes
from doublure.methods.statistics.binning import james_stein_counts, project_to_simplex
from doublure.methods.statistics.series.chain_fit import ChainTables, expected, fit_chain
from doublure.methods.statistics.series.marginal_tables import shrink_by_evidence
from doublure.methods.statistics.series.step_counts import LEAST_SHARE, StepCounts
from doublure.methods.statistics.settings import MOST_GROUPS, PERSISTENCE, SeriesStatisticsSettings
from doublure.networks.chains import ChainGenerator
from doublure.networks.shares import with_shares
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.support.arrays import Floats
from doublure.training.job import Job

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_RAKES = 20
_LEAST_EFFECT = 0.03
"""Least initial ratio of a state's share under an attribute's value to its share over all values."""
_LEAST_KEPT = 0.05
"""Share of independence in the transitions that chains begin with, of what changes."""


def build(encoder: Encoder, settings: SeriesStatisticsSettings) -> ChainGenerator:
    """Return an untrained generator of the encoder's shape."""
    codes = _of_series(encoder)
    return ChainGenerator(
        codes.sizes,
        length=codes.schema.length,
        levels=settings.levels,
        groups=settings.groups + max(codes.states),
        condition_width=codes.condition_width,
        persistence=PERSISTENCE,
    )


def fit(job: Job, settings: SeriesStatisticsSettings, events: Sequence[DiscreteGaussianEvent]) -> nn.Module:
    """Release the tables of a job's series and fit a generator to them.

    Args:
        job: The run.
        settings: With defaults resolved.
        events: The plan's events, one a release.
    """
    generator = build(job.encoder, settings)
    job.progress.stage("count", len(events))
    codes = _of_series(job.encoder)
    counts = StepCounts(job, codes, settings, events)
    tables = _StepTables(counts)
    job.progress.stage("train the generator", (1 + len(counts.groups)) * settings.fit_steps)
    fits = 0

    def at(step: int) -> None:
        job.check_stop()
        job.progress.at(fits * settings.fit_steps + step)

    levels = tables.of_levels(generator.levels.start.shape[1])
    misfit = fit_chain(generator.levels, levels, steps=settings.fit_steps, prior=settings.prior, at=at)
    job.log({"chain": "levels", "misfit": round(misfit, 4)})
    with torch.no_grad():
        own = generator.levels
        by_group, _ = expected(own.start, own.transitions, own.effects, levels.values, levels.weights)
    for channel, chain in enumerate(generator.steps):
        fits += 1
        steps = tables.of_steps(channel, by_group[channel], generator.ends.shape[1])
        misfit = fit_chain(chain, steps, steps=settings.fit_steps, prior=settings.prior, at=at)  # type: ignore[arg-type]
        job.log({"chain": list(codes.schema.channels)[channel], "misfit": round(misfit, 4)})
        groups = counts.groups[channel]
        with torch.no_grad():
            generator.shares[channel].copy_(torch.from_numpy(groups.shares / groups.size))
            generator.ends[channel] = ((torch.arange(generator.ends.shape[1]) + 1.0) / groups.size).clamp(max=1)
    job.progress.at((1 + fits) * settings.fit_steps)
    shares = torch.from_numpy(np.concatenate(counts.shares)) if counts.shares else None
    return with_shares(generator, job.encoder.condition_sizes.values(), shares)


class _StepTables:
    """Chains' tables from the releases.

    Args:
        counts: The releases.

    Attributes:
        values: ``(R, K)`` attributes' values of each group of series, as one-hot blocks.
        weights: ``(R,)`` share of each group, if attributes were independent.
    """

    def __init__(self, counts: StepCounts) -> None:
        self._counts = counts
        self._length = len(counts.pairs[0]) + 1
        self.values, self.weights = value_groups(counts.shares)

    # -- chains' tables --------------------------------------------------------------------------------------------

    def of_levels(self, states: int) -> ChainTables:
        """Return the tables of the chain of the channels' levels, padded to ``states``."""
        sizes = [each.size for each in self._counts.levels]
        masses = [
            each.join(
                project_to_simplex(counts, np.full(len(counts), self._counts.fine_variance), total=self._counts.rows)
            )
            for each, counts in zip(self._counts.levels, self._counts.level_bins, strict=True)
        ]
        logs = torch.stack([_padded_logs(mass / self._counts.rows, states) for mass in masses])
        return ChainTables(
            present=_present(sizes, states),
            start=logs[:1],
            transitions=logs[None, 1:, None, :].expand(1, len(sizes) - 1, states, states),
            effects=self._effects(self._counts.level_values, [mass / self._counts.rows for mass in masses], states),
            pairs=_stacked([table[None] for table in self._counts.between], (1, states, states)) / self._counts.rows,
            singles=self._by_value(self._counts.level_values, states) / self._counts.rows,
            values=self.values,
            weights=self.weights[:, None],
            precision=self._precision,
        )

    def of_steps(self, channel: int, weights: Tensor, states: int) -> ChainTables:
        """Return the tables of a channel's chains, padded to ``states``.

        Args:
            channel: Its place.
            weights: ``(R, levels)`` shares of all series: group of attributes' values, level.
            states: G.
        """
        own, levels = self._counts.groups[channel], len(weights[0])
        masses = self._masses(channel)
        by_step = self._masses_by_step(channel, masses)
        begun = self._transitions(channel, masses)
        tilt = max(_tilt(begun, masses), 1 / self._length)  # fewer changes than one a series leave no trace
        transitions = torch.zeros(levels, self._length - 1, states, states)
        shifted = np.log(begun)[:, None] + tilt * np.log(by_step[1:] / np.maximum(masses, LEAST_SHARE))[:, None]
        transitions[: len(begun), :, : own.size, : own.size] = torch.from_numpy(shifted)
        return ChainTables(
            present=_present([own.size] * self._length, states),
            start=_padded_logs(by_step[0], states)[None],
            transitions=transitions,
            effects=self._effects(self._counts.step_values[channel], by_step, states)
            * torch.tensor([1.0] + [tilt] * (self._length - 1))[:, None],
            pairs=_stacked(self._counts.pairs[channel], (levels, states, states)) / self._counts.rows,
            singles=self._by_value(self._counts.step_values[channel], states) / self._counts.rows,
            values=self.values,
            weights=weights,
            precision=self._precision,
            tilt=tilt,
        )

    # -- inside ----------------------------------------------------------------------------------------------------

    @property
    def _precision(self) -> float:
        return float(self._counts.rows**2 / self._counts.variance)

    def _by_value(self, tables: Sequence[Sequence[Floats]], states: int) -> Tensor:
        """Return ``(S, K, states)`` from tables ``(G, values)`` that are given by step and attribute."""
        side_by_side = [np.concatenate(own, axis=1).T if own else np.zeros((0, 0)) for own in tables]
        return _stacked(side_by_side, (sum(self._counts.sizes), states))

    def _effects(self, tables: Sequence[Sequence[Floats]], masses: Sequence[Floats] | Floats, states: int) -> Tensor:
        """Return ``(K, S, states)``: log ratio of a state's share under each value to its share, after shrinkage.

        Args:
            tables: By step and attribute, ``(G, values)``.
            masses: By step, ``(G,)`` shares over all values.
            states: At least the number of states of every step.
        """

        def effect(table: Floats, mass: Floats, shares: Floats) -> Floats:
            alone = np.outer(np.maximum(mass, LEAST_SHARE), shares) * self._counts.rows
            found = james_stein_counts(table, alone, variance=self._counts.variance)
            likelier: Floats = np.log(np.maximum(found / alone, _LEAST_EFFECT))
            return likelier

        effects = [
            [effect(table, mass, shares) for table, shares in zip(own, self._counts.shares, strict=True)]
            for own, mass in zip(tables, masses, strict=True)
        ]
        return self._by_value(effects, states).transpose(0, 1)

    def _masses(self, channel: int) -> Floats:
        """Return ``(groups,)`` the shares of a channel's groups over all steps."""
        counts, rows = self._counts.fine[channel], self._counts.rows * self._length
        noise = np.full(len(counts), self._counts.fine_variance * self._length)
        masses: Floats = self._counts.groups[channel].join(project_to_simplex(counts, noise, total=rows)) / rows
        return masses

    def _masses_by_step(self, channel: int, masses: Floats) -> Floats:
        """Return positive shares ``(steps, groups)``: each step's tables shrunk towards all steps together."""
        counts, precision = np.zeros((self._length, len(masses))), np.zeros(self._length)

        def add(step: int, table: Floats) -> None:
            cells = table.size / len(masses)
            counts[step] += table.sum(axis=tuple(range(1, table.ndim))) / cells
            precision[step] += 1 / cells

        for step, table in enumerate(self._counts.pairs[channel]):
            add(step, table.transpose(1, 0, 2))
            add(step + 1, table.transpose(2, 0, 1))
        for step, own in enumerate(self._counts.step_values[channel]):
            for table in own:
                add(step, table)
        variance = float((self._counts.variance / precision).mean())
        base = np.tile(masses * self._counts.rows, (self._length, 1))
        found = np.maximum(james_stein_counts(counts / precision[:, None], base, variance=variance), LEAST_SHARE)
        shares: Floats = found / found.sum(1, keepdims=True)
        return shares

    def _transitions(self, channel: int, masses: Floats) -> Floats:
        """Return transition chances ``(levels, groups, groups)`` within each level, at all steps together.

        Each level's table is shrunk towards its states with the transitions of all levels, as far as there is no
        evidence of others, and the table of all levels towards independent steps (James and Stein).
        """
        tables = np.sum(self._counts.pairs[channel], axis=0)
        variance = self._counts.variance * len(self._counts.pairs[channel])
        total = self._counts.rows * len(self._counts.pairs[channel])
        alone = np.outer(masses, masses) * total
        together = james_stein_counts(tables.sum(0), alone, variance=variance * len(tables))
        usual = (together + LEAST_SHARE * total) / (together + LEAST_SHARE * total).sum(1, keepdims=True)
        found: Floats = np.empty_like(tables)
        for level, table in enumerate(tables):
            noise = np.full(len(table), variance * len(table))
            states = project_to_simplex(table.sum(1), noise, total=max(table.sum(), 1.0))
            base = states[:, None] * usual
            apart = shrink_by_evidence((table - base).reshape(-1, 1), variance, np.array([math.sqrt(variance)]))
            own = project_to_simplex(base.ravel() + apart[:, 0], np.ones(base.size), total=states.sum())
            own = own.reshape(base.shape) + LEAST_SHARE * usual
            sides = np.outer(own.sum(1), own.sum(0)) / own.sum()
            kept = _LEAST_KEPT * _changing(np.trace(own) / own.sum(), np.trace(sides) / own.sum())
            mixed = (1 - kept) * own + kept * sides + LEAST_SHARE * own.sum()
            found[level] = mixed / mixed.sum(1, keepdims=True)
        return found


def _tilt(transitions: Floats, masses: Floats) -> float:
    """Return the part of a log ratio of shares by which a chain's steps are tilted, so that its shares have that ratio.

    A step keeps λ of what the steps before it tilted, so that 1 - λ is left to it: how often states change, over how
    often independent ones do.

    Args:
        transitions: ``(levels, groups, groups)`` chances of the next state.
        masses: ``(groups,)`` shares of the states.
    """
    return _changing(np.einsum("lgg,g->l", transitions, masses).mean(), (masses**2).sum())


def _changing(stays: float, alone: float) -> float:
    """Return how often states change, over how often they would if steps were independent; at most 1.

    Args:
        stays: Share of steps whose state is that of the step before.
        alone: The same of independent steps.
    """
    return float(np.clip((1 - stays) / max(1 - alone, LEAST_SHARE), 0, 1))


def value_groups(shares: Sequence[Floats]) -> tuple[Tensor, Tensor]:
    """Return groups of series by the values of all attributes: every combination, or a sample if there are many.

    In a sample every value of an attribute occurs in proportion to its share, at least once, and the groups' weights
    reproduce each attribute's shares.

    Args:
        shares: For each attribute positive shares of its values, adding up to 1.

    Returns:
        ``(R, K)`` one-hot blocks, one an attribute, and weights ``(R,)`` that add up to 1.
    """
    combinations = math.prod(len(own) for own in shares)
    if combinations <= MOST_GROUPS:
        listed = list(product(*(range(len(own)) for own in shares)))
        codes = np.array(listed, dtype=np.int64).reshape(combinations, len(shares))
    else:
        rows = max(MOST_GROUPS, *(len(own) for own in shares))
        rng = np.random.default_rng(0)
        codes = np.stack([rng.permutation(_spread(own, rows)) for own in shares], axis=1)
    weights = np.full(len(codes), 1 / len(codes))
    for _ in range(_RAKES):
        for place, own in enumerate(shares):
            weights *= (own / np.bincount(codes[:, place], weights, len(own)))[codes[:, place]]
    blocks = [np.eye(len(own))[codes[:, place]] for place, own in enumerate(shares)]
    values = np.concatenate([np.zeros((len(codes), 0)), *blocks], axis=1)
    return torch.from_numpy(values).float(), torch.from_numpy(weights).float()


def _spread(shares: Floats, rows: int) -> npt.NDArray[np.int64]:
    """Return ``(rows,)`` values, each at least once and otherwise in proportion."""
    spare = rows - len(shares)
    ends = np.round(np.cumsum(shares) / shares.sum() * spare).astype(np.int64)
    return np.repeat(np.arange(len(shares)), 1 + np.diff(ends, prepend=0))


def _present(sizes: Sequence[int], states: int) -> Tensor:
    return torch.arange(states)[None] < torch.tensor(list(sizes))[:, None]


def _padded_logs(shares: Floats, states: int) -> Tensor:
    logs = torch.zeros(states)
    logs[: len(shares)] = torch.from_numpy(np.log(np.maximum(shares, LEAST_SHARE)))
    return logs


def _stacked(tables: Sequence[Floats], shape: tuple[int, ...]) -> Tensor:
    """Return ``(tables, *shape)``, zeros where a table has no cell."""
    stacked = torch.zeros(len(tables), *shape)
    for place, table in enumerate(tables):
        corner = tuple(slice(size) for size in table.shape)
        stacked[place][corner] = torch.from_numpy(table).float()
    return stacked


def _of_series(encoder: Any) -> SeriesCodes:
    if not isinstance(encoder, SeriesCodes):
        raise TypeError("statistics counts codes of series")
    return encoder
