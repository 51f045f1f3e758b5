"""Data of any kind is told by its form alone."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from doublure.data.images import Images
from doublure.data.opening import kind_of, open_data
from doublure.errors import DataError
from doublure.schema import Schema


def test_the_kind_is_told_without_reading_a_record(tmp_path):
    buffer = io.BytesIO()
    Image.new("L", (4, 4)).save(buffer, "PNG")
    pd.DataFrame({"image": [buffer.getvalue()], "n": [1]}).to_parquet(tmp_path / "pictures.parquet")
    pd.DataFrame({"n": [1]}).to_parquet(tmp_path / "table.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"no")
    found = {path: kind_of(path) for path in ("a.npz", "a.npz#train", "t10k-images-idx3-ubyte.gz", "a.csv", "a.csv.gz")}
    assert list(found.values()) == ["images", "images", "images", "table", "table"]
    assert kind_of(tmp_path) == kind_of(tmp_path / "pictures.parquet") == "images"
    assert kind_of(tmp_path / "table.parquet") == kind_of(tmp_path / "broken.parquet") == "table"
    assert kind_of(pd.DataFrame({"a": [1]})) == "table"
    assert kind_of({"x": np.zeros((2, 4, 4))}) == kind_of(Images(images=np.zeros((1, 4, 4, 1), np.uint8))) == "images"


def test_a_table_that_lists_pictures_beside_it_is_a_set_of_images(tmp_path):
    faces, people = tmp_path / "faces.csv", tmp_path / "people.csv"
    faces.write_text("file,label\na.png,3\n")
    people.write_text("name,label\na.png,3\n")
    assert kind_of(faces) == "table"  # nothing lies beside it
    for folder in (tmp_path, tmp_path / "faces"):
        folder.mkdir(exist_ok=True)
        (folder / "a.png").touch()
        assert (kind_of(faces), kind_of(people)) == ("images", "table")
        with pytest.raises(DataError, match=r"or give the table that names the pictures and their labels"):
            open_data(tmp_path, "images").check_form()
        (folder / "a.png").unlink()


def test_data_of_another_kind_than_the_schema_is_refused(tmp_path):
    table = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean, missing: false}}")
    images = Schema.parse("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [4, 4, 1]}")
    pixels = np.zeros((3, 4, 4), dtype=np.uint8)
    assert open_data({"x": pixels}, images.kind).load(images).n_units == 3
    with pytest.raises(DataError, match="does not describe images"):
        open_data({"x": pixels}, "images").check(table)
    with pytest.raises(DataError):
        open_data({"x": pixels}, table.kind)
    with pytest.raises(DataError):
        open_data(pd.DataFrame({"a": [True, False]}), images.kind).check(images)
