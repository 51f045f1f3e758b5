"""Logistic regressions on noisy counts: of one table, and of the tables of two explaining columns and the outcome.

Two columns need no table of all three. The equation, sum of x · (y - p(x)), takes x · y from the table of each column
and the outcome, and x · p(x) from that of the two. It stays linear in the counts, so that noise leaves it unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.support.arrays import Floats

if TYPE_CHECKING:
    from doublure.training.noisy_tables import NoisyTable


_STEPS, _STILL = 50, 1e-9
"""Most steps of Newton's method, and the relative step at which it ends."""
_FURTHEST = 5.0
"""Largest step of a standardised coefficient; a longer one overshoots where noise makes the slope flat."""
CLEAR = 2.0
"""Deviations of noise from which on a sum of counts counts as seen: below, log-odds and slopes may be anything."""


class AxisCellFacts(Protocol):
    """The attributes of an axis's cells that a regression looks at."""

    column: str
    names: tuple[str, ...]
    at: Floats | None
    spread: Floats
    reference: int | None


class Coefficients(NamedTuple):
    """Coefficients by name, with their standard errors, which are infinite where noise hides one."""

    names: Sequence[str]
    values: Floats
    errors: Floats


class ClearCells(NamedTuple):
    """The cells ``(cells,)`` of an axis whose rows with and without the modelled value are clear of noise."""

    cells: npt.NDArray[np.bool_]
    most: int
    """The one of reference: as asked, or the one with most rows."""


def clear_cells(table: NoisyTable, axis: int, y: Floats, reference: int | None = None) -> ClearCells:
    """Return the clear cells of an axis of a table whose last axis is the target.

    Args:
        table: The table.
        axis: The axis's number.
        y: ``(values,)`` one for the modelled value, else zero.
        reference: The cell that others are compared with; None: the one with most rows.

    Raises:
        SettingError: Noise hides the cell of reference.
    """
    others = tuple(other for other in range(table.counts.ndim - 1) if other != axis)
    counts = table.counts.sum(others)
    added = table.counts.size / counts.size
    noise = table.standard_error * math.sqrt(added * max(y.sum(), (1 - y).sum()))
    clear = np.minimum(counts @ y, counts @ (1 - y)) > CLEAR * noise
    if reference is None:
        return ClearCells(clear, int(np.argmax(np.where(clear, counts.sum(1), -np.inf))))
    if not clear[reference]:
        raise SettingError(
            "is hidden by noise, with or without the value, so that nothing can be compared with it",
            field=f"reference: {table.columns[axis]} = {table.cells[axis][reference]}", remedy="name a frequent one",
        )  # fmt: skip
    return ClearCells(clear, reference)


def fitted(design: Floats, counts: Floats, y: Floats, variance: float, repeats: float = 1.0) -> tuple[Floats, Floats]:
    """Return coefficients of a logistic regression on noisy counts, and their standard errors.

    Args:
        design: ``(cells, coefficients)``.
        counts: ``(cells, values)``.
        y: ``(values,)`` one for the modelled value, else zero.
        variance: Of the noise of each count.
        repeats: By which the variance of sampling is multiplied.
    """
    if not design.size:
        return np.zeros(design.shape[1]), np.full(design.shape[1], np.inf)
    scale = np.maximum(np.abs(design).max(0), 1e-12)
    x, rows = design / scale, counts.sum(1)
    found, chance = _solved(x, rows, x.T @ counts @ y, np.zeros(len(x)))
    curve = (x * (rows * chance * (1 - chance))[:, None]).T @ x
    squares = (y[None] - chance[:, None]) ** 2
    weight = repeats * np.maximum((counts * squares).sum(1), 0) + variance * squares.sum(1)
    inverse = np.linalg.pinv(curve)
    errors = np.sqrt(np.maximum(np.diag(inverse @ ((x * weight[:, None]).T @ x) @ inverse), 0))
    return found / scale, errors / scale


def fitted_of_pairs(
    tables: Sequence[NoisyTable],
    y: Sequence[Floats],
    own: Sequence[AxisCellFacts],
    paired: Sequence[AxisCellFacts],
    margins: Sequence[NoisyTable],
    drawn: Floats,
    repeats: float = 1.0,
) -> tuple[Coefficients, Coefficients]:
    """Return coefficients on two columns from three tables, and those of synthetic rows.

    With x the explaining numbers of a cell, p its chance and n its count, they solve

    * sum of x · y · n over cells of a column and the target = sum of x · p(x) · n over cells of the two columns.

    Their variance is that of noise in both sums, of the sampling of units by the model (x x' p (1 - p) n), and of
    where numbers lie in their cells: a shift of a cell moves the second sum by b · x · p (1 - p) · n, of slope b. Where
    noise hides how the two columns vary together, all errors are infinite.

    Args:
        tables: Of each column and the target, then of the two columns.
        y: Of each of the first tables ``(values,)`` one for the modelled value, else zero.
        own: The columns' cells in the first tables.
        paired: The columns' cells in the last one.
        margins: Tables of one of these columns, which make the others more certain.
        drawn: ``(cells, cells, values)`` synthetic rows in cells of the last table, and of the target.
        repeats: By which the variance of sampling is multiplied.
    """
    *beside, both = tables
    columns = [_Explaining(*each) for each in zip(own, beside, y, strict=True)]
    places = np.indices(both.counts.shape).reshape(len(columns), -1)
    read = list(zip(columns, paired, places, strict=True))
    x = np.concatenate([np.ones((both.counts.size, 1)), *(each.numbers(cells)[at] for each, cells, at in read)], axis=1)
    offset: Floats = np.sum([each.offsets(cells)[at] for each, cells, at in read], axis=0)
    begins = np.cumsum([1, *(len(each.names) for each in columns)])

    # What each count adds to the first sums; the outcome's is taken from the first column's table.
    parts = [np.zeros((x.shape[1], table.counts.size)) for table in beside]
    parts[0][0] = np.tile(y[0], len(own[0].names))
    for part, each, cells, yes, begin in zip(parts, columns, own, y, begins, strict=False):
        part[begin : begin + len(each.names)] = np.kron(each.numbers(cells).T, yes)
    sums, agreed = np.concatenate(parts, axis=1), _AgreedCounts([*tables, *margins])
    n = agreed.counts[sums.shape[1] : sums.shape[1] + len(x)]
    found, chance = _solved(x, n, sums @ agreed.counts[: sums.shape[1]], offset)

    told = chance * (1 - chance)
    curve = (x * (n * told)[:, None]).T @ x
    errors = np.full(len(found), np.inf)
    weakest = told * (x @ np.linalg.eigh(curve)[1][:, 0]) ** 2
    hidden = agreed.variance(np.concatenate([np.zeros(sums.shape[1]), weakest])[None])[0, 0]
    if weakest @ n > CLEAR * math.sqrt(hidden):
        variance = repeats * curve + agreed.variance(np.concatenate([sums, -(x * chance[:, None]).T], axis=1))
        for begin, (each, cells, at) in zip(begins, read, strict=False):
            if cells.at is not None:
                moved = found[begin] * np.stack([np.bincount(at, part * n * told, len(cells.names)) for part in x.T])
                scaled = cells.spread / each.unit**2
                variance += (moved * scaled) @ moved.T
        inverse = np.linalg.inv(curve)
        errors = np.sqrt(np.maximum(np.diag(inverse @ variance @ inverse), 0))
    units = np.array([1.0, *(each.unit for each in columns for _ in each.names)])
    naive = fitted(x[offset == 0], drawn.reshape(len(x), -1)[offset == 0], y[0], 0.0)
    intercept = "(intercept)" + "".join(each.reference for each in columns)
    names = [intercept, *(name for each in columns for name in each.names)]
    asked = [intercept, *(name for each in columns for name in each.asked)]
    return _in_order(asked, names, found / units, errors / units), _in_order(asked, names, *(n / units for n in naive))


class _Explaining:
    """Explaining numbers of a column in a regression.

    A level that noise hides has no coefficient: its rows have the log-odds of its own counts, as far as those say.

    Args:
        cells: Its cells in its table with the target.
        table: That table.
        y: ``(values,)`` one for the modelled value, else zero.

    Attributes:
        names: Of its coefficients. Missing cells of a number have one, too.
        asked: Names of the coefficients that are asked for: of a number, or of all levels but one.
        reference: What the intercept names of it.
        unit: By which its numbers are divided.
    """

    def __init__(self, cells: AxisCellFacts, table: NoisyTable, y: Floats) -> None:
        clear = clear_cells(table, 0, y, cells.reference)
        numbers = np.full(len(cells.names), np.nan) if cells.at is None else cells.at
        levels = [at for at in np.flatnonzero(np.isnan(numbers)) if cells.at is not None or at != clear.most]
        self._seen = {cells.names[at]: number for number, at in enumerate(at for at in levels if clear.cells[at])}
        self._has_numbers = cells.at is not None
        self.unit = max(1e-12, float(np.nanmax(np.abs(numbers)))) if self._has_numbers else 1.0
        self.names = [cells.column] * self._has_numbers + [f"{cells.column} = {name}" for name in self._seen]
        self.asked = [cells.column] if self._has_numbers else [f"{cells.column} = {cells.names[at]}" for at in levels]
        self.reference = "" if self._has_numbers else f", {cells.column} = {cells.names[clear.most]}"
        noise = table.standard_error * math.sqrt(max(y.sum(), (1 - y).sum()))
        yes, no = (np.maximum(table.counts @ own, noise) for own in (y, 1 - y))
        odds = np.log(yes / no)
        base = math.log(yes.sum() / no.sum()) if self._has_numbers else odds[clear.most]
        self._hidden = {cells.names[at]: odds[at] - base for at in levels if not clear.cells[at]}
        self._mean = float(np.average(np.nan_to_num(numbers), weights=yes + no)) / self.unit

    def numbers(self, cells: AxisCellFacts) -> Floats:
        """Return ``(cells, coefficients)`` the explaining numbers of cells."""
        levels = np.zeros((len(cells.names), len(self._seen)))
        for at, name in enumerate(cells.names):
            if name in self._seen:
                levels[at, self._seen[name]] = 1.0
        if cells.at is None:
            return levels
        numbers = np.where(np.isnan(cells.at), self._mean, cells.at / self.unit)
        return np.concatenate([numbers[:, None], levels], axis=1)

    def offsets(self, cells: AxisCellFacts) -> Floats:
        """Return ``(cells,)`` the log-odds of cells that noise hides, beyond those of others."""
        return np.array([self._hidden.get(name, 0.0) for name in cells.names])


def _in_order(asked: Sequence[str], names: Sequence[str], values: Floats, errors: Floats) -> Coefficients:
    """Return the coefficients that are asked for; of those that there are not, nothing is known."""
    known = {name: number for number, name in enumerate(names)}
    at = [known.get(name, len(names)) for name in asked]
    return Coefficients(asked, np.append(values, np.nan)[at], np.append(errors, np.inf)[at])


class _AgreedCounts:
    """Counts of several tables that agree where they count the same cells, by their noise (least squares).

    Args:
        tables: Tables of the same people. Those with an axis of the same cells agree in its counts; others, in the sum.

    Attributes:
        counts: ``(N,)`` of all tables, one after the other.
    """

    def __init__(self, tables: Sequence[NoisyTable]) -> None:
        self._noise = np.concatenate([np.full(table.counts.size, table.standard_error**2) for table in tables])
        begins = np.cumsum([0, *(table.counts.size for table in tables)])
        apart = []
        for (begin, one), (other_begin, other) in combinations(zip(begins, tables, strict=False), 2):
            shared = set(zip(one.columns, one.cells, strict=True)) & set(zip(other.columns, other.cells, strict=True))
            named = sorted(shared)
            margins = [_margins(table, [axis for axis, _ in named]) for table in (one, other)]
            difference = np.zeros((len(margins[0]), begins[-1]))
            difference[:, begin : begin + one.counts.size] = margins[0]
            difference[:, other_begin : other_begin + other.counts.size] = -margins[1]
            apart.append(difference)
        apart_in = np.concatenate(apart)
        self._moved = self._noise[:, None] * apart_in.T
        self._by = np.linalg.pinv(apart_in @ self._moved, hermitian=True)
        counts = np.concatenate([table.counts.ravel() for table in tables]).astype(np.float64)
        self.counts: Floats = counts - self._moved @ (self._by @ (apart_in @ counts))

    def variance(self, weights: Floats) -> Floats:
        """Return ``(M, M)`` the covariance of sums of the first counts, ``(M, n)`` weights of each."""
        n = weights.shape[1]
        less = weights @ self._moved[:n]
        found: Floats = (weights * self._noise[:n]) @ weights.T - less @ self._by @ less.T
        return found


def _margins(table: NoisyTable, columns: Sequence[str]) -> Floats:
    """Return ``(cells of some columns, cells)`` one where a cell of a table belongs to one of theirs."""
    shape = table.counts.shape
    axes = [table.columns.index(name) for name in columns]
    places = np.indices(shape).reshape(len(shape), -1)[axes]
    sizes = [shape[axis] for axis in axes]
    own = np.ravel_multi_index(tuple(places), sizes) if axes else np.zeros(table.counts.size, dtype=np.int64)
    margins: Floats = (np.arange(math.prod(sizes))[:, None] == own[None]).astype(np.float64)
    return margins


def _solved(x: Floats, rows: Floats, sums: Floats, offset: Floats) -> tuple[Floats, Floats]:
    """Return coefficients by which x · p · rows add up to given sums, and the chances ``(cells,)``, by Newton's method.

    Noise makes some rows negative: a cell's own information is then left out, not the cell.
    """
    found = np.zeros(x.shape[1])

    def chances() -> Floats:
        return 1 / (1 + np.exp(-np.clip(x @ found + offset, -30, 30)))

    for _ in range(_STEPS):
        chance = chances()
        slope = sums - x.T @ (rows * chance)
        curve = (x * (np.maximum(rows, 0) * chance * (1 - chance))[:, None]).T @ x
        step = np.clip(np.linalg.lstsq(curve, slope, rcond=None)[0], -_FURTHEST, _FURTHEST)
        found = found + step
        if np.abs(step).max() < _STILL * max(1.0, np.abs(found).max()):
            break
    return found, chances()
