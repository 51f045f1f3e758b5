"""The schema of series: read, written, resolved, drafted, checked, refused in one line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.errors import SchemaError
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.series import SeriesSchema
from doublure.support import yaml12 as yaml_text

CONTRACT = """
doublure: 1
kind: series
unit: {name: meter, id: meter_id, max_records: 31}
units: 92
series: {time: timestamp, length: 24, step: 1h, timezone: UTC, gaps: missing}
channels: {litres: {type: real, bounds: [0, 500], missing: true}}
attributes: {weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false}}
"""
BOUGHT = """
doublure: 1
kind: series
units: {learn: 0.01, magnitude: 100}
series: {length: 4, gaps: missing}
channels:
  a: {type: real, bounds: {learn: 0.1}, missing: {learn: 0.2}, zero_inflated: true}
  b: {type: integer, bounds: [-3, 3], missing: false}
attributes:
  place: {type: category, values: {learn: 0.3}, other: Other, missing: false, shares: {learn: 0.4}}
"""
OPEN = (
    "doublure: 1\nkind: series\nseries: {time: when}\nchannels: {a: {type: real}}\nattributes: {w: {type: ordinal}}\n"
)


def test_the_contract_is_read_and_written_back():
    schema = Schema.parse(CONTRACT)
    assert isinstance(schema, SeriesSchema)
    assert Schema.parse(schema.to_yaml()) == schema
    assert schema.to_yaml().splitlines()[2:5] == CONTRACT.strip().splitlines()[2:5]
    assert schema.to_yaml().splitlines()[6] == "  litres: {type: real, bounds: [0, 500], missing: true}"
    assert (schema.length, schema.series.seconds, schema.source) == (24, 3600, "meter_id")
    assert schema.with_role("condition") == ("weekday",)  # attributes always steer
    assert (schema.questions, schema.undeclared, schema.constraints, schema.derived) == ((), (), (), {})
    assert list(schema.columns) == ["litres", "weekday"]
    assert Schema.parse(OPEN).unit.name == "series"


def test_facts_are_bought_under_their_own_paths_and_resolved():
    schema = Schema.parse(BOUGHT)
    paths = ["units", "channels.a.missing", "attributes.place.values", "channels.a.bounds", "attributes.place.shares"]
    assert [question.path for question in schema.questions] == paths
    assert schema.public_units == 100
    answers = {
        "units": 97, "channels.a.missing": True, "attributes.place.values": ("x", "y"), "channels.a.bounds": (1.0, 9.0),
        "attributes.place.shares": {"x": 0.5, "y": 0.25, "Other": 0.25},
    }  # fmt: skip
    resolved = schema.resolve(answers)
    assert isinstance(resolved, ResolvedSchema)
    assert resolved.channels["a"].bounds == (0.0, 9.0)  # zero_inflated needs bounds that contain 0
    assert resolved.attributes["place"].domain == ("x", "y", "Other")
    assert ResolvedSchema.parse(resolved.to_yaml()) == resolved
    with pytest.raises(SchemaError, match="was not learned"):
        schema.resolve({"units": 3})


def test_what_one_series_adds_to_a_statistic_is_public():
    schema = Schema.parse(BOUGHT)
    assert schema.cells_of("a", "bounds") == 2  # its lowest and its highest
    assert [schema.cells_of(*pair) for pair in (("a", "missing"), ("place", "values"), (None, "units"))] == [1, 1, 1]


def test_what_may_be_missing_follows_the_rule_for_gaps():
    schema = Schema.parse(CONTRACT)
    assert schema.may_be_missing("litres")
    assert not Schema.parse(CONTRACT.replace("gaps: missing", "gaps: drop")).may_be_missing("litres")
    assert not Schema.parse(CONTRACT.replace("missing: true", "missing: false")).may_be_missing("litres")
    bought = CONTRACT.replace("missing: true", "missing: {learn: 0.1}")
    assert [question.fact for question in Schema.parse(bought).questions] == ["missing"]
    for rule in ("refuse", "drop"):  # either leaves nothing to be bought
        with pytest.raises(SchemaError, match=f"no step is missing after gaps: {rule}"):
            Schema.parse(bought.replace("gaps: missing", f"gaps: {rule}"))


def test_what_is_undeclared_is_named_and_a_resolved_schema_has_none():
    wanted = {"units", "channels.a.bounds", "channels.a.missing", "attributes.w.values", "attributes.w.missing"}
    assert set(Schema.parse(OPEN).undeclared) == wanted | {"series.length", "series.step"}
    assert "series.step" not in Schema.parse(OPEN.replace("{time: when}", "{length: 3}")).undeclared
    with pytest.raises(SchemaError, match="not known yet"):
        ResolvedSchema.parse(CONTRACT.replace("length: 24", "length: undeclared"))
    with pytest.raises(SchemaError, match=r"^series.length"):
        _ = Schema.parse(OPEN).length


REFUSALS = {
    "series: 3": "series",
    "series: {length: 1}": "series.length",
    "series: {length: 24.5}": "series.length",
    "series: {length: {learn: 1}}": "series.length",
    "series: {time: t, step: 1hour}": "series.step",
    "series: {time: t, step: 0h}": "series.step",
    "series: {time: t, step: 60}": "series.step",
    "series: {time: t, timezone: Mars/Olympus}": "series.timezone",
    "series: {length: 3, timezone: UTC}": "series",
    "series: {length: 3, stamp: end}": "series",
    "series: {time: t, stamp: middle}": "series.stamp",
    "series: {gaps: keep}": "series.gaps",
    "series: {irregular: first}": "series.irregular",
    "series: {clock_changes: refuse}": "series.clock_changes",
    "series: {size: 3}": "series.size",
    "channels: {}": "schema",
    "channels: {a: {type: category}}": "channels.a.values",
    "channels: {a: {type: date}}": "channels.a",
    "channels: {a: {type: real, bounds: [1, 0]}}": "channels.a",
    "channels: {a: {type: real, roles: [target]}}": "schema",
    "channels: {a: {type: real, missing: {learn: 0.1}}}": "schema",
    "channels: {step: {type: real}}": "schema",
    "channels: {clock: {type: real}}": "schema",
    "channels: {' a': {type: real}}": "schema",
    "attributes: {w: {type: date}}": "attributes.w",
    "attributes: {w: {type: boolean, missing: true}}": "attributes.w",
    "attributes: {values: {type: boolean}}": "schema",
    "attributes: {a: {type: boolean}}": "schema",
    "attributes: {w: {type: boolean, from_time: weekday}}": "attributes.w",
    "attributes: {w: {type: ordinal, values: [1, 2], from_time: weekend}}": "attributes.w",
    "attributes: {w: {type: ordinal, values: [6, 7], from_time: weekday}}": "attributes.w",
    "attributes: {w: {type: boolean, from_time: weekend}}": "schema",
    "unit: {name: meter, id: a, max_records: 2}": "schema",
    "columns: {a: {type: boolean}}": "columns",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_a_slip_is_one_line_that_names_the_key(text):
    keys = {"units": "units: 9", "series": "series: {length: 3}", "channels": "channels: {a: {type: real}}"}
    with pytest.raises(SchemaError) as caught:
        Schema.parse("doublure: 1\nkind: series\n" + "\n".join((keys | {text.partition(":")[0]: text}).values()))
    assert caught.value.field == REFUSALS[text]
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_the_time_is_named_for_one_thing():
    text = CONTRACT.replace("id: meter_id", "id: timestamp")
    with pytest.raises(SchemaError, match="two things"):
        Schema.parse(text)


# -- drafts and checks -------------------------------------------------------------------------------------------------


def frame():
    return pd.DataFrame(
        {
            "meter": ["m1"] * 4,
            "when": pd.date_range("2024-01-01", periods=4, freq="6h").astype(str),
            "litres": [0.5, 1.0, 2.5, 3.5],
            "valves": [1, 2, 1, 2],
            "garden": [True] * 4,
        }
    )


def test_a_draft_takes_names_and_types_and_no_value(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    made = drafted(tmp_path / "a.csv", kind="series")
    schema = made.schema
    assert schema.series.time == "when"
    assert {name: one.type for name, one in schema.columns.items()} == {
        "litres": "real", "valves": "integer", "meter": "category", "garden": "boolean",
    }  # fmt: skip
    assert {"channels.litres.bounds", "series.length", "series.step"} <= set(schema.undeclared)
    assert Schema.parse(made.to_yaml()) == schema
    assert "m1" not in made.to_yaml()
    assert "2024" not in made.to_yaml()


def test_a_draft_of_arrays_takes_the_length(tmp_path):
    np.savez(tmp_path / "a.npz", kwh=np.zeros((5, 7, 48), np.float32), house=np.array(["a"] * 5))
    schema = drafted(tmp_path / "a.npz", kind="series").schema
    assert (schema.length, list(schema.channels), list(schema.attributes)) == (48, ["kwh"], ["house"])


@pytest.mark.parametrize("kind", ["graph", "series"])
def test_a_draft_of_nothing_or_of_no_kind_is_refused(kind):
    with pytest.raises(SchemaError) as caught:
        drafted(pd.DataFrame({"a": ["x"]}), kind=kind)
    assert caught.value.remedy


def test_a_check_says_what_is_open_as_yaml_to_paste():
    found = check(Schema.parse(OPEN))
    assert not found.ok
    text = found.to_yaml().replace("NUMBER", "9").replace("LOWER, UPPER", "0, 9").replace("VALUE, VALUE", "0, 1")
    text = text.replace("STEPS", "4").replace("DURATION", "6h").replace("TRUE_FALSE_OR_LIST", "false")
    closed = Schema.from_plain(Schema.parse(OPEN).to_plain() | yaml_text.parse(text, "pasted"))
    assert closed.undeclared == ()
    assert closed.length == 4
    price = next(finding.learn for finding in found.findings if finding.path == "channels.a.bounds")
    assert price == "bounds: {learn: 0.05}"


def test_a_check_compares_the_header():
    text = """
    doublure: 1
    kind: series
    unit: {name: day, id: none}
    units: 1
    series: {time: when, length: 4, step: 6h, source: meter}
    channels: {litres: {type: real, bounds: [0, 9], missing: false}}
    """.replace("\n    ", "\n")
    found = check(Schema.parse(text), frame())
    assert found.ok
    assert {finding.path for finding in found.findings if finding.kind == "ignored"} == {"valves", "garden"}
    absent = check(Schema.parse(text.replace("litres", "gallons")), frame())
    assert not absent.ok
    assert [finding.path for finding in absent.findings if finding.kind == "absent"] == ["gallons"]


METERS = """
doublure: 1
kind: series
unit: {name: meter}
units: 10
series: {time: when, length: 4, step: 6h, irregular: mean}
channels: {litres: {type: real, bounds: [0, 9], missing: false}}
"""


def readings(*meters):
    moments = pd.date_range("2024-03-04", periods=8, freq="6h").strftime("%Y-%m-%dT%H:%M:%S")
    return pd.concat([pd.DataFrame({"meter": meter, "when": moments, "litres": 1.0}) for meter in meters])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("", ""), True),
        (("irregular: mean", "irregular: sum"), True),
        ((", irregular: mean", "}\nmisfit: coerce\nrelease: {title: x"), True),
        ((", irregular: mean", ""), False),  # two readings of a moment are refused
        (
            ("meter}\nunits: 10\nseries: {time: when", "day, id: none}\nunits: 10\nseries: {time: when, source: meter"),
            False,
        ),
        (("{name: meter}", "{name: meter, id: meter}"), False),
        (("time: when, ", ""), False),  # series are cut already
    ],
)
def test_readings_that_nothing_keeps_apart_are_warned_of_by_plan_and_check(change, said):
    schema = Schema.parse(METERS.replace(*change))
    plan = db.plan(schema, epsilon=1.0, delta=1e-3, accountant="rdp")
    assert any(warning.startswith("series.source: neither it nor unit.id") for warning in plan.warnings) == said
    assert any(each.path == "series.source" and each.kind == "ask" for each in check(schema).findings) == said


@pytest.mark.parametrize(("meters", "joined"), [(("m1",), False), (("m1", "m2"), True)])
def test_a_check_of_data_tells_their_owner_whether_there_are_any(meters, joined):
    found = check(Schema.parse(METERS), readings(*meters))
    assert found.ok
    assert found.moments_read
    said = [each.message for each in found.findings if each.path == "when"]
    assert [message.startswith("several readings have one moment") for message in said] == [True] * joined
    named = check(Schema.parse(METERS.replace("time: when", "time: when, source: meter")), readings(*meters))
    assert not named.moments_read
    assert not any(each.path in ("when", "series.source") for each in named.findings)


def test_an_attribute_with_a_role_of_its_own_steers_too():
    text = (
        "doublure: 1\nkind: series\nunits: 10\nseries: {length: 3}\nchannels: {a: {type: real}}\n"
        "attributes: {w: {type: boolean, roles: [target]}}"
    )
    schema = Schema.parse(text)
    assert schema.with_role("target") == schema.with_role("condition") == ("w",)
    assert Schema.from_plain(schema.to_plain()) == schema
