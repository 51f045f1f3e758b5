"""A stage of ``statistics`` on related tables as an encoder: which numbers of a unit its table counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from doublure.encode.above_root import above_root
from doublure.encode.grids import Floats
from doublure.encode.pairwise_swapping import Ints
from doublure.encode.relational import RelationalEncoder
from doublure.encode.table_values import TableValues
from doublure.methods.statistics.relational.stages import (
    Stage,
    above_form,
    above_of,
    count_name,
    count_of,
    gap_name,
    gap_of,
    left_name,
    rows_left,
)
from doublure.networks.related_layout import ChildPlace
from doublure.schema.columns import Column
from doublure.schema.relational import RelationalSchema
from doublure.schema.tables import ResolvedTableSchema, TableSchema


class StageValues(TableValues):
    """A stage's rows as whole numbers: what a fit of tables asks an encoder.

    Args:
        encoder: Of the units.
        stage: Which.

    Attributes:
        parts: ``(P,)`` where its numbers stand in a unit as it is counted.
    """

    def __init__(self, encoder: RelationalEncoder, stage: Stage) -> None:
        layout, root = encoder.layout, encoder.schema.root
        related = encoder.schema
        counts = TableValues(_facts({count_name(name): count_of(related, name) for name in related.children}))
        sources: list[tuple[TableValues, int, str]] = [(counts, place, "{}") for place in range(len(layout.children))]
        sources += [(encoder.tables[root], place, f"{root}.{{}}") for place in range(layout.root)]
        parts = list(range(len(layout.children) + layout.root))
        if stage.child >= 0:
            child = layout.children[stage.child]
            own = encoder.tables[child.name]
            row = [(own, place, f"{child.name}.{{}}") for place in range(child.parts)]
            for place, name, facts in _above(related, child, own):
                if place != child.order or not stage.following:
                    named = above_form(f"{child.name}.{{}}", root)
                    row[place] = (TableValues(_facts({name: facts})), 0, named)
            if not stage.following:
                sources += row
                parts += range(child.first.start, child.first.stop)
            else:
                left = TableValues(_facts({left_name(child.name): rows_left(child.most)}))
                sources += [(left, 0, "{}"), *((each, place, _before(form, child.name)) for each, place, form in row)]
                if child.order >= 0:
                    order = own.wholes[child.order].column
                    table = TableSchema.of(related.modelled(child.name))
                    gap = TableValues(_facts({gap_name(child.name, order): gap_of(table, order)}))
                    row[child.order] = (gap, 0, "{}")
                sources += row
                parts += [child.left, *range(child.before.start, child.next.stop)]
        self._sources = sources
        self.parts: Ints = np.array(parts, dtype=np.int64)
        self.schema = counts.schema  # which says of a unit that it has one row
        self.wholes = tuple(
            replace(each.wholes[place], column=form.format(each.wholes[place].column)) for each, place, form in sources
        )
        self.width = len(sources)
        self.condition_sizes = encoder.condition_sizes if stage.child < 0 else {}
        self.condition_width = sum(self.condition_sizes.values())

    def axis(self, part: int, starts: Floats, cells: Ints, size: int) -> tuple[str, tuple[str, ...]]:
        """Return what a part is called, with its table, and each cell that its values are counted in."""
        encoder, place, form = self._sources[part]
        name, names = encoder.axis(place, starts, cells, size)
        return form.format(name), names


def _above(schema: RelationalSchema, child: ChildPlace, own: TableValues) -> list[tuple[int, str, Column]]:
    """Return the columns that are counted by their gap above the root: place in a row, name, the gap as a column."""
    return [
        (own.columns.index(name), name, above_of(schema, child.name, name, below, together=True))
        for name, below in above_root(schema, child.name).items()
    ]


def _before(form: str, child: str) -> str:
    return f"{child}, before" + form.removeprefix(child)


def _facts(columns: dict[str, Any]) -> ResolvedTableSchema:
    return ResolvedTableSchema(doublure=1, kind="table", units=1, columns=columns)
