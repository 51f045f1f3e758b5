import numpy as np
import pytest

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.counts import count
from doublure.measures.tables.distributions import MOST_VALUES, densities, frequencies, smooth
from doublure.schema import Schema


def found(schema, real, synthetic):
    coder = Coder(schema=schema)
    counts = [count(coder.read(frame, "t").codes, coder.sizes, []) for frame in (real, synthetic)]
    return {entry.column: entry for entry in frequencies(coder, *counts)}


def test_frequencies_are_shares(schema, real, holdout):
    entries = found(schema, real, holdout)
    colour = entries["colour"]
    assert dict(zip(colour.labels, colour.real, strict=True))["red"] == pytest.approx(
        (real["colour"] == "red").mean(), abs=1e-6
    )
    assert colour.missing == pytest.approx(((real["colour"] == "?").mean(), (holdout["colour"] == "?").mean()))
    assert entries["size"].labels == ("S", "M", "L")
    assert entries["gain"].zero == pytest.approx(((real["gain"] == 0).mean(), (holdout["gain"] == 0).mean()))
    assert entries["number"].missing is None
    for entry in entries.values():
        extra = (entry.zero or (0, 0))[0] + (entry.missing or (0, 0))[0]
        assert sum(entry.real) + extra == pytest.approx(1, abs=1e-4)
        if entry.edges is not None:
            assert len(entry.edges) == len(entry.real) + 1


def test_of_many_values_the_rest_is_added_up():
    values = [f"v{number}" for number in range(40)]
    schema = Schema.from_plain(
        {
            "doublure": 1,
            "kind": "table",
            "units": 9,
            "columns": {"x": {"type": "category", "values": [*values, "never"], "missing": False}},
        }
    ).resolve({})
    import pandas as pd

    frame = pd.DataFrame({"x": values + ["v3"] * 10})
    entry = found(schema, frame, frame)["x"]
    assert len(entry.labels) == MOST_VALUES
    assert entry.labels[0] == "v3"
    assert entry.left_out[0] == 40 - MOST_VALUES
    assert sum(entry.real) + entry.left_out[1] == pytest.approx(1, abs=1e-5)
    assert "never" not in entry.labels


def test_a_density_has_mass_one_and_its_mode_in_place():
    grid = np.linspace(0, 10, 201)
    curve = smooth(np.random.default_rng(0).normal(4, 1, 5000), grid, 0.3)
    assert curve.sum() * (grid[1] - grid[0]) == pytest.approx(1)
    assert grid[curve.argmax()] == pytest.approx(4, abs=0.5)
    exact = np.exp(-0.5 * (grid - 4) ** 2 / 1.09) / np.sqrt(2 * np.pi * 1.09)
    assert np.abs(curve - exact).max() < 0.03


def test_mass_is_reflected_at_the_ends():
    grid = np.linspace(0, 1, 101)
    curve = smooth(np.random.default_rng(0).random(20_000), grid, 0.1)
    assert curve[1] == pytest.approx(1, abs=0.1)
    assert curve[-2] == pytest.approx(1, abs=0.1)


def test_zeros_stay_out_and_wide_numbers_are_drawn_on_a_logarithmic_scale(schema, real, holdout):
    coder = Coder(schema=schema)
    entries = {entry.column: entry for entry in densities(coder, coder.read(real, "r"), coder.read(holdout, "s"))}
    assert set(entries) == {"number", "real", "gain", "day", "moment"}
    assert entries["gain"].scale == "log"
    assert min(entries["gain"].points) > 0
    assert entries["number"].scale == "linear"


def test_a_constant_column_has_no_density(schema, real):
    coder = Coder(schema=schema)
    constant = coder.read(real.assign(number=7), "t")
    assert "number" not in {entry.column for entry in densities(coder, constant, constant)}
