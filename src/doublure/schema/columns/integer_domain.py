"""The integers that stand for a column's values, and the public tree above them.

A column says its tree by two methods of a domain: where public cells begin, and where the parts of one begin. Both see
public facts alone. Others take them checked, by :meth:`IntegerDomain.initial_partition` and
:meth:`IntegerDomain.split_cell`, and a query puts each record in one cell by itself: a wrong tree is refused, and moves
no sensitivity.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from typing_extensions import override

from doublure.errors import SchemaError

if TYPE_CHECKING:
    import numpy as np

    Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

Scale: TypeAlias = Literal["linear", "log", "symlog"]

_FEW = 128
"""Of so many values each is a cell."""
EVEN_CELLS = 128
"""Public cells of equal width."""
_RATIO = 1.1
_DECADES = 1_000.0
_SINGLE = 64
"""A full cell of so many values is cut into single ones."""
_ROUND = 32
_DAY = 86_400
_SEVERAL = 4
"""Fewest multiples of a step up to the largest value, for them to say something."""
_HOURS = 24
_CLOCK_LATTICES = (_DAY, 43_200, 3600, 1800, 900, 300, 60)
"""Seconds of a day, half a day, an hour, and the parts of an hour that nest."""
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
"""Seconds that clocks and plans are divided by, up to half a day."""


@dataclass(frozen=True, kw_only=True)
class IntegerDomain:
    """The integers that stand for a column's values; all of it is public.

    A tree of its own is stated by a subclass that overrides :meth:`starts` and :meth:`parts`: blocks above codes,
    years above days.

    Attributes:
        first: The lowest integer.
        last: The highest.
        nullable: How many integers after the last stand for missing: one, or one a declared kind.
        undeclared_empty: Whether the first of several kinds is an empty cell that is not declared.
        ordered: Whether neighbours belong together.
        unit: The number that one integer stands for; a list counts places.
        spikes: Integers that are declared to stand out.
    """

    divisible: ClassVar[bool] = False
    """Whether records are looked for from public cells down, by parts of those that are full."""
    tapers: ClassVar[bool] = False
    """Whether values far from the others are expected to be ever rarer."""
    smooth: ClassVar[bool] = True
    """Whether cells beside one another are expected to hold about as many records; else all are exchangeable."""

    first: int
    last: int
    nullable: int
    ordered: bool = False
    unit: float = 1.0
    spikes: tuple[int, ...] = ()
    undeclared_empty: bool = False

    def __post_init__(self) -> None:
        """Refuse ends that are no integers in order."""
        object.__setattr__(self, "nullable", int(self.nullable))
        if type(self.first) is not int or type(self.last) is not int or self.first > self.last:
            raise SchemaError(
                f"{type(self).__name__} has ends that are no integers in order",
                field="integer domain",
                remedy="give first and last as integers, first <= last",
            )
        if not 0 < float(self.unit) < math.inf or any(type(spike) is not int for spike in self.spikes):
            raise SchemaError(
                f"{type(self).__name__} has a unit that is no positive number, or spikes that are no integers",
                field="integer domain",
                remedy="give a finite unit above 0, and spikes as integers",
            )

    @property
    def size(self) -> int:
        """The number of values, missing included."""
        return self.last - self.first + 1 + self.nullable

    def starts(self) -> Ints:
        """Return where public cells begin, ascending; missing is not among them."""
        import numpy as np

        return np.arange(self.first, self.last + 1)

    def parts(self, first: int, last: int) -> Ints:
        """Return where the parts of a cell begin, ascending.

        Args:
            first: The cell's first integer.
            last: The cell's last.
        """
        import numpy as np

        return np.arange(first, last + 1)

    def levels(self) -> Ints:
        """Return the group ``(L, n)`` of each value at each public level above, the coarsest first; often none."""
        import numpy as np

        return np.zeros((0, self.last - self.first + 1), dtype=np.int64)

    def undrawn(self) -> tuple[int, ...]:
        """Return values that are read, and drawn as another of their smallest group."""
        return ()

    def nested_levels(self) -> Ints:
        """Return the groups ``(L, n)`` of all values, checked.

        Raises:
            SchemaError: They do not nest.
        """
        found = self.levels()
        count = self.last - self.first + 1
        fits = found.ndim == 2 and found.shape[1] == count and bool((found >= 0).all() and (found < count).all())
        if not fits or any(len({*zip(fine, coarse, strict=True)}) > len({*fine}) for coarse, fine in _pairs(found)):
            raise SchemaError(
                "gives groups that do not nest",
                field=f"{type(self).__name__}.levels",
                remedy="number the group of each value, the coarsest level first, each finer group within one coarser",
            )
        return found

    def lattices(self) -> tuple[int, ...]:
        """Return steps between round values, the coarsest first, each a multiple of the next, the last 1.

        Rows are counted by the coarsest step that divides their value. People round: many values are round at once.
        """
        return (1,)

    def nested_steps(self) -> Ints:
        """Return the steps ``(K,)`` between round values, checked.

        Raises:
            SchemaError: They do not nest.
        """
        import numpy as np

        found = self.lattices()
        nested = all(type(step) is int and step > 0 for step in found) and found[-1:] == (1,)
        if not nested or any(one <= other or one % other for one, other in itertools.pairwise(found)):
            raise SchemaError(
                "gives steps that do not nest",
                field=f"{type(self).__name__}.lattices",
                remedy="return integers, the coarsest first, each a multiple of the next, the last 1",
            )
        return np.array(found, dtype=np.int64)

    def hours(self) -> int:
        """Return the parts of a day at which rows are counted whatever their day; 0: values have no time of day.

        Where there are some, the coarsest of :meth:`lattices` is a day, and they divide it evenly.
        """
        return 0

    @property
    def period(self) -> int:
        """Integers of a day, where values have a time of day; else 1."""
        return self.lattices()[0] if self.hours() else 1

    @property
    def clock_from(self) -> int:
        """The first integer whose rest within a day is a time of day."""
        return self.first

    def gaps(self, first: int, last: int) -> IntegerDomain:
        """Return the integers of how far a value lies above another (:func:`doublure.support.lattices.gaps`).

        Args:
            first: The least of them.
            last: The largest.
        """
        return NumberDomain(first=first, last=last, nullable=self.nullable, unit=self.unit)

    def initial_partition(self) -> Ints:
        """Return where public cells begin, checked.

        Raises:
            SchemaError: They are not ascending integers from the first on.
        """
        return _checked(self.starts(), self.first, self.last, f"{type(self).__name__}.starts")

    def split_cell(self, first: int, last: int) -> Ints:
        """Return where the parts of a cell begin, checked.

        Args:
            first: The cell's first integer.
            last: The cell's last.

        Raises:
            SchemaError: They are not ascending integers from the cell's first on.
        """
        return _checked(self.parts(first, last), first, last, f"{type(self).__name__}.parts")


@dataclass(frozen=True, kw_only=True)
class NumberDomain(IntegerDomain):
    """The integers of a number, whose values may span decades.

    Where they do, or have both signs, cells are single values near zero and then of one ratio (symlog). They begin at
    the same places whatever the bounds: bounds a hundred times too wide add some empty cells, and change no other.

    Attributes:
        scale: The width of public cells, if that is declared.
        edges: Where public cells begin, if that is declared.
    """

    divisible: ClassVar[bool] = True
    tapers: ClassVar[bool] = True

    ordered: bool = True
    scale: Scale | None = None
    edges: tuple[int, ...] = ()

    @override
    def starts(self) -> Ints:
        import numpy as np

        if self.last - self.first + 1 <= _FEW:
            return np.arange(self.first, self.last + 1)
        alone = np.array(self.spikes, dtype=np.int64)
        starts = np.concatenate([self._cells(), [self.first, self.last], alone, alone + 1])
        return np.unique(starts[(starts >= self.first) & (starts <= self.last)]).astype(np.int64)

    @override
    def parts(self, first: int, last: int) -> Ints:
        """Return single values where there are few; else round values, which are what people write, and the gaps."""
        import numpy as np

        if last - first + 1 <= _SINGLE:
            return np.arange(first, last + 1)
        step = next(step for step in self.round_steps() if last // step - -(-first // step) < _ROUND)
        alone = np.arange(-(-first // step), last // step + 1) * step
        return np.unique(np.concatenate([[first], alone, alone[alone < last] + 1])).astype(np.int64)

    @override
    def lattices(self) -> tuple[int, ...]:
        """Return 1, 5, 10, 50, … up to a quarter of the largest value: in a decimal system 2 does not nest below 5."""
        most = max(abs(self.first), abs(self.last)) // _SEVERAL
        steps = (times * 10**power for power in range(19) for times in (1, 5))
        return tuple(itertools.takewhile(lambda step: step <= max(most, 1), steps))[::-1]

    def round_steps(self) -> Iterator[int]:
        """Yield the steps between values that people write, ascending, without end."""
        return (times * 10**power for power in range(19) for times in (1, 2, 5))

    def _cells(self) -> Ints:
        import numpy as np

        if self.edges:
            return np.array(self.edges)
        if self.scale == "linear" or (self.scale is None and not _spans_decades(self.first, self.last)):
            return _even(self.first, self.last, EVEN_CELLS)
        return _symlog(self.first, self.last)


@dataclass(frozen=True, kw_only=True)
class TimeDomain(NumberDomain):
    """The integers of a time, which has no small values: all cells are of equal width.

    Attributes:
        seconds: Seconds of one integer.
    """

    tapers: ClassVar[bool] = False

    scale: Scale | None = "linear"
    seconds: float = _DAY

    @override
    def lattices(self) -> tuple[int, ...]:
        """Return whole days, hours, quarters, minutes, as far as integers are shorter."""
        return _clock_lattices(self.seconds)

    @override
    def hours(self) -> int:
        """Return 24, or a day's integers if those are fewer; 0 within one day, and where none is a day's beginning."""
        day = self.lattices()[0]
        if day * self.seconds != _DAY or not 1 < day < self.last - self.first + 1 or day > _DAY:
            return 0
        return _HOURS if day % _HOURS == 0 else day if day < _HOURS else 0

    @override
    def parts(self, first: int, last: int) -> Ints:
        import numpy as np

        return np.arange(first, last + 1) if last - first + 1 <= _SINGLE else _even(first, last, _ROUND)

    @override
    def gaps(self, first: int, last: int) -> IntegerDomain:
        if self.period == 1:
            return super().gaps(first, last)
        return ClockGapDomain(
            first=first, last=last, nullable=self.nullable, unit=self.unit, seconds=self.seconds, day=self.period
        )


@dataclass(frozen=True, kw_only=True)
class ClockGapDomain(TimeDomain):
    """The integers of gaps between moments, which from a day on tell the later one's time of day.

    Below a day, cells are those of a number; from there on whole days, of one ratio.

    Attributes:
        day: Integers of a day.
    """

    tapers: ClassVar[bool] = True

    day: int

    @property
    @override
    def clock_from(self) -> int:
        return max(self.first, self.day)

    @override
    def starts(self) -> Ints:
        import numpy as np

        short, days = _symlog(0, self.day - 1), self.day * _symlog(1, max(1, self.last // self.day))
        starts = np.concatenate([[self.first], short[short < self.day], days[days >= self.day]])
        return np.unique(starts[(starts >= self.first) & (starts <= self.last)]).astype(np.int64)

    @override
    def parts(self, first: int, last: int) -> Ints:
        """Return single days where there are few, else some; the hours of one day; single integers below a day."""
        import numpy as np

        if first < self.day:
            return np.arange(first, last + 1) if last - first + 1 <= _SINGLE else _even(first, last, _ROUND)
        days = -(-(last - first + 1) // self.day)
        if days == 1:
            return _even(first, last, _HOURS)
        return first + self.day * _even(0, days - 1, min(days, _SINGLE))


@dataclass(frozen=True, kw_only=True)
class SecondsDomain(NumberDomain):
    """The integers of a number of seconds: people write whole minutes, quarters of an hour, hours and days."""

    @override
    def lattices(self) -> tuple[int, ...]:
        """Return whole days, hours, quarters, minutes."""
        return _clock_lattices(self.unit)

    @override
    def round_steps(self) -> Iterator[int]:
        days = (_DAY * times * 10**power for power in range(14) for times in (1, 2, 5))
        yield from (round(step / self.unit) for step in (*_CLOCK_STEPS, *days) if step % self.unit == 0)
        yield from super().round_steps()


def _clock_lattices(seconds: float) -> tuple[int, ...]:
    """Return the clock's nested steps, in integers of so many seconds."""
    steps = [int(step // seconds) for step in _CLOCK_LATTICES if step > seconds and step % seconds == 0]
    return (*steps, 1)


def _pairs(levels: Ints) -> Iterator[tuple[list[int], list[int]]]:
    """Yield each level with the next finer one."""
    yield from itertools.pairwise(levels.tolist())


def _checked(starts: Any, first: int, last: int, where: str) -> Ints:
    import numpy as np

    found = np.asarray(starts)
    integers = found.ndim == 1 and found.size > 0 and np.issubdtype(found.dtype, np.integer)
    if not integers or found[0] != first or found[-1] > last or not (found[1:] > found[:-1]).all():
        raise SchemaError(
            "gives cells that do not divide the integers they lie above",
            field=where,
            remedy="return the first integer of each as an array, ascending, the first of all first",
        )
    return found.astype(np.int64)


def _even(first: int, last: int, cells: int) -> Ints:
    import numpy as np

    return np.unique(np.linspace(first, last + 1, cells + 1).astype(np.int64)[:-1])


def _spans_decades(first: int, last: int) -> bool:
    if first <= 0 <= last:
        return True
    least, most = sorted((abs(first), abs(last)))
    return most / max(least, 1) >= _DECADES


def _symlog(first: int, last: int) -> Ints:
    """Return zero, single values beside it, then cells of one ratio on both sides; the ends alone."""
    import numpy as np

    most, end, ends = max(abs(first), abs(last)), 1, []
    while end <= most + 1:
        ends.append(end)
        end = max(end + 1, round(end * _RATIO))
    above = np.array([*ends, end], dtype=np.int64)
    return np.concatenate([1 - above[::-1], [0], above, [first + 1]])
