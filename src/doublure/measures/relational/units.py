"""Coded units of related tables, for measures of relations: codes, owners, and pairs of successive rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.relational import RelatedRows, open_related
from doublure.errors import DataError
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.unlisted import open_lists
from doublure.schema import ResolvedSchema
from doublure.schema.relational import RelationalSchema
from doublure.support.arrays import Ints


@dataclass(frozen=True, kw_only=True)
class CodedUnits:
    """Coded units.

    Attributes:
        content: The units as read.
        root: Their rows of the root.
        children: Child table -> its rows; None where it has none.
    """

    content: RelatedRows
    root: Coded
    children: Mapping[str, Coded | None]

    def __len__(self) -> int:
        return len(self.content)

    def owners(self, child: str) -> Ints:
        """Return ``(M,)`` the index of the unit of each row of a child table."""
        return self.content.parents[child]

    def successive(self, child: str) -> Ints:
        """Return the indices of the rows of a child table that are followed by another row of their parent."""
        owner = self.content.hang_on(child)
        return np.flatnonzero(owner[:-1] == owner[1:])


@dataclass(frozen=True, kw_only=True)
class ComparedUnits:
    """The four compared sets of units."""

    train: CodedUnits
    synthetic: CodedUnits
    baseline: CodedUnits
    test: CodedUnits

    def evened(self, coders: UnitCoder, rng: np.random.Generator) -> ComparedUnits:
        """Return as many synthetic, independent and other real units: fewer are further from others by chance.

        Args:
            coders: Read the schema.
            rng: Draws the units that stay.
        """
        least = min(map(len, self.others.values()))

        def some(units: CodedUnits) -> CodedUnits:
            if len(units) == least:
                return units
            return coders.read(units.content.take(np.sort(rng.choice(len(units), least, replace=False))), "units")

        found = {role: some(units) for role, units in self.others.items()}
        return replace(self, synthetic=found["value"], baseline=found["baseline"], test=found["real"])

    @property
    def others(self) -> dict[str, CodedUnits]:
        """The sets compared with the training units."""
        return {"value": self.synthetic, "baseline": self.baseline, "real": self.test}


@dataclass(frozen=True, kw_only=True)
class UnitCoder:
    """The coders of all tables of one schema."""

    root: Coder
    children: Mapping[str, Coder]

    @classmethod
    def of(cls, schema: RelationalSchema, *real: RelatedRows) -> UnitCoder:
        """Return the coders of a schema's tables, whose lists hold all values of real rows."""

        def coder(name: str) -> Coder:
            return Coder(
                schema=open_lists(ResolvedSchema.of(schema.linked(name)), *(units.frames[name] for units in real))[0]
            )

        return cls(root=coder(schema.root), children={name: coder(name) for name in schema.children})

    def read(self, content: RelatedRows, what: str) -> CodedUnits:
        """Return units, coded.

        Args:
            content: The units as read.
            what: Name of the units in messages.
        """
        root = self.root.read(content.frames[content.schema.root], what)
        children = {
            name: coder.read(content.frames[name], what) if len(content.frames[name]) else None
            for name, coder in self.children.items()
        }
        return CodedUnits(content=content, root=root, children=children)


def read_units(schema: RelationalSchema, given: Any) -> RelatedRows:
    """Return units unchanged, or read from a mapping of frames with keys, such as a sample.

    Raises:
        DataError: A table is missing, or has cells that do not fit.
    """
    if isinstance(given, RelatedRows):
        return given
    if not isinstance(given, Mapping):
        raise DataError("is no mapping of tables", field="data", remedy="give a table for each of the schema's")
    return open_related(given).load(schema, at_least=1).content


def draw_independent(real: RelatedRows, units: int, rng: np.random.Generator) -> RelatedRows:
    """Return the floor: real rows of each table, in real numbers per unit, without any relation between them.

    Args:
        real: Real units.
        units: Number of units to make.
        rng: Draws them.
    """
    root = real.schema.root
    frames = {root: real.frames[root].iloc[rng.integers(0, len(real), units)].reset_index(drop=True)}
    parents: dict[str, Ints] = {}
    for child, table in real.schema.tables.items():
        if child == root:
            continue
        many = real.counts(child)[rng.integers(0, len(real), units)]
        parents[child] = np.repeat(np.arange(units), many)
        rows = rng.integers(0, max(1, len(real.frames[child])), len(parents[child]))
        frame = real.frames[child].iloc[rows].reset_index(drop=True)
        if table.order is not None:  # in order, as the rows of every unit
            by = pd.Series(frame[table.order]).to_numpy()
            frame = frame.iloc[np.lexsort((by, parents[child]))].reset_index(drop=True)
        frames[child] = frame
    return RelatedRows(
        schema=real.schema, frames=frames, parents=parents, marks=np.zeros(units, dtype=real.marks.dtype)
    )
