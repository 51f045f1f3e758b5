"""Columns of codes, level by level: chapters may be right where rare codes are not."""

from __future__ import annotations

import numpy as np

from doublure.intervals import Result
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.fidelity import Tables, variation
from doublure.support.arrays import Floats


class LevelFidelity(Result):
    """The groups of one column's codes at one level.

    Attributes:
        name: The column.
        level: The level's number in the schema; None for the codes themselves.
        variation: Total variation of the groups' shares to the real rows'.
    """

    name: str
    level: int | None
    variation: Score


class CodeLevels(Result):
    """All columns of codes.

    Attributes:
        levels: Each level of each column, the coarsest first, then the codes.
        unseen: The share of rows with a code that no real row has, the mean over columns.
    """

    levels: tuple[LevelFidelity, ...]
    unseen: Score

    @property
    def scores(self) -> tuple[Score, ...]:
        """The mean over all levels above codes, and the share of unseen codes."""
        above = [entry.variation for entry in self.levels if entry.level is not None]
        figures = {
            "value": _mean([score.value for score in above]),
            "baseline": _mean([score.baseline for score in above]),
            "real": _mean([score.real for score in above]),
        }
        means = "Total variation of the shares of groups of codes, over all levels above codes."
        return distance_score("code_groups", "Groups of codes", figures, means), self.unseen


def code_levels(coder: Coder, tables: Tables) -> CodeLevels | None:
    """Return the fidelity of columns of codes at each level; None where there are none."""
    found: list[LevelFidelity] = []
    unseen: list[dict[str, float]] = []
    for place, (name, column) in enumerate(coder.columns.items()):
        for level in column.level_numbers:
            names = np.unique(np.array([*column.grouped(level), ""]), return_inverse=True)[1]  # missing is one more
            found.append(_level(name, level, tables, place, names))
        if column.level_numbers:
            every = np.arange(len(column.domain) + 1)
            found.append(_level(name, None, tables, place, every))
            known = np.unique(tables.train.codes[:, place])
            unseen.append(
                {role: 1 - float(np.isin(own.codes[:, place], known).mean()) for role, own in tables.others.items()}
            )
    if not found:
        return None
    shares = {role: float(np.mean([each[role] for each in unseen])) for role in unseen[0]}
    score = distance_score("unseen_codes", "Codes that no real row has", shares, "The share of rows that have one.")
    return CodeLevels(levels=tuple(found), unseen=score)


def _level(name: str, level: int | None, tables: Tables, place: int, groups: np.ndarray) -> LevelFidelity:
    real = _shares(tables.train, place, groups)
    shares = {role: variation(real, _shares(own, place, groups)) for role, own in tables.others.items()}
    return LevelFidelity(name=name, level=level, variation=distance_score("variation", "total variation", shares))


def _shares(rows: Coded, place: int, groups: np.ndarray) -> Floats:
    counts = np.bincount(groups[rows.codes[:, place]], minlength=int(groups.max()) + 1)
    found: Floats = counts / max(1, len(rows))
    return found


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
