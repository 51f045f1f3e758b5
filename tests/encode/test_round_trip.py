"""Whatever a schema may say of a column: encoding and decoding keep its type, its domain, its bounds and its grid."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tiers import examples

from doublure.data.tables.cells import canonical
from doublure.encode.table import TableEncoder
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column, label

torch.set_num_threads(1)

missing = st.sampled_from([False, True, ["?"]])
zones = st.sampled_from([None, "UTC", "Asia/Kolkata"])  # clocks that change have tests of their own
words = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=5)
values = st.lists(words | st.integers(-9, 9) | st.floats(-2, 2) | st.booleans(), min_size=1, max_size=6)
DAY = dt.date(1950, 1, 1)


@st.composite
def integers(draw: st.DrawFn) -> dict[str, Any]:
    lower, length = draw(st.integers(-3_000, 3_000)), draw(st.integers(1, 20) | st.integers(1, 200_000))
    zero = draw(st.booleans()) and lower <= 0 <= lower + length
    return {"type": "integer", "bounds": [lower, lower + length], "zero_inflated": zero}


@st.composite
def reals(draw: st.DrawFn) -> dict[str, Any]:
    lower, length = draw(st.floats(-1_000, 1_000)), draw(st.floats(0.5, 5) | st.floats(0.5, 5_000))
    zero = draw(st.booleans()) and lower <= 0 <= lower + length
    precision = draw(st.sampled_from([None, 1, 2, 3]))
    return {"type": "real", "bounds": [lower, lower + length], "zero_inflated": zero, "precision": precision}


@st.composite
def dates(draw: st.DrawFn) -> dict[str, Any]:
    first = DAY + dt.timedelta(days=draw(st.integers(0, 30_000)))
    last = first + dt.timedelta(days=draw(st.integers(1, 20) | st.integers(1, 40_000)))
    return {"type": "date", "bounds": [first.isoformat(), last.isoformat()]}


@st.composite
def datetimes(draw: st.DrawFn) -> dict[str, Any]:
    step = draw(st.sampled_from([1, 60, 900, 3600, 25_200, 86_400]))
    first = dt.datetime(1950, 1, 1) + dt.timedelta(seconds=draw(st.integers(0, 10**9)))
    last = first + dt.timedelta(seconds=step * draw(st.integers(2, 20) | st.integers(2, 10_000)))
    bounds = [first.isoformat(), last.isoformat()]
    return {"type": "datetime", "bounds": bounds, "step": step, "timezone": draw(zones)}


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    kept = list({label(value): value for value in draw(values) if label(value) != "?"}.values())
    assume(kept and len(set(kept)) == len(kept) and "" not in map(label, kept))
    column = {"type": draw(st.sampled_from(["category", "ordinal"])), "values": kept}
    return column | ({"other": "Other"} if draw(st.booleans()) else {})


numbers = integers() | reals() | dates() | datetimes()
discrete = lists() | st.just({"type": "boolean"})


def with_missing(columns: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda column, allowed: {**column, "missing": allowed}, columns, missing)


def schema_of(*columns: dict[str, Any], constraints: tuple[Any, ...] = ()) -> ResolvedSchema:
    named = {f"c{place}": column for place, column in enumerate(columns)}
    plain = {"doublure": 1, "kind": "table", "units": 10, "columns": named, "constraints": constraints}
    return ResolvedSchema.from_plain(plain)


def raw_cells(column: Column, shares: list[float], holes: bool) -> pd.Series:
    """Cells spread over a column's domain and, where the schema has a rule for that, beyond it."""
    if column.listed:
        domain = [*column.domain, *(["beyond"] if column.fallback is not None else [])]
        cells: list[Any] = [domain[int(share * len(domain)) % len(domain)] for share in shares]
    else:
        lower, upper = column.known_grid
        places = [lower + (1.4 * share - 0.2) * (upper - lower) for share in shares]
        places += [lower, upper] + ([0.0] if getattr(column, "zero_inflated", False) else [])
        cells = [_cell(column, place) for place in places]
    return pd.Series([*cells, None] if holes and column.may_be_missing else cells, dtype=object)


def _cell(column: Column, place: float) -> Any:
    if column.type == "integer":
        return round(place)
    if column.type == "real":
        return place
    if column.type == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=round(place))
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=round(place))


def assert_own_type(decoded: pd.Series, column: Column) -> None:
    """The schema's own dtype, and every value inside the domain, the bounds and the grid."""
    dtype = decoded.dtype
    if not column.may_be_missing:
        assert not decoded.isna().any()
    if column.type == "boolean":
        assert str(dtype) == ("boolean" if column.may_be_missing else "bool")
    elif column.listed:
        assert [label(value) for value in dtype.categories] == [label(value) for value in column.domain]
        assert dtype.ordered is (column.type == "ordinal")
        kinds = {str if isinstance(v, str) else bool if isinstance(v, bool) else float for v in column.domain}
        if len(kinds) == 1:
            assert dtype.categories.tolist() == list(column.domain)
    elif column.type == "integer":
        assert str(dtype) == ("Int64" if column.may_be_missing else "int64")
        assert decoded.dropna().between(*column.bounds).all()
    elif column.type == "real":
        assert str(dtype) == "float64"
        assert decoded.dropna().between(column.bounds[0] - 1e-9, column.bounds[1] + 1e-9).all()
        if column.precision is not None:
            assert (decoded.dropna().round(column.precision) == decoded.dropna()).all()
        assert not np.signbit(decoded[decoded == 0]).any()
    else:
        zone = getattr(column, "timezone", None)
        assert str(dtype) == ("datetime64[s]" if zone is None else f"datetime64[s, {zone}]")
        local = decoded.dropna() if zone is None else decoded.dropna().dt.tz_localize(None)
        assert local.between(pd.Timestamp(column.bounds[0]), pd.Timestamp(column.bounds[1])).all()
        assert (local.astype(np.int64) % int(getattr(column, "step", 86_400)) == 0).all()


shares = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@examples(250)
@given(with_missing(numbers | discrete), shares, st.booleans(), st.integers(2, 40), st.integers(0, 9))
def test_bins(plain: dict[str, Any], spread: list[float], holes: bool, bins: int, seed: int) -> None:
    schema = schema_of(plain)
    column = schema.columns["c0"]
    frame = pd.DataFrame({"c0": canonical(raw_cells(column, spread, holes), column, "c0")})
    encoder = TableEncoder(schema, bins=bins)
    compact = encoder.compact(frame)
    for rng in (None, np.random.default_rng(seed)):
        decoded = encoder.decode(encoder.rows(compact), rng)
        assert_own_type(decoded["c0"], column)
        again = pd.DataFrame({"c0": canonical(decoded["c0"], column, "c0")})
        assert np.array_equal(encoder.compact(again), compact)
        assert torch.equal(encoder.encode(again), encoder.rows(compact))
        if column.listed or values_of(column) <= bins:
            assert_same_cells(again["c0"], frame["c0"], column)


def assert_same_cells(decoded: pd.Series, original: pd.Series, column: Column) -> None:
    """Exactly the same cells, those outside the bounds moved to the nearest one."""
    if column.listed:
        assert decoded.tolist() == original.tolist() or (decoded.isna() == original.isna()).all()
        assert decoded.dropna().astype(str).tolist() == original.dropna().astype(str).tolist()
        return
    np.testing.assert_allclose(as_number(decoded, column), clipped(original, column), rtol=0, atol=1e-9)


def as_number(cells: pd.Series, column: Column) -> np.ndarray:
    if cells.dtype.kind != "M":
        return cells.to_numpy(np.float64)
    moments = cells.to_numpy().astype("datetime64[D]" if column.type == "date" else "datetime64[s]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))


def clipped(cells: pd.Series, column: Column) -> np.ndarray:
    return column.snap(as_number(cells, column))


def values_of(column: Column) -> float:
    lower, upper = column.known_grid
    return (upper - lower) / column.unit + 1 if column.unit else np.inf


@examples(250)
@given(with_missing(numbers), shares, st.booleans())
def test_scaled(plain: dict[str, Any], spread: list[float], holes: bool) -> None:
    schema = schema_of(plain)
    column = schema.columns["c0"]
    lower, upper = column.known_grid
    frame = pd.DataFrame({"c0": canonical(raw_cells(column, spread, holes), column, "c0")})
    encoder = TableEncoder(schema, numerics="scaled")
    rows = encoder.encode(frame)
    decoded = encoder.decode(rows)
    assert_own_type(decoded["c0"], column)
    restored = as_number(canonical(decoded["c0"], column, "c0"), column)
    original = as_number(frame["c0"], column)
    inside = np.clip(original, lower, upper)
    rounding = 1e-7 * (upper - lower) + 1e-9  # float32 holds 24 bits of the span
    assert (np.isnan(restored) == np.isnan(original)).all()
    assert np.nanmax(np.abs(restored - inside), initial=0) <= column.unit / 2 + rounding
    assert ((column.snap(original) == 0) <= (restored == 0)).all() or not getattr(column, "zero_inflated", False)
    scalar = rows[:, -1] if encoder.blocks[-1].kind == "tanh" else torch.zeros(1)
    assert scalar.abs().max() <= 1


@examples(120)
@given(
    st.lists(with_missing(numbers | discrete), min_size=1, max_size=4),
    st.sampled_from(["bins", "scaled"]),
    st.integers(0, 99),
)
def test_any_soft_row_decodes_to_the_schema(
    soft_rows: Any, columns: list[dict[str, Any]], numerics: Any, seed: int
) -> None:
    """A generator's rows are probabilities and numbers between -1 and 1, near certain or not."""
    schema = schema_of(*columns)
    encoder = TableEncoder(schema, numerics=numerics, bins=8)
    decoded = encoder.decode(soft_rows(encoder, 30, seed, spread=4), np.random.default_rng(seed))
    assert list(decoded.columns) == list(schema.columns)
    for name, column in schema.columns.items():
        assert_own_type(decoded[name], column)
        canonical(decoded[name], column, name)  # what is made can be read


@pytest.mark.parametrize("numerics", ["bins", "scaled"])
def test_empty_tables(numerics: Any) -> None:
    schema = schema_of({"type": "integer", "bounds": [0, 99], "missing": True}, {"type": "boolean", "missing": False})
    encoder = TableEncoder(schema, numerics=numerics)
    rows = encoder.encode(pd.DataFrame({"c0": pd.Series(dtype="float64"), "c1": pd.Categorical([], ["false", "true"])}))
    assert rows.shape == (0, encoder.width)
    for rng in (None, np.random.default_rng(0)):
        assert [str(dtype) for dtype in encoder.decode(rows, rng).dtypes] == ["Int64", "bool"]


def test_zero_is_a_state_that_no_bin_repeats() -> None:
    for bounds in ([0, 5_000], [-5_000, 0], [-300, 300], [0, 3], [-7, 8], [-8, 7]):
        schema = schema_of({"type": "integer", "bounds": bounds, "zero_inflated": True, "missing": False})
        encoder = TableEncoder(schema, bins=8)
        zero = encoder.blocks[0].size - 1
        rows = torch.eye(encoder.width).repeat(200, 1)
        decoded = encoder.decode(rows, np.random.default_rng(0))
        assert torch.equal(encoder.encode(decoded), rows)
        numbers = decoded["c0"].to_numpy()
        assert (numbers[zero :: encoder.width] == 0).all()
        others = np.delete(numbers.reshape(200, -1), zero, axis=1)
        assert (others != 0).all()


def test_a_real_zero_state_too() -> None:
    for bounds in ([0, 9], [-1, 1], [-9, 0]):
        schema = schema_of({"type": "real", "bounds": bounds, "zero_inflated": True, "missing": False})
        encoder = TableEncoder(schema, bins=3)
        middle = encoder.decode(torch.eye(encoder.width))["c0"].to_numpy()
        assert (middle == 0).tolist() == [False, False, False, True]


def test_numbers_are_drawn_evenly_within_their_bin() -> None:
    schema = schema_of({"type": "integer", "bounds": [0, 99], "missing": False})
    encoder = TableEncoder(schema, bins=10)
    rows = torch.zeros(20_000, encoder.width)
    rows[:, 3] = 1
    drawn = encoder.decode(rows, np.random.default_rng(0))["c0"]
    assert drawn.min() == 30
    assert drawn.max() == 39
    assert np.abs(drawn.value_counts().to_numpy() - 2_000).max() < 5 * np.sqrt(2_000)


def test_values_of_mixed_kinds_become_text_that_parquet_holds() -> None:
    import pyarrow as pa

    schema = schema_of({"type": "category", "values": [2, "a", True], "other": "Other", "missing": True})
    decoded = TableEncoder(schema).decode(torch.eye(5))
    assert decoded["c0"].cat.categories.tolist() == ["2", "a", "true", "Other"]
    assert pa.Table.from_pandas(decoded).num_rows == 5


def test_a_cell_that_a_noisy_count_overlooked() -> None:
    """Bought missing: false may be wrong of a few records; they count as the first value, and nothing breaks."""
    schema = schema_of({"type": "integer", "bounds": [5, 9], "missing": False}, {"type": "boolean", "missing": False})
    frame = pd.DataFrame({"c0": [np.nan, 7.0], "c1": pd.Categorical([None, "true"], ["false", "true"])})
    decoded = TableEncoder(schema).decode(TableEncoder(schema).encode(frame))
    assert decoded["c0"].tolist() == [5, 7]
    assert decoded["c1"].tolist() == [False, True]
