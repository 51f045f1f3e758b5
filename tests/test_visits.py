"""A hospital's visits in one table: patients come back, and come out as patients who come back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import quick_estimates

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.relational.visits import VisitRows, open_visits
from doublure.drafting.check import check
from doublure.errors import GateFailed, InputError, SchemaError, SettingError
from doublure.methods.statistics.relational.given import GivenRows
from doublure.methods.statistics.relational.stages import list_stages
from doublure.methods.statistics.tables import work
from doublure.methods.statistics.tables.plan import ROUND, SCORES
from doublure.private.queries.axes import Axis
from doublure.releasing import writing
from doublure.releasing.generator import publish
from doublure.releasing.writing import WorkerProcesses, write_sample
from doublure.schema import Schema, kinds
from doublure.schema.visits import PEOPLE, RECORDS

PATIENTS, MOST = 600, 4
SCHEMA = f"""
doublure: 1
kind: table
unit: {{name: patient, id: MRN, max_records: {MOST}, per_unit: [dob, sex, zip], order: admitted}}
units: {PATIENTS}
columns:
  MRN: {{type: id}}
  case: {{type: id}}
  dob: {{type: date, bounds: [1925-01-01, 2023-12-31], missing: true}}
  icd10: {{type: category, values: [A01, C50, I21, O80], missing: false, roles: [target]}}
  sex: {{type: category, values: [1, 2], missing: false, roles: [condition]}}
  admitted: {{type: date, bounds: [2022-01-01, 2023-12-31], missing: false}}
  discharged: {{type: date, bounds: [2022-01-01, 2024-06-30], missing: true}}
  zip: {{type: category, values: ["01000", "02000"], missing: [unknown]}}
  icu: {{type: boolean, missing: false}}
constraints:
  - {{at_most: [dob, admitted, discharged]}}
  - {{implies: {{when: {{icd10: O80}}, then: {{icu: false}}}}}}
"""
FLAT = SCHEMA.replace(", per_unit: [dob, sex, zip], order: admitted", "")


def hospital(patients: int = PATIENTS, seed: int = 0) -> pd.DataFrame:
    """Return visits: women alone give birth, who came with cancer comes back with it, some cells differ or lack."""
    draw = np.random.default_rng(seed)
    many = np.minimum(1 + draw.poisson(1.0, patients), 9)
    who = np.repeat(np.arange(patients), many)
    n = len(who)
    sex = draw.choice([1, 2], patients)
    born = np.datetime64("1930-01-01") + draw.integers(0, 30_000, patients)
    main = np.where((sex == 2) & (draw.random(patients) < 0.4), "O80", draw.choice(["A01", "C50", "I21"], patients))
    admitted = np.datetime64("2022-01-01") + draw.integers(0, 700, n)
    code = np.where(draw.random(n) < 0.8, main[who], "A01")
    made = pd.DataFrame(
        {
            "MRN": [f"M{100_000 + nr}" for nr in who],
            "case": np.arange(n) + 5_000,
            "dob": born[who].astype(str),
            "icd10": code,
            "sex": sex[who],
            "admitted": admitted.astype(str),
            "discharged": (admitted + draw.integers(0, 40, n)).astype(str),
            "zip": np.where(who % 3 == 0, "02000", "01000"),
            "icu": np.where((code != "O80") & (draw.random(n) < 0.2), "Y", "N"),
        }
    )
    made.loc[draw.random(n) < 0.02, "zip"] = "unknown"
    made.loc[draw.random(n) < 0.01, "dob"] = "1925-01-01"
    made.loc[draw.random(n) < 0.02, "discharged"] = ""
    return made.iloc[draw.permutation(n)].reset_index(drop=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[db.Synthesizer, db.Ledger, Path]:
    folder = tmp_path_factory.mktemp("hospital")
    hospital().to_csv(folder / "visits.csv", index=False)
    plan = db.plan(Schema.parse(SCHEMA), epsilon=20.0, delta=1e-4, accountant="rdp", components=8, fit_steps=60)
    ledger = db.Ledger.create(folder / "ledger", dataset="hospital", epsilon=100, delta=0.1)
    return db.fit(folder / "visits.csv", plan, ledger=ledger, out=folder / "run", seed=1), ledger, folder


def repeats(rows: pd.DataFrame) -> pd.Series:
    return rows.groupby("MRN").size()


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_patients_come_back_as_the_real_ones_do(world: tuple[db.Synthesizer, db.Ledger, Path]) -> None:
    rows, real = world[0].sample(2000, seed=5), hospital()
    assert list(rows.columns) == list(real.columns)
    assert len(rows) == 2000
    used = real.groupby("MRN").head(MOST)
    many, wanted = repeats(rows), repeats(used)
    assert many.max() <= MOST
    assert abs(many.mean() - wanted.mean()) < 0.15
    for visits in range(1, MOST + 1):
        assert abs((many == visits).mean() - (wanted == visits).mean()) < 0.08
    assert rows["case"].tolist() == [*range(1, 2001)]
    first = rows.drop_duplicates("MRN")
    assert first["MRN"].tolist() == (first.index + 1).tolist()  # the number of a patient's first row
    for name in ("dob", "sex", "zip"):
        assert rows.groupby("MRN")[name].nunique(dropna=False).max() == 1
    in_turn = rows.groupby("MRN")["admitted"].apply(lambda days: days.is_monotonic_increasing)
    assert in_turn.all()


def test_rules_hold_within_a_visit_and_between_it_and_its_patient(
    world: tuple[db.Synthesizer, db.Ledger, Path],
) -> None:
    rows = world[0].sample(2000, seed=6)
    known = rows.dropna()
    assert (known["dob"] <= known["admitted"]).all()
    assert (known["admitted"] <= known["discharged"]).all()
    assert not (rows["icu"] & (rows["icd10"] == "O80")).any()
    assert (rows["sex"][rows["icd10"] == "O80"].astype(str) == "2").mean() > 0.8
    again = rows["MRN"].duplicated()
    before = rows["icd10"].shift()[again] == "C50"
    after = rows["icd10"][again] == "C50"
    assert after[before].mean() > 2 * after[~before].mean()  # cancer comes back


def test_a_birth_is_no_later_than_a_moment_of_admission(tmp_path: Path) -> None:
    text = SCHEMA.replace(
        "admitted: {type: date, bounds: [2022-01-01, 2023-12-31]",
        "admitted: {type: datetime, bounds: [2022-01-01, 2023-12-31]",
    )
    text = text.replace("discharged: {type: date", "discharged: {type: datetime")
    data = hospital()
    data["dob"] = data["dob"].where(data["dob"].isna(), np.datetime64("2023-06-01"))  # so that it binds
    book = db.Ledger.create(tmp_path / "ledger", dataset="visits", epsilon=9.0, delta=1e-3)
    plan = db.plan(Schema.parse(text), epsilon=3.0, delta=1e-5, accountant="rdp", fit_steps=20, components=4)
    rows = db.fit(data, plan, ledger=book, progress=False).sample(600, seed=1)
    known = rows.dropna()
    assert len(known) > 50
    assert (known["dob"].dt.normalize() <= known["admitted"]).all()
    assert (known["dob"] > "2023-01-01").mean() > 0.5
    assert (known["admitted"] <= known["discharged"]).all()
    assert rows.groupby("MRN")["admitted"].apply(lambda days: days.is_monotonic_increasing).all()


def test_a_missing_cell_of_any_kind_gives_way_to_a_later_one() -> None:
    schema = db.Schema.parse(
        "doublure: 1\nkind: table\nunit: {name: patient, id: nr, per_unit: [sex], max_records: 3}\nunits: 9\n"
        "columns:\n  nr: {type: id}\n  sex: {type: category, values: [f, m], missing: ['?', '-']}\n"
        "  day: {type: integer, bounds: [0, 9], missing: false}\n"
    )
    rows = pd.DataFrame({"nr": [1, 1, 1, 2, 2], "sex": ["-", "?", "m", "-", "?"], "day": [1, 2, 3, 4, 5]})
    people = open_visits(rows).load(schema).content.frames[PEOPLE]
    assert people["sex"].tolist() == ["m", "-"]


def test_n_counts_rows_of_whole_patients(world: tuple[db.Synthesizer, db.Ledger, Path]) -> None:
    syn = world[0]
    whole = repeats(syn.sample(1000, seed=1)).value_counts(normalize=True)
    for n in (0, 1, 2, 5):
        assert len(syn.sample(n, seed=n)) == n
    few = pd.concat(
        [syn.sample(7, seed=seed).assign(MRN=lambda rows, s=seed: rows["MRN"] + 100 * s) for seed in range(20)]
    )
    seen = repeats(few).value_counts(normalize=True)
    assert abs(seen[1] - whole[1]) < 0.2


def test_without_n_there_are_as_many_rows_as_the_patients_have(world: tuple[db.Synthesizer, db.Ledger, Path]) -> None:
    syn = world[0]
    used = hospital().groupby("MRN").head(MOST)
    assert abs(syn.default_n / len(used) - 1) < 0.08
    assert len(syn.sample(seed=1)) == syn.default_n


def test_patients_are_drawn_by_what_stays_the_same_within_one(world: tuple[db.Synthesizer, db.Ledger, Path]) -> None:
    syn = world[0]
    women = syn.sample(300, given={"sex": 2}, seed=1)
    assert (len(women), set(women["sex"].astype(str))) == (300, {"2"})
    old = syn.sample(60, given={"dob": (None, "1950-01-01"), "sex": 1}, seed=2)
    assert len(old) == 60
    assert (old["dob"] <= pd.Timestamp("1950-01-01")).all()
    assert repeats(old).max() > 1
    both = syn.sample(200, given={"sex": {1: 0.25, 2: 0.75}}, seed=3)
    assert (len(both), (both["sex"].astype(str) == "1").sum()) == (200, 50)
    assert both.groupby("MRN")["sex"].nunique().max() == 1
    with pytest.raises(SettingError, match="icd10: is no column that a patient is drawn by; ask for dob, sex, zip"):
        syn.sample(5, given={"icd10": "C50"})


def test_parts_are_the_same_rows_however_many_processes_draw_them(
    world: tuple[db.Synthesizer, db.Ledger, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syn = world[0]
    small = kinds.KINDS["visits"].__class__(**{**vars(kinds.KINDS["visits"]), "chunk": 10})
    monkeypatch.setitem(kinds.KINDS.unlisted, "visits", small)
    monkeypatch.setattr(writing, "PART_CHUNKS", 2)
    write_sample(syn, tmp_path / "one", 25, seed=3)
    write_sample(syn, tmp_path / "all.parquet", 25, seed=3)
    parts = [pd.read_parquet(path) for path in sorted((tmp_path / "one").iterdir())]
    assert [len(part) for part in parts] == [20, 5]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), pd.read_parquet(tmp_path / "all.parquet"))
    monkeypatch.undo()
    with pytest.raises(SettingError, match="need the run"):
        write_sample(syn, tmp_path / "two", 450, seed=3, others=WorkerProcesses(processes=2))


@pytest.mark.parametrize("rows", range(9))
def test_whole_units_fill_the_rows_that_are_asked_for(rows: int) -> None:
    related = Schema.parse(SCHEMA).related  # type: ignore[attr-defined]
    many = np.array([3, 3, 1, 2])
    frames = {PEOPLE: pd.DataFrame({"dob": range(4)}), RECORDS: pd.DataFrame({"admitted": range(9)})}
    marks = np.arange(4, dtype=np.uint64)
    found = VisitRows(schema=related, frames=frames, parents={RECORDS: np.repeat(np.arange(4), many)}, marks=marks)
    taken = found.filling(rows)
    assert taken.n_rows == min(rows, 9)
    wanted = ([], [2], [3], [0], [0, 2], [0, 3], [0, 1], [0, 1, 2], [0, 1, 2, 3])
    assert taken.frames[PEOPLE]["dob"].tolist() == wanted[rows]
    alone = found.take([0, 1]).filling(rows)  # the last one is cut where no other fits
    assert alone.n_rows == min(rows, 6)
    assert alone.counts(RECORDS).tolist() == [most for most in (min(rows, 3), min(max(rows - 3, 0), 3)) if most]


# -- the way through ---------------------------------------------------------------------------------------------------


def test_plan_card_and_dictionary_say_what_belongs_together(
    world: tuple[db.Synthesizer, db.Ledger, Path], tmp_path: Path
) -> None:
    syn, ledger, _ = world
    assert "for one patient (at most 4 records of each are used)" in syn.guarantee.sentence
    assert "another patient" not in syn.plan.explain()
    assert syn.plan.to_json()["kind"] == "table"
    assert db.Plan.from_json(json.loads(json.dumps(syn.plan.to_json()))) == syn.plan
    bundle = db.release(syn, tmp_path / "bundle", n=200, seed=1, ledger=ledger, tables=True)
    assert any("belong together" in line and "max_records" in line for line in bundle.card["limits"])
    assert {"sex", "icd10"} <= set(bundle.card["margins"]["columns"])
    described = json.loads((tmp_path / "bundle/dictionary.json").read_text())
    assert described["kind"] == "table"
    assert described["unit"] == {
        "name": "patient", "id": "MRN", "per_unit": ["dob", "sex", "zip"], "max_records": 4, "order": "admitted",
    }  # fmt: skip
    assert db.verify(tmp_path / "bundle", ledger=ledger)["files"]
    publish(syn, tmp_path / "generator", ledger=ledger)
    made = db.load(tmp_path / "generator").sample(50, seed=4)
    pd.testing.assert_frame_equal(made, syn.sample(50, seed=4))


def test_ids_that_do_not_number_their_rows_are_caught(
    world: tuple[db.Synthesizer, db.Ledger, Path], tmp_path: Path
) -> None:
    from doublure.releasing.checking import _NumberingCheck
    from doublure.releasing.dictionary import dictionary
    from doublure.releasing.reading import ContentMismatch, described_tables

    told = json.loads(json.dumps(dictionary(world[0].schema)))
    (table,) = described_tables(told)

    def found(ids: list[int]) -> None:
        checked = _NumberingCheck(table, dict.fromkeys(("MRN", "case"), table.name), {}, {}, told["unit"])
        for part in (ids[:3], ids[3:]):
            rows = np.arange(len(part)) + 1 + (3 if part is not ids[:3] and part == ids[3:] else 0)
            checked.check({"MRN": np.array(part), "case": rows}, "data.csv")

    found([1, 1, 3, 3, 3, 6])
    found([1, 2, 3, 3, 3, 3])
    for wrong in ([2, 2, 3, 4, 5, 6], [1, 1, 2, 4, 5, 6], [1, 2, 3, 1, 5, 6], [1, 1, 1, 1, 1, 6]):
        with pytest.raises(ContentMismatch):
            found(wrong)


def test_a_report_compares_rows_of_the_one_table(world: tuple[db.Synthesizer, db.Ledger, Path]) -> None:
    syn, _, folder = world
    report = db.evaluate.report(syn, folder / "visits.csv", hospital(200, 7), rows=500, progress=False)
    assert report.measured.kind == "table"
    assert report.measured.rows.train == len(hospital().groupby("MRN").head(MOST))
    assert len(report.attacks) == 2
    assert not any("another patient" in note for note in report.measured.notes)


def test_it_goes_from_the_command_line_too(
    world: tuple[db.Synthesizer, db.Ledger, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    hospital(150).to_parquet("visits.parquet")
    Path("s.yaml").write_text(SCHEMA)
    for words in (
        "schema check s.yaml --data visits.parquet --values misfits.csv",
        "plan s.yaml --epsilon 3 --delta 1e-4 --set fit_steps=2 --set components=2 -o plan.json",
        "budget init l --dataset d --epsilon 3 --delta 1e-4",
        "fit visits.parquet --plan plan.json --ledger l -o run --seed 1",
        "sample run -n 100 -o rows.csv --given sex=2",
    ):
        assert run_guarded(app, words.split()) == 0, capsys.readouterr()
    rows = pd.read_csv("rows.csv")
    assert (len(rows), set(rows["sex"])) == (100, {2})
    assert rows["MRN"].nunique() < 100
    first = db.load("run").sample(40, seed=3)
    plan = db.Plan.load("plan.json")
    other = db.fit(hospital(150), plan, ledger=world[1], seed=1)  # a DataFrame of the same rows
    assert list(other.sample(40, seed=3).columns) == list(first.columns)


def test_without_it_each_row_is_another_patient_and_that_is_said(tmp_path: Path) -> None:
    schema = Schema.parse(FLAT)
    plan = db.plan(schema, epsilon=20.0, delta=1e-4, accountant="rdp", components=2, fit_steps=2)
    assert "Note: each synthetic row is another patient: no id repeats; unit.per_unit" in plan.explain()
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=100, delta=0.1)
    syn = db.fit(hospital(150), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    assert syn.sample(50)["MRN"].is_unique
    card = db.release(syn, tmp_path / "bundle", n=20, ledger=ledger).card
    assert "each synthetic row is another patient: no id repeats." in card["limits"]
    report = db.evaluate.report(syn, hospital(150), rows=100, progress=False)
    assert "Each synthetic row is another patient: no id repeats." in report.measured.notes
    (asked,) = [each for each in check(schema).findings if each.path == "unit.per_unit"]
    assert asked.declare == "unit: {name: patient, id: MRN, max_records: 4, per_unit: [COLUMN, COLUMN]}"
    assert not [each for each in check(Schema.parse(SCHEMA)).findings if each.path == "unit.per_unit"]
    named = FLAT.replace("unit: {name: patient, id: MRN, max_records: 4}\n", "").replace("  case: {type: id}\n", "")
    unnamed = check(Schema.parse(named.replace("MRN: {type: id}", "MRN: {type: integer, bounds: [0, 9]}")))
    assert "unit: {name: patient, id: MRN, max_records: NUMBER}" in [each.declare for each in unnamed.findings]


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_a_plan_says_what_noise_hides_between_a_patient_and_the_visits() -> None:
    """Only relations within each part were forecast: a state and the party of a term were lost without a word."""
    said = {
        epsilon: db.plan(Schema.parse(SCHEMA), epsilon=epsilon, delta=1e-4, accountant="rdp").explain()
        for epsilon in (0.1, 100)
    }
    together = "of people and records together"
    assert f"{together} are" in said[0.1]
    assert f"{together} are" not in said[100]
    assert f"values {together})" in said[100]
    assert together not in db.plan(Schema.parse(FLAT), epsilon=0.1, delta=1e-4, accountant="rdp").explain()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("per_unit: [dob, sex, zip]", "per_unit: [dob, sex, nowhere]", "per_unit names nowhere"),
        ("per_unit: [dob, sex, zip]", "per_unit: [MRN, sex]", "per_unit names MRN"),
        ("per_unit: [dob, sex, zip]", "per_unit: [dob, dob, sex]", "twice"),
        ("per_unit: [dob, sex, zip]", "per_unit: [dob, zip]", "sex is a condition of single rows; name it in per_unit"),
        ("per_unit: [dob, sex, zip]", "per_unit: [case]", "per_unit names only ids"),
        (
            "per_unit: [dob, sex, zip], order: admitted",
            "per_unit: [dob, sex, zip, icd10, admitted, discharged, icu]",
            "per_unit leaves only ids to single rows",
        ),
        (f"max_records: {MOST}, ", "", "say how many of each are used: max_records"),
        ("id: MRN, ", "", "max_records above 1 needs an id"),
        ("order: admitted", "order: dob", "order names no column of single rows"),
        ("order: admitted", "order: icd10", "order of records must be a number, a date or a moment"),
        ("order: admitted", "order: discharged", "order of records needs missing: false and declared bounds"),
        (", per_unit: [dob, sex, zip]", "", "order goes with per_unit"),
        ("when: {icd10: O80}", "when: {sex: 1}", "implies names columns in per_unit and others"),
        ("kind: table", "kind: visits", "must be table, images, series or relational"),
    ],
)
def test_a_split_that_cannot_be_is_refused_in_one_line(old: str, new: str, said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Schema.parse(SCHEMA.replace(old, new))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_kinds_and_methods_refuse_it() -> None:
    series = "{doublure: 1, kind: series, unit: {id: a, max_records: 2, per_unit: [b]}, series: {time: t}, channels: "
    for text in (series + "{x: {type: real}}}", SCHEMA.replace("kind: table", "kind: images")):
        with pytest.raises(SchemaError):
            Schema.parse(text)
    with pytest.raises(InputError, match="method dpgan: takes no rows that belong together"):
        db.plan(Schema.parse(SCHEMA), method="dpgan", epsilon=1.0, delta=1e-4)


def test_a_split_schema_is_written_as_it_is_read() -> None:
    schema = Schema.parse(SCHEMA)
    assert Schema.parse(schema.to_yaml()) == schema
    assert schema.to_plain()["kind"] == "table"
    assert Schema.parse(schema.to_yaml()).sha256 == schema.sha256 != Schema.parse(FLAT).sha256
    assert schema.flat.to_plain() == Schema.parse(FLAT).to_plain()
    exported = json.dumps(Schema.json_schema())
    assert "per_unit" in exported
    assert '"visits"' not in exported


def test_a_card_that_was_changed_is_refused(world: tuple[db.Synthesizer, db.Ledger, Path], tmp_path: Path) -> None:
    syn, ledger, _ = world
    db.release(syn, tmp_path / "bundle", n=60, seed=2, ledger=ledger, formats=["csv"])
    path = tmp_path / "bundle/data.csv"
    path.write_text(path.read_text().replace("\n1,1,", "\n7,1,", 1))
    with pytest.raises(GateFailed):
        db.verify(tmp_path / "bundle")


def test_moments_of_many_rows_do_not_pile_up_at_the_last_one(tmp_path):
    """Gaps are noise here, and their sum goes beyond the bound for most units: 22 % of rows were on the last day."""
    draw = np.random.default_rng(20)
    many = np.minimum(1 + draw.geometric(0.15, 500), 15)
    who = np.repeat(np.arange(500), many)
    taps = pd.DataFrame({"card": who, "age": draw.integers(10, 90, 500)[who], "day": draw.integers(0, 91, len(who))})
    text = """
    doublure: 1
    kind: table
    unit: {id: card, max_records: 15, per_unit: [age], order: day}
    units: 500
    columns:
      card: {type: id}
      age: {type: integer, bounds: [10, 90], missing: false}
      day: {type: integer, bounds: [0, 90], missing: false}
    """
    plan = db.plan(db.Schema.parse(text), epsilon=2.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="cards", epsilon=9.0, delta=0.1)
    made = db.fit(taps, plan, ledger=ledger, seed=1, progress=False).sample(2500, seed=2)
    assert made.groupby("card").size().mean() > 3
    assert made["day"].between(0, 90).all()
    assert (made["day"] == 90).mean() < 0.05  # one in 91, and what noise adds
    assert (made["day"] > 60).mean() < 0.5
    assert (made.groupby("card")["day"].diff().dropna() >= 0).all()


# -- what stands within a row ------------------------------------------------------------------------------------------

WITHIN = """
doublure: 1
kind: table
unit: {name: person, id: nr, per_unit: [sex, born], max_records: 5, order: day}
units: 3000
defaults: {missing: false}
columns:
  nr: {type: id}
  sex: {type: category, values: [f, m]}
  born: {type: integer, bounds: [1920, 2010]}
  day: {type: integer, bounds: [0, 1200]}
  ward: {type: category, values: [heart, lung, skin, bone]}
  nights: {type: integer, bounds: [0, 60]}
  cost: {type: real, bounds: [0, 100000], precision: 0}
  temp: {type: real, bounds: [30, 45], precision: 1}
  pulse: {type: integer, bounds: [20, 200]}
  bed: {type: category, values: [a, b, c, d, e]}
"""


def costly_stays(people: int = 3000) -> pd.DataFrame:
    """Return stays that cost what their nights do, with more nights in two wards, which people come back to."""
    draw = np.random.default_rng(0)
    who = np.repeat(np.arange(people), np.minimum(1 + draw.poisson(1.0, people), 5))
    n = len(who)
    new = np.r_[True, who[1:] != who[:-1]]
    ward, again = draw.choice(["heart", "lung", "skin", "bone"], n), draw.random(n) < 0.6
    for row in np.flatnonzero(again & ~new):
        ward[row] = ward[row - 1]
    place = np.arange(n) - np.flatnonzero(new)[who]
    day = draw.integers(0, 300, people)[who] + 150 * place + draw.integers(0, 60, n)
    nights = np.minimum(draw.poisson(np.where(np.isin(ward, ["heart", "lung"]), 9, 3)), 40)
    cost = np.minimum(np.round(np.exp(6 + 0.12 * nights + draw.normal(0, 0.4, n))), 50_000)
    return pd.DataFrame(
        {
            "nr": who,
            "sex": draw.choice(["f", "m"], people)[who],
            "born": draw.integers(1930, 2005, people)[who],
            "day": day,
            "ward": ward,
            "nights": nights,
            "cost": cost,
            "temp": np.round(36.5 + draw.normal(0, 0.7, n), 1),
            "pulse": np.round(draw.normal(75, 12, n)),
            "bed": draw.choice(list("abcde"), n),
        }
    )


def kept(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Return how cost follows nights, how many nights two wards have more, and how often the next ward is the same."""
    rows = rows.sort_values(["nr", "day"])
    long, again = rows["ward"].isin(["heart", "lung"]), rows["nr"].eq(rows["nr"].shift())
    cost = rows[["cost", "nights"]].astype(float).corr("spearman").iloc[0, 1]
    nights = rows["nights"].astype(float)
    return cost, nights[long].mean() - nights[~long].mean(), (rows["ward"] == rows["ward"].shift())[again].mean()


def test_relations_within_a_row_outlive_the_noise_of_many_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted three times a row, a third of the budget each, they were .15 to .22 and 1.8 to 2.8 nights."""
    monkeypatch.setattr(work, "DRAWN", quick_estimates.MANY)
    data = costly_stays()
    real = kept(data)
    assert real[0] > 0.7
    assert real[1] > 5
    plan = db.plan(Schema.parse(WITHIN), epsilon=2.0, delta=1e-5, accountant="rdp", components=64, fit_steps=400)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="stays", epsilon=2.0, delta=1e-4)
    cost, nights, same = kept(db.fit(data, plan, ledger=ledger, seed=0, progress=False).sample(6000, seed=1))
    assert cost > 0.35
    assert nights > 3.3
    assert abs(same - real[2]) < 0.2  # and from a row to the next, where one fit has a deviation of .09


def test_a_row_at_any_place_is_counted_first_and_tells_the_others() -> None:
    schema = Schema.parse(WITHIN)
    stages = {stage.name: stage for stage in list_stages(schema, anywhere=True)}
    assert list(stages) == ["units of people", "rows of records", "first rows of records", "next rows of records"]
    assert [stage.told for stage in stages.values()] == [0, 0, 7, 6]  # the gap of the order is of two rows
    plan = db.plan(schema, epsilon=2.0, delta=1e-5)
    scored = {
        access.purpose.partition(":")[0]: access.event.tables
        for access in plan.touches
        if access.purpose.endswith(SCORES)
    }
    heads = 3  # two columns of people, and how many rows there are
    assert scored["rows of records"] == 7 * (heads + 1) + 21
    assert scored["first rows of records"] == 7 * heads
    assert scored["next rows of records"] == 7 * (heads + 1 + 7) + 6
    said = plan.explain()
    assert "Relations within a row are counted in one row of each person, at any place" in said
    loose = Schema.parse(WITHIN.replace(", order: day", ""))
    assert [stage.told for stage in list_stages(loose, anywhere=True)] == [0, 0, 7]  # any row is the first one
    assert "in one row of each person, any one, for all rows" in db.plan(loose, epsilon=2.0, delta=1e-5).explain()


# -- what noise hides --------------------------------------------------------------------------------------------------


def test_every_patient_has_a_row_however_loud_the_noise(tmp_path: Path) -> None:
    """Half of the noisy mass lay at no rows at all, and sampling went on for ever."""
    few = hospital(40)
    plan = db.plan(Schema.parse(SCHEMA), epsilon=0.05, delta=1e-4, accountant="rdp", components=4, fit_steps=20)
    for seed in range(4):
        ledger = db.Ledger.create(tmp_path / f"ledger{seed}", dataset="hospital", epsilon=1, delta=0.1)
        rows = db.fit(few, plan, ledger=ledger, seed=seed, progress=False).sample(200, seed=seed)
        assert len(rows) == 200
        assert repeats(rows).between(1, MOST).all()


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_a_table_among_drawn_rows_is_never_known_without_error(rows: int) -> None:
    """Nothing drawn tells that there is nothing only as surely as one row more would."""
    drawn = np.random.default_rng(rows).integers(0, 3, (rows, 2)).astype(float)
    given = GivenRows(values=drawn, weight=20.0, known=0, told={0: 0, 1: 1})
    axes = tuple(Axis(part=part, cells=np.arange(3), size=3) for part in (0, 1))
    found = given.alone(axes, variance=1e6)
    assert found.counts.sum() == 20.0 * rows
    assert found.variance == pytest.approx(20.0**2 * (rows + 1) / 9)


def test_a_person_known_by_a_number_takes_no_place_of_the_moments(tmp_path: Path) -> None:
    """A date of birth, known before, made place for an hour of the day that was not priced; the fit was charged."""
    timed = SCHEMA.replace(
        "{type: date, bounds: [2022-01-01, 2023", "{type: datetime, step: 60, bounds: [2022-01-01, 2023"
    )
    timed = timed.replace(
        "{type: date, bounds: [2022-01-01, 2024", "{type: datetime, step: 60, bounds: [2022-01-01, 2024"
    )
    assert timed.count("datetime") == 2
    plan = db.plan(Schema.parse(timed), epsilon=3.0, delta=1e-4, accountant="rdp", components=4, fit_steps=20)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="hospital", epsilon=3, delta=0.1)
    rows = db.fit(hospital(200), plan, ledger=ledger, seed=1, progress=False).sample(50, seed=1)
    assert len(rows) == 50


# -- moments -----------------------------------------------------------------------------------------------------------

BY_DAY = """
doublure: 1
kind: table
unit: {name: patient, id: nr, max_records: 6, per_unit: [born, sex], order: admitted}
units: 2600
defaults: {missing: false}
columns:
  nr: {type: id}
  born: {type: date, bounds: [1920-01-01, 2023-12-31]}
  sex: {type: category, values: [f, m]}
  admitted: {type: datetime, bounds: ['2022-01-01T00:00:00', '2023-12-31T23:59:59'], step: 60}
  discharged: {type: datetime, bounds: ['2022-01-01T00:00:00', '2024-06-30T23:59:59'], step: 60, missing: true}
  icu: {type: boolean}
constraints: [{at_most: [born, admitted, discharged]}]
"""


def by_day(patients: int = 2600) -> pd.DataFrame:
    """Return stays that begin in the morning and end at noon; one patient in eight is born in these years."""
    draw, day = np.random.default_rng(4), 1440
    who = np.repeat(np.arange(patients), np.minimum(1 + draw.poisson(0.7, patients), 6))
    n, start = len(who), np.datetime64("2022-01-01", "m")
    born = draw.integers(0, 600, patients)
    late = draw.random(patients) < 0.125
    days = np.where(late[who], draw.integers(born[who], 730), draw.integers(0, 730, n))
    days = days[np.lexsort((days, who))]
    minute = np.where(draw.random(n) < 0.8, draw.integers(7 * 60, 12 * 60, n), draw.integers(0, day, n))
    left = (days + draw.geometric(0.25, n)) * day + draw.integers(11 * 60, 14 * 60, n)
    births = np.where(late, np.datetime64("2022-01-01") + born, np.datetime64("1925-01-01") + 55 * born)
    return pd.DataFrame(
        {
            "nr": who,
            "born": births[who].astype(str),
            "sex": draw.choice(["f", "m"], patients)[who],
            "admitted": (start + days * day + minute).astype(str),
            "discharged": np.where(draw.random(n) < 0.01, "", (start + left).astype(str)),
            "icu": draw.random(n) < 0.1,
        }
    )


def in_hours(cells: pd.Series) -> np.ndarray:
    hours = pd.to_datetime(cells).dropna().dt.hour
    return np.bincount(hours, minlength=24) / len(hours)


@pytest.fixture(scope="module")
def wards(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    folder, data, found = tmp_path_factory.mktemp("wards"), by_day(), []
    for seed in range(2):
        plan = db.plan(Schema.parse(BY_DAY), epsilon=3.0, delta=1e-5, accountant="rdp", components=16, fit_steps=60)
        ledger = db.Ledger.create(folder / f"ledger{seed}", dataset="wards", epsilon=3.0, delta=1e-4)
        found.append(db.fit(data, plan, ledger=ledger, seed=seed, progress=False).sample(5000, seed=seed))
    return data, found


def test_first_and_later_stays_begin_and_end_at_the_real_hours(wards) -> None:
    """As plain numbers moments lost their clock: hours differed by .65."""
    data, found = wards
    again = data["nr"].duplicated()
    for rows in found:
        later = rows["nr"].duplicated()
        for name, some, real in (
            ("admitted", ~later, ~again),
            ("admitted", later, again),
            ("discharged", later, again),
        ):
            apart = abs(in_hours(rows[name][some]) - in_hours(data[name][real])).sum() / 2
            assert apart < 0.2
        known = rows.dropna()
        assert (known["admitted"] <= known["discharged"]).all()
        assert rows.groupby("nr")["admitted"].apply(lambda own: own.is_monotonic_increasing).all()


def test_patients_come_back_after_as_long_as_the_real_ones(wards) -> None:
    """A gap too long for a late first stay was drawn again: patients came back after half the time."""

    def median(rows: pd.DataFrame) -> float:
        own = rows.assign(at=pd.to_datetime(rows["admitted"])).sort_values(["nr", "at"])
        return own["at"].diff()[own["nr"].eq(own["nr"].shift())].dt.total_seconds().median()

    data, found = wards
    assert 0.8 < np.mean([median(rows) for rows in found]) / median(data) < 1.2


def test_newborns_are_admitted_after_their_birth_and_not_at_its_midnight(wards) -> None:
    """Whoever was drawn too early was moved to the first minute of the birth's day, with all rows."""
    _, found = wards
    for rows in found:
        born, at = pd.to_datetime(rows["born"]), pd.to_datetime(rows["admitted"])
        assert (born > "2022-06-01").mean() > 0.02
        assert (born <= at).all()
        assert (at == born).mean() < 0.003
        assert at.value_counts().iloc[0] < 8


def test_hours_are_planned_in_each_stage_that_counts_a_moment() -> None:
    def rounds(text: str) -> dict[str, int]:
        touches = db.plan(Schema.parse(text), epsilon=3.0, delta=1e-5, accountant="rdp").touches
        return {each.purpose.partition(":")[0]: each.event.tables for each in touches if ROUND in each.purpose}

    days = (
        BY_DAY.replace("datetime", "date").replace(", step: 60", "").replace("T00:00:00", "").replace("T23:59:59", "")
    )
    before, after = rounds(days), rounds(BY_DAY)
    assert before == {"units of people": 1} | dict.fromkeys([*before][1:], 2)
    assert after == {"units of people": 1} | dict.fromkeys([*before][1:], 4)
