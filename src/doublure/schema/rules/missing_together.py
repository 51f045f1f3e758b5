"""``{missing_together: [Q28_1, Q28_2]}``: columns that are missing in the same rows, all or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.missing_states import hole_states, tag_holes
from doublure.schema.rules.rule import CellSource, Floats, Mask, Names, NumericRule, Rule, list_names


class MissingTogether(Rule):
    """In each row all of the columns are missing, or none."""

    word: ClassVar[str] = "missing_together"
    encoded: ClassVar[bool] = True

    missing_together: Names

    @property
    @override
    def missing_as_one(self) -> tuple[str, ...]:
        return self.missing_together

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        for name in self.names:
            if columns[name].missing is False:
                raise ValueError(f"missing_together names {printable(name)}, which is never missing; leave it out")

    @classmethod
    @override
    def check_together(cls, rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
        named = [name for rule in rules for name in rule.missing_as_one]
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"missing_together names {printable(twice[0])} twice; write one list with all of them")
        if computed := sorted(set(named) & {name for rule in rules for name in rule.derives}):
            name = printable(computed[0])
            raise ValueError(f"missing_together names {name}, which follows from others; leave it out")

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{list_names(self.names)} must be missing together, or not at all"

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        yield AllOrNoneMissing(names=self.names, columns=columns)


@dataclass(frozen=True, kw_only=True)
class AllOrNoneMissing(NumericRule):
    """``missing_together``: the first column decides; a cell that should be there comes from another row."""

    turn: ClassVar[int] = 1
    certain: ClassVar[bool] = True

    @property
    @override
    def moves(self) -> tuple[str, ...]:
        return self.names[1:]

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        import numpy as np

        first, *others = (np.isnan(numbers[name]) for name in self.names)
        found = sum((other != first for other in others), np.zeros_like(first))
        return bool(found) if isinstance(numbers[self.names[0]], float) else found.astype(np.bool_)

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Take a cell from a row that has one, or leave it out in the way in which the first column is."""
        import numpy as np

        first = numbers[self.names[0]]
        gone, states = np.isnan(first), hole_states(first)
        for name in self.names[1:]:
            root, _ = source.root_of(name)
            if root != name:
                continue
            cells = numbers[name]
            alike = self.columns[name].missing_texts == self.columns[self.names[0]].missing_texts
            holes = tag_holes(states) if alike else np.full(len(cells), np.nan)
            moved = np.where(off & gone & ~np.isnan(cells), holes, cells)
            rows, lenders = np.flatnonzero(off & ~gone & np.isnan(cells)), np.flatnonzero(~np.isnan(cells))
            if len(rows):
                middle = self.columns[name].limits[0]
                drawn = source.rng is not None and len(lenders) > 0
                moved[rows] = cells[source.rng.choice(lenders, len(rows))] if drawn and source.rng else middle
            numbers[name] = moved
