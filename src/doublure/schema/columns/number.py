"""Bases of columns whose cells are numbers or times, between public bounds."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, StrictBool, StrictFloat, model_validator
from typing_extensions import override

from doublure.schema.allowed import Allowed
from doublure.schema.columns.bins import BinRules, PublicBins
from doublure.schema.columns.column import Column
from doublure.schema.columns.dtypes import dtype_reach
from doublure.schema.columns.integer_domain import IntegerDomain, NumberDomain, Scale
from doublure.schema.columns.number_format import NumberFormat, marked, number_form
from doublure.schema.fact_states import KeyFault
from doublure.schema.scalars import EXACT, Misfit, label

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from doublure.noisy_counts import CandidateGrid
    from doublure.schema.columns.spelling import CellSpelling, TextMarks
    from doublure.schema.columns.sql_words import Expr, SqlCell, SqlReading, SqlWords
    from doublure.support.arrays import Floats

MOST_CELLS = 1_000
"""Edges or spikes of a column."""
_NEARLY = 1e-6
PARTS = 4096
"""Into about so many parts cells of equal width are cut: 128 cells, each into 32."""
BILLION = 9
"""Of a real number without decimals or a step, that many digits of the bounds are kept."""
_COARSE_STEPS = 1_000.0
_COARSE_REAL = 1e8
_TWO = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(?:-|–|:|;|to|\.\.\.)\s*([+-]?\d+(?:\.\d+)?)", re.ASCII)


class UnorderedBounds(KeyFault):
    """The lower bound is not below the upper one; each of them can be read."""


class BoundedColumn(Column):
    """A column of numbers in order, between bounds."""

    facts: ClassVar[tuple[str, ...]] = ("bounds", "missing")
    bounded: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    @property
    @override
    def grid(self) -> tuple[float, float] | None:
        ends = self.ends
        if ends is None or not self.unit:
            return ends
        first, last = whole_steps(*ends, self.unit)
        return first * self.unit, last * self.unit

    @property
    @override
    def unit(self) -> float:
        return float(self.fact("step") or 1)

    @property
    def widest(self) -> tuple[float, float]:
        """The lowest and the highest number that the type has, whatever a schema declares."""
        return -math.inf, math.inf

    @property
    @override
    def slack(self) -> float:
        return _NEARLY * self.unit

    @override
    def fitted_in_sql(self, reading: SqlReading, misfit: Misfit) -> SqlReading:
        from doublure.schema.columns.number_sql import fitted_number

        return fitted_number(self, reading, misfit)

    @override
    def countable(self, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        if self.fact("step") in (None, 1):
            return bounds
        # Ends move outwards to multiples of the step, so that there is a value between them, whatever was bought.
        first = math.floor(self.number_of(bounds[0]) / self.unit) * self.unit
        last = max(math.ceil(self.number_of(bounds[1]) / self.unit) * self.unit, first + self.unit)
        lower, upper = self.widest
        return self.bought(max(first, lower), min(last, upper))

    @override
    def loaded_cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import pandas as pd

        return pd.Series(numbers)

    @override
    def snap(self, numbers: Floats) -> Floats:
        import numpy as np

        if self.grid is None:
            return numbers
        lower, upper = self.grid
        inside: Floats = np.clip(numbers, lower, upper)
        if self.unit:
            inside = lower + np.rint((inside - lower) / self.unit) * self.unit
        return self.rounded(inside) + 0.0

    @override
    def snapped_in_sql(self, number: Expr, words: SqlWords) -> Expr:
        from doublure.schema.columns.number_sql import snapped_number

        return snapped_number(self, number, words)

    @property
    def integer_unit(self) -> float:
        """The number that one integer stands for: :attr:`unit`, or a power of ten, a billion of which bounds hold."""
        if self.unit:
            return self.unit
        lower, upper = self.known_grid
        span = max(upper - lower, sys.float_info.min)
        return float(10.0 ** max(-300, math.floor(math.log10(span)) - BILLION + 1))

    @override
    def place_of(self, written: object) -> float:
        if not self.unit:
            raise ValueError("is a real number without precision or step, and hardly any two are equal; give a range")
        number = self.number_of(written)
        lower, upper = self.limits
        steps = number / self.unit
        if not lower <= number <= upper or abs(steps - round(steps)) > _NEARLY:
            raise ValueError(
                "lies outside the column's bounds, or between two of its values; see its bounds in the schema"
            )
        return number

    @override
    def ruled(self, written: object) -> Allowed:
        """Return the cells that a rule names; a list of two is a range, both ends included."""
        if isinstance(written, (list, tuple)) and len(written) == 2 and not any(map(self.means_missing, written)):
            return self.between(*written)
        return super().ruled(written)

    @override
    def integer_domain(self) -> IntegerDomain:
        (lower, upper), unit = self.known_grid, self.integer_unit
        first, last = round(lower / unit), round(upper / unit)
        edges, spikes = (sorted({round(value / unit) for value in own}) for own in (self.cuts, self.repeated))
        return NumberDomain(
            first=first,
            last=last,
            nullable=self.may_be_missing,
            unit=unit,
            scale=self.declared_scale,
            edges=tuple(edge for edge in edges if first < edge <= last),
            spikes=tuple(value for value in spikes if first <= value <= last),
        )

    @override
    def bins(self, most: int, *, curve: float = 1.0) -> PublicBins:
        rules = BinRules(
            unit=self.unit, zero_apart=self.zero_apart, scale=self.declared_scale, cuts=self.cuts, curve=curve
        )
        edges = rules.edges(*self.known_grid, most)
        highs = edges[1:] - self.unit
        pairs = zip(edges[:-1].tolist(), highs.tolist(), strict=True)
        names = ((self.short_text_of(low), self.short_text_of(high)) for low, high in pairs)
        texts = (low if self.unit and low == high else f"{low} to {high}" for low, high in names)
        return PublicBins(edges=edges, highs=highs, names=tuple(texts))

    def short_text_of(self, number: float) -> str:
        """Return a number as the names of bins show it."""
        return self.text_of(number)

    @model_validator(mode="after")
    def _bounds_fit(self) -> BoundedColumn:
        if self.ends is None or self.grid is None:
            return self
        lower, upper = self.ends
        if not lower < upper:
            raise UnorderedBounds("bounds", "are not in order; write [lower, upper] with lower < upper")
        if not math.isfinite(upper - lower) or (self.unit and max(-lower, upper) / self.unit > EXACT):
            raise KeyFault("bounds", "are wider than float64 can count; narrow them")
        if self.grid[0] > self.grid[1]:
            raise KeyFault("bounds", "hold no value with that precision or step; widen them")
        if self.fact("zero_inflated") and not lower <= 0 <= upper:
            raise KeyFault("zero_inflated", "needs bounds that contain 0; widen them or remove zero_inflated")
        return self


class NumberColumn(BoundedColumn):
    """A column of plain numbers, and how they are spread."""

    plain: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    placeholders: ClassVar[Mapping[str, str]] = {"bounds": "bounds: [LOWER, UPPER]"}
    expected: ClassVar[str] = (
        "write plain numbers with a decimal point, list a text that means missing under missing, or declare decimal "
        "and thousands, or a format"
    )

    zero_inflated: StrictBool = Field(default=False, description="many exact zeros: the same as spikes: [0]")
    scale: Scale | None = Field(default=None, description="how wide public cells are; omitted: by the bounds")
    edges: tuple[StrictFloat, ...] = Field(default=(), description="where public cells begin, in ascending order")
    spikes: tuple[StrictFloat, ...] = Field(default=(), description="values that many cells have: a cell of their own")
    format: NumberFormat | None = Field(default=None, description="how text writes it: '$#,##0.00', '0.0 %', '00000'")

    @property
    @override
    def declared_scale(self) -> Scale | None:
        return self.scale

    @property
    @override
    def cuts(self) -> tuple[float, ...]:
        return self.edges

    @property
    @override
    def repeated(self) -> tuple[float, ...]:
        return tuple(sorted({*self.spikes, *((0.0,) if self.zero_inflated else ())}))

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.number_cells import numbers

        return pd.Series(numbers(raw, self, name, misfit))

    @override
    def read_at_once(self, raw: pa.Array, name: str, misfit: Misfit) -> pd.Series[Any] | None:
        import pandas as pd

        from doublure.schema.columns.number_cells import NOT_A_NUMBER, fitting_numbers, numbers_at_once

        found = numbers_at_once(raw, [*self.missing_tokens, *NOT_A_NUMBER])
        return None if found is None else pd.Series(fitting_numbers(found, self, name, misfit))

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.number_sql import number_reading

        return number_reading(self, cell, words)

    @override
    def spelling(self, marks: TextMarks) -> CellSpelling | None:
        from doublure.schema.columns.spelling import respelt_form, respelt_numbers

        if self.format is not None:
            return None if number_form(self.format).is_plain else respelt_form(self.format, self.missing_tokens)
        marked = marks.decimal or marks.thousands
        return respelt_numbers(marks.decimal or ".", marks.thousands, self.missing_tokens) if marked else None

    @override
    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.parsed_cells import formatted

        if self.format is not None:
            return pd.Series(formatted(self.numbers_of(cells), number_form(self.format).text), dtype="str")
        if marks.thousands is None and (self.integral or marks.decimal in (None, ".")):
            return cells
        own = marked(marks.decimal or ".", marks.thousands)
        numbers = self.numbers_of(cells)
        return pd.Series(formatted(numbers, lambda number: own(label(number))), dtype="str")

    @override
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        import numpy as np

        return cells.to_numpy(dtype=np.float64, na_value=np.nan)

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import pandas as pd

        return pd.Series(self.drawn(numbers))

    @override
    def number_of(self, written: object) -> float:
        """Return a written number.

        Raises:
            ValueError: It is none, or not finite; ``message; remedy``.
        """
        if isinstance(written, str) and self.format is not None:
            written = number_form(self.format).plain(written.strip()) or written
        try:
            number = math.nan if isinstance(written, bool) else float(written)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"is not a number; {_hint(written)}")
        return number

    @override
    def text_of(self, number: float) -> str:
        import numpy as np

        return f"{float(self.drawn(np.asarray([number]))[0]) + 0.0:.15g}"

    @override
    def short_text_of(self, number: float) -> str:
        return f"{number:g}"

    @override
    def notes(self) -> Iterator[str]:
        yield from super().notes()
        if self.ends is None:
            return
        span = self.ends[1] - self.ends[0]
        if self.scale == "linear" and self.unit and span / PARTS / self.unit > _COARSE_STEPS:
            yield (
                f"has cells of equal width over bounds so wide that values within about {span / PARTS:.3g} of each "
                "other may look alike; leave scale out, or narrow the bounds"
            )
        if not self.unit and span >= _COARSE_REAL:
            yield (
                "has no decimals or step, and bounds so wide that values within about "
                f"{span / 10**BILLION:.1g} of each other count as one; declare precision or step, or narrow the bounds"
            )

    @override
    def partition(self, magnitude: float | None) -> CandidateGrid:
        from doublure.noisy_counts import CandidateGrid

        return CandidateGrid.from_decades(integer=self.integral, precision=self.decimals, magnitude=magnitude)

    @override
    def bought(self, first: float, last: float) -> tuple[Any, Any]:
        most = EXACT if self.integral else EXACT * self.unit if self.unit else math.inf
        lower, upper = max(-most, min(first, most)), max(-most, min(last, most))
        if not lower < upper:  # noise has put both beyond it: keep that side of zero
            lower, upper = (lower, 0.0) if lower < 0 else (0.0, upper)
        return (int(lower), int(upper)) if self.integral else (lower, upper)

    @override
    def countable(self, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        lower, upper = bounds
        for value in self.repeated:
            lower, upper = min(lower, value), max(upper, value)
        step = self.fact("step")
        if step not in (None, 1):  # so that they hold a multiple of it
            lower, upper = math.floor(lower / step) * step, math.ceil(upper / step) * step
        if self.integral:
            lower, upper = int(lower), int(upper)
        if self.unit:
            most = EXACT if self.integral else EXACT * self.unit
            lower, upper = max(-most, min(lower, most)), max(-most, min(upper, most))
        reach = dtype_reach(self.dtype, whole=self.integral)
        if reach is not None:  # a number beyond what its column is stored as cannot be: that is public
            lower, upper = max(lower, reach[0]), min(upper, reach[1])
            lower, upper = (lower, upper) if lower < upper else reach
        return lower, upper

    @model_validator(mode="after")
    def _format_fits(self) -> NumberColumn:
        decimals = 0 if self.format is None else number_form(self.format).decimals
        if self.format is not None and decimals != (0 if self.integral else self.decimals):
            remedy = "leave them out of the format" if self.integral else f"declare precision: {decimals}"
            raise KeyFault("format", f"writes other decimals than cells have; {remedy}")
        return self

    @model_validator(mode="after")
    def _cells_fit(self) -> NumberColumn:
        if list(self.edges) != sorted(set(self.edges)):
            raise KeyFault("edges", "are not in ascending order; sort them, each once")
        if self.edges and self.scale is not None:
            raise KeyFault("edges", "and scale both say how wide cells are; keep one")
        if len(set(self.spikes)) != len(self.spikes):
            raise KeyFault("spikes", "names a value twice; name it once")
        if len(self.edges) > MOST_CELLS or len(self.spikes) > MOST_CELLS:
            raise KeyFault("edges", f"and spikes have at most {MOST_CELLS} entries; name fewer")
        ends = self.ends
        if ends is None:
            return self
        if self.scale == "log" and ends[0] < 0:
            raise KeyFault("scale", "needs bounds of at least 0; use symlog", subject="scale: log")
        for value in self.spikes:
            steps = value / self.unit if self.unit else 0.0
            if not ends[0] <= value <= ends[1] or abs(steps - round(steps)) > _NEARLY:
                raise KeyFault("spikes", "has a value outside the bounds, or between two values; correct it")
        return self


def whole_steps(lower: float, upper: float, unit: float) -> tuple[int, int]:
    """Return the first and last multiple of ``unit`` within bounds, as counts of it; the first is larger if none is.

    A billionth of a unit, or float64's own error of that end, is forgiven: in binary, 0.3 is no multiple of 0.1. A
    quarter of a unit never is, so that whole numbers are what they are.
    """
    first, last = lower / unit, upper / unit
    below, above = (min(0.25, max(1e-9, 1e-15 * abs(end))) for end in (first, last))
    return math.ceil(first - below), math.floor(last + above)


def _hint(written: object) -> str:
    """Return what to write in place of what is no number: a range, where two numbers stand together."""
    two = _TWO.fullmatch(str(written).strip())
    if two is not None:
        return f"write {two[1]}..{two[2]} for a range, both ends included"
    return "give one, such as 40, or a range, such as 30..40"
