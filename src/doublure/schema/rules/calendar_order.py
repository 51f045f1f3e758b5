"""Two columns of different calendars in order: years, days and moments, compared by the coarser of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.rules.rule import CellSource, Floats, Mask, NumericRule

_YEAR, _DAY, _SECOND = 2, 1, 0
_SECONDS_OF_A_DAY = 86_400.0


def fineness(column: Column) -> int | None:
    """Return how coarse a column's times are: 0 for moments, 1 for days, 2 for years; None where it has none."""
    if column.clock is not None:
        return _SECOND if column.clock == "s" else _DAY
    return _YEAR if column.counts_years else None


def comparable(first: Column, second: Column) -> bool:
    """Return whether two columns are times of different calendars."""
    found = fineness(first), fineness(second)
    return None not in found and found[0] != found[1]


def make_coarse(column: Column, wanted: int) -> Callable[[Any], Any]:
    """Return what turns a column's numbers into days, or years; NaN for an empty cell."""
    own = fineness(column)

    def coarse(numbers: Any) -> Any:
        import numpy as np

        if own == wanted:
            return numbers
        cells = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
        days = np.floor(cells / _SECONDS_OF_A_DAY) if own == _SECOND else cells
        found = days if wanted == _DAY else year_of_days(days)
        return float(found[0]) if isinstance(numbers, float) else found

    return coarse


def first_at_least(low: Column, high: Column, numbers: Floats) -> Floats:
    """Return the lowest ``(N,)`` numbers of one column that are at least those of another, whatever their calendars."""
    coarser, own = max(_calendars(low, high)), fineness(high)
    return _begin(make_coarse(low, coarser)(numbers), coarser, own)


def last_at_most(low: Column, high: Column, numbers: Floats) -> Floats:
    """Return the highest ``(N,)`` numbers of ``low`` that are at most those of ``high``, whatever their calendars."""
    coarser, own = max(_calendars(low, high)), fineness(low)
    if coarser == own:
        return make_coarse(high, coarser)(numbers)  # type: ignore[no-any-return]
    return _begin(make_coarse(high, coarser)(numbers) + 1.0, coarser, own) - low.unit


def _calendars(low: Column, high: Column) -> tuple[int, int]:
    """Return how coarse the times of two comparable columns are."""
    return fineness(low) or _SECOND, fineness(high) or _SECOND


def _begin(times: Floats, coarse: int, fine: int | None) -> Floats:
    """Return the first numbers of days or years in a finer calendar."""
    import numpy as np

    if coarse == fine:
        return times
    days = times
    if coarse == _YEAR:
        missing = np.isnan(times)
        years = np.where(missing, 1970, times).astype(np.int64) - 1970
        days = np.where(missing, np.nan, years.astype("datetime64[Y]").astype("datetime64[D]").astype(np.float64))
    return days * _SECONDS_OF_A_DAY if fine == _SECOND else days


def year_of_days(days: Floats) -> Floats:
    """Return ``(N,)`` calendar years of days since 1970, NaN for NaN."""
    import numpy as np

    missing = np.isnan(days)
    whole = np.where(missing, 0, days).astype(np.int64).astype("datetime64[D]")
    return np.where(missing, np.nan, whole.astype("datetime64[Y]").astype(np.int64) + 1970.0)


@dataclass(frozen=True, kw_only=True)
class CalendarOrder(NumericRule):
    """``at_most`` of two calendars: one of the two cells comes from a row in which it fits.

    Attributes:
        keys: What brings each column's numbers to the coarser calendar.
    """

    turn: ClassVar[int] = 3
    certain: ClassVar[bool] = True

    keys: tuple[Callable[[Any], Any], Callable[[Any], Any]]

    @classmethod
    def of_pair(cls, pair: tuple[str, str], columns: Mapping[str, Column]) -> CalendarOrder:
        """Return the rule that the first of two comparable columns is at most the second."""
        wanted = max(fineness(columns[name]) or 0 for name in pair)
        first, second = (make_coarse(columns[name], wanted) for name in pair)
        return cls(names=pair, columns=columns, keys=(first, second))

    @property
    def possible_at_all(self) -> bool:
        """Whether some value of the first is at most one of the second."""
        (low, high), keys = self.names, self.keys
        lowest, highest = self.columns[low].limits[0], self.columns[high].limits[1]
        return bool(keys[0](float(lowest)) <= keys[1](float(highest)))

    @override
    def named(self) -> Iterator[tuple[str, Allowed]]:
        yield from ((name, Allowed(values=self.columns[name].limits)) for name in self.names)

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        low, high = (key(numbers[name]) for key, name in zip(self.keys, self.names, strict=True))
        return low > high

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Take the first cell from a row drawn at random, in every second turn the second one, where that fits."""
        import numpy as np

        if source.rng is None:
            return  # the row becomes one that keeps all rules
        rows, lenders = np.flatnonzero(off), np.flatnonzero(source.sound)
        if not len(lenders):
            return
        place = source.turn % 2
        name = self.names[place]
        tried = numbers[name].copy()
        tried[rows] = numbers[name][source.rng.choice(lenders, len(rows))]
        still: Mask = self.broken({**numbers, name: tried})
        numbers[name] = np.where(off & ~still, tried, numbers[name])
