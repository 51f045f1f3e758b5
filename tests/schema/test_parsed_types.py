"""A type from outside that says what one cell means: nothing that it does shows a cell, or lets two of them meet."""

from __future__ import annotations

import datetime
import re
import traceback
import warnings
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.data.tables import cells
from doublure.data.tables.opening import open_table
from doublure.data.tables.writing import write_table
from doublure.drafting.check import check
from doublure.errors import DataError, SchemaError, SettingError
from doublure.releasing.cells import DescribedColumn, InvalidCell, same
from doublure.releasing.dictionary import dictionary
from doublure.schema import Schema, columns
from doublure.schema.columns import ParsedColumn, parsed, registry
from doublure.schema.columns.time import TimeColumn
from doublure.schema.fact_states import Fact

SECRET = "Qv9-secret"


class PaceColumn(ParsedColumn):
    type: Literal["pace"] = "pace"
    bounds: Fact[tuple[str, str]] = ("2:00", "10:00")
    examples: ClassVar[dict[Any, float]] = {"5:12": 312.0, "4:00": 240.0}

    def parse(self, cell: Any) -> float:
        minutes, seconds = cell.split(":")
        return 60 * int(minutes) + int(seconds)

    @classmethod
    def format(cls, number: float) -> str:
        return f"{round(number) // 60}:{round(number) % 60:02}"


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    """Let what is registered here end with each test."""
    for name, empty in (("_REGISTERED", {}), ("_WITH_REGISTERED", [])):
        monkeypatch.setattr(registry, name, empty)


def pace(**own: Any) -> type[PaceColumn]:
    """Return a type with methods of its own."""
    return type("OwnColumn", (PaceColumn,), {"__module__": __name__, **own})


def column(model: type[PaceColumn], missing: str = "true") -> Any:
    columns.register(model)
    text = f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n  a: {{type: pace, missing: {missing}}}\n"
    return Schema.parse(text).columns["a"]


def read(own: Any, raw: list[Any], misfit: Any = "refuse") -> list[float]:
    return cells.canonical(pd.Series(raw, dtype=object), own, "a", misfit).tolist()


# -- what a type does with a cell that it does not know ----------------------------------------------------------------


def _raises(error: type[BaseException]) -> Any:
    def parse(self: Any, cell: Any) -> float:
        if cell == SECRET:
            raise error(cell)
        return PaceColumn.parse(self, cell)

    return parse


def _returns(found: Any) -> Any:
    return lambda self, cell: found if cell == SECRET else PaceColumn.parse(self, cell)


def _warns(self: Any, cell: Any) -> float:
    if cell == SECRET:
        warnings.warn(cell, stacklevel=1)
    return PaceColumn.parse(self, cell)


FAULTS = {
    "raises ValueError": _raises(ValueError),
    "raises KeyError": _raises(KeyError),
    "raises what no reader expects": _raises(RuntimeError),
    "ends the process": _raises(SystemExit),
    "returns an infinite number": _returns(float("inf")),
    "returns NaN": _returns(float("nan")),
    "returns None": _returns(None),
    "returns a text": _returns("312"),
    "returns a truth value": _returns(True),
    "returns the cell": _returns(SECRET),
    "warns of the cell": _warns,
}


def check_nothing_is_shown(parse: Any) -> None:
    own = column(pace(parse=parse))
    with warnings.catch_warnings(action="error"):
        with pytest.raises(DataError) as caught:
            read(own, ["5:12", SECRET, "4:00"])
        assert read(own, ["5:12", SECRET, "11:00"], "coerce") == pytest.approx([312, np.nan, 600], nan_ok=True)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert caught.value.message == "has cells that are no pace"
    assert (caught.value.field, bool(caught.value.remedy)) == ("a", True)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_it_does_not_know_is_a_misfit_and_never_shown(fault):
    check_nothing_is_shown(FAULTS[fault])


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (("math.isfinite(found)", "True"), "returns an infinite number"),
        (("math.isfinite(found)", "True"), "returns NaN"),
        (("isinstance(found, bool)", "False"), "returns a truth value"),
        (("except BaseException:\n        return None", "except ValueError:\n        return None"), "ends the process"),
    ],
)  # fmt: skip
def test_a_base_that_takes_it_is_caught(monkeypatch, edit, fault):
    old, new = edit
    if old.startswith("except"):
        monkeypatch.setattr(parsed, "BaseException", ValueError, raising=False)
    else:
        plant(monkeypatch, parsed, "parsed_number", (old, new))
    with pytest.raises((AssertionError, SystemExit, pytest.fail.Exception)):
        check_nothing_is_shown(FAULTS[fault])


def test_it_is_asked_for_each_distinct_cell_once_and_by_itself():
    asked = []
    own = column(pace(parse=lambda self, cell: asked.append(cell) or PaceColumn.parse(self, cell)))
    asked.clear()
    assert read(own, [" 5:12", "4:00", "5:12", None, "5:12", ""]) == pytest.approx(
        [312, 240, 312, np.nan, 312, np.nan], nan_ok=True
    )
    assert sorted(asked) == ["4:00", "5:12", "5:12"]  # " 5:12" is another cell
    for hostile in ([1], {}, b"5:12", object(), True, 1j, "5:12\0"):
        asked.clear()
        with pytest.raises(DataError):
            read(own, ["4:00", hostile])
        assert asked == ["4:00"]  # what is no text, number or time is not passed on


def test_a_missing_token_is_no_cell_of_it():
    own = column(PaceColumn, missing="['?', -9]")
    assert np.isnan(read(own, ["?", -9, "-9", -9.0, None, "NaN"])).all()


# -- what may be registered --------------------------------------------------------------------------------------------

CALLS: list[object] = []


def _counting(self: Any, cell: Any) -> float:
    CALLS.append(cell)
    return PaceColumn.parse(self, cell) + len(CALLS)


BEFORE: list[float] = []


def _beside(self: Any, cell: Any) -> float:
    number = PaceColumn.parse(self, cell)
    BEFORE.append(number)
    return max(BEFORE)


class _Two(PaceColumn):
    like: ClassVar[str | None] = "real"


class _Late(TimeColumn):
    type: Literal["late"] = "late"
    like: ClassVar[str | None] = "date"


REFUSED = {
    "it has no examples": (pace(examples={}), "OwnColumn has no examples"),
    "it counts its calls": (pace(parse=_counting), "OwnColumn does not read its examples as it says"),
    "it looks at cells before": (pace(parse=_beside), "OwnColumn does not read its examples as it says"),
    "it reads otherwise": (pace(examples={"5:12": 5.2}), "OwnColumn does not read its examples as it says"),
    "it cannot be read back": (
        pace(format=classmethod(lambda cls, number: f"{number} s")),
        "OwnColumn writes a number of its examples or points as another one",
    ),
    "it is like a type that reads otherwise": (_Two, "_Two is like another type than ParsedColumn"),
    "it is like another type than its base": (_Late, "_Late is like another type than TimeColumn"),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_a_type_is_refused(why):
    CALLS.clear()
    BEFORE.clear()
    model, message = REFUSED[why]
    with pytest.raises(SettingError) as caught:
        columns.register(model)
    assert caught.value.message == message
    assert caught.value.remedy
    assert columns.types() == columns.TYPES


def test_a_type_that_writes_no_text_is_refused():
    with pytest.raises(SchemaError, match="type pace: has no text for one of its numbers; fix its format"):
        columns.register(pace(format=classmethod(lambda cls, number: number)))


@pytest.mark.parametrize("method", registry._MEET_CELLS)
def test_whole_columns_are_read_by_no_method_from_elsewhere(method):
    with pytest.raises(SettingError, match=f"has a {method} of its own, which would be given private cells"):
        columns.register(pace(**{method: lambda self, *given: given[0]}))


def test_one_that_derives_from_a_type_of_this_package_is_like_it():
    shift = type("ShiftColumn", (TimeColumn,), {
        "__module__": __name__, "__annotations__": {"type": Literal["shift"]}, "type": "shift",
        "examples": {"07:30": 27_000.0},
    })  # fmt: skip
    columns.register(shift)
    own = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: shift, missing: false}}").columns["a"]
    assert (own.type, own.shown_type) == ("shift", "time")
    assert own.alike(TimeColumn())
    assert not own.alike(PaceColumn())


def test_bounds_that_a_type_does_not_read_are_refused_by_name():
    columns.register(PaceColumn)
    head = "doublure: 1\nkind: table\nunits: 9\ncolumns:\n  a: "
    with pytest.raises(SchemaError) as caught:
        Schema.parse(f"{head}{{type: pace, bounds: [fast, '9:00']}}")
    assert (caught.value.field, caught.value.message) == ("columns.a", "a bound is no pace")
    with pytest.raises(SchemaError, match="bounds are not in order"):
        Schema.parse(f"{head}{{type: pace, bounds: ['9:00', '4:00']}}")
    for learn in ("{learn: 0.1}", "{learn: 0.1, magnitude: 5}"):  # refused before a plan could be charged
        with pytest.raises(SchemaError, match=r"columns\.a: bounds cannot be learned of this type"):
            Schema.parse(f"{head}{{type: pace, bounds: {learn}, missing: false}}")
    open_facts = Schema.parse(f"{head}{{type: pace, bounds: undeclared, missing: false}}")
    (found,) = [each for each in check(open_facts).findings if each.kind == "undeclared"]
    assert (found.path, found.learn) == ("columns.a.bounds", None)


# -- rules and files ---------------------------------------------------------------------------------------------------

RULED = """
doublure: 1
kind: table
units: 9
columns:
  began: {type: time, step: 60, missing: false}
  start: {type: time, step: 60, missing: false}
  work: {type: duration, bounds: ["0:00:00", "8:00:00"], step: 60, missing: false}
  rest: {type: duration, bounds: ["0:00:00", "8:00:00"], step: 60, missing: false}
  total: {type: duration, bounds: ["0:00:00", "16:00:00"], step: 60, missing: false}
  night: {type: boolean, missing: false}
constraints:
  - {equal: [began, start]}
  - {sum: {total: total, of: [work, rest]}}
  - {implies: {when: {began: ["22:00", "23:59"]}, then: {night: true}}}
  - {combinations: {columns: [rest, night], rows: [["1:00:00", true], [PT1H, false]]}}
"""
KEEPS = {"began": "22:30", "start": "22:30", "work": "PT7H", "rest": "1:00:00", "total": "8 h", "night": True}


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, None),
        ({"total": "7:59:00"}, "total must be work + rest"),
        ({"night": False}, "if began is from 22:00 to 23:59, then night must be true"),
        ({"rest": "2:00:00", "total": "9 h"}, "rest and night must be one of the listed combinations"),
    ],
)
def test_times_and_durations_keep_rules(changed, word):
    schema = Schema.parse(RULED)
    frame = pd.DataFrame([KEEPS | changed, KEEPS])
    if word is None:
        loaded = open_table(frame).load(schema).frame
        assert loaded.began.tolist() == [81_000.0] * 2
        assert loaded.total.tolist() == [28_800.0] * 2
        return
    with pytest.raises(DataError, match=re.escape(f"has records that break a rule: {word}")):
        open_table(frame).load(schema)


def test_a_text_that_a_spreadsheet_would_run_is_defused_and_read_back(tmp_path):
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunits: 9\ncolumns:\n"
        "  a: {type: duration, bounds: ['-2:00:00', '2:00:00'], missing: ['-']}\n"
    ).resolve({})  # fmt: skip
    frame = pd.DataFrame({"a": schema.columns["a"].cells_of(np.array([-1800.0, 3600.0, np.nan]))})
    for safe, texts in ((False, ["-0:30:00", "1:00:00", "-"]), (True, ["'-0:30:00", "1:00:00", ""])):
        write_table([frame], tmp_path / "a.csv", schema, spreadsheet_safe=safe)
        lines = (tmp_path / "a.csv").read_text().split("\n")[1:4]
        assert [line.strip('"') for line in lines] == texts
        (entry,) = dictionary(schema, spreadsheet_safe=safe)["columns"]
        described = DescribedColumn.from_entry(entry, "a", safe=safe)
        found = described.of_texts(texts)
        assert found.tolist() == pytest.approx([-1800.0, 3600.0, np.nan], nan_ok=True)
        assert described.fault(found) is None
        assert described.fault(np.array([9000.0])) == "has a value outside the dictionary's bounds"
        assert described.text(found[0]) == "-0:30:00"
    with pytest.raises(InvalidCell):
        described.of_texts(["1:30"])


@pytest.mark.parametrize("step", [1, 60, 7, 3600, 7200, 604_800, 864_000_000, 10**12])
@pytest.mark.parametrize("name", ["time", "duration", "datetime"])
def test_whatever_bounds_are_bought_a_schema_with_a_step_takes_them(name, step):
    own = Schema.parse(f"doublure: 1\nkind: table\ncolumns:\n  a: {{type: {name}, step: {step}, missing: false}}\n")
    bare = own.columns["a"].model_copy(update={"bounds": "undeclared"})
    points = bare.partition(None).points
    for first, last in [(points[0], points[1]), (points[-2], points[-1]), (points[0], points[-1]), (0.0, 900.0)]:
        bounds = bare.countable(bare.bought(first, last))
        made = type(bare).model_validate({**bare.model_dump(), "bounds": bounds})
        lower, upper = made.known_grid
        assert lower <= upper
        if bare.widest[0] <= first - step and last + step <= bare.widest[1]:
            assert lower <= first
            assert last <= upper


@pytest.mark.parametrize("step", [2, 500, 1000, 10**6])
def test_whole_numbers_with_a_step_keep_bounds_where_noise_puts_both_beyond_what_is_exact(step):
    own = f"{{type: integer, step: {step}, bounds: {{learn: 1}}, missing: false}}"
    text = f"doublure: 1\nkind: table\ncolumns:\n  a: {own}\n"
    bare = Schema.parse(text).columns["a"]
    points = bare.partition(None).points
    for first, last in [(points[-2], points[-1]), (points[0], points[1]), (points[0], points[-1])]:
        lower, upper = bare.countable(bare.bought(first, last))
        assert lower < upper
        type(bare).model_validate({**bare.model_dump(), "bounds": (lower, upper)})


@pytest.mark.parametrize(
    ("own", "token", "cells", "kept"),
    [
        ("time", "00:00", ["00:00", "0:00:00", "24:00", datetime.time(0), "01:00"], [3600.0]),
        ("duration, numbers_in: min", "-1", ["-1", -1, -1.0, "-1 min", pd.Timedelta(-1, "min"), "1 min"], [60.0]),
    ],
)
def test_what_means_missing_does_so_however_it_is_written(own, token, cells, kept):
    bounds = "['00:00', '23:00']" if own == "time" else "['0 h', '2 h']"
    text = f"doublure: 1\nkind: table\ncolumns:\n  a: {{type: {own}, bounds: {bounds}, missing: ['{token}']}}\n"
    found = read(Schema.parse(text).columns["a"], cells)
    assert [number for number in found if number == number] == kept


@pytest.mark.parametrize("points", [(1.0,), (2.0, 1.0), (0.0, float("nan")), (0.0, 1.0, 1.0), ("a", "b")])
def test_points_that_are_no_grid_are_refused(points):
    with pytest.raises(SettingError, match="has points that are no grid"):
        columns.register(pace(points=points))


def test_points_that_are_written_as_other_numbers_are_refused():
    coarse = classmethod(lambda cls, number: PaceColumn.format(100.0 if number == 300.0 else number))
    with pytest.raises(SettingError, match="examples or points as another one"):
        columns.register(pace(format=coarse, points=(100.0, 300.0)))


@pytest.mark.parametrize(("kind", "missing"), [("date", "1900-01-01"), ("datetime", "1900-01-01 00:00")])
def test_a_moment_that_stands_for_a_missing_cell_does_so_in_every_form(kind, missing):
    entry = {"name": "born", "type": kind, "missing": [missing, "n/a"], "values": None, "bounds": None}
    column = DescribedColumn.from_entry(entry, "born")
    texts = column.of_texts([missing, "2001-02-03", "n/a"])
    values = column.of_values(pd.Series(pd.to_datetime(["1900-01-01", "2001-02-03", None])))
    assert np.isnan(texts[[0, 2]]).all()
    assert same(texts, values)
