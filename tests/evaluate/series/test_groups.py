"""Channels within attributes' values: faults are named, small groups do not shout, and shared gaps show."""

from __future__ import annotations

import air
import numpy as np
import pandas as pd
import pytest

from doublure.data.series import Series
from doublure.measures.series import evaluate_series
from doublure.measures.series.groups import beyond_chance, group_statistics
from doublure.measures.series.statistics import share_of_shared, sorted_gaps
from doublure.measures.series.verdict import worst_channel
from doublure.schema import Schema

QUICK = {"classifiers": False, "nearest": False}


def schema():
    return Schema.parse(air.text(600))


def evaluated(synthetic, **changes):
    return evaluate_series(schema(), synthetic, air.days(600, 2), air.days(300, 3), **(QUICK | changes))


def by_key(found):
    return {score.key: score for score in found.scores}


@pytest.fixture(scope="module")
def good():
    return evaluated(air.days(600, 1))


@pytest.fixture(scope="module")
def flat():
    """Days without seasons, whose gaps fall by channel."""
    return evaluated(air.days(600, 1, seasonal=False, shared=0.0))


def test_channels_that_lose_their_seasons_are_named(good, flat):
    lost, kept = by_key(flat)["together_by_attribute"], by_key(good)["together_by_attribute"]
    assert lost.value > 0.15
    assert max(kept.value, kept.real, lost.real) < 0.05
    assert lost.baseline > 0.15  # steps that are drawn apart
    worst = max(flat.groups, key=lambda group: group.correlation_error)
    assert worst.words in ("winter", "summer")
    assert worst.pair == ("dust", "ozone")
    assert abs(worst.correlations[0]) > 0.4 > abs(worst.correlations[1])
    said = next(line for line in flat.verdict.lines if line.startswith("Channels go together worst at season = "))
    assert worst.words in said
    assert "that of dust and ozone is" in said


def test_levels_that_lose_their_seasons_are_named(good, flat):
    lost, kept = by_key(flat)["level_by_attribute"], by_key(good)["level_by_attribute"]
    assert lost.value > 1
    assert max(kept.value, kept.real) < 0.15
    worst = max(flat.groups, key=lambda group: group.level_error)
    assert (worst.words, worst.channel) == ("winter", "dust")
    assert worst.levels == pytest.approx((160, 100), rel=0.1)
    assert any(
        line.startswith("The level is furthest off at season = winter: the mean of dust") for line in flat.verdict.lines
    )


def test_a_small_group_does_not_shout():
    """Six days of a season: their correlations are off by chance, and the figure is not."""
    made = air.days(600, 1)
    season = made.attributes["season"].to_numpy()
    few = made.take(
        np.sort(np.concatenate([np.flatnonzero(season != "winter"), np.flatnonzero(season == "winter")[:6]]))
    )
    found = evaluated(few)
    winter = next(group for group in found.groups if group.value == "winter")
    assert winter.correlation_error < 0.05
    assert by_key(found)["level_by_attribute"].value < 0.3


def test_what_is_no_more_than_noise_is_nothing_and_what_is_more_stays():
    noise = np.random.default_rng(0).standard_normal(400) * 0.1
    assert np.abs(beyond_chance(noise, np.full(400, 0.01))).max() < 0.03
    apart, variances = np.array([0.5, 0.5, np.nan, 0.01]), np.array([1e-4, 1.0, 1e-4, 1e-4])
    sure, unsure, unknown, _ = beyond_chance(apart, variances)
    assert sure == pytest.approx(0.5, abs=0.01)
    assert unsure < 0.2
    assert np.isnan(unknown)


def test_sampling_variances_are_those_of_repeated_samples():
    """Steps of a day hang together, so a day counts once and not twelve times."""
    sizes = {"season": 4}
    drawn = []
    for seed in range(60):
        days = air.days(120, seed)
        codes = {"season": days.attributes["season"].cat.codes.to_numpy().astype(float)}
        drawn.append(group_statistics(days.values, codes, sizes))
    for what in ("levels", "correlations"):
        said = np.mean([getattr(each, what).variances for each in drawn], axis=0)
        found = np.var([getattr(each, what).values for each in drawn], axis=0)
        assert said.mean(0) == pytest.approx(found.mean(0), rel=0.4)


def test_shared_gaps_show(good, flat):
    kept, lost = by_key(good)["shared_gaps"], by_key(flat)["shared_gaps"]
    assert kept.value == pytest.approx(air.shared_gaps(air.days(600, 1)))
    assert abs(kept.value - kept.real) < 0.1
    assert lost.value < 0.15
    assert lost.baseline < 0.15  # steps that are drawn apart share few
    assert lost.interval[1] < lost.real
    assert any(line.startswith("Where a channel has no value, another has none") for line in flat.verdict.lines)
    short = evaluated(air.days(600, 1, lasting=1.0, gaps=0.1))
    assert by_key(short)["gap_lengths"].value > 0.3 > by_key(good)["gap_lengths"].value + 0.1


def test_gaps_are_counted_by_length_and_by_channels():
    gone = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]], dtype=bool)
    assert sorted_gaps(gone).tolist() == [1, 2, 3]
    assert share_of_shared(np.array([[0, 1, 2], [3, 1, 0]])) == 0.5
    assert share_of_shared(np.zeros((2, 2), dtype=int)) is None


def test_what_is_worst_in_one_channel_is_told_of_it():
    made = air.days(600, 1)
    rough = made.values.copy()
    rough[:, :, 1] += np.random.default_rng(5).choice([-15, 15], rough.shape[:2])
    found = evaluated(Series(values=rough, channels=made.channels, attributes=made.attributes))
    scores = by_key(found)
    name, own = worst_channel(scores["ramps"], found.by_channel)
    assert name == "ozone"
    assert own.value > 2 * scores["ramps"].value
    assert any(line.startswith("The mean ramp of ozone is ") for line in found.verdict.lines)
    assert " of ozone, " in found.verdict.headline
    mean = [each.value for each in found.by_channel if each.key == "ramps"]
    assert scores["ramps"].value == pytest.approx(np.mean(mean))


def test_a_profile_that_independent_steps_beat_is_marked(good):
    made = air.days(600, 1)
    turned = made.values.copy()
    turned[:, :, 2] = turned[:, ::-1, 2]
    found = evaluated(Series(values=turned, channels=made.channels, attributes=made.attributes))
    assert "profile" in found.beaten
    assert not good.beaten
    said = next(line for line in found.verdict.warnings if line.startswith("Independent steps"))
    assert "profile (warmth: " in said
    assert found.beaten.isdisjoint({"apart", "values"})  # of these they take all from real series


def test_one_channel_without_attributes_has_no_such_figures():
    lone = Schema.parse(
        "doublure: 1\nkind: series\nunits: 50\nseries: {length: 12}\n"
        "channels: {dust: {type: real, bounds: [0, 400], missing: false}}\n"
    )

    def drawn(seed):
        values = air.days(60, seed, gaps=0.0).values[:, :, :1]
        return Series(values=values, channels=("dust",), attributes=pd.DataFrame(index=range(60)))

    found = evaluate_series(lone, drawn(1), drawn(2), drawn(3), **QUICK)
    assert not {"together", "together_by_attribute", "level_by_attribute", "shared_gaps"} & set(by_key(found))
    assert found.groups == ()
    assert " of dust" not in found.verdict.headline
    assert worst_channel(by_key(found)["ramps"], found.by_channel) is None
