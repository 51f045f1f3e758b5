"""How columns are stored, told from the container or from the form of most cells, never from what they say."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from doublure.data.tables.opening import open_table
from doublure.drafting.storage_types import storage_of, storage_types
from doublure.errors import DataError


@pytest.mark.parametrize(
    ("cells", "storage"),
    [
        (["1", "-2", "+30", "", "?", "NA"], "integer"),
        (["1", "2.5", "1e5", ".5"], "real"),
        (["1.0", "2.0"], "real"),
        (["007", "012"], "text"),
        (["1234567890123456"], "text"),
        (["1,5"], "text"),
        (["0", "1"], "integer"),
        (["true", "FALSE"], "boolean"),
        (["yes", "no"], "text"),
        (["2020-01-31", "2020-02-01"], "date"),
        (["2020-01-31 00:00:00"], "date"),
        (["2020-01-31T12:00:00", "2020-02-01"], "datetime"),
        (["2020-01-31T00:00:00Z"], "datetime"),
        (["31/01/2020"], "text"),
        (["a", "b"], "text"),
        (["", "", None], "text"),
        ([], "text"),
        ([1, None, 3], "integer"),
        ([dt.date(2020, 1, 31), None], "date"),
        ([dt.datetime(2020, 1, 31, 12), None], "datetime"),
        ([decimal.Decimal("1.5")], "real"),
        ([[1], [2]], "text"),
        ([b"1"], "text"),
    ],
)
def test_forms_of_cells(cells: list[object], storage: str) -> None:
    assert storage_of(pd.Series(cells, dtype=object)) == storage


@pytest.mark.parametrize(
    ("cells", "storage"),
    [
        (pd.Series([1, 2]), "integer"),
        (pd.Series([1, None], dtype="Int8"), "integer"),
        (pd.Series([1.0, 2.0]), "real"),
        (pd.Series([True, None], dtype="boolean"), "boolean"),
        (pd.Series([1, None], dtype="uint8[pyarrow]"), "integer"),
        (pd.Series(["1", "2"], dtype="string"), "integer"),
        (pd.Series(pd.Categorical(["a", "b"])), "text"),
        (pd.Series(pd.Categorical([1, 2])), "integer"),
        (pd.Series(pd.to_datetime(["2020-01-31", None])), "date"),
        (pd.Series(pd.to_datetime(["2020-01-31T12:00"])), "datetime"),
        (pd.Series(pd.to_datetime(["2020-01-31T12:00"])).dt.tz_localize("Europe/Paris"), "datetime"),
        (pd.Series(pd.arrays.SparseArray([1, 0])), "integer"),
        (pd.Series(np.array([1j])), "text"),
        (pd.Series([], dtype=pd.ArrowDtype(pa.date32())), "date"),
        (pd.Series(pd.to_timedelta(["1D"])), "duration"),
        (pd.Series(["26:10:00", "1:30:00", "PT5M"]), "duration"),
        (pd.Series([dt.time(7, 30), None]), "time"),
        (pd.Series([27_000, None], dtype=pd.ArrowDtype(pa.time32("s"))), "time"),
        (pd.Series(["07:30", "7:45", "?", "23:59:59"]), "time"),
        (pd.Series(["07:30", "25:00"]), "text"),
    ],
)
def test_types_of_containers(cells: pd.Series, storage: str) -> None:
    assert storage_of(cells) == storage


def test_no_single_record_decides() -> None:
    for usual, storage in (("5", "integer"), ("5.5", "real"), ("2020-01-31", "date"), ("true", "boolean")):
        cells = [usual] * 19
        for odd in ("s3cr3t", "5", "5.5", "2020-01-31", "true", "2020-01-31T12:00", ""):
            assert storage_of(pd.Series([*cells, odd])) == storage_of(pd.Series(cells)) == storage


def test_csv_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a;b,c;d\n1;x;2020-01-31\n2;y;2020-02-01\n")
    assert storage_types(open_table(tmp_path / "data.csv")) == {"a": "integer", "b,c": "text", "d": "date"}
    (tmp_path / "head.csv").write_text("a,b\n")
    assert storage_types(open_table(tmp_path / "head.csv")) == {"a": "text", "b": "text"}
    columns = {"a": pa.array([1, None]), "b": pa.array([dt.date(2020, 1, 31), None]), "c": pa.array(["x", None])}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    assert storage_types(open_table(tmp_path / "data.parquet")) == {"a": "integer", "b": "date", "c": "text"}


def test_a_doubled_name_is_refused() -> None:
    with pytest.raises(DataError, match="more than once"):
        storage_types(open_table(pd.DataFrame([[1, 2]], columns=["a", "a"])))
