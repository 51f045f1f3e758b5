"""Estimates with intervals from released noisy tables: shares, means and logistic coefficients.

A synthetic row does not show how uncertain it is. The noisy tables do: the variance of their noise is public, and their
cells were chosen by earlier answers, whose noise is independent of theirs. Each estimate solves an estimating equation
that is linear in the counts, so that noise leaves it unbiased:

* sum over cells of count · u(cell; estimate) = 0.

Its variance is that of the sum over the squared slope (a sandwich: Huber 1967). A cell adds count · u² for sampling, as
units are a random sample of a population, and σ² · u² for the noise. Where a unit may have k rows, the variance of its
sum of u is at most k times that of k single rows (Cauchy and Schwarz), so that sampling counts k times. Rows of a cell
of several numbers are at their mean in synthetic rows; how far it may be off adds the variance of an even spread over
the cell.

A logistic regression on two columns needs no table of all three. Its equation, sum of x · (y - p(x)), takes x · y from
the table of each column and the outcome, and x · p(x) from the table of the two: it stays linear in the counts. Tables
that count the same cells are first made to agree, by their noise (generalised least squares, which is linear, too).

Other estimates come from several syntheses (:mod:`doublure.run.syntheses`), by rules for fully synthetic data
(Raghunathan, Reiter & Rubin 2003) that also hold where noise was added for privacy (Räisä et al. 2023). They see what
pairs of columns were counted; where a pair was not, they are refused. A synthesis has no negative counts: the noise of
sparse cells then hides how numbers go together, and their slopes come out flatter. Those are refused, too.

All figures are post-processing: they cost nothing and may be published.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student_t

from doublure.encode.cell_names import cell_parts, cell_places, range_ends
from doublure.errors import SettingError
from doublure.evaluate.logistic import CLEAR, ClearCells, clear_cells, fitted, fitted_of_pairs
from doublure.methods.statistics.tables.focus import refused_slopes
from doublure.results import MeanInterval
from doublure.run.syntheses import usable_tables
from doublure.run.synthesizer import Synthesizer
from doublure.schema.columns import Column
from doublure.schema.rules.rule_set import computed_advice
from doublure.support.arrays import Floats, Ints
from doublure.support.guessing import suggest
from doublure.training.noisy_tables import NoisyTable

Syntheses: TypeAlias = "int | Sequence[pd.DataFrame]"

CONFIDENCE = 0.95
SYNTHESES = 20
"""Syntheses behind an estimate, if not given: Student's quantile then has some ten degrees of freedom or more."""
_ROWS = 20_000
"""Synthetic rows that show the mean of the numbers within a cell, and give the naive intervals beside."""
_MORE = "plan with more ε, put its columns in focus"
_LOST = f"at this ε noise hides its rows, with or without the value; {_MORE}, or group rare values under other"
_NO_ROWS = f"at this ε some synthesis has no rows for it, or no finite variance; {_MORE}, or ask for larger groups"
_STEPS = "every synthesis gives the same figure, which moves in steps, as a median does; ask for a share or a mean"
"""Why an interval is of all numbers, and what to do."""
_TOGETHER = "no table holds all of these columns: what all together say is the generator's; ask for two"
"""The limit of an interval that is about fewer columns together than were asked for."""
_IN_PAIRS = 2
"""Most explaining columns of a logistic regression whose equation is linear in the counts of pairs."""


@dataclass(frozen=True, kw_only=True)
class IntervalEstimate:
    """An estimate with two intervals.

    Attributes:
        name: What is estimated.
        value: From the noisy tables, in the column's unit; of dates the days, and of moments the seconds since 1970.
            It is unbiased. So it may lie outside what is possible, such as a share below zero, and outside ``naive``.
        low: Lower end of its interval of 95 %, cut at what is possible: the true figure is never beyond, so that the
            interval holds as often.
        high: Upper end.
        naive: The interval that rows of one synthesis would give if they were taken for real ones: too narrow, and
            around their own estimate. It is here as a warning.
        dates: Value, low and high as the column writes them, where it holds dates or moments.
        note: Why the interval is of all numbers, and what to do; else what it does not tell, if so.
    """

    name: str
    value: float
    low: float
    high: float
    naive: tuple[float, float]
    dates: tuple[str, str, str] | None = None
    note: str = ""

    def within(self, lowest: float, highest: float) -> IntervalEstimate:
        """Return it with the part of the interval between two numbers; of none of it, the nearest of them."""
        low, high = (min(max(end, lowest), highest) for end in (self.low, self.high))
        return replace(self, low=low, high=high)


def shares(syn: Synthesizer, column: str, *, design_effect: float = 1.0, seed: int = 0) -> tuple[IntervalEstimate, ...]:
    """Return the share of each cell that a column was counted in, among all rows.

    Args:
        syn: A synthesizer whose fit bought tables.
        column: Its name.
        design_effect: By which the variance of sampling is multiplied. Give it where units were not sampled one by one,
            such as people by household or village: intervals are too short without it.
        seed: Of the synthetic rows behind the naive intervals.

    Raises:
        SettingError: The column was not counted by itself, or the design effect is not above 0.

    Example:
        >>> found = db.evaluate.inference.shares(syn, "sex")
        >>> [(each.name, each.low < each.value < each.high) for each in found]
        [('sex = Female', True), ('sex = Male', True)]
    """
    table = _table(syn, (column,))
    cells, repeats = AxisCells(syn, column, table.cells[0], _sampled(syn, seed)), _repeats(syn, design_effect)
    found = []
    for place, name in enumerate(table.cells[0]):
        inside = np.arange(len(table.cells[0])) == place
        value, error = _mean(table, inside.astype(np.float64), np.zeros(len(inside)), repeats)
        naive = cells.naive_mean(cells.place == place)
        found.append(_noted(syn, _estimate(f"{column} = {name}", value, error, naive).within(0.0, 1.0)))
    return tuple(found)


def mean(syn: Synthesizer, column: str, *, design_effect: float = 1.0, seed: int = 0) -> IntervalEstimate:
    """Return the mean of a column of numbers or dates over the rows where it is not missing.

    Args:
        syn: A synthesizer whose fit bought tables.
        column: Its name.
        design_effect: As :func:`shares` takes it.
        seed: Of the synthetic rows that show means within cells.

    Raises:
        SettingError: The column has no numbers, or was not counted by itself, or the design effect is not above 0.

    Example:
        >>> age = db.evaluate.inference.mean(syn, "age")
        >>> age.low < age.value < age.high
        True
    """
    return _estimate_mean(syn, column, _sampled(syn, seed), _repeats(syn, design_effect))


def logistic(
    syn: Synthesizer,
    target: str,
    value: object,
    on: Sequence[str],
    *,
    reference: Mapping[str, object] | None = None,
    syntheses: Syntheses = SYNTHESES,
    design_effect: float = 1.0,
    seed: int = 0,
) -> tuple[IntervalEstimate, ...]:
    """Return the coefficients of a logistic regression on columns that were counted together, or in pairs.

    One noisy table that holds all columns answers by itself. So do the three tables of two explaining columns and the
    target. For more columns than two, of listed values only, several syntheses do.

    Rows whose target is missing are left out, as a mean leaves them out; to model who is missing, name ``(missing)``.
    Tables of pairs cannot leave them out. Two explaining columns are then answered by syntheses, or refused.

    A column of numbers enters as a number. Another has a coefficient for each cell but one of reference, which the
    intercept names. A cell whose rows with or without the value are lost in noise has the interval of all numbers, and
    is left out of the fit; with two columns from pairs, its rows count as having its own log-odds.

    Args:
        syn: A synthesizer whose fit bought tables.
        target: The column that is explained.
        value: Its value whose log-odds are modelled, as cells of the column may hold it.
        on: One or more explaining columns.
        reference: Explaining column -> its value that the others are compared with; of others, the most frequent cell,
            which noise may choose anew in another fit.
        syntheses: Those that were drawn, or their number; asked where only pairs were counted.
        design_effect: As :func:`shares` takes it.
        seed: Of the synthetic rows that show means within cells.

    Raises:
        SettingError: These columns were not counted together, the target has no such cell, noise hides that of
            reference, or slopes of numbers would come from syntheses, where they are flatter than they are.

    Example:
        >>> found = db.evaluate.inference.logistic(syn, "income", "high", ["age"])
        >>> [each.name for each in found]
        ['(intercept)', 'age']
    """
    repeats, named = _repeats(syn, design_effect), dict(reference or {})
    if left := [name for name in named if name not in on or not syn.schema.columns[name].listed]:
        message, remedy = "is no explaining column of listed values", "name one of those, or leave it out"
        raise SettingError(message, field=f"reference: {', '.join(left)}", remedy=remedy)
    if not any({*on, target}.issubset(table.columns) for table in syn.tables):
        _require_counted(syn, (*on, target))
        tables = _tables_of_pairs(syn, target, on) if len(on) == _IN_PAIRS else []
        if tables and not _misses_outcomes(syn, tables[0], value):
            return _logistic_of_tables(syn, tables, value, named, repeats, seed)
        if (refused := refused_slopes(syn.schema.columns, target, on, of_pairs=bool(tables))) is not None:
            raise refused
        return _logistic_by_pairs(syn, target, value, on, named, syntheses, repeats, seed)
    table = _with_outcome(syn, _table(syn, (*on, target)), value)
    y = _modelled(syn, table, value)
    rows = _sampled(syn, seed)
    axes = [
        AxisCells(syn, column, names, rows, named.get(column))
        for column, names in zip(on, table.cells[:-1], strict=True)
    ]
    sizes = [len(cells.names) for cells in axes]
    places = list(np.indices(sizes).reshape(len(sizes), -1))
    numbers = [None if own.at is None else own.at[place] for own, place in zip(axes, places, strict=True)]
    clear = [clear_cells(table, axis, y, own.reference) for axis, own in enumerate(axes)]
    design, names, usable = _design(axes, places, numbers, clear)
    counts = table.counts.reshape(-1, len(y)).astype(np.float64)
    seen = np.abs(design[usable]).any(0)
    found, errors = np.full(len(names), np.nan), np.full(len(names), np.inf)
    noise = table.standard_error**2
    found[seen], errors[seen] = fitted(design[usable][:, seen], counts[usable], y, noise, repeats)
    drawn = np.zeros(table.counts.shape)
    drawn_in = [cells.place for cells in axes] + [AxisCells(syn, target, table.cells[-1], rows).place]
    inside = np.all([place >= 0 for place in drawn_in], axis=0)
    np.add.at(drawn, tuple(place[inside] for place in drawn_in), 1)
    own, naive = found.copy(), errors.copy()
    own[seen], naive[seen] = fitted(design[usable][:, seen], drawn.reshape(counts.shape)[usable], y, 0.0)
    return tuple(
        _noted(syn, _estimate(name, at, error, _interval(other, beside)))
        for name, at, error, other, beside in zip(names, found, errors, own, naive, strict=True)
    )


def estimate(
    syn: Synthesizer,
    ask: Callable[[pd.DataFrame], Mapping[str, tuple[float, float]]],
    columns: Sequence[str],
    *,
    syntheses: Syntheses = SYNTHESES,
    n: int | None = None,
    design_effect: float = 1.0,
    seed: int = 0,
) -> tuple[IntervalEstimate, ...]:
    """Return estimates of a function of rows, with intervals from several syntheses.

    They hold for smooth functions: shares and means, also within groups, and their differences and ratios. They do not
    for what moves in steps or is no estimate of a figure: medians and other quantiles, maxima, chi² and p-values. Nor
    do they for slopes and correlations of numbers, which syntheses flatten: use :func:`logistic`. No note tells these.
    Of three columns or more that no table holds together, a note says so.

    Args:
        syn: A synthesizer whose fit bought tables.
        ask: Takes a table of rows, with these columns alone; returns name -> estimate and its variance, as if the rows
            were a random sample.
        columns: The columns that it looks at. Each two of them must have been counted together.
        syntheses: Those that were drawn, or their number.
        n: Rows of each that is drawn; None: as many as there are units.
        design_effect: As :func:`shares` takes it.
        seed: Of all draws.

    Raises:
        SettingError: Some of these columns were not counted together, it looks at another or returns something else,
            or there are no syntheses of this fit: a unit may have several rows.

    Example:
        >>> def ratio(rows):
        ...     part = rows.loc[rows["sex"] == "Female", "age"]
        ...     return {"mean age of women": (part.mean(), part.var() / len(part))}
        >>> [found] = db.evaluate.inference.estimate(syn, ratio, ["sex", "age"], syntheses=5)
        >>> found.low < found.value < found.high
        True
    """
    found = _by_syntheses(syn, ask, columns, syntheses, _repeats(syn, design_effect), seed, n)
    if len({*columns}) <= _IN_PAIRS or any({*columns} <= {*table.columns} for table in usable_tables(syn)):
        return found
    return tuple(each if each.note else replace(each, note=_TOGETHER) for each in found)


def combine(
    estimates: Sequence[float],
    variances: Sequence[float],
    *,
    each: float = 1.0,
    design_effect: float = 1.0,
    name: str = "",
) -> IntervalEstimate:
    """Return an estimate with its interval from those of ``m`` syntheses.

    Estimates vary between syntheses by what noise and sampling leave open, and by the sampling of synthetic rows. Of
    their variance b the mean v of their own variances is therefore taken off, once:

    * T = (1 + 1/m) b - v, and Student's t with (m - 1) (T / ((1 + 1/m) b))² degrees of freedom (Satterthwaite).

    T is itself uncertain. It is taken to be at least v times the synthetic rows for each private one: noisy tables tell
    no more than the private rows themselves.

    Args:
        estimates: ``(m,)`` from each synthesis. Where one is not finite, the interval is of all numbers. So it is
            where all are the same: the figure moves in steps, as a median does, and hides how uncertain it is.
        variances: ``(m,)`` of each, as if its rows were a random sample.
        each: Rows of a synthesis for each private row.
        design_effect: As :func:`shares` takes it: T gains v times ``each`` for each unit of it above 1.
        name: What is estimated.

    Raises:
        SettingError: There are fewer than two, or not as many of both, or the design effect is not above 0.

    Example:
        >>> found = combine([0.41, 0.49, 0.36, 0.45, 0.40], [0.0004] * 5)
        >>> [round(each, 2) for each in (found.value, found.low, found.high, *found.naive)]
        [0.42, 0.26, 0.58, 0.37, 0.45]
    """
    q, v = np.array(estimates, dtype=np.float64), np.array(variances, dtype=np.float64)
    if q.ndim != 1 or len(q) < 2 or q.shape != v.shape:
        raise SettingError(
            "are not two or more, with a variance each", field="estimates", remedy="give one a synthesis"
        )
    naive = _interval(float(q[0]), float(np.sqrt(v[0])))
    if not np.isfinite([*q, *v]).all() or np.ptp(q) == 0:
        note = _STEPS if np.isfinite(v).all() and np.isfinite(q).all() else _NO_ROWS
        return replace(_estimate(name, float(q.mean()), math.inf, naive), note=note)
    between, own = (1 + 1 / len(q)) * float(q.var(ddof=1)), float(v.mean())
    told = max(between - own, each * own)
    total = told + (_checked_effect(design_effect) - 1) * each * own
    degrees = (len(q) - 1) * (min(told, total) / between) ** 2
    reach = float(student_t.ppf((1 + CONFIDENCE) / 2, degrees)) * math.sqrt(total)
    value = float(q.mean())
    return IntervalEstimate(name=name, value=value, low=value - reach, high=value + reach, naive=naive)


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
        there = own.kept_numbers(real[column]) if column in counted and own.adds_up else np.zeros(0)
        there = there[~np.isnan(there)]
        each = _estimate_mean(syn, column, rows, _repeats(syn)) if len(there) else None
        if each is not None and all(map(math.isfinite, (each.low, each.high, *each.naive))):
            found.append(
                MeanInterval(
                    column=column, value=each.value, low=each.low, high=each.high, naive_low=each.naive[0],
                    naive_high=each.naive[1], real=float(there.mean()),
                )
            )  # fmt: skip
    return tuple(found)


# -- inside ------------------------------------------------------------------------------------------------------------


def _estimate_mean(syn: Synthesizer, column: str, rows: pd.DataFrame, repeats: float) -> IntervalEstimate:
    """Return :func:`mean`, with synthetic rows that are there already."""
    table = _table(syn, (column,))
    cells = AxisCells(syn, column, table.cells[0], rows)
    if cells.at is None:
        raise SettingError("has no numbers", field=column, remedy="ask for its shares")
    there = np.isfinite(cells.at)
    known = NoisyTable(
        columns=table.columns, cells=(tuple(np.array(table.cells[0], dtype=object)[there]),),
        counts=table.counts[there], standard_error=table.standard_error,
    )  # fmt: skip
    value, error = _mean(known, cells.at[there], cells.spread[there], repeats)
    numbers = cells.numbers[np.isfinite(cells.numbers)]
    found, own = _estimate(f"mean of {column}", value, error, cells.naive_mean(numbers)), syn.schema.columns[column]
    found = _noted(syn, found if own.ends is None else found.within(*own.ends))
    if own.clock is None or not math.isfinite(error):
        return found
    value_text, low_text, high_text = map(own.text_of, (found.value, found.low, found.high))
    return replace(found, dates=(value_text, low_text, high_text))


class AxisCells:
    """The cells of an axis, and where synthetic rows lie in them.

    Args:
        syn: The synthesizer.
        column: The axis's column.
        names: Of its cells.
        rows: Synthetic rows.
        reference: A value of the column's cell that others are compared with; None: none is named.

    Attributes:
        column: The column.
        names: Of its cells.
        place: ``(N,)`` the cell of each synthetic row; -1: of none.
        numbers: ``(N,)`` the rows' numbers, NaN where missing.
        at: ``(cells,)`` the mean number of each cell, NaN for a missing one; None without numbers.
        spread: ``(cells,)`` variance of an even spread over the cell, by which its mean may be off.
        reference: The number of the cell that others are compared with.
    """

    def __init__(
        self, syn: Synthesizer, column: str, names: Sequence[str], rows: pd.DataFrame, reference: object = None
    ) -> None:
        own, cells = syn.schema.columns[column], rows[column]
        self.column, self.names = column, tuple(names)
        self.numbers: Floats = np.full(len(cells), np.nan)
        self.at: Floats | None = None
        self.spread = np.zeros(len(names))
        self.place = cell_places(own, names, cells)
        self.reference = None if reference is None else _named_cell(own, column, names, reference)
        if not own.listed:
            self.numbers = own.kept_numbers(cells)
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
            ends, inside = range_ends(own, name), self.place == number
            if not ends:
                continue
            low, high = min(low for low, _ in ends), max(high for _, high in ends)
            self.at[number] = self.numbers[inside].mean() if inside.any() else (low + high) / 2
            self.spread[number] = (high - low) ** 2 / 12


def _sampled(syn: Synthesizer, seed: int) -> pd.DataFrame:
    frame: pd.DataFrame = syn.sample(min(_ROWS, max(1, syn.default_n)), seed=seed)
    return frame


def _table(syn: Synthesizer, columns: tuple[str, ...]) -> NoisyTable:
    """Return the table of some columns, in this order, of least noise.

    Raises:
        SettingError: There is none.
    """
    found = _tables(syn, columns)
    if not found:
        message = "were not counted together" if len(columns) > 1 else "was not counted"
        raise SettingError(message, field=" and ".join(columns), remedy=_planned_with([columns], syn))
    return found[0]


def _tables(syn: Synthesizer, columns: tuple[str, ...]) -> list[NoisyTable]:
    """Return the tables that hold some columns, in this order, after other axes are added up: least noise first."""
    found = []
    for table in syn.tables:
        if not set(columns) <= set(table.columns):
            continue
        rest = [axis for axis, name in enumerate(table.columns) if name not in columns]
        counts = table.counts.sum(tuple(rest)) if rest else table.counts
        left = [axis for axis in range(len(table.columns)) if axis not in rest]
        order = [left.index(table.columns.index(name)) for name in columns]
        cells = math.prod(table.counts.shape[axis] for axis in rest)
        own = NoisyTable(
            columns=columns, cells=tuple(table.cells[table.columns.index(name)] for name in columns),
            counts=np.ascontiguousarray(counts.transpose(order)),
            standard_error=table.standard_error * math.sqrt(cells),
        )  # fmt: skip
        found.append(own)
    return sorted(found, key=_total_noise)


def _total_noise(table: NoisyTable) -> float:
    return table.counts.size * table.standard_error**2


def _by_syntheses(
    syn: Synthesizer,
    ask: Callable[[pd.DataFrame], Mapping[str, tuple[float, float]]],
    columns: Sequence[str],
    syntheses: Syntheses,
    repeats: float,
    seed: int,
    n: int | None = None,
) -> tuple[IntervalEstimate, ...]:
    """Return :func:`estimate`, without a note about columns that were counted in pairs."""
    _require_counted(syn, columns)
    drawn = syn.sample(n, syntheses=syntheses, seed=seed) if isinstance(syntheses, int) else syntheses
    if not drawn:
        raise SettingError("are none", field="syntheses", remedy="draw two or more, or say how many")
    found, rows, unknown = [_asked(ask, frame, columns) for frame in drawn], len(drawn[0]), (math.nan, math.inf)
    each = rows / syn.default_n
    return tuple(
        combine(
            *zip(*(one.get(name, unknown) for one in found), strict=True), each=each, design_effect=repeats, name=name
        )
        for name in found[0]
    )


def _asked(
    ask: Callable[[pd.DataFrame], Mapping[str, tuple[float, float]]], rows: pd.DataFrame, columns: Sequence[str]
) -> Mapping[str, tuple[float, float]]:
    """Return what a function says of some columns of rows.

    Raises:
        SettingError: It looks at a column that was not named, or returns no pairs of numbers by name.
    """
    try:
        found = ask(rows[[*dict.fromkeys(columns)]].copy())
    except (KeyError, AttributeError) as error:
        name = error.args[0] if isinstance(error, KeyError) else error.name
        if name not in rows.columns or name in columns:
            raise
        raise SettingError(
            "is looked at and not named", field=f"columns: {name}", remedy="name every column that the function sees"
        ) from None
    try:
        return {name: (float(value), float(variance)) for name, (value, variance) in found.items()}
    except (AttributeError, TypeError, ValueError):
        message, remedy = "returns no estimates with a variance each", "return {name: (estimate, variance)}"
        raise SettingError(message, field="function", remedy=remedy) from None


def _mean(table: NoisyTable, at: Floats, spread: Floats, repeats: float) -> tuple[float, float]:
    """Return the mean over a table's rows of a number for each cell, and its standard error.

    Args:
        table: The table.
        at: ``(cells,)`` the number.
        spread: ``(cells,)`` the variance of numbers within a cell.
        repeats: By which the variance of sampling is multiplied.
    """
    counts = table.counts.astype(np.float64)
    rows = max(1.0, float(counts.sum()))
    value = float(counts @ at) / rows
    share = np.maximum(counts, 0) / rows
    sampling = repeats * (max(0.0, float(counts @ ((at - value) ** 2))) + float(np.maximum(counts, 0) @ spread))
    noise = table.standard_error**2 * float(((at - value) ** 2).sum())
    return value, math.sqrt((sampling + noise) / rows**2 + float(share**2 @ spread))


def _known_outcomes(syn: Synthesizer, table: NoisyTable, value: object) -> npt.NDArray[np.bool_]:
    """Return ``(values,)`` whether each cell of a table's last axis is left in: missing ones where the value is one.

    Raises:
        SettingError: A cell counts missing cells together with values.
    """
    names, column = table.cells[-1], syn.schema.columns[table.columns[-1]]
    parts = cell_parts(column, names)
    known = np.array([bool(each.values) for each in parts])
    if value in [name for name, told in zip(names, known, strict=True) if not told]:
        return np.ones(len(names), dtype=np.bool_)
    if mixed := [name for name, each in zip(names, parts, strict=True) if each.values and each.missing]:
        message = "was counted together with missing cells, which cannot be left out"
        raise SettingError(message, field=f"{table.columns[-1]} = {mixed[0]}", remedy=_MORE)
    return known


def _with_outcome(syn: Synthesizer, table: NoisyTable, value: object) -> NoisyTable:
    """Return a table without the missing cells of its last axis, unless the value is one."""
    known = _known_outcomes(syn, table, value)
    names = tuple(name for name, told in zip(table.cells[-1], known, strict=True) if told)
    return replace(table, cells=(*table.cells[:-1], names), counts=np.ascontiguousarray(table.counts[..., known]))


def _misses_outcomes(syn: Synthesizer, table: NoisyTable, value: object) -> bool:
    """Return whether more rows of a table miss the outcome than noise hides."""
    missing = table.counts[..., ~_known_outcomes(syn, table, value)]
    return float(missing.sum()) > CLEAR * table.standard_error * math.sqrt(missing.size)


def _modelled(syn: Synthesizer, table: NoisyTable, value: object) -> Floats:
    """Return ``(values,)`` one at a table's last cell of a value, else zero.

    Args:
        syn: The synthesizer.
        table: Its last axis is the target.
        value: A cell's name, or a value as the column reads it.

    Raises:
        SettingError: It has none. Cells are public or bought, and named.
    """
    cells, column = table.cells[-1], table.columns[-1]
    modelled: Floats = np.zeros(len(cells))
    modelled[_named_cell(syn.schema.columns[column], column, cells, value)] = 1.0
    return modelled


def _named_cell(own: Column, column: str, cells: Sequence[str], value: object) -> int:
    """Return the number of a column's cell, by its name or by a value as the column reads it.

    Raises:
        SettingError: There is none. Cells are public or bought, and named.
    """
    read = value
    if value not in cells:
        with suppress(ValueError):
            read = own.text_of(own.number_of(value))
    if read not in cells:
        raise SettingError(
            "was not counted by itself", field=f"{column} = {value}",
            remedy=suggest(str(value), cells, otherwise="name one of its cells, which its shares list"),
        )  # fmt: skip
    return [*cells].index(str(read))


def _design(
    axes: Sequence[AxisCells], places: Sequence[Ints], numbers: Sequence[Floats | None], clear: Sequence[ClearCells]
) -> tuple[Floats, list[str], npt.NDArray[np.bool_]]:
    """Return the explaining numbers of rows or of cells of a table, their names, and which of them can be used.

    Args:
        axes: The explaining columns.
        places: For each ``(N,)`` the cell.
        numbers: For each ``(N,)`` the number, NaN where missing; None for a column without numbers.
        clear: Of each its clear cells.

    Returns:
        ``(N, coefficients)``, their names, and ``(N,)``.
    """
    size = len(places[0])
    usable, parts, names, reference = np.ones(size, dtype=np.bool_), [np.ones(size)], [], ""
    for cells, place, number, (seen, most) in zip(axes, places, numbers, clear, strict=True):
        if number is not None:
            usable &= np.isfinite(number)
            parts.append(np.nan_to_num(number))
            names.append(cells.column)
            continue
        usable &= (place >= 0) & seen[place]
        reference += f", {cells.column} = {cells.names[most]}"
        for level in (level for level in range(len(cells.names)) if level != most):
            parts.append((place == level).astype(np.float64))
            names.append(f"{cells.column} = {cells.names[level]}")
    return np.stack(parts, axis=1), [f"(intercept){reference}", *names], usable


def _tables_of_pairs(syn: Synthesizer, target: str, on: Sequence[str]) -> list[NoisyTable]:
    """Return tables of each explaining column and the target, then of the columns themselves; none without such.

    A listed column must have the same cells in both of its tables: only numbers mean the same in others.
    """
    for both in _tables(syn, tuple(on)):
        found = list[NoisyTable]()
        for column, cells in zip(on, both.cells, strict=True):
            tables, listed = _tables(syn, (column, target)), syn.schema.columns[column].listed
            found += [table for table in tables if table.cells[0] == cells or not listed][:1]
        if len(found) == len(on):
            return [*found, both]
    return []


def _logistic_of_tables(
    syn: Synthesizer,
    tables: Sequence[NoisyTable],
    value: object,
    reference: Mapping[str, object],
    repeats: float,
    seed: int,
) -> tuple[IntervalEstimate, ...]:
    """Return :func:`logistic` on two columns, from the tables of :func:`_tables_of_pairs`."""
    *beside, both = tables
    rows, target = _sampled(syn, seed), beside[0].columns[1]
    y = [_modelled(syn, table, value) for table in beside]
    own = [
        AxisCells(syn, name, table.cells[0], rows, reference.get(name))
        for table, name in zip(beside, both.columns, strict=True)
    ]
    paired = [AxisCells(syn, name, cells, rows) for name, cells in zip(both.columns, both.cells, strict=True)]
    margins = [table for table in syn.tables if len(table.columns) == 1 and table.columns[0] in {*both.columns, target}]
    drawn = np.zeros((*both.counts.shape, len(y[0])))
    at = [*(cells.place for cells in paired), cell_places(syn.schema.columns[target], beside[0].cells[1], rows[target])]
    there = np.all([place >= 0 for place in at], axis=0)
    np.add.at(drawn, tuple(place[there] for place in at), 1)
    found, naive = fitted_of_pairs(tables, y, own, paired, margins, drawn, repeats)
    return tuple(
        _noted(syn, _estimate(name, value, error, _interval(*other)))
        for name, value, error, *other in zip(*found, *naive[1:], strict=True)
    )


def _logistic_by_pairs(
    syn: Synthesizer,
    target: str,
    value: object,
    on: Sequence[str],
    reference: Mapping[str, object],
    syntheses: Syntheses,
    repeats: float,
    seed: int,
) -> tuple[IntervalEstimate, ...]:
    """Return :func:`logistic` of columns that were counted in pairs, from several syntheses."""
    tables = [_with_outcome(syn, _table(syn, (column, target)), value) for column in on]
    modelled = [_modelled(syn, table, value) for table in tables]
    drawn = _sampled(syn, seed)
    axes = [
        AxisCells(syn, name, table.cells[0], drawn, reference.get(name)) for name, table in zip(on, tables, strict=True)
    ]
    clear = [clear_cells(table, 0, y, own.reference) for table, y, own in zip(tables, modelled, axes, strict=True)]

    def ask(rows: pd.DataFrame) -> dict[str, tuple[float, float]]:
        places = [cell_places(syn.schema.columns[own.column], own.names, rows[own.column]) for own in axes]
        # Numbers are at their cells' means: nothing ties them to the target within a cell, which would flatten a slope.
        numbers = [
            None if own.at is None else np.append(own.at, np.nan)[at] for own, at in zip(axes, places, strict=True)
        ]
        design, names, usable = _design(axes, places, numbers, clear)
        outcome = cell_places(syn.schema.columns[target], tables[0].cells[1], rows[target])
        usable &= outcome >= 0
        yes = modelled[0][outcome[usable]]
        design, counts = design[usable], np.stack([1 - yes, yes], axis=1)
        # A level that has no row with or without the value has no log-odds.
        seen = (np.abs(design[yes > 0]).any(0)) & (np.abs(design[yes == 0]).any(0))
        at, errors = np.full(len(names), np.nan), np.full(len(names), np.inf)
        at[seen], errors[seen] = fitted(design[:, seen], counts, np.array([0.0, 1.0]), 0.0)
        return dict(zip(names, zip(at, errors**2, strict=True), strict=True))

    return _by_syntheses(syn, ask, (*on, target), syntheses, repeats, seed)


def _checked_effect(design_effect: float) -> float:
    if not isinstance(design_effect, (int, float)) or not 1 <= design_effect < math.inf:
        remedy = "give one such as 1.5; where strata make a sample better than a simple one, leave it out"
        raise SettingError("must be a number of at least 1", field="design_effect", remedy=remedy)
    return float(design_effect)


def _repeats(syn: Synthesizer, design_effect: float = 1.0) -> float:
    """Return how often the sampling of rows counts: by the design, and by the most rows of a unit."""
    return _checked_effect(design_effect) * syn.schema.most_records


def _noted(syn: Synthesizer, found: IntervalEstimate) -> IntervalEstimate:
    """Return an estimate that says, in a table of several rows a unit, which rows it is about."""
    return replace(found, note=found.note or syn.schema.used)


def _require_counted(syn: Synthesizer, columns: Sequence[str]) -> None:
    """Refuse columns that no noisy table holds, and pairs that none holds together.

    Raises:
        SettingError: Naming all of them.
    """
    counted = [set(table.columns) for table in usable_tables(syn)]
    alone = [name for name in columns if not any(name in own for own in counted)]
    pairs = [pair for pair in combinations(columns, 2) if not any(own.issuperset(pair) for own in counted)]
    named = [*alone, *(" and ".join(pair) for pair in pairs if not set(pair) & set(alone))]
    if named:
        message = "was not counted" if len(alone) == len(named) == 1 else "were not counted together"
        raise SettingError(
            message, field=", ".join(named), remedy=_planned_with([*((name,) for name in alone), *pairs], syn)
        )


def _planned_with(asked: Sequence[tuple[str, ...]], syn: Synthesizer) -> str:
    """Return the remedy for columns and pairs that were not counted: the line of a plan that has them counted."""
    if computed := computed_advice(syn.schema.sources, dict.fromkeys(chain.from_iterable(asked))):
        return ": ".join(computed)
    if any(len(names) > _IN_PAIRS for names in asked):
        return "ask for pairs of them"
    focus = json.dumps([" & ".join(names) for names in asked], ensure_ascii=False)
    return f"name questions before a fit: doublure plan ... --set {shlex.quote(f'focus={focus}')}; or ask for others"


def _interval(value: float, error: float) -> tuple[float, float]:
    if not math.isfinite(error):
        return -math.inf, math.inf
    reach = float(norm.ppf((1 + CONFIDENCE) / 2)) * float(error)
    return float(value) - reach, float(value) + reach


def _estimate(name: str, value: float, error: float, naive: tuple[float, float]) -> IntervalEstimate:
    low, high = _interval(value, error)
    note = "" if math.isfinite(error) else _LOST
    return IntervalEstimate(name=name, value=float(value), low=low, high=high, naive=naive, note=note)
