"""One table in which a unit has several rows: their number, and how one follows another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from doublure.data.relational.records import RelatedRows
from doublure.data.relational.visits import split
from doublure.measures.holdout import split_real
from doublure.measures.relational.relations import relation
from doublure.measures.relational.units import ComparedUnits, UnitCoder, draw_independent
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score
from doublure.schema.visits import RECORDS, VisitsSchema
from doublure.support.arrays import Ints

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
                + " Independent: rows that belong to nobody.",
            }
        )
        for score in found.scores
        if score.key in _ASKED
    )
