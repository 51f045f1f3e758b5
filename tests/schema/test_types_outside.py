"""Which type a column has is asked nowhere outside the schema; columns that no schema has are made in few places."""

from __future__ import annotations

import ast
from pathlib import Path

from doublure.schema.columns import registry

SOURCE = Path(__file__).parents[2] / "src" / "doublure"
MADE_ANEW = {
    "data/series/in_memory.py",  # a channel of which only that something stands in a cell is read
    "data/series/rows.py",  # the number of a step, in a file of series
    "encode/differences.py",  # the gap between two columns
    "evaluate/real_data.py",  # a list of which nothing is known
    "methods/statistics/relational/stages.py",  # numbers of rows, and cells of the row before
    "releasing/catalogues/datapackage.py",  # dates as data packages write them
    "releasing/reading.py",  # the number of a series and of a step
}


def test_types_of_columns_are_named_where_columns_are_made():
    concrete = {registry.type_named(name).__name__ for name in registry.TYPES}
    assert {"IntegerColumn", "CategoryColumn"} <= concrete
    found = set()
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE)
        if inside.parts[0] != "schema":
            text = path.read_text("utf-8")
            tree = ast.parse(text if any(name in text for name in concrete) else "")
            named = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
            found |= {inside.as_posix()} if named & concrete else set()
    assert found == MADE_ANEW
