"""The column that is drawn last, as a logistic model of all others: post-processing of noisy tables.

Each column was counted within the target. The model adds an effect for every group of every column, and is fitted so
that the target of *drawn* rows agrees with those tables as far as their noise allows: what others say of the target
beside a column is then taken into account, as it is in the rows that will be drawn. Groups that clearly never have a
value of the target never get it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy import sparse

from doublure.methods.statistics.tables.leaves import Floats, Ints
from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.noisy_tables import Noisy

_RIDGE = 1.0
_ROUGH = 4.0
_STEPS = 150
_NEVER = -12.0
_SURE = 10.0


def target_counts(tables: list[Noisy]) -> tuple[Floats, float]:
    """Return how many rows have each value of the target, by all tables together, and that estimate's precision."""
    totals = sum(table.counts.sum(0) / (len(table.counts) * table.variance) for table in tables)
    precision = sum(1 / (len(table.counts) * table.variance) for table in tables)
    return np.maximum(totals / precision, 1.0), float(precision)


def fit_target(
    nodes: list[Node], tables: list[Noisy], groups: Ints, known: Floats, rows: float
) -> tuple[Floats, Floats]:
    """Return the log-odds of each value ``(V,)``, and what each group of each node adds ``(sum of groups, V)``.

    Args:
        nodes: Of the columns.
        tables: Of each its groups within the target, noisy.
        groups: ``(N, nodes)`` the groups of drawn rows.
        known: ``(N, V)`` log-odds of each value in the rows' components.
        rows: How many rows there are.
    """
    totals, precision = target_counts(tables)
    rate = totals / totals.sum()
    sizes = [node.size for node in nodes]
    marks = sparse.csr_array(
        (np.ones(groups.size), (groups + (np.cumsum(sizes) - sizes)).ravel(), np.arange(len(groups) + 1) * len(nodes)),
        shape=(len(groups), sum(sizes)),
    )
    marked = sparse.csr_array(marks.T)
    counts = torch.from_numpy(np.concatenate([table.counts for table in tables]))
    weight = torch.from_numpy(np.repeat([1 / table.variance for table in tables], sizes))[:, None]
    never = torch.from_numpy(np.concatenate([_never(*pair, rate) for pair in zip(nodes, tables, strict=True)]))
    alike = np.concatenate([node.neighbours for node in nodes])[:-1]
    neighbours = torch.from_numpy(alike.astype(np.float64))[:, None]
    before = torch.from_numpy(known)
    scale, wanted = rows / len(groups), torch.from_numpy(totals)
    effects = torch.zeros_like(counts, requires_grad=True)
    bias = torch.log(torch.from_numpy(rate)).requires_grad_()
    optimiser = torch.optim.LBFGS(
        [effects, bias], max_iter=_STEPS, history_size=20, tolerance_grad=1e-4, tolerance_change=1e-7,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        chances = torch.softmax(bias + before + _times(effects + never, marks, marked), dim=1)
        found = _times(chances, marked, marks) * scale
        missed = ((found - counts) ** 2 * weight).sum() + ((chances.sum(0) * scale - wanted) ** 2).sum() * precision
        rough = ((effects[1:] - effects[:-1]) ** 2 * neighbours).sum()
        total = missed + _RIDGE * (effects**2).sum() + _ROUGH * rough
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return bias.detach().numpy(), (effects + never).detach().numpy()


class _Times(torch.autograd.Function):
    """A sparse matrix, of which the transpose is given too, times another."""

    @staticmethod
    def forward(ctx: Any, dense: torch.Tensor, matrix: Any, transposed: Any) -> torch.Tensor:
        """Multiply."""
        ctx.transposed = transposed
        return torch.as_tensor(matrix @ dense.numpy())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Multiply by the transpose."""
        return torch.as_tensor(ctx.transposed @ gradients[0].numpy()), None, None


def _times(dense: torch.Tensor, matrix: Any, transposed: Any) -> torch.Tensor:
    found: torch.Tensor = _Times.apply(dense, matrix, transposed)  # type: ignore[no-untyped-call]
    return found


def _never(node: Node, table: Noisy, rate: Floats) -> Floats:
    """Return what keeps a group from values of the target that it clearly does not have."""
    noise = np.sqrt(table.variance)
    expected = node.believed[:, None] * rate
    return np.where((table.counts < noise) & (expected > _SURE * noise), _NEVER, 0.0)
