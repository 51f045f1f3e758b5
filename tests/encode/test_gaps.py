"""The second of two numbers in order is coded as its gap above the first."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

import doublure as db
from doublure.data.tables.cells import canonical
from doublure.encode.columns import estimated_width
from doublure.encode.differences import Gap
from doublure.encode.table import TableEncoder
from doublure.errors import SchemaError
from doublure.schema import ResolvedSchema, Schema

torch.set_num_threads(1)

DAY = dt.date(1970, 1, 1)
MOMENT = dt.datetime(1970, 1, 1)


def schema_of(columns: dict[str, dict[str, Any]], *constraints: dict[str, list[str]]) -> ResolvedSchema:
    plain = {"doublure": 1, "kind": "table", "units": 10, "columns": columns, "constraints": list(constraints)}
    return ResolvedSchema.from_plain(plain)


def integers(missing: bool = False, **bounds: tuple[int, int]) -> dict[str, dict[str, Any]]:
    return {name: {"type": "integer", "bounds": list(ends), "missing": missing} for name, ends in bounds.items()}


def table(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(cells, dtype="float64") for name, cells in columns.items()})


def in_order(left: pd.Series, right: pd.Series) -> bool:
    return bool(((left <= right).fillna(False) | left.isna() | right.isna()).all())


def gap_of(encoder: TableEncoder, name: str) -> Gap:
    found = encoder._encodings[name]
    assert isinstance(found, Gap)
    return found


def chain(names: list[str], start: int | None) -> dict[str, Any]:
    return {"at_most": names} | ({} if start is None else {"measured_from": names[start]})


starts = st.none() | st.integers(0, 2)


# -- any pair, any chain -----------------------------------------------------------------------------------------------


@st.composite
def families(draw: st.DrawFn, size: int = 3) -> tuple[dict[str, dict[str, Any]], float]:
    """Columns of one type and grid, in order by their bounds, and the distance between values."""
    kind = draw(st.sampled_from(["integer", "real", "date", "datetime"]))
    same = draw(st.booleans())
    facts: dict[str, Any] = {"type": kind}
    unit = 1.0
    if kind == "real":
        precision = draw(st.sampled_from([None, 0, 1, 2]))
        facts["precision"], unit = precision, 0.0 if precision is None else 10.0**-precision
    if kind == "datetime":
        facts |= {"step": draw(st.sampled_from([1, 60, 900])), "timezone": draw(st.sampled_from([None, "UTC"]))}
        unit = float(facts["step"])
    columns = {}
    lower, length = draw(st.integers(-60, 60)), draw(st.integers(2, 12) | st.integers(2, 5_000))
    for name in "abcde"[:size]:
        if not same:  # bounds that cross, touch, or lie apart; each lower one is at most each later upper one
            lower, length = draw(st.integers(-60, 60)), 130 + draw(st.integers(0, 5_000))
        ends = (lower, lower + length)
        if kind == "real":
            facts["bounds"] = [end / 10 for end in ends] if unit == 0 else [end * unit for end in ends]
        elif kind == "integer":
            facts["bounds"] = list(ends)
        elif kind == "date":
            facts["bounds"] = [(DAY + dt.timedelta(days=end)).isoformat() for end in ends]
        else:
            facts["bounds"] = [(MOMENT + dt.timedelta(seconds=end * unit)).isoformat() for end in ends]
        missing = draw(st.sampled_from([False, False, True]))
        columns[name] = {**facts, "missing": missing, "bounds": facts["bounds"]}
    return columns, unit


def cells_of(numbers: list[float], column: Any) -> pd.Series:
    """Numbers as the loader would give them."""
    return canonical(column.cells_of(np.array(numbers, dtype=np.float64)), column, "x")


def numbers_of(cells: pd.Series, column: Any) -> np.ndarray:
    return column.numbers_of(canonical(cells, column, "x"))


def assert_own(decoded: pd.Series, column: Any) -> None:
    """On the schema's own grid, within its bounds, missing only where that may be."""
    numbers = numbers_of(decoded, column)
    assert column.may_be_missing or not np.isnan(numbers).any()
    present = numbers[~np.isnan(numbers)]
    np.testing.assert_allclose(column.snap(present), present, rtol=0, atol=1e-9 * max(1.0, abs(column.known_grid[1])))
    wanted = {"integer": "Int64" if column.may_be_missing else "int64", "real": "float64"}
    zone = getattr(column, "timezone", None)
    moment = "datetime64[s]" if zone is None else f"datetime64[s, {zone}]"
    assert str(decoded.dtype) == wanted.get(column.type, moment)


rows_of = st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=12)


def real_frame(schema: ResolvedSchema, shares: list[list[float]]) -> dict[str, np.ndarray]:
    """Rows that keep a chain: each number lies between the one before it (or its lower bound) and its upper bound."""
    found: dict[str, np.ndarray] = {}
    reached = np.full(len(shares), -np.inf)
    names = list(schema.columns)
    for place, name in enumerate(names):
        column = schema.columns[name]
        top = min(schema.columns[later].known_grid[1] for later in names[place:])
        low = np.clip(np.maximum(reached, column.known_grid[0]), None, top)
        share = np.array([row[place] for row in shares])
        numbers = np.minimum(column.snap(low + np.where(share < 0.3, 0, share) * (top - low)), top)
        numbers = np.where(numbers < low, low, numbers)
        hole = (share > 0.8) & column.may_be_missing
        reached = np.where(hole, reached, numbers)
        found[name] = np.where(hole, np.nan, numbers)
    return found


@examples(250)
@given(families(), rows_of, st.integers(2, 40), st.sampled_from(["bins", "scaled"]), st.integers(0, 9), starts)
def test_rows_come_back_within_a_bin(
    family: Any, shares: Any, bins: int, numerics: Any, seed: int, start: int | None
) -> None:
    columns, unit = family
    schema = schema_of(columns, chain(list(columns), start))
    real = real_frame(schema, shares)
    frame = pd.DataFrame({name: cells_of(list(real[name]), column) for name, column in schema.columns.items()})
    real = {name: numbers_of(frame[name], column) for name, column in schema.columns.items()}
    encoder = TableEncoder(schema, numerics=numerics, bins=bins)
    rows = encoder.encode(frame)
    for rng in (None, np.random.default_rng(seed)):
        decoded = encoder.decode(rows, rng)
        allowed = np.zeros(len(frame))
        for name in schema.columns:
            own = encoder._encodings[name]
            scale = own.steps if isinstance(own, Gap) else own
            lower, upper = scale.column.known_grid
            span = upper - lower
            if numerics == "scaled":
                allowed += max(scale.column.unit / 2, 0) + 2e-7 * span + 1e-9
            else:  # its own bin, and the bins of what it is measured from
                codes = encoder.compact(frame)[:, list(schema.columns).index(name)].astype(int)
                last = len(scale.edges) - 2
                allowed += np.where(codes > last, 0, np.diff(scale.edges)[np.clip(codes, 0, last)])
                allowed += 1e-9 - (unit if unit else 0) * (codes <= last)
        for name, column in schema.columns.items():
            got = numbers_of(decoded[name], column)
            assert (np.isnan(got) == np.isnan(real[name])).all()
            assert_own(decoded[name], column)
            away = np.abs(got - real[name])
            assert (np.isnan(away) | (away <= allowed + 1e-6 * unit)).all()
        for left, right in pairwise(columns):
            assert in_order(decoded[left], decoded[right])


@examples(250)
@given(families(size=4), st.sampled_from(["bins", "scaled"]), st.integers(0, 99), st.permutations("abcd"), starts)
def test_any_soft_row_keeps_the_order(
    soft_rows: Any, family: Any, numerics: Any, seed: int, order: list[str], start: int | None
) -> None:
    """Whatever a generator makes, and wherever in the schema the columns stand."""
    columns, _ = family
    columns = {name: columns[name] for name in order}
    schema = schema_of(columns, chain(sorted(columns), start))
    encoder = TableEncoder(schema, numerics=numerics, bins=8)
    decoded = encoder.decode(soft_rows(encoder, 60, seed), np.random.default_rng(seed))
    assert list(decoded.columns) == order
    for place, left in enumerate("abcd"):
        for right in "abcd"[place + 1 :]:
            assert in_order(decoded[left], decoded[right])
    for name, column in schema.columns.items():
        assert_own(decoded[name], column)
    assert encoder.width == estimated_width(schema, numerics, 8)


@examples(80)
@given(families(), rows_of, st.sampled_from(["bins", "scaled"]), starts)
def test_a_row_is_coded_by_itself(family: Any, shares: Any, numerics: Any, start: int | None) -> None:
    columns, _ = family
    schema = schema_of(columns, chain(list(columns), start))
    real = {name: np.array([row[place] for row in shares]) for place, name in enumerate(columns)}  # in no order at all
    frame = pd.DataFrame()
    for name, column in schema.columns.items():
        lower, upper = column.known_grid
        frame[name] = cells_of(list(column.snap(lower + real[name] * (upper - lower))), column)
    encoder = TableEncoder(schema, numerics=numerics, bins=8)
    alone = [encoder.compact(frame.iloc[place : place + 1].reset_index(drop=True)) for place in range(len(frame))]
    assert np.array_equal(np.concatenate(alone), encoder.compact(frame))
    assert torch.isfinite(encoder.encode(frame)).all()


def test_a_chain_is_measured_from_the_column_that_it_names() -> None:
    columns = integers(True, a=(0, 50), b=(0, 60), c=(10, 90), d=(0, 90))
    schema = schema_of(columns, {"at_most": ["a", "b", "c", "d"], "measured_from": "c"})
    encoder = TableEncoder(schema, numerics="steps")
    assert {name: gap_of(encoder, name).first for name in "abd"} == {"a": "b", "b": "c", "d": "c"}
    rows = table(a=[5, 5, 5, 5], b=[7, np.nan, 7, np.nan], c=[20, 20, np.nan, np.nan], d=[30, 30, np.nan, np.nan])
    coded = encoder.compact(rows)
    assert coded[:, 0].tolist() == [2, 15, 2, 55]  # below b, else c, else the upper bound of b
    assert coded[:3:2, 1].tolist() == [13, 83]
    assert coded[:2, 2:].tolist() == [[20, 10], [20, 10]]
    plain = schema.to_plain()["constraints"]
    assert plain == [{"at_most": ["a", "b", "c", "d"], "measured_from": "c"}]
    with pytest.raises(SchemaError, match="measured_from names e"):
        schema_of(columns, {"at_most": ["a", "b"], "measured_from": "e"})


# -- what is measured, and from what -----------------------------------------------------------------------------------


def test_days_over_three_years_have_bins_of_equal_ratio_and_a_zero() -> None:
    dates = {"type": "date", "bounds": ["2021-01-01", "2023-12-31"], "missing": False}
    encoder = TableEncoder(schema_of({"a": dates, "b": dates}, {"at_most": ["a", "b"]}), bins=64)
    steps = gap_of(encoder, "b").steps
    assert steps.zero
    assert steps.column.known_grid == (0, 1094)
    widths = np.diff(steps.edges)
    assert widths[0] == 1
    assert widths[-1] > 50
    assert [block.states for block in encoder.blocks] == [0, 1]
    stays = np.array([0, 1, 2, 5, 300, 1094])
    first = np.datetime64("2021-01-01")
    frame = pd.DataFrame({"a": np.repeat(first, 6), "b": first + stays}).astype("datetime64[s]")
    assert encoder.compact(frame)[0, 1] == encoder.blocks[1].size - 1
    assert len(np.unique(encoder.compact(frame)[:, 1])) == 6


def test_gaps_lie_where_the_bounds_allow() -> None:
    cases = {
        ((0, 10), (0, 10)): (0, 10),
        ((0, 10), (15, 30)): (5, 30),
        ((5, 10), (0, 8)): (0, 3),
    }
    for (first, second), ends in cases.items():
        encoder = TableEncoder(schema_of(integers(a=first, b=second), {"at_most": ["a", "b"]}))
        found = gap_of(encoder, "b").steps.column.known_grid
        assert found == ends
        assert gap_of(encoder, "b").steps.zero == (ends[0] == 0)


def test_where_the_first_is_missing_its_lower_bound_stands_in() -> None:
    schema = schema_of(integers(True, a=(3, 20), b=(0, 30)), {"at_most": ["a", "b"]})
    encoder = TableEncoder(schema, bins=64)
    frame = table(a=[np.nan, np.nan, 7, 7, np.nan], b=[0, 30, 7, np.nan, np.nan])
    assert gap_of(encoder, "b").floor == 0  # the second's own, which is lower
    compact = encoder.compact(frame)
    missing, zero = encoder.blocks[1].size - 1, encoder.blocks[1].size - 2
    assert compact[:, 1].tolist() == [zero, 29, zero, missing, missing]
    decoded = encoder.decode(encoder.rows(compact), np.random.default_rng(0))
    pd.testing.assert_frame_equal(decoded, frame.astype("Int64"))


def test_a_chain_passes_a_hole() -> None:
    """Where the middle of a chain is missing, the last is measured from the first."""
    columns = integers(a=(0, 90), c=(0, 90)) | integers(True, b=(0, 90))
    encoder = TableEncoder(schema_of(columns, {"at_most": ["a", "b", "c"]}), bins=200)
    frame = table(a=[60, 60, 10], b=[np.nan, 70, np.nan], c=[65, 75, 10])
    blocks = [block.column for block in encoder.blocks]
    codes = encoder.compact(frame)[:, blocks.index("c")]
    assert codes[0] == codes[1] == 4  # five more, counted from one
    decoded = encoder.decode(encoder.encode(frame))
    assert decoded[["a", "c"]].to_numpy().tolist() == frame[["a", "c"]].to_numpy().tolist()
    columns = integers(a=(0, 10), c=(20, 60)) | integers(True, b=(20, 40))
    apart = TableEncoder(schema_of(columns, {"at_most": ["a", "b", "c"]}), bins=200)
    frame = table(a=[0, 10], b=[np.nan, 40], c=[60, 40])  # the longest and the shortest way
    decoded = apart.decode(apart.encode(frame))
    assert decoded["c"].tolist() == [60, 40]


def test_a_record_that_breaks_the_constraint_has_the_lowest_gap() -> None:
    encoder = TableEncoder(schema_of(integers(a=(0, 50), b=(0, 50), c=(0, 50)), {"at_most": ["a", "b", "c"]}), bins=64)
    decoded = encoder.decode(encoder.encode(table(a=[30], b=[20], c=[40])))
    assert decoded.iloc[0].tolist() == [30, 30, 40]
    apart = TableEncoder(schema_of(integers(a=(0, 50), b=(55, 90)), {"at_most": ["a", "b"]}), bins=128)
    assert apart.decode(apart.encode(table(a=[50], b=[20]))).iloc[0].tolist() == [50, 55]


def test_gaps_lie_between_what_the_cells_count_as() -> None:
    encoder = TableEncoder(schema_of(integers(a=(0, 50), b=(0, 80)), {"at_most": ["a", "b"]}), bins=128)
    decoded = encoder.decode(encoder.encode(table(a=[70, -20, 30], b=[75, 10, 300])))  # beyond the bounds
    assert decoded.to_numpy().tolist() == [[50, 75], [0, 10], [30, 80]]


def test_a_missing_cell_that_a_noisy_count_overlooked() -> None:
    encoder = TableEncoder(schema_of(integers(a=(5, 9), b=(5, 19)), {"at_most": ["a", "b"]}), bins=64)
    decoded = encoder.decode(encoder.encode(table(a=[np.nan, 7], b=[11, np.nan])))
    assert decoded["a"].tolist() == [5, 7]
    assert decoded["b"].tolist() == [11, 7]


def test_second_to_several(soft_rows: Any) -> None:
    """It is measured from the one that stands highest, or else is named first; the others are kept all the same."""
    columns = integers(a=(0, 50), b=(0, 50), c=(0, 50))
    both = TableEncoder(schema_of(columns, {"at_most": ["a", "c"]}, {"at_most": ["b", "c"]}))
    assert gap_of(both, "c").first == "a"
    turned = TableEncoder(schema_of(columns, {"at_most": ["b", "c"]}, {"at_most": ["a", "c"]}))
    assert gap_of(turned, "c").first == "b"
    chain = TableEncoder(schema_of(columns, {"at_most": ["a", "c"]}, {"at_most": ["a", "b", "c"]}))
    assert gap_of(chain, "c").first == "b"
    decoded = both.decode(soft_rows(both, 300, 0), np.random.default_rng(0))
    assert in_order(decoded["a"], decoded["c"])
    assert in_order(decoded["b"], decoded["c"])


def test_a_source_of_equal_columns_may_be_a_gap(soft_rows: Any) -> None:
    columns = integers(a=(0, 50), b=(0, 50), c=(100, 150))
    encoder = TableEncoder(schema_of(columns, {"at_most": ["a", "b"]}, {"equal": ["b", "c"]}), bins=8)
    assert gap_of(encoder, "b").first == "a"
    decoded = encoder.decode(soft_rows(encoder, 100, 0), np.random.default_rng(0))
    assert (decoded["c"] - 100 == decoded["b"]).all()
    assert in_order(decoded["a"], decoded["b"])


def test_what_has_no_gap_is_coded_as_it_is(soft_rows: Any) -> None:
    real = {"type": "real", "missing": False}
    columns = {"a": real | {"bounds": [5, 9]}, "b": real | {"bounds": [1, 5]}}
    encoder = TableEncoder(schema_of(columns, {"at_most": ["a", "b"]}))  # both can only be 5
    assert not isinstance(encoder._encodings["b"], Gap)
    decoded = encoder.decode(soft_rows(encoder, 9, 0), np.random.default_rng(0))
    assert (decoded == 5).all(axis=None)
    free = TableEncoder(schema_of(integers(a=(0, 9), b=(0, 9))))
    assert not isinstance(free._encodings["b"], Gap)


def test_pairs_that_no_row_could_have_do_not_pile_up_at_a_bound() -> None:
    for unit in ({"type": "integer"}, {"type": "real"}):
        columns = {name: unit | {"bounds": [0, 99], "missing": False} for name in "ab"}
        encoder = TableEncoder(schema_of(columns, {"at_most": ["a", "b"]}), bins=100)
        rows = torch.ones(20_000, encoder.width)  # any first with any gap
        decoded = encoder.decode(rows, np.random.default_rng(0))
        assert in_order(decoded["a"], decoded["b"])
        assert (decoded["b"] > 98).mean() < 0.08  # half of the rows would have stood there
        assert (decoded["a"] == decoded["b"]).mean() < 0.08


def test_estimates_do_without_facts_that_are_to_be_learned() -> None:
    text = (
        "doublure: 1\nkind: table\nconstraints: [{at_most: [a, b]}]\n"
        "columns: {a: {type: integer, bounds: {learn: 1}}, b: {type: integer, bounds: [0, 999]}}"
    )
    assert 64 <= estimated_width(Schema.parse(text), "bins", 32) <= 70


# -- the whole way -----------------------------------------------------------------------------------------------------


def test_stays_in_a_hospital_keep_their_length(tmp_path: Any) -> None:
    """Days in hospital as ``statistics`` releases them: clamping used to make half of them zero."""
    draw, rows = np.random.default_rng(0), 3_000
    days = draw.integers(0, 900, rows)
    stays = np.where(draw.random(rows) < 0.08, 0, np.minimum(np.rint(14 * np.exp(draw.normal(0, 0.9, rows))), 190))
    admitted = np.datetime64("2021-01-01") + days
    real = pd.DataFrame(
        {
            "admitted": admitted.astype(str),
            "discharged": (admitted + stays.astype(int)).astype(str),
            "ward": np.where(stays > 20, "long", "short"),
        }
    )
    dates = "{type: date, bounds: [2021-01-01, 2023-12-31], missing: false}"
    schema = db.Schema.parse(
        f"doublure: 1\nkind: table\nunits: {rows}\ncolumns:\n  admitted: {dates}\n  discharged: {dates}\n"
        "  ward: {type: category, values: [long, short], missing: false}\n"
        "constraints: [{at_most: [admitted, discharged]}]\n"
    )
    plan = db.plan(schema, method="statistics", epsilon=10.0, delta=1e-5, components=32, fit_steps=300)
    ledger = db.Ledger.create(tmp_path / "l", dataset="stays", epsilon=10.0, delta=1e-4)
    made = db.fit(real, plan, ledger=ledger, seed=1).sample(rows, seed=2)
    stay = (made["discharged"] - made["admitted"]).dt.days
    assert stay.min() >= 0
    assert abs((stay == 0).mean() - (stays == 0).mean()) < 0.03
    assert abs(stay.median() - np.median(stays)) <= 3
    assert abs(stay.quantile(0.9) / np.quantile(stays, 0.9) - 1) < 0.25
    assert stay[made["ward"] == "long"].median() > 2 * stay[made["ward"] == "short"].median()


@pytest.mark.parametrize("holes", [False, True])
def test_ordinals_change_places(holes: bool, soft_rows: Any) -> None:
    """Sorting leaves as many of each value as there were, where moving one to the other would make them equal."""
    choice = {"type": "ordinal", "values": ["low", "mid", "top"], "missing": holes}
    columns = {"a": choice, "b": choice, "c": choice}
    loose = TableEncoder(schema_of(columns))
    encoder = TableEncoder(schema_of(columns, {"at_most": ["a", "b", "c"]}))
    rows = soft_rows(encoder, 300, 4)
    free, kept = (each.decode(rows, np.random.default_rng(1)) for each in (loose, encoder))
    before, after = (
        np.stack([frame[name].cat.codes for name in columns], axis=1).astype(int) for frame in (free, kept)
    )
    assert (np.sort(before, axis=1) == np.sort(after, axis=1)).all()
    assert ((before < 0) == (after < 0)).all()
    assert not all(in_order(free[left], free[right]) for left, right in pairwise("abc"))
    for left, right in (("a", "b"), ("b", "c"), ("a", "c")):
        assert in_order(kept[left], kept[right])
