"""Joint tables of the tree's pairs within each component of a mixture: post-processing of noisy tables.

A pair's noisy table is first made as sharp as its noise allows: what differs from the mixture's own expectation is kept
where noise cannot explain it (of two ordered columns as wavelets, which see a ridge that no cell shows), rows that are
all but certain are made certain, and margins are the columns' own. Then iterative proportional fitting (Deming and
Stephan 1940) finds the joint tables within components that agree with it, with the component's share of the parent's
groups and with its share of the child's. Each such table is a product of three factors, and only those are held.
"""

from __future__ import annotations

import math

import numpy as np

from doublure.methods.statistics.binning import believed_counts
from doublure.methods.statistics.tables.leaves import Floats, Ints
from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.noisy_tables import Noisy

_CUT = 2.2
"""Deviations of noise that a difference loses (the garrote: Gao 1998)."""
_SIGNAL = 0.6
"""From this share of signal in all differences on, all of them are kept, shrunk alike."""
_SURE, _ALL_BUT_SURE = 0.8, 0.7
_TINY, _NOTHING = 1e-12, 1e-18


def joint_tables(
    parent: Node, child: Node, table: Noisy, shares: tuple[Floats, Floats], weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the joint tables of an edge.

    Args:
        parent: The tree's parent.
        child: The column that is drawn from it.
        table: Their noisy table in fine groups.
        shares: ``(K, m)`` each: the groups of both within each component.
        weights: ``(K,)`` the components'.

    Returns:
        ``(parent's fine groups, child's groups)`` and ``(K, child's groups)``, whose product is in proportion to the
        child's groups given parent and component; and ``(parent's fine groups, child's fine groups)`` how often each
        fine group goes with each.
    """
    fine = parent.fine_counts(), child.fine_counts()
    up, down = parent.coarse_of_fine, child.coarse_of_fine
    spread = [_within(counts, of) for counts, of in zip(fine, (up, down), strict=True)]
    rows = sum(fine[0])
    expected = rows * (shares[0] * weights[:, None]).T @ shares[1]
    base = expected[np.ix_(up, down)] * spread[0][:, None] * spread[1][None]
    likely = likely_table(table, base, fine, (up, down), ordered=parent.ordered and child.ordered)
    grouped = np.zeros((len(up), child.size))
    np.add.at(grouped.T, down, likely.T)
    inner = likely / np.maximum(grouped[:, down], _TINY)
    inner = np.where(grouped[:, down] > 0, inner, spread[1][None])
    ties, _, leaning = fitted(shares[0][:, up] * spread[0], shares[1], weights, grouped / grouped.sum())
    most = np.maximum(leaning.max(0), _NOTHING)
    ties *= most
    return ties / np.maximum(ties.max(1, keepdims=True), _NOTHING), leaning / most, inner


def likely_table(
    table: Noisy, base: Floats, margins: tuple[Floats, Floats], groups: tuple[Ints, Ints], *, ordered: bool
) -> Floats:
    """Return a noisy table as far from what the mixture says as its noise lets one believe, with given margins.

    Args:
        table: ``(f, f')``.
        base: What the mixture says.
        margins: ``(f,)`` and ``(f',)``.
        groups: The coarse group of each.
        ordered: Whether neighbours on both axes are alike.
    """
    counts, noise = table.counts, math.sqrt(table.variance)
    apart = counts - base
    kept = max(0.0, 1 - apart.size * noise**2 / max(float((apart**2).sum()), _TINY))
    if kept > _SIGNAL:
        found = believed_counts(counts, base, variance=noise**2)
    elif ordered and min(counts.shape) > _FEW:
        found = np.maximum(base + _waves_kept(apart, noise), 0.0)
    else:
        found = np.maximum(base + apart * np.maximum(0, 1 - (_CUT * noise) ** 2 / np.maximum(apart**2, _TINY)), 0.0)
    for own, seen, of in ((found, counts, groups[0]), (found.T, counts.T, groups[1])):
        _make_sure(own, seen, noise)
        _make_groups_sure(own, seen, noise, of)
    found += 1e-9
    for _ in range(30):
        found *= (margins[0] / np.maximum(found.sum(1), _TINY))[:, None]
        found *= margins[1] / np.maximum(found.sum(0), _TINY)
    return found


_FEW = 6


def fitted(
    parent: Floats, child: Floats, weights: Floats, table: Floats, *, rounds: int = 25
) -> tuple[Floats, Floats, Floats]:
    """Return the factors of joint tables, adding up to 1 together, by iterative proportional fitting.

    Args:
        parent: ``(K, p)`` shares within each component.
        child: ``(K, c)`` likewise.
        weights: ``(K,)``.
        table: ``(p, c)`` what all components together should give.
        rounds: How often.

    Returns:
        ``(p, c)``, ``(K, p)`` and ``(K, c)``: the joint table of a component is the product of all three.
    """
    ties = table / np.maximum(table.sum(1, keepdims=True) * table.sum(0), 1e-15)
    wanted_parent, wanted_child = parent * weights[:, None], child * weights[:, None]
    own, leaning = wanted_parent.copy(), child.copy()
    for _ in range(rounds):
        leaning *= _towards(wanted_child, leaning * (own @ ties))
        own *= _towards(wanted_parent, own * (leaning @ ties.T))
        ties *= _towards(table, ties * (own.T @ leaning))
    return ties, own, leaning


# -- inside ----------------------------------------------------------------------------------------------------------


def _towards(wanted: Floats, found: Floats) -> Floats:
    """Return what brings sums to what is wanted; where there is nothing, nothing can be brought."""
    return np.where(found > _NOTHING, wanted / np.maximum(found, _NOTHING), 1.0)


def _within(counts: Floats, groups: Ints) -> Floats:
    """Return each fine group's share of its coarse one."""
    totals = np.bincount(groups, counts)
    even = 1 / np.bincount(groups)
    shared: Floats = np.where(totals[groups] > 0, counts / np.where(totals > 0, totals, 1)[groups], even[groups])
    return shared


def _make_sure(found: Floats, seen: Floats, noise: float) -> None:
    """Leave nothing that is not believable beside one cell that has all but all of a row."""
    at = np.arange(len(found))
    top = found.argmax(1)
    most, beside = found[at, top], seen.sum(1) - seen[at, top]
    sure = (most > _SURE * found.sum(1)) & (most > 6 * noise) & (seen.max(1) <= seen[at, top] + 1e-9)
    sure &= beside < 2 * noise * math.sqrt(max(1, seen.shape[1] - 1))
    for row in np.flatnonzero(sure):
        found[row, seen[row] < 3 * noise] = 0.0


def _make_groups_sure(found: Floats, seen: Floats, noise: float, groups: Ints) -> None:
    """The same for all rows of a coarse group together, whose noise is less beside their size."""
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups == group)
        have, saw = found[rows].sum(0), seen[rows].sum(0)
        unsure = noise * math.sqrt(len(rows))
        top = int(have.argmax())
        beside = saw.sum() - saw[top]
        mostly = have[top] > _ALL_BUT_SURE * have.sum() and saw[top] > max(4 * unsure, 0.85 * saw.sum())
        if mostly and beside < 2 * unsure * math.sqrt(max(1, len(saw) - 1)):
            off = np.flatnonzero(saw < 3 * unsure)
            found[np.ix_(rows, off[off != top])] = 0.0


def _waves_kept(apart: Floats, noise: float) -> Floats:
    """Return differences without the wavelets that their noise explains, averaged over two placements."""
    side = 1 << math.ceil(math.log2(max(apart.shape)))
    found = np.zeros(apart.shape)
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
        for _ in range(2):
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
