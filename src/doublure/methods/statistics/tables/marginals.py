"""Noisy tables of a table's columns, and the generator fitted to them: training of ``statistics`` on tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from doublure.encode.table import Block, TableEncoder
from doublure.methods.statistics import binning as grouping
from doublure.methods.statistics.binning import Grouping, closest_counts
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables.mixture_fit import Moments, fit_mixture, misfits
from doublure.networks.mixture import MixtureGenerator
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.counts import Axis, Table
from doublure.schema.columns import NumberColumn, OrdinalColumn
from doublure.training.checkpoints import KeptTables
from doublure.training.job import Job
from doublure.training.noisy_tables import noisy_tables

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

Floats: TypeAlias = npt.NDArray[np.float64]

_LEAST = 1e-12
_FEWEST_ROWS = 1.0


def untaught(encoder: Encoder, within: str | None, components: int) -> MixtureGenerator:
    """Return a generator of the right shape: so many components for each value of ``within``."""
    table = _of_tables(encoder)
    classes = next((block.size for block in table.blocks if block.column == within), 1)
    return MixtureGenerator(
        [block.size for block in table.blocks],
        condition_width=table.condition_width,
        components=classes * components,
    )


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What was fitted to noisy tables.

    Attributes:
        generator: Trained to the end.
        loss: How far a generator of the same shape is from the tables, in units of their noise's variance.
    """

    generator: MixtureGenerator
    loss: Callable[[MixtureGenerator], Tensor]


def taught(job: Job, settings: TableStatisticsSettings, events: Sequence[DiscreteGaussianEvent]) -> Lesson:
    """Release the tables of a job's records and fit a generator to them.

    Args:
        job: The run.
        settings: With defaults resolved.
        events: What the plan pays for, a release each.
    """
    tables = _NoisyTables(job, settings, events)
    job.progress.stage("count", len(events))
    tables.count_singles()
    tables.count_pairs()
    job.hand_out(noisy_tables(_of_tables(job.encoder), tables.released))
    generator = untaught(job.encoder, settings.within or None, settings.components)
    source = torch.Generator().manual_seed(job.seed)
    fits = [(own, components) for own in range(tables.classes) for components in settings.fits]
    total = len(fits) * settings.fit_steps
    job.progress.stage("teach the generator", total)
    moments = [tables.moments(own) for own in range(tables.classes)]
    logits = []
    for number, (own, components) in enumerate(fits):

        def at(step: int, before: int = number * settings.fit_steps) -> None:
            job.check_stop()
            job.progress.at(before + step)

        fitted = fit_mixture(
            moments[own], components=components, steps=settings.fit_steps, prior=settings.prior, generator=source, at=at
        )
        job.log({"class": own, "fit_steps": fitted.steps, "misfit": round(fitted.misfit, 4)})
        logits.append(tables.fine(fitted.probabilities, own).clamp(min=_LEAST).log())
    weights = [math.log(rows) - math.log(settings.components) for rows in tables.rows]
    job.progress.at(total)
    with torch.no_grad():
        generator.logits.copy_(torch.cat(logits))
        log_weights = torch.tensor(weights).repeat_interleave(settings.components)
        generator.log_weights.copy_(torch.log_softmax(log_weights, dim=0))

    def loss(moving: MixtureGenerator) -> Tensor:
        total = torch.zeros(())
        for each, rows in zip(moments, torch.split(moving.probabilities(), settings.components), strict=True):
            single, pairs = misfits(tables.coarse(rows), each)
            total = total + pairs + single.sum() / each.cells
        return total

    return Lesson(generator=generator, loss=loss)


class _NoisyTables:
    """The releases, and what follows from them.

    Attributes:
        classes: How many values the column has within which all is counted; 1 where there is none.
        rows: ``(classes,)`` how many records each has, by all tables together.
        released: Every table as it was released: its axes, its counts, and their noise's standard deviation.
    """

    def __init__(self, job: Job, settings: TableStatisticsSettings, events: Sequence[DiscreteGaussianEvent]) -> None:
        encoder = _of_tables(job.encoder)
        self._settings = settings
        self._events = events
        self._columns = encoder.schema.columns
        self._blocks = list(enumerate(encoder.blocks))
        self._class = next((part for part in self._blocks if part[1].column == settings.within), None)
        self._others = [part for part in self._blocks if part is not self._class]
        count = len(self._others)
        # A single column beside the class is counted within it by itself.
        alone = [(0,)] if count == 1 and self._class else []
        self._pairs: list[tuple[int, ...]] = [*alone, *combinations(range(count), 2)]
        self.classes = self._class[1].size if self._class else 1
        self._tables = KeptTables(job)
        self.released: list[tuple[Table, Floats, float]] = []
        self._singles: dict[int, Floats] = {}
        self._doubles: list[Floats] = []
        self._groupings: list[Grouping] = []
        self.rows: Floats = np.ones(1)

    def count_singles(self) -> None:
        """Release each column's fine codes, and join them to groups."""
        wanted = [(Axis.of_codes(part, block.size),) for part, block in self._blocks]
        counted = self._tables.released("single", 1, wanted)
        self.released += [(*each, self._events[0].scale) for each in zip(wanted, counted, strict=True)]
        self._singles = {part: table for (part, _), table in zip(self._blocks, counted, strict=True)}
        self._groupings = [self._grouping(block, self._singles[part]) for part, block in self._others]
        self._count_rows()

    def count_pairs(self) -> None:
        """Release each pair of columns in groups, within each class."""
        axes = [
            Axis(part=part, cells=own.groups, size=own.size)
            for (part, _), own in zip(self._others, self._groupings, strict=True)
        ]
        within = (Axis.of_codes(self._class[0], self.classes),) if self._class else ()
        wanted = [(*(axes[place] for place in pair), *within) for pair in self._pairs]
        if wanted:
            counted = self._tables.released("pair", 2, wanted)
            self.released += [(*each, self._events[1].scale) for each in zip(wanted, counted, strict=True)]
            self._doubles = [
                table.reshape(*table.shape[: len(pair)], self.classes)
                for pair, table in zip(self._pairs, counted, strict=True)
            ]
        self._count_rows()

    def moments(self, own: int) -> Moments:
        """Return the tables of one class, as shares of its rows."""
        sizes = [each.size for each in self._groupings]
        starts = np.cumsum([0, *sizes])
        rows = self.rows[own]
        single, single_precision = np.empty(starts[-1]), np.empty(starts[-1])
        for place in range(len(sizes)):
            counts, variances = self._within(place)
            group = slice(starts[place], starts[place + 1])
            single[group] = closest_counts(counts[:, own], variances[:, own], total=rows) / rows
            single_precision[group] = rows**2 / variances[:, own]
        double, precision = np.zeros((2, starts[-1], starts[-1]), dtype=np.float32)
        for pair, table in zip(self._pairs, self._doubles, strict=False):
            if len(pair) == 2:
                left, right = (slice(starts[place], starts[place + 1]) for place in pair)
                shares = table[:, :, own] / rows
                double[left, right], double[right, left] = shares, shares.T
                precision[left, right] = precision[right, left] = (rows / self._events[1].scale) ** 2
        return Moments(
            sizes=sizes,
            single=torch.from_numpy(single).float(),
            single_precision=torch.from_numpy(single_precision).float(),
            double=torch.from_numpy(double),
            double_precision=torch.from_numpy(precision),
        )

    def _within(self, place: int) -> tuple[Floats, Floats]:
        """Return a column's groups within each class ``(groups, classes)``, and the variances.

        What the pairs say of it, by class, is made to agree with what the column's own table says of all classes
        together, each giving way by how noisy it is.
        """
        each = self._groupings[place]
        precision, counts = 0.0, np.zeros((each.size, self.classes))
        for pair, table in zip(self._pairs, self._doubles, strict=False):
            if place in pair:
                axis = 1 - pair.index(place)
                summed, cells = (table.sum(axis), table.shape[axis]) if len(pair) == 2 else (table, 1)
                counts += summed / cells
                precision += 1 / cells
        together = each.join(self._singles[self._others[place][0]])
        own = np.bincount(each.groups) * self._events[0].scale ** 2
        if not precision:  # nothing but the column itself: the classes share it by their size
            shares = self.rows / self.rows.sum()
            return together[:, None] * shares, own[:, None] * shares**2 + np.zeros((1, self.classes))
        variance = self._events[1].scale ** 2 / precision
        counts /= precision
        gain = variance / (self.classes * variance + own)
        counts += (gain * (together - counts.sum(1)))[:, None]
        return counts, np.repeat((variance * (1 - gain))[:, None], self.classes, axis=1)

    def fine(self, probabilities: Tensor, own: int) -> Tensor:
        """Return ``(components, width)``: probabilities of groups spread over their codes, the class's own set."""
        parts = dict.fromkeys(range(len(self._blocks)), torch.empty(0))
        grouped = torch.split(probabilities, [each.size for each in self._groupings], dim=1)
        for (part, _), each, values in zip(self._others, self._groupings, grouped, strict=True):
            parts[part] = values[:, torch.from_numpy(each.groups)] * torch.from_numpy(each.shares).float()
        if self._class:
            part, block = self._class
            parts[part] = torch.zeros(len(probabilities), block.size)
            parts[part][:, own] = 1.0
        return torch.cat(list(parts.values()), dim=1)

    def coarse(self, probabilities: Tensor) -> Tensor:
        """Return ``(components, groups)``: what :meth:`fine` has spread, joined again; the class's own set left out."""
        parts = torch.split(probabilities, [block.size for _, block in self._blocks], dim=1)
        joined = []
        for (part, _), each in zip(self._others, self._groupings, strict=True):
            empty = torch.zeros(len(probabilities), each.size)
            joined.append(empty.index_add(1, torch.from_numpy(each.groups), parts[part]))
        return torch.cat(joined, dim=1)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _grouping(self, block: Block, counts: Floats) -> Grouping:
        column, most = self._columns[block.column], self._settings.groups
        noise = self._events[0].scale
        if isinstance(column, (OrdinalColumn, NumberColumn)):
            smooth = not isinstance(column, OrdinalColumn)
            return grouping.ordered(counts, noise=noise, most=most, states=block.states, smooth=smooth)
        rare = self._events[-1].scale * math.sqrt(self.classes)
        return grouping.unordered(counts, noise=noise, rare=rare, most=4 * most)

    def _count_rows(self) -> None:
        """Estimate each class's rows from the totals of all tables so far, weighted by how noisy they are."""
        totals, precision = np.zeros(self.classes), 0.0
        for table in self._doubles:
            cells = table.size / self.classes * self._events[1].scale ** 2
            totals += table.reshape(-1, self.classes).sum(0) / cells
            precision += 1 / cells
        if self._class:
            own = self._events[0].scale ** 2
            totals += self._singles[self._class[0]] / own
            precision += 1 / own
        else:
            for table in self._singles.values():
                cells = len(table) * self._events[0].scale ** 2
                totals += table.sum() / cells
                precision += 1 / cells
        self.rows = np.maximum(totals / precision, _FEWEST_ROWS)


def _of_tables(encoder: Any) -> TableEncoder:
    if not isinstance(encoder, TableEncoder):
        raise TypeError("statistics counts tables")
    return encoder
