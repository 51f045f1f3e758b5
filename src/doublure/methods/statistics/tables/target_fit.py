"""A logistic model of the column that is drawn last, fitted to noisy tables by post-processing.

Each column was counted within the target. The model has an effect for every group of every column, and is fitted so
that the target of *drawn* rows agrees with those tables as far as their noise allows. It thereby accounts for the
dependence between columns in the rows that will be drawn. A group that clearly never has a value of the target never
gets it.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse, special

from doublure.methods.statistics.tables.leaves import Floats, Ints
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts

_RIDGE = 1.0
_ROUGH = 4.0
_STEPS, _REMEMBERED = 150, 20
_FLAT, _STILL = 1e-4, 1e-9
"""Settings of L-BFGS: steps, corrections kept, and the gradient and the relative decrease at which it ends."""
_NEVER = -12.0
_SURE = 10.0


def fit_target(
    nodes: list[Node],
    tables: list[NoisyCounts],
    target: tuple[Floats, float],
    groups: Ints,
    known: Floats,
    excluded: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the logits of each value ``(V,)``, and the effects of each group of each node ``(sum of groups, V)``.

    Args:
        nodes: The columns' nodes.
        tables: For each node its noisy table with the target, ``(m, V)``.
        target: ``(V,)`` rows of each value, and one over their variance.
        groups: ``(N, nodes)`` the groups of drawn rows.
        known: ``(N, V)`` logits of each value in the rows' components.
        excluded: ``(sum of groups, V)`` logits of values that a group rules out; None: none are.
    """
    totals, precision = target
    rate = totals / totals.sum()
    sizes = [node.size for node in nodes]
    marks = sparse.csr_array(
        (np.ones(groups.size), (groups + (np.cumsum(sizes) - sizes)).ravel(), np.arange(len(groups) + 1) * len(nodes)),
        shape=(len(groups), sum(sizes)),
    )
    marked = sparse.csr_array(marks.T)
    counts = np.concatenate([table.counts for table in tables])
    weight = np.repeat([1 / table.variance for table in tables], sizes)[:, None]
    never = np.concatenate([_never(*pair, rate) for pair in zip(nodes, tables, strict=True)])
    never = never if excluded is None else np.minimum(never, excluded)
    neighbours = np.concatenate([node.neighbours for node in nodes])[:-1].astype(np.float64)[:, None]
    # From here on rows lie along the last axis: sums over few values, side by side, are slow.
    scale, values, met, known = totals.sum() / len(groups), len(rate), marked.sum(1), known.T.copy()

    def by_group(start: Floats, each: Floats) -> Floats:
        """Add what groups do to rows ``(V, N)``, less the last value: softmax and slope see differences alone."""
        start[:-1] += (marks @ (each[:, :-1] - each[:, -1:])).T
        return start

    def loss(moving: Floats) -> tuple[float, Floats]:
        bias, effects = moving[:values], moving[values:].reshape(counts.shape)
        chances = special.softmax(by_group(bias[:, None] + known, effects + never), axis=0)
        first = marked @ chances[:-1].T
        apart = np.column_stack([first, met - first.sum(1)]) * scale - counts
        total = chances.T.copy().sum(0) * scale - totals
        between = np.diff(effects, axis=0)
        uneven = between * neighbours
        missed = (apart**2 * weight).sum() + (total**2).sum() * precision
        lost = missed + _RIDGE * (effects**2).sum() + _ROUGH * (between * uneven).sum()
        slope = 2 * scale * by_group(np.zeros(known.shape) + (total * precision)[:, None], apart * weight)
        slope = chances * (slope - (chances * slope).sum(0))
        first = marked @ slope[:-1].T
        moved = np.column_stack([first, -first.sum(1)]) + 2 * _RIDGE * effects
        moved[1:] += 2 * _ROUGH * uneven
        moved[:-1] -= 2 * _ROUGH * uneven
        return float(lost), np.concatenate([slope.T.copy().sum(0), moved.ravel()])

    found = optimize.minimize(
        loss, np.concatenate([np.log(rate), np.zeros(counts.size)]), jac=True, method="L-BFGS-B",
        options={"maxiter": _STEPS, "maxcor": _REMEMBERED, "gtol": _FLAT, "ftol": _STILL},
    ).x  # fmt: skip
    return found[:values], found[values:].reshape(counts.shape) + never


def _never(node: Node, table: NoisyCounts, rate: Floats) -> Floats:
    """Return logits ``(m, V)`` that exclude values of the target which a group clearly does not have."""
    noise, expected = np.sqrt(table.variance), node.believed[:, None] * rate
    return np.where((table.counts < noise) & (expected > _SURE * noise), _NEVER, 0.0)
