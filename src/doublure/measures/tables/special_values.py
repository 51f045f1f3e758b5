"""Special values of columns: missing cells, zeros, negative numbers, top codes, repeated and round values.

A smooth distance hardly reacts to them: moving a tenth of the rows from zero to ten costs little, and ruins a count of
zeros. Each is a share of rows, synthetic against real.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from doublure.intervals import Result, wilson
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.fidelity import Tables
from doublure.schema.columns import type_named
from doublure.support.arrays import Floats

What: TypeAlias = Literal["missing", "negative", "zero", "lowest", "highest", "repeated", "multiple"]
_Marks: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
_Holds: TypeAlias = Callable[[Floats], _Marks]

LEAST_SHARE = 0.01
"""Smallest share of rows, real or synthetic, for a value to be listed."""

_OFF = 0.01
_CHANCE = 4.0
_STANDS_OUT = 3.0
_NEIGHBOURS = 10
_MOST_REPEATED = 6
_ROUND = 0.95
_STEPS = tuple(digit * 10.0**power for power in range(9, -1, -1) for digit in (5, 1))


class SpecialValue(Result):
    """One special value.

    Attributes:
        column: The column.
        what: Its kind: missing cells, numbers below zero, zeros, the real rows' lowest and highest number, another
            number that many rows share, or multiples of a step.
        value: The number, or the step; null for missing and negative ones.
        label: The value in words.
        share: The share of synthetic rows, beside that of the real rows that were fitted (``real``).
        off: Whether the two differ by a hundredth of the rows or more, and by more than chance.
    """

    column: str
    what: What
    value: float | None
    label: str
    share: Score
    off: bool


class SpecialValues(Result):
    """All special values.

    Attributes:
        score: The mean difference of the shares, over values with a hundredth of the real rows; null without any.
        values: Each, the largest difference first.
    """

    score: Score | None
    values: tuple[SpecialValue, ...]


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    column: str
    what: What
    value: float | None
    label: str
    shares: dict[str, float]
    holds: Callable[[Coded], _Marks]


def special_values(coder: Coder, tables: Tables) -> SpecialValues:
    """Return the special values of the real or the synthetic columns, with their share of each."""
    found = list(_candidates(coder, tables))
    if not found:
        return SpecialValues(score=None, values=())
    # The score uses the real rows' values, the same for every compared table; those of synthetic rows are only listed.
    own = [each for each in found if each.shares["train"] >= LEAST_SHARE]
    rows = len(tables.synthetic), len(tables.train)
    listed = [_value(each, *rows) for each in found]
    return SpecialValues(
        score=tables.resamples.sure(_resampled(_score(own), own, tables)) if own else None,
        values=tuple(sorted(listed, key=lambda entry: -_gap(entry))),
    )


def _score(own: list[_Candidate]) -> Score:
    gaps = {
        role: float(np.mean([abs(each.shares[role] - each.shares["train"]) for each in own]))
        for role in ("value", "baseline", "real")
    }
    return distance_score(
        "special_values",
        "Special values",
        gaps,
        "By how much the share of rows that are missing, zero, negative, at a top code or at a repeated or round value "
        f"is off; mean over the {len(own)} that a hundredth of the real rows has.",
    )


def _resampled(score: Score, own: list[_Candidate], tables: Tables) -> Score:
    found = {"train": np.zeros(len(tables.train)), "value": np.zeros(len(tables.synthetic))}
    for each in own:
        sign = float(np.sign(each.shares["value"] - each.shares["train"])) / len(own)
        found["train"] -= sign * each.holds(tables.train)
        found["value"] += sign * each.holds(tables.synthetic)
    tables.resamples.add(score.key, "value", score.value, found)
    return score


def _gap(entry: SpecialValue) -> float:
    return abs((entry.share.value or 0.0) - (entry.share.real or 0.0))


def _value(each: _Candidate, synthetic: int, train: int) -> SpecialValue:
    value, real = each.shares["value"], each.shares["train"]
    pooled = (value * synthetic + real * train) / (synthetic + train)
    chance = math.sqrt(pooled * (1 - pooled) * (1 / synthetic + 1 / train))
    return SpecialValue(
        column=each.column,
        what=each.what,
        value=each.value,
        label=each.label,
        share=Score(
            key="share",
            name="share",
            value=value,
            interval=wilson(round(value * synthetic), synthetic),
            goal="near",
            range=(0.0, 1.0),
            baseline=each.shares["baseline"],
            real=real,
        ),
        off=abs(value - real) >= max(_OFF, _CHANCE * chance),
    )


# -- candidates ------------------------------------------------------------------------------------------------------


def _candidates(coder: Coder, tables: Tables) -> Iterator[_Candidate]:
    everything = {"train": tables.train, **tables.others}
    for place, (name, column) in enumerate(coder.columns.items()):
        missing = {
            role: float((table.codes[:, place] == coder.sizes[place] - 1).mean()) for role, table in everything.items()
        }
        if _listed(missing):
            yield _Candidate(
                column=name,
                what="missing",
                value=None,
                label="missing",
                shares=missing,
                holds=lambda table, place=place: table.codes[:, place] == coder.sizes[place] - 1,  # type: ignore[misc]
            )
        if column.bounded:
            numbers = {role: table.numbers[name] for role, table in everything.items()}
            yield from _of_numbers(name, column.shown_type, numbers, coder.bounds(name)[2], plain=column.plain)


def _listed(shares: dict[str, float]) -> bool:
    return max(shares["train"], shares["value"]) >= LEAST_SHARE


def _of_numbers(name: str, kind: str, numbers: dict[str, Floats], unit: float, *, plain: bool) -> Iterator[_Candidate]:
    def candidate(what: What, value: float | None, label: str, holds: _Holds) -> _Candidate:
        shares = {role: float(holds(values).mean()) for role, values in numbers.items()}
        return _Candidate(
            column=name,
            what=what,
            value=value,
            label=label,
            shares=shares,
            holds=lambda table: holds(table.numbers[name]),
        )

    present = numbers["train"][~np.isnan(numbers["train"])]
    if not len(present):
        return
    done: set[float] = set()
    if plain:
        found = [
            candidate("negative", None, "below zero", lambda values: values < 0),
            candidate("zero", 0.0, "= 0", lambda values: values == 0),
        ]
        yield from (each for each in found if _listed(each.shares))
        done.add(0.0)
    ends: dict[What, float] = {"lowest": float(present.min()), "highest": float(present.max())}
    for what, end in ends.items():
        shown = candidate(what, end, f"= {write_number(end, kind)}, the {what}", _equal_to(end))
        if end not in done and shown.shares["train"] >= LEAST_SHARE:
            yield shown
            done.add(end)
    repeated = [value for value in _repeated(numbers) if value not in done]
    for value in repeated[:_MOST_REPEATED]:
        yield candidate("repeated", value, f"= {write_number(value, kind)}", _equal_to(value))
    if plain and (step := _step(present, unit)) is not None:
        yield candidate(
            "multiple", step, f"multiples of {write_number(step, kind)}", lambda values: _divides(step, values)
        )


def _equal_to(value: float) -> _Holds:
    return lambda values: values == value


def _repeated(numbers: dict[str, Floats]) -> list[float]:
    """Return values shared by many rows but not their neighbours, the most frequent first."""
    found: dict[float, float] = {}
    for role in ("train", "value"):
        all_of = numbers[role]
        values, counts = np.unique(all_of[~np.isnan(all_of)], return_counts=True)
        for place in np.flatnonzero(counts >= LEAST_SHARE * len(all_of)):
            around = np.delete(counts, place)[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]
            if not len(around) or counts[place] >= _STANDS_OUT * float(np.median(around)):
                value = float(values[place])
                found[value] = max(found.get(value, 0.0), counts[place] / len(all_of))
    return sorted(found, key=lambda value: -found[value])


def _step(present: Floats, unit: float) -> float | None:
    """Return the largest round step that divides all real numbers, if it is coarser than the schema's."""
    others = present[present != 0]
    if len(np.unique(others)) < 3:
        return None
    for step in _STEPS:
        if step <= max(unit, 1.0):
            return None
        if _divides(step, others).mean() >= _ROUND:
            return step
    return None


def _divides(step: float, values: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(np.mod(values, step) == 0, dtype=np.bool_)


def write_number(value: float, kind: str) -> str:
    """Return a number as text, as its type writes it."""
    if (named := type_named(kind).axis_text(value)) is not None:
        return named
    text = f"{value:.12g}" if 1000 <= abs(value) < 10_000 else f"{value:,.12g}"  # a year has no comma
    return text.replace("-", "−")
