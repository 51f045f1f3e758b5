"""Synthetic images on disk: what is written is read back, whole or not there, and says what it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from doublure.data.images import Images, open_images
from doublure.data.images.sheets import contact_sheet, examples, rows_of
from doublure.data.images.writing import write_images
from doublure.errors import InputError, SettingError
from doublure.schema import Schema

ABOUT = {"watermark": "Synthetic data: for a test", "guarantee": "None."}


@pytest.fixture
def artificial(schema, pixels, labels):
    values = pd.Categorical.from_codes([["cat", "dog", "3"].index(label) for label in labels], ["cat", "dog", 3])
    return Images(images=pixels, labels=pd.Series(values))


def chunks(images, size=5):
    return (images.take(slice(first, first + size)) for first in range(0, len(images), size))


def test_npz_is_read_back_and_says_what_it_is(tmp_path, schema, artificial):
    path = tmp_path / "a.npz"
    assert write_images(chunks(artificial), path, schema, 12, about=ABOUT) == 12
    found = open_images(path).load(schema)
    assert np.array_equal(found.content.images, artificial.images)
    assert found.frame["label"].tolist() == [str(value) for value in artificial.labels]
    with np.load(path, allow_pickle=False) as arrays:
        assert str(arrays["watermark"]) == ABOUT["watermark"]
        assert arrays["images"].dtype == np.uint8
    first = path.read_bytes()
    write_images(chunks(artificial, 7), path, schema, 12, about=ABOUT)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("values", "kind"), [([0, 1, 2], "i"), (["a", "b", "c"], "U"), ([0.5, 1.5, 2.5], "f"), ([1, "a", 2.5], "U")]
)
def test_labels_keep_their_type_without_a_pickle(tmp_path, schema, pixels, values, kind):
    images = Images(images=pixels[:3], labels=pd.Series(pd.Categorical(values, categories=values)))
    write_images([images], tmp_path / "a.npz", schema, 3, about=ABOUT)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert arrays["labels"].dtype.kind == kind
        assert [str(value) for value in arrays["labels"]] == [str(value) for value in values]


def test_a_folder_is_read_back(tmp_path, schema, artificial):
    write_images(chunks(artificial), tmp_path / "set", schema, 12, about=ABOUT)
    found = open_images(tmp_path / "set").load(schema)
    order = np.argsort([str(value) for value in artificial.labels], kind="stable")
    assert np.array_equal(found.content.images, artificial.images[order])
    one = next((tmp_path / "set" / "cat").glob("*.png"))
    assert Image.open(one).text["watermark"] == ABOUT["watermark"]
    with pytest.raises(SettingError, match="not empty"):
        write_images(chunks(artificial), tmp_path / "set", schema, 12, about=ABOUT)


def test_a_folder_is_whole_or_not_there(tmp_path, schema, artificial):
    def breaking():
        yield artificial
        raise InputError("stopped")

    for name in ("set", "a.npz"):
        with pytest.raises(InputError, match="stopped"):
            write_images(breaking(), tmp_path / name, schema, 24, about=ABOUT)
    assert list(tmp_path.iterdir()) == []


def test_a_sheet_has_a_row_a_class_and_a_title(tmp_path, schema, artificial):
    write_images(chunks(artificial), tmp_path / "a.png", schema, 12, about=ABOUT)
    sheet = Image.open(tmp_path / "a.png")
    assert sheet.text["watermark"] == ABOUT["watermark"]
    rows = rows_of(artificial, schema.label.domain)
    assert [(name, len(pixels)) for name, pixels in rows] == [("cat", 4), ("dog", 4), ("3", 4)]
    taller = contact_sheet([*rows, ("more", artificial.images[:4])], "t")
    assert taller.height > contact_sheet(rows, "t").height
    first = np.asarray(contact_sheet([("", artificial.images[:1])], "t").convert("L"))
    scale = 7  # 6 x 5 pixels are drawn at least 40 high
    corner = next((y, x) for y, x in np.argwhere(first == artificial.images[0, 0, 0, 0]) if y > 30)
    drawn = first[corner[0] : corner[0] + 6 * scale : scale, corner[1] : corner[1] + 5 * scale : scale]
    assert np.array_equal(drawn, artificial.images[0, :, :, 0])


def test_a_sheet_of_no_images_and_of_colour(schema):
    empty = Images(images=np.zeros((0, 6, 5, 1), np.uint8))
    assert contact_sheet(rows_of(empty, ()), "nothing").width > 0
    coloured = np.zeros((1, 6, 5, 3), np.uint8)
    coloured[..., 0] = 250
    sheet = np.asarray(contact_sheet([("", coloured)], "t"))
    assert (sheet == (250, 0, 0)).all(axis=2).any()


def test_a_sheet_has_letters_other_than_latin_ones(artificial):
    one, other = (np.asarray(contact_sheet([(name, artificial.images[:1])], "t")) for name in ("шапка", "пашка"))
    assert not np.array_equal(one, other)  # Boxes in place of letters would be alike.


def test_examples_are_the_first_of_each_class(schema, artificial):
    assert examples(artificial, schema, 2).labels.tolist() == artificial.labels.tolist()[:6]


@pytest.mark.parametrize(("name", "n"), [("a.csv", 3), ("a.jpg", 3), ("a.png", 5001)])
def test_other_endings_are_refused(tmp_path, schema, artificial, name, n):
    with pytest.raises(SettingError):
        write_images([artificial], tmp_path / name, schema, n, about=ABOUT)


def test_images_hold_together(pixels):
    with pytest.raises(InputError):
        Images(images=pixels.astype(str))
    with pytest.raises(InputError):
        Images(images=pixels, labels=pd.Series([1]))
    unlabelled = Schema.parse("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [6, 5, 1]}")
    assert len(examples(Images(images=pixels), unlabelled)) == 12
