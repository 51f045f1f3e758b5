"""Joint tables of the tree's pairs within each component of a mixture: post-processing of noisy tables.

A pair's noisy table is first made as sharp as its noise allows: what differs from the mixture's own expectation is kept
where noise cannot explain it (of two ordered columns as wavelets, which see a ridge that no cell shows), cells of a
row beside its one clear cell are emptied where next to nothing was counted and the mixture says there is some or
little, and margins are the columns' own, or the mixture's where pairs were counted within the target, which it then
knows. Then iterative proportional fitting (Deming and Stephan 1940) finds the joint tables within components that agree
with it, with the component's share of the parent's groups and with its share of the child's. Each such table is a
product of three factors, and only those are held.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from doublure.methods.statistics.binning import believed_counts
from doublure.methods.statistics.tables.leaves import Floats, Ints
from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.noisy_tables import Noisy

_CUT = 2.2
"""Deviations of noise that a difference loses (the garrote: Gao 1998)."""
_SIGNAL = 0.6
"""From this share of signal in all differences on, all of them are kept, shrunk alike."""
_THERE, _NOT_NOISE = 4.0, 3.0
"""Deviations from which on a cell is clearly there, and is kept beside others that are."""
_AS_NOTHING, _LESS_THAN_SAID = 2.0, 3.0
"""Deviations within which nothing was seen, and by which that is less than the mixture says."""
_ALL_BUT_SURE = 0.8
"""From this share of a row on, one cell is taken to be all of it, if the others may be noise: little is lost."""
_TINY, _NOTHING = 1e-12, 1e-18


def joint_tables(
    parent: Node, child: Node, table: Noisy, shares: tuple[Floats, Floats], weights: Floats, *, within: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Return the joint tables of an edge.

    Args:
        parent: The tree's parent.
        child: The column that is drawn from it.
        table: Their noisy table in fine groups.
        shares: ``(K, m)`` each: the groups of both within each component.
        weights: ``(K,)`` the components'.
        within: Whether pairs were counted within the target, so that the mixture knows columns better.

    Returns:
        ``(parent's fine groups, child's groups)`` and ``(K, child's groups)``, whose product is in proportion to the
        child's groups given parent and component; and ``(parent's fine groups, child's fine groups)`` how often each
        fine group goes with each.
    """
    fine = parent.fine_counts(), child.fine_counts()
    up, down = parent.coarse_of_fine, child.coarse_of_fine
    spread = [_within(counts, of) for counts, of in zip(fine, (up, down), strict=True)]
    rows = sum(fine[0])
    # The mixture knows coarse groups alone; within each, fine ones are shared out as the column's own counts say.
    expected = rows * (shares[0] * weights[:, None]).T @ shares[1]
    base = expected[np.ix_(up, down)] * spread[0][:, None] * spread[1][None]
    found = believed_table(table, base, ordered=parent.ordered and child.ordered)
    if within:
        fine = base.sum(1), base.sum(0)
    likely = with_certainties(found, base, table, fine, (up, down), enough=2.0 if within else _ALL_BUT_SURE)
    grouped = np.zeros((len(up), child.size))
    np.add.at(grouped.T, down, likely.T)
    inner = likely / np.maximum(grouped[:, down], _TINY)
    inner = np.where(grouped[:, down] > 0, inner, spread[1][None])
    ties, _, leaning = fitted(shares[0][:, up] * spread[0], shares[1], weights, grouped / grouped.sum())
    # Only proportions within a row count: both factors are scaled to a largest entry of 1, and neither underflows.
    most = np.maximum(leaning.max(0), _NOTHING)
    ties *= most
    return ties / np.maximum(ties.max(1, keepdims=True), _NOTHING), leaning / most, inner


def believed_table(table: Noisy, base: Floats, *, ordered: bool) -> Floats:
    """Return a noisy table as far from what the mixture says as its noise lets one believe.

    Args:
        table: ``(f, f')``.
        base: What the mixture says.
        ordered: Whether neighbours on both axes are alike.
    """
    counts, noise = table.counts, math.sqrt(table.variance)
    apart = counts - base
    # The share of the squared differences that noise does not explain (James and Stein 1961). Where it is large, to cut
    # single cells loses more than to shrink all of them alike.
    kept = max(0.0, 1 - apart.size * noise**2 / max(float((apart**2).sum()), _TINY))
    if kept > _SIGNAL:
        return believed_counts(counts, base, variance=noise**2)
    if ordered and min(counts.shape) > _FEW:
        kept_apart = _waves_kept(apart, noise)
    else:
        kept_apart = apart * np.maximum(0, 1 - (_CUT * noise) ** 2 / np.maximum(apart**2, _TINY))
    found: Floats = np.maximum(base + kept_apart, 0.0)
    return found


def with_certainties(
    believed: Floats,
    base: Floats,
    table: Noisy,
    margins: tuple[Floats, Floats],
    groups: tuple[Ints, Ints],
    *,
    enough: float = 2.0,
) -> Floats:
    """Return a table in which what is certain by what was counted is certain, with given margins.

    Args:
        believed: ``(f, f')``.
        base: What the mixture says.
        table: What was counted.
        margins: ``(f,)`` and ``(f',)``.
        groups: The coarse group of each.
        enough: The share of a row from which on one cell is taken to be all of it, if the others may be noise.
    """
    found, noise = believed.copy(), math.sqrt(table.variance)
    for own, said, seen, of in ((found, base, table.counts, groups[0]), (found.T, base.T, table.counts.T, groups[1])):
        if own.shape[1] > 1:
            _make_sure(own, said, seen, noise, enough)
            _make_groups_sure(own, said, seen, noise, of, enough)
    found += 1e-9  # margins have to be reached, and proportions alone move no cell away from zero
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


def _make_sure(found: Floats, said: Floats, seen: Floats, noise: float, enough: float) -> None:
    """Leave nothing beside one cell of a row where next to nothing was counted, and the mixture says there is some.

    Each row is judged by itself, then all whose one cell is clearly there together, whose noise is less beside them.
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
    """The same for all rows of a coarse group together, where they have one cell in common."""
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
    """Say whether what was seen fits nothing well, and what was expected badly."""
    return (seen < _AS_NOTHING * noise) & (expected - seen > _LESS_THAN_SAID * noise)


def _waves_kept(apart: Floats, noise: float) -> Floats:
    """Return differences without the wavelets that their noise explains, averaged over two placements."""
    side = 1 << math.ceil(math.log2(max(apart.shape)))
    found = np.zeros(apart.shape)
    # Haar wavelets end at powers of two. In another corner of the square they end elsewhere, and the mean is smoother.
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
        for _ in range(2):  # each turn transposes: along one axis, then along the other
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
