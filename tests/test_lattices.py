"""Integers on nested lattices: each in one class, counted and drawn without a search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.schema.columns import NumberDomain
from doublure.schema.columns.integer_domain import ClockGapDomain, SecondsDomain, TimeDomain
from doublure.support import lattices

STEPS = [
    np.array(steps) for steps in ([1], [10, 5, 1], [1000, 500, 100, 50, 10, 5, 1], [86_400, 3600, 60, 1], [4, 2, 1])
]


@given(first=st.integers(-3000, 3000), width=st.integers(1, 2500), steps=st.sampled_from(STEPS))
@examples(60)
def test_members_are_what_is_there(first, width, steps):
    values = np.arange(first, first + width)
    counted = np.bincount(lattices.classes(values, steps), minlength=len(steps))
    assert lattices.members(values[:1], values[-1:], steps)[0].tolist() == counted.tolist()


@given(first=st.integers(-3000, 3000), width=st.integers(1, 400), steps=st.sampled_from(STEPS))
@examples(60)
def test_each_member_is_drawn_evenly(first, width, steps):
    """Every member of a class is drawn, at its own chance, and nothing else."""
    values = np.arange(first, first + width)
    own = lattices.classes(values, steps)
    for place in np.unique(own):
        wanted = values[own == place]
        chance = (np.arange(len(wanted)) + 0.5) / len(wanted)
        ends = np.full((2, len(wanted)), [[values[0]], [values[-1]]])
        drawn = lattices.draw(ends[0], ends[1], np.full(len(wanted), place), steps, chance)
        assert drawn.tolist() == wanted.tolist()


@given(
    first=st.integers(-3000, 3000),
    width=st.integers(0, 300),
    steps=st.sampled_from([np.array(steps) for steps in ([24, 12, 1], [96, 4, 2, 1], [2, 1], [24])]),
)
@examples(60)
def test_members_by_part_are_what_is_there(first, width, steps):
    values, parts = np.arange(first, first + width), min(24, int(steps[0]))
    part = values % steps[0] // (steps[0] // parts)
    counted = np.zeros((parts, len(steps)))
    np.add.at(counted, (part, lattices.classes(values, steps)), 1)
    found, none = lattices.members_by_part(np.array([first, 5]), np.array([first + width - 1, 4]), steps, parts)
    assert found.tolist() == counted.tolist()
    assert not none.any()


@given(
    first=st.integers(-3000, 3000),
    width=st.integers(1, 300),
    steps=st.sampled_from([np.array(steps) for steps in ([24, 12, 1], [96, 4, 2, 1], [2, 1], [24])]),
    seed=st.integers(0, 99),
)
@examples(60)
def test_integers_a_period_apart_are_drawn_by_lattice_and_part(first, width, steps, seed):
    """Each integer of a range has its own weight, and is drawn as often as that says; no other is."""
    rng = np.random.default_rng(seed)
    pulls, parts = rng.random(len(steps)) * 50, rng.random(min(24, int(steps[0])))
    values = np.arange(first, first + width)
    own = lattices.classes(values, steps)
    wanted = pulls[own] * parts[values % steps[0] // (steps[0] // len(parts))]
    weights = lattices.PeriodWeights(steps, pulls, parts)
    found = weights.classes(values[:1], values[-1:])[0]
    assert found == pytest.approx(np.bincount(own, wanted, len(steps)), abs=1e-9 * wanted.sum())
    chance = (np.arange(20_000) + 0.5) / 20_000
    ends = np.full((2, len(chance)), [[values[0]], [values[-1]]])
    drawn = np.bincount(weights.draw(ends[0], ends[1], chance) - first, minlength=width)
    assert len(drawn) == width
    assert drawn / len(chance) == pytest.approx(wanted / wanted.sum(), abs=2 / len(chance))


@pytest.mark.parametrize(
    ("first", "last", "seconds", "hours"),
    [
        (0, 10**6, 1.0, 24), (-(10**6), 10**4, 60.0, 24), (0, 47, 3600.0, 24), (0, 100, 7200.0, 12),
        (0, 100, 43_200.0, 2), (0, 23, 3600.0, 0), (0, 800, 86_400.0, 0), (0, 10**9, 0.5, 0), (0, 10**6, 7.0, 0),
        (0, 10**6, 1728.0, 0),
    ],
)  # fmt: skip
def test_a_time_has_hours_where_steps_divide_days_and_bounds_pass_one(first, last, seconds, hours):
    assert TimeDomain(first=first, last=last, nullable=False, seconds=seconds).hours() == hours


@pytest.mark.parametrize(
    ("domain", "steps"),
    [
        (NumberDomain(first=0, last=1000, nullable=False), (100, 50, 10, 5, 1)),
        (NumberDomain(first=-7, last=3, nullable=True), (1,)),
        (TimeDomain(first=0, last=800, nullable=False), (1,)),
        (TimeDomain(first=0, last=10**6, nullable=False, seconds=60.0), (1440, 720, 60, 30, 15, 5, 1)),
        (SecondsDomain(first=0, last=86_399, nullable=False), (86_400, 43_200, 3600, 1800, 900, 300, 60, 1)),
    ],
)
def test_columns_say_by_which_steps_people_round(domain, steps):
    assert tuple(domain.nested_steps()) == steps
    lattices.refuse_unnested(domain.nested_steps())


@pytest.mark.parametrize("period", [1, 24, 1440])
def test_gaps_lead_back_to_where_they_were_measured(period):
    """Long ones tell the later time of day, also before 1970, and every number above another has one of its own."""
    draw = np.random.default_rng(period)
    below = draw.integers(-5000, 5000, 2000).astype(float)
    numbers = below + draw.integers(0, 9000, 2000)
    found = lattices.gaps(numbers, below, period)
    assert (lattices.above(found, below, period) == numbers).all()
    long = found >= period
    assert (found[long] % period == numbers[long] % period).all()
    every = np.arange(-100.0, 9000.0)
    assert len(np.unique(lattices.gaps(every, np.full(len(every), -100.0), period))) == len(every)


@pytest.mark.parametrize(("first", "last"), [(0, 730 * 1440), (0, 1441), (30, 5000), (2000, 99_999)])
def test_cells_of_gaps_between_moments_are_whole_days_from_one_on(first, last):
    own = TimeDomain(first=0, last=10**6, nullable=1, seconds=60.0).gaps(first, last)
    assert isinstance(own, ClockGapDomain)
    starts = own.initial_partition()
    assert (starts[(starts >= 1440) & (starts > first)] % 1440 == 0).all()
    for cell, after in zip(starts, np.append(starts[1:], last + 1), strict=True):
        parts = own.split_cell(int(cell), int(after - 1))
        assert len(parts) <= 64
        assert after - cell <= 1440 or cell == first or (parts % 1440 == 0).all()
    assert own.hours() == 24
    assert TimeDomain(first=0, last=800, nullable=1).gaps(0, 800) == NumberDomain(first=0, last=800, nullable=1)
