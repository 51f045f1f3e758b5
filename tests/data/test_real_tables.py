"""The schemas that come along fit the public tables that they describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublure.data.tables.opening import open_table
from doublure.drafting.check import check
from doublure.schema import Schema

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / ".." / "shared" / "data"


def test_adult_is_bundled() -> None:
    schema = Schema.load(ROOT / "src/doublure/datasets/bundled/adult.schema.yaml")
    path = ROOT / "src/doublure/datasets/bundled/adult_train.csv.xz"
    assert check(schema, path).ok
    table = open_table(path).load(schema)
    assert table.n_units == 32_561
    assert table.frame["workclass"].isna().any()  # "?" in the file
    assert not table.frame["income"].isna().any()


@pytest.mark.parametrize(("name", "units", "rows"), [("mushroom", 8_124, 8_124), ("diabetes130", 71_518, 88_291)])
def test_the_example_schemas(name: str, units: int, rows: int) -> None:
    path = SHARED / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip("the shared data is not here")
    schema = Schema.load(ROOT / f"examples/schemas/{name}.schema.yaml")
    assert check(schema, path).ok
    table = open_table(path).load(schema)
    assert (table.n_units, len(table.frame)) == (units, rows)
    assert table.n_units == schema.units
