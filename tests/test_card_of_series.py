"""The card of synthetic series: what it says of states, and how it draws channels far from zero."""

from __future__ import annotations

import math

from doublure.releasing.card import column_sections, draw_series
from doublure.releasing.examples import ExampleRecords

WIND = (1.0, 1.0, 0.0, 2.0, 3.0, 1.0)
PRESSURE = (1010.0, 1012.5, math.nan, 1011.0, 1010.0, 1010.0)
SHOWN = ExampleRecords(series=({"wind": WIND, "pressure": PRESSURE},))


def test_states_are_named_most_frequent_first():
    columns = [
        {"name": "wind", "type": "category", "values": ["N", "E", "S", "W"]},
        {"name": "pressure", "type": "real", "bounds": [900, 1100]},
    ]
    (section,) = column_sections({"columns": columns}, None, SHOWN)
    assert {row["name"]: row["cells"] for row in section["rows"]} == {
        "wind": ("E, N, S and 1 more",),
        "pressure": ("1010 to 1012",),
    }


def test_a_line_is_drawn_within_the_range_of_its_values():
    drawn = {each["channel"]: str(each["drawing"]) for each in draw_series(SHOWN)}
    assert ">1010</text>" in drawn["pressure"]
    assert ">1012</text>" in drawn["pressure"]
    alone = {"quiet": (math.nan, math.nan)}
    assert len(draw_series(ExampleRecords(series=(alone,)))) == 1
