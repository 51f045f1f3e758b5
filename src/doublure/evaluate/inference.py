"""Estimates with intervals from released noisy tables: shares, means and logistic coefficients.

A synthetic row does not show how uncertain it is. The noisy tables do: the variance of their noise is public, and their
cells were chosen by earlier answers, whose noise is independent of theirs. Each estimate solves an estimating equation
that is linear in the counts, so that noise leaves it unbiased:

* sum over cells of count · u(cell; estimate) = 0.

Its variance is that of the sum over the squared slope (a sandwich: Huber 1967). A cell adds count · u² for sampling,
as the rows are a sample of a population, and σ² · u² for the noise. Rows of a cell of several numbers are at their mean
in synthetic rows; how far it may be off adds the variance of an even spread over the cell. These figures are
post-processing: they cost nothing and may be published. For what multiple synthetic data sets would need, see
``docs/inference.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm

from doublure.encode.cell_names import MISSING
from doublure.errors import SettingError
from doublure.results import MeanInterval
from doublure.run.synthesizer import Synthesizer
from doublure.schema.columns import Column
from doublure.training.noisy_tables import NoisyTable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

CONFIDENCE = 0.95
_STEPS, _STILL = 50, 1e-9
"""Most steps of Newton's method, and the relative step at which it ends."""
_FURTHEST = 5.0
"""Largest step of a standardised coefficient; a longer one overshoots where noise makes the slope flat."""
_CLEAR = 2.0
"""Deviations of noise from which on a cell's rows count as seen: below, its log-odds may be anything."""
_ROWS = 20_000
"""Synthetic rows that show the mean of the numbers within a cell, and give the naive intervals beside."""


@dataclass(frozen=True, kw_only=True)
class IntervalEstimate:
    """An estimate with two intervals.

    Attributes:
        name: What is estimated.
        value: From the noisy tables.
        low: Lower end of its interval of 95 %.
        high: Upper end.
        naive: The interval that synthetic rows would give if they were taken for real ones: too narrow, and around
            their own estimate. It is here as a warning.
    """

    name: str
    value: float
    low: float
    high: float
    naive: tuple[float, float]


def shares(syn: Synthesizer, column: str, *, seed: int = 0) -> tuple[IntervalEstimate, ...]:
    """Return the share of each cell that a column was counted in, among all rows.

    Args:
        syn: A synthesizer whose fit bought tables.
        column: Its name.
        seed: Of the synthetic rows behind the naive intervals.

    Raises:
        SettingError: The column was not counted by itself.

    Example:
        >>> found = db.evaluate.inference.shares(syn, "sex")
        >>> [(each.name, each.low < each.value < each.high) for each in found]
        [('sex = Female', True), ('sex = Male', True)]
    """
    table = _table(syn, (column,))
    cells = _AxisCells(syn, column, table.cells[0], _sampled(syn, seed))
    found = []
    for place, name in enumerate(table.cells[0]):
        inside = np.arange(len(table.cells[0])) == place
        value, error = _mean(table, inside.astype(np.float64), np.zeros(len(inside)))
        found.append(_estimate(f"{column} = {name}", value, error, cells.naive_mean(cells.place == place)))
    return tuple(found)


def mean(syn: Synthesizer, column: str, *, seed: int = 0) -> IntervalEstimate:
    """Return the mean of a column of numbers over the rows where it is not missing.

    Args:
        syn: A synthesizer whose fit bought tables.
        column: Its name.
        seed: Of the synthetic rows that show means within cells.

    Raises:
        SettingError: The column has no numbers, or was not counted by itself.

    Example:
        >>> age = db.evaluate.inference.mean(syn, "age")
        >>> age.low < age.value < age.high
        True
    """
    return _estimate_mean(syn, column, _sampled(syn, seed))


def logistic(
    syn: Synthesizer, target: str, value: str, on: Sequence[str], *, seed: int = 0
) -> tuple[IntervalEstimate, ...]:
    """Return the coefficients of a logistic regression on columns that were counted together with the target.

    A column of numbers enters as a number. Another has a coefficient for each cell but the most frequent one, which the
    intercept names. A cell whose rows with or without the value are lost in noise has the interval of all numbers, and
    is left out of the fit.

    Args:
        syn: A synthesizer whose fit bought tables.
        target: The column that is explained.
        value: Its value whose log-odds are modelled, as the tables name it.
        on: One or more explaining columns.
        seed: Of the synthetic rows that show means within cells.

    Raises:
        SettingError: These columns were not counted together, or the target has no such cell.

    Example:
        >>> found = db.evaluate.inference.logistic(syn, "income", "high", ["age"])
        >>> [each.name for each in found]
        ['(intercept)', 'age']
    """
    table = _table(syn, (*on, target))
    if value not in table.cells[-1]:
        raise SettingError("was not counted by itself", field=f"{target} = {value}", remedy="name a cell of the table")
    rows = _sampled(syn, seed)
    axes = [_AxisCells(syn, column, names, rows) for column, names in zip(on, table.cells[:-1], strict=True)]
    y = (np.array(table.cells[-1], dtype=object) == value).astype(np.float64)
    design, names, usable = _design(axes, table, y)
    counts = table.counts.reshape(-1, len(y)).astype(np.float64)
    seen = np.abs(design[usable]).any(0)
    found, errors = np.full(len(names), np.nan), np.full(len(names), np.inf)
    found[seen], errors[seen] = _fitted(design[usable][:, seen], counts[usable], y, table.standard_error**2)
    drawn = np.zeros(table.counts.shape)
    places = [cells.place for cells in axes] + [_AxisCells(syn, target, table.cells[-1], rows).place]
    inside = np.all([place >= 0 for place in places], axis=0)
    np.add.at(drawn, tuple(place[inside] for place in places), 1)
    own, naive = found.copy(), errors.copy()
    own[seen], naive[seen] = _fitted(design[usable][:, seen], drawn.reshape(counts.shape)[usable], y, 0.0)
    return tuple(
        _estimate(name, at, error, _interval(other, beside))
        for name, at, error, other, beside in zip(names, found, errors, own, naive, strict=True)
    )


def means_beside_real(syn: Synthesizer, real: pd.DataFrame, seed: int) -> tuple[MeanInterval, ...]:
    """Return the mean of each number that was counted by itself, beside that of real rows. Internal.

    A number that all synthetic rows miss has no interval by them, and is left out.

    Args:
        syn: A synthesizer, whose fit may have bought no tables.
        real: Real rows.
        seed: Of the synthetic rows.
    """
    counted = {table.columns[0] for table in syn.tables if len(table.columns) == 1}
    if not counted:
        return ()
    rows, found = _sampled(syn, seed), []
    for column, own in syn.schema.columns.items():
        there = own.numbers_of(real[column].dropna()) if column in counted and own.adds_up else np.zeros(0)
        each = _estimate_mean(syn, column, rows) if len(there) else None
        if each is not None and all(map(math.isfinite, (each.low, each.high, *each.naive))):
            found.append(
                MeanInterval(
                    column=column, value=each.value, low=each.low, high=each.high, naive_low=each.naive[0],
                    naive_high=each.naive[1], real=float(there.mean()),
                )
            )  # fmt: skip
    return tuple(found)


# -- inside ------------------------------------------------------------------------------------------------------------


def _estimate_mean(syn: Synthesizer, column: str, rows: pd.DataFrame) -> IntervalEstimate:
    """Return :func:`mean`, with synthetic rows that are there already."""
    table = _table(syn, (column,))
    cells = _AxisCells(syn, column, table.cells[0], rows)
    if cells.at is None:
        raise SettingError("has no numbers", field=column, remedy="ask for its shares")
    there = np.isfinite(cells.at)
    known = NoisyTable(
        columns=table.columns, cells=(tuple(np.array(table.cells[0], dtype=object)[there]),),
        counts=table.counts[there], standard_error=table.standard_error,
    )  # fmt: skip
    value, error = _mean(known, cells.at[there], cells.spread[there])
    numbers = cells.numbers[np.isfinite(cells.numbers)]
    return _estimate(f"mean of {column}", value, error, cells.naive_mean(numbers))


class _AxisCells:
    """The cells of an axis, and where synthetic rows lie in them.

    Args:
        syn: The synthesizer.
        column: The axis's column.
        names: Of its cells.
        rows: Synthetic rows.

    Attributes:
        column: The column.
        names: Of its cells.
        place: ``(N,)`` the cell of each synthetic row; -1: of none.
        numbers: ``(N,)`` the rows' numbers, NaN where missing.
        at: ``(cells,)`` the mean number of each cell, NaN for a missing one; None without numbers.
        spread: ``(cells,)`` variance of an even spread over the cell, by which its mean may be off.
    """

    def __init__(self, syn: Synthesizer, column: str, names: Sequence[str], rows: pd.DataFrame) -> None:
        own, cells = syn.schema.columns[column], rows[column]
        self.column, self.names = column, tuple(names)
        self.place = np.full(len(cells), -1)
        self.numbers: Floats = np.full(len(cells), np.nan)
        self.at: Floats | None = None
        self.spread = np.zeros(len(names))
        missing = cells.isna().to_numpy()
        for number, name in enumerate(names):
            if MISSING in name.split(" | "):
                self.place[missing] = number
        if own.listed:
            known = {part: number for number, name in enumerate(names) for part in name.split(" | ")}
            texts = [known.get(own.text_of(code), -1) for code in range(len(own.domain))]
            codes = own.numbers_of(cells[~missing]).astype(np.int64)
            self.place[~missing] = np.array(texts)[codes]
            return
        self.numbers[~missing] = own.numbers_of(cells[~missing])
        self._place_numbers(own)

    def naive_mean(self, numbers: npt.NDArray[Any]) -> tuple[float, float]:
        """Return the interval of a mean by synthetic rows alone."""
        own = numbers.astype(np.float64)
        if not len(own):
            return _interval(math.nan, math.inf)
        return _interval(float(own.mean()), float(own.std() / math.sqrt(max(1, len(own)))))

    def _place_numbers(self, own: Column) -> None:
        self.at = np.full(len(self.names), np.nan)
        for number, name in enumerate(self.names):
            parts = [part for part in name.split(" | ") if part != MISSING]
            ends = [(own.number_of(part.split("..")[0]), own.number_of(part.split("..")[-1])) for part in parts]
            if not ends:
                continue
            inside = np.any([(self.numbers >= low) & (self.numbers <= high) for low, high in ends], axis=0)
            self.place[inside] = number
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
            self.at[number] = self.numbers[inside].mean() if inside.any() else (low + high) / 2
            self.spread[number] = (high - low) ** 2 / 12


def _sampled(syn: Synthesizer, seed: int) -> pd.DataFrame:
    frame: pd.DataFrame = syn.sample(min(_ROWS, max(1, syn.default_n)), seed=seed)
    return frame


def _table(syn: Synthesizer, columns: tuple[str, ...]) -> NoisyTable:
    """Return the table of some columns, in this order: the one of least noise, after other axes are added up.

    Raises:
        SettingError: There is none.
    """
    best: NoisyTable | None = None
    for table in syn.tables:
        if not set(columns) <= set(table.columns):
            continue
        rest = [axis for axis, name in enumerate(table.columns) if name not in columns]
        counts = table.counts.sum(tuple(rest)) if rest else table.counts
        left = [axis for axis in range(len(table.columns)) if axis not in rest]
        order = [left.index(table.columns.index(name)) for name in columns]
        cells = math.prod(table.counts.shape[axis] for axis in rest)
        found = NoisyTable(
            columns=columns, cells=tuple(table.cells[table.columns.index(name)] for name in columns),
            counts=np.ascontiguousarray(counts.transpose(order)),
            standard_error=table.standard_error * math.sqrt(cells),
        )  # fmt: skip
        if best is None or _total_noise(found) < _total_noise(best):
            best = found
    if best is None:
        named = " and ".join(columns)
        raise SettingError("were not counted together" if len(columns) > 1 else "was not counted", field=named,
                           remedy="plan with focus on them, or ask for others")  # fmt: skip
    return best


def _total_noise(table: NoisyTable) -> float:
    return table.counts.size * table.standard_error**2


def _mean(table: NoisyTable, at: Floats, spread: Floats) -> tuple[float, float]:
    """Return the mean over a table's rows of a number for each cell, and its standard error."""
    counts = table.counts.astype(np.float64)
    rows = max(1.0, float(counts.sum()))
    value = float(counts @ at) / rows
    share = np.maximum(counts, 0) / rows
    sampling = max(0.0, float(counts @ ((at - value) ** 2))) + float(np.maximum(counts, 0) @ spread)
    noise = table.standard_error**2 * float(((at - value) ** 2).sum())
    return value, math.sqrt((sampling + noise) / rows**2 + float(share**2 @ spread))


def _design(
    axes: Sequence[_AxisCells], table: NoisyTable, y: Floats
) -> tuple[Floats, list[str], npt.NDArray[np.bool_]]:
    """Return the explaining numbers of each cell of a table, their names, and which cells can be used.

    Args:
        axes: The explaining columns.
        table: Their counts with the target, which is last.
        y: ``(values,)`` one at the target's modelled value.

    Returns:
        ``(cells, coefficients)``, their names, and ``(cells,)``.
    """
    sizes = [len(cells.names) for cells in axes]
    usable, parts, names, reference = np.ones(math.prod(sizes), dtype=np.bool_), [np.ones(math.prod(sizes))], [], ""
    for axis, (place, cells) in enumerate(zip(np.indices(sizes).reshape(len(sizes), -1), axes, strict=True)):
        if cells.at is not None:
            usable &= np.isfinite(cells.at)[place]
            parts.append(np.nan_to_num(cells.at)[place])
            names.append(cells.column)
            continue
        counts = table.counts.sum(tuple(other for other in range(len(sizes)) if other != axis))
        noise = table.standard_error * math.sqrt(math.prod(sizes) / sizes[axis] * max(y.sum(), (1 - y).sum()))
        clear = np.minimum(counts @ y, counts @ (1 - y)) > _CLEAR * noise
        usable &= clear[place]
        most = int(np.argmax(np.where(clear, counts.sum(1), -np.inf)))
        reference += f", {cells.column} = {cells.names[most]}"
        for number in (number for number in range(sizes[axis]) if number != most):
            parts.append((place == number).astype(np.float64))
            names.append(f"{cells.column} = {cells.names[number]}")
    return np.stack(parts, axis=1), [f"(intercept){reference}", *names], usable


def _fitted(design: Floats, counts: Floats, y: Floats, variance: float) -> tuple[Floats, Floats]:
    """Return coefficients of a logistic regression on noisy counts ``(cells, values)``, and their standard errors."""
    scale = np.maximum(np.abs(design).max(0), 1e-12)
    x = design / scale
    found = np.zeros(x.shape[1])
    rows = counts.sum(1)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        slope = x.T @ (counts @ y - rows * chance)
        # Noise makes some counts negative: a cell's own information is then left out, not the cell's slope.
        curve = (x * (np.maximum(rows, 0) * chance * (1 - chance))[:, None]).T @ x
        step = np.clip(np.linalg.lstsq(curve, slope, rcond=None)[0], -_FURTHEST, _FURTHEST)
        found = found + step
        if np.abs(step).max() < _STILL * max(1.0, np.abs(found).max()):
            break
    chance = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
    curve = (x * (rows * chance * (1 - chance))[:, None]).T @ x
    squares = (y[None] - chance[:, None]) ** 2
    weight = np.maximum((counts * squares).sum(1), 0) + variance * squares.sum(1)
    inverse = np.linalg.pinv(curve)
    errors = np.sqrt(np.maximum(np.diag(inverse @ ((x * weight[:, None]).T @ x) @ inverse), 0))
    return found / scale, errors / scale


def _interval(value: float, error: float) -> tuple[float, float]:
    if not math.isfinite(error):
        return -math.inf, math.inf
    reach = float(norm.ppf((1 + CONFIDENCE) / 2)) * float(error)
    return float(value) - reach, float(value) + reach


def _estimate(name: str, value: float, error: float, naive: tuple[float, float]) -> IntervalEstimate:
    low, high = _interval(value, error)
    return IntervalEstimate(name=name, value=float(value), low=low, high=high, naive=naive)
