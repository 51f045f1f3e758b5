"""Labels out of an image's attributes, images cut out of larger ones, and what is no form of images any more."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import doublure as db
from doublure.data.images import open_images
from doublure.data.opening import kind_of
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema
from doublure.schema.images import Pictures

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "schemas"
DIGITS = "doublure: 1\nkind: images\nunits: 30\nimages: {shape: [8, 8, 3]}\nlabel: {values: [0, 1, 2, 3]}\n"
FACES = (
    "doublure: 1\nkind: images\nunits: 12\nimages: {shape: [8, 8, 3]}\n"
    "label: {attributes: [Male, Smiling], values: ['0 0', '0 1', '1 0', '1 1']}\n"
)
NAMES = ("Bald", "Male", "Smiling")


def faces(count=12):
    """Return what ``datasets.load("celeba")`` does, smaller."""
    draw = np.random.default_rng(1)
    pixels = draw.integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
    return {"x": pixels, "y": draw.integers(0, 2, (count, 3)), "names": np.array(NAMES)}


def placed(given, saved, folder):
    """Return a source of arrays: in memory, or in an NPZ file."""
    if saved:
        np.savez(folder / "train.npz", **given)
    return open_images(folder / "train.npz" if saved else given)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("kind", ["u1", "i8", "?"])
def test_the_attributes_that_the_schema_names_are_the_label(tmp_path, saved, kind):
    given = faces()
    wanted = [f"{male} {smiles}" for _, male, smiles in given["y"]]
    source = placed(given | {"y": given["y"].astype(kind)}, saved, tmp_path)
    loaded = source.load(Schema.parse(FACES)).content
    assert loaded.labels.astype(str).tolist() == wanted
    assert (loaded.images == given["x"]).all()
    one = FACES.replace("[Male, Smiling]", "[Bald]").replace("['0 0', '0 1', '1 0', '1 1']", "[0, 1]")
    assert source.load(Schema.parse(one)).content.labels.astype(int).tolist() == given["y"][:, 0].tolist()


def test_a_split_has_names_of_its_own_or_those_of_all(tmp_path):
    given = faces()
    both = {f"{key}_{split}": given[key] for key in ("x", "y") for split in ("train", "test")}
    for names in ({"names": given["names"]}, {"names_train": given["names"]}):
        np.savez(tmp_path / "all.npz", **both, **names)
        loaded = open_images(f"{tmp_path / 'all.npz'}#train").load(Schema.parse(FACES)).content
        assert loaded.labels.astype(str).tolist()[0] == "{} {}".format(*given["y"][0, 1:])


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    ("change", "schema", "said"),
    [
        ({}, FACES.replace("attributes: [Male, Smiling], ", ""), "y: holds several values .*name some under label.att"),
        ({}, FACES.replace("Smiling", "Tall"), "label.attributes Tall: is no attribute of these images; name some of"),
        ({}, FACES.replace(", '1 1'", ""), "label"),
        ({"names": None}, FACES, "label.attributes: are named in the schema, and not in the data"),
        ({"names": np.array(NAMES[:2])}, FACES, "y: does not hold 1 or 0 for each attribute"),
        ({"names": np.array([NAMES])}, FACES, "y: does not hold 1 or 0 for each attribute"),
        ({"y": np.zeros((11, 3), int)}, FACES, "y: does not hold 1 or 0 for each attribute"),
        ({"y": np.zeros((12, 3))}, FACES, "y: does not hold 1 or 0 for each attribute"),
        ({"names": np.zeros(3, dtype=[("a", "i4"), ("b", "i4")])}, FACES, "names: holds values of several fields"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, saved, change, schema, said):
    given = {name: value for name, value in (faces() | change).items() if value is not None}
    source = placed(given, saved, tmp_path)
    with pytest.raises(DataError, match=said) as caught:
        source.load(Schema.parse(schema))
    assert "\n" not in str(caught.value)


def test_names_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "train.npz", **faces() | {"names": np.array(NAMES, dtype=object)})
    with pytest.raises(DataError, match="names: holds Python objects, which are never unpickled"):
        open_images(tmp_path / "train.npz").check(Schema.parse(FACES))


@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
def test_one_attribute_may_have_values_of_its_own(tmp_path, form):
    given, values = faces(), [3, 4, 7] if form == "npz" else ["female", "male"]
    wanted = [values[each % len(values)] for each in range(12)]
    if form == "npz":
        path, names = tmp_path / "faces.npz", ("Bald", "sex", "Smiling")
        given["y"][:, 1] = wanted
        np.savez(path, **given | {"names": np.array(names)})
    else:
        path, pictures = tmp_path / f"faces.{form}", []
        for number, pixels in enumerate(given["x"]):
            Image.fromarray(pixels).save(tmp_path / f"{number}.png")
            pictures.append(f"{number}.png" if form == "csv" else (tmp_path / f"{number}.png").read_bytes())
        frame = pd.DataFrame({"image": pictures, "sex": wanted})
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    text = FACES.replace("[Male, Smiling]", "[sex]")
    schema = Schema.parse(text.replace("['0 0', '0 1', '1 0', '1 1']", str(values)))
    assert open_images(path).load(schema).content.labels.astype(str).tolist() == [*map(str, wanted)]
    with pytest.raises(DataError, match=r"no image has one; marks are 1 or 0, .* with other values list those"):
        open_images(path).load(Schema.parse(text.replace("['0 0', '0 1', '1 0', '1 1']", "[0, 1]")))
    with pytest.raises(DataError, match=r"label: "):
        open_images(path).load(Schema.parse(text.replace("['0 0', '0 1', '1 0', '1 1']", str(values[:-1]))))


def test_several_attributes_are_marks():
    with pytest.raises(SchemaError, match="of several attributes each value is 1 or 0 for each"):
        Schema.parse(FACES.replace("'1 1'", "'male old'"))
    assert not Schema.parse(FACES.replace("'1 1']", "rest], other: rest")).undeclared


@pytest.mark.parametrize("mark", [2, -1])
def test_a_mark_that_is_neither_changes_no_other_image(mark):
    given, schema = faces(), Schema.parse(FACES.replace("units:", "misfit: coerce\nunits:"))
    before = open_images(given).load(schema).content.labels.tolist()
    given["y"][3, 1] = mark
    after = open_images(given).load(schema).content.labels.tolist()
    assert len(after) == 12
    assert after[:3] + after[4:] == before[:3] + before[4:]
    with pytest.raises(DataError, match="label: some images have none"):
        open_images(given).load(Schema.parse(FACES))


def test_samples_are_asked_for_with_attributes(tmp_path):
    np.savez(tmp_path / "train.npz", **faces())
    plan = db.plan(Schema.parse(FACES), method="statistics", epsilon=9.0, delta=1e-3, features=32, fit_steps=3)
    ledger = db.Ledger.create(tmp_path / "l", dataset="faces", epsilon=20.0, delta=1e-2)
    syn = db.fit(tmp_path / "train.npz", plan, ledger=ledger, out=tmp_path / "run")
    assert set(syn.sample(5, given={"label": "1 0"}, seed=1).labels.astype(str)) == {"1 0"}
    assert db.load(tmp_path / "run").schema.label.attributes == ("Male", "Smiling")


def test_a_publishers_form_is_refused_with_what_writes_npz(tmp_path):
    (tmp_path / "train_32x32.mat").write_bytes(b"MATLAB 5.0 MAT-file")
    (tmp_path / "celeba").mkdir()
    (tmp_path / "celeba" / "list_attr_celeba.txt").write_text("1\nBald\n000001.jpg 1\n")
    assert kind_of(tmp_path / "train_32x32.mat") == "images"
    said = "{}: is not read in its publisher's form; give an NPZ file, such as doublure datasets fetch {} writes"
    for name, dataset in (("train_32x32.mat", "svhn"), ("celeba", "celeba")):
        for path in (tmp_path / name, f"{tmp_path / name}#train"):
            with pytest.raises(DataError) as caught:
                open_images(path)
            assert str(caught.value) == said.format(name, dataset)


def test_a_crop_is_cut_out_of_arrays(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 10, 12, 3), dtype=np.uint8)
    text = "doublure: 1\nkind: images\nunits: 3\nimages: {shape: [6, 8, 3], crop: [6, 8]}\n"
    loaded = open_images({"images": images}).load(Schema.parse(text)).content
    assert (loaded.images == images[:, 2:8, 2:10]).all()
    larger = Schema.parse(text.replace("crop: [6, 8]", "crop: [11, 8], on_mismatch: resize"))
    source = open_images({"images": images})
    with pytest.raises(DataError, match="less than the schema's crop"):
        source.load(larger)


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
