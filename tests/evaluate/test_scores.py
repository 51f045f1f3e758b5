import numpy as np
import pytest
from pydantic import ValidationError

from doublure.evaluate.scores import Score, paired_difference, wilson


def score(value, baseline, real, goal="high"):
    return Score(key="k", name="n", value=value, goal=goal, range=(0, 1), baseline=baseline, real=real)


def test_wilson_agrees_with_its_closed_form():
    # Wilson's ends solve (p - x)^2 = z^2 p (1 - p) / n.
    low, high = wilson(7, 20)
    for end in (low, high):
        assert (end - 0.35) ** 2 == pytest.approx(1.959963985**2 * end * (1 - end) / 20, rel=1e-6)
    assert low < 0.35 < high


def test_wilson_at_the_ends():
    assert wilson(0, 10)[0] == pytest.approx(0, abs=1e-12)
    assert wilson(10, 10)[1] == pytest.approx(1, abs=1e-12)
    assert wilson(0, 10)[1] > 0.2
    assert wilson(0, 0) is None


def test_paired_difference_covers_the_truth():
    rng = np.random.default_rng(0)
    draws = rng.multinomial(60, [0.15, 0.05, 0.8], size=2000)
    inside = 0
    for first, second, _ in draws:
        low, high = paired_difference(int(first), int(second), 60)
        inside += low <= 0.10 <= high
    assert 0.935 < inside / 2000 < 0.975


def test_paired_difference_has_a_sign_and_a_level():
    assert paired_difference(20, 2, 100)[0] > 0
    assert paired_difference(2, 20, 100)[1] < 0
    wide, narrow = paired_difference(20, 2, 100, level=0.999), paired_difference(20, 2, 100)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert paired_difference(0, 0, 0) is None


@pytest.mark.parametrize(
    ("value", "baseline", "real", "goal", "way"),
    [
        (0.85, 0.75, 0.95, "high", 0.5),
        (0.10, 0.30, 0.05, "low", 0.8),
        (0.70, 0.75, 0.95, "high", -0.25),
        (0.85, 0.949, 0.95, "high", None),  # no way to go
        (0.85, 0.97, 0.95, "high", None),  # backwards
        (0.85, 0.75, 0.95, "near", None),
        (None, 0.75, 0.95, "high", None),
        (0.85, None, 0.95, "high", None),
    ],
)
def test_way_from_independent_columns_to_real_rows(value, baseline, real, goal, way):
    assert score(value, baseline, real, goal).way == (None if way is None else pytest.approx(way))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_holds_no_nan_and_no_infinity(bad):
    with pytest.raises(ValidationError):
        score(bad, 0.5, 0.5)
