"""Evaluation of synthetic tables."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import SerializerFunctionWrapHandler, model_serializer
from typing_extensions import override

from doublure.errors import DataError, counted
from doublure.measures.evaluation import Evaluation
from doublure.measures.holdout import seen_note, split_real
from doublure.measures.registry import add_registered
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score
from doublure.measures.tables.baseline import independent_columns
from doublure.measures.tables.code_levels import CodeLevels, code_levels
from doublure.measures.tables.coding import BINS, Coded, Coder
from doublure.measures.tables.count_queries import CountQueries, count_queries
from doublure.measures.tables.counts import Whole, count
from doublure.measures.tables.distributions import (
    ColumnFrequencies,
    NumberDensity,
    densities,
    frequencies,
)
from doublure.measures.tables.features import TargetClasses, find_target
from doublure.measures.tables.fidelity import Fidelity, Tables, compare
from doublure.measures.tables.groups import Subgroups, by_group
from doublure.measures.tables.marginals import Marginals, marginals
from doublure.measures.tables.overall import OverallScore, overall
from doublure.measures.tables.quantiles import JOINT_BINS, ONE_WAY_BINS
from doublure.measures.tables.regression import Regression, regression
from doublure.measures.tables.rules import RuleViolations, StateRules, broken_declared_rules, rules, sentence
from doublure.measures.tables.special_values import SpecialValues, special_values
from doublure.measures.tables.summaries import NumberSummary, summaries
from doublure.measures.tables.unlisted import UnlistedValues, open_lists
from doublure.measures.tables.utility import MOST_ROWS, TrainedOn, Utility, measured_utility, prepare
from doublure.measures.tables.verdict import beaten_scores, verdict
from doublure.measures.tables.weighted import WeightedFigures, weighted_figures
from doublure.results import Verdict, versions
from doublure.schema import ResolvedSchema
from doublure.support.progress import Progress, SilentProgress


class TableEvaluation(Evaluation):
    """All measurements of a table. Computed on real data: internal.

    Attributes:
        overall: One score from 0 to 100, and its components.
        fidelity: Distances in public bins.
        marginals: Distances in quantile bins of the real rows; the k-marginal score.
        special_values: Missing cells, zeros, negative numbers, top codes, repeated and round values.
        summaries: Each number's mean, standard deviation and 99th percentile.
        rules: Combinations that real rows never have, and their frequency in synthetic rows.
        queries: Errors of random count queries.
        utility: Train on synthetic, test on real; null where ``utility_skipped`` says why.
        groups: Subgroup accuracy; null together with ``utility``.
        regression: The coefficients of the target's regression; null without a target, or where none is clear.
        declared_rules: Each declared rule, with the synthetic and the real rows that break it.
        weighted: Weighted totals, means and shares; null without a weight.
        code_levels: Columns of codes, level by level; left out where there are none.
        unlisted: Columns of which real rows have values outside the synthesizer's list; left out where there are none.
    """

    kind: ClassVar[str] = "table"

    overall: OverallScore
    fidelity: Fidelity
    marginals: Marginals
    special_values: SpecialValues
    summaries: tuple[NumberSummary, ...]
    rules: StateRules
    queries: CountQueries
    utility: Utility | None
    groups: Subgroups | None
    regression: Regression | None
    utility_skipped: str | None
    frequencies: tuple[ColumnFrequencies, ...]
    densities: tuple[NumberDensity, ...]
    declared_rules: tuple[RuleViolations, ...]
    weighted: WeightedFigures | None = None
    code_levels: CodeLevels | None = None
    unlisted: tuple[UnlistedValues, ...] = ()

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return {key: value for key, value in found.items() if value or key not in ("code_levels", "unlisted")}

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures: the overall score, prediction, distances, then queries and rules."""
        special = self.special_values.score
        return (
            *self.overall.scores,
            *(self.utility.scores if self.utility else ()),
            *(self.regression.scores if self.regression else ()),
            *self.fidelity.scores,
            *(self.code_levels.scores if self.code_levels else ()),
            *self.marginals.scores,
            *self._related,
            *(() if special is None else (special,)),
            *((self.rules.score,) if self.rules.rules else ()),
            *self.queries.scores,
            *self.added,
        )

    @property
    def _related(self) -> tuple[Score, ...]:
        found = self.marginals.relations
        return () if found is None or found.variation is None else (found.variation,)

    @property
    @override
    def verdict(self) -> Verdict:
        return verdict(
            self.scores,
            self.utility,
            self.groups,
            self.rules,
            self.special_values,
            self.summaries,
            self.overall,
            self.marginals,
            self.unlisted,
            kept_aside=self.rows.kept_aside,
        )

    @property
    @override
    def beaten(self) -> frozenset[str]:
        return frozenset(score.key for score in beaten_scores(self.scores))


def evaluate_table(
    schema: ResolvedSchema,
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    holdout: pd.DataFrame | None = None,
    *,
    unit: Whole | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    resamples: Resamples | None = None,
) -> TableEvaluation:
    """Compare synthetic rows with real ones.

    Args:
        schema: Every fact known.
        synthetic: Synthetic rows.
        train: The real rows the synthesizer was fitted on.
        holdout: Real rows kept aside. Without them a fixed quarter of ``train`` takes their place (and leaves
            ``train``); the notes say so, as the fit has seen them.
        unit: ``(N,)`` the unit of each row of ``train``, so that a unit's rows stay together in the split.
        seed: Fixes every random choice made here.
        progress: Receives progress events.
        resamples: Receives resampled figures, for a comparison of several runs; its own if not given.

    Raises:
        DataError: A table lacks a column of the schema, or has cells that do not fit it.
    """
    listener = progress or SilentProgress()
    rng = np.random.default_rng(seed)
    listed, (schema, unlisted) = schema, open_lists(schema, train, holdout)
    coder = Coder(schema=schema)
    if not coder.names:
        raise DataError("has no column that can be compared", field="schema", remedy="describe one that is no id")
    artificial = coder.read(synthetic, "the synthetic table")
    real = coder.read(train, "the real table")
    kept = None if holdout is None else coder.read(holdout, "the holdout")
    both = split_real(real, kept, unit, rng, field="the real table", records="rows")
    baseline = independent_columns(both.train, len(artificial), rng)
    resampled = resamples or Resamples(seed=seed)
    tables = Tables(train=both.train, synthetic=artificial, baseline=baseline, holdout=both.test, resamples=resampled)
    even = tables.evened(np.random.default_rng([seed, 4]))
    listener.stage("compare columns and pairs")
    fidelity, real_counts = compare(coder, even, rng)
    target = find_target(coder, both.train)
    utility, groups, skipped = _utility(coder, target, tables, seed, rng, listener)
    # A stream for each measure: its draws do not depend on how many another one used, which depends on the rows.
    of_regression, of_marginals, of_queries = (np.random.default_rng([seed, number]) for number in (1, 2, 3))
    listener.stage("compare regressions")
    explained = None if target is None or utility is None else regression(coder, target, tables, of_regression)
    listener.stage("compare triples, and rules")
    finer, kept_rules = marginals(coder, even, of_marginals), rules(coder, tables)
    listener.stage("compare counts")
    asked = count_queries(coder, even, of_queries)
    declared = broken_declared_rules(listed, synthetic, train)
    found = TableEvaluation(
        seed=seed,
        rows=both.rows(len(artificial)),
        overall=overall(finer, utility, explained, asked, kept_rules, resampled),
        fidelity=fidelity,
        marginals=finer,
        special_values=special_values(coder, tables),
        summaries=summaries(coder, tables),
        rules=kept_rules,
        queries=asked,
        regression=explained,
        utility=utility,
        groups=groups,
        utility_skipped=skipped,
        frequencies=frequencies(coder, real_counts, count(artificial.codes, coder.sizes, [])),
        densities=densities(coder, both.train, artificial),
        declared_rules=declared,
        weighted=weighted_figures(coder, tables),
        code_levels=code_levels(coder, even),
        unlisted=unlisted,
        notes=(*_notes(coder, even, fidelity, utility, both.kept_aside), *([sentence(declared)] if declared else [])),
        versions=versions(),
    )
    return add_registered(found, coder, tables)


def _utility(
    coder: Coder, target: TargetClasses | None, tables: Tables, seed: int, rng: np.random.Generator, progress: Progress
) -> tuple[Utility | None, Subgroups | None, str | None]:
    if target is None:
        return None, None, "The schema names no target (roles: [target]), so nothing was predicted."
    trained: dict[TrainedOn, Coded] = {"value": tables.synthetic, "baseline": tables.baseline, "real": tables.train}
    training_sets = prepare(coder, target, trained, tables.holdout, rng)
    if isinstance(training_sets, str):
        return None, None, f"Nothing was predicted: {training_sets}."
    utility, guesses = measured_utility(target, training_sets, seed, rng, progress, tables.resamples)
    return utility, by_group(coder, target, training_sets, guesses, trained), None


def _notes(
    coder: Coder, even: Tables, fidelity: Fidelity, utility: Utility | None, kept_aside: bool
) -> tuple[str, ...]:
    notes = [
        f"Distances are those of {counted(len(even.synthetic), 'row')} of each set: fewer rows are further away by "
        "chance.",
        f"Numbers are cut into at most {BINS} bins by the schema’s public bounds. A missing cell is a value of its "
        "own.",
        f"Quantile bins follow the real rows: {ONE_WAY_BINS} where columns stand alone, {JOINT_BINS} where two or "
        "three are looked at together. A value that half as many rows share as a bin holds has one of its own.",
    ]
    notes += seen_note(kept_aside, "rows", "real rows")
    if coder.schema.repeated:
        notes.append("Columns that an equal constraint derives repeat another column and are left out.")
    if fidelity.sampled_columns is not None:
        notes.append(f"Pairs were looked at among {fidelity.sampled_columns} columns drawn uniformly.")
    if utility is not None and max(utility.rows.values()) == MOST_ROWS:
        notes.append(f"Classifiers learned from and were tested on at most {MOST_ROWS:,} rows, drawn uniformly.")
    if coder.schema.unit.id is not None:
        notes.append("Intervals treat rows as independent, although a unit may have several.")
    return tuple(notes)
