"""Every decoded row keeps the schema's constraints, whatever a generator makes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.data.tables.opening import open_table
from doublure.data.tables.rules import keep
from doublure.encode.table import TableEncoder
from doublure.errors import SchemaError
from doublure.schema import ResolvedSchema

torch.set_num_threads(1)


def schema_of(columns: str, constraints: str) -> ResolvedSchema:
    return ResolvedSchema.parse(
        f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{{columns}}}\nconstraints: [{constraints}]"
    )


def fits(left: pd.Series, right: pd.Series) -> np.ndarray:
    """Whether each row is in order; one with a hole is."""
    return (left <= right).fillna(False).to_numpy(dtype=bool) | (left.isna() | right.isna()).to_numpy()


def in_order(left: pd.Series, right: pd.Series) -> bool:
    return bool(fits(left, right).all())


KINDS = {
    "integer": (
        "type: integer, bounds: [-50, 40]",
        "type: integer, bounds: [0, 90]",
        "type: integer, bounds: [-9, 60]",
    ),
    "real": tuple(f"type: real, bounds: {bounds}" for bounds in ("[-1.5, 1]", "[0, 2]", "[-1, 1.5]")),
    "decimals": tuple(f"type: real, precision: 1, bounds: {bounds}" for bounds in ("[-1.5, 1]", "[0, 2]", "[-1, 1.5]")),
    "sparse": tuple(f"type: integer, zero_inflated: true, bounds: {b}" for b in ("[-50, 40]", "[0, 90]", "[-9, 6000]")),
    "date": tuple(
        f"type: date, bounds: [{b}]"
        for b in ("2020-01-01, 2022-01-01", "2021-01-01, 2023-01-01", "1990-01-01, 2030-01-01")
    ),
    "moment": tuple(
        f"type: datetime, step: 900, bounds: [{b}]"
        for b in ("2020-01-01, 2020-06-01", "2020-03-01, 2020-09-01", "2019-01-01, 2021-01-01")
    ),
    "zone": tuple(
        f"type: datetime, timezone: America/New_York, step: 900, bounds: [{b}]"
        for b in ("2020-10-31, 2020-11-02", "2020-11-01T00:30:00, 2020-11-01T03:00:00", "2020-10-31, 2020-11-03")
    ),
    "ordinal": ("type: ordinal, values: [a, b, c, d]",) * 3,
}


@pytest.mark.parametrize("numerics", ["bins", "scaled"])
@pytest.mark.parametrize(
    "missing", [(False, False, False), (True, True, True), (False, True, False), (True, False, True)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_chains_are_kept(kind: str, missing: tuple[bool, ...], numerics: Any, soft_rows: Any) -> None:
    columns = ", ".join(
        f"{name}: {{{column}, missing: {str(hole).lower()}}}"
        for name, column, hole in zip("abc", KINDS[kind], missing, strict=True)
    )
    schema = schema_of(columns, "{at_most: [a, b, c]}")
    free = TableEncoder(schema_of(columns, ""), numerics=numerics, bins=8)
    loose = free.decode(soft_rows(free, 400, 1), np.random.default_rng(2))
    decoded = keep(loose, schema)
    assert not all(in_order(loose[left], loose[right]) for left, right in pairwise("abc"))
    for left, right in (("a", "b"), ("b", "c"), ("a", "c")):
        assert in_order(decoded[left], decoded[right])
    for name in "abc":
        assert decoded[name].dtype == loose[name].dtype
        assert (decoded[name].isna() == loose[name].isna()).all()
        assert_within(decoded[name], schema.columns[name])
    good = fits(loose["a"], loose["b"]) & fits(loose["b"], loose["c"]) & fits(loose["a"], loose["c"])
    assert good.any()
    pd.testing.assert_frame_equal(decoded[good], loose[good])  # rows that keep it are left alone
    encoder = TableEncoder(schema, numerics=numerics, bins=8)
    made = encoder.decode(soft_rows(encoder, 400, 1), np.random.default_rng(2))
    for name, hole in zip("abc", missing, strict=True):
        assert made[name].dtype == loose[name].dtype
        assert made[name].isna().any() == hole
        assert_within(made[name], schema.columns[name])
    for left, right in (("a", "b"), ("b", "c"), ("a", "c")):
        assert in_order(made[left], made[right])


def assert_within(cells: pd.Series, column: Any) -> None:
    if column.listed:
        return
    present = cells.dropna()
    if isinstance(present.dtype, pd.DatetimeTZDtype):
        present = present.dt.tz_localize(None)
    bounds = [pd.Timestamp(end) for end in column.bounds] if present.dtype.kind == "M" else column.bounds
    assert present.between(*bounds).all()


bounds = st.tuples(st.integers(-30, 30), st.integers(1, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@examples(120)
@given(
    st.lists(st.tuples(bounds, st.booleans()), min_size=5, max_size=5),
    st.lists(
        st.lists(st.sampled_from("abcde"), min_size=2, max_size=4, unique=True).map(sorted), min_size=1, max_size=4
    ),
    st.integers(0, 99),
)
def test_any_web_of_chains_is_kept(soft_rows: Any, columns: list[Any], chains: list[list[str]], seed: int) -> None:
    text = ", ".join(
        f"{name}: {{type: integer, bounds: {list(pair)}, missing: {str(hole).lower()}}}"
        for name, (pair, hole) in zip("abcde", columns, strict=True)
    )
    try:
        schema = schema_of(text, ", ".join(f"{{at_most: {chain}}}" for chain in chains))
    except SchemaError as error:  # bounds that no row could keep are refused beforehand
        if "no value of" not in str(error):
            raise
        return
    encoder = TableEncoder(schema, bins=6)
    decoded = encoder.decode(soft_rows(encoder, 60, seed), np.random.default_rng(seed))
    for chain in chains:
        for left, right in pairwise(chain):
            assert in_order(decoded[left], decoded[right])
    for name, column in schema.columns.items():
        assert decoded[name].dropna().between(*column.bounds).all()
        assert str(decoded[name].dtype) == ("Int64" if column.may_be_missing else "int64")


EQUAL = {
    "ordinal to integer": ("type: ordinal, values: [low, mid, top]", "type: integer, bounds: [1, 3]"),
    "integer to ordinal": ("type: integer, bounds: [7, 9]", "type: ordinal, values: [low, mid, top]"),
    "category to category": ("type: category, values: [x, y], other: z", "type: category, values: [1, 2, 3]"),
    "boolean to category": ("type: boolean", "type: category, values: ['no', 'yes']"),
    "category to boolean": ("type: category, values: ['no', 'yes']", "type: boolean"),
    "integer to boolean": ("type: integer, bounds: [0, 1]", "type: boolean"),
    "integer to integer": ("type: integer, bounds: [0, 9e8]", "type: integer, bounds: [-5, 899999995]"),
    "real": ("type: real, bounds: [0, 1], precision: 2", "type: real, bounds: [0, 1], precision: 2"),
    "date": ("type: date, bounds: [2020-01-01, 2021-01-01]", "type: date, bounds: [2020-01-01, 2021-01-01]"),
    "zone": ("type: datetime, timezone: Europe/Paris, bounds: [2020-03-28, 2020-03-30]",) * 2,
}


@pytest.mark.parametrize("missing", ["false", "true"])
@pytest.mark.parametrize("kind", EQUAL)
def test_derived_columns_go_with_their_source(kind: str, missing: str, soft_rows: Any) -> None:
    source, derived = EQUAL[kind]
    schema = schema_of(f"b: {{{derived}, missing: {missing}}}, a: {{{source}, missing: {missing}}}", "{equal: [a, b]}")
    encoder = TableEncoder(schema, bins=8)
    assert encoder.columns == ["a"]
    decoded = encoder.decode(soft_rows(encoder, 200, 3), np.random.default_rng(3))
    assert list(decoded.columns) == ["b", "a"]
    ranks = [_rank(decoded[name], schema.columns[name]) for name in ("a", "b")]
    np.testing.assert_array_equal(*ranks)
    assert np.isnan(ranks[0]).any() == (missing == "true")
    assert len(np.unique(ranks[0])) > 1
    alone = TableEncoder(schema_of(f"b: {{{derived}, missing: {missing}}}", ""), bins=8)
    assert decoded["b"].dtype == alone.decode(soft_rows(alone, 2, 0))["b"].dtype


def _rank(cells: pd.Series, column: Any) -> np.ndarray:
    if column.type == "boolean":
        return cells.to_numpy(dtype=float, na_value=np.nan)
    if column.listed:
        return np.where(cells.cat.codes < 0, np.nan, cells.cat.codes)
    if isinstance(cells.dtype, pd.DatetimeTZDtype):
        cells = cells.dt.tz_convert("UTC").dt.tz_localize(None)
    if cells.dtype.kind == "M":
        moments = cells.to_numpy()
        return np.where(np.isnat(moments), np.nan, moments.astype("datetime64[s]").astype(np.int64))
    values = cells.to_numpy(dtype=float, na_value=np.nan)
    return values - (column.bounds[0] if column.type == "integer" else 0)


def test_one_source_for_several_and_a_chain_over_it(soft_rows: Any) -> None:
    columns = ", ".join(f"{name}: {{type: integer, bounds: [0, 9], missing: false}}" for name in "abcd")
    schema = schema_of(columns, "{equal: [a, b, c]}, {at_most: [d, a]}")
    encoder = TableEncoder(schema)
    decoded = encoder.decode(soft_rows(encoder, 100, 0), np.random.default_rng(0))
    assert encoder.columns == ["a", "d"]
    assert (decoded["a"] == decoded["b"]).all()
    assert (decoded["a"] == decoded["c"]).all()
    assert (decoded["d"] <= decoded["a"]).all()


def test_a_missing_cell_passes_on_what_is_asked() -> None:
    for top, kept in (9, [2, pd.NA, 7]), (8, [7, pd.NA, 7]):  # sorted where bounds are the same, or else moved
        text = f"a: {{type: integer, bounds: [0, {top}], missing: true}}, " + ", ".join(
            f"{name}: {{type: integer, bounds: [0, 9], missing: true}}" for name in "bc"
        )
        schema = schema_of(text, "{at_most: [a, b, c]}")
        frame = pd.DataFrame({"a": [7], "b": [None], "c": [2]}, dtype="Int64")
        assert keep(frame, schema).iloc[0].tolist() == kept


def test_clocks_that_change(soft_rows: Any) -> None:
    """No hole appears where none may be, and order survives the hour that stands twice and the one left out."""
    schema = schema_of(
        "a: {type: datetime, timezone: Europe/Paris, step: 900, bounds: [2020-03-28, 2020-10-26], missing: false}", ""
    )
    encoder = TableEncoder(schema, bins=1000)
    doubled = pd.date_range("2020-10-25T00:00", "2020-10-25T04:45", freq="15min").to_series()
    skipped = pd.date_range("2020-03-29T00:00", "2020-03-29T04:45", freq="15min").to_series()
    for local in (doubled, skipped):
        frame = pd.DataFrame({"a": local.astype("datetime64[s]").reset_index(drop=True)})
        exact = TableEncoder(
            schema_of(
                "a: {type: datetime, timezone: Europe/Paris, step: 900, "
                f"bounds: [{local.iloc[0].isoformat()}, {local.iloc[-1].isoformat()}], missing: false}}",
                "",
            )
        )
        decoded = exact.decode(exact.encode(frame))["a"]
        assert not decoded.isna().any()
        assert decoded.is_monotonic_increasing
    any_row = encoder.decode(soft_rows(encoder, 2_000, 0), np.random.default_rng(0))["a"]
    assert not any_row.isna().any()


def test_moments_that_exist_come_back_in_their_zone() -> None:
    schema = schema_of(
        "a: {type: datetime, timezone: Europe/Paris, step: 3600, bounds: [2020-10-24, 2020-10-26], missing: true}", ""
    )
    aware = pd.date_range("2020-10-24", "2020-10-25T23:00", freq="h", tz="Europe/Paris")
    source = open_table(pd.DataFrame({"a": aware.append(pd.DatetimeIndex([pd.NaT], tz="Europe/Paris"))}))
    encoder = TableEncoder(schema, bins=64)
    decoded = encoder.decode(encoder.encode(source.load(schema).frame))["a"]
    assert str(decoded.dtype) == "datetime64[s, Europe/Paris]"
    assert decoded.isna().tolist() == [False] * 49 + [True]
    summer_twice = aware.astype(str) == "2020-10-25 02:00:00+02:00"  # of an hour that stands twice, the second is meant
    assert (decoded.dropna().array == aware)[~summer_twice].all()
    assert str(decoded[int(np.flatnonzero(summer_twice)[0])]) == "2020-10-25 02:00:00+01:00"
