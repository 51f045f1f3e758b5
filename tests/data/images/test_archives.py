"""Pictures and their labels as StyleGAN's and DPImageBench's archives hold them."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from doublure.data.images import open_images
from doublure.data.opening import kind_of
from doublure.errors import DataError, FaultyRecords
from doublure.schema import Schema


def members(pixels, labels, *, colour=False):
    """Return an archive's members, of which the last picture comes first."""
    held, index = {}, []
    for number, (each, label) in reversed([*enumerate(zip(pixels, labels, strict=True))]):
        name = f"{number // 10:05d}/img{number:08d}.png"
        content = io.BytesIO()
        shown = np.repeat(each, 3, axis=2) if colour else each[:, :, 0]
        Image.fromarray(shown).save(content, "png", compress_level=0)
        held[name] = content.getvalue()
        index.append([name, label if label not in ("3",) else 3])
    return held | {"dataset.json": json.dumps({"labels": index}).encode()}


def packed(path, held):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return path


def unpacked(folder, held):
    for name, content in held.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("write", [packed, unpacked])
def test_pictures_and_labels_are_read_in_the_order_of_names(tmp_path, schema, pixels, labels, write):
    path = write(tmp_path / "train_28.zip", members(pixels, labels))
    assert kind_of(path) == "images"
    found = open_images(path).load(schema)
    assert np.array_equal(found.content.images, pixels)
    assert found.frame["label"].tolist() == labels.tolist()


def test_grey_pictures_that_are_stored_in_colour_are_converted_where_the_schema_says_so(
    tmp_path, schema, resizing, pixels, labels
):
    path = packed(tmp_path / "train_28.zip", members(pixels, labels, colour=True))
    assert np.array_equal(open_images(path).load(resizing).content.images, pixels)
    with pytest.raises(FaultyRecords):
        open_images(path).load(schema)


def test_an_index_without_labels_is_refused_where_the_schema_has_some(tmp_path, schema, pixels, labels):
    held = members(pixels, labels) | {"dataset.json": b'{"labels": null}'}
    path = packed(tmp_path / "test_28.zip", held)
    with pytest.raises(DataError, match="has no labels; list their names"):
        open_images(path).load(schema)
    plain = Schema.parse("doublure: 1\nkind: images\nunits: 12\nimages: {shape: [6, 5, 1]}\n")
    assert np.array_equal(open_images(path).load(plain).content.images, pixels)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda index: index[1:], "has no label"),
        (lambda index: [*index, ["00000/none.png", "cat"]], "is not there"),
        (lambda index: [*index, index[0]], "is named a second time"),
    ],
)
def test_an_index_that_does_not_go_with_the_pictures_is_refused(tmp_path, schema, pixels, labels, change, rule):
    held = members(pixels, labels)
    index = change(json.loads(held["dataset.json"])["labels"])
    path = packed(tmp_path / "train_28.zip", held | {"dataset.json": json.dumps({"labels": index}).encode()})
    with pytest.raises(FaultyRecords, match="labels without a picture: 1") as refused:
        open_images(path).load(schema)
    assert [fault.rule for fault in refused.value.faults] == [rule]
    assert "cat" not in str(refused.value)


def test_a_picture_without_a_label_is_left_to_the_other_where_misfits_are_coerced(tmp_path, pixels, labels):
    held = members(pixels, labels)
    index = json.loads(held["dataset.json"])["labels"][1:]
    path = packed(tmp_path / "train_28.zip", held | {"dataset.json": json.dumps({"labels": index}).encode()})
    text = """
doublure: 1
kind: images
units: 12
misfit: coerce
images: {shape: [6, 5, 1]}
label: {values: [cat, dog, 3, none], other: none}
"""
    found = open_images(path).load(Schema.parse(text))
    assert found.frame["label"].tolist() == [*labels[:-1].tolist(), "none"]


@pytest.mark.parametrize(
    "index", [b"{", b"[]", b'{"labels": 3}', b'{"labels": [["a.png"]]}', b'{"labels": [["a.png", [0, 1]]]}']
)
def test_what_is_no_index_is_refused(tmp_path, pixels, labels, index):
    path = packed(tmp_path / "train_28.zip", members(pixels, labels) | {"dataset.json": index})
    with pytest.raises(DataError, match="is no index of labels"):
        open_images(path)


def test_an_archive_that_is_cut_off_is_refused(tmp_path, schema, pixels, labels):
    whole = packed(tmp_path / "train_28.zip", members(pixels, labels))
    source = open_images(whole)
    content = bytearray(whole.read_bytes())
    content[40:90] = bytes(50)  # within the first picture
    whole.write_bytes(bytes(content))
    with pytest.raises(FaultyRecords):
        source.load(schema)
    whole.write_bytes(whole.read_bytes()[:300])
    with pytest.raises(DataError, match=r"damaged|cannot be read"):
        source.load(schema)
