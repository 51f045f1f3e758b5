"""``{point: [lon, lat], region: FILE}``: two numbers that are one place on a map, within a public region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.rules.rule import (
    CellSource,
    Floats,
    Likeness,
    Mask,
    Names,
    NumericRule,
    Rings,
    Rule,
    list_names,
    refuse_file,
)
from doublure.schema.scalars import is_plain_number

Corner: TypeAlias = tuple[StrictFloat | StrictInt, StrictFloat | StrictInt]
_SEARCHED = 64
"""Places along each axis at which a region is looked for, beside the middles of three corners in a row."""
_FEWEST = 3
"""Corners of a ring that has a middle."""
Ring: TypeAlias = Annotated[tuple[Corner, ...], Field(min_length=_FEWEST)]


class MapPoint(Rule):
    """Two numbers are counted together, as places on a map."""

    word: ClassVar[str] = "point"
    encoded: ClassVar[bool] = True
    file_key: ClassVar[str | None] = "region"
    needs_file: ClassVar[bool] = False
    suggested_by: ClassVar[Likeness | None] = "two coordinates"

    point: Annotated[Names, Field(min_length=2, max_length=2)]
    region: Annotated[tuple[Ring, ...] | None, BeforeValidator(refuse_file)] = None

    @property
    @override
    def beside(self) -> tuple[str, ...]:
        return self.names[1:]

    @property
    @override
    def rings(self) -> Rings:
        return tuple(tuple((float(x), float(y)) for x, y in ring) for ring in self.region or ())

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        pair = " and ".join(map(printable, self.names))
        both = [columns[name] for name in self.names]
        if not all(column.plain and column.bounded for column in both):
            raise ValueError(f"point names {pair}, which are no two numbers; name longitude and latitude")
        if any(column.fact(name) == UNDECLARED for column in both for name in column.facts):
            return  # it is judged once they are known
        if not all(column.settled for column in both):
            raise ValueError(f"point needs declared facts of {pair}; declare bounds and missing")
        if both[0].missing != both[1].missing:
            raise ValueError(
                f"point names {pair}, of which one may be missing without the other; declare missing alike"
            )
        if any(column.repeated or column.roles for column in both):
            raise ValueError(f"point names {pair}, which have spikes or roles; take them out")
        if any(not rule.places for rule in self._within(columns)):
            raise ValueError(f"point has a region without a place within the bounds of {pair}; fix either")

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{list_names(self.names)} must be a place {'in the region' if self.region else 'within their bounds'}"

    @classmethod
    @override
    def check_together(cls, rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
        points = [rule for rule in rules if rule.beside]
        for rule in points:
            others = {name for other in rules if other is not rule for name in other.names}
            if shared := sorted({*rule.names} & others):
                raise ValueError(f"point and another rule name {printable(shared[0])}; leave it to one of them")

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        yield from self._within(columns)

    def _within(self, columns: Mapping[str, Column]) -> Iterator[WithinRegion]:
        if self.rings:
            yield WithinRegion(names=self.names, columns=columns, rings=self.rings)

    @classmethod
    @override
    def from_file(cls, rows: Sequence[Sequence[str]], written: Mapping[Any, Any]) -> Any:
        header, *lines = rows
        names = [str(name) for name in written["point"]]
        if any(header.count(name) != 1 for name in names):
            raise ValueError(f"has no columns {' and '.join(map(printable, names))}")
        x, y = (header.index(name) for name in names)
        kept = header.index("ring") if "ring" in header else None
        rings: dict[str, list[tuple[float, float]]] = {}
        for line in lines:
            if not (is_plain_number(line[x]) and is_plain_number(line[y])):
                raise ValueError("has a corner that is no two numbers")
            rings.setdefault("" if kept is None else line[kept], []).append((float(line[x]), float(line[y])))
        if min(map(len, rings.values())) < _FEWEST:
            raise ValueError(f"has a ring of fewer than {_FEWEST} corners")
        return list(rings.values())


@dataclass(frozen=True, kw_only=True)
class WithinRegion(NumericRule):
    """``point`` with a region: a place beyond it takes that of another row, which lies within.

    Attributes:
        rings: The corners of the region's rings; what lies within two of them lies in a hole.
    """

    rings: Rings = ()

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        import numpy as np

        first, second = (numbers[name] for name in self.names)
        if isinstance(first, float):
            return bool(self._beyond(np.array([first]), np.array([second]))[0])
        return self._beyond(first, second)

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Take the place of a sampled row that has one; without any, that of the last turn's row is taken."""
        import numpy as np

        lenders = np.flatnonzero(source.sound & ~np.isnan(numbers[self.names[0]]))
        if source.rng is None or not len(lenders):
            return
        chosen = source.rng.choice(lenders, int(off.sum()))
        for name in self.names:
            numbers[name] = numbers[name].copy()
            numbers[name][off] = numbers[name][chosen]

    @override
    def named(self) -> Iterator[tuple[str, Allowed]]:
        for place in self.places:
            yield from ((name, Allowed(values=(at,))) for name, at in zip(self.names, place, strict=True))

    @cached_property
    def places(self) -> tuple[tuple[float, float], ...]:
        """A place within the region that a row can have; none where none was found."""
        import numpy as np

        columns = [self.columns[name] for name in self.names]
        even = [np.linspace(*column.known_grid, _SEARCHED) for column in columns]
        tried = [np.stack(np.meshgrid(*even), axis=-1).reshape(-1, 2)]
        for ring in self.rings:
            corners = np.array(ring)
            tried.append((corners + np.roll(corners, -1, axis=0) + np.roll(corners, -2, axis=0)) / 3)
        every = np.concatenate(tried[::-1])
        x, y = (column.snap(every[:, at]) for at, column in enumerate(columns))
        found = np.flatnonzero(~self._beyond(x, y))[:1]
        return tuple((float(x[at]), float(y[at])) for at in found)

    def _beyond(self, x: Floats, y: Floats) -> Mask:
        import numpy as np

        known = ~(np.isnan(x) | np.isnan(y))
        found: Mask = known & ~inside(self.rings, x, y)
        return found


def inside(rings: Rings, x: Floats, y: Floats) -> Mask:
    """Return ``(N,)`` which places lie within a region, by the even-odd rule (Shimrat 1962).

    Args:
        rings: The corners of each ring.
        x: ``(N,)``.
        y: ``(N,)``.
    """
    import numpy as np

    found = np.zeros(len(x), dtype=np.bool_)
    for ring in rings:
        for (x0, y0), (x1, y1) in zip(ring, (*ring[1:], ring[0]), strict=True):
            if y0 != y1:
                crosses = (y0 > y) != (y1 > y)
                found ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return found
