"""Evaluation of related tables: each table by itself, then the relations between tables.

Every figure of a relation has two references. *Independent tables* has real rows in each table and real numbers of rows
per unit, but no row belongs to its parent. *Real* is the best to hope for: other real units. All of it is computed on
real data: internal.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.relational.records import RelatedRows
from doublure.data.relational.visits import split
from doublure.measures.evaluation import Evaluation
from doublure.measures.holdout import seen_note, seen_warning, split_real
from doublure.measures.registry import add_registered
from doublure.measures.relational.histories import MOST_COMPARED, two_sample
from doublure.measures.relational.prediction import prediction
from doublure.measures.relational.relations import MOST_DEPENDENT, ChildRelation, relation, say_lost_pairs
from doublure.measures.relational.units import ComparedUnits, UnitCoder, draw_independent, read_units
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score, figure
from doublure.measures.tables.evaluation import TableEvaluation, evaluate_table
from doublure.measures.tables.verdict import say_lost
from doublure.results import Verdict, versions
from doublure.schema import ResolvedSchema
from doublure.schema.relational import RelationalSchema
from doublure.schema.visits import RECORDS, VisitsSchema
from doublure.support.arrays import Ints
from doublure.support.progress import Progress, SilentProgress

MOST_UNITS = 100_000
"""Default limit of synthetic units drawn."""


class RelationalEvaluation(Evaluation):
    """All measurements of related tables. Computed on real data: internal.

    Attributes:
        tables: Table -> its own evaluation; tables without a row are left out.
        relations: The relation of each child table to the root.
        units: Performance of a classifier that separates synthetic units from real ones.
        prediction: Ranking of real units by the schema's target, by a model trained on synthetic units.
    """

    kind: ClassVar[str] = "relational"

    tables: Mapping[str, TableEvaluation]
    relations: tuple[ChildRelation, ...]
    units: Score
    prediction: Score | None = None

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures: of relations, of whole units, of the target, then each table's overall score."""
        of_tables = (
            score.model_copy(update={"key": f"overall {name}", "name": f"Overall, {name}"})
            for name, table in self.tables.items()
            for score in (table.overall.score,)
        )
        keyed = (
            score.model_copy(update={"key": f"{score.key} {found.child}"})
            for found in self.relations
            for score in found.scores
        )
        return (*keyed, self.units, *self._predicted, *of_tables, *self.added)

    @property
    def _predicted(self) -> tuple[Score, ...]:
        return () if self.prediction is None else (self.prediction,)

    @property
    @override
    def verdict(self) -> Verdict:
        told = self.units
        lost = [*chain.from_iterable(say_lost_pairs(found) for found in self.relations)]
        lost += [
            f"{name}: {line}"
            for name, table in self.tables.items()
            if table.marginals.relations is not None and table.marginals.relations.lost
            for line in say_lost(table.marginals.relations)
        ]
        lines = [
            f"{score.name}: {figure(score, score.value)} (other real units: {figure(score, score.real)}; independent "
            f"tables: {figure(score, score.baseline)})."
            for score in (*(score for found in self.relations for score in found.scores), *self._predicted)
        ]
        for name, table in self.tables.items():
            alone = table.verdict
            lines += [f"{name}: {line}" for line in (alone.headline, *alone.lines[:2]) if f"{name}: {line}" not in lost]
        warnings = [
            f"{found.child}: independent tables are as near ({score.name})."
            for found in self.relations
            for score in found.scores
            if score.key in ("parent_child", "transitions")
            and score.value is not None
            and score.baseline is not None
            and score.value >= score.baseline
        ]
        seen = {*seen_warning(self.rows.kept_aside, "units"), *seen_warning(self.rows.kept_aside)}  # said once
        warnings += [
            f"{name}: {said}"
            for name, table in self.tables.items()
            for said in table.verdict.warnings
            if said not in seen
        ]
        first, *others = [
            *lost,
            f"Two-sample AUC of units: {figure(told, told.value)} (other real units: "
            f"{figure(told, told.real)}; independent tables: {figure(told, told.baseline)}). At 0.5 a classifier "
            "cannot distinguish them.",
        ]
        return Verdict(
            headline=first,
            lines=(*others, *lines),
            warnings=(*seen_warning(self.rows.kept_aside, "units"), *warnings),
        )


def evaluate_related(
    schema: RelationalSchema,
    synthetic: Any,
    train: Any,
    holdout: Any = None,
    *,
    unit: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    tables: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
    resamples: Resamples | None = None,
) -> RelationalEvaluation:
    """Compare synthetic units with real ones.

    Args:
        schema: Every fact known.
        synthetic: Synthetic units: a mapping of frames, or :class:`doublure.data.relational.RelatedRows`.
        train: The real units the synthesizer was fitted on.
        holdout: Real units kept aside. Without them a fixed quarter of ``train`` takes their place (and leaves
            ``train``); the notes say so, as the fit has seen them.
        unit: Ignored: each row of the root is a unit.
        tables: Whether each table is measured by itself.
        seed: Fixes every random choice made here.
        progress: Receives progress events.
        resamples: Receives resampled figures, for a comparison of several runs; its own if not given.

    Raises:
        DataError: A table lacks a column of the schema, or has cells that do not fit it.
    """
    del unit
    rng = np.random.default_rng(seed)
    kept = None if holdout is None else read_units(schema, holdout)
    both = split_real(read_units(schema, train), kept, None, rng, field="the real tables", records="units")
    artificial, coders = read_units(schema, synthetic), UnitCoder.of(schema, both.train, both.test)
    compared = ComparedUnits(
        train=coders.read(both.train, "the real tables"),
        synthetic=coders.read(artificial, "the synthetic tables"),
        baseline=coders.read(draw_independent(both.train, len(artificial), rng), "independent tables"),
        test=coders.read(both.test, "the holdout"),
    )
    even = compared.evened(coders, np.random.default_rng([seed, 4]))
    listener, own = progress or SilentProgress(), {}
    resampled = resamples or Resamples(seed=seed)
    for name in schema.tables if tables else ():
        frames = [each.frames[name] for each in (artificial, both.train, both.test)]
        if all(len(frame) for frame in frames):
            alone = Resamples(seed=seed, run=resampled.run)
            own[name] = evaluate_table(
                ResolvedSchema.of(schema.linked(name)), *frames, seed=seed, progress=listener, resamples=alone
            )
            if (overall := alone.of("overall")) is not None:
                resampled.keep(f"overall {name}", "value", overall)
    listener.stage("compare parents and children")
    found = RelationalEvaluation(
        seed=seed,
        rows=both.rows(len(artificial)),
        tables=own,
        relations=tuple(relation(coders, even, child, seed, resampled) for child in schema.children),
        units=two_sample(coders, compared, seed),
        prediction=prediction(coders, compared, seed, resampled),
        notes=_notes(both.kept_aside),
        versions=versions(),
    )
    return add_registered(found, coders, compared)


def _notes(kept_aside: bool) -> tuple[str, ...]:
    return (
        "Independent tables has real rows in each table and real numbers of rows a unit, drawn independently: each "
        "table right by itself, and nothing hangs together.",
        f"Parent and child: the {MOST_DEPENDENT} pairs of columns that depend on one another most in real rows "
        "(Cramér's V). Numbers are cut by the schema's public bounds.",
        f"Two-sample AUC: boosted trees on at most {MOST_COMPARED:,} units of each set, trained on half of both and "
        "tested on the other halves. A model of the target learns from as many, and ranks real units kept aside.",
        "Intervals of a table's own figures treat rows as independent, although a unit has several.",
        *seen_note(kept_aside, "units", "units"),
    )


_ASKED = ("children", "transitions", "gaps")


def visit_scores(
    schema: VisitsSchema,
    synthetic: pd.DataFrame,
    train: tuple[pd.DataFrame, Ints],
    holdout: tuple[pd.DataFrame, Ints] | None,
    seed: int,
) -> tuple[Score, ...]:
    """Return what a table of rows does not show: each unit's rows, against real units.

    Args:
        schema: Every fact known.
        synthetic: Synthetic rows, with their units' ids.
        train: The real rows that were fitted, and the unit of each.
        holdout: Other real rows, and the unit of each; a quarter of the fitted units if not given.
        seed: Fixes every random choice made here.
    """

    def units(rows: pd.DataFrame, ids: Any) -> RelatedRows:
        return split(rows, pd.Series(ids), schema).content

    rng = np.random.default_rng([seed, 5])
    kept = None if holdout is None else units(*holdout)
    both = split_real(units(*train), kept, None, rng, field="the real table", records="units")
    names = [name for name, column in schema.columns.items() if column.modelled]
    made, coders = (
        units(synthetic[names], synthetic[schema.unit.id]),
        UnitCoder.of(schema.related, both.train, both.test),
    )
    compared = ComparedUnits(
        train=coders.read(both.train, "the real table"),
        synthetic=coders.read(made, "the synthetic table"),
        baseline=coders.read(draw_independent(both.train, len(made), rng), "independent rows"),
        test=coders.read(both.test, "the holdout"),
    ).evened(coders, rng)
    found = relation(coders, compared, RECORDS, seed, Resamples(seed=seed))
    whose = f"rows of a {schema.unit.name}"
    return tuple(
        score.model_copy(
            update={
                "name": score.name.replace(f"Rows of {RECORDS}", whose.capitalize()).replace(RECORDS, whose),
                "meaning": score.meaning.replace(f"row of {RECORDS}", f"row of a {schema.unit.name}").replace(
                    RECORDS, whose
                )
                + " Independent: rows without a parent.",
            }
        )
        for score in found.scores
        if score.key in _ASKED
    )
