"""Settings for images: chosen from public numbers, refused in one line, and their estimates."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.encode.choice import encoder_for
from doublure.errors import SchemaError, SettingError
from doublure.methods import registry as table
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


# -- images above 32 pixels ------------------------------------------------------------------------------------------


def drawn(shape, **settings):
    schema = Schema.parse(TEXT.replace("[28, 28, 1]", str(shape)))
    return db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, **settings).settings


@pytest.mark.parametrize(
    ("shape", "enlargement"),
    [([28, 28, 1], 1), ([32, 32, 3], 1), ([48, 48, 1], 2), ([64, 48, 3], 2), ([112, 92, 1], 4)],
)
def test_large_images_are_drawn_as_features_see_them(shape, enlargement):
    made = drawn(shape, model="network")
    assert made.enlargement == enlargement
    usual = ("transposed", (64, 32, 16)) if enlargement == 1 else ("bilinear", (64, 32))
    assert (made.doubling, made.channels) == usual


def test_what_is_asked_for_stays():
    made = drawn([48, 48, 1], enlargement=1, channels=[8, 4])
    assert (made.enlargement, made.doubling, made.channels) == (1, "transposed", (8, 4))
    made = drawn([48, 48, 1], doubling="transposed", channels=[64, 32, 16])
    assert (made.enlargement, made.doubling, made.channels) == (2, "transposed", (64, 32, 16))


def test_a_plan_that_says_nothing_of_it_is_built_as_it_was():
    """Those of 0.1.0: their weights are of a generator that draws every pixel by transposed convolutions."""
    schema = Schema.parse(TEXT.replace("[28, 28, 1]", "[48, 48, 1]")).resolve({})
    made = drawn([48, 48, 1])
    before = made.read({**dict(made), "channels": (64, 32, 16), "enlargement": None, "doubling": None})
    old = table.method("statistics").build(encoder_for(schema, before.encoding), before, 0)
    new = table.method("statistics").build(encoder_for(schema, made.encoding), made, 0)
    sizes = [[tuple(one.shape) for name, one in net.state_dict().items() if "weight" in name] for net in (old, new)]
    assert sizes[0] == [(256, 19), (9216, 256), (64, 32, 4, 4), (32, 16, 4, 4), (1, 16, 3, 3)]
    assert sizes[1] == [(256, 19), (9216, 256), (32, 64, 3, 3), (1, 32, 3, 3)]
