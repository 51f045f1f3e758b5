"""Two-sample test of units: a classifier separates real from synthetic ones by their aggregated rows.

The features of a unit are the root's columns, and for each child table the number of rows, the mean, first and last of
each number, and the frequency of each value (:mod:`syntherela` aggregates in the same way: Hudovernik et al. 2024,
arXiv:2410.03411). Boosted trees are trained on half of both sets and rank the other half.
"""

from __future__ import annotations

import numpy as np

from doublure.measures.relational.units import CodedUnits, ComparedUnits, UnitCoder
from doublure.measures.scores import Score
from doublure.support.arrays import Floats

MOST_COMPARED = 20_000
"""Most units of a set that the classifier uses."""

_VALUES = 12
"""Most values of a column whose frequencies are features; beyond, its codes are used as numbers."""


def aggregates(coders: UnitCoder, units: CodedUnits, hidden: tuple[str, str] | None = None) -> Floats:
    """Return the ``(N, d)`` features of units; NaN where there are no rows to aggregate.

    Args:
        coders: Read the schema.
        units: The units.
        hidden: A table and a column of it that are left out.
    """
    root = units.content.schema.root
    shown = [place for place, name in enumerate(coders.root.names) if (root, name) != hidden]
    found = [units.root.codes[:, shown].astype(np.float64)]
    for child, coder in coders.children.items():
        many = units.content.counts(child)
        found.append(many[:, None].astype(np.float64))
        rows = units.children[child]
        for place, (name, size) in enumerate(zip(coder.names, coder.sizes, strict=True)):
            if (child, name) == hidden:
                continue
            codes = np.zeros(0) if rows is None else rows.codes[:, place].astype(np.float64)
            found.append(_of_column(codes, units.owners(child), many, size))
    return np.concatenate(found, axis=1)


def _of_column(codes: Floats, owners: np.ndarray, many: np.ndarray, size: int) -> Floats:
    units, some = len(many), many > 0
    last = np.cumsum(many)
    first = last - many
    ends = np.full((units, 2), np.nan)
    ends[some, 0], ends[some, 1] = codes[first[some]], codes[last[some] - 1]
    if size <= _VALUES:
        counts = np.bincount(owners * size + codes.astype(np.int64), minlength=units * size).reshape(units, size)
        shares = np.where(some[:, None], counts / np.maximum(many, 1)[:, None], np.nan)
        return np.concatenate([shares, ends], axis=1)
    mean = np.where(some, np.bincount(owners, codes, units) / np.maximum(many, 1), np.nan)
    square = np.where(some, np.bincount(owners, codes.astype(np.float64) ** 2, units) / np.maximum(many, 1), np.nan)
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    return np.concatenate([mean[:, None], spread[:, None], ends], axis=1)


def two_sample(coders: UnitCoder, sides: ComparedUnits, seed: int) -> Score:
    """Return the performance of a classifier that separates each set of units from the real ones.

    Args:
        coders: Read the schema.
        sides: The units.
        seed: Fixes halves and trees.
    """
    real = aggregates(coders, sides.train)
    figures = {role: _auc(real, aggregates(coders, units), seed) for role, units in sides.others.items()}
    return Score(
        key="discriminative",
        name="Two-sample AUC, units",
        goal="low",
        range=(0.5, 1.0),
        meaning="How well a classifier tells synthetic units from real ones by the root's row and what their rows add "
        "up to; 0.5 is not at all.",
        **figures,
    )


def _auc(real: Floats, other: Floats, seed: int) -> float | None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(seed)
    size = min(len(real), len(other), MOST_COMPARED)
    if size < 4:
        return None
    rows = np.concatenate([rng.permutation(real)[:size], rng.permutation(other)[:size]])
    label = np.repeat([0, 1], size)
    half = np.arange(len(rows)) % 2 == 0
    model = HistGradientBoostingClassifier(max_iter=100, random_state=seed)
    model.fit(rows[half], label[half])
    found = float(roc_auc_score(label[~half], model.predict_proba(rows[~half])[:, 1]))
    return max(0.5, found)
