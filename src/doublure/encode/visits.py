"""ENCODE: units of a table that was split, as whole numbers, and back to rows of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from doublure.data.relational.visits import VisitRows
from doublure.encode.relational import RelationalEncoder
from doublure.schema import ResolvedSchema
from doublure.schema.related_constraints import table_of
from doublure.schema.visits import PEOPLE, RECORDS, SplitTables

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.support.tensors import Array


class VisitsEncoder(RelationalEncoder):
    """The encoder of the two related tables, whose columns are named as in the one.

    Args:
        schema: Of visits, every fact known.
    """

    def __init__(self, schema: ResolvedSchema) -> None:
        super().__init__(schema)
        self.most_rows = self.related.most(RECORDS)
        self.condition_sizes = {self.shown(name): size for name, size in self.condition_sizes.items()}

    @override
    def shown(self, name: str) -> str:
        """Return a counted column's name in the one table."""
        table = table_of(name)
        return name.removeprefix(f"{table}.") if table in (PEOPLE, RECORDS) else name

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> VisitRows:
        units = super().decode(rows, rng)
        related = SplitTables.of(self.related)
        return VisitRows(schema=related, frames=units.frames, parents=units.parents, marks=units.marks)
