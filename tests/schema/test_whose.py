"""Design rule 21: an id raises a question, whose it is, answered before anything is planned, fitted or claimed."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.tables.on_disk import TableOnDisk
from doublure.data.tables.opening import open_table
from doublure.drafting.asks import asks_of
from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.drafting.proposals import proposal_for
from doublure.drafting.whose import id_names, likely_id, proposed_units
from doublure.errors import DataError, SchemaError
from doublure.guarantee import formerly_of_records, of_records, protects_records
from doublure.releasing.generator import publish
from doublure.releasing.plain_words import plain_words
from doublure.schema import Schema
from doublure.schema.unit import Unit, is_id_name, people_in

OPEN = """
doublure: 1
kind: table
units: 40
columns:
  row: {type: id}
  MRN: {type: id}
  age: {type: integer, bounds: [0, 99], missing: false}
  sex: {type: category, values: [f, m], missing: false}
"""
NAMED = OPEN.replace("units: 40", "unit: {name: patient, id: MRN}\nunits: 40")
OF_RECORDS = of_records("record (one row of a table)")
ROWS = OPEN.replace("units: 40", "unit: {id: none}\nunits: 40")
NO_ID = OPEN.replace("  row: {type: id}\n  MRN: {type: id}\n", "")


def visits(rows: int = 60, people: int = 40) -> pd.DataFrame:
    """Return rows of which some are of one person."""
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "row": np.arange(rows),
            "MRN": 100_000 + np.arange(rows) % people,
            "age": draw.integers(0, 100, rows),
            "sex": draw.choice(["f", "m"], rows),
        }
    )


def planned(text: str) -> db.Plan:
    return db.plan(Schema.parse(text), epsilon=5.0, delta=1e-4, accountant="rdp", components=2, fit_steps=2)


# -- names -------------------------------------------------------------------------------------------------------------


def test_ids_are_told_by_their_names() -> None:
    named = ["mrn", "MRN", "patient", "Person", "subject", "customer", "stay_id", "nr", "caseId", "patient_nbr", "uuid"]
    assert [name for name in named if not is_id_name(name)] == []
    others = ["paid", "age", "subject_matter", "said", "grid", "number of visits", "patient age", ""]
    assert [name for name in others if is_id_name(name)] == []
    assert [people_in(name) for name in ("MRN", "customerID", "SUBJECT", "nr")] == [
        "patient", "customer", "subject", None,
    ]  # fmt: skip


def test_a_person_s_id_is_proposed_as_the_unit() -> None:
    assert likely_id(["stay_id", "age", "Patient"]) == "Patient"
    assert likely_id(["age", "nr"]) == "nr"
    text = drafted(visits()).to_yaml()
    first, second, third = proposed_units(["row", "MRN"])
    assert all(f"# {line}\n" in text for line in (first, second, third))
    assert first.startswith("unit: {name: patient, id: MRN, max_records: NUMBER}")
    assert "  # MRN: {type: id}  # if it names a patient, as its name says" in text
    assert [*proposed_units(["age", "sex"])] == []
    proposal = proposal_for("paid", "integer", pd.Series(range(10)))
    assert proposal is None


# -- the question ------------------------------------------------------------------------------------------------------


def test_an_open_id_is_refused_by_plan_in_one_line_with_both_answers() -> None:
    with pytest.raises(SchemaError) as refused:
        planned(OPEN)
    said = str(refused.value)
    assert said.startswith("unit.id: ")
    assert "unit: {id: MRN}" in said
    assert "unit: {name: record, id: none}" in said
    assert "\n" not in said


@pytest.mark.parametrize("text", [NAMED, ROWS, NO_ID])
def test_an_answer_opens_the_way(text: str) -> None:
    assert Schema.parse(text).undeclared == ()
    assert check(Schema.parse(text)).ok
    planned(text)


def test_a_check_asks_for_it_with_yaml_that_answers(tmp_path: Path) -> None:
    found = check(Schema.parse(OPEN))
    assert not found.ok
    (asked,) = [each for each in found.findings if each.path == "unit.id"]
    assert asked.kind == "undeclared"
    lines = found.to_yaml().splitlines()
    for answer in ("unit: {name: patient, id: MRN}", "unit: {name: record, id: none}"):
        assert answer in [line.removeprefix("# ") for line in lines]
        assert Schema.parse(OPEN.replace("units: 40", f"{answer}\nunits: 40")).undeclared == ()


def test_a_plan_of_an_earlier_version_is_read_and_not_fitted(tmp_path: Path) -> None:
    """Its schema has an id, and nobody was asked whose it is."""
    plan = planned(NO_ID)
    plain = plan.schema.to_plain()
    plain["columns"] = {"MRN": {"type": "id"}} | plain["columns"]
    schema = Schema.from_plain(plain)
    earlier = json.loads(json.dumps(plan.to_json())) | {"schema": schema.to_plain(), "schema_sha256": schema.sha256}
    read = db.Plan.from_json(earlier, reprice=False)
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=9, delta=0.1)
    with pytest.raises(SchemaError, match=r"^unit\.id"):
        db.fit(visits(), read, ledger=ledger, out=tmp_path / "run")
    assert ledger.spent.epsilon == 0
    assert schema.resolve({}).open_ids == ("MRN",)  # its run folder can be loaded


# -- records as units --------------------------------------------------------------------------------------------------


def test_id_none_is_kept_in_files_and_says_what_is_protected() -> None:
    schema = Schema.parse(ROWS)
    assert (schema.unit.name, schema.unit.id, schema.unit.each_record) == ("record", None, True)
    assert schema.to_plain()["unit"] == {"name": "record", "id": "none", "max_records": 1}
    assert Schema.parse(schema.to_yaml()) == schema != schema.model_copy(update={"unit": Unit(name="record")})
    assert schema.resolve({}).unit.each_record
    assert OF_RECORDS in planned(ROWS).guarantee.excluded
    assert OF_RECORDS not in planned(NAMED).guarantee.excluded


def test_an_exclusion_that_only_begins_like_that_of_records_is_another() -> None:
    stay = "stay (one row of a table)"
    assert all(protects_records([said]) for said in (of_records(stay), *formerly_of_records(stay)))
    assert not protects_records(["people with several records: one of them is chosen", OF_RECORDS + "."])


DAYS = """
doublure: 1
kind: series
unit: {name: day, id: none}
units: 900
series: {time: at, length: 24, step: 1h}
channels: {load: {type: integer, bounds: [0, 99], missing: false}}
"""


def test_a_unit_that_is_a_series_is_called_so_and_earlier_plans_are_read() -> None:
    plan = db.plan(Schema.parse(DAYS), method="statistics", epsilon=3.0, delta=1e-4)
    said = next(each for each in plan.guarantee.excluded if protects_records((each,)))
    assert said == (
        "several records together: each day (one series of 24 steps of 1h) is protected alone, so that k of them have "
        "k times this ε, and a larger δ"
    )
    assert not any("row of a table" in each for each in plan.guarantee.excluded)
    assert any(each.startswith("Take any one day out of") for each in plain_words(plan.guarantee.to_json()))
    written = plan.to_json()
    for wording in formerly_of_records(plan.schema.unit_in_words):
        former = [wording if each == said else each for each in written["guarantee"]["excluded"]]
        claim = plan.guarantee.model_copy(update={"excluded": tuple(former)})
        earlier = {**written, "guarantee": claim.to_json() | {"sentence": claim.former_sentence}}
        read = db.Plan.from_json(earlier, reprice=False)
        assert read.guarantee.excluded == tuple(former)
        assert (read.sha256 == plan.sha256) == ("one day (one series" in wording)  # its ledger knows it by its hash
    image = Schema.parse(
        "doublure: 1\nkind: images\nunit: {name: scan, id: none}\nunits: 9\nimages: {shape: [8, 8, 1]}"
    )
    assert image.unit_in_words == "scan (one image)"


def test_records_are_called_no_people() -> None:
    for name in ("person", "patient", "customer"):
        with pytest.raises(SchemaError, match="name promises more than a record"):
            Schema.parse(ROWS.replace("{id: none}", f"{{name: {name}, id: none}}"))
    with pytest.raises(SchemaError, match="max_records above 1 needs an id"):
        Schema.parse(ROWS.replace("{id: none}", "{id: none, max_records: 2}"))


def test_earlier_schemas_keep_their_hash() -> None:
    assert Schema.parse(NO_ID).to_plain()["unit"] == {"name": "person", "id": None, "max_records": 1}
    assert Schema.parse(NO_ID).sha256 == "c0e308f10289db7d4367d772f47fb6dbcd419fd0d75e9c922e275f78eb8242e9"


# -- what is claimed ---------------------------------------------------------------------------------------------------


def test_a_card_says_what_it_assumes_of_people(tmp_path: Path) -> None:
    said = {}
    for name, text in {"none": NO_ID, "named": NAMED, "records": ROWS}.items():
        ledger = db.Ledger.create(tmp_path / f"{name}.ledger", dataset="d", epsilon=9, delta=0.1)
        syn = db.fit(visits(40), planned(text), ledger=ledger, out=tmp_path / name, seed=1)
        card = db.release(syn, tmp_path / f"{name} bundle", n=20, ledger=ledger).card
        db.verify(tmp_path / f"{name} bundle")
        publish(syn, tmp_path / f"{name} generator", ledger=ledger)
        assert db.load(tmp_path / f"{name} generator").guarantee == syn.guarantee
        said[name] = card["guarantee"]
    assert "no person has more than one record" in said["none"]["assumptions"]
    assert "MRN names each patient the same way in every record" in said["named"]["assumptions"]
    assert not any(
        "more than one record" in line for name in ("named", "records") for line in said[name]["assumptions"]
    )
    assert OF_RECORDS in said["records"]["excluded"]
    assert said["records"]["unit"] == "record"
    page = (tmp_path / "records bundle/card.html").read_text(encoding="utf-8")
    assert "Take any one record out of the private data" in page
    assert "Take all records of any one patient" in (tmp_path / "named bundle/card.html").read_text(encoding="utf-8")


# -- ids that repeat ---------------------------------------------------------------------------------------------------


def test_a_repeated_id_refuses_where_each_is_said_to_have_one_record(tmp_path: Path) -> None:
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=99, delta=0.1)
    ways = (
        lambda: db.fit(visits(), planned(NAMED), ledger=ledger, out=tmp_path / "run"),
        lambda: TableOnDisk(open_table(visits()), Schema.parse(NAMED), tmp_path, rows=7),
    )
    for way in ways:
        with pytest.raises(DataError) as refused:
            way()
        assert str(refused.value).startswith("MRN: names a patient in several records, and max_records is 1; ")
        assert not any(figure in str(refused.value) for figure in ("40", "60", "100"))
    assert ledger.spent.epsilon == 0
    several = NAMED.replace("id: MRN}", "id: MRN, max_records: 2}")
    coerced = NAMED.replace("units: 40", "units: 40\nmisfit: coerce")
    for text in (several, coerced):
        db.fit(visits(), planned(text), ledger=ledger)


def test_a_run_is_evaluated_on_data_that_a_fit_would_refuse_today(tmp_path: Path) -> None:
    """A run of 0.2.0 took the first record of each."""
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=9, delta=0.1)
    syn = db.fit(visits(40), planned(NAMED), ledger=ledger, seed=1)
    report = db.evaluate.report(syn, visits(), rows=50, progress=False)
    assert report.measured.rows.train + report.measured.rows.holdout == 60


def test_the_owner_is_told_how_often_ids_repeat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    visits().to_csv("d.csv", index=False)
    Path("s.yaml").write_text(OPEN)
    words = ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "out.csv", "--force"]
    assert run_guarded(app, words) == 4
    with Path("out.csv").open(newline="") as file:
        assert [*csv.reader(file)][1:] == [["", "MRN", "", "stands in several rows: 40 different in 60 rows"]]
    assert stat.S_IMODE(Path("out.csv").stat().st_mode) == 0o600
    shown = capsys.readouterr()
    assert "40 different" not in shown.out + shown.err  # no terminal: it may be a log
    assert run_guarded(app, [*words, "--json"]) == 4
    shown = capsys.readouterr()
    assert "different" not in shown.out + shown.err
    monkeypatch.setattr("doublure.cli.schema.interactive", lambda: True)
    run_guarded(app, words)
    heading, line = [line for line in capsys.readouterr().out.splitlines() if "PRIVATE" in line or "different" in line]
    assert heading.startswith("# PRIVATE")
    assert line == "#   MRN: 40 different in 60 rows"
    Path("s.yaml").write_text(NAMED)
    assert run_guarded(app, words) == 4
    assert "MRN: names a patient in several records" in capsys.readouterr().err


def test_a_short_declared_list_is_no_id() -> None:
    """A survey's citizen is one of three groups; an id by its own word stays one, and so does an open list."""
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns: {citizen: {type: category, values: %s, missing: false}}"
    of_few, opened = (Schema.parse(text % values) for values in ("[AT, EU, Other]", "undeclared"))
    many = Schema.parse(text % [f"c{number}" for number in range(100)])
    assert [[ask.path for ask in asks_of(each)].count("unit.id") for each in (of_few, opened, many)] == [0, 1, 1]
    assert id_names({"citizen_id": of_few.columns["citizen"]}) == ["citizen_id"]


def test_registers_of_people_are_ids_by_their_names() -> None:
    assert all(is_id_name(name) and people_in(name) == "person" for name in ("bioguide", "icpsr", "id_govtrack"))


def test_texts_that_may_be_ids_and_skipped_questions_are_counted_for_the_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes of an unknown name in many rows, and a block of a survey: no name proposes either."""
    monkeypatch.chdir(tmp_path)
    flies = ["never" if row % 4 == 0 else "often" for row in range(80)]
    answers = [None if said == "never" else "ab"[row // 4 % 2] for row, said in enumerate(flies)]
    frame = pd.DataFrame(
        {"cuip": [f"X{row // 4}" for row in range(80)], "word": ["some", "other"] * 40, "flies": flies}
    )
    frame = frame.assign(seat=answers, window=answers, alone=[None if row % 5 == 0 else "a" for row in range(80)])
    frame.to_csv("d.csv", index=False)
    listed = "".join(
        f"  {name}: {{type: category, values: [a, b], missing: true}}\n" for name in ("seat", "window", "alone")
    )
    Path("s.yaml").write_text(
        "doublure: 1\nkind: table\nunits: 80\nunit: {name: record, id: none}\ncolumns:\n"
        "  cuip: {type: category, values: undeclared, missing: false}\n"
        "  word: {type: category, values: undeclared, missing: false}\n"
        "  flies: {type: category, values: [never, often], missing: false}\n" + listed
    )
    words = ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "out.csv", "--force"]
    run_guarded(app, words)
    shown = capsys.readouterr()
    assert not any(secret in shown.out + shown.err for secret in ("20 different", "20 of 20", "when"))
    with Path("out.csv").open(newline="") as file:
        notes = {column: why for row, column, _, why in [*csv.reader(file)][1:] if not row}
    assert set(notes) == {"cuip", "seat, window"}
    assert notes["cuip"].startswith("has 20 different texts in 80 rows; if each names a person or a thing")
    counted, _, rule = notes["seat, window"].partition("; if that is so in any such table, declare ")
    assert counted == "missing together in 20 of 20 rows"
    assert rule == "{implies: {when: {flies: never}, then: {seat: missing, window: missing}}}"
    text = Path("s.yaml").read_text().replace("values: undeclared", "values: [a, b]")
    Schema.parse(f"{text}constraints:\n- {rule}\n")  # pasted, it is taken
    monkeypatch.setattr("doublure.cli.schema.interactive", lambda: True)
    run_guarded(app, words)
    shown = capsys.readouterr().out
    assert shown.index("# PRIVATE") < shown.index("20 different texts") < shown.index("missing together in 20 of 20")


METERS = """
doublure: 1
kind: series
unit: {name: day, id: null}
units: 20
series: {source: meter, time: when, length: 4, step: 6h}
channels: {litres: {type: real, bounds: [0, 99], missing: true}}
"""


def test_a_source_of_series_is_asked_for_too() -> None:
    """A household whose year is in the data has 365 days of them."""
    with pytest.raises(SchemaError, match=r"^unit\.id: is left open, and meter is an id"):
        planned(METERS)
    for answer in ("{name: day, id: none}", "{name: meter, id: meter, max_records: 9}"):
        schema = Schema.parse(METERS.replace("{name: day, id: null}", answer))
        assert schema.undeclared == schema.assumed == ()
    assert Schema.parse(METERS.replace("source: meter, ", "")).assumed == ("no day has more than one series",)
    pictures = "{doublure: 1, kind: images, units: 9, images: {shape: [4, 4, 1]}}"
    assert Schema.parse(pictures).assumed == ()
