"""Attributes that follow from the time are as frequent as the calendar says, where nobody says otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.encode.series import SeriesEncoder


def shares(world, attribute: str, **rules: str) -> np.ndarray:
    schema = world.schema(attributes=f"{{a: {attribute}}}", **rules)
    return SeriesEncoder(schema).condition_shares("a")


LISTED = "type: ordinal, missing: false, values: "


@pytest.mark.parametrize(
    ("attribute", "rules", "wanted"),
    [
        ("{type: boolean, missing: false, from_time: weekend}", {}, [5 / 7, 2 / 7]),
        (f"{{{LISTED}[0, 1, 2, 3, 4, 5, 6], from_time: weekday}}", {}, [1 / 7] * 7),
        (f"{{{LISTED}[0, 1, 2, 3, 4, 5, 6], from_time: weekday}}", {"length": "28"}, [1, 0, 0, 0, 0, 0, 0]),
        (f"{{{LISTED}[2, 3], from_time: month}}", {}, [28.25 / 59.25, 31 / 59.25]),
        (f"{{{LISTED}[6, 12], other: else, from_time: hour}}", {"length": "2", "step": "3h"}, [0.25, 0.25, 0.5]),
        (f"{{{LISTED}[2, 3], from_time: month, shares: {{2: 0.9, 3: 0.1}}}}", {}, [0.9, 0.1]),
        (f"{{{LISTED}[2, 3]}}", {}, [0.5, 0.5]),
    ],
)
def test_shares_are_the_calendars_unless_they_are_declared(world, attribute, rules, wanted):
    assert shares(world, attribute, **rules) == pytest.approx(wanted, abs=2e-3)


def test_attributes_are_drawn_so(world):
    schema = world.schema(attributes="{a: {type: boolean, missing: false, from_time: weekend}}")
    drawn = SeriesEncoder(schema).draw_conditions(7_000, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx([5 / 7, 2 / 7], abs=0.02)
