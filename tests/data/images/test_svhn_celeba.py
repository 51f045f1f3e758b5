"""SVHN's .mat files and CelebA's folder, as their authors published them, made here in miniature."""

from __future__ import annotations

import importlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from PIL import Image

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.images import mat5, open_images
from doublure.data.opening import kind_of
from doublure.errors import DataError
from doublure.schema import Schema
from doublure.schema.images import Pictures

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "schemas"
DIGITS = "doublure: 1\nkind: images\nunits: 30\nimages: {shape: [8, 8, 3]}\nlabel: {values: [0, 1, 2, 3]}\n"
FACES = (
    "doublure: 1\nkind: images\nunits: 12\nimages: {shape: [8, 8, 3], crop: [16, 12], on_mismatch: resize}\n"
    "label: {attributes: [Male, Smiling], values: ['0 0', '0 1', '1 0', '1 1']}\n"
)
SHAPES = {"X": (3, 4, 3, 5), "y": (5, 1), "empty": (0, 2), "one": (1, 1)}
NAMES = ("Bald", "Male", "Smiling")


def svhn(folder, *, seed=0, **changes):
    """Write 30 images of 8 x 8 as SVHN's authors do: X (H, W, C, N), y (N, 1), 10 for the digit 0."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 4, 30)
    images = draw.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
    held = {"X": images.transpose(1, 2, 3, 0), "y": np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]}
    path = folder / "train_32x32.mat"
    scipy.io.savemat(path, {name: value for name, value in (held | changes).items() if value is not None})
    return path, images, labels


def jpeg(pixels):
    sink = io.BytesIO()
    Image.fromarray(pixels).save(sink, "JPEG", quality=100, subsampling=0)
    return sink.getvalue()


def celeba(folder, *, packed=True, count=12):
    """Write images of 24 x 20 whose middle is a colour of their own, with three attributes and three splits."""
    folder.mkdir()
    draw = np.random.default_rng(1)
    marks = draw.choice([-1, 1], (count, len(NAMES)))
    rows = [f"{place:06}.jpg {' '.join(f'{mark:2}' for mark in row)}\n" for place, row in enumerate(marks, 1)]
    (folder / "list_attr_celeba.txt").write_text(f"{count}\n{' '.join(NAMES)} \n{''.join(rows)}")
    splits = [f"{place:06}.jpg {0 if place <= 8 else 1 if place <= 10 else 2}\n" for place in range(1, count + 1)]
    (folder / "list_eval_partition.txt").write_text("".join(splits))
    colours = draw.integers(0, 256, (count, 3), dtype=np.uint8)
    files = {}
    for place, colour in enumerate(colours, 1):
        pixels = np.zeros((24, 20, 3), dtype=np.uint8)
        pixels[3:21, 3:17] = colour
        files[f"{place:06}.jpg"] = jpeg(pixels)
    if packed:
        with zipfile.ZipFile(folder / "img_align_celeba.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(f"img_align_celeba/{name}", content)
    else:
        (folder / "img_align_celeba").mkdir()
        for name, content in files.items():
            (folder / "img_align_celeba" / name).write_bytes(content)
    return folder, marks, colours


# -- SVHN --------------------------------------------------------------------------------------------------------------


def test_svhn_is_read_as_it_was_published(tmp_path):
    path, images, labels = svhn(tmp_path)
    assert kind_of(path) == "images"
    loaded = open_images(path).load(Schema.parse(DIGITS)).content
    assert (loaded.images == images).all()
    assert loaded.labels.astype(int).tolist() == labels.tolist()


def test_a_schema_that_lists_ten_keeps_it(tmp_path):
    path, _, labels = svhn(tmp_path)
    loaded = open_images(path).load(Schema.parse(DIGITS.replace("[0, 1, 2, 3]", "[10, 1, 2, 3]"))).content
    assert loaded.labels.astype(int).tolist() == [label or 10 for label in labels]


def test_svhn_without_labels_is_refused_where_they_are_asked_for(tmp_path):
    path, images, _ = svhn(tmp_path, y=None)
    with pytest.raises(DataError, match="has no labels"):
        open_images(path).load(Schema.parse(DIGITS))
    bare = Schema.parse(DIGITS.partition("label")[0])
    assert (open_images(path).load(bare).content.images == images).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"X": None}, "cannot be read as SVHN's .mat"),
        ({"X": np.zeros((8, 8, 30), np.uint8)}, "cannot be read as SVHN's .mat"),
        ({"X": np.zeros((8, 8, 3, 30))}, "no bytes of pixels"),
        ({"X": np.zeros((8, 8, 4, 30), np.uint8)}, "no bytes of pixels"),
        ({"y": np.zeros((29, 1), np.uint8)}, "another length"),
    ],
    ids=["no images", "three axes", "floats", "four colours", "fewer labels"],
)
def test_another_mat_file_is_refused_in_one_line(tmp_path, changes, said):
    path, _, _ = svhn(tmp_path, **changes)
    with pytest.raises(DataError, match=said) as caught:
        open_images(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["u1", "i2", "f4", "f8", "i8"])
def test_numbers_are_those_that_scipy_has_written(tmp_path, packed, kind):
    held = {name: np.random.default_rng(2).integers(0, 99, shape).astype(kind) for name, shape in SHAPES.items()}
    scipy.io.savemat(tmp_path / "a.mat", held | {"text": "hello", "cell": np.array([[1], ["x"]], dtype=object)},
                     do_compression=packed)  # fmt: skip
    found = mat5.variables(tmp_path / "a.mat")
    assert set(found) == set(SHAPES)
    for name, shape in SHAPES.items():
        assert found[name].shape == shape
        assert (mat5.array(tmp_path / "a.mat", found[name]) == held[name]).all()


@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_mat_file_is_read_or_refused(tmp_path, packed):
    """Of such files scipy.io fells the process; here the worst is another picture."""
    path, images, labels = svhn(tmp_path)
    scipy.io.savemat(path, {"X": images.transpose(1, 2, 3, 0), "y": labels[:, None]}, do_compression=packed)
    whole, draw, refused = path.read_bytes(), np.random.default_rng(3), 0
    for _ in range(400):
        content = bytearray(whole)
        for place in draw.integers(0, min(len(content), int(draw.choice([400, len(content)]))), draw.integers(1, 6)):
            content[place] = draw.integers(256)
        path.write_bytes(content[: int(draw.choice([len(content), draw.integers(1, len(content))], p=[0.8, 0.2]))])
        try:
            assert open_images(path).load(Schema.parse(DIGITS)).content.images.shape == images.shape
        except DataError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("cut", [10, 150, -40])
def test_a_cut_file_is_refused(tmp_path, cut):
    path, _, _ = svhn(tmp_path)
    os.truncate(path, cut % path.stat().st_size)
    with pytest.raises(DataError):
        open_images(path).load(Schema.parse(DIGITS))


def test_svhn_is_fitted_from_the_command_line(tmp_path, capsys):
    path, _, _ = svhn(tmp_path)
    (tmp_path / "s.yaml").write_text(DIGITS)
    db.Ledger.create(tmp_path / "l", dataset="svhn", epsilon=20.0, delta=1e-2)
    own = [
        "--set",
        "features=32",
        "--set",
        "fit_steps=3",
        "--epsilon",
        "9",
        "--delta",
        "1e-3",
        "--method",
        "statistics",
    ]
    fit = ["fit", str(path), "--schema", str(tmp_path / "s.yaml"), "--ledger", str(tmp_path / "l"), *own]
    assert run_guarded(app, [*fit, "-o", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    assert db.load(tmp_path / "run").sample(4, seed=1).images.shape == (4, 8, 8, 3)
    assert run_guarded(app, ["schema", "check", str(tmp_path / "s.yaml"), "--data", str(path)]) == 0


# -- CelebA ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False], ids=["zip", "folder"])
def test_celeba_is_cut_scaled_and_labelled(tmp_path, packed):
    folder, marks, colours = celeba(tmp_path / "celeba", packed=packed)
    loaded = open_images(folder).load(Schema.parse(FACES)).content
    assert loaded.images.shape == (12, 8, 8, 3)
    # all of the cut is one colour: nothing of the black border is left
    assert np.abs(loaded.images.astype(int) - colours[:, None, None].astype(int)).max() <= 12
    wanted = [f"{int(male == 1)} {int(smiles == 1)}" for _, male, smiles in marks]
    assert loaded.labels.astype(str).tolist() == wanted


@pytest.mark.parametrize(("split", "rows"), [("train", slice(0, 8)), ("valid", slice(8, 10)), ("test", slice(10, 12))])
def test_a_split_is_named_behind_the_folder(tmp_path, split, rows):
    folder, marks, _ = celeba(tmp_path / "celeba")
    one = FACES.replace("[Male, Smiling]", "[Bald]").replace("['0 0', '0 1', '1 0', '1 1']", "[0, 1]")
    loaded = open_images(f"{folder}#{split}").load(Schema.parse(one)).content
    assert loaded.labels.astype(int).tolist() == [int(mark == 1) for mark in marks[rows, 0]]


def test_a_line_of_celebas_list_changes_no_other(tmp_path):
    folder, _, _ = celeba(tmp_path / "celeba")
    schema, path = Schema.parse(FACES.replace("units:", "misfit: coerce\nunits:")), folder / "list_attr_celeba.txt"
    text = path.read_bytes()
    before = open_images(folder).load(schema).content
    for line in (b"\xff.jpg 1 1 1", b"000001.jpg", b"\0 1 1 1", b"nowhere.jpg -1 1 1", b"\r"):
        path.write_bytes(text + line + b"\n" + line + b"\n")
        after = open_images(folder).load(schema).content
        assert np.array_equal(after.images[:12], before.images)
        assert after.labels[:12].tolist() == before.labels.tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("attributes: [Male, Smiling], ", ""), "any of which may be the label"),
        (lambda text: text.replace("Smiling", "Tall"), "is no attribute of these images"),
        (lambda text: text.replace("[16, 12]", "[30, 12]"), "have less than the schema's crop"),
        (lambda text: text.replace("on_mismatch: resize", "on_mismatch: refuse"), "have another size"),
        (lambda text: text.replace(", '1 1'", ""), "label"),
    ],
    ids=["no attribute", "unknown attribute", "crop too large", "no resizing", "a value that is not listed"],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, change, said):
    folder, _, _ = celeba(tmp_path / "celeba")
    with pytest.raises(DataError, match=said) as caught:
        open_images(folder).load(Schema.parse(change(FACES)))
    assert "\n" not in str(caught.value)
    assert ".jpg" not in str(caught.value)


def test_other_containers_have_no_attributes_to_name(tmp_path):
    path, _, _ = svhn(tmp_path)
    with pytest.raises(DataError, match=r"label\.attributes: are of CelebA's folder alone"):
        open_images(path).load(Schema.parse(DIGITS.replace("label: {", "label: {attributes: [Male], ")))


def test_a_missing_part_is_named(tmp_path):
    folder, _, _ = celeba(tmp_path / "celeba")
    (folder / "list_eval_partition.txt").unlink()
    assert open_images(folder).count == 12
    with pytest.raises(DataError, match="list_eval_partition"):
        open_images(f"{folder}#train")
    with pytest.raises(DataError, match="is no split of CelebA"):
        open_images(f"{folder}#all")
    (folder / "img_align_celeba.zip").unlink()
    with pytest.raises(DataError, match="no pictures that can be read"):
        open_images(folder).load(Schema.parse(FACES))


def test_a_list_that_leads_out_of_the_archive_reads_nothing(tmp_path):
    folder, _, _ = celeba(tmp_path / "celeba", packed=False)
    (tmp_path / "celeba" / "other.jpg").write_bytes(jpeg(np.zeros((24, 20, 3), np.uint8)))
    listed = (folder / "list_attr_celeba.txt").read_text().replace("000003.jpg", "../other.jpg")
    (folder / "list_attr_celeba.txt").write_text(listed)
    with pytest.raises(DataError, match=r"1 cannot be read .* \(the first is number 3\)"):
        open_images(folder).load(Schema.parse(FACES))


def test_a_crop_is_cut_out_of_arrays_too(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 10, 12, 3), dtype=np.uint8)
    text = "doublure: 1\nkind: images\nunits: 3\nimages: {shape: [6, 8, 3], crop: [6, 8]}\n"
    loaded = open_images({"images": images}).load(Schema.parse(text)).content
    assert (loaded.images == images[:, 2:8, 2:10]).all()
    larger = Schema.parse(text.replace("crop: [6, 8]", "crop: [11, 8], on_mismatch: resize"))
    source = open_images({"images": images})
    with pytest.raises(DataError, match="less than the schema's crop"):
        source.load(larger)


def test_samples_are_asked_for_with_attributes(tmp_path):
    folder, _, _ = celeba(tmp_path / "celeba")
    plan = db.plan(Schema.parse(FACES), method="statistics", epsilon=9.0, delta=1e-3, features=32, fit_steps=3)
    ledger = db.Ledger.create(tmp_path / "l", dataset="faces", epsilon=20.0, delta=1e-2)
    syn = db.fit(folder, plan, ledger=ledger, out=tmp_path / "run")
    assert set(syn.sample(5, given={"label": "1 0"}, seed=1).labels.astype(str)) == {"1 0"}
    assert db.load(tmp_path / "run").schema.label.attributes == ("Male", "Smiling")


@pytest.mark.parametrize("name", ["svhn", "celeba"])
def test_the_examples_are_schemas_of_the_published_sizes(name):
    schema = Schema.load(EXAMPLES / f"{name}.schema.yaml")
    assert schema.undeclared == ()
    assert schema.public_units == db.datasets.info(name).splits["train"]
    assert Schema.from_plain(schema.to_plain()) == schema


@pytest.mark.parametrize("name", ["svhn", "celeba"])
def test_the_benchmark_of_images_takes_it(tmp_path, monkeypatch, name):
    monkeypatch.syspath_prepend(str(EXAMPLES.parents[1] / "benchmarks"))
    images_of, schema_of = importlib.import_module("real_images"), importlib.import_module("images").schema_of
    monkeypatch.setattr(images_of, "SHARED", tmp_path)
    pixels, marks = np.zeros((6, 8, 8, 3), np.uint8), np.arange(6) % 2
    whole = np.stack([1 - marks, marks], axis=1)
    found = {"x": pixels} | ({"y": whole, "names": np.array(["Male", "Smiling"])} if name == "celeba" else {"y": marks})
    monkeypatch.setattr(db.datasets, "load", lambda *_: found)
    (images, labels), _ = images_of.train_and_test(name, False)
    assert labels.tolist() == marks.tolist()
    schema = schema_of(name, images, labels)
    assert (schema.shape, list(schema.label.domain), schema.public_units) == ((8, 8, 3), [0, 1], 6)


def test_a_schema_without_a_crop_is_what_it_was():
    assert "crop" not in Schema.parse(DIGITS).to_plain()["images"]
    assert "attributes" not in Schema.parse(DIGITS).to_plain()["label"]
    assert Pictures().crop is None
