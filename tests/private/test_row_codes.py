"""Compact records on disk, row by row: what comes back of them and of their units, and what is no whole file."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from doublure.private.row_codes import RowCodes

ROWS = np.random.default_rng(0).integers(0, 9, size=(7, 3)).astype(np.float32)
UNIT = np.array([0, 0, 1, 3, 2, 3, 3], dtype=np.int64)


def kept(folder, rows=ROWS, unit=None, path=None):
    return RowCodes.write([rows[:3], rows[3:]], unit=lambda: unit, folder=folder, path=path)


def test_rows_come_back_in_their_order(tmp_path):
    made = kept(tmp_path)
    assert made.rows.shape == (7, 3)
    np.testing.assert_array_equal(made.rows[np.array([4, 0, 6])], ROWS[[4, 0, 6]])
    assert list(tmp_path.iterdir()) == []  # it has no name


@pytest.mark.parametrize(("unit", "units"), [(None, 7), (UNIT, 4)])
def test_whose_they_are_is_kept_beside_them(tmp_path, unit, units):
    path = tmp_path / "rows"
    made, again = kept(tmp_path, unit=unit, path=path), RowCodes.open(path)
    for each in (made, again):
        assert each.n_units == units
        np.testing.assert_array_equal(each.unit, np.arange(7) if unit is None else unit)
        np.testing.assert_array_equal(each.rows[slice(7)], ROWS)


def test_no_record_is_of_no_unit(tmp_path):
    path = tmp_path / "rows"
    for unit in (None, UNIT[:0]):
        made = kept(tmp_path, ROWS[:0], unit=unit, path=path)
        assert (made.n_units, len(made.unit), made.rows.shape) == (0, 0, (0, 3))
        assert RowCodes.open(path).n_units == 0
        path.unlink()


def test_what_is_not_whole_is_nothing(tmp_path):
    assert RowCodes.open(tmp_path / "nowhere") is None
    path = tmp_path / "rows"
    kept(tmp_path, unit=UNIT, path=path)
    content = path.read_bytes()
    for broken in (b"", content[:-1], content[: len(content) // 2], b"x" * 100):
        path.write_bytes(broken)
        assert RowCodes.open(path) is None


def test_records_are_never_serialised_or_shown(tmp_path):
    made = kept(tmp_path)
    assert repr(made) == "RowCodes(private)"
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(made)
