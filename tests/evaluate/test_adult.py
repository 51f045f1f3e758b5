"""The whole evaluation on real data: the bundled training split of UCI Adult."""

from importlib import resources

import pytest

from doublure.data.tables.opening import open_table
from doublure.evaluate import evaluate_table, verdict
from doublure.schema import Schema

ROWS = 2_500


@pytest.fixture(scope="module")
def adult():
    folder = resources.files("doublure") / "datasets" / "bundled"
    schema = Schema.load(folder / "adult.schema.yaml")
    answers = {"bounds": [10_000, 1_500_000], "shares": {"<=50K": 0.75, ">50K": 0.25}}
    schema = schema.resolve({question.path: answers[question.fact] for question in schema.questions})
    frame = open_table(folder / "adult_train.csv.xz").load(schema).frame.sample(3 * ROWS, random_state=0)
    parts = [frame.iloc[start : start + ROWS].reset_index(drop=True) for start in (0, ROWS, 2 * ROWS)]
    return schema, *parts


def by_key(evaluation):
    return {score.key: score for score in evaluation.scores}


def test_other_real_rows_are_as_good_as_real_rows(adult):
    schema, train, holdout, other = adult
    evaluation = evaluate_table(schema, other, train, holdout)
    found = by_key(evaluation)
    assert found["accuracy"].real > 0.82
    assert found["accuracy"].value == pytest.approx(found["accuracy"].real, abs=0.03)
    assert found["auc"].way > 0.9
    assert found["association"].value < 0.5 * found["association"].baseline
    assert verdict(evaluation).warnings == ()
    # education-num repeats education and is not measured twice.
    assert "education-num" not in [column.name for column in evaluation.fidelity.columns]


def test_shuffled_columns_are_seen_through(adult, shuffle_columns):
    schema, train, holdout, _ = adult
    evaluation = evaluate_table(schema, shuffle_columns(train), train, holdout)
    found = by_key(evaluation)
    assert found["columns"].value == pytest.approx(0, abs=1e-12)
    assert found["accuracy"].way < 0.2
    assert found["association"].value > 5 * found["association"].real
    assert any(group.clear for group in evaluation.groups.groups)
    assert "loses most against training on real rows" in " ".join(verdict(evaluation).lines)
