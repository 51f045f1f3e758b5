"""ENCODE: units of related tables as whole numbers, and back.

Each table's row is numbers as of a table by itself (:mod:`doublure.encode.table_values`); where they stand in a unit is
:mod:`doublure.networks.related_layout`'s. Which of its rows a unit shows follows from its own key: what the others
hold changes no count, so that a unit moves one cell of a table by one, however many rows it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.relational.records import RelatedRows, marked
from doublure.encode import across_tables
from doublure.encode.above_root import floors_above, places_above
from doublure.encode.encoder import Encoder
from doublure.encode.numeric import Floats
from doublure.encode.table import LENDERS
from doublure.encode.table_values import TableValues
from doublure.errors import InputError
from doublure.networks.related_layout import ChildFacts, ChildPlace, UnitLayout
from doublure.schema import ResolvedSchema
from doublure.schema.related_table import rows_name
from doublure.schema.relational import RelationalSchema, ResolvedRelationalSchema
from doublure.support import lattices
from doublure.support.arrays import Ints
from doublure.support.frames import with_columns
from doublure.support.mixing import remarked
from doublure.support.tensors import Array, as_array

if TYPE_CHECKING:
    from torch import Tensor

BEFORE, NEXT, ANY, SHOWN = 1, 2, 3, 4
"""Turns of a unit's mark, beside its own."""
_DRAWN_BYTES = 200_000_000
"""Memory for units of several levels while they are drawn, each with a place for every row that it may have."""


class RelationalEncoder(Encoder):
    """The two-way mapping between units of related tables and rows of whole numbers, float64.

    Args:
        schema: Every fact known.

    Attributes:
        tables: Table -> the encoder of its rows; sums over children are left out. How many rows hang on a row stands
            first in it, but for the root's.
        layout: Where they stand in a unit.
        related: The schema of the tables.
    """

    schema: ResolvedSchema
    of_wholes: ClassVar[bool] = True

    def __init__(self, schema: ResolvedSchema) -> None:
        self.schema, self.related = schema, ResolvedRelationalSchema.of(schema)
        self.tables = {name: TableValues(self._modelled(name)) for name in self.related.tables}
        root = self.tables[self.related.root]
        self.layout = UnitLayout.of(root.width, [self._facts(name) for name in self.related.children])
        self.width = self.layout.drawn_width
        self.condition_width = root.condition_width
        self.condition_sizes = {f"{self.related.root}.{name}": size for name, size in root.condition_sizes.items()}
        self.body_shape = (self.layout.counted_width,)
        if across_tables.may_lend(self.related):
            self.fewest_rows = LENDERS
        if any(child.parent >= 0 for child in self.layout.children):
            self.most_at_once = max(1, _DRAWN_BYTES // (self.width * np.dtype(np.float64).itemsize))

    def _facts(self, name: str) -> ChildFacts:
        """Return what the layout of a child table follows from."""
        related, own, table = self.related, self.tables[name], self.related.tables[name]
        parent = table.parent or ""
        head = self.tables[parent].columns
        if parent == related.root:
            head = [*map(rows_name, related.hanging(parent)), *head]
        at = -1 if table.order is None else own.columns.index(table.order)
        return ChildFacts(
            name=name,
            most=related.most_of_parent(name),
            parts=own.width,
            order=at,
            lowest=0 if at < 0 else own.domains[at].first,
            highest=0 if at < 0 else own.domains[at].last,
            period=1 if at < 0 else own.domains[at].period,
            floors=floors_above(related, name, head),
            above=places_above(related, name, own.columns, head),
            repeats=tuple(map(own.columns.index, repeating(related, name, own.columns))),
            parent=-1 if parent == related.root else related.children.index(parent),
            least=int(related.of_one_table),  # who has no row is not in the one table
        )

    def _modelled(self, name: str) -> ResolvedSchema:
        return ResolvedSchema.of(self.related.with_counts(name))

    def shown(self, name: str) -> str:
        """Return the name under which counts of a column are published."""
        return name

    # -- encoding ------------------------------------------------------------------------------------------------

    @override
    def compact(self, content: RelatedRows) -> Array:
        found = np.zeros((len(content), self.layout.counted_width))
        rows = [self._rows(content, child.name) for child in self.layout.children]
        heads = {
            -1: np.column_stack([self._counts(content, self.related.root), self._rows(content, self.related.root)])
        }
        every = np.arange(len(content))
        for number, child in enumerate(self.layout.children):
            if child.parent not in heads:
                above = self.layout.children[child.parent]
                heads[child.parent] = np.hstack([rows[child.parent], heads[above.parent][content.hang_on(above.name)]])
            units, shown = (every, every) if child.parent < 0 else self._shown(content, child.parent)
            many = content.counts_of_rows(child.name)
            begins, marks = np.cumsum(many) - many, remarked(content.marks, number)
            found[units, child.head] = heads[child.parent][shown]
            self._show(found, child, rows[number], units, begins[shown], many[shown], marks[units])
        return found

    def _rows(self, content: RelatedRows, name: str) -> Floats:
        """Return a table's rows as numbers; of a child table with how many rows hang on each."""
        frame = content.frames[name]
        if name != self.related.root:
            hanging = self.related.hanging(name)
            frame = with_columns(frame, {rows_name(child): content.counts_of_rows(child) for child in hanging})
        return as_array(self.tables[name].compact(frame))

    def _counts(self, content: RelatedRows, name: str) -> Ints:
        return np.column_stack([content.counts_of_rows(child) for child in self.related.hanging(name)])

    def _shown(self, content: RelatedRows, number: int) -> tuple[Ints, Ints]:
        """Return the units that show a row of a table that others hang on, and that row: any one with a row on it."""
        name = self.layout.children[number].name
        some = np.flatnonzero(self._counts(content, name).any(1))
        many = np.bincount(content.parents[name][some], minlength=len(content))
        units = np.flatnonzero(many)
        which = _among(remarked(remarked(content.marks[units], number), SHOWN), many[units])
        return units, some[(np.cumsum(many) - many)[units] + which]

    def _show(
        self,
        found: Floats,
        child: ChildPlace,
        rows: Floats,
        units: Ints,
        begins: Ints,
        many: Ints,
        marks: np.ndarray,
    ) -> None:
        """Write the rows that units show of a child table.

        Args:
            found: ``(N, counted width)`` the units.
            child: The table.
            rows: All its rows.
            units: ``(n,)`` which units show any.
            begins: ``(n,)`` where the rows of the parent's row that each shows begin.
            many: ``(n,)`` how many these are.
            marks: ``(n,)`` numbers as good as random.
        """
        having = np.flatnonzero(many > 0)
        units, begins, many, marks = units[having], begins[having], many[having], marks[having]
        first = np.zeros(len(units), dtype=np.int64) if child.order >= 0 else _among(marks, many)
        found[units, child.first] = rows[begins + first]
        anywhere = _among(remarked(marks, ANY), many)
        found[units, child.place] = anywhere
        found[units, child.any] = rows[begins + anywhere]
        more = np.flatnonzero(many > 1)
        several, begins, held, marks = units[more], begins[more], many[more], marks[more]
        if child.order >= 0:
            before = _among(remarked(marks, BEFORE), held - 1)
            following = before + 1
        else:
            before = _among(remarked(marks, BEFORE), held)
            following = _among(remarked(marks, NEXT), held - 1)
            following += following >= before
        found[several, child.left] = held - 1 - following
        found[several, child.before] = rows[begins + before]
        found[several, child.next] = rows[begins + following]
        if child.order >= 0:
            at = child.next.start + child.order
            gaps = lattices.gaps(found[several, at], found[several, child.before.start + child.order], child.period)
            found[several, at] = np.maximum(gaps, 0)
        for at, place in enumerate(child.repeats, start=child.same.start):
            found[several, at] = rows[begins + following, place] == rows[begins + before, place]
        for each in child.above:
            told = each.place == child.order  # by the row before
            rest = () if told else (child.before, child.next)
            for those, row in ((units, child.first), (units, child.any), *((several, part) for part in rest)):
                at = row.start + each.place
                found[those, at] = each.gaps(found[those, at], found[those, child.head.start + each.below])

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
        source = rng if any(self.related.modelled(name).constraints for name in self.related.tables) else None
        frames = {root: self._frame(root, values[:, self.layout.root_part], source)}
        parents, hanging = dict[str, Ints](), dict[str, Ints]()
        slots = {-1: values[:, None, : self.layout.head]}
        filled = {-1: np.ones((len(values), 1), dtype=np.bool_)}
        for number, child in enumerate(self.layout.children):
            above = filled[child.parent]
            many = np.clip(slots[child.parent][:, :, child.many], 0, child.most).astype(np.int64) * above
            filled[number] = (np.arange(child.most) < many[:, :, None]).reshape(len(values), child.places)
            slots[number] = values[:, child.rows].reshape(len(values), child.places, child.parts)
            frames[child.name] = self._frame(child.name, slots[number][filled[number]], source)
            parents[child.name] = np.repeat(np.arange(len(values)), many.sum(1))
            hanging[child.name] = np.repeat(np.arange(above.sum()), many[above])
        across_tables.keep(frames, hanging, self.related, source)
        deep = {name: hangs for name, hangs in hanging.items() if self.related.tables[name].parent != root}
        every = marked(len(values))
        units = RelatedRows(schema=self.related, frames=frames, parents=parents, above=deep, marks=every)
        return replace(across_tables.lent(units, self.related, source), marks=every)

    def _frame(self, name: str, rows: Floats, rng: np.random.Generator | None) -> pd.DataFrame:
        kept = self.related.modelled(name).columns
        frame = self.tables[name].decode(rows, rng)
        return frame.drop(columns=[own for own in map(str, frame) if own not in kept or not kept[own].modelled])

    @override
    def uniform(self, n: int, rng: np.random.Generator) -> Floats:
        found = np.zeros((n, self.width))
        found[:, self.layout.root_part] = self.tables[self.related.root].uniform(n, rng)
        for number, child in enumerate(self.layout.children):
            if child.parent < 0:
                found[:, number] = rng.integers(0, child.most + 1, n)
            rows = self.tables[child.name].uniform(n * child.places, rng).reshape(-1, child.most, child.parts)
            if child.order >= 0:
                rows[:, :, child.order].sort(axis=1)
            found[:, child.rows] = rows.reshape(n, -1)
        return found


def _among(marks: np.ndarray, many: Ints) -> Ints:
    """Return which of so many each mark points at."""
    found: Ints = (marks % np.maximum(many, 1).astype(np.uint64)).astype(np.int64)
    return found


_FEWEST = 9
"""Fewest values for which one cell holds what several do."""


def repeating(schema: RelationalSchema, child: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a row often has as the row before: lists without an order, of nine values or more.

    They are counted with one value more, which says that a cell is as in the row before. One cell of a noisy table then
    holds what the diagonal of a table of all values by all values holds in as many cells.

    Args:
        schema: Of all tables.
        child: The table.
        columns: Columns of its rows.
    """
    facts = schema.tables[child].columns
    listed = [name for name in columns if name in facts and facts[name].listed and not facts[name].ordered]
    return tuple(name for name in listed if not 0 < len(facts[name].domain) < _FEWEST)
