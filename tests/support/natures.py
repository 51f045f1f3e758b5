"""What any column does, in one place: the only file of the table of natures that knows where today's functions are.

When a method moves onto the column, its function here becomes that call, and no test changes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure.data.tables import cells
from doublure.encode.cell_names import interval_names
from doublure.encode.columns import encoding
from doublure.private.queries import facts
from doublure.schema import Schema

Floats = npt.NDArray[np.float64]
_HEAD = "doublure: 1\nkind: table\nunits: 10\ncolumns:\n  a: "


class Domain(NamedTuple):
    """The whole numbers of a column: the first, the last, whether one more stands for missing, and where cells begin.

    Attributes:
        starts: Of the public tree's first cells, ascending.
    """

    first: int
    last: int
    nullable: bool
    starts: npt.NDArray[np.int64]


@cache
def schema_of(text: str) -> Schema:
    """Return a table of one column."""
    return Schema.parse(f"{_HEAD}{text}\n")


def column_of(text: str) -> Any:
    """Return a column from its facts in the file."""
    return schema_of(text).columns["a"]


def read(column: Any, raw: list[Any], misfit: str = "refuse") -> pd.Series[Any]:
    """Return raw cells in canonical form."""
    given = np.empty(len(raw), dtype=object)
    given[:] = raw
    return cells.canonical(pd.Series(given, dtype=object), column, "a", misfit)  # type: ignore[arg-type]


def reread(column: Any, made: pd.Series[Any]) -> pd.Series[Any]:
    """Return canonical or sampled cells in canonical form."""
    return cells.canonical_again(made, column, "a")


def numbers_of(column: Any, canonical: pd.Series[Any]) -> Floats:
    """Return canonical or sampled cells as numbers, NaN for missing."""
    return column.snapped_numbers_of(canonical)


def cells_of(column: Any, values: Floats, *, loaded: bool) -> pd.Series[Any]:
    """Return numbers as cells: as they are loaded, or in the schema's own dtype."""
    return column.loaded_cells_of(values) if loaded else column.cells_of(values)


def number_of(column: Any, written: Any) -> float:
    """Return the number of one written value; ValueError where the column has none such."""
    return column.number_of(written)


def place_of(column: Any, written: Any) -> float:
    """Return the number of one written value that the column can have; ValueError elsewhere."""
    return column.place_of(written)


def text_of(text: str, number: int) -> str:
    """Return what a whole number of a column is called."""
    return _names(text)[number - domain_of(text).first]


@cache
def _names(text: str) -> tuple[str, ...]:
    domain = domain_of(text)
    starts = np.arange(domain.first, domain.last + 1 + domain.nullable, dtype=np.float64)
    return interval_names(_steps(text), starts, np.arange(len(starts)), len(starts))


@cache
def domain_of(text: str) -> Domain:
    """Return a column's whole numbers."""
    own = column_of(text).integer_domain()
    return Domain(own.first, own.last, own.nullable, own.initial_partition())


def parts_of(text: str, first: int, last: int) -> npt.NDArray[np.int64]:
    """Return where the parts of a full cell begin."""
    return column_of(text).integer_domain().split_cell(first, last)


def wholes_of(text: str, canonical: pd.Series[Any]) -> Floats:
    """Return cells as whole numbers."""
    (found,) = _steps(text).compact(canonical)
    return found


def cells_of_wholes(text: str, wholes: npt.NDArray[Any]) -> pd.Series[Any]:
    """Return whole numbers as cells in the schema's own dtype."""
    return _steps(text).restore([wholes.astype(np.float64)], None)


@cache
def _steps(text: str) -> Any:
    return encoding(column_of(text), "steps", 1)


def partition(text: str, fact: str) -> Any:
    """Return what the core counts over to buy a fact: a grid's points, or texts; both public."""
    query = _query(text, fact)
    return query.grid.points if fact == "bounds" else [*map(str, query.domain)]


def counted(text: str, fact: str, canonical: pd.Series[Any]) -> Any:
    """Return the exact counts of a fact."""

    class Held:
        n_units = len(canonical)
        most_records = 1

        def cells(self, column: str, fact: str) -> pd.Series[Any]:
            return canonical

    return _query(text, fact).counted(Held())


def answer(text: str, fact: str, noisy: Any) -> Any:
    """Return what noisy counts say, in the form that the schema holds."""
    return _query(text, fact).read(noisy)


def _query(text: str, fact: str) -> Any:
    schema = schema_of(text)
    (question,) = [each for each in schema.questions if each.fact == fact]
    return facts.make_fact_query(question, schema, {})
