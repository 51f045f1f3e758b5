"""Joint tables of the tree's pairs within each component of a mixture, by post-processing of noisy tables.

The steps for one edge, :func:`fit_edge`:

1. :func:`denoise` denoises the noisy table around the mixture's expectation: a difference is kept where noise
   does not explain it. For two ordered columns differences are taken as wavelets, which detect a ridge that no single
   cell shows.
2. Where values of a list determine those of another, each votes for one
   (:mod:`doublure.methods.statistics.tables.votes`). Else :func:`empty_cells` empties the cells beside a row's one
   clear cell if next to nothing was counted there and the mixture expects more. The table is then scaled to its
   margins: the columns' own counts, or the mixture's if pairs were counted within the target, where the mixture is
   more precise.
3. :func:`fit_factors` finds the joint tables within components by iterative proportional fitting (Deming and Stephan
   1940). They agree with the table, and with the component's shares of the parent's and of the child's groups. Each is
   a product of three factors, and only those are held.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.binning import james_stein_counts
from doublure.methods.statistics.tables.leaves import Floats, Ints
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.votes import voted_table

_CUT = 2.2
"""Threshold of the garrote, in deviations of noise (Gao 1998)."""
_SIGNAL = 0.6
"""Share of signal in all differences above which all of them are kept, with the same shrinkage."""
_THERE, _NOT_NOISE = 4.0, 3.0
"""Deviations above which a cell is significant, and above which it is kept beside a clear one."""
_AS_NOTHING, _LESS_THAN_SAID = 2.0, 3.0
"""Deviations below which a count is taken as empty, and by which it must be below the mixture's expectation."""
_ALL_BUT_SURE = 0.8
"""Share of a row above which one cell is taken for all of it, if the others may be noise; little is lost."""
_TINY, _NOTHING = 1e-12, 1e-18


def fit_edge(
    parent: Node,
    child: Node,
    table: NoisyCounts,
    shares: tuple[Floats, Floats],
    weights: Floats,
    may: npt.NDArray[np.bool_] | None = None,
    *,
    within: bool = False,
) -> tuple[Floats, Floats, Floats]:
    """Return the joint tables of an edge.

    Args:
        parent: The parent in the tree.
        child: The column that is drawn given it.
        table: Their noisy table in fine groups, ``(f, f')``.
        shares: ``(K, m)`` and ``(K, m')``: shares of both nodes' coarse groups within each component.
        weights: ``(K,)`` of the components.
        may: ``(f, f')`` which fine groups may meet, where patterns of missing cells say it of a column; None: all.
        within: Whether pairs were counted within the target, so that the mixture is more precise than column counts.

    Returns:
        Three factors. ``(f, m')`` and ``(K, m')``: their product is proportional to the child's coarse groups given the
        parent's fine group and the component. ``(f, f')``: each child's fine group as a share of its coarse group,
        given the parent's fine group.
    """
    fine = parent.fine_counts(), child.fine_counts()
    up, down = parent.coarse_of_fine, child.coarse_of_fine
    spread = [_within(counts, of) for counts, of in zip(fine, (up, down), strict=True)]
    rows = sum(fine[0])
    # The mixture models coarse groups only; within each, fine groups follow the columns' own counts.
    expected = rows * (shares[0] * weights[:, None]).T @ shares[1]
    base = expected[np.ix_(up, down)] * spread[0][:, None] * spread[1][None]
    if may is not None:
        rest = np.maximum((base * may).sum(1, keepdims=True), _TINY)
        base = np.where(may, base * base.sum(1, keepdims=True) / rest, 0.0)
        table = replace(table, counts=np.where(may, table.counts, 0.0))
    found = denoise(table, base, ordered=parent.ordered and child.ordered)
    if within:
        fine = base.sum(1), base.sum(0)
    voted = _voted(parent, child, found, table, fine)
    if voted is None:
        likely = empty_cells(found, base, table, fine, (up, down), enough=2.0 if within else _ALL_BUT_SURE)
    else:
        likely = _with_margins(voted, fine)
    # (f, m'): the child's fine groups added up to coarse ones, which the components' factors act on.
    grouped = np.zeros((len(up), child.size))
    np.add.at(grouped.T, down, likely.T)
    inner = likely / np.maximum(grouped[:, down], _TINY)
    inner = np.where(grouped[:, down] > 0, inner, spread[1][None])
    ties, _, leaning = fit_factors(shares[0][:, up] * spread[0], shares[1], weights, grouped / grouped.sum())
    # Only proportions within a row matter: both factors are scaled to a maximum of 1, so that neither underflows.
    most = np.maximum(leaning.max(0), _NOTHING)
    ties *= most
    return ties / np.maximum(ties.max(1, keepdims=True), _NOTHING), leaning / most, inner


def denoise(table: NoisyCounts, base: Floats, *, ordered: bool) -> Floats:
    """Return a noisy table denoised around the mixture's expectation, ``(f, f')``.

    Args:
        table: ``(f, f')``.
        base: ``(f, f')`` the mixture's expectation.
        ordered: Whether neighbours on both axes are similar.
    """
    counts, noise = table.counts, math.sqrt(table.variance)
    apart = counts - base
    # The share of the squared differences that noise does not explain (James and Stein 1961). If it is large, equal
    # shrinkage of all cells loses less than a threshold for each.
    kept = max(0.0, 1 - apart.size * noise**2 / max(float((apart**2).sum()), _TINY))
    if kept > _SIGNAL:
        return james_stein_counts(counts, base, variance=noise**2)
    if ordered and min(counts.shape) > _FEW:
        kept_apart = _waves_kept(apart, noise)
    else:
        kept_apart = apart * np.maximum(0, 1 - (_CUT * noise) ** 2 / np.maximum(apart**2, _TINY))
    found: Floats = np.maximum(base + kept_apart, 0.0)
    return found


def empty_cells(
    believed: Floats,
    base: Floats,
    table: NoisyCounts,
    margins: tuple[Floats, Floats],
    groups: tuple[Ints, Ints],
    *,
    enough: float = 2.0,
) -> Floats:
    """Return a table with given margins, in which cells that the counts show to be empty are empty, ``(f, f')``.

    Args:
        believed: ``(f, f')`` the denoised table.
        base: ``(f, f')`` the mixture's expectation.
        table: ``(f, f')`` the noisy counts.
        margins: ``(f,)`` and ``(f',)``.
        groups: ``(f,)`` and ``(f',)``: the coarse group of each fine one.
        enough: Share of a row above which one cell is taken for all of it, if the others may be noise.
    """
    found, noise = believed.copy(), math.sqrt(table.variance)
    # Rows first, then columns; transposes are views, so that both change the same table.
    for own, said, seen, of in ((found, base, table.counts, groups[0]), (found.T, base.T, table.counts.T, groups[1])):
        if own.shape[1] > 1:
            _make_sure(own, said, seen, noise, enough)
            _make_groups_sure(own, said, seen, noise, of, enough)
    return _with_margins(found, margins)


_FEW = 6


def fit_factors(
    parent: Floats, child: Floats, weights: Floats, table: Floats, *, rounds: int = 25
) -> tuple[Floats, Floats, Floats]:
    """Return the factors of joint tables by iterative proportional fitting; all tables together add up to 1.

    Args:
        parent: ``(K, p)`` shares within each component.
        child: ``(K, c)`` likewise.
        weights: ``(K,)``.
        table: ``(p, c)`` the sum of all components' tables.
        rounds: Number of rounds.

    Returns:
        ``(p, c)``, ``(K, p)`` and ``(K, c)``: entry (p, c) of component k's table is the product of their entries.
    """
    ties = table / np.maximum(table.sum(1, keepdims=True) * table.sum(0), 1e-15)
    wanted_parent, wanted_child = parent * weights[:, None], child * weights[:, None]
    own, leaning = wanted_parent.copy(), child.copy()
    for _ in range(rounds):  # margins by child, then by parent, then over components
        leaning *= _towards(wanted_child, leaning * (own @ ties))
        own *= _towards(wanted_parent, own * (leaning @ ties.T))
        ties *= _towards(table, ties * (own.T @ leaning))
    return ties, own, leaning


# -- inside ----------------------------------------------------------------------------------------------------------


def _voted(
    parent: Node, child: Node, believed: Floats, table: NoisyCounts, margins: tuple[Floats, Floats]
) -> Floats | None:
    """Return the table ``(f, f')`` of two lists of which the longer one determines the other; None if it does not.

    Groups of several values have no vote, and keep what is believed of them.
    """
    if not (parent.is_list and child.is_list):
        return None
    if len(margins[0]) < len(margins[1]):
        turned = _voted(child, parent, believed.T, replace(table, counts=table.counts.T), margins[::-1])
        return None if turned is None else turned.T
    alone = np.bincount(parent.fine) == 1
    voters = replace(table, counts=table.counts[alone])
    voted = voted_table(voters, believed[alone], margins[0][alone], parent.variance, margins[1])
    if voted is None:
        return None
    found = believed.copy()
    found[alone] = voted
    return found


def _with_margins(table: Floats, margins: tuple[Floats, Floats]) -> Floats:
    """Return a table scaled to margins ``(f,)`` and ``(f',)``."""
    found = table + 1e-9  # scaling cannot move a cell away from zero, and every margin must be reachable
    for _ in range(30):
        found *= (margins[0] / np.maximum(found.sum(1), _TINY))[:, None]
        found *= margins[1] / np.maximum(found.sum(0), _TINY)
    return found


def _towards(wanted: Floats, found: Floats) -> Floats:
    """Return the factors from found sums to wanted ones; 1 where a sum is zero."""
    return np.where(found > _NOTHING, wanted / np.maximum(found, _NOTHING), 1.0)


def _within(counts: Floats, groups: Ints) -> Floats:
    """Return each fine group's share of its coarse one."""
    totals = np.bincount(groups, counts)
    even = 1 / np.bincount(groups)
    shared: Floats = np.where(totals[groups] > 0, counts / np.where(totals > 0, totals, 1)[groups], even[groups])
    return shared


def _make_sure(found: Floats, said: Floats, seen: Floats, noise: float, enough: float) -> None:
    """Empty a row beside its one clear cell if next to nothing was counted there and the mixture expects more.

    Each row is tested by itself. Then all rows with a clear cell are tested together, where noise is relatively less.
    """
    at = np.arange(len(found))
    top = found.argmax(1)
    others = found.shape[1] - 1
    beside, expected = seen.sum(1) - seen[at, top], said.sum(1) - said[at, top]
    clear = seen[at, top] > _THERE * noise
    alone = clear & _nothing_there(beside, expected, noise * math.sqrt(others))
    together = clear.sum() * others
    most = found[at, top]
    alone |= (most > 6 * noise) & (most > enough * found.sum(1)) & (beside < 2 * noise * math.sqrt(others))
    if clear.any() and _nothing_there(beside[clear].sum(), expected[clear].sum(), noise * math.sqrt(together)):
        alone |= clear
    for row in np.flatnonzero(alone):
        off = seen[row] < _NOT_NOISE * noise
        off[top[row]] = False
        found[row, off] = 0.0


def _make_groups_sure(found: Floats, said: Floats, seen: Floats, noise: float, groups: Ints, enough: float) -> None:
    """Do the same for all rows of a coarse group together, where they share one clear cell."""
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        have, expected, saw = found[rows].sum(0), said[rows].sum(0), seen[rows].sum(0)
        unsure, top = noise * math.sqrt(len(rows)), int(have.argmax())
        beside, more = saw.sum() - saw[top], expected.sum() - expected[top]
        beside_noise = unsure * math.sqrt(len(saw) - 1)
        sure = have[top] > (enough - 0.1) * have.sum() and beside < min(2 * beside_noise, 0.15 * saw.sum())
        if saw[top] > _THERE * unsure and (sure or _nothing_there(beside, more, beside_noise)):
            off = np.flatnonzero(saw < _NOT_NOISE * unsure)
            found[np.ix_(rows, off[off != top])] = 0.0


def _nothing_there(seen: Any, expected: Any, noise: float) -> Any:
    """Say whether a count is consistent with zero and inconsistent with the expectation."""
    return (seen < _AS_NOTHING * noise) & (expected - seen > _LESS_THAN_SAID * noise)


def _waves_kept(apart: Floats, noise: float) -> Floats:
    """Return differences without the wavelet coefficients that noise explains, averaged over two placements."""
    side = 1 << math.ceil(math.log2(max(apart.shape)))
    found = np.zeros(apart.shape)
    # Haar wavelets have edges at powers of two. A placement in the opposite corner has other edges, and the mean of
    # both is smoother (cycle spinning: Coifman and Donoho 1995).
    for down, right in ((0, 0), (side - apart.shape[0], side - apart.shape[1])):
        place = slice(down, down + apart.shape[0]), slice(right, right + apart.shape[1])
        square = np.zeros((side, side))
        square[place] = apart
        waves = _haar(square)
        waves *= np.maximum(0, 1 - (_CUT * noise) ** 2 / np.maximum(waves**2, 1e-9))
        found += _unhaar(waves)[place] / 2
    return found


def _haar(square: Floats) -> Floats:
    """Return the orthonormal two-dimensional Haar transform of a table of side 2^L."""
    found, side = square.copy(), len(square)
    while side > 1:
        for _ in range(2):  # each pass transforms the rows and transposes, so that two passes do both axes
            block = found[:side, :side]
            even, odd = block[0::2], block[1::2]
            found[:side, :side] = (np.concatenate([even + odd, even - odd]) / math.sqrt(2)).T
        side //= 2
    return found


def _unhaar(waves: Floats) -> Floats:
    """Return the table that has this Haar transform."""
    found, side = waves.copy(), 2
    while side <= len(waves):
        for _ in range(2):
            block, half = found[:side, :side].T, side // 2
            made = np.empty((side, side))
            made[0::2] = (block[:half] + block[half:]) / math.sqrt(2)
            made[1::2] = (block[:half] - block[half:]) / math.sqrt(2)
            found[:side, :side] = made
        side *= 2
    return found
