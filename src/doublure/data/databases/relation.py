"""The rows that are read of a database: a table, a view, or a query of one table.

A query is parsed, and every word of it has to be on a list: an expression or a filter looks at one row. A word that
looks at several (a limit, a window, an aggregate, DISTINCT, a join, a nested query), or is drawn at random, would let
one record decide about another; the owner who wants it makes a view, whose rows are then what is protected.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.data.databases.address import ELSEWHERE, url_scheme
from doublure.errors import SettingError, printable
from doublure.support.objects import STORES

if TYPE_CHECKING:
    from doublure.data.databases.connection import DatabaseSession

_ROW_WISE = (
    "Select From Where Column Identifier Star Alias TableAlias Table Literal Boolean Null Paren Neg Not And Or Xor Is "
    "EQ NEQ GT GTE LT LTE Between In Like ILike RegexpLike Add Sub Mul Div IntDiv Mod DPipe Cast TryCast DataType "
    "DataTypeParam Case If Coalesce Nullif Upper Lower Trim Substring Concat ConcatWs Length Left Right Replace "
    "SplitPart StrPosition Abs Round Floor Ceil Greatest Least Extract Var DateTrunc TimestampTrunc Interval "
    "IntervalSpan Date Year Month Day Hour Minute Second"
)
"""The words of sqlglot for what looks at one row."""
_PLACES = ["rowid", "ctid", "xmin", "xmax", "cmin", "cmax", "file_row_number", "file_index"]
"""Columns of an engine's own, which say where a row lies among others: `rowid < 100` is a limit."""
_WORD = re.compile("[A-Za-z_]+")
_VIEW = "make a view of it, and give its name as the table"


class SourceRelation(ABC):
    """Rows of a database."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The name in messages."""

    @property
    @abstractmethod
    def public(self) -> Mapping[str, str]:
        """The public facts of it."""

    @abstractmethod
    def source(self, database: DatabaseSession) -> Any:
        """Return what a statement selects from.

        Raises:
            SettingError: It is none that is read.
        """


@dataclass(frozen=True, kw_only=True)
class NamedRelation(SourceRelation):
    """A table or view.

    Attributes:
        table: Its name, with its schema's before it if need be: ``clinic.people``.
    """

    table: str

    @property
    @override
    def shown(self) -> str:
        return printable(self.table)

    @property
    @override
    def public(self) -> Mapping[str, str]:
        return {"table": self.table}

    @override
    def source(self, database: DatabaseSession) -> Any:
        return self.named()

    def named(self) -> Any:
        """Return the name in SQL.

        Raises:
            SettingError: It is none.
        """
        from sqlglot import exp

        parts = self.table.split(".")
        if not all(parts) or len(parts) > 3:
            raise SettingError("is no name of a table", field="table", remedy="write people, or clinic.people")
        names = [exp.to_identifier(part, quoted=True) for part in parts]
        return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(names), strict=False)))


@dataclass(frozen=True, kw_only=True)
class QueriedRelation(SourceRelation):
    """A query of rows.

    Attributes:
        query: In the engine's own language.
    """

    query: str

    @property
    @override
    def shown(self) -> str:
        return "query"

    @property
    @override
    def public(self) -> Mapping[str, str]:
        return {"query": self.query}

    @override
    def source(self, database: DatabaseSession) -> Any:
        from sqlglot import exp

        found = read_query(self.query, database.words.dialect)
        if not database.holds(found.find(exp.Table)):
            remedy = "give a file as the data, or make a view of it in the database"
            raise _refused("selects from what is no table or view of the database", remedy)
        return found.subquery("given")


def read_query(query: str, dialect: str) -> Any:
    """Return a query each of whose rows is made of one row of one table.

    Args:
        query: In the engine's own language.
        dialect: sqlglot's name of it.

    Raises:
        SettingError: It is no such query; it names the word that looks further.
    """
    from sqlglot.errors import SqlglotError

    try:
        found = _plain(_checked(query, dialect), dialect)
        _checked(found.sql(dialect=dialect), dialect)  # as the database reads it
    except SqlglotError:
        raise _refused("is not understood", "write SELECT columns FROM table WHERE condition, or make a view") from None
    return found


def _checked(query: str, dialect: str) -> Any:
    """Return a query all of whose words are on the list.

    Raises:
        SettingError: One is not.
        SqlglotError: It is not understood.
    """
    import sqlglot
    from sqlglot import exp

    statements = sqlglot.parse(query, dialect=dialect)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise _refused("is not one SELECT", _VIEW)
    (found,) = statements
    allowed = tuple(getattr(exp, word) for word in _ROW_WISE.split() if hasattr(exp, word))
    for node in found.walk():
        if type(node) not in allowed or (isinstance(node, exp.Select) and node is not found):
            raise _refused(f"has {_word(node)}, which may look beyond one row", _VIEW)
    odd = [key for key, value in found.args.items() if value and key not in ("expressions", "from", "from_", "where")]
    if odd:
        raise _refused(f"has {odd[0].strip('_').upper()}, which looks beyond one row", _VIEW)
    tables = [*found.find_all(exp.Table)]
    if len(tables) != 1 or not isinstance(tables[0].this, exp.Identifier):
        raise _refused("does not select from one table", _VIEW)
    return found


def _plain(found: Any, dialect: str) -> Any:
    """Return a query whose words and names say what they seem to say.

    - A word such as the unit of EXTRACT is written as it is: in double quotes it could hold any SQL.
    - PostgreSQL calls a function by `people.count` where there is no such column, an aggregate or one of the owner's
      own; without its table a name is a column's. There is one table.

    Raises:
        SettingError: A word is none, or a column says where a row lies.
    """
    from sqlglot import exp

    if any(not _WORD.fullmatch(word.name) for word in found.find_all(exp.Var)):
        raise _refused("has a word that is none", _VIEW)
    for name in found.find_all(exp.Column):
        if name.name.lower() in _PLACES:
            raise _refused(f"has {name.name.lower()}, which follows from other rows", _VIEW)
        if dialect == "postgres":
            for part in ("table", "db", "catalog"):
                name.set(part, None)
    for word in found.walk():
        word.comments = None
    return found


def choose_relation(table: str | None, query: str | None) -> SourceRelation:
    """Return what is read.

    Raises:
        SettingError: Neither or both are given.
    """
    if table is not None and query is not None:
        raise SettingError("stands beside a table", field="query", remedy="give one of them")
    if query is not None:
        return QueriedRelation(query=query)
    if table is None:
        raise SettingError("is needed with a database", field="table", remedy="give the table or view to read")
    return NamedRelation(table=table)


def refuse_named(table: str | None, query: str | None) -> None:
    """Refuse a table or a query where a schema names all tables.

    Raises:
        SettingError: Naming which.
    """
    for name, given in (("table", table), ("query", query)):
        if given is not None:
            remedy = "leave it out: each table of the schema is read by its own name, or a view of that name"
            raise SettingError("is for one table", field=name, remedy=remedy)


def refuse_elsewhere(data: object, table: str | None, query: str | None) -> None:
    """Refuse a table or a query with data that is in no database.

    Raises:
        SettingError: Naming which, or a database that is not read.
    """
    if (scheme := url_scheme(data)) is not None and scheme not in STORES and (table, query) != (None, None):
        raise SettingError("is no database that is read", field=f"{printable(scheme)}://", remedy=ELSEWHERE)
    for name, given in (("table", table), ("query", query)):
        if given is not None:
            raise SettingError("is for a database", field=name, remedy="leave it out, or give the URL of a database")


def _word(node: Any) -> str:
    """Return what a word is called in SQL; a name of the owner's own is not shown."""
    from sqlglot import exp

    known = not isinstance(node, exp.Func | exp.Command) or type(node) in exp.FUNCTION_BY_NAME.values()
    return str(node.key).upper() if known else "a function of its own"


def _refused(message: str, remedy: str) -> SettingError:
    return SettingError(message, field="query", remedy=remedy)
