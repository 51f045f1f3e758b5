"""``{determines: [INDP, INDP_CAT], map: FILE}``: a column that follows from another by a list, and is not modelled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StrictStr
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import MOST_VALUES, Column
from doublure.schema.rules.rule import DerivedColumn, Floats, Likeness, Rule, Text, make_reader, refuse_file


class Determines(Rule):
    """The second column follows from the first by a list."""

    word: ClassVar[str] = "determines"
    deriving: ClassVar[bool] = True
    file_key: ClassVar[str | None] = "map"
    suggested_by: ClassVar[Likeness | None] = "a coarser name"

    determines: Annotated[tuple[StrictStr, StrictStr], Field()]
    map: Annotated[Mapping[Text, Text], Field(min_length=1), BeforeValidator(refuse_file)]

    @property
    def _pair(self) -> str:
        return " and ".join(map(printable, self.determines))

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        first, second = (columns[name] for name in self.determines)
        if "condition" in second.roles:
            name = printable(self.determines[1])
            raise ValueError(f"{name} is a condition, and determines derives it; remove the role")
        every = f"determines lists every value of the first of {self._pair}"
        if not (first.listed or first.integral):
            raise ValueError(f"{every}; take a category or an integer")
        if (first.size or 0) > MOST_VALUES:
            raise ValueError(f"{every}, more than {MOST_VALUES}; group them")

    @override
    def derivations(self, columns: Mapping[str, Column]) -> Iterator[DerivedColumn]:
        source, name = self.determines
        first, second, pair = columns[source], columns[name], f"the map of {self._pair}"
        read_key, read = (make_reader(columns[each], f"{pair} at {printable(each)}") for each in self.determines)
        every: dict[float, float] = {}
        for key, cell in self.map.items():
            every[read_key(key)] = read(cell)
        hole = next((cell for key, cell in every.items() if math.isnan(key)), math.nan)
        pairs = {key: cell for key, cell in every.items() if not math.isnan(key)}
        count = first.size or 0
        if len(pairs) < count:
            raise ValueError(f"{pair} lacks {count - len(pairs)} of the first's {count} values; give each a line")
        if first.may_be_missing and math.isnan(hole) and not second.may_be_missing:
            raise ValueError(f"{pair} does not say what goes with an empty cell; give a line that begins empty")
        yield DerivedColumn(name, (source,), _ListedCells(pairs, hole))

    @classmethod
    @override
    def from_file(cls, rows: Sequence[Sequence[str]], written: Mapping[Any, Any]) -> Any:
        header, *pairs = rows
        names = written.get("determines")
        wanted = [str(name) for name in names] if isinstance(names, list) else list(header)
        if sorted(header) != sorted(wanted):
            raise ValueError("needs a header that names the two columns")
        found: dict[str, str] = {}
        for pair in pairs:
            first, second = pair if list(header) == wanted else reversed(pair)
            if found.setdefault(first, second) != second:
                raise ValueError("gives one value two")
        return found


@dataclass(frozen=True)
class _ListedCells:
    pairs: Mapping[float, float]
    hole: float

    def __call__(self, numbers: Any) -> Any:
        if isinstance(numbers, float):
            return self.hole if math.isnan(numbers) else self.pairs[numbers]
        import numpy as np

        keys, cells = self._sorted
        places = np.clip(np.searchsorted(keys, numbers), 0, len(keys) - 1)
        return np.where(np.isnan(numbers), self.hole, cells[places])

    @cached_property
    def _sorted(self) -> tuple[Floats, ...]:
        import numpy as np

        return tuple(map(np.array, zip(*sorted(self.pairs.items()), strict=True)))
