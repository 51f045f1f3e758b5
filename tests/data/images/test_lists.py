"""A CSV file of names and labels beside a flat folder of pictures."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import doublure as db
from doublure.data.images import open_images
from doublure.errors import DataError, FaultyRecords
from doublure.schema import Schema


@pytest.fixture
def rows(pixels, labels, tmp_path):
    (tmp_path / "faces").mkdir()
    for number, each in enumerate(pixels):
        Image.fromarray(each[:, :, 0]).save(tmp_path / "faces" / f"{number:02d}.png")
    return [f"{number:02d}.png" for number in reversed(range(12))], labels[::-1]


def written(path, names, labels, head="file,label", separator=","):
    lines = [head, *(f"{name}{separator}{label}" for name, label in zip(names, labels, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("place", ["beside", "inside", "relative"])
def test_names_are_taken_from_the_tables_folder_or_its_namesake(tmp_path, schema, pixels, labels, rows, place):
    names, given = rows
    table = tmp_path / ("faces/list.csv" if place == "inside" else "faces.csv")
    if place == "relative":
        names = [f"faces/{name}" for name in names]
    written(table, names, given)
    found = open_images(table).load(schema)
    assert np.array_equal(found.content.images, pixels[::-1])
    assert found.frame["label"].tolist() == labels[::-1].tolist()


@pytest.mark.parametrize("head", ["path;class", "image;y", "filename;labels"])
def test_columns_have_several_names_and_tables_several_forms(tmp_path, schema, rows, labels, head):
    names, given = rows
    table = written(tmp_path / "faces.csv", names, given, head, ";")
    assert open_images(table).load(schema).frame["label"].tolist() == labels[::-1].tolist()
    packed = tmp_path / "faces.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert open_images(packed).load(schema).frame["label"].tolist() == labels[::-1].tolist()


def test_one_person_may_have_several_pictures(tmp_path, rows, pixels):
    names, _ = rows
    table = written(tmp_path / "faces.csv", names, ["a", "b", "a", "a"] * 3, "file,who")
    text = (
        "doublure: 1\nkind: images\nunit: {name: person, id: who, max_records: 2}\nunits: 2\nimages: {shape: [6, 5, 1]}"
    )
    found = open_images(table).load(Schema.parse(text))
    assert found.n_units == 2
    assert np.array_equal(found.content.images, pixels[::-1][[0, 1, 2, 5]])
    with pytest.raises(DataError, match=r"is not a column of the data"):
        open_images(table).check(Schema.parse(text.replace("who", "whom")))


def test_a_table_without_labels_or_names_is_refused(tmp_path, schema, rows):
    names, given = rows
    with pytest.raises(DataError, match=r"has no labels"):
        open_images(written(tmp_path / "faces.csv", names, given, "file,other")).check(schema)
    with pytest.raises(DataError, match=r"has no column of file names"):
        open_images(written(tmp_path / "faces.csv", names, given, "other,label"))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("nobody.png", "is not there"),
        ("../outside.png", "leads out of the table's folder"),
        ("/etc/passwd", "leads out of the table's folder"),
        ("00.txt", "is no picture by its ending"),
        ("00.png", "is named a second time"),
        ("", "is no picture by its ending"),
    ],
)
def test_names_that_lead_nowhere_are_refused_before_a_picture_is_opened(
    tmp_path, schema, rows, monkeypatch, name, rule
):
    monkeypatch.setattr("doublure.data.images.lists.content_of", lambda _: pytest.fail("a picture was opened"))
    names, given = rows
    (tmp_path.parent / "outside.png").write_bytes(b"x")
    table = written(tmp_path / "faces.csv", [*names, name], [*given, "cat"])
    with pytest.raises(FaultyRecords) as caught:
        open_images(table).check(schema)
    assert [(fault.number, fault.name, fault.rule) for fault in caught.value.faults] == [(13, name, rule)]
    assert not name or name not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_where_misfits_are_coerced_a_row_is_read_by_itself(tmp_path, schema, pixels, rows):
    """No row refuses a fit, and whether one is taken does not follow from another that names the same picture."""
    names, given = rows
    odd = ["nobody.png", "../outside.png", "00.txt", "", "00.png"]
    table = written(tmp_path / "faces.csv", [*odd, *names], ["cat"] * len(odd) + [*given])
    coerced = schema.model_copy(update={"misfit": "coerce"})
    found = open_images(table).load(coerced, at_least=0).content.images
    assert np.array_equal(found, np.concatenate([pixels[:1], pixels[::-1]]))
    without = written(tmp_path / "faces.csv", [*odd[:-1], *names], ["cat"] * (len(odd) - 1) + [*given])
    assert np.array_equal(open_images(without).load(coerced, at_least=0).content.images, pixels[::-1])


def test_pictures_and_labels_that_do_not_fit_are_named_as_the_table_has_them(tmp_path, schema, rows):
    names, given = rows
    (tmp_path / "faces" / "03.png").write_bytes(b"no picture")
    table = written(tmp_path / "faces.csv", names, given)
    with pytest.raises(FaultyRecords) as caught:
        open_images(table).load(schema)
    assert [(fault.number, fault.name) for fault in caught.value.faults] == [(9, "03.png")]
    Image.new("L", (5, 6)).save(tmp_path / "faces" / "03.png")
    table = written(tmp_path / "faces.csv", names, ["", "mouse", *given[2:]])
    with pytest.raises(FaultyRecords) as caught:
        open_images(table).load(schema)
    assert [(fault.number, fault.name) for fault in caught.value.faults] == [(1, "11.png"), (2, "10.png")]


def test_findings_in_columns_of_their_own_are_the_label(tmp_path, pixels, rows):
    """Not their product: combinations that matter are listed, and the others are joined."""
    names, _ = rows
    text = (
        "doublure: 1\nkind: images\nunits: 12\nimages: {shape: [6, 5, 1]}\n"
        "label: {attributes: [Edema, Effusion], values: ['0 0', '1 0', rest], other: rest}\n"
    )
    marks = [(place % 2, place % 3 == 0) for place in range(12)]
    lines = [
        f"{name},{int(edema)}.0,{str(effusion).lower()},x" for name, (edema, effusion) in zip(names, marks, strict=True)
    ]
    (tmp_path / "faces.csv").write_text("\n".join(["file,Edema,Effusion,Note", *lines]) + "\n")
    wanted = [{(0, False): "0 0", (1, False): "1 0"}.get(each, "rest") for each in marks]
    assert open_images(tmp_path / "faces.csv").load(Schema.parse(text)).frame["label"].astype(str).tolist() == wanted
    frame = pd.read_csv(tmp_path / "faces.csv")
    contents = [(tmp_path / "faces" / name).read_bytes() for name in names]
    frame.drop(columns="file").assign(image=contents).to_parquet(tmp_path / "faces.parquet")
    found = open_images(tmp_path / "faces.parquet").load(Schema.parse(text)).frame["label"]
    assert found.astype(str).tolist() == wanted
    strange = Schema.parse(text.replace("Edema", "Fracture"))
    for path in ("faces.csv", "faces.parquet"):
        with pytest.raises(DataError, match="Fracture"):
            open_images(tmp_path / path).load(strange)


def test_a_finding_that_is_neither_is_no_label(tmp_path, rows):
    names, _ = rows
    text = "doublure: 1\nkind: images\nunits: 12\nimages: {shape: [6, 5, 1]}\n"
    text += "label: {attributes: [Edema], values: [0, 1]}\n"
    written(tmp_path / "faces.csv", names, [0, 1, -1, *[1] * 9], "file,Edema")
    with pytest.raises(DataError, match="some images have none"):
        open_images(tmp_path / "faces.csv").load(Schema.parse(text))


def test_columns_that_the_schema_leaves_out_are_named(tmp_path):
    """A radiographer's ages and scanners were left out without a word."""
    (tmp_path / "labels.csv").write_text("file,label,age,scanner\na.png,1,40,GE\n")
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    text = "doublure: 1\nkind: images\nunits: 30\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1]}\n"
    text += "attributes: {age: {type: integer, bounds: [0, 99], missing: false}}\n"
    found = db.check(Schema.parse(text), tmp_path / "labels.csv")
    assert [finding.path for finding in found.findings if finding.kind == "ignored"] == ["scanner"]


@pytest.mark.parametrize("split", ["", "_train"])
def test_arrays_that_the_schema_leaves_out_are_named_by_their_headers(tmp_path, monkeypatch, split):
    own = {
        "x": np.zeros((4, 8, 8), np.uint8),
        "y": np.array([0, 1, 0, 1]),
        "age": np.arange(4),
        "scanner": np.arange(4),
    }
    given = {f"{name}{split}" if name in "xy" else name: array for name, array in own.items()}
    given |= {"places": np.zeros((4, 2)), "version": np.array(1)}
    text = "doublure: 1\nkind: images\nunits: 30\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1]}\n"
    schema = Schema.parse(text + "attributes: {age: {type: integer, bounds: [0, 99], missing: false}}\n")
    np.savez(tmp_path / "data.npz", **given)
    monkeypatch.setattr("doublure.data.images.arrays.array", lambda *_: pytest.fail("an array was read"))
    for data in (given, tmp_path / "data.npz"):
        found = db.check(schema, data)
        assert [finding.path for finding in found.findings if finding.kind == "ignored"] == ["scanner"]
