"""What is drawn of series: each line is of the set that the legend says, and each pair is one that was found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import Series
from doublure.measures.series import evaluate_series
from doublure.measures.series import nearest_neighbours as warping
from doublure.measures.series.statistics import autocorrelation, spectrum, wasserstein_by_step
from doublure.schema import Schema


@pytest.fixture(scope="module")
def sets(waves):
    """Synthetic series that lie two higher and turn twice as often, and real ones."""
    made = waves(90, 1, gaps=0.0)
    doubled = np.concatenate([made.values[:, ::2], made.values[:, ::2]], axis=1) + 2
    synthetic = Series(values=doubled, channels=made.channels, attributes=made.attributes)
    return {"synthetic": synthetic, "real": waves(120, 2, gaps=0.0), "test": waves(60, 3, gaps=0.0)}


@pytest.fixture(scope="module")
def drawn(schema, sets):
    return evaluate_series(schema, sets["synthetic"], sets["real"], sets["test"], classifiers=False)


def test_profiles_are_of_the_set_that_they_say(drawn, sets):
    for place, profile in enumerate(drawn.profiles):
        for role in ("real", "synthetic"):
            values = sets[role].values[:, :, place]
            assert getattr(profile, role) == pytest.approx(values.mean(0))
            low, high = zip(*getattr(profile, f"{role}_band"), strict=True)
            assert low == pytest.approx(np.quantile(values, 0.1, axis=0))
            assert high == pytest.approx(np.quantile(values, 0.9, axis=0))


def test_profiles_by_value_are_of_the_series_with_that_value(drawn, sets):
    assert [(one.channel, one.value) for one in drawn.by_value] == [(c, v) for c in "ab" for v in ("early", "late")]
    for one in drawn.by_value:
        for role in ("real", "synthetic"):
            series = sets[role]
            chosen = series.channel(one.channel)[(series.attributes["phase"] == one.value).to_numpy()]
            assert getattr(one, role) == pytest.approx(chosen.mean(0))


def test_curves_are_of_the_set_that_they_say(drawn, sets):
    curves = {(one.channel, one.kind): one for one in drawn.curves}
    for name in "ab":
        for kind, of in (("autocorrelation", autocorrelation), ("spectrum", spectrum)):
            for role in ("real", "synthetic"):
                assert getattr(curves[name, kind], role) == pytest.approx(of(sets[role].channel(name)))
            assert curves[name, kind].baseline not in (curves[name, kind].real, curves[name, kind].synthetic)
        far = curves[name, "apart"]
        for role, of in (("real", "test"), ("synthetic", "synthetic")):
            apart = wasserstein_by_step(sets["real"].channel(name), sets[of].channel(name))
            assert getattr(far, role) == pytest.approx(apart)
        assert max(far.baseline) < min(far.synthetic)


def test_histograms_are_of_the_set_that_they_say(drawn):
    for one in drawn.histograms:
        if one.kind in ("peak_step", "steepest"):  # a set that lies higher has both as the other
            continue
        middles = (np.array(one.shares.edges[1:]) + np.array(one.shares.edges[:-1])) / 2
        assert middles @ np.array(one.shares.synthetic) > middles @ np.array(one.shares.real) + 1


@pytest.mark.parametrize("searched", [40, 5_000])
def test_pairs_are_the_series_that_were_found(schema, sets, monkeypatch, searched):
    """Whether all real series are searched or a sample: the distance is that of the two that are drawn."""
    monkeypatch.setattr(warping, "MOST_SEARCHED", searched)
    monkeypatch.setattr(warping, "QUERIES", 30)
    found = evaluate_series(schema, sets["synthetic"], sets["real"], sets["test"], classifiers=False)
    spread = warping._spread(sets["real"])
    for pair in found.pairs:
        rows = [
            int(np.flatnonzero((sets[role].channel("a") == np.array(getattr(pair, role))).all(axis=1))[0])
            for role in ("synthetic", "real")
        ]
        both = [
            warping._plain(sets[role].take(np.array([row])), spread)
            for role, row in zip(("synthetic", "real"), rows, strict=True)
        ]
        assert np.sqrt(warping.warp_distance(*both, band=1) / 12)[0] == pytest.approx(pair.distance)
    assert found.pairs[0].distance == min(pair.distance for pair in found.pairs)


def test_too_near_is_measured_by_other_real_series(schema, sets):
    near = {
        score.key: score
        for score in evaluate_series(schema, sets["real"], sets["real"], sets["test"], classifiers=False).scores
    }
    assert near["too_near"].real == pytest.approx(warping.TOO_NEAR, abs=0.02)


def test_several_attributes_are_each_drawn(text, sets):
    side = "side: {type: category, values: [left, right, top], missing: false}"
    two = Schema.parse(text.replace("missing: false}}", f"missing: false}}, {side}}}"))
    kinds = ["left", "right", "top"]
    wide = {
        role: Series(
            values=one.values,
            channels=one.channels,
            attributes=one.attributes.assign(
                side=pd.Categorical([kinds[row // 2 % 3] for row in range(len(one))], kinds)
            ),
        )
        for role, one in sets.items()
    }
    found = evaluate_series(two, wide["synthetic"], wide["real"], wide["test"], classifiers=False, nearest=False)
    names = [("phase", "early"), ("phase", "late"), ("side", "left"), ("side", "right"), ("side", "top")]
    assert [(one.channel, one.attribute, one.value) for one in found.by_value] == [
        (c, *name) for c in "ab" for name in names
    ]
    for one in found.by_value:
        chosen = (wide["real"].attributes[one.attribute] == one.value).to_numpy()
        assert one.real == pytest.approx(wide["real"].channel(one.channel)[chosen].mean(0))
