"""Settings for images: chosen from public numbers, refused in one line, and their estimates."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.errors import SchemaError, SettingError
from doublure.schema import Schema

TEXT = "doublure: 1\nkind: images\nunits: 60000\nimages: {shape: [28, 28, 1]}\nlabel: {values: [0, 1, 2]}\n"


def test_each_kind_of_data_has_its_own_settings():
    images = db.plan(Schema.parse(TEXT), method="gan")
    assert images.kind == "images"
    assert images.settings.channels
    table = Schema.parse("doublure: 1\nkind: table\nunits: 600\ncolumns: {a: {type: boolean, missing: false}}")
    for schema, setting in ((Schema.parse(TEXT), {"bins": 3}), (table, {"features": 3})):
        with pytest.raises(SettingError, match="not a setting of this method"):
            db.plan(schema, method="gan", **setting)


def test_a_private_generator_has_no_normalisation():
    with pytest.raises(SettingError, match=r"^normalisation"):
        db.plan(Schema.parse(TEXT), method="dpgan", epsilon=1.0, delta=1e-6, normalisation="batch")
    assert db.plan(Schema.parse(TEXT), method="gan", normalisation="batch").settings.normalisation == "batch"


def test_a_label_that_nothing_would_make_is_refused():
    schema = Schema.parse(TEXT.replace("[0, 1, 2]", "[0, 1, 2], roles: [target]"))
    with pytest.raises(SchemaError, match=r"^label\.roles"):
        db.plan(schema, method="gan")
    assert db.plan(Schema.parse(TEXT.partition("label")[0]), method="gan").steps > 0


def test_a_plan_is_written_and_read_back(tmp_path):
    made = db.plan(Schema.parse(TEXT), method="dpgan", epsilon=1.0, delta=1e-6, accountant="rdp", steps=50)
    made.save(tmp_path / "plan.json")
    assert db.Plan.load(tmp_path / "plan.json") == made
    assert "C = 1" in made.explain()
    assert "one image" in made.explain()


def test_estimates_grow_with_what_is_asked(monkeypatch):
    monkeypatch.setattr("doublure.planning.machine._flops_a_second", lambda: 1e10)
    small = db.plan(Schema.parse(TEXT), method="gan", steps=100)
    large = db.plan(Schema.parse(TEXT), method="gan", steps=1000)
    assert large.seconds_estimate > 5 * small.seconds_estimate
    wide = db.plan(Schema.parse(TEXT.replace("[28, 28, 1]", "[96, 96, 3]")), method="gan", steps=100)
    assert wide.memory_bytes > small.memory_bytes + 60_000 * 96 * 96 * 3
