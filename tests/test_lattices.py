"""Integers on nested lattices: each in one class, counted and drawn without a search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.schema.columns import NumberDomain
from doublure.schema.columns.integer_domain import SecondsDomain, TimeDomain
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
