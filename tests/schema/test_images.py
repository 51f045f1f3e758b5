"""The schema of images: read, written, resolved, drafted, checked, refused in one line."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.errors import SchemaError
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.images import ImageSchema
from doublure.support import yaml12 as yaml_text

CONTRACT = """doublure: 1
kind: images
unit: {name: image, id: null, max_records: 1}
units: 60000
images: {shape: [28, 28, 1], range: [0, 255], on_mismatch: refuse}
label: {values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], roles: [target, condition]}
"""
OPEN = "doublure: 1\nkind: images\nlabel: {values: undeclared}\n"


def test_the_contract_is_read_and_written_back_as_it_stands():
    schema = Schema.parse(CONTRACT)
    assert isinstance(schema, ImageSchema)
    assert schema.to_yaml() == CONTRACT
    assert schema.shape == (28, 28, 1)
    assert schema.with_role("condition") == ("label",)
    assert schema.target == "label"
    assert (schema.questions, schema.undeclared, schema.constraints) == ((), (), ())


def test_the_unit_is_an_image_unless_named():
    assert Schema.parse(OPEN).unit.name == "image"
    assert Schema.parse("doublure: 1\nkind: table\ncolumns: {a: {type: boolean}}").unit.name == "person"


def test_shares_and_units_are_bought_as_for_tables():
    text = CONTRACT.replace("60000", "{learn: 0.01, magnitude: 50000}").replace(
        "[target, condition]}", "[target, condition], shares: {learn: 0.1}}"
    )
    schema = Schema.parse(text)
    assert [question.path for question in schema.questions] == ["units", "label.shares"]
    assert schema.public_units == 50_000
    shares = {str(value): 0.1 for value in range(10)}
    resolved = schema.resolve({"units": 59_990, "label.shares": shares})
    assert isinstance(resolved, ResolvedSchema)
    assert isinstance(resolved, ImageSchema)
    assert resolved.label.shares == shares
    assert ResolvedSchema.parse(resolved.to_yaml()) == resolved
    with pytest.raises(SchemaError, match="was not learned"):
        schema.resolve({"units": 3})


def test_what_is_undeclared_is_named_and_a_resolved_schema_has_none():
    assert set(Schema.parse(OPEN).undeclared) == {"units", "label.values", "images.shape"}
    with pytest.raises(SchemaError, match="not known yet"):
        ResolvedSchema.parse(CONTRACT.replace("[28, 28, 1]", "undeclared"))
    with pytest.raises(SchemaError, match=r"^images.shape"):
        _ = Schema.parse(OPEN).shape


REFUSALS = {
    "images: {shape: [28, 28]}": "images.shape",
    "images: {shape: {learn: 1}}": "images.shape",
    "images: {shape: [28, 28, 2]}": "images.shape",
    "images: {shape: [3, 28, 1]}": "images.shape",
    "images: {shape: [28, 5000, 1]}": "images.shape",
    "images: {range: [1, 0]}": "images",
    "images: {range: [0, .inf]}": "images.range",
    "images: {on_mismatch: crop}": "images.on_mismatch",
    "images: {pictures: quux}": "images.pictures",
    "images: {size: 3}": "images.size",
    "images: 3": "images",
    "label: 3": "label",
    "label: {values: []}": "label",
    "label: {values: [a, a]}": "label",
    "label: {values: [a, b], missing: true}": "label.missing",
    "label: {values: [a, b], shares: {a: 1}}": "label",
    "label: {values: {learn: 0.1}}": "label",
    "unit: {name: face, id: label, max_records: 2}": "schema",
    "columns: {a: {type: boolean}}": "columns",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_a_slip_is_one_line_that_names_the_key(text):
    rest = {"units": "units: 9", "images": "images: {shape: [8, 8, 1]}"} | {text.partition(":")[0]: text}
    with pytest.raises(SchemaError) as caught:
        Schema.parse("doublure: 1\nkind: images\n" + "\n".join(rest.values()))
    assert caught.value.field == REFUSALS[text]
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_the_json_schema_knows_every_kind():
    exported = Schema.json_schema()
    kinds = {option["$ref"].rpartition("/")[2] for option in exported["anyOf"]}
    assert kinds == {"TableSchema", "ImageSchema", "SeriesSchema", "RelationalSchema"}
    assert set(exported["$defs"]["Pictures"]["properties"]) == {
        "shape", "range", "pictures", "on_mismatch", "crop", "dtype"
    }  # fmt: skip
    assert exported["$defs"]["ImageSchema"]["additionalProperties"] is False


# -- drafts and checks -------------------------------------------------------------------------------------------------


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "digits.npz"
    np.savez(path, x_train=np.zeros((5, 8, 9), dtype=np.uint8), y_train=np.arange(5))
    return path


def test_a_draft_takes_the_shape_and_no_value(npz):
    made = drafted(npz)
    assert made.schema.undeclared == ("units", "label.values", "images.shape")[:2]
    assert made.schema.shape == (8, 9, 1)
    assert made.schema.images.range == (0, 255)
    assert Schema.parse(made.to_yaml()) == made.schema
    real = npz.with_name("real.npz")
    np.savez(real, images=np.zeros((5, 8, 9, 3)))
    assert drafted(real).schema.images.range == (0, 1)
    assert drafted(real).schema.label is None
    for dtype, full in ((np.uint16, 65_535), (">u2", 65_535), (bool, 1), (np.int64, 255)):
        np.savez(real, images=np.zeros((5, 8, 9), dtype=dtype))
        assert drafted(real).schema.images.range == (0, full)


def test_a_check_says_what_is_open_as_yaml_to_paste(npz):
    found = check(Schema.parse(OPEN))
    assert not found.ok
    text = (
        found.to_yaml()
        .replace("NUMBER", "9")
        .replace("HEIGHT, WIDTH, CHANNELS", "8, 9, 1")
        .replace("VALUE, VALUE", "0, 1")
    )
    pasted = yaml_text.parse(text, "pasted")
    closed = Schema.from_plain(Schema.parse(OPEN).to_plain() | pasted)
    assert closed.undeclared == ()
    assert check(closed, npz).ok


def test_a_check_compares_the_container(npz):
    schema = Schema.parse(CONTRACT)
    found = {finding.kind: finding for finding in check(schema, npz).findings}
    assert "8x9x1" in found["absent"].message
    assert not check(schema, npz).ok
    without = Schema.parse(CONTRACT.replace("28, 28", "8, 9").partition("label")[0])
    assert {finding.kind for finding in check(without, npz).findings} >= {"ignored"}
    real = npz.with_name("real.npz")
    for dtype in (np.float64, np.uint16, bool):
        np.savez(real, images=np.zeros((5, 8, 9), dtype=dtype))
        assert any(finding.path == "images.range" for finding in check(without, real).findings)
    np.savez(real, images=np.zeros((5, 8, 9), dtype=np.uint8))
    assert not any(finding.path == "images.range" for finding in check(without, real).findings)
    narrow = Schema.parse(without.to_yaml().replace("range: [0, 255]", "range: [0, 1]"))
    assert any(finding.path == "images.range" for finding in check(narrow, real).findings)


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ("pictures: quux", "images.pictures: must be aligned, scenes, drawings or photographs"),
        ("dtype: int8", "images.dtype: must be uint8, uint16, int16 or float32"),
        ("crop: 3", r"images.crop: must be \[height, width\]"),
    ],
)
def test_a_refused_word_lists_those_that_may_stand_there(slip, said):
    with pytest.raises(SchemaError, match=said):
        Schema.parse(f"doublure: 1\nkind: images\nunits: 9\nimages: {{shape: [8, 8, 1], {slip}}}")
