"""Several synthetic tables, each from a draw of what noise and sampling leave open.

Rows of one generator do not show how uncertain it is. Each synthesis is therefore drawn from tables of its own:

1. Rows of the generator get weights by which they agree with all released noisy tables, each count as closely as its
   noise allows. That is the posterior mode where rows are a weak prior, whose counts have Poisson errors.
2. For each synthesis the released counts get fresh noise of the same variance. They move, too, by as much as a
   bootstrap of the weighted rows does: people are a sample of a population. (A parametric bootstrap.)
3. Fresh rows get weights for these counts, and the synthesis is drawn from them by weight. Within a cell of several
   numbers nothing was counted: each synthesis leans its rows towards one end or the other.

This is post-processing and costs nothing. :func:`doublure.evaluate.inference.combine` makes intervals of estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from doublure.data.records import taken, with_made
from doublure.errors import SettingError
from doublure.support.arrays import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema import ResolvedSchema
    from doublure.training.noisy_tables import NoisyTable


_EACH, _FEWEST = 2, 5_000
"""Weighted rows for each row drawn, so that most rows drawn have no twin; and the fewest, where few are drawn."""
_PRIOR = 0.01
"""People that the prior has for each person. It draws a count of noise variance σ² towards the generator's as σ² / 100
people would. Where the generator is wrong by a third, the bias is σ² / 300: under a tenth of the noise up to σ = 30.
In simulations, a prior as heavy as the people took coverage from 95 to 70 of 100."""
_LEAN = math.sqrt(3)
"""Deviation of a cell's lean t, by which rows at z from -1 to 1 get weights exp(t z). Even rows move by t / 3: by the
deviation of an even spread, 1 / √3, so that a cell's mean may be anywhere in it."""
_LARGEST = 3.0
"""Largest step of a log-factor: a longer one overshoots where few rows lie in a cell."""
_SWEEPS, _STILL = 60, 0.05
"""Most sweeps over all tables, and the largest move of a count, in deviations of its noise, at which they end."""


class FittedTables(Protocol):
    """A synthesizer, as far as syntheses ask it."""

    @property
    def schema(self) -> ResolvedSchema:
        """The resolved schema."""

    @property
    def tables(self) -> tuple[NoisyTable, ...]:
        """The noisy tables that the fit bought."""

    def draw(self, n: int, *, seed: int) -> Any:
        """Return so many rows."""


def draw_syntheses(syn: FittedTables, n: int, syntheses: int, seed: int) -> Iterator[pd.DataFrame]:
    """Yield synthetic tables, each from another draw of what the noisy tables leave open.

    Args:
        syn: A synthesizer whose fit bought tables.
        n: Rows of each.
        syntheses: Their number, at least 2.
        seed: Of all draws.

    Raises:
        SettingError: The synthesizer has no tables, its records are not rows of one table, or the number is too small.
    """
    tables = usable_tables(syn)
    if isinstance(syntheses, bool) or syntheses < 2:
        raise SettingError("must be at least 2", field="syntheses", remedy="ask for 20, or leave it out for one")
    if not tables or not syn.schema.only_columns or syn.schema.unit.max_records > 1:
        remedy = "use the run folder of method statistics on a table with one row a unit"
        raise SettingError("need the noisy tables of a fit", field="syntheses", remedy=remedy)
    return _drawn(
        syn, n, [_TargetCounts.of(table) for table in tables], tables, np.random.SeedSequence(seed), syntheses
    )


def _drawn(
    syn: FittedTables,
    n: int,
    targets: Sequence[_TargetCounts],
    tables: Sequence[NoisyTable],
    seeds: np.random.SeedSequence,
    syntheses: int,
) -> Iterator[pd.DataFrame]:
    first, *others = (np.random.default_rng(each) for each in seeds.spawn(syntheses + 1))
    size = max(_FEWEST, _EACH * n)
    # Each table's counts add up to all rows, with the noise of all its cells.
    precision = [1 / (len(own.counts) * own.variance) for own in targets]
    people = max(1.0, float(np.average([own.counts.sum() for own in targets], weights=precision)))
    pool = _RowPool.of(syn, tables, size, first)
    even = np.zeros(size)
    weights, ties = pool.weigh(targets, [np.zeros(len(own.counts)) for own in targets], people, even)
    for rng in others:
        again = rng.multinomial(max(1, round(weights.sum())), weights / weights.sum())
        moved = [
            own.moved(rng.normal(0, own.variance**0.5, len(own.counts)), pool.counts(at, again - weights))
            for at, own in enumerate(targets)
        ]
        fresh = _RowPool.of(syn, tables, size, rng)
        own_weights, _ = fresh.weigh(moved, ties, people, fresh.lean(syn, tables, rng))
        chosen = rng.choice(size, n, p=own_weights / own_weights.sum())
        yield with_made(taken(fresh.rows, chosen), syn.schema, 0, int(rng.integers(2**62)))


def usable_tables(syn: FittedTables) -> list[NoisyTable]:
    """Return the tables whose cells a row's own values tell: of columns, and of nothing that is computed from them."""
    return [table for table in syn.tables if syn.schema.columns.keys() >= set(table.columns)]


@dataclass(frozen=True, kw_only=True, eq=False)
class _TargetCounts:
    """Counts ``(cells,)`` that rows should agree with, as closely as their noise's variance says."""

    counts: Floats
    variance: float

    @property
    def slack(self) -> Floats:
        """A variance ``(cells,)`` by which rows may be off: of the prior, and of what people's own sampling hides.

        With a log-factor of one a count is off by the slack: √count / 10 is a tenth of the deviation of so many people.
        """
        slack: Floats = _PRIOR * self.variance + np.sqrt(np.maximum(self.counts, 1.0)) / 10
        return slack

    @classmethod
    def of(cls, table: NoisyTable) -> _TargetCounts:
        return cls(counts=table.counts.ravel().astype(np.float64), variance=table.standard_error**2)

    def moved(self, noise: Floats, sampling: Floats) -> _TargetCounts:
        return replace(self, counts=self.counts + noise + sampling)


@dataclass(frozen=True, kw_only=True, eq=False)
class _RowPool:
    """Rows of the generator.

    Attributes:
        rows: ``(N, columns)``.
        places: For each table ``(N,)`` the cell of each row; the one after the last for a row in none.
        sizes: Of each table the number of its cells.
    """

    rows: pd.DataFrame
    places: Sequence[Ints]
    sizes: Sequence[int]

    @classmethod
    def of(cls, syn: FittedTables, tables: Sequence[NoisyTable], size: int, rng: np.random.Generator) -> _RowPool:
        """Draw a pool of so many rows, and find them in all tables."""
        from doublure.encode.cell_names import cell_places

        rows, known, places = syn.draw(size, seed=int(rng.integers(2**62))), {}, []
        for table in tables:
            at, inside = np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.bool_)
            for axis in zip(table.columns, table.cells, strict=True):
                if axis not in known:
                    known[axis] = cell_places(syn.schema.columns[axis[0]], axis[1], rows[axis[0]])
                at = at * len(axis[1]) + known[axis]
                inside &= known[axis] >= 0
            places.append(np.where(inside, at, table.counts.size))
        return cls(rows=rows, places=places, sizes=[table.counts.size for table in tables])

    def counts(self, table: int, weights: npt.NDArray[Any]) -> Floats:
        """Return ``(cells,)`` the weight of the rows in each cell of a table."""
        cells = self.sizes[table]
        return np.bincount(self.places[table], weights, minlength=cells + 1)[:cells].astype(np.float64)

    def lean(self, syn: FittedTables, tables: Sequence[NoisyTable], rng: np.random.Generator) -> Floats:
        """Return ``(N,)`` log-weights by which the rows of each cell of several numbers lean to one of its ends."""
        from doublure.encode.cell_names import range_ends

        found = np.zeros(len(self.rows))
        for places, table in zip(self.places, tables, strict=True):
            column = syn.schema.columns[table.columns[0]]
            if column.listed or len(table.columns) > 1:
                continue
            ends = [range_ends(column, name) or [(0.0, 0.0)] for name in table.cells[0]]
            low = np.array([min(first for first, _ in own) for own in ends])
            high = np.array([max(last for _, last in own) for own in ends])
            leans = rng.normal(0, _LEAN, len(ends))
            numbers = column.kept_numbers(self.rows[table.columns[0]])
            inside = ~np.isnan(numbers) & (places < len(ends))
            at = places[inside]
            width = high[at] - low[at]
            place = (numbers[inside] - low[at]) / np.where(width > 0, width, 1.0)
            found[inside] += np.where(width > 0, leans[at] * (2 * np.clip(place, 0, 1) - 1), 0.0)
        return found

    def weigh(
        self, targets: Sequence[_TargetCounts], ties: Sequence[Floats], people: float, leaning: Floats
    ) -> tuple[Floats, list[Floats]]:
        """Return ``(N,)`` weights by which rows agree with all targets, and the log-factors of each table's cells.

        They minimise the relative entropy to even weights that add up to ``people``, plus half the squared distance
        from each count in units of its slack v. The dual is solved a table at a time, as its cells are disjoint (soft
        iterative proportional fitting): the step s of a cell solves a·exp(s) + v·(t + s) = c.

        Args:
            targets: A table each.
            ties: Log-factors to begin with.
            people: The sum of even weights.
            leaning: ``(N,)`` what is added to the logarithm of even weights.
        """
        from scipy.special import wrightomega

        ties = [own.copy() for own in ties]
        log = leaning + np.log(people / len(self.rows))
        for places, own in zip(self.places, ties, strict=True):
            log += np.append(own, 0.0)[places]
        weights = np.exp(log)
        slacks = [own.slack for own in targets]
        for _ in range(_SWEEPS):
            furthest = 0.0
            for at, (target, slack) in enumerate(zip(targets, slacks, strict=True)):
                there = self.counts(at, weights)
                some, step = there > 0, np.zeros(len(there) + 1)
                free = (target.counts / slack - ties[at])[some]
                step[:-1][some] = free - wrightomega(free + np.log(there[some] / slack[some]))
                step = np.clip(step, -_LARGEST, _LARGEST)
                ties[at] += step[:-1]
                weights *= np.exp(step)[self.places[at]]
                furthest = max(furthest, float((np.abs(step[:-1]) * there).max()) / target.variance**0.5)
            if furthest < _STILL:
                break
        return weights, ties
