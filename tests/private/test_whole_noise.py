"""Exact noise for whole numbers: what it costs by OpenDP's own map, its law, and what it says of itself."""

from __future__ import annotations

import math
import signal
import time

import numpy as np
import pytest
from planting import plant
from scipy import stats

from doublure.errors import SettingError
from doublure.private import exact_normals, whole_noise

ALPHA = 1e-6


# -- what it costs -----------------------------------------------------------------------------------------------------


def check_laplace_costs_what_is_claimed(epsilon, moved):
    claimed = whole_noise._laplace(epsilon, moved).map(moved)
    assert epsilon * (1 - 1e-12) <= claimed <= epsilon
    assert moved / whole_noise.laplace([0], epsilon=epsilon, moved=moved).scale == pytest.approx(claimed, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 1 / 3, 0.7, 1.1, 10.0])
@pytest.mark.parametrize("moved", [1, 3, 7, 31])
def test_laplace_costs_what_is_claimed(epsilon, moved):
    check_laplace_costs_what_is_claimed(epsilon, moved)
    assert whole_noise._laplace(2 * epsilon, moved).map(moved) > 1.99 * epsilon


@pytest.mark.parametrize("epsilon", [0.7, 1 / 3])
@pytest.mark.parametrize("edit", [("moved / epsilon", "1 / epsilon"), ("moved / epsilon", "1.01 * moved / epsilon")])
def test_another_scale_is_caught(monkeypatch, edit, epsilon):
    plant(monkeypatch, whole_noise, "_laplace", edit, ("_loss(make_laplace(*space, scale), moved) > epsilon", "False"))
    with pytest.raises(AssertionError):
        check_laplace_costs_what_is_claimed(epsilon, 3)


def check_thresholds_cost_what_is_claimed(patch, epsilon, delta, moved):
    import opendp.measurements

    thresholds, make = [], opendp.measurements.make_laplace_threshold
    with patch.context() as inner:
        inner.setattr(
            opendp.measurements,
            "make_laplace_threshold",
            lambda *space_scale_threshold: thresholds.append(space_scale_threshold[-1]) or make(*space_scale_threshold),
        )
        found = whole_noise.thresholded({}, epsilon=epsilon, delta=delta, moved=moved)
    assert moved / found.scale == pytest.approx(epsilon, rel=1e-12)
    assert 0 < found.delta <= delta

    def shown(threshold):  # exactly: one of the unit's own categories, up to m of them, reaches the threshold
        a = math.exp(-epsilon / moved)
        return 1 - (1 - a ** (threshold - moved) / (1 + a)) ** moved

    assert shown(thresholds[-1]) <= delta * (1 + 1e-9)
    assert shown(thresholds[-1] - 1) > delta  # the threshold that OpenDP's map alone would accept is one too low


@pytest.mark.parametrize("epsilon", [0.05, 1 / 3, 1.1, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("moved", [1, 3, 31])
def test_thresholded_counts_cost_what_is_claimed(monkeypatch, epsilon, delta, moved):
    check_thresholds_cost_what_is_claimed(monkeypatch, epsilon, delta, moved)


@pytest.mark.parametrize(
    "edit", [("high + 1", "high"), ("high + 1", "high + 2"), ("(moved, moved, moved)", "(1, 1, 1)")]
)
def test_another_threshold_is_caught(monkeypatch, edit):
    plant(monkeypatch, whole_noise, "thresholded", edit)
    with pytest.raises(AssertionError):
        check_thresholds_cost_what_is_claimed(monkeypatch, 1.1, 1e-6, 3)


def test_a_category_of_one_unit_shows_with_probability_delta():
    """OpenDP's own threshold shows it exp(ε) times as often."""
    delta, singles = 0.01, 100_000
    counts = dict.fromkeys(map(str, range(singles)), 1)
    shown = len(whole_noise.thresholded(counts, epsilon=1.0, delta=delta, moved=1).counts)
    assert stats.binomtest(shown, singles, delta, alternative="greater").pvalue > ALPHA
    assert shown > delta * singles / 10


@pytest.mark.parametrize("scale", [0.01, 0.7, 4.0, 1234.5])
def test_gaussian_noise_says_its_scale(scale):
    assert whole_noise.gaussian([0], scale=scale).scale == pytest.approx(scale, rel=1e-12)


def test_a_scale_that_was_meant_and_not_used_is_not_told(monkeypatch):
    plant(monkeypatch, whole_noise, "gaussian", ("float(scale)", "float(scale) * 0.7"))
    assert whole_noise.gaussian([0], scale=10.0).scale == pytest.approx(7.0)


# -- its law -----------------------------------------------------------------------------------------------------------


def laplace_p(noise, epsilon):
    """Chi-square against the discrete Laplace law, the tails pooled."""
    a = math.exp(-epsilon)
    edge = int(3 / epsilon)
    pmf = (1 - a) / (1 + a) * a ** np.abs(np.arange(-edge, edge + 1))
    tail = a ** (edge + 1) / (1 + a)
    expected = np.concatenate([[tail], pmf, [tail]]) * len(noise)
    observed = np.bincount(np.clip(noise, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def test_counts_get_discrete_laplace_noise():
    zeros = np.zeros(20_000, dtype=np.int64)
    noise = whole_noise.laplace(zeros, epsilon=0.5, moved=1).values
    assert laplace_p(noise, 0.5) > ALPHA
    assert laplace_p(noise, 0.4) < ALPHA  # off by a quarter
    assert laplace_p(whole_noise.laplace(zeros, epsilon=1.0, moved=1).values, 0.5) < ALPHA  # ε doubled
    assert laplace_p(whole_noise.laplace(zeros, epsilon=1.0, moved=2).values, 0.5) > ALPHA


def gaussian_p(noise, sigma):
    edge = int(3 * sigma)
    values = np.arange(-12 * math.ceil(sigma), 12 * math.ceil(sigma) + 1)
    pmf = np.exp(-(values**2) / (2 * sigma**2))
    bins = np.clip(values, -edge, edge) + edge
    expected = np.bincount(bins, weights=pmf / pmf.sum()) * noise.size
    observed = np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("sigma", [0.7, 3.0])
def test_counts_get_the_noise_of_opendp(sigma):
    """Two samples of one law; and OpenDP's own map has the price that the event is composed at."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    theirs = make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="i64"), sigma)
    assert float(theirs.map(1)) == pytest.approx(1 / (2 * sigma**2), rel=1e-12)
    edge = int(3 * sigma)
    noises = np.array(theirs([0] * 50_000)), whole_noise.gaussian(np.zeros(50_000, np.int64), scale=sigma).values
    seen = [np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1) for noise in noises]
    assert stats.chi2_contingency(np.array(seen)).pvalue > ALPHA


@pytest.mark.parametrize("sigma", [0.7, 3.0])
def test_counts_get_discrete_gaussian_noise(sigma):
    noise = whole_noise.gaussian(np.full(50_000, 9), scale=sigma).values - 9
    assert gaussian_p(noise, sigma) > ALPHA
    assert gaussian_p(noise, sigma * 1.05) < ALPHA
    assert gaussian_p(noise, sigma / 1.05) < ALPHA


# -- what goes in and comes out ----------------------------------------------------------------------------------------


def test_counts_keep_their_shape():
    exact = np.arange(6).reshape(2, 3) * 10**6
    noisy = whole_noise.gaussian(exact, scale=2.0).values
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - exact).max() < 20
    assert whole_noise.gaussian([], scale=2.0).values.shape == (0,)
    noisy = whole_noise.laplace(exact.ravel(), epsilon=1.0, moved=1).values
    assert (noisy.shape, noisy.dtype) == ((6,), np.int64)
    assert np.abs(noisy - exact.ravel()).max() < 60
    assert whole_noise.laplace([], epsilon=1.0, moved=1).values.shape == (0,)


def test_thresholded_counts_keep_their_names():
    """Texts that would break what reads them as texts, too; and none below the threshold is anywhere."""
    counts = {"often": 5000, "": 4000, "a\0b": 3000, "naïve ☃": 2000} | {
        f"secret {number}": 1 for number in range(1000)
    }
    found = whole_noise.thresholded(counts, epsilon=1.0, delta=1e-10, moved=1).counts
    assert set(found) == {"often", "", "a\0b", "naïve ☃"}
    assert all(abs(found[name] - counts[name]) < 60 for name in found)
    assert "secret" not in repr(found)
    assert whole_noise.thresholded({}, epsilon=1.0, delta=1e-10, moved=1).counts == {}


@pytest.mark.parametrize("counts", [[1.0, 2.0], [0.5], np.array([math.nan]), [True], ["1"]])
def test_what_is_no_whole_number_is_refused(counts):
    """Rounded off, it would move by more than was said: from 0.99 to 1.01 is a whole one."""
    for noisy in (
        lambda: whole_noise.gaussian(counts, scale=1.0),
        lambda: whole_noise.laplace(counts, epsilon=1.0, moved=1),
    ):
        with pytest.raises(SettingError) as refused:
            noisy()
        assert refused.value.field == "counts"


@pytest.mark.parametrize(
    ("noisy", "field"),
    [
        *(
            (lambda scale=scale: whole_noise.gaussian([1], scale=scale), "scale")
            for scale in (0, -1.0, math.inf, math.nan)
        ),
        *(
            (lambda epsilon=epsilon: whole_noise.laplace([1], epsilon=epsilon, moved=1), "epsilon")
            for epsilon in (0, -1, 1e-9, math.inf, math.nan)
        ),
        (lambda: whole_noise.laplace([1], epsilon=1.0, moved=0), "max_records"),
        (lambda: whole_noise.thresholded({}, epsilon=0, delta=0.1, moved=1), "epsilon"),
        (lambda: whole_noise.thresholded({}, epsilon=1.0, delta=0.1, moved=0), "max_records"),
        *(
            (lambda delta=delta: whole_noise.thresholded({}, epsilon=1.0, delta=delta, moved=1), "delta")
            for delta in (0, 1, 1e-30, math.nan)
        ),
    ],
)
def test_noise_that_hides_nothing_is_refused(noisy, field):
    with pytest.raises(SettingError) as refused:
        noisy()
    assert refused.value.field == field


def test_whoever_stops_a_run_is_heard_while_much_noise_is_drawn():
    """Sixteen million cells take some ten seconds."""

    def stop(number, frame):
        raise KeyboardInterrupt

    before, began = signal.signal(signal.SIGALRM, stop), time.process_time()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            whole_noise.gaussian(np.zeros(2**24, dtype=np.int64), scale=10.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - began < 5  # of the processor, however busy the machine is


@pytest.mark.parametrize("shape", [(0,), (3,), (4,), (3, 3), (2, 2, 2)])
def test_noise_that_is_drawn_in_parts_is_of_every_cell(monkeypatch, shape):
    monkeypatch.setattr(exact_normals, "_CHUNK", 4)
    counts = np.arange(np.prod(shape)).reshape(shape) * 1000
    found = whole_noise.gaussian(counts, scale=5.0)
    assert found.values.shape == shape
    assert found.values.dtype == np.int64
    assert (np.abs(found.values - counts) < 60).all()
    assert counts.size < 4 or (found.values != counts).any()
