"""Channels that are no numbers: on and off, open and shut."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.series import open_series
from doublure.data.series.writing import write_series
from doublure.drafting.check import check
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
unit: {name: day, id: null}
units: 400
series: {time: when, length: 4, step: 6h, gaps: missing}
channels:
  door: {type: category, values: [shut, ajar, open], missing: true}
  heat: {type: real, bounds: [0, 9], precision: 0, missing: false}
"""


def days(count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    whole = np.array(["shut", "ajar", "open"])[np.repeat(rng.integers(0, 3, count), 4)]
    moments = pd.date_range("2000-01-03", periods=4 * count, freq="6h")
    heat = np.where(whole == "open", 1.0, 8.0)
    return pd.DataFrame({"when": moments, "door": whole, "heat": heat})


def test_states_are_read_by_their_places_and_come_out_by_their_names(tmp_path):
    schema, frame = Schema.parse(TEXT), days(3)
    frame.loc[1, "door"] = None
    content = open_series(frame).load(schema).content
    assert content.values[0, 1, 0] != content.values[0, 1, 0]
    written = content.frame()
    assert written["door"].astype(object).fillna("-").tolist() == frame["door"].fillna("-").tolist()
    for ending in (".npz", ".csv", ".parquet"):
        path = tmp_path / f"s{ending}"
        write_series([content], path, schema, len(content), about={"watermark": "w"})
        again = open_series(path).load(schema).content
        assert np.array_equal(again.values, content.values, equal_nan=True)
    assert np.array_equal(open_series(content).load(schema).content.values, content.values, equal_nan=True)


@pytest.mark.parametrize("type_", ["category", "ordinal"])
def test_a_channel_of_states_is_shown_as_its_list_and_reckoned_with_as_its_places(type_):
    schema = Schema.parse(TEXT.replace("category", type_).replace("missing: true", "missing: ['1'], description: d"))
    column, places = schema.columns["door"], schema.channels["door"]
    assert (column.type, column.domain, column.ordered) == (type_, ("shut", "ajar", "open"), type_ == "ordinal")
    assert (column.missing_tokens, column.description) == (places.missing_tokens, "d")
    assert places.grid == (0, 2)
    assert list(schema.columns) == ["door", "heat"]
    assert "<td>shut, ajar, open</td>" in schema._repr_html_()
    assert not [each for each in check(schema).findings if each.path == "channels.door"]


def test_of_several_states_in_a_step_the_last_stays():
    frame = pd.concat([days(3), pd.DataFrame({"when": ["2000-01-03T01:00"], "door": ["open"], "heat": [4.0]})])
    frame["when"] = pd.to_datetime(frame["when"])
    schema = Schema.parse(TEXT.replace("gaps: missing", "gaps: missing, irregular: mean"))
    first = open_series(frame).load(schema).content.values[0, 0]
    assert first.tolist() == [2, (days(3)["heat"].iloc[0] + 4) / 2]


def test_a_state_outside_the_list_is_refused_and_so_are_other_facts():
    frame = days(3)
    frame.loc[0, "door"] = "gone"
    with pytest.raises(DataError, match=r"^door: "):
        open_series(frame).load(Schema.parse(TEXT))
    for wrong in ("[shut]", "[shut, shut]", "[shut, open], bounds: [0, 5]"):
        with pytest.raises(SchemaError):
            Schema.parse(TEXT.replace("[shut, ajar, open]", wrong))
    assert Schema.parse(Schema.parse(TEXT).to_yaml()) == Schema.parse(TEXT)


def test_states_go_together_with_numbers_and_through_the_day(tmp_path):
    plan = db.plan(Schema.parse(TEXT), method="auto", epsilon=20.0, delta=1e-3)
    ledger = db.Ledger.create(tmp_path / "l", dataset="doors", epsilon=20, delta=1e-2)
    made = db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=0).sample(300, seed=1).frame()
    assert set(made["door"].dropna()) == {"shut", "ajar", "open"}
    by_series = made.groupby("series")["door"]
    assert (by_series.nunique() == 1).mean() > 0.5  # independent steps: 1 in 27
