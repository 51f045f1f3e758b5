"""docs/evidence/evaluate.md names every figure of a table and every key of its report.json."""

import re
from pathlib import Path

import pytest

from doublure.evaluate import Report, TableEvaluation, evaluate_table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evidence" / "evaluate.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z_0-9.]+)`", PAGE))


@pytest.fixture(scope="module")
def evaluation(schema, real, holdout, drawn):
    """One in which real rows keep a rule, so that all figures are there."""
    whole, kept, made = real.copy(), holdout.copy(), drawn(900, 3)
    for frame in (whole, kept):
        frame["member"] = frame["colour"] == "red"
    return evaluate_table(schema, made, whole, kept)


def test_every_figure_is_described(evaluation):
    keys = {score.key for score in evaluation.scores}
    assert "broken_rules" in keys
    assert keys <= NAMED
    (figures,) = re.findall(r"## What is measured\n(.*?)\n\*\*Rules", PAGE, flags=re.DOTALL)
    others = {"code_groups", "unseen_codes", "code", "children", "transitions", "gaps", "order"}  # of codes, of visits
    assert set(re.findall(r"`([a-z_0-9]+)`", figures)) - others == keys


def test_every_key_is_described(evaluation):
    assert {f"table.{name}" for name in TableEvaluation.model_fields} <= NAMED
    assert set(Report.model_fields) - {"measured", "examples"} <= NAMED  # the latter is on the page alone
    for part in (
        evaluation.marginals,
        evaluation.marginals.relations,
        evaluation.special_values,
        evaluation.rules,
        evaluation.queries,
    ):
        assert set(type(part).model_fields) <= NAMED
    for part in (evaluation.regression, evaluation.utility, evaluation.overall, evaluation.rules.rules[0]):
        assert set(type(part).model_fields) <= NAMED
    listed = (evaluation.special_values.values, evaluation.summaries, evaluation.marginals.columns, evaluation.scores)
    for part, *_ in listed:
        assert set(type(part).model_fields) - {"column", "kind"} <= NAMED


def test_the_formulas_are_those_of_the_report(evaluation):
    for component in evaluation.overall.components:
        for part in component.parts:
            assert f"| {part.name} |" in PAGE
