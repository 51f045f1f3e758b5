"""Records that break a rule, in SQL: each becomes one that keeps all, from its own cells alone.

The turns are those of :meth:`doublure.schema.rules.rule_set.RuleSet.fix` without a source of randomness: a record that
breaks a rule after the last one takes the public row that showed that the rules can be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import Expr, RuleCell, SqlWords
from doublure.schema.rules.rule_set import TURNS, RuleSet

if TYPE_CHECKING:
    from doublure.schema.columns import Column
    from doublure.schema.rules.rule import Rule

_OFF, _LEVEL = "breaks_rule", "doublure_fixed_"


class RuleFixes:
    """The rules of a table, in SQL.

    Args:
        rules: Those that are kept by changing cells.
        columns: All columns.
        places: Column -> its number in the names of the statement's columns.
        stated: The columns that have states of missing.
        words: Of the engine.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        columns: Mapping[str, Column],
        places: Mapping[str, int],
        stated: frozenset[str],
        words: SqlWords,
    ) -> None:
        self._rules = RuleSet(rules, columns)
        self._columns, self._places, self._stated, self._words = columns, places, stated, words
        self._levels = list[Any]()

    def statement(self, given: Any, names: Sequence[str]) -> Any:
        """Return a statement whose records keep all rules; cells of columns that rules name are snapped.

        Args:
            given: Selects canonical cells.
            names: Its columns.

        Raises:
            NotInSql: A rule is not said in SQL.
        """
        from sqlglot import exp

        looked = {f"{kind}{self._places[name]}" for name in self._rules.names for kind in "ns"}
        kept = [exp.column(name) for name in names if name not in looked]
        snapped = {
            name: RuleCell(
                self._columns[name].snapped_in_sql(exp.column(f"n{self._places[name]}"), self._words),
                exp.column(f"s{self._places[name]}") if name in self._stated else None,
            )
            for name in self._rules.names
        }
        found = sql.select(*_copied(kept), *self._named(snapped), of=self._level(given))
        fixing = self._rules.fixing
        for turn in range(TURNS if len(fixing) > 1 else 1):
            for rule in fixing:
                off = rule.broken_in_sql(self._cells)
                found = self._changed(found, kept, off, rule.fixed_in_sql(self._cells, turn, self._words))
        if len(fixing) > 1:
            for component in self._rules.components:
                own = [rule.broken_in_sql(self._cells) for rule in fixing if set(rule.names) <= component]
                witness = self._rules.witness(component)
                if witness is None:  # refused when the schema was read
                    raise ValueError("no row keeps all rules")
                row = {name: RuleCell(_number(witness[name]), sql.whole(0)) for name in component}
                found = self._changed(found, kept, sql.either(*own), row) if own else found
        for number, level in enumerate(self._levels):
            found = found.with_(f"{_LEVEL}{number}", as_=level, copy=False)
        return found

    @property
    def _cells(self) -> dict[str, RuleCell]:
        """The columns of a level, as a rule looks at them."""
        from sqlglot import exp

        return {
            name: RuleCell(
                exp.column(f"n{self._places[name]}"),
                exp.column(f"s{self._places[name]}") if name in self._stated else None,
            )
            for name in self._rules.names
        }

    def _named(self, cells: Mapping[str, RuleCell]) -> list[Expr]:
        found = [cell.number.as_(f"n{self._places[name]}") for name, cell in cells.items()]
        return found + [cells[name].held_state.as_(f"s{self._places[name]}") for name in cells if name in self._stated]

    def _changed(self, given: Any, kept: Sequence[Expr], off: Expr, changed: Mapping[str, RuleCell]) -> Any:
        """Return a statement in which records that break a rule have other cells."""
        from sqlglot import exp

        flagged = sql.select(*_copied(kept), *self._own(), off.as_(_OFF), of=self._level(given))
        breaks, cells = exp.column(_OFF), self._cells
        for name, cell in changed.items():
            number = sql.case((breaks.copy(), cell.number), otherwise=cells[name].number)
            state = sql.case((breaks.copy(), cell.held_state), otherwise=cells[name].held_state)
            cells[name] = RuleCell(number, state if name in self._stated else None)
        return sql.select(*_copied(kept), *self._named(cells), of=self._level(flagged))

    def _own(self) -> list[Expr]:
        cells = self._cells.values()
        return [each.number for each in cells] + [each.state for each in cells if each.state is not None]

    def _level(self, statement: Any) -> Any:
        """Return a statement's name as what the next selects from: engines, and sqlglot, nest only some hundred.

        PostgreSQL computes it once, and does not write it into each place that names a column.
        """
        from sqlglot import exp

        self._levels.append(statement.offset(0, copy=False) if self._words.dialect == "postgres" else statement)
        return exp.to_table(f"{_LEVEL}{len(self._levels) - 1}")


def _number(value: float) -> Expr:
    return sql.nothing() if value != value else sql.real(value)


def _copied(columns: Sequence[Expr]) -> list[Expr]:
    return [each.copy() for each in columns]
