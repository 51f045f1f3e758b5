"""Whole rows: their layout, the conditions, the ids, and the law of what is drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from doublure.encode.columns import estimated_width
from doublure.encode.table import TableEncoder
from doublure.errors import InputError, SettingError
from doublure.schema import ResolvedSchema, Schema

torch.set_num_threads(1)

SCHEMA = ResolvedSchema.parse(
    """
doublure: 1
kind: table
unit: {name: person, id: who, max_records: 2}
units: 10
columns:
  who: {type: id}
  sex: {type: category, values: [F, M], missing: false, roles: [condition]}
  age: {type: integer, bounds: [0, 99], missing: true}
  income: {type: ordinal, values: [low, mid, top], missing: false, roles: [target, condition],
           shares: {low: 0.7, mid: 0.2, top: 0.1}}
  stay: {type: id}
  gain: {type: integer, bounds: [0, 9999], zero_inflated: true, missing: false}
  class: {type: integer, bounds: [1, 3], missing: false}
  flag: {type: boolean, missing: false, roles: [condition]}
constraints: [{equal: [income, class]}]
"""
)
FRAME = pd.DataFrame(
    {
        "sex": pd.Categorical(["M", "F", "M"], ["F", "M"]),
        "age": [3.0, np.nan, 99.0],
        "income": pd.Categorical(["low", "top", "mid"], ["low", "mid", "top"]),
        "gain": [0.0, 12.0, 9999.0],
        "class": [1.0, 3.0, 2.0],
        "flag": pd.Categorical(["true", "false", "true"], ["false", "true"]),
    }
)


def test_blocks_lie_side_by_side_conditions_last() -> None:
    encoder = TableEncoder(SCHEMA, bins=10)
    assert encoder.columns == ["age", "gain", "sex", "income", "flag"]
    assert [block.size for block in encoder.blocks] == [11, 11, 2, 3, 2]
    starts = [block.start for block in encoder.blocks]
    assert starts == np.cumsum([0, 11, 11, 2, 3]).tolist()
    assert (encoder.width, encoder.condition_width) == (29, 7)
    assert [block.column for block in encoder.condition_blocks] == ["sex", "income", "flag"]
    assert [block.column for block in encoder.body_blocks] == ["age", "gain"]
    scaled = TableEncoder(SCHEMA, numerics="scaled")
    assert [(block.kind, block.size) for block in scaled.body_blocks] == [
        *(("softmax", 2), ("tanh", 1), ("softmax", 2), ("tanh", 1)),
    ]


def test_rows_are_one_hot_and_small_when_compact() -> None:
    encoder = TableEncoder(SCHEMA, bins=10)
    compact, rows = encoder.compact(FRAME), encoder.encode(FRAME)
    assert compact.shape == (3, 5)
    assert compact.dtype == np.float32
    assert rows.dtype == torch.float32
    assert rows.shape == (3, 29)
    for block in encoder.blocks:
        assert rows[:, block.place].sum(dim=1).tolist() == [1, 1, 1]
    assert rows[1, :11].argmax() == 10  # missing
    assert rows[0, 11:22].argmax() == 10  # zero
    body, conditions = encoder.split(rows)
    assert body.shape == (3, 22)
    assert conditions is not None
    assert conditions.tolist() == [[0, 1, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 0, 1]]
    assert encoder.rows(compact[:0]).shape == (0, 29)


def test_without_conditions_there_is_nothing_to_split() -> None:
    encoder = TableEncoder(
        ResolvedSchema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}")
    )
    rows = torch.eye(2)
    body, condition = encoder.split(rows)
    assert torch.equal(body, rows)
    assert condition is None
    assert encoder.condition_blocks == ()


def test_ids_are_numbered_anew_and_derived_columns_filled_in() -> None:
    encoder = TableEncoder(SCHEMA, bins=10)
    decoded = encoder.decode(encoder.encode(FRAME))
    assert list(decoded.columns) == list(SCHEMA.columns)
    assert decoded["who"].tolist() == decoded["stay"].tolist() == [1, 2, 3]
    assert decoded["who"].dtype == np.int64
    assert decoded["class"].tolist() == [1, 3, 2]


def test_conditions_follow_their_shares() -> None:
    encoder = TableEncoder(SCHEMA)
    n = 40_000
    conditions = encoder.draw_conditions(n, np.random.default_rng(1))
    assert conditions.shape == (n, 7)
    assert np.unique(conditions.sum(1)).tolist() == [3.0]
    expected = np.array([0.5, 0.5, 0.7, 0.2, 0.1, 0.5, 0.5])
    assert np.abs(conditions.sum(0) - n * expected).max() < 5 * np.sqrt(n / 4)


def test_conditions_can_be_fixed() -> None:
    encoder = TableEncoder(SCHEMA)
    fixed = encoder.condition_codes({"income": "top", "flag": True})
    assert fixed == {"income": 2, "flag": 1}
    conditions = encoder.draw_conditions(50, np.random.default_rng(1), fixed)
    assert conditions[:, 4].sum() == conditions[:, 6].sum() == 50
    assert 0 < conditions[:, 0].sum() < 50


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE"])
def test_truth_can_be_asked_for_in_every_spelling(value: object) -> None:
    assert TableEncoder(SCHEMA).condition_codes({"flag": value}) == {"flag": 1}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nobody": 1}, "not a column"),
        ({"sex": "X"}, "no such value"),
        ({"sex": None}, "no such value"),
        ({"age": 30}, "no list of values"),
        ({"who": 1}, "no list of values"),
    ],
)
def test_what_cannot_be_asked_for(given: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words) as caught:
        TableEncoder(SCHEMA).condition_codes(given)
    assert caught.value.field == f"given {next(iter(given))}"


def test_draws_follow_the_probabilities() -> None:
    encoder = TableEncoder(SCHEMA, bins=10)
    n = 40_000
    rows = torch.zeros(n, encoder.width)
    chances = {"sex": [0.25, 0.75], "income": [0.0, 1.0, 0.0], "flag": [1.0, 3.0]}  # unnormalised is fine too
    for block in encoder.blocks:
        rows[:, block.place] = torch.tensor(chances.get(block.column, [1.0] * block.size))
    decoded = encoder.decode(rows, np.random.default_rng(5))
    assert abs((decoded["sex"] == "M").sum() - 0.75 * n) < 5 * np.sqrt(n * 0.1875)
    assert abs(decoded["flag"].sum() - 0.75 * n) < 5 * np.sqrt(n * 0.1875)
    assert (decoded["income"] == "mid").all()
    assert abs(decoded["age"].isna().sum() - n / 11) < 5 * np.sqrt(n / 11)


@pytest.mark.parametrize("draw", [0.0, np.nextafter(1.0, 0.0)])
def test_what_has_no_chance_is_never_drawn(draw: float) -> None:
    class Extreme:
        def random(self, size: int) -> np.ndarray:
            return np.full(size, draw)

        def standard_normal(self, size: int) -> np.ndarray:
            return np.ones(size)

        def permutation(self, what: int | np.ndarray) -> np.ndarray:
            return np.arange(what) if isinstance(what, int) else what

    encoder = TableEncoder(SCHEMA, bins=10)
    for count in (1, 3, 1000):
        rows = torch.full((count, encoder.width), 0.1)
        for block in encoder.condition_blocks:
            rows[:, block.place] = torch.tensor([0.0, 0.3, 0.0][: block.size])
        decoded = encoder.decode(rows, Extreme())  # type: ignore[arg-type]
        assert (decoded[["sex", "income", "flag"]] == ["M", "mid", True]).all(axis=None)


def test_a_seed_repeats_and_no_seed_takes_the_likeliest() -> None:
    encoder = TableEncoder(SCHEMA, bins=10)
    rows = torch.rand(200, encoder.width, generator=torch.Generator().manual_seed(0))
    first, again, other = (encoder.decode(rows, np.random.default_rng(seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    pd.testing.assert_frame_equal(encoder.decode(rows), encoder.decode(rows))
    block = encoder.condition_blocks[0]
    likeliest = rows[:, block.place].argmax(dim=1)
    assert encoder.decode(rows)["sex"].cat.codes.tolist() == likeliest.tolist()


@pytest.mark.parametrize("numerics", ["bins", "scaled"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_rows_that_are_not_finite_are_refused(numerics: str, value: float) -> None:
    encoder = TableEncoder(SCHEMA, numerics=numerics)  # type: ignore[arg-type]
    for column in range(encoder.width):
        rows = torch.full((3, encoder.width), 0.5)
        rows[1, column] = value
        with pytest.raises(InputError, match="not finite"):
            encoder.decode(rows, np.random.default_rng(0))


def test_widths_can_be_estimated_before_anything_is_known() -> None:
    for numerics in ("bins", "scaled"):
        assert estimated_width(SCHEMA, numerics, 32) == TableEncoder(SCHEMA, numerics=numerics).width  # type: ignore[arg-type]
    vague = Schema.parse("doublure: 1\nkind: table\ncolumns: {a: {type: integer}, b: {type: category}, c: {type: id}}")
    assert estimated_width(vague, "bins", 32) > 32
