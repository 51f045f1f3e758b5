"""Columns of related tables that name a private row beside the parent's: another row of the unit, or another unit.

``links: {answers: {to: posts, match: [topic], acyclic: true}}`` says that a post's column ``answers`` names another
post of the same unit. The named row's topic is looked up and counted as a column of the post that names it. A synthetic
post names one of its unit's posts with such a topic. A row of the root belongs to another unit: its cells are never
looked up, and ``match: {boss_level: level}`` names columns that the row has itself. No identity is learned.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import StrictBool, StrictStr

from doublure.schema.columns import BooleanColumn, Column
from doublure.schema.fact_states import Frozen

NAMES_A_ROW = BooleanColumn(missing=False)
"""Whether a cell names a row."""


class RowLink(Frozen):
    """The kept part of a column that names a row.

    Attributes:
        to: The table of the named row.
        match: Columns of the named row that are looked up within the unit; or own column -> the named row's column
            that holds the same, where the row is of the root. Where no row has all of them, the last give way first.
        acyclic: Whether no chain of rows that name one another comes back.
    """

    to: StrictStr
    match: Mapping[StrictStr, StrictStr] | tuple[StrictStr, ...] = ()
    acyclic: StrictBool = False

    @property
    def looked_up(self) -> tuple[str, ...]:
        """The columns of the named row that are looked up."""
        return () if isinstance(self.match, Mapping) else self.match

    def pairs(self, own: str) -> tuple[tuple[str, str], ...]:
        """Return the columns of the row, and of the row that it names, that hold the same.

        Args:
            own: The column that names the row.
        """
        found = (
            self.match if isinstance(self.match, Mapping) else {looked_up_name(own, each): each for each in self.match}
        )
        return tuple(found.items())

    def columns_of(self, own: str, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Return what is counted of it: whether it names a row, and what is looked up of that one.

        Args:
            own: The column that names the row.
            columns: Of the table that it names.
        """
        found: dict[str, Column] = {own: NAMES_A_ROW}
        for each in self.looked_up:
            column = columns[each]
            missing = column.missing if column.may_be_missing else True
            plain = {"roles": (), "missing": missing} | ({"shares": None} if column.listed else {})
            found[looked_up_name(own, each)] = column.model_copy(update=plain)
        return found


def looked_up_name(own: str, column: str) -> str:
    """Return the name of what is looked up of a row that a column names."""
    return f"{column} of {own}"
