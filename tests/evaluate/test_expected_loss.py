"""The expected loss: the paper's formulae, Saw, Yang and Mo's floor, a fixed rule, and words that claim little."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from doublure.data.images import Images
from doublure.errors import DataError, SettingError
from doublure.measures import expected_loss
from doublure.measures.divergence import Neighbourhood
from doublure.measures.expected_loss import EstimatorConfig, chebyshev, choose_k, estimate, reachable, saw_yang_mo
from doublure.measures.images import feature_extractors as extractors
from doublure.schema import Schema

RULE = EstimatorConfig(pairs=40, features="points", artificial=300)


def clouds(seed=0, n=300, real=200, width=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, width)), rng.standard_normal((real, width))


@pytest.fixture(scope="module")
def found():
    return estimate(*clouds(), RULE)


# -- formulae ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "gamma", "expected"), [([1, 2, 3, 10], 0.01, 34.0), ([0.1, 0.2, 0.2, 0.3, 0.9], 1e-5, 79.53596)]
)
def test_chebyshev_with_the_upper_semi_variance(losses, gamma, expected):
    assert chebyshev(np.array(losses, dtype=float), gamma) == pytest.approx(expected, abs=1e-5)


def bound(n, multiple):
    """The right side of Saw, Yang and Mo's inequality, as they print it."""
    return math.floor((n + 1) / n * ((n - 1) / multiple**2 + 1)) / (n + 1)


@pytest.mark.parametrize("n", [2, 10, 99, 1000])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_sample_version_is_their_inequality_turned_round(n, steps):
    if steps > n:
        pytest.skip("γ above 1")
    losses = np.random.default_rng(n).standard_normal(n)
    gamma = steps / (n + 1)
    deviation = np.std(losses, ddof=1) * math.sqrt((n + 1) / n)
    multiple = (saw_yang_mo(losses, gamma) - losses.mean()) / deviation
    assert bound(n, multiple * 1.0001) <= gamma + 1e-12
    assert bound(n, multiple * 0.9999) > gamma + 1e-12
    if steps == 1:
        assert multiple == pytest.approx(math.sqrt(n + 1))


def test_so_many_pairs_cannot_show_less_than_their_floor():
    """The paper's γ of 1e-5 takes about 10⁵ pairs."""
    assert reachable(99_999) == pytest.approx(1e-5)
    losses = np.arange(99.0)
    assert saw_yang_mo(losses, 0.01) > losses.max()
    for gamma in (0.0099, 1e-5, 0.0):
        with pytest.raises(SettingError, match=r"99 pairs can show 0\.01"):
            saw_yang_mo(losses, gamma)


def test_one_more_loss_passes_mu_as_seldom_as_is_said():
    """Exchangeable draws from a law with a heavy tail; γ = 1/20, a thousand tries: 1e-6 lies above 84."""
    rng = np.random.default_rng(1)
    draws = rng.pareto(1.5, size=(1000, 20))
    passed = sum(draw[-1] > saw_yang_mo(draw[:-1], 1 / 20) for draw in draws)
    assert passed <= 84


# -- the rule ----------------------------------------------------------------------------------------------------------


def test_k_is_the_smallest_that_changes_as_much_as_all_the_difference():
    artificial, real = clouds(2)
    near = Neighbourhood(artificial, 30)
    trials = near.nearest(real[:10], 30)
    at = {k: np.mean([near.loss(own[:k]) for own in trials]) for k in (1, 2, 5, 10, 20, 30)}
    assert choose_k(near, trials, at[5]) == (5, True)
    assert choose_k(near, trials, at[5] + 1e-9) == (10, True)
    assert choose_k(near, trials, -1.0) == (1, True)
    assert choose_k(near, trials, at[30] + 1) == (30, False)


def test_the_estimate_repeats_itself_and_stands_between_its_parts(found):
    assert estimate(*clouds(), RULE) == found
    assert estimate(*clouds(), RULE.model_copy(update={"seed": 1})) != found
    assert (found.pairs, found.artificial, found.width, found.features) == (40, 300, 3, "points")
    assert found.gamma == pytest.approx(1 / 41)
    assert found.mu > found.mean
    assert found.mu_paper > found.mu_chebyshev > found.mean
    assert found.mu_chebyshev == pytest.approx(found.mean + found.upper_deviation * math.sqrt(41))
    for value, (low, high) in ((found.mu, found.interval), (found.mu_paper, found.interval_paper)):
        assert low < value * 1.2
        assert high > value * 0.8
        assert low < high


def test_trials_and_pairs_are_different_records(monkeypatch):
    """What chose k is not what is measured with it."""
    asked, nearest = [], Neighbourhood.nearest

    def watched(self, real, k):
        asked.append({row.tobytes() for row in real})
        return nearest(self, real, k)

    monkeypatch.setattr(Neighbourhood, "nearest", watched)
    artificial, real = clouds()
    estimate(artificial, real, RULE)
    trials, pairs = asked
    assert (len(trials), len(pairs)) == (RULE.trials, RULE.pairs)
    assert not trials & pairs
    assert trials | pairs <= {row.tobytes() for row in real}  # holes around synthetic records would say nothing


def test_an_estimate_is_what_the_slow_way_gives():
    """Each drawn real record's nearest synthetic ones taken away, and both densities by hand."""
    artificial, real = clouds(5, n=60, real=40, width=2)
    rule = EstimatorConfig(pairs=20, features="points", artificial=60, seed=3)
    found = estimate(artificial, real, rule)
    apart = np.linalg.norm(artificial[:, None] - artificial[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    losses = []
    for record in real[np.random.default_rng(3).permutation(40)[:20]]:
        gone = np.argsort(np.linalg.norm(artificial - record, axis=1))[: found.k]
        left = np.setdiff1d(np.arange(60), gone)
        others = np.array([len(left) - (place in left) for place in range(60)])
        terms = 2 * np.log(apart[:, left].min(axis=1) / apart.min(axis=1)) + np.log(others / 59)
        losses.append(terms.mean())
    assert found.mean == pytest.approx(np.mean(losses))
    assert found.mu == pytest.approx(saw_yang_mo(np.array(losses), 1 / 21))


def test_memorised_records_lose_more():
    """Synthetic records that sit on the real ones leave a larger hole than those that do not."""
    artificial, real = clouds(3, n=400, real=200, width=8)
    learned = np.concatenate([artificial[:200], real + 0.01 * artificial[200:]])
    near = {name: Neighbourhood(each, 40) for name, each in (("free", artificial), ("by heart", learned))}
    mean = {name: np.mean([each.loss(own) for own in each.nearest(real, 1)]) for name, each in near.items()}
    assert mean["by heart"] > mean["free"]


def test_too_few_records_are_said():
    with pytest.raises(DataError, match="too few records for the pairs") as caught:
        estimate(*clouds(real=49), RULE)
    assert "give 50" in caught.value.remedy


def test_a_constant_loss_has_no_spread():
    assert saw_yang_mo(np.full(9, 0.25), 0.1) == 0.25


def test_mu_is_never_below_nothing(monkeypatch):
    monkeypatch.setattr(Neighbourhood, "loss", lambda self, removed: -2.0)
    found = estimate(*clouds(), RULE)
    assert (found.mean, found.mu, found.mu_paper, found.interval) == (-2.0, 0.0, 0.0, (0.0, 0.0))


def test_it_claims_what_it_is_and_no_more(found):
    said = " ".join(found.lines)
    for part in (
        "for this data set only",
        "This is not ε and bounds no individual's risk",
        "40 pairs",
        "features points",
    ):
        assert part in said
    assert "do not publish" in found.internal
    assert str(found.mean)[:5] not in found.basis
    assert f"k={found.k}" not in found.basis


def test_a_k_that_is_not_what_the_rule_asks_for_is_in_the_claim(found):
    """What a bad generator makes is so far from real records that no k accounts for it; its μ is then small."""
    assert found.k_reached
    assert "too low" not in found.basis
    artificial, real = clouds()
    far = estimate(artificial, real + 40, RULE)
    assert not far.k_reached
    assert "the rule asks for more, so that μ may be far too low" in far.basis


def test_k_is_chosen_by_as_many_real_records_as_artificial_ones(monkeypatch):
    """More of them would lie closer together, and seem further from the synthetic ones."""
    compared = []

    def divergence(real, artificial, *, named):
        compared.append((len(real), len(artificial)))
        assert named == "the real data"
        return 0.1

    monkeypatch.setattr(expected_loss, "divergence", divergence)
    estimate(*clouds(n=300, real=900), RULE)
    assert compared == [(300, 300)]


# -- of a synthesizer --------------------------------------------------------------------------------------------------


class Painter:
    """Draws noisy bars: one label on the left, the other on the right."""

    schema = Schema.parse(
        "doublure: 1\nkind: images\nunits: 90\nimages: {shape: [8, 8, 1]}\nlabel: {values: [left, right]}\n"
    )

    def draw(self, n, *, seed=None):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, n)
        pixels = 40 * rng.standard_normal((n, 8, 8, 1)) + 60
        pixels[codes == 0, :, 1] += 120
        pixels[codes == 1, :, 6] += 120
        labels = pd.Series(pd.Categorical.from_codes(codes, ["left", "right"]))
        return Images(images=np.clip(pixels, 0, 255).astype(np.uint8), labels=labels)


@pytest.mark.parametrize(("features", "width"), [("pixels", 64), ("student", 64)])
def test_of_images(monkeypatch, features, width):
    monkeypatch.setattr("doublure.measures.images.classifiers.EPOCHS", 1)
    monkeypatch.setattr("doublure.measures.images.classifiers.LEAST_STEPS", 5)
    painter, made = Painter(), extractors.find_extractor
    monkeypatch.setattr(
        extractors, "find_extractor", lambda name, *given: training_sets.append(given[0]) or made(name, *given)
    )
    training_sets = []
    found = expected_loss.of_synthesizer(
        painter, painter.draw(80, seed=9), EstimatorConfig(pairs=30, features=features, artificial=200)
    )
    (training,) = training_sets
    assert (found.features, found.width, found.pairs) == (features, width, 30)
    # A classifier learns from other images than those that are measured.
    assert [np.array_equal(training.images, Painter().draw(200, seed=seed).images) for seed in (1, 2)] == [
        False,
        True,
    ]


def test_an_extractor_of_ones_own_names_itself():
    painter = Painter()
    mine = extractors.Extractor(name="means", extract=lambda images: images.images.mean(axis=(1, 3)).astype(float))
    found = expected_loss.of_synthesizer(
        painter,
        painter.draw(80, seed=9),
        EstimatorConfig(pairs=30, features="pixels", artificial=200),
        extractor=mine,
    )
    assert (found.features, found.width) == ("means", 8)


def test_an_extractor_sees_no_more_real_images_than_are_used():
    seen = []

    def extract(images):
        seen.append(len(images))
        return images.images.mean(axis=(1, 3)).astype(float)

    painter, rule = Painter(), EstimatorConfig(pairs=30, features="pixels", artificial=200)
    real = painter.draw(900, seed=9)
    found = expected_loss.of_synthesizer(
        painter, real, rule, extractor=extractors.Extractor(name="means", extract=extract)
    )
    assert seen == [200, 200]
    whole = estimate(extract(painter.draw(200, seed=rule.seed + 1)), extract(real), rule)
    assert found.model_copy(update={"features": "pixels"}) == whole


def test_of_a_table():
    text = (
        "doublure: 1\nkind: table\nunits: 90\ncolumns:\n  a: {type: real, bounds: [0, 1], missing: true}\n"
        "  b: {type: category, values: [x, y], missing: false}\n  c: {type: real, bounds: [-5, 5], missing: false}\n"
    )

    class Tabler:
        schema = Schema.parse(text)

        def draw(self, n, *, seed=None):
            rng = np.random.default_rng(seed)
            a = np.where(rng.random(n) < 0.1, np.nan, rng.random(n))
            return pd.DataFrame({"a": a, "b": rng.choice(["x", "y"], n), "c": rng.random(n)})

    rule = EstimatorConfig(pairs=30, features="rows", artificial=200)
    found = expected_loss.of_synthesizer(Tabler(), Tabler().draw(80, seed=9), rule)
    assert (found.features, found.artificial) == ("rows", 200)
    same = Tabler()
    same.draw = lambda n, seed=None: pd.DataFrame({"a": np.full(n, 0.5), "b": ["x"] * n, "c": np.zeros(n)})
    with pytest.raises(DataError, match="no density"):
        expected_loss.of_synthesizer(same, Tabler().draw(80, seed=9), rule)
