"""What series are refused for: all of it at once, in words that the schema's author knows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import open_series
from doublure.drafting.misfits import BEYOND, list_misfits
from doublure.errors import DataError, DataWarning


def refusal(data, schema) -> str:
    with pytest.raises(DataError) as caught:
        open_series(data).load(schema)
    return str(caught.value)


@pytest.fixture
def readings(world):
    return world.readings(days=4)


def test_one_error_names_all_that_is_wrong(world, readings):
    readings["season"] = ["dry"] * len(readings)
    readings["litres"] = readings["litres"].astype(object)
    readings.loc[1, "season"] = "wet"
    readings.loc[2, "litres"] = "n/a"
    readings.loc[5, "when"] = "2024-03-05T07:00:00"
    attributes = "{season: {type: category, values: [dry, wet], missing: false}}"
    said = refusal(readings, world.schema(gaps="refuse", attributes=attributes))
    assert "\n" not in said
    assert said.count("litres: ") == 2
    for part in (
        "season: changes within",
        "when: has moments that stand beside the steps",
        "has steps without a value",
    ):
        assert said.count(part) == 1
    assert not any(cell in said for cell in ("n/a", "wet", "07:00"))


def test_each_of_these_alone_is_the_error_that_it_was(world, readings):
    again = pd.concat([readings, readings.iloc[:1]], ignore_index=True)
    for data in (again, readings.drop(index=3)):
        assert " and when" not in refusal(data, world.schema(gaps="refuse"))
    assert refusal(again, world.schema()).startswith("when: has several readings in one step")


def test_all_channels_with_gaps_are_named_together(world):
    lacking = np.array([[1.0, np.nan, 1.0, 1.0], [1.0] * 4])
    schema = world.schema(source="", time="", step="", gaps="refuse")
    plain = schema.to_plain()
    plain["channels"] = {name: dict(plain["channels"]["litres"]) for name in ("a", "b")}
    said = refusal({"a": lacking, "b": lacking}, type(schema).from_plain(plain))
    assert said.startswith("a, b: has steps without a value, and the schema says gaps: refuse")


def test_the_owner_alone_is_told_which_steps_have_no_value(world, readings, tmp_path, capsys):
    """A fit names the rule and the way to the list; the list alone names moments."""
    from doublure.cli.main import app
    from doublure.cli.terminal import run_guarded

    schema = world.schema(gaps="refuse")
    readings.loc[2, "litres"] = np.nan
    data, own, out = tmp_path / "m.csv", tmp_path / "s.yaml", tmp_path / "out.csv"
    readings.drop(index=4).to_csv(data, index=False)
    own.write_text(schema.to_yaml())
    said = refusal(str(data), schema)
    assert "list them by schema check --values FILE" in said
    assert "2024" not in said
    asked = ["schema", "check", str(own), "--data", str(data)]
    assert run_guarded(app, asked) == 0
    assert "add --values misfits.csv" in capsys.readouterr().out
    assert run_guarded(app, [*asked, "--values", str(out)]) == 4
    printed = capsys.readouterr()
    assert "litres (2 ×): a step has no value" in printed.out
    assert "gaps: drop" in printed.err
    assert "2024" not in printed.out + printed.err
    assert out.stat().st_mode & 0o777 == 0o600
    listed = pd.read_csv(out)
    moments = [readings.loc[row, "when"].replace("T", " ") for row in (2, 4)]
    gaps = listed[listed["why"].str.startswith("a step has no value")]
    assert gaps["cell"].tolist() == moments
    assert listed["row"].notna().all()  # each gap once, and no note beside it


def test_gaps_that_a_schema_takes_are_not_listed(world, readings):
    fewer = readings.drop(index=3)
    for gaps, count in (("refuse", 1), ("drop", 0), ("missing", 0)):
        assert len(list(open_series(fewer).gaps(world.schema(gaps=gaps)))) == count


ABC = "has cells that are no real"
WET = "{season: {type: category, values: [dry, wet], missing: false}}"


def listed(data, schema, folder):
    """Return what is listed, by column and reason, and check that something refused is listed if a fit refuses."""
    found = list_misfits(schema, data, folder / "out.csv", force=True)
    refused = [each for each in found if not each.reason.tolerated]
    try:
        open_series(data).load(schema)
    except DataError:
        assert refused
    else:
        assert not refused
    return {(each.column, each.why): count for each, count in found.items()}


@pytest.mark.parametrize("gaps", ["drop", "missing", "refuse"])
@pytest.mark.parametrize("form", ["rows", "arrays"])
def test_an_unreadable_cell_is_listed_as_such_and_never_as_a_gap(world, readings, tmp_path, gaps, form):
    schema = world.schema(gaps=gaps, channel="{type: real, bounds: [0, 199], missing: true}")
    readings["litres"] = readings["litres"].astype(object)
    readings.loc[2, "litres"] = "abc"
    data = readings
    if form == "arrays":
        cells = readings["litres"].to_numpy(dtype=object).reshape(-1, 4)
        data = {"litres": cells, "when": readings["when"].to_numpy()[::4], "meter": readings["meter"].to_numpy()[::4]}
    assert listed(data, schema, tmp_path) == {("litres", ABC): 1}
    assert list(open_series(data).gaps(schema)) == []
    row = pd.read_csv(tmp_path / "out.csv").loc[0]
    assert (row["row"], row["cell"]) == ((3 if form == "rows" else 1), "abc")


def test_a_cell_of_an_array_is_listed_by_its_series(world, tmp_path):
    cells = np.ones((2, 3, 4), dtype=object)
    cells[1, 1, 2] = "abc"
    schema = world.schema(source="", time="", step="", gaps="refuse")
    assert listed({"litres": cells}, schema, tmp_path) == {("litres", ABC): 1}
    assert pd.read_csv(tmp_path / "out.csv")["row"].tolist() == [5]


def test_where_the_clock_stands_beside_the_day_the_cell_is_listed_as_it_stands(world, readings, tmp_path):
    readings["day"], readings["at"] = readings["when"].str[:10], readings["when"].str[11:16]
    schema = world.schema(time="day", time_of_day="at")
    data = readings.drop(columns="when")
    assert listed(data, schema, tmp_path) == {("litres", BEYOND): 16}
    data.loc[2, "at"] = "noon"
    assert listed(data, schema, tmp_path)["day", "has cells that are no datetime"] == 1
    assert "2024-03-04" in pd.read_csv(tmp_path / "out.csv")["cell"].tolist()


def test_states_that_cannot_be_read_are_no_gaps_either(world, readings, tmp_path):
    schema = world.schema(gaps="refuse", channel="{type: category, values: [on, off], missing: false}")
    readings["litres"] = ["on", "off"] * (len(readings) // 2)
    assert listed(readings, schema, tmp_path) == {}
    readings.loc[2, "litres"] = "abc"
    readings.loc[7, "litres"] = None
    found = listed(readings, schema, tmp_path)
    assert found == {
        ("litres", "has values outside the schema's list"): 1,
        ("litres", "a step has no value, and the schema says gaps: refuse"): 1,
    }


def test_cells_of_attributes_and_moments_are_listed_and_so_is_what_lies_beyond(world, readings, tmp_path):
    schema = world.schema(attributes=WET)
    readings["season"], readings["when"] = "dry", readings["when"].astype(object)
    assert listed(readings, schema, tmp_path) == {("litres", BEYOND): 16}  # a fit takes these
    readings.loc[:3, "season"] = "damp"
    readings.loc[4, "when"], readings.loc[5, "when"] = "noon", None
    found = listed(readings, schema, tmp_path)
    assert found["season", "has values outside the schema's list"] == 4
    assert found["when", "has cells that are no datetime"] == 1
    assert found["when", "is empty, and a reading needs it"] == 1


@pytest.mark.parametrize(("column", "cell"), [("season", "wet"), ("when", "2024-03-05T07:00:00"), ("meter", None)])
def test_what_no_cell_breaks_alone_is_listed_too(world, readings, tmp_path, column, cell):
    readings["season"] = "dry"
    readings.loc[5, column] = cell
    found = listed(readings, world.schema(attributes=WET), tmp_path)
    assert [name for name, why in found if why != BEYOND] == [column]


def test_a_gap_beside_another_misfit_is_not_said_to_be_all(world, readings, tmp_path, capsys):
    """The remedy for gaps alone would lead to the next refusal."""
    from doublure.cli.main import app
    from doublure.cli.terminal import run_guarded

    schema = world.schema(gaps="refuse")
    readings["litres"] = readings["litres"].astype(object)
    readings.loc[2, "litres"] = "abc"
    own, data = tmp_path / "s.yaml", tmp_path / "m.csv"
    own.write_text(schema.to_yaml())
    asked = ["schema", "check", str(own), "--data", str(data), "--values", str(tmp_path / "out.csv"), "--force"]
    for lacking in ([], [4]):
        readings.drop(index=lacking).to_csv(data, index=False)
        assert run_guarded(app, asked) == 4
        printed = capsys.readouterr()
        assert f"litres (1 ×): {ABC}" in printed.out
        assert "declare gaps: drop" not in printed.err
        assert "fix the data" in printed.err


def test_nothing_is_coerced_once_the_refusals_are_known(world, readings):
    readings["litres"] = readings["litres"].astype(object)
    readings.loc[2, "litres"] = "n/a"
    source = open_series(readings)
    for _ in range(2):
        with pytest.raises(DataError, match="litres"):
            source.load(world.schema())


def test_no_message_quotes_what_nobody_wrote(world, readings):
    readings.loc[3, "when"] = None
    said = refusal(readings, world.schema())
    assert said.startswith("when: has empty cells")
    assert "missing: false" not in said
    arrays = {"litres": np.ones((2, 4)), "when": np.array(["2024-03-04", ""])}
    said = refusal(arrays, world.schema(source=""))
    assert said.startswith("when: has empty cells")
    assert "missing: false" not in said


def test_mixed_offsets_are_warned_of(world, readings):
    schema = world.schema(timezone="Europe/Paris")
    readings.loc[::2, "when"] += "+01:00"
    with pytest.warns(DataWarning, match="^when: some moments have an offset from UTC and some have none"):
        mixed = open_series(readings).load(schema)
    assert not np.isnan(mixed.content.values).any()


JOINED = {"source": "", "irregular": "mean"}


def test_readings_of_several_places_that_nothing_names_are_warned_of(world, readings):
    with pytest.warns(DataWarning, match="^when: several readings have one moment, .* name series.source") as warned:
        assert len(open_series(readings).load(world.schema(**JOINED)).content) == 4
    assert not any(cell in str(warned[0].message) for cell in ("m1", "m2", "2024"))


@pytest.mark.parametrize(
    "rules",
    [
        {"irregular": "mean"},  # their source is named
        {"source": "", "irregular": "sum", "unit": "{name: meter, id: meter, max_records: 9}"},
        {**JOINED, "misfit": "coerce"},  # then no message tells of the data
    ],
)
def test_readings_that_are_told_apart_are_not(world, readings, rules):
    misfit = rules.pop("misfit", "refuse")
    schema = world.schema(**rules).model_copy(update={"misfit": misfit})
    open_series(readings).load(schema)


def test_several_readings_in_a_step_are_not_if_their_moments_differ(world, readings):
    near = readings[readings["meter"] == "m2"].assign(when=lambda frame: frame["when"].str.replace(":00:00", ":01:00"))
    both = pd.concat([readings[readings["meter"] == "m1"], near])
    assert len(open_series(both).load(world.schema(**JOINED)).content) == 4


def test_an_hour_that_clocks_go_through_twice_is_not(world):
    moments = pd.date_range("2024-10-27T00:00Z", periods=4, freq="30min").tz_convert("Europe/Paris")
    frame = pd.DataFrame({"when": moments.strftime("%Y-%m-%dT%H:%M:%S%z"), "litres": 1.0})
    twice = pd.concat([frame, frame.assign(when=frame["when"].str.replace("+0200", "+0100"))])
    schema = world.schema(**JOINED, timezone="Europe/Paris", length="24", step="1h")
    assert len(open_series(twice).load(schema, at_least=1).content) == 1


def test_who_is_refused_for_them_is_told_to_name_their_source_first(world, readings):
    said = refusal(readings, world.schema(source=""))
    assert "name series.source if readings come from several places; if not, declare irregular" in said
    assert "series.source" not in refusal(pd.concat([readings] * 2, ignore_index=True), world.schema())
