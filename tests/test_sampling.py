"""Samples on disk: the ending fits the kind of data, and what is written says what it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.releasing.writing import write_sample


def test_a_table_is_written_in_its_forms(small, tmp_path):
    syn = db.load(small.run)
    for name in ("a.csv", "a.parquet"):
        assert write_sample(syn, tmp_path / name, 7, given={"sex": "Female"}, seed=1) == 7
    assert len(pd.read_csv(tmp_path / "a.csv")) == len(pd.read_parquet(tmp_path / "a.parquet")) == 7
    for name in ("a.npz", "a.png"):
        with pytest.raises(SettingError):
            write_sample(syn, tmp_path / name, 7)
    with pytest.raises(SettingError):
        write_sample(syn, tmp_path / "b.csv", -1)
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "a.parquet"}


def test_images_take_no_flag_of_tables(tmp_path):

    schema = db.Schema.parse("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [4, 4, 1]}")
    tiny = {"steps": 2, "lot_size": 4, "generator_batch": 4, "critic_channels": [2], "channels": [2], "features": 2}
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=1.0, delta=1e-5)
    syn = db.fit({"x": np.zeros((9, 4, 4), np.uint8)}, db.plan(schema, method="gan", **tiny), ledger=ledger, seed=1)
    with pytest.raises(SettingError, match="for tables"):
        write_sample(syn, tmp_path / "a.npz", 3, spreadsheet_safe=True)
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(SettingError):
            write_sample(syn, tmp_path / name, 3)
    assert write_sample(syn, tmp_path / "a.npz", 3) == 3
    with np.load(tmp_path / "a.npz") as arrays:
        assert "do not publish" in str(arrays["watermark"])
        assert "labels" not in arrays


def test_without_a_number_there_are_as_many_as_the_schema_says(small):
    syn = db.load(small.run)
    assert len(syn.sample(seed=1)) == syn.schema.units == syn.default_n
    assert syn.sample(seed=1).equals(syn.sample(syn.schema.units, seed=1))
