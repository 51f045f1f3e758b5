"""Units are bounded on disk as they are in memory: the first records of each are used, wherever they stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.data.tables import source, unit_bounds
from doublure.data.tables.unit_bounds import UnitBounds


def expected(ids, most):
    """Return what the way in memory keeps."""
    table = source._bounded(pd.DataFrame({"row": np.arange(len(ids))}), pd.Series(ids, dtype=object), most)
    return table.frame["row"].tolist(), table.n_units, int(np.bincount(table.unit, minlength=1).max())


def check(folder, ids, most, batch, part):
    bounds = UnitBounds(most, folder, part_records=part)
    for start in range(0, len(ids), batch):
        bounds.add(pd.Series(ids[start : start + batch], dtype=object))
    found = bounds.bounded()
    rows, units, most_records = expected(ids, most)
    assert np.flatnonzero(found.used).tolist() == rows
    assert found.units == units == np.count_nonzero(found.first)
    assert found.most == most_records
    assert not (found.first & ~found.used).any()
    assert [*folder.iterdir()] == []  # nothing has a name


IDS = {
    "few records": [f"p{key}" for key in np.random.default_rng(0).integers(0, 400, 1000)],
    "many records": [f"p{key}" for key in np.random.default_rng(1).integers(0, 5, 1000)],
    "one unit": ["p"] * 300,
    "each its own": [f"p{key}" for key in range(300)],
    "far apart": ["p", *[f"q{key}" for key in range(200)], "p"],
    "odd texts": ["", " ", "é", "e\u0301", "0", "00", "\U0001f600", "a" * 1000] * 3,
    "nobody": [],
}


@pytest.mark.parametrize("part", [16, 10**6])
@pytest.mark.parametrize("batch", [1, 64, 10**6])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("ids", IDS)
def test_the_first_records_of_each_unit_are_used(tmp_path, ids, most, batch, part):
    if batch == 1 and ids not in {"far apart", "odd texts", "nobody"}:
        batch = 7
    check(tmp_path, IDS[ids], most, batch, part)


def test_parts_are_made_in_stretches(tmp_path, monkeypatch):
    monkeypatch.setattr(unit_bounds, "_AT_ONCE", 50)
    check(tmp_path, IDS["few records"], 3, 64, 16)


def test_a_unit_with_very_many_records_fills_no_part(tmp_path):
    bounds = UnitBounds(2, tmp_path, part_records=16)
    for _ in range(10):
        bounds.add(pd.Series(["p"] * 1000, dtype=object))
    assert bounds._counts.sum() == 20


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (
            unit_bounds,
            "hashed",
            ("pd.Series(codes).groupby(codes).cumcount() < most", "pd.Series(codes).groupby(codes).cumcount() < 1"),
        ),
        (unit_bounds, "hashed", ("rows + place", "rows")),
        (
            unit_bounds,
            "hashed",
            ("hashes.reshape(-1, 2)[codes[rows]]", "hashes.reshape(-1, 2)[codes[rows]] >> np.uint64(60)"),
        ),
        (unit_bounds, "first_of", ("place < most", "place <= most")),
        (
            unit_bounds,
            "first_of",
            ("part[1:, :2] != part[:-1, :2]", "part[1:, :1] // 2**62 != part[:-1, :1] // 2**62"),
        ),
        (UnitBounds, "_parts", ("ends[number] += high - low", "pass")),
    ],
)
def test_bounds_that_are_others_are_caught(tmp_path, monkeypatch, owner, name, edit):
    monkeypatch.setattr(unit_bounds, "_AT_ONCE", 50)
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, EOFError, IndexError)):
        check(tmp_path, IDS["few records"], 3, 64, 16)


def check_both_hashes_tell_units_apart():
    """With 64 bits two of 10^8 ids would meet in one run of 3,700: one of both people would lose records."""
    hashes = [(7, 1), (7, 2), (7, 1), (8, 2), (7, 2), (9, 2)]
    part = np.array([(*pair, place) for place, pair in enumerate(hashes)], dtype=np.uint64)
    used, begins, most = unit_bounds.first_of(part, 2)
    assert sorted(used.tolist()) == [0, 1, 2, 3, 4, 5]
    assert sorted(begins.tolist()) == [0, 1, 3, 5]
    assert most == 2


def test_both_hashes_tell_units_apart():
    check_both_hashes_tell_units_apart()


@pytest.mark.parametrize("half", [0, 1])
def test_half_a_hash_is_caught(monkeypatch, half):
    edit = ("(part[1:, :2] != part[:-1, :2]).any(1)", f"part[1:, {half}] != part[:-1, {half}]")
    plant(monkeypatch, unit_bounds, "first_of", edit)
    with pytest.raises(AssertionError):
        check_both_hashes_tell_units_apart()


def test_each_process_hashes_by_keys_of_its_own(tmp_path):
    one, other = UnitBounds(1, tmp_path), UnitBounds(1, tmp_path)
    assert len({*one._keys, *other._keys}) == 4
    assert all(len(key) == 16 for key in one._keys)
    assert unit_bounds._ROW_BYTES == 24
