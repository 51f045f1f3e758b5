import json
import math

import numpy as np
import pandas as pd
import pytest

from doublure.errors import DataError
from doublure.evaluate import TableEvaluation, evaluate_table, verdict
from doublure.measures.tables import utility
from doublure.measures.tables.verdict import _lose_too
from doublure.schema import Schema


@pytest.fixture(scope="module")
def good(schema, real, holdout, drawn):
    return evaluate_table(schema, drawn(900, 3), real, holdout)


@pytest.fixture(scope="module")
def shuffled(schema, real, holdout, shuffle_columns):
    return evaluate_table(schema, shuffle_columns(real), real, holdout)


def scores(evaluation):
    return {score.key: score for score in evaluation.scores}


def walk(plain):
    if isinstance(plain, dict):
        for value in plain.values():
            yield from walk(value)
    elif isinstance(plain, list):
        for value in plain:
            yield from walk(value)
    else:
        yield plain


def test_a_good_synthesizer_nears_real_rows(good):
    found = scores(good)
    assert found["accuracy"].value == pytest.approx(found["accuracy"].real, abs=0.05)
    assert found["accuracy"].interval[0] < found["accuracy"].value < found["accuracy"].interval[1]
    assert found["auc"].way > 0.8
    assert found["accuracy"].baseline < 0.7


def test_independent_columns_teach_nothing(shuffled):
    found = scores(shuffled)
    assert abs(found["accuracy"].way) < 0.35
    assert found["auc"].value < 0.65
    assert found["columns"].value < found["columns"].real


def test_every_figure_has_the_baseline_and_real_rows_beside_it(good):
    for score in (
        *good.scores,
        *(score for model in good.utility.classifiers for score in (model.accuracy, model.auc, model.macro_f1)),
        *(group.accuracy for group in good.groups.groups),
        *(column.variation for column in good.fidelity.columns),
        *(pair.variation for pair in good.fidelity.pairs),
        *(entry.share for entry in good.utility.classes),
    ):
        assert score.baseline is not None
        assert score.real is not None


def test_the_three_classifiers_are_there(good):
    assert [model.kind for model in good.utility.classifiers] == ["forest", "boosting", "logistic"]


def test_class_balance_is_counted(good, drawn):
    artificial = drawn(900, 3)
    shares = {entry.label: entry.share.value for entry in good.utility.classes}
    assert shares["yes"] == pytest.approx((artificial["label"] == "yes").mean())
    assert sum(shares.values()) == pytest.approx(1)


def test_the_json_holds_no_nan_and_reads_back(good, shuffled):
    for evaluation in (good, shuffled):
        plain = json.loads(evaluation.to_json(), parse_constant=lambda text: pytest.fail(text))
        assert all(math.isfinite(leaf) for leaf in walk(plain) if isinstance(leaf, float))
        assert TableEvaluation.model_validate_json(evaluation.to_json()) == evaluation
        assert plain["internal"] == "computed on real data: do not publish"


def test_the_same_seed_gives_the_same_evaluation(schema, real, good, holdout, drawn, trained_anew, monkeypatch):
    monkeypatch.setattr(utility, "_TRAIN", trained_anew)
    assert evaluate_table(schema, drawn(900, 3), real, holdout).to_json() == good.to_json()


def test_nothing_is_shown_by_accident(good):
    assert str(good) == repr(good) == "TableEvaluation(computed on real data: do not publish)"


def test_without_a_holdout_a_quarter_is_set_aside_and_said_so(schema, real, drawn):
    found = evaluate_table(schema, drawn(300, 3), real)
    assert (found.rows.train, found.rows.holdout, found.rows.kept_aside) == (675, 225, False)
    assert any("No holdout was given" in note and "were fitted too" in note for note in found.notes)
    assert found.utility.rows == {"synthetic": 300, "real": 675, "test": 225}


def test_how_far_it_is_is_said(schema, real, holdout, drawn):
    class Heard:
        def __init__(self):
            self.stages, self.done = [], []

        def stage(self, name, total=None):
            self.stages.append((name, total))

        def at(self, done):
            self.done.append((self.stages[-1][0], done))

    heard = Heard()
    evaluate_table(schema, drawn(900, 3), real, holdout, progress=heard)
    assert dict(heard.stages)["train models"] == 9
    assert heard.done == [("train models", number) for number in range(1, 10)]
    assert [name for name, _ in heard.stages].index("train models") == 1
    assert len(heard.stages) == 5


def test_a_kept_aside_holdout_is_not_apologised_for(good):
    assert good.rows.kept_aside
    assert not any("holdout" in note for note in good.notes)


def test_a_badly_served_group_is_found(schema, real, holdout, drawn):
    artificial = drawn(900, 3)
    # Synthetic rows of members have their labels turned round.
    turned = np.where(artificial["label"] == "yes", "no", "yes")
    artificial["label"] = np.where(artificial["member"], turned, artificial["label"])
    found = evaluate_table(schema, artificial, real, holdout)
    worst = found.groups.groups[0]
    assert (worst.column, worst.value, worst.clear) == ("member", "true", True)
    assert worst.loss > 0.3
    assert worst.loss_interval[0] < worst.loss < worst.loss_interval[1]
    assert worst.rows == (holdout["member"]).sum()
    assert worst.share.value == pytest.approx(artificial["member"].mean())
    assert worst.excess == pytest.approx(worst.loss - found.groups.everybody.loss)
    assert worst.excess_interval[0] < worst.excess < worst.excess_interval[1]
    assert any("member = true loses most" in line for line in verdict(found).lines)
    # The others lose because half of them are members: no more than everybody does.
    assert [(group.column, group.value) for group in found.groups.groups if group.clear] == [("member", "true")]


def test_where_everybody_loses_nobody_is_marked(schema, real, holdout, drawn):
    artificial = drawn(900, 3)
    swapped = np.random.default_rng(0).random(900) < 0.45
    artificial["label"] = np.where(swapped, np.where(artificial["label"] == "yes", "no", "yes"), artificial["label"])
    found = evaluate_table(schema, artificial, real, holdout)
    assert found.groups.everybody.loss_interval[0] > 0.05
    assert sum(group.loss_interval[0] > 0 for group in found.groups.groups) >= len(found.groups.groups) - 1
    assert not any(group.clear for group in found.groups.groups)
    assert (found.groups.everybody.excess, found.groups.everybody.excess_interval) == (0.0, None)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], ""),
        ([3.14], " One more group loses more than all rows do, 3.1 points."),
        ([6.04, 11.0, 2.0], " 3 more groups lose more than all rows do, 2.0 to 11.0 points."),
        ([2.01, 2.02], " 2 more groups lose more than all rows do, 2.0 points."),
    ],
)
def test_how_many_more_groups_lose_and_how_much(points, said):
    assert _lose_too(points) == said


def test_nobody_is_called_badly_served_by_chance(good):
    assert not any(group.clear for group in good.groups.groups)
    assert any("public groups clearly loses more" in line for line in verdict(good).lines)


def test_small_groups_are_left_out(schema, real, holdout, drawn):
    rare = drawn(600, 2)
    rare.loc[:9, "size"] = "L"
    rare.loc[10:, "size"] = np.where(np.arange(590) % 2, "S", "M")
    found = evaluate_table(schema, drawn(900, 3), real, rare)
    assert "L" not in [group.value for group in found.groups.groups if group.column == "size"]
    assert found.groups.too_small >= 1
    assert "label" not in found.groups.columns
    assert "number" not in found.groups.columns


def test_without_a_target_nothing_is_predicted(schema, real, holdout):
    columns = {name: column.model_copy(update={"roles": ()}) for name, column in schema.columns.items()}
    found = evaluate_table(schema.model_copy(update={"columns": columns}), holdout, real)
    assert found.utility is None
    assert found.groups is None
    assert "names no target" in found.utility_skipped
    assert {score.key for score in found.scores} == {
        *("overall", "closeness", "usefulness", "coherence", "columns", "pairs", "association", "wasserstein"),
        *("quantile_columns", "quantile_pairs", "k_marginal", "related_pairs", "special_values"),
        *("count_queries", "count_queries_relative"),
    }
    assert {pair.names for pair in found.marginals.relations.pairs} == {("number", "label"), ("colour", "label")}
    assert verdict(found).lines[-2].startswith("Total variation distance")


def test_a_target_of_one_value_is_not_predicted(schema, real, holdout):
    found = evaluate_table(schema, holdout, real.assign(label="no"), holdout)
    assert found.utility is None
    assert "one and the same target" in found.utility_skipped


def test_a_collapsed_synthesizer_is_measured_and_said_to_lose_a_class(schema, real, holdout):
    collapsed = real.iloc[[0] * 400].reset_index(drop=True).assign(label="no")
    found = evaluate_table(schema, collapsed, real, holdout)
    assert scores(found)["accuracy"].value == pytest.approx((holdout["label"] == "no").mean())
    said = verdict(found)
    assert any("No synthetic row has label = yes" in line for line in said.warnings)
    assert any("do better at" in line and "two-way TVD" in line for line in said.warnings)


def test_one_column_and_two_rows_are_enough():
    schema = Schema.parse(
        "{doublure: 1, kind: table, units: 2, columns: {x: {type: boolean, missing: false}}}"
    ).resolve({})
    found = evaluate_table(schema, pd.DataFrame({"x": [True]}), pd.DataFrame({"x": [True, False]}))
    assert [score.key for score in found.scores] == ["columns", "quantile_columns"]
    assert found.overall.closeness.undefined  # the other real row is as far away as a row can be
    assert not found.overall.usefulness.undefined
    assert found.overall.usefulness.score.value is None
    assert found.fidelity.n_pairs == 0


def test_one_real_row_cannot_be_split():
    schema = Schema.parse(
        "{doublure: 1, kind: table, units: 2, columns: {x: {type: boolean, missing: false}}}"
    ).resolve({})
    with pytest.raises(DataError, match="fewer than 2 rows"):
        evaluate_table(schema, pd.DataFrame({"x": [True]}), pd.DataFrame({"x": [True]}))


def test_verdict_of_a_good_synthesizer(good):
    said = verdict(good)
    (kept,) = (line for line in said.lines if "of the accuracy that real rows give" in line)
    assert "(independent columns: " in kept
    assert said.warnings == ()


@pytest.mark.parametrize("aside", [True, False])
def test_the_verdict_leads_with_the_worst_column_and_pair(schema, real, holdout, drawn, aside):
    """A planted column: two thirds of its values are moved. No other figure of the verdict names it."""
    planted = drawn(900, 3).assign(day=np.datetime64("2021-01-01", "s"))
    found = evaluate_table(schema, planted, real, holdout if aside else None)
    said, (column, pair) = verdict(found), found.marginals.furthest
    others = "real rows kept aside" if aside else "a quarter of the fitted rows"
    assert column.names == ("day",)
    assert "day" not in pair.names  # which is off by itself: the pair is about a relation
    assert column.variation.value > 0.9 > 0.2 > column.variation.real
    worst = f"Worst column: day, total variation distance (TVD) {100 * column.variation.value:.1f}\u00a0% ({others}: "
    assert said.headline.startswith(worst)
    assert said.lines[0].startswith(f"Worst pair: {' × '.join(pair.names)}, total variation distance (TVD)")
    assert f"100 is what {others} reach" in said.lines[1]


def test_a_table_nearer_than_other_real_rows_has_no_worst_column(schema, real, holdout):
    nearer = real.iloc[:600]  # as many as were kept aside, so that none is drawn
    said = verdict(evaluate_table(schema, nearer, nearer, holdout))
    assert said.headline.startswith("No column is further from the real rows than real rows kept aside are. Closest")
    assert said.lines[0].startswith("No pair is further")


def test_verdict_admits_that_nothing_can_be_predicted(schema, drawn):
    found = evaluate_table(schema, drawn(400, 3, 0.0), drawn(400, 4, 0.0), drawn(400, 5, 0.0))
    assert found.utility.scores[0].real < 0.65
    assert any("hardly predict" in line for line in verdict(found).lines)


def test_verdict_says_when_nothing_was_gained(schema, real, holdout):
    collapsed = real.iloc[[0] * 400].reset_index(drop=True).assign(label="no")
    said = verdict(evaluate_table(schema, collapsed, real, holdout))
    assert any(line.endswith("no more than independent columns do.") for line in said.lines)
