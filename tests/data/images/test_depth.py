"""Range and type in are range and type out: in arrays and in files, of 8 bits and of 16."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import doublure as db
from doublure.data.images import open_images
from doublure.data.images.records import Images, in_range
from doublure.data.images.writing import write_images
from doublure.encode.image import ImageEncoder
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema
from doublure.schema.images import Pictures

TEXT = "doublure: 1\nkind: images\nunits: 12\nimages: {{shape: [6, 5, 1], range: {range}{more}}}\n"
GREYS = np.random.default_rng(0).integers(0, 4096, (12, 6, 5), dtype=np.uint16)


def schema_of(range_, more=""):
    return Schema.parse(TEXT.format(range=list(range_), more=more))


def folder_of(greys, place, form="png"):
    place.mkdir()
    for number, grey in enumerate(greys):
        Image.fromarray(grey).save(place / f"{number:02d}.{form}")
    return place


@pytest.mark.parametrize("form", ["png", "tiff"])
def test_greys_of_12_bits_keep_their_levels_in_files(tmp_path, form):
    schema = schema_of((0, 4095))
    held = open_images(folder_of(GREYS, tmp_path / "scans", form)).load(schema).content
    assert held.images.dtype == np.uint16
    assert np.array_equal(held.of_range(schema.images).images[..., 0], GREYS)
    write_images([held], tmp_path / "out", schema, 12, about={})
    written = np.asarray(Image.open(tmp_path / "out" / "00000001.png"))
    assert written.dtype.itemsize >= 2
    assert np.array_equal(written, GREYS[0])
    again = open_images(tmp_path / "out").load(schema).content
    assert np.array_equal(again.images, held.images)


@pytest.mark.parametrize(
    ("range_", "more", "dtype"),
    [
        ((0, 255), "", "uint8"),
        ((0, 16), "", "uint8"),
        ((0, 4095), "", "uint16"),
        ((0, 1), "", "float32"),
        ((0, 1), ", dtype: uint8", "uint8"),
        ((-1024, 3071), ", dtype: int16", "int16"),
        ((-1, 1), "", "float32"),
        ((0, 100_000), "", "float32"),
    ],
)
def test_arrays_come_back_in_their_range_and_type(tmp_path, range_, more, dtype):
    schema = schema_of(range_, more)
    lower, upper = range_
    given = lower + np.random.default_rng(1).random((12, 6, 5)) * (upper - lower)
    given = (given if dtype == "float32" else np.rint(given)).astype(dtype)
    held = open_images({"images": given}).load(schema).content
    write_images([held], tmp_path / "a.npz", schema, 12, about={})
    with np.load(tmp_path / "a.npz") as file:
        found = file["images"][..., 0]
    assert found.dtype == given.dtype
    assert np.allclose(found, given, rtol=0, atol=0 if dtype != "float32" else (upper - lower) / 65_535)


def test_deep_images_pass_through_the_encoder():
    schema = schema_of((0, 4095))
    encoder = ImageEncoder(schema)
    held = open_images({"images": GREYS}).load(schema).content
    assert np.array_equal(encoder.decode(encoder.encode(held)).of_range(schema.images).images[..., 0], GREYS)
    assert np.array_equal(encoder.decode(encoder.encode(held.in_bytes)).in_bytes.images, held.in_bytes.images)


def refused(greys, schema, place):
    with pytest.raises(DataError) as caught:
        open_images(folder_of(greys, place)).load(schema)
    return str(caught.value)


def test_pictures_of_another_depth_are_refused_or_converted(tmp_path):
    bright = np.full((2, 6, 5), 255, dtype=np.uint8)
    assert "have 8 bits, and the schema's range has 16" in refused(bright, schema_of((0, 4095)), tmp_path / "a")
    assert "16 bits" in refused(GREYS[:2], schema_of((0, 255)), tmp_path / "b")
    resizing = schema_of((0, 4095), ", on_mismatch: resize")
    held = open_images(tmp_path / "a").load(resizing).content
    assert (held.of_range(resizing.images).images == 4095).all()


def test_deep_pictures_are_resized_in_their_depth(tmp_path):
    ramp = np.repeat(np.arange(0, 4000, 100, dtype=np.uint16)[:, None], 20, axis=1)
    schema = Schema.parse(
        TEXT.replace("[6, 5, 1]", "[20, 20, 1]").format(range=[0, 4095], more=", on_mismatch: resize")
    )
    folder = folder_of([ramp, ramp], tmp_path / "ramps")
    found = open_images(folder).load(schema).content.of_range(schema.images).images[0, :, 0, 0]
    assert len(np.unique(found)) == 20
    assert np.abs(found[1:-1] - (200 * np.arange(20) + 50)[1:-1]).max() <= 1


def test_files_of_8_bits_count_by_a_range_of_8_bits(tmp_path):
    masks = np.random.default_rng(2).integers(0, 17, (3, 6, 5), dtype=np.uint8)
    schema = schema_of((0, 16))
    held = open_images(folder_of(masks, tmp_path / "masks")).load(schema).content
    assert held.images.max() == 255
    write_images([held], tmp_path / "out", schema, 3, about={})
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / "00000001.png")), masks[0])


def test_colours_of_16_bits_are_not_read_by_a_range_that_8_bits_lose(tmp_path):
    schema = Schema.parse(
        "doublure: 1\nkind: images\nunits: 2\nimages: {shape: [6, 5, 3], range: [0, 4095], on_mismatch: resize}\n"
    )
    deep = tmp_path / "deep"
    deep.mkdir()
    for name in ("a", "b"):
        (deep / f"{name}.png").write_bytes(of_16_bits())
    with pytest.raises(DataError, match="colours of 16"):
        open_images(deep).load(schema)


def of_16_bits():
    """Return a PNG of 5 x 6 pixels, three colours, 16 bits."""
    import struct
    import zlib

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + bytes(range(30)) for _ in range(6))
    head = struct.pack(">IIBBBBB", 5, 6, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_a_type_holds_its_range():
    with pytest.raises(SchemaError, match="uint8 holds numbers from 0 to 255"):
        schema_of((0, 4095), ", dtype: uint8")


def test_a_sample_has_the_range_and_the_old_schemas_keep_their_hash():
    assert in_range(np.array([0, 255], dtype=np.uint8), Pictures(range=(0.0, 16.0))).tolist() == [0, 16]
    plain = Schema.parse("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [6, 5, 1]}")
    assert "dtype" not in plain.to_yaml()
    assert Images(images=GREYS[..., None]).in_bytes.images.dtype == np.uint8


def test_a_fit_of_deep_images_is_sampled_released_and_verified(tmp_path):
    from doublure.releasing.verifying import verify

    schema = Schema.parse(
        "doublure: 1\nkind: images\nunits: 300\nimages: {shape: [48, 5, 1], range: [0, 4095]}\n"
        "label: {values: [a, b], roles: [target, condition]}\n"
    )
    data = {"images": np.tile(GREYS, (25, 8, 1)), "labels": np.array(["a", "b"] * 150)}
    plan = db.plan(schema, epsilon=5.0, delta=1e-5, method="statistics", model="gaussian")
    ledger = db.Ledger.create(tmp_path / "a.ledger", dataset="a", epsilon=9.0, delta=1e-3)
    syn = db.fit(data, plan, ledger=ledger, out=tmp_path / "run")
    drawn = syn.sample(50, seed=1)
    assert drawn.images.dtype == np.uint16
    assert 255 < drawn.images.max() <= 4095
    assert len(np.unique(drawn.images)) > 256
    db.release(syn, tmp_path / "bundle", n=60)
    verify(tmp_path / "bundle")
    said = "images of 48 x 5 pixels show what 15 x 5 waves show: they are drawn so and enlarged"
    assert said in plan.warnings
    assert f"{said}." in json.loads((tmp_path / "bundle" / "card.json").read_text())["limits"]
