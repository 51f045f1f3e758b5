"""Arrays of images: NPZ, IDX, in memory. Headers before records; damaged, hostile and mismatched files in one line."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from doublure.data.images import Images, open_images
from doublure.errors import DataError, FaultyRecords
from doublure.schema import Schema


def idx(array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def refusal(source, schema):
    with pytest.raises(DataError) as caught:
        open_images(source).load(schema)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "names", [("images", "labels"), ("x", "y"), ("X", "Y"), ("image", "class"), ("x_train", "y_train")]
)
def test_npz_by_its_names(tmp_path, schema, pixels, labels, names):
    np.savez_compressed(tmp_path / "a.npz", **{names[0]: pixels[..., 0], names[1]: labels})
    found = open_images(tmp_path / "a.npz").load(schema)
    assert np.array_equal(found.content.images, pixels)
    assert found.frame["label"].tolist() == labels.tolist()
    assert (found.n_units, found.unit.tolist()) == (12, list(range(12)))
    assert repr(found) == "ImageSet(private)"


@pytest.mark.parametrize("kind", [">i4", ">u2", ">i8"])
def test_labels_in_another_byte_order_are_read(schema, pixels, kind):
    whole = Schema.parse(schema.to_yaml().replace("values: [cat, dog, 3]", "values: [0, 1, 2]"))
    numbers = np.arange(12) % 3
    found = open_images({"images": pixels, "labels": numbers.astype(kind)}).load(whole)
    assert found.frame["label"].astype(int).tolist() == numbers.tolist()


def test_two_arrays_that_could_be_meant_are_refused(schema, pixels, labels):
    for more in ({"x": pixels}, {"label": labels}, {"Class": labels}):
        given = {"images": pixels, "labels": labels} | more
        said = refusal(given, schema)
        assert "either of which could be meant" in said
        assert next(iter(more)) in said
    bare = Schema.parse(schema.to_yaml().split("label:", maxsplit=1)[0])
    assert len(open_images(given).load(bare).content) == 12  # which labels were meant is no matter here


def test_an_array_of_another_thing_stands_in_nobodys_way(schema, pixels, labels):
    coordinates = {"x": np.arange(12.0), "y": np.arange(12.0)}
    found = open_images({"images": pixels, "labels": labels} | coordinates).load(schema)
    assert found.frame["label"].tolist() == labels.tolist()
    assert "either of which could be meant" in refusal({"images": pixels, "y": labels, "class": labels}, schema)
    found = open_images({"images_y": pixels, "label_y": labels}).load(schema)  # a split may be called so
    assert found.frame["label"].tolist() == labels.tolist()
    several = Schema.parse(schema.to_yaml().replace("id: null, max_records: 1", "id: image_id, max_records: 2"))
    given = {"images": pixels, "labels": labels, "image_id": np.repeat(np.arange(6), 2)}
    assert open_images(given).load(several).unit.tolist() == np.repeat(np.arange(6), 2).tolist()


def test_a_split_is_named_behind_the_path(tmp_path, schema, pixels, labels):
    path = tmp_path / "a.npz"
    np.savez(path, x_train=pixels, y_train=labels, x_test=pixels[:3], y_test=labels[:3])
    assert "a.npz#train, a.npz#test" in refusal(path, schema)
    assert len(open_images(f"{path}#test").load(schema).content) == 3
    assert "no array" in refusal(f"{path}#other", schema)
    np.savez(path, x=pixels, y=labels, x_test=pixels[:3], y_test=labels[:3])
    assert "name one: a.npz#, a.npz#test" in refusal(path, schema)
    assert len(open_images(f"{path}#").load(schema).content) == 12


def test_an_array_that_would_have_to_be_unpickled_is_not_looked_at(tmp_path, schema, pixels, labels):
    np.savez(tmp_path / "a.npz", images=pixels, labels=labels, names=np.array([{}], dtype=object))
    with np.load(tmp_path / "a.npz") as arrays:
        assert len(open_images(arrays).load(schema).content) == 12


def test_a_flat_split_is_a_split(schema, pixels, labels):
    given = {"x_train": pixels, "y_train": labels, "x_test": pixels.reshape(12, -1), "y_test": labels}
    assert "several sets" in refusal(given, schema)


def test_a_word_before_a_name_is_a_split_only_where_no_name_is_plain(schema, pixels, labels):
    given = {"images": pixels, "labels": labels, "test_images": pixels[:3], "test_labels": labels[:3]}
    assert len(open_images(given).load(schema).content) == 12


def test_a_split_may_stand_before_the_names(tmp_path, schema, pixels, labels):
    path = tmp_path / "a.npz"
    several = Schema.parse(schema.to_yaml().replace("id: null, max_records: 1", "id: who, max_records: 12"))
    who = {"train_who": np.arange(12), "val_who": np.zeros(4)}
    both = {"train_images": pixels, "train_labels": labels, "val_images": pixels[:4], "val_labels": labels[:4]}
    np.savez(path, **both, **who)
    assert "a.npz#train, a.npz#val" in refusal(path, schema)
    found = open_images(f"{path}#val").load(several)
    assert found.frame["label"].tolist() == labels[:4].tolist()
    assert found.n_units == 1


def test_arrays_in_memory_and_images_themselves(schema, pixels, labels):
    found = open_images({"images": pixels, "labels": labels}).load(schema)
    again = open_images(Images(images=pixels, labels=found.content.labels)).load(schema)
    assert np.array_equal(again.content.images, pixels)
    assert again.frame.equals(found.frame)
    assert "neither a path nor arrays" in refusal(3, schema)


@pytest.mark.parametrize("form", ["channels first", "column major", "flat labels"])
def test_other_layouts_give_the_same_images(tmp_path, colour, labels, form):
    pixels = np.random.default_rng(1).integers(0, 256, (12, 6, 5, 3), dtype=np.uint8)
    given = {"images": pixels, "labels": labels}
    if form == "channels first":
        given["images"] = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    elif form == "column major":
        given["images"] = np.asfortranarray(pixels)
    else:
        given["labels"] = labels[:, None]
    np.savez(tmp_path / "a.npz", **given)
    found = open_images(tmp_path / "a.npz").load(colour)
    assert np.array_equal(found.content.images, pixels)
    assert found.frame["label"].tolist() == labels.tolist()


def test_the_range_is_the_schemas(schema, labels):
    tenths = np.linspace(-0.5, 1.5, 12).reshape(12, 1, 1, 1) * np.ones((12, 6, 5, 1))
    scaled = Schema.parse(
        schema.to_yaml().replace("1]}", "1], range: [0, 1]}").replace("1], on", "1], range: [0, 1], on")
    )
    found = open_images({"x": tenths, "y": labels}).load(scaled).content.images[:, 0, 0, 0]
    assert np.array_equal(found, np.rint(65_535 * np.clip(tenths[:, 0, 0, 0], 0, 1)).astype(np.uint16))
    tenths[4] = np.nan
    assert "1 holds numbers that are not finite (the first is number 5)" in refusal({"x": tenths, "y": labels}, scaled)


RANGED = "doublure: 1\nkind: images\nunits: 12\nimages: {shape: [6, 5, 1]%s}\n"


@pytest.mark.parametrize(
    ("dtype", "declared", "said"),
    [
        (np.float32, None, "images.range: is not declared"),
        (np.float16, None, "such as [0, 1]"),
        (bool, None, "such as [0, 1]"),
        (np.uint16, None, "such as [0, 65535]"),
        (">u2", None, "such as [0, 65535]"),
        (bool, (0, 255), "holds numbers from 0 to 1"),
        (np.int8, None, "holds numbers from -128 to 127"),
        (np.uint8, (0, 65_535), "declare one that uint8 can hold"),
        (np.uint8, (-1, 1), "holds numbers from 0 to 255"),
        (np.uint8, (0, 16), None),
        (np.int8, (0, 127), None),
        (np.int64, None, None),
        (np.uint16, (0, 255), None),
        (np.float32, (0, 255), None),
        (bool, (0, 1), None),
    ],
)
@pytest.mark.parametrize("saved", [True, False])
def test_numbers_that_cannot_be_what_the_schema_says_are_refused_by_their_type(
    tmp_path, monkeypatch, dtype, declared, said, saved
):
    monkeypatch.setattr("doublure.data.images.pictures.Reader.convert", lambda *_: pytest.fail("an image was read"))
    schema = Schema.parse(RANGED % ("" if declared is None else f", range: {[*declared]}"))
    given = {"images": np.ones((12, 6, 5), dtype=dtype)}
    np.savez(tmp_path / "a.npz", **given)
    source = open_images(tmp_path / "a.npz" if saved else given)
    if said is None:
        source.check(schema)
        return
    with pytest.raises(DataError) as caught:
        source.check(schema)
    assert said in str(caught.value)
    assert caught.value.field == "images.range"


def test_an_undeclared_range_stays_so_when_a_schema_is_written():
    schema = Schema.parse(RANGED % "")
    assert schema.images.range is None
    assert schema.images.ends == (0, 255)
    assert "range" not in schema.to_yaml()
    assert Schema.parse(schema.to_yaml()) == schema
    assert "range: [0, 255]" in Schema.parse(RANGED % ", range: [0, 255]").to_yaml()


def test_labels_that_do_not_fit_are_named_by_their_place(schema, pixels, labels):
    given = labels.astype(object)
    given[4], given[7], given[9] = "mouse", None, "mouse"
    with pytest.raises(FaultyRecords) as caught:
        open_images({"x": pixels, "y": given}).load(schema)
    assert [fault.number for fault in caught.value.faults] == [5, 8, 10]
    assert "mouse" not in str(caught.value)
    given[7] = "cat"
    with pytest.raises(FaultyRecords) as caught:
        open_images({"x": pixels, "y": given}).load(schema)
    assert [fault.number for fault in caught.value.faults] == [5, 10]
    assert "mouse" not in str(caught.value)


def test_another_size_is_refused_before_loading_or_resized(schema, resizing, labels):
    larger = np.full((12, 12, 10), 77, dtype=np.uint8)
    with pytest.raises(DataError, match="12x10x1"):
        open_images({"x": larger, "y": labels}).check(schema)
    found = open_images({"x": larger, "y": labels}).load(resizing).content.images
    assert found.shape == (12, 6, 5, 1)
    assert set(found.ravel()) == {77}
    coloured = np.full((12, 6, 5, 3), 90, dtype=np.uint8)
    assert set(open_images({"x": coloured, "y": labels}).load(resizing).content.images.ravel()) == {90}


def test_units_with_several_images_are_bounded(tmp_path, schema, pixels, labels):
    several = Schema.parse(schema.to_yaml().replace("id: null, max_records: 1", "id: who, max_records: 2"))
    who = np.array(["a"] * 5 + ["b"] * 3 + ["c"] * 4)
    np.savez(tmp_path / "a.npz", x_train=pixels, y_train=labels, who_train=who)
    found = open_images(tmp_path / "a.npz").load(several)
    assert found.unit.tolist() == [0, 0, 1, 1, 2, 2]
    assert np.array_equal(found.content.images, pixels[[0, 1, 5, 6, 8, 9]])
    assert "who" in refusal({"x": pixels, "y": labels}, several)


def test_labels_fit_the_schema(schema, pixels, labels):
    assert "outside the schema's list" in refusal({"x": pixels, "y": np.array(["cow"] * 12)}, schema)
    assert "another length" in refusal({"x": pixels, "y": labels[:4]}, schema)
    assert "has no labels" in refusal({"x": pixels}, schema)
    numbered = Schema.parse(schema.to_yaml().replace("[cat, dog, 3]", "[0, 1, 2]"))
    said = refusal({"x": pixels, "y": np.where(np.arange(12) == 3, np.nan, 1.0)}, numbered)
    assert "some images have none; give each image a label" in said
    other = Schema.parse(schema.to_yaml().replace("values: [cat, dog, 3]", "values: [cat, dog, 3], other: beast"))
    found = open_images({"x": pixels, "y": np.array(["cow"] * 12)}).load(other)
    assert set(found.frame["label"]) <= {"cow", "beast"}


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("which", ["labels", "ids"])
def test_one_plain_value_for_each_image(tmp_path, schema, pixels, labels, which, saved):
    # Cut to their first column, one-hot rows would be wrong labels, and ids would name the wrong unit: with it the
    # guarantee would be about something else than it says.
    several = Schema.parse(schema.to_yaml().replace("id: null, max_records: 1", "id: who, max_records: 2"))
    good = {"x": pixels, "y": labels, "who": np.arange(12) // 2}
    name = {"labels": "y", "ids": "who"}[which]

    def refused(values):
        given = good | {name: values}
        if saved:
            np.savez(tmp_path / "a.npz", **given)
        with pytest.raises(DataError) as caught:
            open_images(tmp_path / "a.npz" if saved else given).check(several)  # by the header: nothing is reserved yet
        assert caught.value.field == name
        return str(caught.value)

    assert "several values for each image" in refused(np.eye(12, dtype=np.int64))
    assert "several values for each image" in refused(np.stack([np.arange(12), np.arange(12) // 2], axis=1))
    assert "several fields" in refused(np.zeros(12, dtype=[("a", "i4"), ("b", "i4")]))
    assert "another length" in refused(np.zeros((), dtype=np.int64))
    assert open_images(good | {name: np.asarray(good[name])[:, None]}).load(several).n_units == 6


def test_ragged_arrays_in_memory_are_refused_in_a_line(schema, pixels):
    assert "no category" in refusal({"x": pixels, "y": [[1], [1, 2]] * 6}, schema)
    assert "what is no array" in refusal({"x": [[1], [1, 2]]}, schema)


def test_idx_pairs(tmp_path, schema, pixels):
    numbered = Schema.parse(schema.to_yaml().replace("[cat, dog, 3]", "[0, 1, 2]"))
    plain, packed = tmp_path / "train-images-idx3-ubyte", tmp_path / "t10k-images-idx3-ubyte.gz"
    plain.write_bytes(idx(pixels[..., 0]))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.arange(12) % 3))
    assert "of which alone a split can be named" in refusal(f"{plain}#train", schema)
    packed.write_bytes(gzip.compress(idx(pixels[..., 0])))
    assert "has no labels" in refusal(packed, numbered)
    assert "-labels-idx1-ubyte beside it" in refusal(packed, numbered)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.arange(12) % 3)))
    for path in (plain, packed):
        found = open_images(path).load(numbered)
        assert np.array_equal(found.content.images, pixels)
        assert found.frame["label"].tolist() == ["0", "1", "2"] * 4


HOSTILE_IDX = {
    "cut off": lambda content: content[:-7],
    "too long": lambda content: content + b"more" * 30,
    "no header": lambda content: content[:3],
    "another type": lambda content: b"\0\0\x0d" + content[3:],
    "another file": lambda content: b"PK" + content,
    "a million million images": lambda content: content[:4] + b"\xff\xff\xff\xff" + content[8:],
}


@pytest.mark.parametrize("name", HOSTILE_IDX)
@pytest.mark.parametrize("packed", [False, True])
def test_hostile_idx(tmp_path, schema, pixels, name, packed):
    unlabelled = Schema.parse(schema.to_yaml().partition("label")[0])
    path = tmp_path / ("images-idx3-ubyte.gz" if packed else "images-idx3-ubyte")
    content = HOSTILE_IDX[name](idx(pixels[..., 0]))
    path.write_bytes(gzip.compress(content) if packed else content)
    assert refusal(path, unlabelled)


@pytest.mark.parametrize("packed", [(False, True), (True, False), (False, False)])
def test_idx_pairs_in_capitals_and_half_packed(tmp_path, pixels, packed):
    numbered = Schema.parse(
        "doublure: 1\nkind: images\nunits: 12\nimages: {shape: [6, 5, 1]}\nlabel: {values: [0, 1, 2]}\n"
    )
    contents = {"T-IMAGES-IDX3-UBYTE": pixels[..., 0], "T-LABELS-IDX1-UBYTE": np.arange(12) % 3}
    paths = []
    for (name, array), pack in zip(contents.items(), packed, strict=True):
        paths.append(tmp_path / (f"{name}.GZ" if pack else name))
        paths[-1].write_bytes(gzip.compress(idx(array)) if pack else idx(array))
    found = open_images(paths[0]).load(numbered).content
    assert np.array_equal(found.images, pixels)
    assert found.labels.astype(int).tolist() == (np.arange(12) % 3).tolist()


def test_idx_labels_are_not_read_as_far_as_they_claim_to_go(tmp_path, schema, pixels):
    numbered = Schema.parse(schema.to_yaml().replace("[cat, dog, 3]", "[0, 1, 2]"))
    (tmp_path / "images-idx3-ubyte").write_bytes(idx(pixels[..., 0]))
    claim = b"\0\0\x08\x02" + b"\x7f\xff\xff\xff" + b"\0\x10\0\0"
    for content in (claim + bytes(12), idx(np.arange(11) % 3), idx(np.arange(12).reshape(3, 4) % 3)):
        (tmp_path / "labels-idx1-ubyte").write_bytes(content)
        assert "has another length than the images" in refusal(tmp_path / "images-idx3-ubyte", numbered)


def test_more_images_than_fit_in_memory_are_refused(tmp_path, schema, pixels, monkeypatch):
    made = np.empty

    def full(shape, *rest, **more):
        if shape == pixels.shape:
            raise MemoryError(f"Unable to allocate 29.0 GiB for an array with shape {shape}")
        return made(shape, *rest, **more)

    path = tmp_path / "images-idx3-ubyte"
    path.write_bytes(idx(pixels[..., 0]))
    monkeypatch.setattr(np, "empty", full)
    unlabelled = Schema.parse(schema.to_yaml().partition("label")[0])
    assert "more images than fit in memory" in refusal(path, unlabelled)


def npz_with(how: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def npy(array, **header):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    )
    return buffer.getvalue() + array.tobytes()


def with_header(text: str) -> bytes:
    line = text.encode().ljust(117) + b"\n"
    return npz_with(images=b"\x93NUMPY\1\0" + len(line).to_bytes(2, "little") + line)


def encrypted(content: bytes) -> bytes:
    """Return an archive of one member that says of itself that it is encrypted."""
    marked = bytearray(content)
    for place in (6, marked.find(b"PK\1\2") + 8):
        marked[place] |= 1
    return bytes(marked)


def scrambled(content: bytes) -> bytes:
    return content[:60] + bytes(byte ^ 255 for byte in content[60:75]) + content[75:]


HOSTILE_NPZ = {
    "encrypted": lambda pixels: encrypted(npz_with(images=npy(pixels))),
    "scrambled": lambda pixels: scrambled(npz_with(zipfile.ZIP_LZMA, images=npy(pixels))),
    "a header that does not end": lambda pixels: with_header("{'descr': '|u1', ("),
    "a header with a list for a name": lambda pixels: with_header("{[1]: 3}"),
    "no zip": lambda pixels: b"not a zip",
    "cut off": lambda pixels: npz_with(images=npy(pixels))[:-40],
    "fewer than its header says": lambda pixels: npz_with(images=npy(pixels, shape=(10**6, 6, 5, 1))),
    "more than its header says": lambda pixels: npz_with(images=npy(pixels) + b"!"),
    "no numbers": lambda pixels: npz_with(images=npy(pixels.astype("S1"))),
    "no images": lambda pixels: npz_with(images=npy(pixels.reshape(12, 30))),
    "nothing": lambda pixels: npz_with(),
    "two kinds of colour": lambda pixels: npz_with(images=npy(np.zeros((12, 6, 5, 2), np.uint8))),
}


@pytest.mark.parametrize("name", HOSTILE_NPZ)
def test_hostile_npz(tmp_path, schema, pixels, name):
    unlabelled = Schema.parse(schema.to_yaml().partition("label")[0])
    (tmp_path / "a.npz").write_bytes(HOSTILE_NPZ[name](pixels))
    assert refusal(tmp_path / "a.npz", unlabelled)


def test_a_pickle_is_never_loaded(tmp_path, schema, pixels):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    for given in (
        {"images": pixels, "labels": np.array([Trap()] * 12, object)},
        {"images": np.array([Trap()] * 12, object)},
    ):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            for name, array in given.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, array, allow_pickle=True)
        assert "Python objects" in refusal(tmp_path / "a.npz", schema)


def test_texts_that_would_fill_the_memory_are_refused_by_their_header(tmp_path, schema, pixels):
    np.savez_compressed(tmp_path / "a.npz", images=pixels, labels=np.array(["0"] * 12, "U20000"))
    assert "texts of more than 10,000 bytes" in refusal(tmp_path / "a.npz", schema)


def test_a_bomb_is_refused_by_its_header(tmp_path, schema):
    """A few kilobytes that would unpack to 40 GB."""
    unlabelled = Schema.parse(schema.to_yaml().partition("label")[0])
    path = tmp_path / "images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (2**31, 6, 5))))
    assert "32 GB" in refusal(path, unlabelled)


def test_an_npz_file_is_read_a_block_at_a_time(tmp_path, labels):
    wide = Schema.parse("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [64, 64, 1], range: [0, 1]}\n")
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((3000, 64, 64)))  # 98 MB of float64, 12 MB as bytes
    source = open_images(tmp_path / "a.npz")
    tracemalloc.start()
    try:
        source.load(wide)
        assert tracemalloc.get_traced_memory()[1] < 70e6  # what is held, and a few copies of a block
    finally:
        tracemalloc.stop()


def test_nothing_and_too_little(tmp_path, schema, pixels, labels):
    assert "no such file" in refusal(tmp_path / "none.npz", schema)
    (tmp_path / "empty.npz").write_bytes(b"")
    assert "is empty" in refusal(tmp_path / "empty.npz", schema)
    (tmp_path / "a.doc").write_text("a,b\n")
    assert "no set of images" in refusal(tmp_path / "a.doc", schema)
    assert "fewer than 2" in refusal({"x": pixels[:1], "y": labels[:1]}, schema)
