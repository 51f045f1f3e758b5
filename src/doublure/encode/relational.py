"""ENCODE: units of related tables as whole numbers, and back.

Each table's row is numbers as of a table by itself (:mod:`doublure.encode.table_values`); where they stand in a unit is
:mod:`doublure.networks.related_layout`'s. Which of its rows a unit shows follows from its own key: what the others
hold changes no count, so that a unit moves one cell of a table by one, however many rows it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.relational.records import RelatedRows, marked
from doublure.encode import across_tables
from doublure.encode.above_root import places_above
from doublure.encode.encoder import Encoder
from doublure.encode.numeric import Floats
from doublure.encode.pairwise_swapping import Ints
from doublure.encode.repeating import repeating
from doublure.encode.table_values import TableValues
from doublure.errors import InputError
from doublure.networks.related_layout import ChildPlace, UnitLayout
from doublure.schema import ResolvedSchema
from doublure.schema.relational import ResolvedRelationalSchema
from doublure.support.mixing import remarked
from doublure.support.tensors import Array, as_array

if TYPE_CHECKING:
    from torch import Tensor

_BEFORE, _NEXT, _ANY = 1, 2, 3
"""Turns of a unit's mark, beside its own."""


class RelationalEncoder(Encoder):
    """The two-way mapping between units of related tables and rows of whole numbers, float64.

    Args:
        schema: Every fact known.

    Attributes:
        tables: Table -> the encoder of its rows; sums over children are left out.
        layout: Where they stand in a unit.
        related: The schema of the tables.
    """

    schema: ResolvedSchema
    of_wholes: ClassVar[bool] = True

    def __init__(self, schema: ResolvedSchema) -> None:
        self.schema, self.related = schema, ResolvedRelationalSchema.of(schema)
        self.tables = {name: TableValues(self._modelled(name)) for name in self.related.tables}
        root = self.tables[self.related.root]
        places = []
        for name in self.related.children:
            own, order = self.tables[name], self.related.tables[name].order
            at = -1 if order is None else own.columns.index(order)
            above = places_above(self.related, name, tuple(own.columns), tuple(root.columns))
            highest = 0 if at < 0 else own.domains[at].last
            repeats = tuple(map(own.columns.index, repeating(self.related, name, own.columns)))
            places.append((name, self.related.most(name), own.width, at, highest, above, repeats))
        self.layout = UnitLayout.of(root.width, places)
        self.width = self.layout.drawn_width
        self.condition_width = root.condition_width
        self.condition_sizes = {f"{self.related.root}.{name}": size for name, size in root.condition_sizes.items()}
        self.body_shape = (self.layout.counted_width,)

    def _modelled(self, name: str) -> ResolvedSchema:
        return ResolvedSchema.of(self.related.modelled(name))

    def shown(self, name: str) -> str:
        """Return the name under which counts of a column are published."""
        return name

    # -- encoding ------------------------------------------------------------------------------------------------

    @override
    def compact(self, content: RelatedRows) -> Array:
        found = np.zeros((len(content), self.layout.counted_width))
        root = self.related.root
        found[:, self.layout.root_part] = self.tables[root].compact(content.frames[root])
        for number, child in enumerate(self.layout.children):
            many = content.counts(child.name)
            found[:, number] = many
            rows = self.tables[child.name].compact(content.frames[child.name])
            begins, marks = np.cumsum(many) - many, remarked(content.marks, number)
            self._show(found, child, rows, begins, many, marks)
        return found

    def _show(
        self, found: Floats, child: ChildPlace, rows: Floats, begins: Ints, many: Ints, marks: np.ndarray
    ) -> None:
        """Write the rows that units show of a child table."""
        some = np.flatnonzero(many > 0)
        first = np.zeros(len(some), dtype=np.int64) if child.order >= 0 else _among(marks[some], many[some])
        found[some, child.first] = rows[begins[some] + first]
        anywhere = _among(remarked(marks[some], _ANY), many[some])
        found[some, child.place] = anywhere
        found[some, child.any] = rows[begins[some] + anywhere]
        several = np.flatnonzero(many > 1)
        held = many[several]
        if child.order >= 0:
            before = _among(remarked(marks[several], _BEFORE), held - 1)
            following = before + 1
        else:
            before = _among(remarked(marks[several], _BEFORE), held)
            following = _among(remarked(marks[several], _NEXT), held - 1)
            following += following >= before
        found[several, child.left] = held - 1 - following
        found[several, child.before] = rows[begins[several] + before]
        found[several, child.next] = rows[begins[several] + following]
        if child.order >= 0:
            at = child.next.start + child.order
            found[several, at] = np.maximum(found[several, at] - found[several, child.before.start + child.order], 0)
        for at, place in enumerate(child.repeats, start=child.same.start):
            found[several, at] = rows[begins[several] + following, place] == rows[begins[several] + before, place]
        for each in child.above:
            told = each.place == child.order  # by the row before
            rest = () if told else (child.before, child.next)
            for units, row in ((some, child.first), (some, child.any), *((several, part) for part in rest)):
                at = row.start + each.place
                found[units, at] = each.gaps(found[units, at], found[units, each.below])

    @override
    def expand(self, compact: Any) -> Any:
        return compact

    @override
    def split(self, rows: Any) -> tuple[Any, None]:
        return rows, None

    # -- decoding ------------------------------------------------------------------------------------------------

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> RelatedRows:
        """Return units of the schema's own dtypes, every constraint kept.

        Args:
            rows: ``(N, P)`` units as they are drawn; what stands behind is not looked at.
            rng: Lets rows that break a rule draw cells from others, where that is needed: each number is one value.

        Raises:
            InputError: A number is not finite.
        """
        values = as_array(rows)[:, : self.width].astype(np.float64)
        if not np.isfinite(values).all():
            raise InputError("has values that are not finite", field="generator", remedy="fit again")
        root = self.related.root
        source = rng if any(table.constraints for table in self.related.tables.values()) else None
        frames = {root: self._frame(root, values[:, self.layout.root_part], source)}
        parents = {}
        for number, child in enumerate(self.layout.children):
            many = np.clip(values[:, number], 0, child.most).astype(np.int64)
            filled = np.arange(child.most)[None] < many[:, None]
            slots = values[:, child.row(0).start : child.row(child.most - 1).stop]
            rows_there = slots.reshape(len(values), child.most, child.parts)[filled]
            frames[child.name] = self._frame(child.name, rows_there, source)
            parents[child.name] = np.repeat(np.arange(len(values)), many)
        across_tables.keep(frames, parents, self.related)
        return RelatedRows(schema=self.related, frames=frames, parents=parents, marks=marked(len(values)))

    def _frame(self, name: str, rows: Floats, rng: np.random.Generator | None) -> pd.DataFrame:
        table = self.related.tables[name]
        frame = self.tables[name].decode(rows, rng)
        return frame.drop(columns=[own for own in table.unmodelled if own in frame])

    @override
    def uniform(self, n: int, rng: np.random.Generator) -> Floats:
        found = np.zeros((n, self.width))
        found[:, self.layout.root_part] = self.tables[self.related.root].uniform(n, rng)
        for number, child in enumerate(self.layout.children):
            found[:, number] = rng.integers(0, child.most + 1, n)
            rows = self.tables[child.name].uniform(n * child.most, rng).reshape(n, child.most, child.parts)
            if child.order >= 0:
                rows[:, :, child.order].sort(axis=1)
            found[:, child.row(0).start : child.row(child.most - 1).stop] = rows.reshape(n, -1)
        return found


def _among(marks: np.ndarray, many: Ints) -> Ints:
    """Return which of so many each mark points at."""
    found: Ints = (marks % np.maximum(many, 1).astype(np.uint64)).astype(np.int64)
    return found
