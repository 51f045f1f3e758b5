import pytest
from pydantic import ValidationError

from doublure.errors import SettingError
from doublure.intervals import wilson
from doublure.measures.scores import Score, fallen_short, rate_score


def score(value, baseline, real, goal="high", interval=None):
    known = {"value": value, "baseline": baseline, "real": real, "interval": interval}
    return Score(key="k", name="n", goal=goal, range=(0, 1), **known)


@pytest.mark.parametrize(
    ("value", "baseline", "real", "goal", "way"),
    [
        (0.85, 0.75, 0.95, "high", 0.5),
        (0.10, 0.30, 0.05, "low", 0.8),
        (0.70, 0.75, 0.95, "high", -0.25),
        (0.85, 0.97, 0.95, "high", None),  # backwards
        (0.85, 0.75, 0.95, "near", None),
        (None, 0.75, 0.95, "high", None),
        (0.85, None, 0.95, "high", None),
    ],
)
def test_way_from_independent_columns_to_real_rows(value, baseline, real, goal, way):
    assert score(value, baseline, real, goal).way == (None if way is None else pytest.approx(way))


def test_a_way_within_the_error_of_the_figure_is_none():
    assert score(0.85, 0.92, 0.95, interval=(0.83, 0.87)).way == pytest.approx(-7 / 3)
    assert score(0.85, 0.93, 0.95, interval=(0.82, 0.88)).way is None


def test_a_rate_is_counted_and_has_the_interval_of_its_own_count():
    found = rate_score("recall", "recall", {"value": 30, "baseline": 10, "real": 39}, 40, "said")
    assert (found.value, found.baseline, found.real) == (0.75, 0.25, 0.975)
    assert found.interval == wilson(30, 40)
    assert (found.key, found.goal, found.range, found.meaning) == ("recall", "high", (0.0, 1.0), "said")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_holds_no_nan_and_no_infinity(bad):
    with pytest.raises(ValidationError):
        score(bad, 0.5, 0.5)


def test_what_is_worse_than_wanted_is_named():
    far, many = score(0.04, 0.3, 0.02, goal="low"), score(0.8, 0.7, 0.9)
    far, many = far.model_copy(update={"key": "pairs", "name": "pairs"}), many.model_copy(update={"key": "accuracy"})
    assert fallen_short([far, many], {"pairs": 0.04, "accuracy": 0.8}) == []
    assert fallen_short([far, many], {"pairs": 0.03, "accuracy": 0.81}) == [
        "pairs is 4.0\u00a0%, not at most 3.0\u00a0%", "n is 80.0\u00a0%, not at least 81.0\u00a0%",
    ]  # fmt: skip
    assert fallen_short([far, many.model_copy(update={"value": None})], {"accuracy": 0.1}) == ["n is unknown"]
    with pytest.raises(SettingError, match="pair: is no figure of this evaluation; did you mean pairs"):
        fallen_short([far, many], {"pair": 0.03})
