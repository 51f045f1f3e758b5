"""Columns of related tables that name a private row beside the parent's: another row of the unit, or another unit.

``links: {answers: {to: posts, match: [topic], acyclic: true}}`` says that a post's column ``answers`` names another
post of the same unit. The named row's topic is looked up and counted as a column of the post that names it. A synthetic
post names one of its unit's posts with such a topic. A row of the root belongs to another unit: its cells are never
looked up, and ``match: {boss_level: level}`` names columns that the row has itself. No identity is learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import StrictBool, StrictStr

from doublure.errors import printable
from doublure.schema.columns import BooleanColumn, Column
from doublure.schema.fact_states import Frozen

if TYPE_CHECKING:
    from doublure.schema.related_table import RelatedTable


NAMES_A_ROW = BooleanColumn(missing=False)
"""Whether a cell names a row."""


class RowLink(Frozen):
    """What is kept of a column that names a row.

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

    def counted(self, own: str, columns: Mapping[str, Column]) -> dict[str, Column]:
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


def check_links(tables: Mapping[str, RelatedTable], unit: str) -> None:
    """Refuse columns that could name no row, and what cannot be protected.

    Args:
        tables: All tables.
        unit: The name of a unit.

    Raises:
        ValueError: With a message for the schema's author.
    """
    for name, table in tables.items():
        for own, link in (table.links or {}).items():
            fault = _fault(tables, name, own, link, unit)
            if fault is not None:
                raise ValueError(f"{printable(f'{name}.{own}')} {fault}")


def _fault(tables: Mapping[str, RelatedTable], name: str, own: str, link: RowLink, unit: str) -> str | None:
    table, named, shown = tables[name], tables.get(link.to), printable(link.to)
    column = table.columns.get(own)
    if column is None or not column.identifies or column.told:
        return "is linked; describe it with type: id alone"
    if own in (*table.keys, *table.foreign_keys):
        return "is a key, and linked; keep one of the two"
    if named is None:
        return f"is linked to {shown}, which is no private table; name one that hangs on the root, or use references"
    if len(named.keys) != 1:
        return f"is linked to {shown}, which has no key of one column; give it one"
    if link.acyclic and link.to != name:
        return f"names rows of {shown}, so that there is no circle; leave acyclic out"
    if named.parent is None and link.looked_up:
        return (
            f"names another {unit}, whose cells do not count for this one; "
            "match its columns by columns of the row itself, as {column: its column}, or leave match out"
        )
    if named.parent is not None and isinstance(link.match, Mapping) and link.match:
        return f"names rows of its own {unit}; list columns of {shown} in match"
    for mine, theirs in link.pairs(own):
        held, kept = named.columns.get(theirs), table.columns.get(mine)
        if held is None or not held.modelled or held.learned:
            return f"matches {printable(theirs)}, which is no column of {shown} with declared facts; name one"
        if not link.looked_up and (kept is None or not kept.modelled or not kept.alike(held)):
            return f"matches {printable(mine)}, which is no column like {printable(theirs)}; name one of its type"
    if len({*link.looked_up}) != len(link.looked_up):
        return "matches a column twice; name each once"
    taken = [each for each in link.looked_up if looked_up_name(own, each) in table.columns]
    return (
        f"is counted with a column {printable(looked_up_name(own, taken[0]))}; rename the one there" if taken else None
    )
