"""ENCODE in a database: units of related tables as the whole numbers of :mod:`doublure.encode.relational`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from doublure.data.databases.linking import HANGS, MARK, OWNER, ROW, TURN, LinkedRows
from doublure.data.databases.reading import ranked
from doublure.encode.relational import ANY, BEFORE, NEXT, SHOWN
from doublure.encode.table_in_sql import select_codes
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import Expr, SqlLookup, SqlWords
from doublure.schema.related_table import rows_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doublure.encode.relational import RelationalEncoder
    from doublure.networks.related_layout import ChildPlace

Stored = tuple[str, Any, "Sequence[SqlLookup]"]
"""A temporary table, the statement that gives its rows, and public values that it joins."""
_ROLES = {"first": "a", "before": "b", "next": "e", "any": "z"}
"""Rows that a unit shows of a child table, and the letter of their numbers' names."""


class UnitsInSql:
    """The statements that give units as whole numbers.

    Args:
        encoder: Of the resolved schema.
        rows: Table -> its rows that belong to units.
    """

    def __init__(self, encoder: RelationalEncoder, rows: Mapping[str, LinkedRows]) -> None:
        self._encoder, self._rows = encoder, rows
        self._words: SqlWords = rows[encoder.related.root].cells.words
        self._numbers = {-1: encoder.related.root} | {
            number: child.name for number, child in enumerate(encoder.layout.children)
        }

    def statements(self, name: str) -> Iterator[Stored]:
        """Yield the temporary tables in turn; the last one, of this name, has ``c0``, ``c1``, … of each unit."""
        layout = self._encoder.layout
        for number in self._numbers:
            yield self._coded(number)
            if layout.hanging(number):
                yield f"doublure_heads_{number + 1}", self._heads(number), ()
                if number >= 0:
                    yield f"doublure_shown_{number + 1}", self._shown(number), ()
        for number, child in enumerate(layout.children):
            yield f"doublure_picked_{number}", self._picked(number, child), ()
            yield f"doublure_met_{number}", self._met(number, child), ()
        yield name, self._units(), ()

    def _coded(self, number: int) -> Stored:
        """Return a table's rows as whole numbers, with how many rows hang on each but for the root's."""
        from sqlglot import exp

        name, related = self._numbers[number], self._encoder.related
        own, hanging = self._rows[name], related.hanging(name)
        kept = [OWNER, ROW, MARK] if number < 0 else [OWNER, HANGS, TURN, *([ROW] if hanging else [])]
        cells, source = own.cells, exp.to_table(own.table)
        if number >= 0 and hanging:
            first = 1 + max(cells.places.values())
            places = {rows_name(child): first + at for at, child in enumerate(hanging)}
            cells = replace(cells, places={**cells.places, **places})
            counts = [(self._many(child), f"n{first + at}", "double") for at, child in enumerate(hanging)]
            source = sql.nested(_with_counts([exp.column(exp.Star(), table="own")], counts, own.table), "counted")
        statement, lookups = select_codes(self._encoder.tables[name], cells, source, kept)
        return f"doublure_coded_{number + 1}", statement, lookups

    def _many(self, child: str) -> Any:
        """Return how many rows of a table hang on each row of its parent."""
        from sqlglot import exp

        many = exp.Count(this=exp.Star()).as_("many")
        return sql.select(exp.column(HANGS), many, of=self._rows[child].table).group_by(HANGS, copy=False)

    def _heads(self, number: int) -> Any:
        """Return the rows on which others hang, as ``h0``, ``h1``, …: their own numbers, and those above them."""
        from sqlglot import exp

        layout, name = self._encoder.layout, self._numbers[number]
        width, coded = self._encoder.tables[name].width, f"doublure_coded_{number + 1}"
        if number < 0:
            hanging = [layout.children[each].name for each in layout.hanging(number)]
            counts = [(self._many(child), f"h{at}", "int") for at, child in enumerate(hanging)]
            own = [exp.column(f"c{at}").as_(f"h{at + len(hanging)}") for at in range(width)]
            return _with_counts([*own, OWNER, ROW, MARK], counts, coded)
        above = layout.children[number].parent
        return sql.select(
            *(exp.column(f"c{at}", table="own").as_(f"h{at}") for at in range(width)),
            *(exp.column(f"h{at}", table="above").as_(f"h{at + width}") for at in range(self._head_width(above))),
            *(exp.column(each, table="own") for each in (OWNER, ROW)),
            exp.column(MARK, table="above"),
            of=exp.to_table(coded, alias="own"),
        ).join(
            exp.to_table(f"doublure_heads_{above + 1}", alias="above"),
            on=exp.column(HANGS, table="own").eq(exp.column(ROW, table="above")), copy=False,
        )  # fmt: skip

    def _head_width(self, number: int) -> int:
        layout = self._encoder.layout
        return layout.children[layout.hanging(number)[0]].head_width

    def _head(self, number: int) -> str:
        """Return the table of the rows that units show of one on which others hang."""
        return f"doublure_{'heads' if number < 0 else 'shown'}_{number + 1}"

    def _remarked(self, mark: Expr, turn: int) -> Expr:
        return self._words.marked(sql.joined(sql.cast(mark, "text"), sql.text(f".{turn}")))

    def _shown(self, number: int) -> Any:
        """Return the row that each unit shows of a table on which others hang: any one with a row on it."""
        from sqlglot import exp

        own = self._encoder.tables[self._numbers[number]].columns
        hanging = [own.index(rows_name(child)) for child in self._encoder.related.hanging(self._numbers[number])]
        some = sql.either(*(exp.column(f"h{at}") > sql.whole(0) for at in hanging))
        each = ranked([OWNER], [exp.column(ROW)])
        many = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[exp.column(OWNER)])
        turns = sql.select("*", each.as_("place"), many.as_("many"), of=f"doublure_heads_{number + 1}")
        which = _among(self._remarked(self._remarked(exp.column(MARK), number), SHOWN), exp.column("many"))
        found = sql.select("*", of=sql.nested(turns.where(some, copy=False), "turns"))
        return found.where(exp.column("place").eq(which + sql.whole(1)), copy=False)

    def _picked(self, number: int, child: ChildPlace) -> Any:
        """Return which of a child table's rows each unit shows, counted from 0; of units that have one."""
        from sqlglot import exp

        mark, many, before = (exp.column(name) for name in ("mark", "many", "at_before"))
        below = [exp.column(f"h{each.below}").as_(f"g{at}") for at, each in enumerate(child.above)]
        marks = sql.select(
            exp.column(OWNER), exp.column(ROW), exp.column(f"h{child.many}").as_("many"), *below,
            self._remarked(exp.column(MARK), number).as_("mark"), of=self._head(child.parent),
        ).where(exp.column(f"h{child.many}") > sql.whole(0), copy=False)  # fmt: skip
        ordered, fewer = child.order >= 0, many.copy() - sql.whole(1)
        rows = sql.select(
            "*",
            (sql.whole(0) if ordered else _among(mark, many)).as_("at_first"),
            _among(self._remarked(mark, ANY), many).as_("at_any"),
            _among(self._remarked(mark, BEFORE), exp.Paren(this=fewer) if ordered else many).as_("at_before"),
            _among(self._remarked(mark, NEXT), exp.Paren(this=fewer.copy())).as_("at_after"),
            of=sql.nested(marks, "marks"),
        )
        beyond = exp.column("at_after") + sql.case(
            (exp.column("at_after") >= before, sql.whole(1)), otherwise=sql.whole(0)
        )
        following = before.copy() + sql.whole(1) if ordered else beyond
        several = sql.case((many.copy() > sql.whole(1), following))
        names = [OWNER, ROW, "many", "at_first", "at_any", "at_before", *(f"g{at}" for at in range(len(below)))]
        return sql.select(*map(exp.column, names), several.as_("at_next"), of=sql.nested(rows, "turns"))

    def _met(self, number: int, child: ChildPlace) -> Any:
        """Return the numbers of those rows, a row a unit."""
        from sqlglot import exp

        found: list[Expr] = []
        for role, letter in _ROLES.items():
            at = (exp.column(TURN, table="own") - sql.whole(1)).eq(exp.column(f"at_{role}", table="unit"))
            for place in range(child.parts):
                number_of = sql.case((at.copy(), exp.column(f"c{place}", table="own")))
                found.append(exp.Max(this=number_of).as_(f"{letter}{place}"))
        owner = exp.column(OWNER, table="unit")
        return (
            sql.select(owner, *found, of=exp.to_table(f"doublure_picked_{number}", alias="unit"))
            .join(
                exp.to_table(f"doublure_coded_{number + 1}", alias="own"),
                on=exp.column(HANGS, table="own").eq(exp.column(ROW, table="unit")),
                copy=False,
            )
            .group_by(owner.copy(), copy=False)
        )

    def _units(self) -> Any:
        """Return the numbers of units in the order of the layout."""
        from sqlglot import exp

        layout = self._encoder.layout
        parts: list[Expr] = [sql.whole(0) for _ in range(layout.counted_width)]
        joined: list[tuple[str, str]] = []
        for parent in {child.parent: child for child in layout.children}:
            head = layout.children[layout.hanging(parent)[0]].head
            for place in range(head.stop - head.start):
                parts[head.start + place] = exp.column(f"h{place}", table=f"head{parent + 1}")
            joined += [(self._head(parent), f"head{parent + 1}")] if parent >= 0 else []
        for number, child in enumerate(layout.children):
            _place_child(parts, child, f"met{number}", f"unit{number}")
            joined += [(f"doublure_picked_{number}", f"unit{number}"), (f"doublure_met_{number}", f"met{number}")]
        owner = exp.column(OWNER, table="head0")
        selected = [sql.call("COALESCE", part, sql.whole(0)).as_(f"c{at}") for at, part in enumerate(parts)]
        found = sql.select(*selected, of=exp.to_table(self._head(-1), alias="head0"))
        for table, name in joined:
            on = owner.copy().eq(exp.column(OWNER, table=name))
            found = found.join(exp.to_table(table, alias=name), on=on, join_type="LEFT", copy=False)
        return found


def _place_child(parts: list[Expr], child: ChildPlace, met: str, unit: str) -> None:
    """Put the numbers of a child table's rows where they stand in a unit."""
    from sqlglot import exp

    def number(letter: str, place: int) -> Expr:
        return exp.column(f"{letter}{place}", table=met)

    def of_unit(name: str) -> Expr:
        return exp.column(name, table=unit)

    rows = {"a": child.first, "b": child.before, "e": child.next, "z": child.any}
    for letter, shown in rows.items():
        for place in range(child.parts):
            parts[shown.start + place] = number(letter, place)
    parts[child.place] = of_unit("at_any")
    parts[child.left] = of_unit("many") - sql.whole(1) - of_unit("at_next")
    several = sql.no(sql.is_null(of_unit("at_next")))
    for letter in "be":
        for place in range(child.parts):
            at = rows[letter].start + place
            parts[at] = sql.case((several.copy(), parts[at]))
    if child.order >= 0:
        rest = _gaps(_wide(number("e", child.order)), _wide(number("b", child.order)), child.period)
        parts[child.next.start + child.order] = sql.case((several.copy(), sql.call("GREATEST", rest, sql.whole(0))))
    for at, place in enumerate(child.repeats, start=child.same.start):
        alike = sql.both(several.copy(), number("e", place).eq(number("b", place)))
        parts[at] = sql.case((alike, sql.whole(1)))
    for at, each in enumerate(child.above):
        below = _wide(of_unit(f"g{at}"))
        base = sql.case((below > sql.whole(each.last), sql.whole(each.first)), otherwise=below.copy())
        for letter in "az" if each.place == child.order else "abez":
            own = parts[rows[letter].start + each.place]
            gap = sql.call("GREATEST", _gaps(_wide(own), base, each.period), sql.whole(0))
            gone = (sql.is_null(own), sql.nothing())
            beyond = (own.copy() > sql.whole(each.highest), sql.whole(each.widest + 1))
            parts[rows[letter].start + each.place] = sql.case(gone, beyond, otherwise=gap)


def _with_counts(columns: Sequence[Any], counts: Sequence[tuple[Any, str, str]], of: str) -> Any:
    """Return rows with how many rows of other tables hang on each.

    Args:
        columns: That are kept.
        counts: Of each table the numbers of rows, what they are called, and their type.
        of: The table.
    """
    from sqlglot import exp

    many = [
        sql.cast(sql.call("COALESCE", exp.column("many", table=f"of{at}"), sql.whole(0)), kind).as_(name)
        for at, (_, name, kind) in enumerate(counts)
    ]
    kept = [exp.column(each, table="own") if isinstance(each, str) else each for each in columns]
    found = sql.select(*kept, *many, of=exp.to_table(of, alias="own"))
    for at, (statement, _, _) in enumerate(counts):
        on = exp.column(ROW, table="own").eq(exp.column(HANGS, table=f"of{at}"))
        found = found.join(sql.nested(statement, f"of{at}"), on=on, join_type="LEFT", copy=False)
    return found


def _among(mark: Expr, many: Expr) -> Expr:
    """Return which of so many a mark points at."""
    from sqlglot import exp

    return exp.Paren(this=exp.Mod(this=mark.copy(), expression=sql.call("GREATEST", many, sql.whole(1))))


def _wide(number: Expr) -> Expr:
    return sql.cast(number, "bigint")


def _gaps(number: Expr, below: Expr, period: int) -> Expr:
    if period == 1:
        return sql.gaps(number, below, period)
    return _wide(sql.gaps(sql.cast(number, "double"), sql.cast(below, "double"), period))
