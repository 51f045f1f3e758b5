"""Rows of a unit that have to fit below a bound: none passes it, and none is moved to it."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.networks.given_columns import draw_fitting, draw_given
from doublure.networks.related_layout import ChildFacts, RootFloor, RootGap, UnitLayout
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.rooms import RoomLeft
from doublure.networks.tree_tables import Tree, TreeNode

NONE = np.zeros((0, 0))
HIGHEST = 99
EVEN = ([0], [HIGHEST + 1], [1.0])


def node(part, parent, groups, starts, widths, mass):
    """Return a node that tells nothing of its parent, which has so many groups."""
    own, mass = np.arange(len(starts)), np.array(mass)
    ties = np.tile(mass, (groups, 1)) if parent >= 0 else NONE
    return TreeNode(
        part=part, parent=parent, starts=np.array(starts), widths=np.array(widths), mass=mass, fine=own, coarse=own,
        shares=mass[None], rake=np.ones(len(own)), ties=ties, leaning=np.ones((1, len(own))) if parent >= 0 else NONE,
        inner=ties, missing=-1,
    )  # fmt: skip


def tree(*leaves):
    nodes = [node(0, -1, 0, *leaves[0])]
    nodes += [node(part, 0, len(leaves[0][0]), *own) for part, own in enumerate(leaves[1:], start=1)]
    return Tree(nodes=tuple(nodes))


def drawn_days(gaps, *, above=(), count=20_000):
    """Return the days ``(count, 3)`` of units with three rows, of which the first is on any day."""
    layout = UnitLayout.of(1, [ChildFacts("visits", 3, 1, 0, HIGHEST, above, ())])
    generator = RelatedGenerator(layout, [])
    many, left = ([3], [1], [1.0]), ([0], [3], [1.0])
    generator.units.take(tree(many, EVEN))
    generator.first[0].take(tree(many, EVEN, gaps if above else EVEN))
    generator.following[0].take(tree(many, EVEN, left, EVEN, gaps))
    found = generator(np.random.default_rng(0).standard_normal((count, 1)))
    return found[:, 1], found[:, layout.children[0].row(0).start :]


LONG = ([0, 10, 50], [10, 40, 50], [0.1, 0.1, 0.8])
"""Gaps of which most are longer than what is left of the days."""


def test_no_day_passes_the_bound_and_none_piles_up_on_it():
    _, days = drawn_days(LONG)
    assert (np.diff(days) >= 0).all()
    assert days.max() <= HIGHEST
    share = np.bincount(days[:, -1].astype(int), minlength=HIGHEST + 1) / len(days)
    assert share[-1] < 2.5 * share[-11:-1].mean()


def two_rows(first=EVEN, gaps=EVEN, floors=()):
    """Return a number of the root and the days ``(N, 2)`` of units with two rows."""
    layout = UnitLayout.of(1, [ChildFacts("visits", 2, 1, 0, HIGHEST, (), (), floors=floors)])
    generator = RelatedGenerator(layout, [])
    many, left = ([2], [1], [1.0]), ([0], [2], [1.0])
    generator.units.take(tree(many, EVEN))
    generator.first[0].take(tree(many, EVEN, first))
    generator.following[0].take(tree(many, EVEN, left, EVEN, gaps))
    found = generator(np.random.default_rng(1).standard_normal((40_000, 1)))
    return found[:, 1], found[:, layout.children[0].row(0).start :]


def test_first_days_and_gaps_are_both_as_often_as_they_are_drawn():
    """Two even days in order: a gap that was drawn again after a late first day had a median of 21 instead of 29."""
    falling = 1.0 - (np.arange(HIGHEST + 1) + 0.5) / (HIGHEST + 1)
    falling /= falling.sum()
    leaves = np.arange(HIGHEST + 1), np.ones(HIGHEST + 1, dtype=np.int64), falling
    _, days = two_rows(leaves, leaves)
    first, gaps, last = (np.bincount(own.astype(int), minlength=100) / len(days) for own in (
        days[:, 0], days[:, 1] - days[:, 0], days[:, 1]))  # fmt: skip
    assert days.max() <= HIGHEST
    assert abs(gaps - falling).sum() / 2 < 0.03  # 40,000 even draws differ by .02
    assert abs(first - falling).sum() / 2 < 0.03
    assert abs(last - falling[::-1]).sum() / 2 < 0.08


def test_no_first_day_is_before_a_birth_and_none_piles_up_on_it():
    floor = RootFloor(below=1, least=lambda born: np.minimum(2 * born, HIGHEST))  # half of all days are before births
    born, days = two_rows(gaps=([0], [20], [1.0]), floors=(floor,))
    assert (days[:, 0] >= np.minimum(2 * born, HIGHEST)).all()
    assert (days[:, 0] == 2 * born).mean() < 0.1
    assert days.max() <= HIGHEST


def test_days_above_the_roots_own_pile_up_no_more():
    above = RootGap(place=0, below=1, first=0, last=HIGHEST, highest=HIGHEST)
    since, days = drawn_days(LONG, above=(above,))
    assert (days[:, 0] >= since).all()
    assert days.max() <= HIGHEST
    share = np.bincount(days[:, 0].astype(int), minlength=HIGHEST + 1) / len(days)
    assert share[-1] < 2.5 * share[-11:-1].mean()


def test_a_number_beside_the_order_piles_up_no_more_and_is_missing_as_often():
    """It is missing in a tenth of all rows; those that do not fit are not more often missing for that."""
    above = RootGap(place=1, below=1, first=0, last=HIGHEST, highest=HIGHEST)
    paid = ([0, 10, 50, 100], [10, 40, 50, 1], [0.1, 0.1, 0.7, 0.1])
    layout = UnitLayout.of(1, [ChildFacts("visits", 2, 2, 0, HIGHEST, (above,), ())])
    generator = RelatedGenerator(layout, [])
    many, left = ([2], [1], [1.0]), ([0], [2], [1.0])
    generator.units.take(tree(many, EVEN))
    generator.first[0].take(tree(many, EVEN, EVEN, paid))
    generator.following[0].take(tree(many, EVEN, left, EVEN, paid, EVEN, paid))
    found = generator(np.random.default_rng(0).standard_normal((10_000, 1)))
    for row in range(2):
        day = found[:, layout.children[0].row(row).start + 1]
        there = day <= HIGHEST
        assert (day[there] >= found[there, 1]).all()
        assert there.mean() == pytest.approx(0.9, abs=0.015)
        share = np.bincount(day[there].astype(int), minlength=HIGHEST + 1) / len(day)
        assert share[-1] < 2.5 * share[-11:-1].mean()


def test_a_number_is_cut_to_its_room():
    """As often as it would be drawn if only those that fit were kept."""
    leaves = ([0, 4, 20], [4, 16, 80], [0.2, 0.3, 0.5])
    rows = np.zeros((40_000, 2))
    room = RoomLeft(part=1, most=np.full(len(rows), 5.0))
    chance = np.array([0.2 / 4] * 4 + [0.3 / 16] * 2)
    for draw in (draw_given, draw_fitting):
        drawn = draw(tree(EVEN, leaves), rows, 1, np.random.default_rng(0), rooms=[room])[:, 1]
        share = np.bincount(drawn.astype(int), minlength=100) / len(rows)
        assert share[:6] == pytest.approx(chance / chance.sum(), abs=0.012)
        assert share[6:].sum() < 0.02  # of draws again, seventeen rarely do not suffice
        assert draw is draw_fitting or not share[6:].any()
