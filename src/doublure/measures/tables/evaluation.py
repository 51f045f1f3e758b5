"""Evaluate a table: everything at once, from frames."""

from __future__ import annotations

import numpy as np
import pandas as pd

from doublure.errors import DataError
from doublure.measures.evaluation import Evaluation
from doublure.measures.holdout import seen_note, sides
from doublure.measures.scores import Score
from doublure.measures.tables.baseline import independent_columns
from doublure.measures.tables.coding import BINS, Coded, Coder
from doublure.measures.tables.counts import Whole
from doublure.measures.tables.declared_rules import BrokenRule, broken_rules, sentence
from doublure.measures.tables.distributions import Density, Frequencies, densities, frequencies
from doublure.measures.tables.features import target_of
from doublure.measures.tables.fidelity import Fidelity, Tables, compare
from doublure.measures.tables.groups import Groups, by_group
from doublure.measures.tables.utility import MOST_ROWS, Taught, Utility, prepare, teach
from doublure.measures.tables.verdict import verdict
from doublure.results import Verdict, versions
from doublure.schema import ResolvedSchema


class TableEvaluation(Evaluation):
    """Everything that was measured of a table. Computed on real data: internal.

    Attributes:
        utility: Train on synthetic, test on real; null where ``utility_skipped`` says why.
        groups: Subgroup accuracy; null together with ``utility``.
        declared_rules: Each declared rule, with the artificial and the real rows that break it.
    """

    fidelity: Fidelity
    utility: Utility | None
    groups: Groups | None
    utility_skipped: str | None
    frequencies: tuple[Frequencies, ...]
    densities: tuple[Density, ...]
    declared_rules: tuple[BrokenRule, ...]

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures: prediction first, then distances."""
        return (*(self.utility.scores if self.utility else ()), *self.fidelity.scores)

    @property
    def verdict(self) -> Verdict:
        """The evaluation in plain words."""
        return verdict(self.scores, self.utility, self.groups, kept_aside=self.rows.kept_aside)


def evaluate_table(
    schema: ResolvedSchema,
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    holdout: pd.DataFrame | None = None,
    *,
    unit: Whole | None = None,
    seed: int = 0,
) -> TableEvaluation:
    """Compare synthetic rows with real ones.

    Args:
        schema: Every fact known.
        synthetic: Synthetic rows.
        train: The real rows that the synthetic ones were learned from.
        holdout: Real rows kept aside. Without them a fixed quarter of ``train`` takes their place (and leaves
            ``train``), which the notes say: the fit has seen them.
        unit: ``(N,)`` the unit of each row of ``train``, so that a unit's rows stay together in the split.
        seed: Fixes every random choice made here.

    Raises:
        DataError: A table lacks a column of the schema, or has cells that do not fit it.
    """
    rng = np.random.default_rng(seed)
    coder = Coder(schema=schema)
    if not coder.names:
        raise DataError("has no column that can be compared", field="schema", remedy="describe one that is no id")
    artificial = coder.read(synthetic, "the artificial table")
    real = coder.read(train, "the real table")
    kept = None if holdout is None else coder.read(holdout, "the holdout")
    both = sides(real, kept, unit, rng, field="the real table", records="rows")
    baseline = independent_columns(both.train, len(artificial), rng)
    tables = Tables(train=both.train, synthetic=artificial, baseline=baseline, holdout=both.test)
    fidelity, real_counts, artificial_counts = compare(coder, tables, rng)
    utility, groups, skipped = _utility(coder, tables, seed, rng)
    declared = broken_rules(schema, synthetic, train)
    return TableEvaluation(
        seed=seed,
        rows=both.rows(len(artificial)),
        fidelity=fidelity,
        utility=utility,
        groups=groups,
        utility_skipped=skipped,
        frequencies=frequencies(coder, real_counts, artificial_counts),
        densities=densities(coder, both.train, artificial),
        declared_rules=declared,
        notes=(*_notes(coder, fidelity, utility, both.kept_aside), *([sentence(declared)] if declared else [])),
        versions=versions(),
    )


def _utility(
    coder: Coder, tables: Tables, seed: int, rng: np.random.Generator
) -> tuple[Utility | None, Groups | None, str | None]:
    target = target_of(coder, tables.train)
    if target is None:
        return None, None, "The schema names no target (roles: [target]), so nothing was predicted."
    taught: dict[Taught, Coded] = {"value": tables.synthetic, "baseline": tables.baseline, "real": tables.train}
    lessons = prepare(coder, target, taught, tables.holdout, rng)
    if isinstance(lessons, str):
        return None, None, f"Nothing was predicted: {lessons}."
    utility, guesses = teach(target, lessons, seed, rng)
    return utility, by_group(coder, target, lessons, guesses, taught), None


def _notes(coder: Coder, fidelity: Fidelity, utility: Utility | None, kept_aside: bool) -> tuple[str, ...]:
    notes = [
        f"Numbers are cut into at most {BINS} bins by the schema’s public bounds; a missing cell is a value of its own."
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
