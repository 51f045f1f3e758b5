"""Pictures: folders by class and Parquet with bytes; every public rule, and nothing lost."""

from __future__ import annotations

import io
import json
import unicodedata
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import doublure as db
from doublure.data.images import open_images
from doublure.data.images.files import class_of, folder_name
from doublure.errors import DataError, DataWarning, FaultyRecords
from doublure.schema import Schema


def encoded(picture, form="PNG", **options):
    buffer = io.BytesIO()
    picture.save(buffer, format=form, **options)
    return buffer.getvalue()


def noisy(mode="L"):
    shape = (6, 5, 3) if mode == "RGB" else (6, 5)
    return Image.fromarray(np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8))


@pytest.fixture
def pictures(pixels):
    return [encoded(Image.fromarray(each[:, :, 0])) for each in pixels]


@pytest.fixture
def folder(tmp_path, pictures, labels):
    for number, (content, label) in enumerate(zip(pictures, labels, strict=True)):
        place = tmp_path / "set" / label
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:03d}.png").write_bytes(content)
    return tmp_path / "set"


def refusal(source, schema):
    with pytest.raises(DataError) as caught:
        open_images(source).load(schema)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_by_class(folder, schema, pixels, labels):
    found = open_images(folder).load(schema)
    order = np.argsort(labels, kind="stable")
    assert np.array_equal(found.content.images, pixels[order])
    assert found.frame["label"].tolist() == labels[order].tolist()
    (folder / "cat" / ".hidden").write_text("x")
    (folder / "cat" / "Thumbs.db").write_text("x")
    assert len(open_images(folder).load(schema).content) == 12


def test_no_split_of_a_folder_or_a_parquet_file_is_named(folder, tmp_path, schema, pictures, labels):
    """Whoever asks for one would get all of it."""
    pd.DataFrame({"img": pictures, "label": labels}).to_parquet(tmp_path / "a.parquet")
    for path in (folder, tmp_path / "a.parquet"):
        assert len(open_images(path).load(schema).content) == 12
        for split in ("train", ""):
            assert f"{path.name}: is no NPZ file, of which alone a split" in refusal(f"{path}#{split}", schema)
    with_hash = folder.with_name("set#1")
    folder.rename(with_hash)
    assert len(open_images(with_hash).load(schema).content) == 12


def test_a_folder_without_classes(tmp_path, schema, pictures, pixels):
    unlabelled = Schema.parse(schema.to_yaml().partition("label")[0])
    for number, content in enumerate(pictures):
        (tmp_path / f"{number:02d}.png").write_bytes(content)
    assert np.array_equal(open_images(tmp_path).load(unlabelled).content.images, pixels)
    assert "has no labels" in refusal(tmp_path, schema)


def test_folders_that_do_not_fit_are_refused_before_a_picture_is_opened(folder, schema, tmp_path, monkeypatch):
    monkeypatch.setattr("doublure.data.images.files.content_of", lambda _: pytest.fail("a picture was opened"))
    unlabelled = Schema.parse(schema.to_yaml().partition("label")[0])
    assert "no label" in refusal(folder, unlabelled)
    (folder / "secret patient").mkdir()
    (folder / "secret patient" / "a.png").write_bytes(b"x")
    said = refusal(folder, schema)
    assert "folders that are no class of the schema: 1" in said
    assert "secret" not in said
    (folder / "cat" / "list.bin").write_text("x")
    assert "files or folders that are no PNG, JPEG, WebP, BMP or TIFF by their endings: 1" in refusal(folder, schema)
    (folder / "loose.png").write_bytes(b"x")
    assert "beside the folders" in refusal(folder, schema)
    (tmp_path / "empty").mkdir()
    assert "holds no pictures" in refusal(tmp_path / "empty", schema)
    monkeypatch.chdir(tmp_path / "empty")
    assert refusal(".", schema).startswith(".: holds no pictures")


@pytest.mark.parametrize("label", ["a/b", "..", ".x", "50%", "x.", "é", "a:b", "CON?"])
def test_a_class_of_any_name_has_a_folder(label):
    name = folder_name(label)
    assert class_of(name) == class_of(name, [label]) == label
    assert "/" not in name
    assert not name.startswith(".")


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("é", "é"),
        (unicodedata.normalize("NFD", "é"), "é"),  # as some file systems hand it back
        ("é", unicodedata.normalize("NFD", "é")),
        ("日本", "日本"),
        ("50%25", "50%25"),
        ("50%25", "50%"),
        ("100%41", "100%41"),
        ("%C3%A9", "é"),
    ],
)
@pytest.mark.parametrize("other", ["", ", other: b"])
def test_a_folder_that_a_person_named_is_its_class(tmp_path, pictures, name, spelt, other):
    schema = Schema.parse(f"{SMALL}label: {{values: [{json.dumps(spelt)}, b]{other}}}\n")
    for place in (name, "b"):
        (tmp_path / "set" / place).mkdir(parents=True)
        (tmp_path / "set" / place / "a.png").write_bytes(pictures[0])
    found = open_images(tmp_path / "set").load(schema).content.labels
    assert sorted(found) == sorted([spelt, "b"])


def test_a_folder_that_is_no_escape_is_no_other_class(tmp_path, pictures):
    schema = Schema.parse(f"{SMALL}label: {{values: [100A, b]}}\n")
    for place in ("100%41", "b"):
        (tmp_path / "set" / place).mkdir(parents=True)
        (tmp_path / "set" / place / "a.png").write_bytes(pictures[0])
    assert "folders that are no class of the schema: 1" in refusal(tmp_path / "set", schema)


SMALL = "doublure: 1\nkind: images\nunits: 2\nimages: {shape: [6, 5, 1]}\n"


MADE = {
    "cut off": lambda good: good[:-30],
    "cut off at its very end": lambda good: good[:-1],
    "a JPEG cut off at its very end": lambda good: encoded(Image.new("L", (5, 6), 200), "JPEG")[:-1],
    "no picture": lambda good: b"GIF89a and more",
    "nothing": lambda good: b"",
    "a bomb": lambda good: encoded(Image.new("1", (9000, 9000))),
    "a worse bomb": lambda good: encoded(Image.new("1", (20_000, 20_000))),
    "a WebP cut off": lambda good: encoded(noisy("RGB"), "WEBP", lossless=True)[:-20],
    "a BMP cut off": lambda good: encoded(noisy(), "BMP")[:-9],
    "a TIFF cut off": lambda good: encoded(noisy(), "TIFF")[:-3],
    "a packed TIFF cut off": lambda good: encoded(noisy(), "TIFF", compression="tiff_lzw")[:-20],
    "a TIFF of real numbers": lambda good: encoded(Image.fromarray(np.ones((6, 5), dtype=np.float32)), "TIFF"),
    "a TIFF of 32 bits": lambda good: encoded(Image.fromarray(np.full((6, 5), 9, dtype=np.int32)), "TIFF"),
}
CONVERTED = {
    "another size": lambda: encoded(Image.new("L", (10, 12), 200)),
    "colour": lambda: encoded(Image.new("RGB", (5, 6), (200, 200, 200))),
    "transparent": lambda: encoded(Image.new("RGBA", (5, 6), (200, 200, 200, 255))),
    "palette": lambda: encoded(Image.new("RGB", (5, 6), (200, 200, 200)).convert("P", palette=Image.Palette.ADAPTIVE)),
    "16 bits": lambda: encoded(Image.fromarray(np.full((6, 5), 200 * 257, dtype=np.uint16))),
    "one bit": lambda: encoded(Image.new("1", (5, 6), 1)),
    "CMYK": lambda: encoded(Image.new("RGB", (5, 6), (200, 200, 200)).convert("CMYK"), "JPEG", quality=100),
    "a TIFF of 16 bits": lambda: encoded(Image.fromarray(np.full((6, 5), 200 * 257, dtype=np.uint16)), "TIFF"),
    "a WebP, which has colours": lambda: encoded(Image.new("L", (5, 6), 200), "WEBP", lossless=True),
    "a WebP that moves": lambda: encoded(
        Image.new("L", (5, 6), 200), "WEBP", lossless=True, save_all=True, append_images=[Image.new("L", (5, 6), 9)]
    ),
    "a TIFF of two pages": lambda: encoded(
        Image.new("L", (5, 6), 200), "TIFF", save_all=True, append_images=[Image.new("L", (5, 6), 9)]
    ),
    "animated": lambda: encoded(Image.new("L", (5, 6), 200), save_all=True, append_images=[Image.new("L", (5, 6), 9)]),
}


@pytest.mark.parametrize("name", MADE)
def test_what_cannot_be_read_is_refused_under_either_rule(folder, schema, resizing, pictures, name):
    (folder / "cat" / "name of somebody.png").write_bytes(MADE[name](pictures[0]))
    for rule in (schema, resizing):
        said = refusal(folder, rule)
        assert "of the images 1 " in said
        assert "somebody" not in said


@pytest.mark.parametrize("name", CONVERTED)
def test_what_does_not_fit_is_refused_or_converted_as_the_schema_says(folder, schema, resizing, name):
    (folder / "3" / "zz.png").write_bytes(CONVERTED[name]())
    assert "declare on_mismatch: resize" in refusal(folder, schema)
    found = open_images(folder).load(resizing).content
    place = found.labels.tolist().index("cat") - 1  # the last of class 3
    expected = 255 if name == "one bit" else 200
    assert np.abs(found.images[place].astype(int) - expected).max() <= 1
    assert len(found) == 13


@pytest.mark.parametrize(
    ("name", "form", "options"),
    [("a.bmp", "BMP", {}), ("a.TIF", "TIFF", {}), ("a.tiff", "TIFF", {"compression": "tiff_lzw"})],
)
def test_grey_pictures_of_other_forms_come_as_they_are(tmp_path, name, form, options):
    (tmp_path / name).write_bytes(encoded(noisy(), form, **options))
    (tmp_path / "b.png").write_bytes(encoded(noisy()))
    found = open_images(tmp_path).load(Schema.parse(SMALL)).content.images
    assert np.array_equal(found[0, :, :, 0], np.asarray(noisy()))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("name", "form", "options"), [("a.webp", "WEBP", {"lossless": True}), ("a.bmp", "BMP", {}), ("a.tif", "TIFF", {})]
)
def test_coloured_pictures_of_other_forms_come_as_they_are(tmp_path, name, form, options):
    (tmp_path / name).write_bytes(encoded(noisy("RGB"), form, **options))
    (tmp_path / "b.png").write_bytes(encoded(noisy("RGB")))
    found = open_images(tmp_path).load(Schema.parse(SMALL.replace("5, 1]", "5, 3]"))).content.images
    assert np.array_equal(found[0], np.asarray(noisy("RGB")))
    assert np.array_equal(found[0], found[1])


def test_sixteen_bits_of_colour_in_a_tiff_are_not_halved_in_silence(tmp_path):
    """Pillow writes none, and opens them as if they had eight."""
    entries = [(256, 5), (257, 6), (258, 16), (259, 1), (262, 2), (273, 200), (277, 3), (278, 6), (279, 180)]
    head = b"II*\0" + (8).to_bytes(4, "little") + len(entries).to_bytes(2, "little")
    fields = {258: (3, 150)}  # three samples' bits stand at byte 150
    for tag, value in entries:
        count, held = fields.get(tag, (1, value))
        head += tag.to_bytes(2, "little") + (3).to_bytes(2, "little") + count.to_bytes(4, "little")
        head += held.to_bytes(4, "little")
    content = (head + bytes(4)).ljust(150, b"\0") + (16).to_bytes(2, "little") * 3
    content = content.ljust(200, b"\0") + (200 * 257).to_bytes(2, "little") * 90
    (tmp_path / "a.tif").write_bytes(content)
    (tmp_path / "b.png").write_bytes(encoded(Image.new("RGB", (5, 6), (200, 200, 200))))
    text = SMALL.replace("5, 1]", "5, 3]RULE")
    said = refusal(tmp_path, Schema.parse(text.replace("RULE", "")))
    assert "1 has other colours than the schema's shape: grey, a palette, transparency or 16 bits" in said
    found = open_images(tmp_path).load(Schema.parse(text.replace("RULE", ", on_mismatch: resize"))).content.images
    assert np.abs(found[0].astype(int) - 200).max() <= 1


def test_a_fault_is_named_where_nobody_else_looks(folder, schema, pictures):
    (folder / "cat" / "name of somebody.png").write_bytes(pictures[0][:-30])
    (folder / "dog" / "zz.png").write_bytes(CONVERTED["another size"]())
    with pytest.raises(FaultyRecords) as caught:
        open_images(folder).load(schema)
    named = {fault.name: fault for fault in caught.value.faults}
    assert set(named) == {"cat/name of somebody.png", "dog/zz.png"}
    assert named["dog/zz.png"].rule == "have another size than the schema's shape"
    order = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.png"))
    assert order[named["dog/zz.png"].number - 1] == "dog/zz.png"
    assert "somebody" not in str(caught.value)
    (folder / "a secret class").mkdir()
    with pytest.raises(FaultyRecords) as caught:
        open_images(folder).check(schema)
    assert [fault.name for fault in caught.value.faults] == ["a secret class"]
    (folder / "cat" / "list.bin").write_text("x")
    with pytest.raises(FaultyRecords) as caught:
        open_images(folder).check(schema)
    assert [fault.name for fault in caught.value.faults] == ["cat/list.bin"]
    assert "list" not in str(caught.value)


def test_every_fault_is_counted_and_none_is_lost(folder, schema, pictures):
    (folder / "cat" / "a.png").write_bytes(pictures[0][:-30])
    for number in range(2):
        (folder / "dog" / f"b{number}.png").write_bytes(CONVERTED["another size"]())
    said = refusal(folder, schema)
    assert "1 cannot be read" in said
    assert "2 have another size" in said
    assert "fix or remove them" in said


def test_transparency_turns_white_and_a_cameras_mark_is_followed(tmp_path, resizing):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(encoded(Image.new("LA", (5, 6), (0, 0))))
    lying = Image.new("L", (6, 5), 0)
    lying.paste(255, (0, 0, 3, 5))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    (tmp_path / "cat" / "b.jpg").write_bytes(encoded(lying, "JPEG", exif=exif, quality=100))
    white, turned = open_images(tmp_path).load(resizing).content.images
    assert set(white.ravel()) == {255}
    assert turned[:3].min() > 200
    assert turned[3:].max() < 50


@pytest.mark.parametrize("form", ["bytes", "struct"])
def test_parquet_with_bytes(tmp_path, schema, pictures, pixels, labels, form):
    cells = pictures if form == "bytes" else [{"bytes": content, "path": "x.png"} for content in pictures]
    path = tmp_path / "a.parquet"
    pd.DataFrame({"img": cells, "label": labels, "who": ["a"] * 6 + ["b"] * 6}).to_parquet(path)
    found = open_images(path).load(schema)
    assert np.array_equal(found.content.images, pixels)
    assert found.frame["label"].tolist() == labels.tolist()
    several = Schema.parse(schema.to_yaml().replace("id: null, max_records: 1", "id: who, max_records: 2"))
    assert open_images(path).load(several).unit.tolist() == [0, 0, 1, 1]


def test_two_columns_of_pictures_that_could_be_meant_are_refused(tmp_path, schema, pictures, labels):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"image": pictures, "x": pictures, "label": labels}).to_parquet(path)
    assert "holds image and x, either of which could be meant" in refusal(path, schema)
    pd.DataFrame({"image": pictures, "image_small": pictures, "label": labels, "label_name": labels}).to_parquet(path)
    assert len(open_images(path).load(schema).content) == 12


def test_two_columns_of_labels_are_refused_where_a_label_is_asked_for(tmp_path, schema, pictures, labels):
    path, beside = tmp_path / "a.parquet", {"x": range(12), "y": range(12)}
    pd.DataFrame({"image": pictures, "label": labels} | beside).to_parquet(path)
    assert open_images(path).load(schema).frame["label"].tolist() == labels.tolist()
    pd.DataFrame({"image": pictures, "label": labels, "class": labels}).to_parquet(path)
    assert "holds label and class, either of which could be meant" in refusal(path, schema)
    bare = Schema.parse(schema.to_yaml().split("label:", maxsplit=1)[0])
    assert len(open_images(path).load(bare).content) == 12


def test_parquet_with_each_picture_once(tmp_path, schema, pictures, pixels, labels):
    path = tmp_path / "a.parquet"
    columns = [pa.array(part).dictionary_encode() for part in (pictures, list(labels))]
    pq.write_table(pa.table(columns, names=["image", "label"]), path)
    found = open_images(path).load(schema).content
    assert np.array_equal(found.images, pixels)
    assert found.labels.astype(str).tolist() == labels.tolist()


@pytest.mark.parametrize("coded", [False, True])
def test_text_that_is_none_changes_no_other_row_of_parquet(tmp_path, schema, pictures, pixels, labels, coded):
    """Neither a path that is not looked at, nor a label or an id."""
    said = pa.array([b"\xff", *[label.encode() for label in labels[1:]]]).view(pa.string())
    cells = pa.StructArray.from_arrays([pa.array(list(pictures)), said], ["bytes", "path"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"img": cells, "label": said.dictionary_encode() if coded else said, "who": said}), path)
    coerced = Schema.parse(schema.to_yaml() + "misfit: coerce\n")
    found = open_images(path).load(coerced)
    assert np.array_equal(found.content.images, pixels)
    assert found.frame["label"].tolist()[1:] == labels.tolist()[1:]
    several = Schema.parse(coerced.to_yaml().replace("id: null, max_records: 1", "id: who, max_records: 12"))
    assert len(open_images(path).load(several).content) == 11


def test_parquet_that_does_not_fit(tmp_path, schema, pictures, labels):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"n": range(12), "label": labels}).to_parquet(path)
    assert "no column of pictures" in refusal(path, schema)
    pd.DataFrame({"img": [None, *pictures[1:]], "label": labels}).to_parquet(path)
    assert "1 cannot be read" in refusal(path, schema)
    pd.DataFrame({"img": pictures}).to_parquet(path)
    assert "has no labels" in refusal(path, schema)
    path.write_bytes(path.read_bytes()[:-50])
    assert "cannot be read as Parquet" in refusal(path, schema)


def test_sixteen_bits_of_colour_are_not_halved_in_silence(tmp_path):
    """Pillow opens such a PNG as if it had eight."""

    def chunk(kind, content):
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    rows = b"".join(b"\0" + b"\xc8\x40" * 15 for _ in range(6))  # 5 x 6 pixels of three samples of two bytes
    header = (5).to_bytes(4, "big") + (6).to_bytes(4, "big") + bytes([16, 2, 0, 0, 0])
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    (tmp_path / "b.png").write_bytes(encoded(Image.new("RGB", (5, 6), (200, 200, 200))))
    text = "doublure: 1\nkind: images\nunits: 2\nimages: {shape: [6, 5, 3]RULE}\n"
    said = refusal(tmp_path, Schema.parse(text.replace("RULE", "")))
    assert "1 has other colours than the schema's shape: grey, a palette, transparency or 16 bits" in said
    found = open_images(tmp_path).load(Schema.parse(text.replace("RULE", ", on_mismatch: resize"))).content.images
    assert np.abs(found[0].astype(int) - 200).max() <= 1


def test_the_way_to_labels_is_the_containers_own(tmp_path, schema, pictures):
    (tmp_path / "a.png").write_bytes(pictures[0])
    with pytest.raises(DataError) as caught:
        open_images(tmp_path).check(schema)
    assert "a folder for each class" in caught.value.remedy


def test_texts_beside_the_pictures_are_skipped_with_a_word(folder, schema, pixels):
    (folder / "notes.txt").write_text("scanned in May")
    (folder / "cat" / "README.MD").write_text("cats")
    for misfit in ("refuse", "coerce"):
        own = Schema.parse(schema.to_yaml() + f"\nmisfit: {misfit}\n")
        with pytest.warns(DataWarning, match="2 files are no picture but a text by its ending, and skipped"):
            assert len(open_images(folder).load(own).content) == len(pixels)
    (folder / "notes.docx").write_text("x")
    assert "files beside the folders of its classes" in refusal(folder, schema)


def test_a_table_in_a_folder_is_named_as_what_to_give(folder, schema):
    """A stranger's folder of two classes held labels.csv, which the refusal did not name."""
    (folder / "labels.csv").write_text("file,label\ncat/0.png,cat\n")
    with pytest.raises(DataError, match=r"or give \S*labels\.csv, if it names the pictures and their labels"):
        db.draft(folder)


def test_of_many_tables_in_a_folder_none_is_named(folder, schema):
    """Of 300 tables, one a patient, the refusal listed each name, in 7,235 characters."""
    for patient in range(300):
        (folder / f"patient_{patient}.csv").touch()
    said = refusal(folder, schema)
    assert "or give the table that names the pictures and their labels" in said
    assert "patient" not in said
    assert len(said) < 300
