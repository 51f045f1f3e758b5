"""Series -> codes of public bins and back: values come back within their bin, levels follow from values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from doublure.data.series import Series
from doublure.encode.series_codes import LEVELS, SeriesCodes
from doublure.errors import InputError, SettingError
from doublure.schema import ResolvedSchema

TEXT = """
doublure: 1
kind: series
units: 9
series: {length: 3, gaps: missing}
channels:
  plain: {type: real, bounds: [-2, 2], precision: 2, missing: false}
  often: {type: integer, bounds: [0, 50], zero_inflated: true, missing: true}
  wide: {type: real, bounds: [0, 8], missing: true}
attributes:
  place: {type: category, values: [a, b, 3], missing: false, shares: {a: 0.2, b: 0.8, 3: 0}}
  weekend: {type: boolean, missing: false}
"""
NAN = np.nan
VALUES = np.array(
    [
        [[-2.0, 0.0, 8.0], [0.0, 50.0, 0.001], [2.0, NAN, NAN]],
        [[1.23, 1.0, NAN], [1.24, 2.0, NAN], [-1.99, 3.0, NAN]],
    ]
)


def series(values=VALUES):
    attributes = pd.DataFrame(
        {
            "place": pd.Categorical((["3", "b"] * len(values))[: len(values)], categories=["a", "b", "3"]),
            "weekend": pd.Categorical((["true", "false"] * len(values))[: len(values)], categories=["false", "true"]),
        }
    )
    return Series(values=values, channels=("plain", "often", "wide"), attributes=attributes)


@pytest.fixture
def codes():
    return SeriesCodes(ResolvedSchema.parse(TEXT), bins=64, curve=1 / 3)


def test_values_come_back_within_their_bin(codes):
    made = codes.decode(codes.encode(series()))
    drawn = codes.decode(codes.encode(series()), np.random.default_rng(0))
    for found in (made, drawn):
        assert np.array_equal(np.isnan(found.values), np.isnan(VALUES))
        assert np.abs(found.values[:, :, 0] - VALUES[:, :, 0]).max() <= 4 / 64 + 0.01
        assert np.array_equal(found.values[:, :, 1], VALUES[:, :, 1], equal_nan=True)  # fewer whole numbers than bins
        assert np.array_equal(np.round(found.values[:, :, 0], 2), found.values[:, :, 0])
    assert np.array_equal(codes.encode(made), codes.encode(series()))
    assert made.attributes["place"].tolist() == ["3", "b"]
    assert [bool(value) for value in made.attributes["weekend"]] == [True, False]


def test_small_values_are_told_apart(codes):
    straight = SeriesCodes(ResolvedSchema.parse(TEXT), bins=64)
    values = np.tile(VALUES[:1], (2, 1, 1))
    values[:, :, 2] = [[0.001], [0.01]]
    assert codes.encode(series(values))[0, 6] != codes.encode(series(values))[1, 6]
    assert straight.encode(series(values))[0, 6] == straight.encode(series(values))[1, 6]


def test_a_level_is_the_mean_place_of_what_is_there(codes):
    levels = codes.compact(series())[:, 9:12]
    assert codes.compact(series()).shape == (2, 9 + 3 + 2)
    assert levels[0].tolist() == [LEVELS // 2, LEVELS // 2, int((1 + 0.05) / 2 * LEVELS)]  # (1 + (0.001 / 8)^(1/3)) / 2
    assert levels[1, 2] == 0  # no value at all
    top = codes.compact(series(np.full((1, 3, 3), [2.0, 50.0, 8.0])))[0, 9:12]
    assert top.tolist() == [LEVELS - 1] * 3


def test_rows_are_codes_and_blocks_of_attributes(codes):
    rows = codes.encode(series())
    body, condition = codes.split(rows)
    assert (body.shape, condition.shape, codes.width) == ((2, 3, 3), (2, 5), 14)
    assert condition.tolist() == [[0, 0, 1, 0, 1], [0, 1, 0, 1, 0]]
    assert codes.sizes == [64, 52, 65]
    assert codes.states == [0, 2, 1]
    drawn = codes.draw_conditions(500, np.random.default_rng(1))
    assert drawn[:, 1].mean() == pytest.approx(0.8, abs=0.06)
    assert codes.condition_codes({"weekend": True}) == {"weekend": 1}
    with pytest.raises(SettingError, match="plain"):
        codes.condition_codes({"plain": 1.0})


@pytest.mark.parametrize("wrong", [-1.0, 64.0, float("nan")])
def test_a_code_that_no_channel_has_is_refused(codes, wrong):
    rows = codes.encode(series())
    rows[0, 0] = wrong
    with pytest.raises(InputError, match="codes that no channel has"):
        codes.decode(rows)


def test_series_without_attributes():
    codes = SeriesCodes(ResolvedSchema.parse(TEXT.partition("attributes:")[0]))
    bare = Series(values=VALUES, channels=("plain", "often", "wide"), attributes=pd.DataFrame(index=range(2)))
    body, condition = codes.split(codes.encode(bare))
    assert (condition, body.shape, codes.width) == (None, (2, 3, 3), 9)
    assert len(codes.decode(torch.zeros(4, 9))) == 4
