"""One score from 0 to 100: each part follows from figures that the report prints."""

import numpy as np
import pytest

from doublure.evaluate import evaluate_table, verdict


@pytest.fixture(scope="module")
def good(schema, real, holdout, drawn):
    return evaluate_table(schema, drawn(900, 3), real, holdout)


def figures(evaluation):
    return {score.key: score for score in evaluation.scores}


@pytest.mark.parametrize("role", ["value", "baseline", "real"])
def test_the_formulas_are_those_that_are_printed(good, role):
    known = {key: getattr(score, role) for key, score in figures(good).items()}
    best = {key: score.real for key, score in figures(good).items()}
    clip = np.clip
    closeness = [1 - known["quantile_columns"], 1 - known["quantile_pairs"], known["k_marginal"] / 1000]
    guess = good.utility.guessing
    usefulness = [
        clip((known["auc"] - 0.5) / (best["auc"] - 0.5), 0, 1),
        clip((known["average_precision"] - guess) / (best["average_precision"] - guess), 0, 1),
        clip(2 * known["coefficient_signs"] - 1, 0, 1),
        1 - known["count_queries_relative"],
    ]
    coherence = [1 - getattr(good.marginals.association, role)]
    assert not good.rules.rules  # nothing is ruled out among these columns
    assert known["closeness"] == pytest.approx(100 * np.mean(closeness))
    assert known["usefulness"] == pytest.approx(100 * np.mean(usefulness))
    assert known["coherence"] == pytest.approx(100 * np.mean(coherence))
    assert known["overall"] == pytest.approx(np.mean([known["closeness"], known["usefulness"], known["coherence"]]))


def test_the_anchors_are_in_order(good):
    overall = figures(good)["overall"]
    assert overall.baseline + 20 < overall.value
    assert abs(overall.value - overall.real) < 10
    assert f"Overall score {overall.value:.1f} of 100" in verdict(good).lines[0]


def test_independent_columns_get_their_own_anchor(schema, real, holdout, shuffle_columns):
    overall = figures(evaluate_table(schema, shuffle_columns(real), real, holdout))["overall"]
    assert overall.value == pytest.approx(overall.baseline, abs=8)


def test_a_common_class_is_judged_by_ranking(schema, drawn):
    """Where nine in ten say no, always to say no is right for nine in ten."""

    def rare(n, seed):
        frame = drawn(6 * n, seed)
        yes = np.flatnonzero(frame["label"] == "yes")
        no = np.flatnonzero(frame["label"] == "no")
        kept = np.sort(np.concatenate([yes[: n // 10], no[: n - n // 10]]))
        return frame.iloc[kept].reset_index(drop=True)

    found = evaluate_table(schema, rare(800, 3), rare(800, 4), rare(600, 5))
    assert found.utility.imbalanced
    assert [score.key for score in found.utility.scores] == ["auc", "average_precision", "macro_f1", "accuracy"]
    said = verdict(found)
    assert "an AUC of" in said.headline
    assert "accuracy" not in said.headline
    assert any("Average precision is" in line for line in said.lines)
    assert found.utility.guessing == pytest.approx(0.1)
    assert figures(found)["average_precision"].baseline < 0.5
