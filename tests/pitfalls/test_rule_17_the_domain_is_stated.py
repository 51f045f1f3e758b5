"""Rule 17: among which data sets a claim holds is stated, and with ``misfit: coerce`` no record refuses a fit."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import os
import random
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.images import files as image_files
from doublure.data.images import open_images
from doublure.data.images import opening as image_sources
from doublure.data.series import open_series
from doublure.data.series import rows as series_rows
from doublure.data.tables import cells, csv_records
from doublure.data.tables.opening import open_table
from doublure.errors import DataError, DataWarning, SchemaError
from doublure.guarantee import ANY_DATA, QUOTING, REFUSALS
from doublure.schema import Schema, distinct_cells

FEW = {"components": 2, "fit_steps": 1, "starts": 1}  # of ``statistics``
LATE = datetime.datetime(2001, 1, 1, 23, tzinfo=datetime.UTC)
HOSTILE = [
    None, float("nan"), pd.NaT, pd.NA, decimal.Decimal("sNaN"), "", "?", True, False, 0, 1, 1.0, 2.5, -0.0, 9,
    float("inf"),float("-inf"), 2**70, -(10**400), np.int64(1), np.float32(0.1), decimal.Decimal("1.00"), 1j, "1", "01",
    "1.0", "yes", "a", "Qv9", "1e999", "a\0b", "\ud800", b"1", [1], {"a": 1}, (1,), object, LATE,
    LATE.astimezone(datetime.timezone(datetime.timedelta(hours=2))), pd.Timestamp(LATE), datetime.date.max,
    "2001-01-01", "2001-02-30", "9999-12-31T23:59:59Z", np.datetime64("20000-01-01"), np.datetime64("-20000-01-01"),
    datetime.time(1), pd.Timedelta(1), pd.Period("2001"),
]  # fmt: skip


def objects(values: list) -> np.ndarray:
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def seen(values: pd.Series) -> list[str]:
    return ["missing" if pd.isna(value) else repr(value) for value in values.astype(object)]


# -- tables --------------------------------------------------------------------------------------------------------

TABLE = """
doublure: 1
kind: table
unit: {name: person, id: who, max_records: 2}
units: 9
misfit: coerce
columns:
  who: {type: id}
  tag: {type: integer, bounds: [0, 99], missing: false}
  listed: {type: category, values: [1, 2, a], missing: false}
  other: {type: category, values: {learn: 0.1}, other: rest, missing: true}
  rank: {type: ordinal, values: [1, 2], missing: true}
  truth: {type: boolean, missing: false}
  whole: {type: integer, bounds: [-3, 5], missing: false}
  real: {type: real, bounds: {learn: 0.1}, precision: 1, missing: ["?"]}
  day: {type: date, bounds: [2000-01-01, 2010-01-01], missing: false}
  moment: {type: datetime, bounds: [2000-01-01, 2010-01-01], missing: true, timezone: Europe/Paris}
"""
FITTING = {
    "listed": [1, "a"], "other": ["x", 1], "rank": [1, 2], "truth": [True, "no"], "whole": [1, 4], "real": [1, 2.5],
    "day": [LATE, "2001-01-01"], "moment": [LATE, "2001-01-01T05:00"],
}  # fmt: skip


def person(tag: int, who: object, source: random.Random, pool: dict[str, list]) -> dict[str, object]:
    return {"who": who, "tag": tag} | {name: source.choice(pool[name]) for name in FITTING}


def of_tags(rows: list[dict[str, object]]) -> dict[object, list[str]]:
    """Return how each record that is used was read, by its tag, and whose record it is."""
    frame = pd.DataFrame({name: pd.Series(objects([row[name] for row in rows]), dtype=object) for name in rows[0]})
    loaded = open_table(frame).load(Schema.parse(TABLE), at_least=0)
    columns = {name: seen(loaded.frame[name]) for name in FITTING}
    return {tag: [columns[name][row] for name in FITTING] for row, tag in enumerate(loaded.frame["tag"])}


def check_a_table(pool: list = HOSTILE) -> None:
    hostile = dict.fromkeys(FITTING, pool)
    for seed in range(60):
        source = random.Random(seed)
        rows = [person(tag, tag % 4, source, FITTING if tag % 3 else hostile) for tag in range(10)]
        one = person(99, source.choice([*pool, 0, "3"]), source, hostile)
        place = source.randrange(len(rows) + 1)
        before, after = of_tags(rows), of_tags([*rows[:place], one, *rows[place:]])
        name = cells.unit_ids(pd.Series(objects([one["who"]]), dtype=object), "who", misfit="coerce")[0]
        others = [row["tag"] for row in rows if str(row["who"]) != name]
        assert {tag: after.get(tag) for tag in others} == {tag: before.get(tag) for tag in others}
        assert (99 in after) <= (name is not None)


def test_no_record_refuses_a_table_or_changes_another_person():
    check_a_table()


def test_without_coercing_the_same_tables_are_refused():
    refused = 0
    for cell in HOSTILE:
        frame = pd.DataFrame({"who": [1, 2], "tag": [1, 2], "x": objects([1, cell])})
        schema = Schema.parse(
            TABLE.replace("misfit: coerce", "misfit: refuse").partition("  listed")[0] + "  x: " + WHOLE
        )
        try:
            open_table(frame).load(schema)
        except DataError:
            refused += 1
    assert refused > len(HOSTILE) / 2


WHOLE = "{type: integer, bounds: [0, 5], missing: false}\n"


@pytest.mark.parametrize(
    ("column", "cell", "read"),
    [
        ("{type: integer, bounds: [2, 5], missing: false}", "Qv9", 2),
        ("{type: integer, bounds: [2, 5], missing: false}", None, 2),
        ("{type: integer, bounds: [2, 5], missing: true}", "Qv9", None),
        ("{type: integer, bounds: [2, 5], missing: true}", 9, 5),
        ("{type: integer, bounds: [2, 5], missing: true}", 3.5, 4),
        ("{type: real, bounds: [2, 5], missing: true}", float("inf"), 5),
        ("{type: real, bounds: [2, 5], missing: true}", "-inf", 2),
        ("{type: date, bounds: [2000-01-01, 2010-01-01], missing: false}", "Qv9", "2000-01-01"),
        ("{type: date, bounds: [2000-01-01, 2010-01-01], missing: true}", "2020-01-01", "2010-01-01"),
        ("{type: category, values: [a, b], other: b, missing: true}", "Qv9", "b"),
        ("{type: category, values: [a, b], other: b, missing: false}", None, "b"),
        ("{type: category, values: [a, b], missing: true}", "Qv9", None),
        ("{type: category, values: [a, b], missing: false}", "Qv9", "a"),
        ("{type: category, values: [a, b], missing: false}", None, "a"),
        ("{type: boolean, missing: false}", "Qv9", "false"),
        ("{type: boolean, missing: true}", "Qv9", None),
    ],
)
def test_what_a_misfit_counts_as(column, cell, read):
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\nmisfit: coerce\ncolumns:\n  x: {column}\n")
    found = open_table(pd.DataFrame({"x": objects([cell])})).load(schema, at_least=1).frame["x"][0]
    assert (pd.isna(found) and read is None) or str(found)[:10] == str(read) or found == read


@pytest.mark.parametrize("mutant", ["cells of any type joined", "the first of all in place of each one's"])
def test_a_table_in_which_records_meet_is_caught(lab, mutant):
    if mutant == "cells of any type joined":
        lab.plant(
            distinct_cells, "distinct", ("len(some := set(map(type, cells)) - _NOTHING) < 2 and some <= _ALIKE", "True")
        )
    else:
        from doublure.data.tables import source as tables

        lab.plant(
            tables, "_bounded", ("pd.Series(codes).groupby(codes).cumcount()", "pd.Series(np.arange(len(codes))) // 4")
        )
    with lab.caught():
        check_a_table([cell for cell in HOSTILE if not isinstance(cell, (list, dict, decimal.Decimal))])


@pytest.mark.parametrize("records", [0, 1])
def test_how_many_records_there_are_refuses_no_claim(tmp_path, records):
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\nmisfit: coerce\ncolumns:\n  x: {WHOLE}")
    plan = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-3)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="x", epsilon=9.0, delta=0.1)
    assert len(db.fit(pd.DataFrame({"x": [3] * records}, dtype=object), plan, ledger=ledger).sample(5)) == 5
    refusing = Schema.parse(schema.to_yaml().replace("coerce", "refuse"))
    plan = db.plan(refusing, method="statistics", epsilon=1.0, delta=1e-3)
    with pytest.raises(DataError, match="fewer than 2"):
        db.fit(pd.DataFrame({"x": [3] * records}), plan, ledger=ledger)


# -- files of text -------------------------------------------------------------------------------------------------

LINES = """
doublure: 1
kind: table
misfit: coerce
units: 40
columns:
  a: {type: category, values: [u, v], missing: false}
  c: {type: integer, bounds: [0, 9], missing: false}
"""
FIT = [b"uv"[row % 2 :][:1] + b",%d" % (row % 10) for row in range(30)]
HOSTILE_LINES = {
    "no UTF-8": b"\xff\xfe,3", "a NUL": b"u\0,3", "more fields": b"u,3,4,5", "fewer fields": b"u",
    "an open quote": b'"u,3', "a quote behind": b'u,"3', "a carriage return": b"u\rv,3",
    "a quote in the middle": b'u"x"y,3', "a mark": b"\xef\xbb\xbfu,3",
    "half a pair": b"\xed\xa0\x80,3", "a long cell": b"x" * 300_000 + b",3", "one quote": b'"',
}  # fmt: skip


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Fail where data is refused."""
    try:
        yield
    except DataError as error:
        raise AssertionError("refused") from error


def check_lines(folder: Path) -> None:
    """Each hostile line is one record more, at any place, and changes no other."""
    for number, line in enumerate(HOSTILE_LINES.values()):
        for place in (0, 7 + number, len(FIT)):
            path = folder / "t.csv"
            path.write_bytes(b"\n".join([b"a,c", *FIT[:place], line, *FIT[place:]]) + b"\n")
            with taken():
                table = open_table(path).load(Schema.parse(LINES))
            assert table.n_units == len(FIT) + 1
            others = table.frame.drop(index=place)
            assert [f"{a},{c:g}".encode() for a, c in zip(others["a"], others["c"], strict=True)] == FIT


def test_no_line_refuses_a_file_or_changes_another(tmp_path):
    check_lines(tmp_path)


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("cleaned", ("odd |= {*_suspects(content, bounds, dialect).tolist()}", "pass")),
        ("_decoded", ("unread[place] = MISENCODED", "raise")),
    ],
    ids=["an open quote swallows", "a bad byte refuses"],
)
def test_a_file_in_which_lines_meet_is_caught(lab, tmp_path, name, edit):
    lab.plant(csv_records, name, edit)
    with lab.caught():
        check_lines(tmp_path)


def test_hostile_lines_are_fitted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\n".join([b"a,c", *FIT, *HOSTILE_LINES.values()]))
    plan = db.plan(Schema.parse(LINES), method="statistics", epsilon=4.0, delta=1e-3, accountant="rdp", **FEW)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="x", epsilon=9.0, delta=0.1)
    assert len(db.fit(path, plan, ledger=ledger).sample(5)) == 5
    refusing = Schema.parse(LINES.replace("misfit: coerce\n", ""))
    plan = db.plan(refusing, method="statistics", epsilon=4.0, delta=1e-3, accountant="rdp", **FEW)
    with pytest.raises(DataError, match="has records with an unclosed quote or bytes that are not UTF-8 text"):
        db.fit(path, plan, ledger=ledger, out=tmp_path / "run")
    listed = (tmp_path / "run-refused.csv").read_text().splitlines()
    assert len(listed) == 1 + 7
    assert (tmp_path / "run-refused.csv").stat().st_mode & 0o777 == 0o600


# -- images --------------------------------------------------------------------------------------------------------

IMAGES = """
doublure: 1
kind: images
unit: {name: person, id: who, max_records: 2}
units: 9
misfit: coerce
images: {shape: [4, 5, 1], range: [0, 1]}
label: {values: [a, b], roles: [target, condition]}
"""


def by_unit(units: np.ndarray, shown: Iterable) -> list[list]:
    """Return what each unit's records show; of the units in no order, for they have no names."""
    found: dict[int, list] = {}
    for unit, each in zip(units.tolist(), shown, strict=True):
        found.setdefault(unit, []).append(each)
    return sorted(sorted(records) for records in found.values())


def of_people(images: np.ndarray, labels: list, who: list) -> list[list]:
    loaded = open_images({"images": images, "labels": labels, "who": who}).load(Schema.parse(IMAGES), at_least=0)
    return by_unit(loaded.unit, zip(map(bytes, loaded.content.images), map(str, loaded.content.labels), strict=True))


def check_arrays() -> None:
    for seed in range(40):
        source, draw = random.Random(seed), np.random.default_rng(seed)
        images = draw.random((9, 4, 5))
        images[source.randrange(9)] = source.choice([np.nan, np.inf, 1e300, -5.0])
        labels = [source.choice(HOSTILE if row % 3 else ["a", "b"]) for row in range(9)]
        who = [f"p{row % 4}" for row in range(9)]
        one = draw.random((1, 4, 5)) * source.choice([1, np.nan, 1e300])
        more = of_people(np.concatenate([one, images]), [source.choice(HOSTILE), *labels], ["new", *who])
        before = of_people(images, labels, who)
        assert [each for each in more if each in before] == before
        assert len(more) - len(before) == np.isfinite(one).all()


def test_no_image_refuses_a_set_or_changes_another_person():
    check_arrays()


def test_a_set_in_which_images_meet_is_caught(lab):
    lab.plant(
        image_sources.ImageSource,
        "_taken",
        ("kept[reader.faults.rows] = False", "kept[len(reader.faults.rows):] = True"),
    )
    with lab.caught():
        check_arrays()


def pictures() -> Iterator[bytes]:
    from PIL import Image

    for size, mode in (((5, 4), "L"), ((5, 4), "RGB"), ((9, 9), "L"), ((5, 4), "RGBA")):
        file = io.BytesIO()
        Image.new(mode, size).save(file, format="PNG")
        yield file.getvalue()
    yield file.getvalue()[:-20]
    yield b"no picture"
    yield b""


@pytest.mark.parametrize(("rule", "count"), [("refuse", 1), ("resize", 4)])
def test_pictures_that_the_rule_refuses_are_left_out(tmp_path: Path, rule, count):
    text = IMAGES.replace("unit: {name: person, id: who, max_records: 2}\n", "").replace("[0, 1]", "[0, 255]")
    schema = Schema.parse(text.replace("images: {", f"images: {{on_mismatch: {rule}, "))
    good, *odd = pictures()
    (tmp_path / "b").mkdir()
    (tmp_path / "zebra").mkdir()
    (tmp_path / "b" / "1.png").write_bytes(good)
    for number, content in enumerate(odd):
        (tmp_path / "zebra" / f"{number}.png").write_bytes(content)
        loaded = open_images(tmp_path).load(schema, at_least=0)
        assert loaded.frame["label"].tolist()[0] == "b"
        assert set(loaded.frame["label"][1:]) <= {"a"}
    assert (loaded.n_units, len(loaded.content)) == (count, count)


FOLDER = """
doublure: 1
kind: images
units: 9
misfit: coerce
images: {shape: [4, 5, 1], range: [0, 255]}
LABEL
"""
LABEL = "label: {values: [a, b], other: b}"


def shown(folder: Path, label: str = LABEL) -> list[tuple[bytes, str]]:
    with taken(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "set: .* skipped", DataWarning)
        loaded = open_images(folder).load(Schema.parse(FOLDER.replace("LABEL", label)), at_least=0)
    labels = loaded.content.labels
    named = [""] * len(loaded.content) if labels is None else map(str, labels)
    return sorted(zip(map(bytes, loaded.content.images), named, strict=True))


def add_a_file(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def grey(level: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("L", (5, 4), 20 + level).save(file, format="PNG")
    return file.getvalue()


def check_folders(folder: Path) -> None:
    """A file of any name at any place is a record of its own: read, or left out if it is no picture."""
    good, *odd = pictures()
    for number, content in enumerate((*odd, b"GIF89a", b"%PDF-1.7")):
        add_a_file(folder / "set" / "ab"[number % 2] / f"{number}.png", grey(number))
        for label in (LABEL, ""):
            before = shown(folder / "set", label)
            assert (bytes([20]) * 20, "a" if label else "") in before
            for name in ("a/x.gif", "x.png", "x.txt", "new/x.PNG", "a/deep/er/x.png", "a/x", "labels.csv", "b/x.tiff"):
                for own, more in ((good, 1), (content, 0)):
                    add_a_file(folder / "set" / name, own)
                    after = shown(folder / "set", label)
                    (folder / "set" / name).unlink()
                    assert len(after) == len(before) + (more if name != "x.txt" else 0)
                    assert all(after.count(each) >= before.count(each) for each in before)
            (folder / "set" / "a" / "x.png").symlink_to(folder / "nowhere")
            os.mkfifo(folder / "set" / "pipe.png")
            assert shown(folder / "set", label) == before
            for name in ("a/x.png", "pipe.png"):
                (folder / "set" / name).unlink()


def test_no_file_refuses_a_folder_or_changes_another(tmp_path):
    check_folders(tmp_path)
    (tmp_path / "empty").mkdir()
    assert shown(tmp_path / "empty") == []


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (image_files.FolderSource, "check", ("image_schema(schema).misfit == 'refuse'", "True")),
        (image_files.FolderSource, "has_labels", ("self.labelled or schema.misfit == 'coerce'", "self.labelled")),
        (image_files.FolderSource, "labels", ("[None, *classes]", "[*classes, None]")),
        (image_files, "content_of", ("not path.is_file()", "path.suffix.lower() not in ENDINGS")),
    ],
    ids=["by their endings", "labels by the folders", "another's label", "not by its content"],
)
def test_a_folder_in_which_files_decide_is_caught(lab, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_folders(tmp_path)
        (tmp_path / "loose").mkdir()
        add_a_file(tmp_path / "loose" / "x.png", next(pictures()))
        assert [label for _, label in shown(tmp_path / "loose")] == ["b"]


def test_a_row_that_names_no_picture_changes_no_other(tmp_path):
    good, schema = next(pictures()), Schema.parse(FOLDER.replace("LABEL", LABEL))
    add_a_file(tmp_path / "1.png", good)
    rows = [b"file,label", b"1.png,a"]
    (tmp_path / "list.csv").write_bytes(b"\n".join(rows))
    assert len(open_images(tmp_path / "list.csv").load(schema, at_least=0).content) == 1
    for line in (
        b'"1.png,a',
        b"1.png",
        b"\xff.png,a",
        b"x" * 5000 + b".png,a",
        b"\0.png,a",
        b"../1.png,a",
        b"a,b,c",
        b"\r",
    ):
        (tmp_path / "list.csv").write_bytes(b"\n".join([*rows, line, line]))
        loaded = open_images(tmp_path / "list.csv").load(schema, at_least=0)
        assert loaded.frame["label"].tolist() == ["a"]


# -- series --------------------------------------------------------------------------------------------------------

SERIES = """
doublure: 1
kind: series
unit: {name: meter, id: meter, max_records: 50}
units: 9
misfit: coerce
series: {time: when, length: 4, step: 6h, timezone: America/New_York, gaps: GAPS, irregular: refuse}
channels:
  a: {type: integer, bounds: [0, 9], missing: false}
  b: {type: real, bounds: [0, 9], missing: true}
attributes: {kind: {type: category, values: [x, y], missing: false}}
"""
READING = ("meter", "when", "a", "b", "kind")


def of_meters(rows: list[tuple], gaps: str, names: tuple[str, ...] = READING) -> list[list]:
    """Return the series of each meter."""
    frame = pd.DataFrame(
        {name: pd.Series(objects([row[place] for row in rows]), dtype=object) for place, name in enumerate(names)}
    )
    text = SERIES.replace("GAPS", gaps)
    if "when" not in names:
        text = text.replace("time: when, ", "").replace(", timezone: America/New_York", "")
    loaded = open_series(frame).load(Schema.parse(text), at_least=0)
    shown = zip(map(repr, loaded.content.values.tolist()), map(str, loaded.content.attributes["kind"]), strict=True)
    return by_unit(loaded.unit, shown)


def check_readings() -> None:
    begin = datetime.datetime(2024, 3, 4)
    for seed in range(40):
        source, gaps = random.Random(seed), ("refuse", "drop", "missing")[seed % 3]

        def reading(meter: str, step: int, source: random.Random = source) -> tuple:
            odd = source.random() < 0.1
            when = source.choice(HOSTILE) if odd else begin + step * datetime.timedelta(hours=6)
            a, b = (source.choice(HOSTILE if source.random() < 0.1 else [1, 2, 3]) for _ in range(2))
            return meter, when, a, b, "x" if meter == "m0" else source.choice([*HOSTILE, "y"])

        rows = [reading(f"m{meter}", step) for meter in range(3) for step in range(8)]
        one = (source.choice([None, [1], "?"]), *(source.choice(HOSTILE) for _ in range(4)))
        before = of_meters(rows, gaps)
        nameless = source.choice([None, pd.NaT, "", [1], "a\0", b"1"])
        assert of_meters([(nameless, *one[1:]), *rows], gaps) == before
        whole = [("m9", begin + step * datetime.timedelta(hours=6), 1, 1, "y") for step in range(4)]
        added = of_meters([*whole, ("m9", *one[1:]), *rows, ("m9", *one[1:])], gaps)
        assert [each for each in added if each in before] == before
        assert len(added) - len(before) <= 1
        numbered = [(meter, number // 4, number % 4, a, b, kind) for number, (meter, _, a, b, kind) in enumerate(rows)]
        names = ("meter", "series", "step", "a", "b", "kind")
        plain = of_meters(numbered, gaps, names)
        for where in range(1, 3):
            worse = list(("m9", "s", 0, 1, 1, "x"))
            worse[where] = source.choice(HOSTILE)
            added = of_meters([tuple(worse), *numbered], gaps, names)
            assert [each for each in added if each in plain] == plain


def test_no_reading_refuses_series_or_changes_another_meter():
    check_readings()


def test_series_in_which_meters_meet_are_caught(lab):
    lab.plant(series_rows, "_of_series", ("frame.iloc[first]", "frame.iloc[first * 0]"))
    with lab.caught():
        check_readings()


def test_no_array_of_series_is_refused_for_one_of_them():
    text = SERIES.replace("GAPS", "missing").replace("a: {type", "c: {type")
    draw = random.Random(0)
    for _ in range(30):
        given = {
            "c": [[1, 2, 3, 4], [draw.choice([each for each in HOSTILE if not hasattr(each, "__len__")])] * 4],
            "b": np.array([[1, 2, np.inf, 4], [np.nan] * 4]),
            "kind": objects(["y", draw.choice(HOSTILE)]),
            "meter": objects(["m", draw.choice(HOSTILE)]),
            "when": objects(["2024-03-04", draw.choice(HOSTILE)]),
        }
        loaded = open_series(given).load(Schema.parse(text), at_least=0)
        assert loaded.content.values[0].tolist() == [[1, 1], [2, 2], [3, 9], [4, 4]]
        assert loaded.content.attributes["kind"].iloc[0] == "y"


@pytest.mark.parametrize("kind", ["images", "series"])
def test_a_claim_on_nobody_is_fitted_too(tmp_path, kind):
    if kind == "images":
        given = {"images": np.full((2, 4, 5), np.nan), "labels": ["a", "b"], "who": [1, 2]}
        plan = db.plan(Schema.parse(IMAGES), method="dpgan", epsilon=4.0, delta=1e-3, steps=2)
    else:
        given = pd.DataFrame({name: objects([None, "Qv9"]) for name in READING})
        plan = db.plan(Schema.parse(SERIES.replace("GAPS", "drop")), method="statistics", epsilon=4.0, delta=1e-3)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="x", epsilon=9.0, delta=0.1)
    assert len(db.fit(given, plan, ledger=ledger).sample(5)) == 5


# -- what is said --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [TABLE, IMAGES, SERIES.replace("GAPS", "missing")], ids=["table", "images", "series"])
def test_the_claim_names_its_domain(text):
    for schema, said in ((text, True), (text.replace("misfit: coerce\n", ""), False)):
        claim = db.plan(Schema.parse(schema), method="statistics", epsilon=4.0, delta=1e-3).guarantee
        assert (ANY_DATA in claim.assumptions) is said
        assert (REFUSALS in claim.excluded) is not said
        assert QUOTING not in claim.assumptions


def test_the_claim_says_where_quoting_is_form():
    for line in ("multiline: true\n", ""):
        plan = db.plan(Schema.parse(LINES.replace("columns:", f"{line}columns:")), epsilon=4.0, delta=1e-3, **FEW)
        assert (QUOTING in plan.guarantee.assumptions) is bool(line)


def test_the_rule_is_part_of_the_schema():
    coerced, default = Schema.parse(TABLE), Schema.parse(TABLE.replace("misfit: coerce\n", ""))
    assert (coerced.misfit, default.misfit) == ("coerce", "refuse")
    assert coerced.sha256 != default.sha256
    assert Schema.parse(coerced.to_yaml()) == coerced
    assert Schema.parse(TABLE.replace("coerce", "refuse")).sha256 == default.sha256
    with pytest.raises(SchemaError, match="misfit"):
        Schema.parse(TABLE.replace("coerce", "perhaps"))
    kinds = [
        one
        for name, one in Schema.json_schema()["$defs"].items()
        if name in ("TableSchema", "ImageSchema", "SeriesSchema")
    ]
    assert [one["properties"]["misfit"]["enum"] for one in kinds] == [["refuse", "coerce"]] * 3
