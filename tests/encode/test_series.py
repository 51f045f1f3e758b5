"""Series -> planes and back: every grid value comes back, masks tell what is missing, attributes steer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.data.series import Series
from doublure.encode.series import SeriesEncoder
from doublure.errors import InputError, SettingError
from doublure.schema import ResolvedSchema

TEXT = """
doublure: 1
kind: series
units: 9
series: {length: 4, gaps: missing}
channels:
  plain: {type: real, bounds: [-2, 2], precision: 2, missing: false}
  often: {type: integer, bounds: [0, 50], zero_inflated: true, missing: true}
  gappy: {type: real, bounds: [0, 10], precision: 1, missing: true}
attributes:
  place: {type: category, values: [a, b, 3], missing: false, shares: {a: 0.2, b: 0.8, 3: 0}}
  weekend: {type: boolean, missing: false}
"""
CHANNELS = ("plain", "often", "gappy")


@pytest.fixture
def encoder():
    return SeriesEncoder(ResolvedSchema.parse(TEXT), curve=0.5)


def attributes(n):
    places = pd.Categorical((["3", "a", "b", "a"] * n)[:n], categories=["a", "b", "3"])
    weekend = pd.Categorical((["true", "false"] * n)[:n], categories=["false", "true"])
    return pd.DataFrame({"place": places, "weekend": weekend})


def series(values):
    values = np.asarray(values, dtype=np.float64)
    return Series(values=values, channels=CHANNELS, attributes=attributes(len(values)))


NUMBERS = st.tuples(
    st.integers(-200, 200).map(lambda number: number / 100),
    st.one_of(st.just(np.nan), st.just(0.0), st.integers(0, 50).map(float)),
    st.one_of(st.just(np.nan), st.integers(0, 100).map(lambda number: number / 10)),
)


@examples(60)
@given(
    rows=st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=1, max_size=5),
    curve=st.sampled_from([1, 0.5, 1 / 3]),
)
def test_every_value_comes_back(rows, curve):
    """Values on the grid are exact, whatever the curve; gaps and zeros are states, and come back as they were."""
    encoder, given_ = SeriesEncoder(ResolvedSchema.parse(TEXT), curve=curve), series(rows)
    encoded = encoder.encode(given_)
    assert (encoded.shape, encoded.dtype) == ((len(rows), encoder.width), torch.float32)
    back = encoder.decode(encoded, np.random.default_rng(0))
    assert np.allclose(back.values, given_.values, rtol=0, atol=1e-9, equal_nan=True)
    assert back.attributes["place"].tolist() == given_.attributes["place"].tolist()
    assert [str(cell).lower() for cell in back.attributes["weekend"]] == given_.attributes["weekend"].tolist()


@examples(30)
@given(st.lists(st.floats(-5, 5, width=32), min_size=4, max_size=4))
def test_what_lies_outside_counts_as_the_nearest_bound(numbers):
    schema = ResolvedSchema.parse(TEXT.partition("  often")[0])
    encoder = SeriesEncoder(schema)
    values = np.array(numbers)[None, :, None]
    back = encoder.decode(
        encoder.encode(Series(values=values, channels=("plain",), attributes=pd.DataFrame(index=[0])))
    )
    assert np.allclose(back.values, np.round(np.clip(values, -2, 2), 2), atol=0.006)


def test_planes_stand_channel_by_channel_with_states_before_places(encoder):
    body, condition = encoder.split(
        encoder.encode(series([[[2.0, np.nan, 0.0], [-2, 0, 10], [0, 50, 2.5], [1, 7, np.nan]]]))
    )
    assert encoder.body_shape == (8, 4)
    assert (body.shape, condition.shape, encoder.condition_width) == ((1, 8, 4), (1, 5), 5)
    plain, often, gappy = body[0, :1], body[0, 1:5], body[0, 5:]
    assert plain.tolist() == [[1, -1, 0, 0.5]]
    assert often[:3].argmax(0).tolist() == [2, 1, 0, 0]  # value, zero, missing
    assert often[3].tolist() == pytest.approx([0, 0, 1, 2 * (7 / 50) ** 0.5 - 1])  # place 0 where there is no value
    assert gappy[:2].argmax(0).tolist() == [0, 0, 0, 1]
    assert gappy[2].tolist() == pytest.approx([-1, 1, 2 * 0.25**0.5 - 1, 0])
    assert condition.tolist() == [[0, 0, 1, 0, 1]]


def test_a_channel_that_may_be_negative_is_not_bent(encoder):
    straight = SeriesEncoder(encoder.schema, curve=1.0)
    rows = series([[[0.5, 3.0, 1.0]] * 4])
    assert torch.equal(encoder.encode(rows)[:, :4], straight.encode(rows)[:, :4])
    assert not torch.equal(encoder.encode(rows)[:, 4:], straight.encode(rows)[:, 4:])


def test_where_gaps_are_left_out_there_is_no_mask():
    text = TEXT.replace("gaps: missing", "gaps: drop").replace("missing: true", "missing: true")
    encoder = SeriesEncoder(ResolvedSchema.parse(text))
    assert encoder.body_shape == (5, 4)  # plain, often with its zero, gappy
    assert [planes.states for planes in encoder.planes] == [0, 2, 0]


def test_the_whole_set_is_held_compact(encoder):
    """A place a step, a state a step where there is a choice, a code an attribute: no one-hot."""
    compact = encoder.compact(series(np.zeros((6, 4, 3))))
    assert (compact.shape, compact.dtype) == ((6, 3 * 4 + 2 * 4 + 2), np.float32)


def test_states_are_drawn_as_often_as_they_should_be_and_together(encoder):
    rows = torch.zeros(4000, encoder.width)
    body = rows[:, :32].view(4000, 8, 4)
    body[:, 5], body[:, 6] = 0.7, 0.3  # gappy: three in ten steps are missing
    body[:, 1] = 1.0
    drawn = encoder.decode(rows, np.random.default_rng(1)).channel("gappy")
    missing = np.isnan(drawn)
    assert missing.mean() == pytest.approx(0.3, abs=0.03)
    assert set(missing.sum(axis=1)) == {0, 4}  # one draw for all steps
    assert not np.isnan(encoder.decode(rows).channel("gappy")).any()


def test_conditions_follow_the_shares_or_what_is_asked(encoder):
    drawn = encoder.draw_conditions(4000, np.random.default_rng(0)).mean(0)
    assert np.allclose(drawn, [0.2, 0.8, 0.0, 0.5, 0.5], atol=0.03)
    codes = encoder.condition_codes({"place": 3, "weekend": "yes"})
    fixed = encoder.draw_conditions(5, np.random.default_rng(0), codes)
    assert fixed.tolist() == [[0, 0, 1, 0, 1]] * 5
    for given_ in ({"place": "c"}, {"plain": 1}, {"size": 3}):
        with pytest.raises(SettingError) as caught:
            encoder.condition_codes(given_)
        assert caught.value.remedy


def test_what_is_not_finite_is_refused_and_what_is_beyond_is_bounded(encoder):
    rows = torch.zeros(2, encoder.width)
    assert len(encoder.decode(rows[:0])) == 0
    beyond = encoder.decode(torch.full((1, encoder.width), 3.0))
    assert np.nanmax(beyond.values[:, :, 0]) == 2.0
    rows[1, 5] = float("nan")
    with pytest.raises(InputError, match="not finite"):
        encoder.decode(rows)
