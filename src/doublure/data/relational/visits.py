"""One table in which a unit has several rows, read as two related tables and handed out as one again.

Public rules say what a unit is, each from the unit's own rows alone; none is an error, and none looks at another unit:

=============================================  =====================================================================
more than ``max_records`` rows of a unit       the first ones by ``order`` stay, equal ones in file order; without an
                                               order the first ones of the file
a ``per_unit`` cell that differs within one    the first cell of the rows that stay counts that is not missing
a unit whose cells then break a rule           what the rule makes of that unit alone
=============================================  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.relational.opening import kept_rows, mark_keys
from doublure.data.relational.records import RelatedRows, RelatedSet
from doublure.data.tables.opening import open_table
from doublure.data.tables.rules import checked
from doublure.errors import DataError
from doublure.schema.columns.made_rows import MadeRows
from doublure.schema.visits import PEOPLE, RECORDS, SplitTables, VisitsSchema
from doublure.support.arrays import Ints

if TYPE_CHECKING:
    from doublure.data.tables.source import TableSource
    from doublure.schema import Schema
    from doublure.schema.columns import Column
    from doublure.schema.written import Written


class VisitsSource:
    """A table whose header has been checked and whose rows have not been read."""

    def __init__(self, table: TableSource) -> None:
        self.name = table.name
        self._table = table

    def check(self, schema: Schema) -> None:
        """Compare the header with the schema.

        Raises:
            DataError: A column of the schema is not there, or stands twice.
        """
        self._table.check(schema)

    def load(self, schema: Schema, *, at_least: int = 2) -> VisitSet:
        """Read the rows, and put those of each unit together.

        Args:
            schema: Of visits.
            at_least: Fewer rows than this are refused.

        Raises:
            DataError: A cell or a row does not fit, and the schema has no public rule for it; there are too few.
        """
        described = VisitsSchema.of(schema)
        self.check(described)
        key = described.related.id
        wanted = {name: column for name, column in described.columns.items() if column.modelled}
        frame, ids = self._table.read(wanted, {key: described.columns[key].missing_tokens}, described.misfit)
        frame = checked(frame, described)
        if len(frame) < at_least:
            remedy = "give the table that the schema describes"
            raise DataError(f"has fewer than {at_least} records", field=self.name, remedy=remedy)
        return split(frame, ids[key], described)


def open_visits(source: Any, written: Written | None = None) -> VisitsSource:
    """Look at the container and header of a table; no row is read.

    Raises:
        DataError: As :func:`doublure.data.tables.opening.open_table`.
    """
    return VisitsSource(open_table(source, written))


def split(frame: pd.DataFrame, ids: pd.Series[Any], schema: VisitsSchema) -> VisitSet:
    """Return the units of a table's rows.

    Args:
        frame: ``(M,)`` rows of canonical cells.
        ids: ``(M,)`` the unit of each.
        schema: Of visits.
    """
    related, unit = schema.related, schema.unit
    codes, names = pd.factorize(ids)
    kept = kept_rows(codes.astype(np.int64), None if unit.order is None else frame[unit.order], unit.max_records)
    owner, rows = codes[kept].astype(np.int64), frame.iloc[kept].reset_index(drop=True)
    per_unit = [name for name in frame if schema.table_of(str(name)) == PEOPLE]
    people = pd.DataFrame(
        {name: _first_cells(rows[name], schema.columns[str(name)], owner, len(names)) for name in per_unit}
    )
    people = checked(people, related.table(PEOPLE).model_copy(update={"misfit": "coerce"}))
    frames = {PEOPLE: people, RECORDS: rows.drop(columns=per_unit)}
    marks = mark_keys(pd.Series(names, dtype=object))
    content = VisitRows(schema=related, frames=frames, parents={RECORDS: owner}, marks=marks)
    return VisitSet(content=content, unit=np.arange(len(names), dtype=np.int64), n_units=len(names))


def _first_cells(cells: pd.Series[Any], column: Column, owner: Ints, units: int) -> pd.Series[Any]:
    """Return each unit's first cell that is not missing, of whatever kind; that of its first row where all are.

    Args:
        cells: ``(M,)``, unit by unit.
        column: Of these.
        owner: ``(M,)`` ascending.
        units: How many there are, each with a row.
    """
    begins = np.searchsorted(owner, np.arange(units))
    there = np.flatnonzero((cells.notna() & ~cells.isin(column.missing_texts[1:])).to_numpy())
    having, first = np.unique(owner[there], return_index=True)
    begins[having] = there[first]
    return cells.iloc[begins].reset_index(drop=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VisitRows(RelatedRows):
    """Units, whose rows come out as those of one table."""

    schema: SplitTables

    @property
    def n_rows(self) -> int:
        """The number of their rows together."""
        return len(self.parents[RECORDS])

    @override
    def __getitem__(self, name: Any) -> Any:
        """Return a column that stays the same within a unit, by its name; or the units that a mask keeps."""
        return self.frames[PEOPLE][name] if isinstance(name, str) else self.take(name)

    def filling(self, rows: int) -> VisitRows:
        """Return whole units that have so many rows together, or all of them if they have fewer.

        They come in their order; a unit with more rows than are left makes room for the next that fills them, or fits.
        Where none does, it is cut.
        """
        many, left = self.counts(RECORDS), rows
        whole = int(np.searchsorted(np.cumsum(many), rows, side="right"))
        left -= int(many[:whole].sum())
        chosen, rest = [*range(whole)], np.arange(whole, len(many))
        while left and len(fitting := rest[many[rest] <= left]):
            exact = fitting[many[fitting] == left]
            chosen.append(int((exact if len(exact) else fitting)[0]))
            left -= int(many[chosen[-1]])
            rest = rest[rest != chosen[-1]]
        passed = rest[:1].tolist() if left else []
        found = self.take(np.array([*chosen, *passed], dtype=np.int64))
        if not passed:
            return found
        short = found.n_rows - int(many[passed[0]]) + left
        frames = {**found.frames, RECORDS: found.frames[RECORDS].iloc[:short]}
        return VisitRows(
            schema=self.schema, frames=frames, parents={RECORDS: found.parents[RECORDS][:short]}, marks=found.marks
        )

    @override
    def with_made(self, before: int, seed: int) -> pd.DataFrame:
        """Return one table: a unit's id is the number of its first row, and other ids number units or rows alike.

        Args:
            before: How many rows were handed out already.
            seed: Of the columns that are made anew.
        """
        owner, related = self.parents[RECORDS], self.schema
        many = self.counts(RECORDS)
        numbered = np.arange(1, len(owner) + 1, dtype=np.int64) + before
        whose = (np.cumsum(many) - many + 1 + before)[owner].astype(np.int64)
        people = self.frames[PEOPLE].iloc[owner].reset_index(drop=True)
        cells = pd.concat([people, self.frames[RECORDS].reset_index(drop=True)], axis=1)
        described = {**related.tables[RECORDS].columns, **related.tables[PEOPLE].columns}
        made = {
            table: MadeRows(seed=seed, numbers=numbers, units=whose, cells=cells, columns=described, table=table)
            for table, numbers in ((PEOPLE, whose), (RECORDS, numbered))
        }
        columns: dict[str, Any] = {}
        for name in related.names:
            rows = made[PEOPLE if name in related.tables[PEOPLE].columns else RECORDS]
            columns[name] = cells[name] if described[name].modelled else described[name].made(rows, name)
        return pd.DataFrame(columns, columns=list(related.names))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VisitSet(RelatedSet):
    """Private units of one table."""

    @property
    @override
    def frame(self) -> pd.DataFrame:
        """The columns that stay the same within a unit."""
        return self.content.frames[PEOPLE]

    @override
    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        frames = self.content.frames
        return frames[PEOPLE if column in frames[PEOPLE] else RECORDS][column]
