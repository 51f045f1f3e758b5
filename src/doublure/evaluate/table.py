"""Evaluate a table: everything at once, from frames."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Literal

import numpy as np
import pandas as pd

from doublure._version import __version__
from doublure.errors import DataError
from doublure.evaluate.baseline import independent_columns
from doublure.evaluate.coding import BINS, Coded, Coder
from doublure.evaluate.counts import Whole
from doublure.evaluate.features import target_of
from doublure.evaluate.fidelity import Fidelity, Tables, compare
from doublure.evaluate.groups import Groups, by_group
from doublure.evaluate.scores import Result, Score
from doublure.evaluate.shapes import Density, Frequencies, densities, frequencies
from doublure.evaluate.utility import MOST_ROWS, Taught, Utility, prepare, teach
from doublure.schema import ResolvedSchema

INTERNAL = "computed on real data: do not publish"
SEEN = "The fit has seen these rows: no holdout was given, so the real rows that test it are a quarter of its own."
"""What has to be said before any figure, where nothing was kept aside."""

_HELD_BACK = 4


class Rows(Result):
    """How many rows of each table were compared.

    Attributes:
        synthetic: Artificial rows.
        train: Real rows that they are compared with.
        holdout: Other real rows, for testing and as the floor.
        kept_aside: Whether the fit never saw the holdout; otherwise it is a quarter of the fitted rows.
    """

    synthetic: int
    train: int
    holdout: int
    kept_aside: bool


class TableEvaluation(Result):
    """Everything that was measured. Computed on real data: internal.

    Attributes:
        utility: Train on artificial, test on real; null where ``utility_skipped`` says why.
        groups: Who is served badly; null together with ``utility``.
        notes: What a reader has to know to read the figures right.
    """

    version: Literal[1] = 1
    internal: str = INTERNAL
    seed: int
    rows: Rows
    fidelity: Fidelity
    utility: Utility | None
    groups: Groups | None
    utility_skipped: str | None
    frequencies: tuple[Frequencies, ...]
    densities: tuple[Density, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures: prediction first, then distances."""
        return (*(self.utility.scores if self.utility else ()), *self.fidelity.scores)

    def to_json(self) -> str:
        """Return JSON text; what is not known is null."""
        return self.model_dump_json(indent=1)

    def __repr__(self) -> str:
        return f"TableEvaluation({INTERNAL})"

    __str__ = __repr__


def evaluate_table(
    schema: ResolvedSchema,
    synthetic: pd.DataFrame,
    train: pd.DataFrame,
    holdout: pd.DataFrame | None = None,
    *,
    unit: Whole | None = None,
    seed: int = 0,
) -> TableEvaluation:
    """Compare artificial rows with real ones.

    Args:
        schema: Every fact known.
        synthetic: Artificial rows.
        train: The real rows that the artificial ones were learned from.
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
    if holdout is None:
        if len(real) < 2:
            raise DataError("has fewer than 2 rows", field="the real table", remedy="give more, or a holdout")
        aside = held_back(np.arange(len(real)) if unit is None else unit, rng)
        real, test = real.take(np.flatnonzero(~aside)), real.take(np.flatnonzero(aside))
    else:
        test = coder.read(holdout, "the holdout")
    baseline = independent_columns(real, len(artificial), rng)
    tables = Tables(train=real, synthetic=artificial, baseline=baseline, holdout=test)
    fidelity, real_counts, artificial_counts = compare(coder, tables, rng)
    utility, groups, skipped = _utility(coder, tables, seed, rng)
    return TableEvaluation(
        seed=seed,
        rows=Rows(synthetic=len(artificial), train=len(real), holdout=len(test), kept_aside=holdout is not None),
        fidelity=fidelity,
        utility=utility,
        groups=groups,
        utility_skipped=skipped,
        frequencies=frequencies(coder, real_counts, artificial_counts),
        densities=densities(coder, real, artificial),
        notes=_notes(coder, fidelity, utility, holdout is not None),
        versions=versions(),
    )


def held_back(unit: Whole, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows are set aside: those of a quarter of the units, and of one at least."""
    units = np.unique(unit)
    if len(units) < 2:
        units = unit = np.arange(len(unit))
    chosen = rng.permutation(units)[: max(1, len(units) // _HELD_BACK)]
    return np.asarray(np.isin(unit, chosen), dtype=np.bool_)


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
    if not kept_aside:
        notes.append(
            "No holdout was given. A fixed quarter of the real rows is used for testing and as the floor. The fit has "
            "seen these rows; keep rows aside before fitting for a test that it has not seen."
        )
    if coder.schema.derived:
        notes.append("Columns that an equal constraint derives repeat another column and are left out.")
    if fidelity.sampled_columns is not None:
        notes.append(f"Pairs were looked at among {fidelity.sampled_columns} columns drawn uniformly.")
    if utility is not None and max(utility.rows.values()) == MOST_ROWS:
        notes.append(f"Classifiers learned from and were tested on at most {MOST_ROWS:,} rows, drawn uniformly.")
    if coder.schema.unit.id is not None:
        notes.append("Intervals treat rows as independent, although a unit may have several.")
    return tuple(notes)


def versions() -> dict[str, str]:
    """Return the versions that the figures were made with."""
    found = {"doublure": __version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in ("numpy", "pandas", "scikit-learn")}
