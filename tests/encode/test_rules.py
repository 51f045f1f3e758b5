"""Every decoded row keeps every declared rule, whatever a generator makes and however the rules are entangled."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tiers import examples

from doublure.encode.table import TableEncoder
from doublure.errors import SchemaError
from doublure.schema import ResolvedSchema
from doublure.schema.rules.rule_set import RuleSet
from doublure.support import yaml12

torch.set_num_threads(1)


def schema_of(columns: dict[str, Any], rules: list[dict[str, Any]]) -> ResolvedSchema:
    return ResolvedSchema.from_plain(
        {"doublure": 1, "kind": "table", "units": 9, "columns": columns, "constraints": rules}
    )


def decoded(schema: ResolvedSchema, rows: int, seed: int, soft_rows: Any, *, drawn: bool = True) -> pd.DataFrame:
    encoder = TableEncoder(schema, bins=8)
    return encoder.decode(soft_rows(encoder, rows, seed), np.random.default_rng(seed) if drawn else None)


# -- a second opinion: rules read from their YAML, row by row, without the code that keeps them --------------------


def cell_of(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return float(value) if isinstance(value, (int, float, np.number)) else value


def among(cell: Any, written: Any) -> bool:
    if written == "missing":
        return cell is None
    if isinstance(written, list) and len(written) == 2 and isinstance(cell, float):
        return written[0] <= cell <= written[1]
    if isinstance(written, list):
        return any(among(cell, one) for one in written)
    return cell is not None and cell == written


def keeps(row: dict[str, Any], rule: dict[str, Any]) -> bool:
    if "implies" in rule:
        when, then = rule["implies"]["when"], rule["implies"]["then"]
        fires = all(among(row[name], cells) for name, cells in when.items())
        return not fires or all(among(row[name], cells) for name, cells in then.items())
    if "determines" in rule:
        first, second = (row[name] for name in rule["determines"])
        wanted = rule["map"].get("" if first is None else str(first), "")
        return (second is None) if wanted == "" else str(second) == wanted
    if "sum" in rule:
        cells = [row[name] for name in (rule["sum"]["total"], *rule["sum"]["of"])]
        return None in cells or cells[0] == sum(cells[1:])
    if "combinations" in rule:
        own = ["" if row[name] is None else str(row[name]) for name in rule["combinations"]["columns"]]
        return own in rule["combinations"]["rows"]
    if "at_most" in rule:
        cells = [row[name] for name in rule["at_most"] if row[name] is not None]
        return all(low <= high for low, high in pairwise(cells))
    return len({row[name] for name in rule["equal"]}) == 1


def all_kept(frame: pd.DataFrame, rules: list[dict[str, Any]]) -> bool:
    rows = [dict(zip(frame, map(cell_of, row), strict=True)) for row in frame.astype(object).itertuples(index=False)]
    return all(keeps(row, rule) for row in rows for rule in rules)


# -- random schemas --------------------------------------------------------------------------------------------------

LETTERS = ["a", "b", "c", "d"]


@st.composite
def schemas(draw: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Five numbers and four categories, any of them missing or not, and two to five rules among them."""
    columns: dict[str, Any] = {}
    for name in ("n1", "n2", "n3", "n4", "n5"):
        low = draw(st.integers(-5, 5))
        bounds = [low, low + draw(st.integers(1, 30))]
        columns[name] = {"type": "integer", "bounds": bounds, "missing": draw(st.booleans())}
    for name in ("k1", "k2", "k3", "k4"):
        values = LETTERS[: draw(st.integers(2, 4))]
        columns[name] = {"type": "category", "values": values, "missing": draw(st.booleans())}

    def cells(name: str) -> Any:
        column = columns[name]
        forms = [st.just("missing")] if column["missing"] else []
        if column["type"] == "category":
            lists = st.lists(st.sampled_from(column["values"]), min_size=1, max_size=3, unique=True)
            return draw(st.one_of(st.sampled_from(column["values"]), lists, *forms))
        one = st.integers(*column["bounds"])
        return draw(st.one_of(one, st.lists(one, min_size=2, max_size=2).map(sorted), *forms))

    rules = []
    for _ in range(draw(st.integers(2, 5))):
        word = draw(st.sampled_from(["implies", "implies", "determines", "sum", "combinations", "at_most", "equal"]))
        if word == "implies":
            x, y = draw(st.lists(st.sampled_from(sorted(columns)), min_size=2, max_size=2, unique=True))
            rules.append({"implies": {"when": {x: cells(x)}, "then": {y: cells(y)}}})
        elif word == "determines":
            x, y = draw(st.lists(st.sampled_from(["k1", "k2", "k3", "k4"]), min_size=2, max_size=2, unique=True))
            target = st.sampled_from(columns[y]["values"] + ([""] if columns[y]["missing"] else []))
            keys = [*columns[x]["values"], *([""] if columns[x]["missing"] else [])]
            rules.append({"determines": [x, y], "map": {key: draw(target) for key in keys}})
        elif word == "sum":
            total, *parts = draw(st.permutations(["n1", "n2", "n3", "n4", "n5"]))[: draw(st.integers(3, 4))]
            rules.append({"sum": {"total": total, "of": parts}})
        elif word == "combinations":
            names = draw(st.permutations(["k1", "k2", "k3", "k4"]))[:2]
            tuples = [[a, b] for a in columns[names[0]]["values"] for b in columns[names[1]]["values"]]
            listed = draw(st.lists(st.sampled_from(tuples), min_size=1, max_size=5, unique_by=tuple))
            rules.append({"combinations": {"columns": names, "rows": listed}})
        elif word == "at_most":
            rules.append({"at_most": draw(st.permutations(["n1", "n2", "n3", "n4", "n5"]))[: draw(st.integers(2, 3))]})
        else:
            x, y = draw(st.permutations(["k1", "k2", "k3", "k4"]))[:2]
            columns[y] = dict(columns[x])
            rules.append({"equal": [x, y]})
    return columns, rules


@given(made=schemas(), seed=st.integers(0, 2**16), drawn=st.booleans())
@examples(120)
def test_every_row_keeps_every_rule(
    soft_rows: Any, made: tuple[dict[str, Any], list[dict[str, Any]]], seed: int, drawn: bool
) -> None:
    columns, rules = made
    try:
        schema = schema_of(columns, rules)
    except SchemaError:
        assume(False)
    assert all_kept(decoded(schema, 40, seed, soft_rows, drawn=drawn), rules)


@given(made=schemas(), seed=st.integers(0, 2**16))
@examples(60)
def test_a_row_that_is_mended_alone_becomes_what_it_becomes_among_others(
    made: tuple[dict[str, Any], list[dict[str, Any]]], seed: int
) -> None:
    """Rule 16: what a record counts as does not follow from any other record."""
    columns, rules = made
    try:
        schema = schema_of(columns, rules)
    except SchemaError:
        assume(False)
    table, rng = RuleSet(schema.constraints, schema.columns), np.random.default_rng(seed)
    numbers = {}
    for name in table.names:
        column = schema.columns[name]
        low, high = (0, len(column.domain) - 1) if column.listed else column.bounds
        numbers[name] = rng.integers(low, high + 1, 12).astype(float)
        if column.may_be_missing:
            numbers[name][rng.random(12) < 0.3] = np.nan
    together = {name: cells.copy() for name, cells in numbers.items()}
    table.fix(together, None)
    assert not table.broken(together).any()
    for row in range(12):
        alone = {name: cells[row : row + 1].copy() for name, cells in numbers.items()}
        table.fix(alone, None)
        for name in table.names:
            assert np.array_equal(alone[name], together[name][row : row + 1], equal_nan=True)


def test_contradictions_are_refused_when_the_schema_is_read() -> None:
    columns = {
        "x": {"type": "boolean", "missing": False},
        "n": {"type": "integer", "bounds": [0, 9], "missing": False},
    }
    both = [
        {"implies": {"when": {"x": value}, "then": {"n": cells}}}
        for value in (True, False)
        for cells in ([0, 3], [5, 9])
    ]
    with pytest.raises(SchemaError, match="no row was found that keeps all rules of n, x"):
        schema_of(columns, both)
    schema_of(columns, both[:3])  # true is then impossible, and false is not


# -- each rule by itself -------------------------------------------------------------------------------------------


def test_a_column_that_another_determines_is_not_modelled_and_follows(soft_rows: Any) -> None:
    columns = {
        "code": {"type": "category", "values": ["10", "11", "20", "21"], "missing": True},
        "group": {"type": "ordinal", "values": ["1", "2"], "missing": True},
        "density": {"type": "real", "bounds": [0, 9], "precision": 1, "missing": False},
    }
    rules = [
        {"determines": ["code", "group"], "map": {"10": "1", "11": "1", "20": "2", "21": ""}},
        {"determines": ["group", "density"], "map": {"1": "0.5", "2": "8.3", "": "1.1"}},
    ]
    schema = schema_of(columns, rules)
    assert schema.derived == {"group": "code", "density": "group"}
    assert schema.repeated == {}
    encoder = TableEncoder(schema)
    assert encoder.columns == ["code"]
    frame = decoded(schema, 300, 1, soft_rows)
    found = set(map(tuple, frame.astype(object).where(frame.notna(), None).to_numpy().tolist()))
    assert found == {("10", "1", 0.5), ("11", "1", 0.5), ("20", "2", 8.3), ("21", None, 1.1), (None, None, 1.1)}


def test_what_should_follow_is_drawn_from_rows_that_keep_the_rule(soft_rows: Any) -> None:
    """Not the nearest cell, which would pile up, but the model's own conditional; other rows stay as they are."""
    columns = {
        "x": {"type": "boolean", "missing": False},
        "y": {"type": "integer", "bounds": [0, 7], "missing": False},
    }
    rule = {"implies": {"when": {"x": True}, "then": {"y": [4, 7]}}}
    free, held = schema_of(columns, []), schema_of(columns, [rule])
    encoder, keeping = TableEncoder(free, bins=8), TableEncoder(held, bins=8)
    rows = soft_rows(encoder, 1, 3, spread=0.5).repeat(4000, 1)
    before = encoder.decode(rows, np.random.default_rng(5))
    after = keeping.decode(rows, np.random.default_rng(5))
    broke = before["x"] & (before["y"] < 4)
    assert 0 < broke.sum() < 4000
    assert (before[~broke] == after[~broke]).all(axis=None)
    assert (after.loc[broke, "x"]).all()
    sound = before[before["x"] & (before["y"] >= 4)]["y"].value_counts(normalize=True)
    drawn = after[broke]["y"].value_counts(normalize=True)
    assert (sound - drawn).abs().max() < 0.05


def test_a_total_follows_its_parts_and_only_as_far_as_its_bounds_go() -> None:
    columns = {name: {"type": "integer", "bounds": [0, 10], "missing": False} for name in ("a", "b")}
    columns["t"] = {"type": "integer", "bounds": [2, 15], "missing": True}
    schema = schema_of(columns, [{"sum": {"total": "t", "of": ["a", "b"]}}])
    table = RuleSet(schema.constraints, schema.columns)
    numbers = {"t": np.array([9.0, 9, 9, np.nan]), "a": np.array([3.0, 10, 0, 1]), "b": np.array([4.0, 9, 1, 1])}
    table.fix(numbers, None)
    assert numbers["t"].tolist()[:3] == [7, 15, 2]
    assert math.isnan(numbers["t"][3])
    assert numbers["a"].tolist() == [3, 10, 0, 1]
    assert numbers["b"].tolist() == [4, 5, 2, 1]


def test_a_combination_that_is_not_listed_becomes_the_one_that_agrees_most() -> None:
    columns = {name: {"type": "category", "values": ["u", "v", "w"], "missing": False} for name in "abc"}
    listed = [["u", "u", "u"], ["v", "v", "w"], ["w", "w", "w"]]
    schema = schema_of(columns, [{"combinations": {"columns": list("abc"), "rows": listed}}])
    table = RuleSet(schema.constraints, schema.columns)
    numbers = {"a": np.array([1.0, 0, 2]), "b": np.array([1.0, 0, 0]), "c": np.array([1.0, 0, 1])}
    assert table.broken(numbers).tolist() == [True, False, True]
    table.fix(numbers, None)
    assert [numbers[name][0] for name in "abc"] == [1, 1, 2]
    assert not table.broken(numbers).any()


def test_rules_survive_their_own_file(tmp_path: Any) -> None:
    columns = {
        "k": {"type": "category", "values": ["a", "b"], "missing": True},
        "d": {"type": "date", "bounds": ["2020-01-01", "2020-12-31"], "missing": False},
    }
    rules = [{"implies": {"when": {"k": ["a", "missing"]}, "then": {"d": ["2020-03-01", "2020-05-01"]}}}]
    schema = schema_of(columns, rules)
    schema.save(tmp_path / "s.yaml")
    again = ResolvedSchema.load(tmp_path / "s.yaml")
    assert again.sha256 == schema.sha256
    assert yaml12.parse(again.to_yaml(), "s")["constraints"] == rules


def test_rules_count_in_a_columns_own_step(soft_rows: Any) -> None:
    """Amounts in thousands have ten values between 0 and 9,000, and the fourth of them is 3,000."""
    columns = {
        "pay": {"type": "integer", "bounds": [0, 9000], "step": 1000, "missing": False},
        "grade": {"type": "integer", "bounds": [1, 10], "missing": False},
        "band": {"type": "category", "values": ["low", "high"], "missing": False},
        "job": {"type": "category", "values": ["cook", "chief"], "missing": False},
        "total": {"type": "real", "bounds": [0, 4], "step": 0.25, "missing": False},
        "left": {"type": "real", "bounds": [0, 2], "step": 0.25, "missing": False},
        "right": {"type": "real", "bounds": [0, 2], "step": 0.25, "missing": False},
    }
    bands = {str(pay): "low" if pay < 5000 else "high" for pay in range(0, 9001, 1000)}
    rules: list[dict[str, Any]] = [
        {"equal": ["pay", "grade"]},
        {"determines": ["pay", "band"], "map": bands},
        {"implies": {"when": {"job": "chief"}, "then": {"band": "high"}}},
        {"sum": {"total": "total", "of": ["left", "right"]}},
        {"implies": {"when": {"job": "cook"}, "then": {"left": [0.25, 1.5]}}},
    ]
    schema = schema_of(columns, rules)
    for drawn in (True, False):
        frame = decoded(schema, 400, 3, soft_rows, drawn=drawn)
        assert (frame["pay"] % 1000 == 0).all()
        assert (frame["grade"] == frame["pay"] // 1000 + 1).all()
        assert ((frame["band"] == "high") == (frame["pay"] >= 5000)).all()
        assert (frame["job"] == "chief").any()
        assert (frame[frame["job"] == "chief"]["pay"] >= 5000).all()
        assert (frame["total"] == frame["left"] + frame["right"]).all()
        assert frame[frame["job"] == "cook"]["left"].between(0.25, 1.5).all()
    del bands["9000"]
    with pytest.raises(SchemaError, match="lacks 1 of the first's 10 values"):
        schema_of(columns, [{"determines": ["pay", "band"], "map": bands}])
