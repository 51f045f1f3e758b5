"""Names, addresses, ids of a pattern, lookups and constants: made anew, for a unit, at a seed, never from data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planting import plant

import doublure as db
from doublure.data.tables.opening import open_table
from doublure.data.tables.source import TableSource
from doublure.drafting import repeats
from doublure.drafting.misfits import misfits
from doublure.drafting.repeats import repeated_ids
from doublure.errors import InputError, MissingExtra, SchemaError, SettingError
from doublure.schema.columns import fake_cells
from doublure.schema.columns.made_rows import MadeRows
from doublure.support import extras

pytest.importorskip("faker", reason="Faker is not installed: pip install 'doublure[fake]'")

N = 300
HEAD = "doublure: 1\nkind: table\nunit: {name: record, id: none}\nunits: 300\ndefaults: {missing: false}\ncolumns:\n"
OWN = """
  nr: {type: id, pattern: "MRN-{5 digits}", order: random}
  name: {type: fake, as: person_name, locale: de_DE}
  first: {type: fake, as: first_name, locale: de_DE}
  last: {type: fake, as: last_name, locale: de_DE}
  mail: {type: fake, as: email, locale: de_DE}
  doctor: {type: fake, as: last_name, locale: de_DE, who: doctor}
  iban: {type: fake, as: iban, locale: de_DE}
  card: {type: fake, as: pattern, pattern: "{2 letters}-{4 digits}"}
  town: {type: public, from: {"10115": Berlin, "80331": München}, by: zip}
  plan: {type: public, from: [basic, gold]}
  note: {type: constant}
  site: {type: constant, value: MAIN}
"""
LEARNED = '  age: {type: integer, bounds: [0, 99]}\n  zip: {type: category, values: ["10115", "80331", "99999"]}\n'
SCHEMA = db.Schema.parse(HEAD + OWN + LEARNED)
MADE = [name for name, column in SCHEMA.columns.items() if not column.modelled]


class Bomb:
    """A cell that nothing can be done with."""

    def _fail(self, *given: Any) -> Any:
        raise RuntimeError("a private cell was looked at")

    __str__ = __repr__ = __hash__ = __eq__ = __float__ = __len__ = __iter__ = __bool__ = _fail  # type: ignore[assignment]


def private(cell: object = "Anna Real") -> pd.DataFrame:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame({name: pd.Series([cell] * N, dtype=object) for name in SCHEMA.columns})
    return frame.assign(age=draw.integers(0, 99, N), zip=draw.choice(["10115", "80331", "99999"], N))


@pytest.fixture(scope="module")
def syn(tmp_path_factory: pytest.TempPathFactory) -> db.Synthesizer:
    folder = tmp_path_factory.mktemp("made")
    plan = db.plan(SCHEMA, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(folder / "l", dataset="people", epsilon=1.0, delta=1e-6)
    return db.fit(private(Bomb()), plan, ledger=ledger, out=folder / "run", seed=1, progress=False)


@pytest.fixture(scope="module")
def rows(syn: db.Synthesizer) -> pd.DataFrame:
    found: pd.DataFrame = syn.sample(N, seed=5)
    return found


# -- privacy -----------------------------------------------------------------------------------------------------------


def test_private_cells_are_never_looked_at(syn: db.Synthesizer) -> None:
    assert syn.sample(3, seed=1)["name"].notna().all()  # the fit has passed over cells that nothing can be done with
    loaded = [open_table(private(cell)).load(SCHEMA).frame for cell in (Bomb(), None, "x", 7, b"\xff\0")]
    assert all(frame.equals(loaded[0]) for frame in loaded)
    assert list(loaded[0]) == ["age", "zip"]


def test_a_check_of_values_passes_over_them() -> None:
    text = HEAD + LEARNED + '  patient: {type: fake, as: pattern, pattern: "P{3 digits}"}\n  email: {type: constant}\n'
    schema = db.Schema.parse(text)
    frame = private(Bomb()).assign(patient=[Bomb()] * N, email=[Bomb()] * N)
    same = private("q").assign(patient="q", email="q")
    assert repeated_ids(schema, frame) == repeated_ids(schema, same) == []
    assert [*misfits(schema, frame)] == []
    with pytest.MonkeyPatch.context() as patch:
        plant(patch, repeats, "repeated_ids", ("column.modelled", "True"))
        assert repeats.repeated_ids(schema, same) != []


def test_one_cell_changes_no_other_record(tmp_path: Path) -> None:
    frame = private()
    frame.loc[7, "name"] = 'O"\\0\ufeff;,=cmd()'
    for write, name in ((frame.to_csv, "a.csv"), (frame.to_parquet, "a.parquet")):
        write(tmp_path / name, index=False)
        assert open_table(tmp_path / name).load(SCHEMA).frame.equals(open_table(private()).load(SCHEMA).frame)


def test_a_fit_that_would_read_them_ends() -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch, TableSource, "load", ("column.modelled", "True"))
        with pytest.raises((InputError, RuntimeError)):
            open_table(private(Bomb())).load(SCHEMA)


def test_nothing_of_the_data_is_in_a_sample(syn: db.Synthesizer) -> None:
    said = syn.sample(2_000, seed=3)[MADE].astype(str)
    assert not said.isin(["Anna Real"]).any(axis=None)
    assert syn.plan.touches == db.plan(SCHEMA, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp").touches
    without = db.Schema.parse(HEAD + LEARNED)
    bare = db.plan(without, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp")
    assert [each.event for each in bare.touches] == [each.event for each in syn.plan.touches]  # no ε, no noise more


# -- what a sample holds -----------------------------------------------------------------------------------------------


def test_a_person_has_one_name_and_a_mail_address_of_it(rows: pd.DataFrame) -> None:
    assert (rows["first"] + " " + rows["last"] == rows["name"]).all()
    plain = rows["last"].str.lower().replace({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}, regex=True)
    assert [mail.split("@")[0].split(".")[1].strip("0123456789") for mail in rows["mail"]] == [
        re.sub("[^a-z]", "", name) for name in plain
    ]
    assert rows["mail"].is_unique
    assert rows["mail"].str.fullmatch(r"[a-z.]+[0-9]+@example\.(com|net|org)").all()
    assert (rows["doctor"] == rows["last"]).mean() < 0.1
    assert rows["name"].nunique() > 0.9 * N


def test_ids_of_a_pattern_are_unique_and_out_of_order(rows: pd.DataFrame) -> None:
    assert rows["nr"].str.fullmatch(r"MRN-[0-9]{5}").all()
    assert rows["nr"].is_unique
    assert not rows["nr"].is_monotonic_increasing


def test_an_iban_is_wrong_by_any_rule() -> None:
    column = db.Schema.parse(HEAD + LEARNED + "  i: {type: fake, as: iban, locale: de_DE}\n").columns["i"]
    for iban in made(column, 5_000):
        assert re.fullmatch(r"DE0[01][0-9]{18}", iban)
        assert int("".join(str(int(mark, 36)) for mark in iban[4:] + iban[:4])) % 97 != 1


@pytest.mark.parametrize(
    ("locale", "form"),
    [
        ("en_US", r"(\(2\d\d\) |2\d\d-)555-01\d\d"),
        ("en_GB", r"07700 900\d{3}|020 7946 0\d{3}|01632 960\d{3}"),
        ("de_DE", r"(030 23125|069 90009|040 66969|0221 4710|089 99998)\d{3}"),
        ("fr_FR", r"(01 99 00|02 61 91|03 53 01|04 65 71|05 36 49|06 39 98) \d\d \d\d"),
        ("it_IT", r"\+999 \d{3} \d{3} \d{3}"),
    ],
)
def test_telephone_numbers_reach_no_person(locale: str, form: str) -> None:
    column = db.Schema.parse(f"{HEAD}{LEARNED}  p: {{type: fake, as: phone, locale: {locale}}}\n").columns["p"]
    found = made(column, 500)
    assert all(re.fullmatch(form, number) for number in found)
    assert len(set(found)) > 300


@pytest.mark.parametrize(
    ("locale", "between", "order"), [("ja_JP", " ", -1), ("zh_CN", "", -1), ("en_GB", " ", 1), ("hu_HU", " ", -1)]
)
def test_full_names_are_in_the_order_of_their_language(locale: str, between: str, order: int) -> None:
    text = "  n: {{type: fake, as: {}, locale: {}}}\n"
    full, first, last = (
        made(db.Schema.parse(HEAD + LEARNED + text.format(part, locale)).columns["n"], 50)
        for part in ("person_name", "first_name", "last_name")
    )
    assert full == [between.join(pair[::order]) for pair in zip(first, last, strict=True)]


@pytest.mark.parametrize("subject", ["street", "city", "company"])
def test_other_parts_stand_on_one_line(subject: str) -> None:
    column = db.Schema.parse(f"{HEAD}{LEARNED}  p: {{type: fake, as: {subject}, locale: en_GB}}\n").columns["p"]
    found = made(column, 300)
    assert len(set(found)) > 100
    assert not any("\n" in text or not text for text in found)


def test_public_cells_follow_their_key_and_constants_stay(rows: pd.DataFrame) -> None:
    towns = rows["zip"].astype(object).map({"10115": "Berlin", "80331": "München"})
    assert rows["town"].fillna("").tolist() == towns.fillna("").tolist()
    assert rows["town"].isna().any()
    assert set(rows["plan"]) == {"basic", "gold"}
    assert rows["note"].isna().all()
    assert (rows["site"] == "MAIN").all()


def test_a_key_of_numbers_is_found_by_its_number() -> None:
    text = "  t: {type: public, from: {1: one, 2.0: two, 77: far}, by: n}\n  n: {type: integer, bounds: [0, 3]}\n"
    schema = db.Schema.parse(HEAD + text)
    cells = pd.DataFrame({"n": [2, 1, 0]})
    assert made(schema.columns["t"], 3, cells=cells, columns=schema.columns)[:2] == ["two", "one"]


def test_seeds_decide_and_chunks_do_not(syn: db.Synthesizer, rows: pd.DataFrame) -> None:
    assert syn.sample(N, seed=5).equals(rows)
    other = syn.sample(N, seed=6)
    assert (other["name"] == rows["name"]).mean() < 0.05
    assert (other["nr"] == rows["nr"]).all()  # ids number rows, as 1, 2, 3 would
    chunks = list(syn.sample_chunks(N, seed=5, chunk_rows=100))
    assert pd.concat(chunks, ignore_index=True)[MADE[:8]].equals(rows[MADE[:8]])
    assert next(syn.sample_chunks(N, seed=5, chunk_rows=100, first=2)).equals(chunks[2])
    asked = syn.sample(20, seed=5, given={"age": (30, 40)})
    assert asked["name"].tolist() == rows["name"][:20].tolist()  # names hang on no other column


def test_a_library_of_another_draw_makes_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    column = SCHEMA.columns["first"]
    monkeypatch.setattr(fake_cells, "_drawn", lambda locale, part: np.array([part], dtype=object))
    assert set(made(column, 40)) == {"first_name_female", "first_name_male"}


def test_related_tables_name_one_person_in_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schema = db.Schema.parse("""
doublure: 1
kind: relational
unit: {name: patient}
units: 40
tables:
  patients:
    key: nr
    columns:
      nr: {type: id, pattern: "P{3 digits}", order: random}
      name: {type: fake, as: person_name}
      sex: {type: category, values: [f, m], missing: false}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 3
    columns:
      nr: {type: id}
      patient: {type: fake, as: person_name}
      nurse: {type: fake, as: person_name, per: row}
      ward: {type: category, values: [a, b], missing: false}
""")
    patients = pd.DataFrame({"nr": [f"x{n}" for n in range(40)], "sex": ["f", "m"] * 20})
    stays = pd.DataFrame({"nr": [f"x{n // 2}" for n in range(80)], "ward": ["a", "b"] * 40})
    tables = {"patients": patients, "stays": stays}  # without the columns that are made
    plan = db.plan(schema, epsilon=5.0, delta=1e-4, accountant="rdp")
    ledger = db.Ledger.create("related.ledger", dataset="patients", epsilon=5.0, delta=1e-4)
    syn = db.fit(tables, plan, ledger=ledger, out="related", seed=1, progress=False)
    found = syn.sample(60, seed=2)
    names = found["patients"].set_index("nr")["name"]
    assert found["patients"]["nr"].str.fullmatch(r"P\d{3}").all()
    assert found["stays"]["patient"].tolist() == names[found["stays"]["nr"]].tolist()
    assert found["stays"]["nurse"].nunique() > found["stays"]["patient"].nunique()
    assert (syn.sample(60, seed=3)["patients"]["name"] != found["patients"]["name"]).mean() > 0.9
    db.release(syn, "bundle", n=60, seed=2, progress=False)
    assert db.verify("bundle")["files"]
    assert pd.read_csv("bundle/stays.csv")["patient"].tolist() == found["stays"]["patient"].tolist()
    path = Path("bundle/stays.csv")
    path.write_text(path.read_text().replace(str(found["stays"]["nr"][0]), "P999", 1))
    with pytest.raises(db.errors.GateFailed):
        db.verify("bundle")


VISITS = """
doublure: 1
kind: table
unit: {name: patient, id: MRN, per_unit: [name, zip], max_records: 3, order: day}
units: 60
defaults: {missing: false}
columns:
  day: {type: integer, bounds: [0, 365]}
  MRN: {type: id, pattern: "MRN-{4 digits}", order: random}
  name: {type: fake, as: person_name, locale: de_DE}
  mail: {type: fake, as: email, locale: de_DE}
  nurse: {type: fake, as: last_name, locale: de_DE, per: row}
  case: {type: id, pattern: "C{5 digits}"}
  zip: {type: category, values: ["10115", "80331"]}
  town: {type: public, from: {"10115": Berlin, "80331": München}, by: zip}
  ward: {type: category, values: [a, b]}
  floor: {type: public, from: {a: "1", b: "2"}, by: ward}
  site: {type: constant, value: MAIN}
"""


def test_visits_of_a_person_have_one_name_and_one_id(tmp_path: Path) -> None:
    schema, draw = db.Schema.parse(VISITS), np.random.default_rng(2)
    who = np.repeat(np.arange(60), 1 + np.arange(60) % 3)
    frame = pd.DataFrame({name: pd.Series([Bomb()] * len(who), dtype=object) for name in schema.columns}).assign(
        MRN=[f"x{nr}" for nr in who],
        day=draw.integers(0, 365, len(who)),
        zip=np.where(who % 2, "10115", "80331"),
        ward=draw.choice(["a", "b"], len(who)),
    )
    plan = db.plan(schema, epsilon=8.0, delta=1e-4, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "l", dataset="visits", epsilon=8.0, delta=1e-4)
    syn = db.fit(frame, plan, ledger=ledger, out=tmp_path / "run", seed=1, progress=False)
    rows = syn.sample(200, seed=5)
    assert list(rows) == list(schema.columns)
    people = rows.groupby("MRN", sort=False)
    assert people.size().max() > 1
    assert rows["MRN"].str.fullmatch(r"MRN-\d{4}").all()
    assert people[["name", "mail", "town", "zip"]].nunique().to_numpy().max() == 1
    assert people["name"].first().nunique() > 0.9 * len(people)
    assert people["nurse"].nunique().max() > 1
    assert rows["case"].tolist() == [f"C{nr:05}" for nr in range(1, 201)]
    assert (rows["town"] == rows["zip"].astype(str).map({"10115": "Berlin", "80331": "München"})).all()
    assert (rows["floor"] == rows["ward"].astype(str).map({"a": "1", "b": "2"})).all()
    assert pd.concat([*syn.sample_chunks(200, seed=5, chunk_rows=50)])["case"].is_unique
    db.release(syn, tmp_path / "bundle", n=200, seed=5, progress=False)
    assert db.verify(tmp_path / "bundle")["files"]
    path = tmp_path / "bundle" / "data.csv"
    second = rows["MRN"].drop_duplicates().iloc[1]
    path.write_text(path.read_text(encoding="utf-8").replace(second, "MRN-9999", 1), encoding="utf-8")
    with pytest.raises(db.errors.GateFailed):
        db.verify(tmp_path / "bundle")


def test_a_lookup_of_a_person_goes_by_what_stays_the_same() -> None:
    with pytest.raises(SchemaError, match="floor, which follows ward of single rows; take it out"):
        db.Schema.parse(VISITS.replace("[name, zip]", "[name, zip, floor]"))


# -- plan, dictionary, card --------------------------------------------------------------------------------------------


def test_plan_dictionary_and_card_say_where_cells_come_from(syn: db.Synthesizer, tmp_path: Path) -> None:
    words = "made up by the library Faker (de_DE); tells nothing about anybody"
    assert f"Costs nothing: name, first, last, mail, doctor, iban: {words}" in syn.plan.explain()
    assert f"Costs nothing: name, first, last, mail, doctor, iban: {words}" in syn.plan._repr_html_()
    bundle = db.release(syn, tmp_path / "bundle", n=250, seed=1, spreadsheet_safe=True, progress=False)
    assert db.verify(tmp_path / "bundle")["files"]
    entries = json.loads((tmp_path / "bundle" / "dictionary.json").read_text(encoding="utf-8"))["columns"]
    said = {entry["name"]: entry.get("origin") for entry in entries}
    assert said["name"] == words
    assert said["age"] is None
    assert said["card"] == "made up from a public pattern; tells nothing about anybody"
    assert any(words in limit for limit in json.loads((bundle.path / "card.json").read_text())["limits"])
    page = (tmp_path / "bundle" / "card.html").read_text(encoding="utf-8")
    assert words in page
    assert "numbered anew, as MRN-{5 digits}" in page
    assert "MRN-" in page.replace("MRN-{", "")  # the first rows


def test_a_changed_id_is_found(syn: db.Synthesizer, tmp_path: Path) -> None:
    bundle = db.release(syn, tmp_path / "bundle", n=50, seed=1, formats="csv", progress=False)
    data = bundle.path / "data.csv"
    lines = data.read_text(encoding="utf-8").splitlines()
    lines[1], lines[2] = (
        ",".join([lines[2].split(",")[0], *lines[1].split(",")[1:]]),
        ",".join([lines[1].split(",")[0], *lines[2].split(",")[1:]]),
    )
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(db.errors.GateFailed):
        db.verify(bundle.path)


@pytest.mark.filterwarnings("ignore::doublure.errors.DataWarning")
def test_a_report_passes_over_them(syn: db.Synthesizer) -> None:
    real = private(Bomb())
    assert "overall" in db.evaluate.report(syn, real[:200], real[200:]).scores.index


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_without_the_library_a_plan_is_refused_and_so_is_a_fit(
    syn: db.Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'doublure\[fake\]'") as caught:
        db.plan(SCHEMA, epsilon=1.0, delta=1e-6)
    assert caught.value.field == "name"
    ledger = db.Ledger.create(tmp_path / "l", dataset="people", epsilon=1.0, delta=1e-6)
    with pytest.raises(MissingExtra):
        db.fit(private(), syn.plan, ledger=ledger, out=tmp_path / "run", progress=False)
    assert ledger.spent.epsilon == 0
    with pytest.raises(MissingExtra):
        syn.sample(3)
    numbers = db.Schema.parse(HEAD + LEARNED + '  p: {type: fake, as: phone}\n  q: {type: id, pattern: "{6 hex}"}\n')
    assert db.plan(numbers, epsilon=1.0, delta=1e-6)  # which need no library


def test_a_locale_and_a_pattern_are_checked_by_the_plan() -> None:
    with pytest.raises(SettingError, match="did you mean de_DE") as caught:
        db.plan(db.Schema.parse(HEAD + LEARNED + "  a: {type: fake, as: city, locale: de_DD}\n"), epsilon=1, delta=1e-6)
    assert caught.value.field == "a.locale"
    short = db.Schema.parse(HEAD + LEARNED + '  a: {type: id, pattern: "P{2 digits}"}\n')
    with pytest.raises(SettingError, match="room for 99 ids, not for 300 rows"):
        db.plan(short, epsilon=1, delta=1e-6)


def test_more_rows_than_a_pattern_has_texts_are_refused() -> None:
    column = db.Schema.parse(HEAD + LEARNED + '  a: {type: id, pattern: "P{2 digits}"}\n').columns["a"]
    assert made(column, 99)[-1] == "P99"
    with pytest.raises(SettingError, match="more digits or letters"):
        made(column, 100)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("{type: text}", "free text is never made: leave the column out, or write {type: constant}"),
        ("{type: email}", "write {type: fake, as: NAME}"),
        ("{type: fake}", "as: is not there; write person_name"),
        ("{type: fake, as: nickname}", "must be person_name, first_name"),
        ("{type: fake, as: pattern}", "pattern goes with as: pattern"),
        ('{type: fake, as: city, pattern: "{2 hex}"}', "pattern goes with as: pattern"),
        ("{type: fake, as: city, locale: german}", "must be a locale of Faker"),
        ("{type: fake, as: city, roles: [target]}", "never learned"),
        ("{type: fake, as: city, missing: true}", "never learned"),
        ("{type: fake, as: city, per: table}", "must be unit or row"),
        ("{type: public, from: [a], by: age}", "from is a list without by"),
        ("{type: public, from: {a: b}}", "from is a list without by"),
        ("{type: public, from: {a: b}, by: other}", "no column that is drawn"),
        ("{type: public, from: {a: b}, by: x}", "no column that is drawn"),
        ("{type: public, from: []}", "must be a CSV file"),
        ("{type: constant, value: [a]}", "must be a text, a number"),
    ],
)
def test_faulty_descriptions_are_refused_with_the_remedy(column: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        db.Schema.parse(f"{HEAD}{LEARNED}  x: {column}\n")
    assert words in str(caught.value)


def test_a_made_column_is_no_unit_no_rule_and_no_condition(syn: db.Synthesizer) -> None:
    with pytest.raises(SchemaError, match="type: id"):
        db.Schema.parse(HEAD.replace("{name: record, id: none}", "{id: a}") + LEARNED + "  a: {type: fake, as: city}\n")
    with pytest.raises(SchemaError, match="not modelled"):
        db.Schema.parse(HEAD + LEARNED + "  a: {type: constant}\nconstraints: [{equal: [zip, a]}]\n")
    with pytest.raises(SettingError, match="is a made-up column, which is made anew"):
        syn.sample(3, given={"name": "Anna"})
    with pytest.raises(SchemaError, match="only ids or others that are not learned"):
        db.Schema.parse(HEAD + "  a: {type: constant}\n")


def test_a_lookup_is_read_from_a_file_beside_the_schema(tmp_path: Path) -> None:
    text = HEAD + LEARNED + "  town: {type: public, from: zips.csv, by: zip}\n"
    text += "  word: {type: public, from: zips.csv}\n"
    (tmp_path / "s.yaml").write_text(text)
    (tmp_path / "zips.csv").write_text(
        "town,zip,word\nBerlin,10115,a\nMünchen,80331,b\nBerlin,10115,c\n", encoding="utf-8"
    )
    schema = db.Schema.load(tmp_path / "s.yaml")
    plain = schema.to_plain()["columns"]
    assert plain["town"] == {"type": "public", "from": {"10115": "Berlin", "80331": "München"}, "by": "zip"}
    assert plain["word"] == {"type": "public", "from": ["a", "b", "c"]}
    assert db.Schema.parse(schema.to_yaml()).sha256 == schema.sha256
    (tmp_path / "zips.csv").write_text("town,zip,word\nBerlin,10115,a\nBonn,10115,b\n")
    with pytest.raises(SchemaError, match="two values for one zip"):
        db.Schema.load(tmp_path / "s.yaml")
    (tmp_path / "zips.csv").write_text("town,plz,word\nBerlin,10115,a\n")
    with pytest.raises(SchemaError, match="without one column zip"):
        db.Schema.load(tmp_path / "s.yaml")


def made(column: Any, rows: int, **more: Any) -> list[str]:
    """Return made cells of the first rows."""
    from doublure.schema.columns.made_rows import MadeRows

    numbers = np.arange(1, rows + 1)
    given = {"cells": pd.DataFrame(), "columns": {}} | more
    return list(column.made(MadeRows(seed=4, numbers=numbers, units=numbers, **given), "a"))


SEXED = """
  sex: {type: category, values: [1, 2, 9], missing: false}
  name: {type: fake, as: person_name, locale: de_DE, sex: sex, form: "{last}, {first}"}
  first: {type: fake, as: first_name, locale: de_DE, sex: sex}
  mail: {type: fake, as: email, locale: de_DE, sex: {by: sex, female: [2], male: [1]}}
"""


def test_names_follow_sex_and_have_the_form_that_is_declared():
    schema = db.Schema.parse(f"doublure: 1\nkind: table\nunits: 100\ncolumns:{SEXED}")
    sex = np.random.default_rng(1).choice(["1", "2", "9"], 600)
    cells = pd.DataFrame({"sex": pd.Categorical(sex, ["1", "2", "9"])})
    numbers = np.arange(1, 601)
    rows = MadeRows(seed=1, numbers=numbers, units=numbers, cells=cells, columns=schema.columns)
    made = {name: schema.columns[name].made(rows, name) for name in ("name", "first", "mail")}
    women, men = ({*fake_cells._drawn("de_DE", f"first_name_{one}")} for one in ("female", "male"))
    assert {*made["first"][sex == "2"]} <= women
    assert {*made["first"][sex == "1"]} <= men
    unknown = made["first"][sex == "9"]
    assert 0.3 < unknown.isin(women).mean() < 0.7
    parts = made["name"].str.split(", ", expand=True)
    assert (parts[1] == made["first"]).all()  # one person in all her columns
    begins = made["first"].map(fake_cells._ascii)
    assert all(mail.startswith(f"{first}.") for mail, first in zip(made["mail"], begins, strict=True))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n: {type: fake, as: city, sex: s}", "sex goes with as: person_name"),
        ("n: {type: fake, as: email, sex: t}", "no column that is drawn; name the table's column of sex"),
        ("n: {type: fake, as: email, sex: k}", "no value is known as a sex; write sex: {by: k, female: "),
        ('n: {type: fake, as: person_name, form: "{last}"}', 'write one such as "{last}, {first}"'),
        ('n: {type: fake, as: email, form: "{last} {first}"}', "form goes with as: person_name"),
        ('n: {type: fake, as: person_name, form: "{last} {first.__class__}"}', "form goes with as: person_name"),
    ],
)
def test_what_names_cannot_follow_is_refused(text, said):
    columns = f"  s: {{type: category, values: [m, f]}}\n  k: {{type: category, values: [x, y]}}\n  {text}\n"
    with pytest.raises(db.errors.SchemaError) as caught:
        db.Schema.parse(f"doublure: 1\nkind: table\nunits: 100\ncolumns:\n{columns}")
    assert said in str(caught.value)


def test_a_schema_without_sex_and_form_is_written_as_before():
    column = "  n: {type: fake, as: person_name}\n"
    assert "sex" not in db.Schema.parse(HEAD + LEARNED + column).to_yaml().partition("n:")[2]
