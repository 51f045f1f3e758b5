"""Sums of ε and δ are exact, and floats are rounded to the careful side."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from doublure.ledger.amounts import Amount, Budget, exact, is_figure

THIRD = Fraction(1, 3)


def test_each_figure_is_added_and_taken_away_on_its_own():
    one, other = Amount.of(0.3, 0.1), Amount.of(0.1, 0.05)
    assert one + other == Amount(epsilon=Fraction(4, 10), delta=Fraction(15, 100))
    assert one - other == Amount(epsilon=Fraction(2, 10), delta=Fraction(5, 100))
    assert Amount() == Amount.of(0, 0)
    assert one + Amount() == one


@pytest.mark.parametrize(
    ("epsilon", "delta", "fits"), [(1, 0.1, True), (1.1, 0.1, False), (1, 0.2, False), (0, 0, True)]
)
def test_reaching_the_cap_is_allowed_and_passing_it_is_not(epsilon, delta, fits):
    assert Amount.of(epsilon, delta).fits(Amount.of(1, 0.1)) == fits


def test_what_no_float_is_goes_up_for_spent_and_down_for_left():
    for amount in (THIRD, Fraction(2, 3), Fraction(1, 7), THIRD / 10**9):
        for name in ("epsilon", "delta"):
            up = getattr(Amount(**{name: amount}).rounded_up(), name)
            down = getattr(Amount(**{name: amount}).rounded_down(), name)
            assert exact(down) < amount < exact(up)
            assert up == math.nextafter(down, 1.0)


def test_what_a_float_is_stays():
    assert Amount.of(0.3, 1e-5).rounded_up() == Amount.of(0.3, 1e-5).rounded_down() == Budget(epsilon=0.3, delta=1e-5)
    assert Amount().rounded_up() == Amount().rounded_down() == Budget(epsilon=0.0, delta=0.0)


def test_a_figure_is_a_finite_number_that_is_not_negative():
    assert all(is_figure(value) for value in (0, 0.0, 1, 5e-324, 1.7e308))
    assert not any(
        is_figure(value) for value in (-5e-324, -1, math.inf, math.nan, True, False, "1", None, Fraction(1, 2))
    )


def test_a_budget_reads_as_a_person_writes_it():
    assert str(Budget(epsilon=1 / 3, delta=1e-5)) == "(ε=0.3333333333, δ=1e-05)"
