"""One score from 0 to 100: each part follows from figures that the report prints."""

import numpy as np
import pandas as pd
import pytest

from doublure.evaluate import evaluate_table, verdict
from doublure.report import tiles
from doublure.report.evaluation import PAGES
from doublure.schema import Schema


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
    closeness = [
        *((1 - known[key]) / (1 - best[key]) for key in ("quantile_columns", "related_pairs")),
    ]
    guess = good.utility.guessing
    usefulness = [
        (known["auc"] - 0.5) / (best["auc"] - 0.5),
        (known["average_precision"] - guess) / (best["average_precision"] - guess),
        (2 * known["coefficient_signs"] - 1) / (2 * best["coefficient_signs"] - 1),
        (1 - known["count_queries_relative"]) / (1 - best["count_queries_relative"]),
    ]
    assert known["closeness"] == pytest.approx(100 * np.mean(clip(closeness, 0, 1)))
    assert known["usefulness"] == pytest.approx(100 * np.mean(clip(usefulness, 0, 1)))
    related = good.marginals.relations.association  # two of 36 pairs hang together, among 900 rows
    share = (related.baseline - getattr(related, role)) / (related.baseline - related.real)
    assert known["coherence"] == pytest.approx(100 * np.clip(share, 0, 1))
    assert known["overall"] == pytest.approx(np.mean([known[key] for key in ("closeness", "usefulness", "coherence")]))


def test_the_anchors_are_in_order(good):
    overall = figures(good)["overall"]
    assert overall.baseline + 20 < overall.value
    assert overall.real == 100
    assert overall.value > 85
    assert any(line.startswith(f"Overall score {overall.value:.1f} of 100") for line in verdict(good).lines)


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
    (ranked,) = (line for line in said.lines if line.startswith("Models trained on the synthetic rows"))
    assert "an AUC of" in ranked
    assert "accuracy" not in ranked
    assert any("Average precision is" in line for line in said.lines)
    assert found.utility.guessing == pytest.approx(0.1)
    assert figures(found)["average_precision"].baseline < 0.5


LOOSE = """
doublure: 1
kind: table
units: 1000
columns:
""" + "".join(f"  x{place}: {{type: integer, bounds: [0, 9], missing: false}}\n" for place in range(10))


def loose(n, seed, tie):
    """Ten columns, of which two pairs hang together in some rows, and hardly more than chance would have it."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 10, (n, 10))
    for left, right in ((0, 1), (2, 3)):
        codes[:, right] = np.where(rng.random(n) < tie, codes[:, left], codes[:, right])
    return pd.DataFrame({f"x{place}": codes[:, place] for place in range(10)})


def test_coherence_is_scaled_between_independent_columns_and_other_real_rows(shuffle_columns):
    """Two of 45 pairs hang together: what the others have by chance is no part of it."""
    schema = Schema.parse(LOOSE).resolve({})
    real, aside = loose(1200, 1, 0.75), loose(1000, 2, 0.75)
    like, unlike = (evaluate_table(schema, made, real, aside) for made in (loose(1200, 3, 0.75), shuffle_columns(real)))
    off = like.marginals.relations.association
    assert off.real < 0.1
    assert {pair.names for pair in like.marginals.relations.pairs} == {("x0", "x1"), ("x2", "x3")}
    share = (off.baseline - off.value) / (off.baseline - off.real)
    assert like.overall.coherence.score.value == pytest.approx(100 * min(1, share))
    assert like.overall.coherence.score.value > 80
    assert (like.overall.coherence.score.baseline, like.overall.coherence.score.real) == (0.0, 100.0)
    assert unlike.overall.coherence.score.value < 15


def test_what_real_rows_break_is_no_fault(shuffle_columns):
    """Real rows kept aside break the rule of the fitted ones in one row of twelve: that is the ceiling."""
    schema = Schema.parse(
        "{doublure: 1, kind: table, units: 1000, columns: {a: {type: boolean, missing: false}, "
        "b: {type: boolean, missing: false}}}"
    ).resolve({})

    def ruled(n, seed, broken):
        rng = np.random.default_rng(seed)
        a = rng.random(n) < 0.5
        return pd.DataFrame({"a": a, "b": np.where(a, rng.random(n) < broken, rng.random(n) < 0.6)})

    real, aside = ruled(3000, 1, 0.0), ruled(2000, 2, 0.17)
    found = [evaluate_table(schema, made, real, aside) for made in (ruled(3000, 3, 0.17), shuffle_columns(real))]
    for evaluation, least, most in zip(found, (85, 0), (100, 12), strict=True):
        assert evaluation.rules.score.real == pytest.approx(0.085, abs=0.02)
        (part,) = (part for part in evaluation.overall.coherence.parts if part.name == "rules")
        assert least <= 100 * part.score.value <= most


def test_where_no_pair_is_related_there_is_no_coherence_to_tell():
    schema = Schema.parse(LOOSE).resolve({})
    found = evaluate_table(schema, loose(700, 3, 0.0), loose(700, 1, 0.0), loose(500, 2, 0.0))
    assert found.marginals.relations.found == 0
    assert "coherence" not in figures(found)
    assert figures(found)["overall"].value == pytest.approx(
        np.mean([figures(found)["closeness"].value, figures(found)["usefulness"].value])
    )
    assert "No pairs of columns clearly depend on one another in the real rows." in verdict(found).lines
    assert "Coherence" not in {tile.name for tile in tiles.table_tiles(found.overall)}


def test_a_score_says_which_of_its_parts_it_rests_on(schema, drawn):
    """Nothing predicts the label of these rows, so that it says nothing of usefulness."""
    made, real, aside = (
        each.assign(label=np.random.default_rng(9).permutation(each["label"].to_numpy()))
        for each in (drawn(800, 3), drawn(800, 4), drawn(600, 5))
    )
    found = evaluate_table(schema, made, real, aside)
    usefulness = found.overall.usefulness
    untold = [part.name for part in usefulness.parts if part.score.value is None]
    assert "ranking" in untold
    assert not any(name in usefulness.rests_on for name in untold)
    assert usefulness.rests_on.endswith(" alone")
    assert any(f"by {usefulness.rests_on}" in line for line in verdict(found).lines)
    (tile,) = (tile for tile in tiles.table_tiles(found.overall) if tile.name == "Usefulness")
    assert tile.figure == f"By {usefulness.rests_on}: the rest cannot be told"
    assert found.overall.closeness.rests_on == ""


def test_a_lost_relation_comes_first_and_does_not_flatter(shuffle_columns):
    """One of two relations is cut; everything else is as in real rows, and closeness alone would not show it."""
    schema = Schema.parse(LOOSE).resolve({})
    real, aside, made = loose(4000, 1, 0.6), loose(1000, 2, 0.6), loose(4000, 3, 0.6)
    made["x1"] = shuffle_columns(made)["x1"].to_numpy()
    found = evaluate_table(schema, made, real, aside)
    said, kept = verdict(found), {pair.names: pair for pair in found.marginals.relations.pairs}
    assert (kept["x0", "x1"].lost, kept["x2", "x3"].lost) == (True, False)
    assert kept["x0", "x1"].rank == pytest.approx((0.6, 0.0), abs=0.05)
    assert said.headline == "1 of the 2 related pairs of columns lose at least half of their association."
    assert said.lines[0].startswith("Lost: x0 × x1, Cramér’s V")
    assert 40 < figures(found)["coherence"].value < 60
    assert figures(found)["overall"].value < 85
    assert [line for line in said.lines if "of 100, a mean that hides 1 lost pair (" in line]
    on_top = PAGES["table"].content(found)
    assert (
        {tile.name: tile.figure for tile in on_top.tiles}["Coherence"]
        == on_top.more["overall"]["lost"]
        == "1 lost pair"
    )
    assert "related" in found.to_json()


def test_sets_of_unequal_sizes_are_compared_at_one_size():
    """The fewer rows kept aside, the further away they are by chance: synthetic rows are no better for being many."""
    schema = Schema.parse(LOOSE).resolve({})
    real, made = loose(2000, 1, 0.0), loose(4000, 3, 0.0)
    few = figures(evaluate_table(schema, made, real, loose(300, 2, 0.0)))
    assert few["quantile_pairs"].value == pytest.approx(few["quantile_pairs"].real, rel=0.1)
    assert few["quantile_pairs"].baseline == pytest.approx(few["quantile_pairs"].real, rel=0.1)
