"""``statistics`` on related tables: what hangs together comes out so, keys hold, and a run goes the whole way."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.access import events
from doublure.auditing import audit
from doublure.data.opening import open_data
from doublure.encode.relational import RelationalEncoder
from doublure.errors import SettingError
from doublure.measures.relational import evaluate_related
from doublure.methods.statistics.relational.given import StageTables
from doublure.methods.statistics.relational.method import stage_shares
from doublure.methods.statistics.relational.stages import list_stages
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables import work
from doublure.methods.statistics.tables.plan import PATTERNS, plan_releases
from doublure.networks.related_units import RelatedGenerator
from doublure.private.accounting import epsilon_of
from doublure.releasing.generator import publish
from doublure.releasing.verifying import verify
from doublure.releasing.writing import write_sample
from doublure.report import evaluation
from doublure.support.progress import SilentProgress

UNITS = 3000
TEXT = f"""
doublure: 1
kind: relational
unit: {{name: patient}}
units: {UNITS}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id}}
      group: {{type: category, values: [a, b], missing: false, roles: [condition]}}
  stays:
    key: stay
    parent: patients
    foreign_key: nr
    max_children: 5
    order: day
    columns:
      stay: {{type: id}}
      nr: {{type: id}}
      day: {{type: integer, bounds: [0, 1000], missing: false}}
      ward: {{type: category, values: [x, y, z], missing: false}}
      again: {{type: boolean, missing: false, roles: [target]}}
"""


def made_up(count, seed):
    """Return patients whose ward follows their group, then their last ward, and whose gap follows ``again``."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], count, p=[0.4, 0.6])
    many = np.where(group == "a", rng.integers(0, 4, count), rng.integers(1, 6, count))
    rows = []
    for nr, (own, left) in enumerate(zip(group, many, strict=True)):
        day, ward = rng.integers(0, 100), rng.choice(3, p=[0.8, 0.1, 0.1] if own == "a" else [0.1, 0.2, 0.7])
        for place in range(left):
            again = place < left - 1 and rng.random() < 0.5
            rows.append((nr, day, "xyz"[ward], again))
            day += rng.integers(1, 20) if again else rng.integers(100, 150)
            ward = ward if rng.random() < 0.8 else rng.integers(3)
    stays = pd.DataFrame(rows, columns=["nr", "day", "ward", "again"])
    stays.insert(0, "stay", np.arange(len(stays)))
    return {"patients": pd.DataFrame({"nr": np.arange(count), "group": group}), "stays": stays}


class NamedStages(SilentProgress):
    """Keeps the names of stages."""

    def __init__(self):
        self.names = []

    def stage(self, name, total=None):
        self.names.append(name)


STAGES = NamedStages()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("related")
    plan = db.plan(
        db.Schema.parse(TEXT), epsilon=8.0, delta=1e-5, accountant="rdp", components=32, starts=1, fit_steps=200
    )
    ledger = db.Ledger.create(folder / "ledger", dataset="patients", epsilon=8.0, delta=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "DRAWN", 4000)
        db.fit(made_up(UNITS, 1), plan, ledger=ledger, out=folder / "run", seed=1, progress=STAGES)
    return folder / "run"


@pytest.fixture(scope="module")
def syn(run):
    return db.load(run)


def test_progress_says_of_which_table_a_stage_is(run):
    fitted = [name for name in STAGES.names if name.endswith(": fit the generator")]
    assert len(set(fitted)) == len(fitted) > 2
    assert "first rows of stays: count" in STAGES.names


def test_keys_hold_and_units_are_counted(syn):
    made = syn.sample(12_000, seed=3)  # of two chunks
    patients, stays = made["patients"], made["stays"]
    assert list(made) == ["patients", "stays"]
    assert patients["nr"].tolist() == list(range(1, 12_001))
    assert stays["stay"].tolist() == list(range(1, len(stays) + 1))
    assert stays["nr"].isin(patients["nr"]).all()
    assert stays.groupby("nr").size().max() <= 5
    assert (stays.groupby("nr")["day"].diff().dropna() >= 0).all()
    assert stays["day"].between(0, 1000).all()
    assert list(stays) == ["stay", "nr", "day", "ward", "again"]


def test_the_same_seed_gives_the_same_and_another_other_rows(syn):
    one, other = syn.sample(200, seed=5), syn.sample(200, seed=5)
    assert all(one[name].equals(other[name]) for name in one)
    assert not one["stays"].equals(syn.sample(200, seed=6)["stays"])
    assert len(syn.sample(0, seed=1)["patients"]) == 0


def test_what_hangs_together_comes_out_so(syn):
    found = evaluate_related(syn.schema, syn.sample(UNITS, seed=2), made_up(UNITS, 1), made_up(UNITS, 2), tables=False)
    scores = {score.key.removesuffix(" stays"): score for score in found.scores}
    assert scores["children"].value < 0.05
    for key in ("parent_child", "transitions", "gaps", "counts"):
        assert scores[key].value < 0.5 * scores[key].baseline
    predicted = scores["prediction"]
    assert predicted.name == "AUC, stays.again = true"  # the rarest value, and what tells is the gap behind it
    assert predicted.value > 0.95 * predicted.real
    assert predicted.value > predicted.baseline + 0.1
    assert scores["discriminative"].value < scores["discriminative"].baseline - 0.1
    assert found.verdict.warnings == ()


def test_a_table_that_is_far_is_warned_of_and_figures_stand_beside_others(syn):
    made = syn.sample(UNITS, seed=2)
    made["stays"]["day"] = 500
    found = evaluate_related(syn.schema, made, made_up(UNITS, 1), None).verdict
    assert any(said.startswith("stays: Independent columns") for said in found.warnings)
    assert sum("not held out" in said for said in found.warnings) == 1
    counted = r"Rows of stays, TVD: [\d.]+ \(other real units: .+; independent tables: .+\)\."
    assert any(re.fullmatch(counted, line) for line in found.lines)


def test_a_plan_says_what_a_unit_is_and_no_empty_setting(syn):
    lines = syn.plan.explain().splitlines()
    assert "Unit of privacy: one patient" in lines
    assert not any("within" in line for line in lines if line.startswith("Settings: "))
    assert not any(line.endswith(" 1 tables of counts") for line in lines)


def test_the_row_before_decides_the_next(syn):
    stays = syn.sample(6000, seed=4)["stays"]
    following = stays.groupby("nr")["ward"].shift(-1)
    pairs = following.notna()
    kept = (stays["ward"][pairs].astype(str) == following[pairs].astype(str)).mean()
    assert 0.7 < kept < 0.93  # 0.87 of real ones, and less than half of rows that have nothing to do with one another
    gap = -stays.groupby("nr")["day"].diff(-1)
    assert gap[stays["again"].astype(bool)].median() < 30
    assert gap[~stays["again"].astype(bool)].median() > 80
    last = stays.groupby("nr").tail(1)
    assert last["again"].astype(bool).mean() < 0.08


@pytest.mark.parametrize("name", ["group", "patients.group"])
def test_units_are_asked_for_by_the_root(syn, name):
    made = syn.sample(300, given={name: "a"}, seed=1)
    assert set(made["patients"]["group"]) == {"a"}
    assert (made["stays"].groupby("nr").size() > 3).mean() < 0.05  # of the others, two in five


def test_a_bundle_holds_a_file_for_each_table(syn, run, tmp_path):
    card = db.release(syn, tmp_path / "bundle", n=500, seed=1, tables=True).card
    rows = {file["path"]: file["rows"] for file in card["files"]}
    assert rows["patients.csv"] == rows["patients.parquet"] == 500
    assert card["title"] == "Synthetic related tables for patients"
    assert rows["stays.csv"] == len(pd.read_csv(tmp_path / "bundle/stays.csv"))
    assert "records used of each unit" not in (tmp_path / "bundle/card.html").read_text()
    assert verify(tmp_path / "bundle", ledger=run.parent / "ledger")["executed"]
    assert write_sample(syn, tmp_path / "out", 40, seed=1) == 40
    again = open_data(tmp_path / "out", "relational").load(syn.schema)
    assert again.n_units == 40


def test_shares_and_places_are_public(syn):
    schema, own = db.Schema.parse(TEXT), RelationalStatisticsSettings()
    stages = stage_shares(list_stages(schema, anywhere=True), own)
    assert [stage.turn for stage, _ in stages] == ["first", "first", "any", "next"]
    assert [share for _, share in stages] == pytest.approx([0.25, 0.3, 0.15, 0.3])
    for stage, _ in stages:
        planned = plan_releases(stage.schema, "", given=stage.given)
        assert sum(planned.shares.values()) == pytest.approx(1)
        assert planned.shares.keys() == planned.tables.keys()
    before = stage_shares(list_stages(schema, anywhere=False), own)
    assert [share for _, share in before] == [0.25, 0.375, 0.375]
    assert not any(stage.given for stage, _ in before)
    single = db.Schema.parse(TEXT.replace("max_children: 5", "max_children: 1"))
    alone = stage_shares(list_stages(single, anywhere=True), own)
    assert [stage.following for stage, _ in alone] == [False, False]
    assert [share for _, share in alone] == [0.25, 0.75]
    assert {access.event.records for access in syn.plan.training} == {1}


def test_a_plan_has_one_line_for_each_table(syn):
    """Of 33 releases; their prices stand in the plan's file, and a line's is composed of its table's."""
    lines = syn.plan.explain().splitlines()
    shown = {line.split("ε")[0].strip(): line for line in lines if line.startswith("  ") and "ε = " in line}
    assert [*shown][:3] == ["count patients", "count stays", "total (composed, not added up)"]
    noise = [line for line in lines if line.startswith("Noise")]
    assert [line.split(":")[0] for line in noise] == ["Noise to count patients", "Noise to count stays"]
    own = [access for access in syn.plan.training if not access.purpose.startswith("units of")]
    assert len(own) > 10
    composed = epsilon_of(events(own), 1e-5, accountant="rdp")
    assert f"ε = {composed:.4g}" in shown["count stays"]
    assert sum(access.event.tables for access in own) == int(noise[1].split("each cell of ")[1].split()[0])


def test_an_evaluation_has_a_page_and_attacks_whole_units(syn, tmp_path):
    report = db.evaluate.report(syn, made_up(400, 1), made_up(300, 2), rows=400)
    wanted = {"children stays", "transitions stays", "discriminative", "overall patients"}
    assert wanted <= set(report.scores.index)
    assert [found.threat_model.attack for found in report.attacks] == ["gan-leaks", "neighbours"]
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "How stays hang on their parents" in page
    assert "A column in one row and in the next" in page
    with pytest.raises(SettingError, match="is the data that was fitted"):
        db.evaluate.report(syn, made_up(400, 1), made_up(400, 1))


def test_a_published_generator_makes_the_same_units(syn, tmp_path):
    publish(syn, tmp_path / "gen")
    again = db.load(tmp_path / "gen")
    one, other = again.sample(50, seed=2), syn.sample(50, seed=2)
    assert all(one[name].equals(other[name]) for name in one)


def test_no_name_of_anybodys_is_one_of_a_stages():
    """A root that is called as a stage, and columns as what is counted of others, are told apart."""
    odd = TEXT.replace("patients", "first rows of stays").replace(
        "      ward:", '      "day, before": {type: boolean, missing: false}\n'
        '      "day, gap": {type: boolean, missing: false}\n      ward:'
    )  # fmt: skip
    stages = list_stages(db.Schema.parse(odd), anywhere=True)
    assert [stage.name for stage in stages] == [
        "units of first rows of stays", "first rows of stays", "rows of stays", "next rows of stays",
    ]  # fmt: skip
    assert [len(stage.schema.columns) for stage in stages] == [2, 2 + 5, 2 + 1 + 5, 2 + 1 + 2 * 5]
    plan = db.plan(db.Schema.parse(odd), epsilon=1.0, delta=1e-5, accountant="rdp")
    purposes = [access.purpose for access in plan.training]
    assert len(set(purposes)) == len(purposes)
    assert {purpose.partition(":")[0] for purpose in purposes} == {stage.name for stage in stages}


MISSING = f"""
doublure: 1
kind: relational
unit: {{name: patient}}
units: {UNITS}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id}}
      weight: {{type: integer, bounds: [0, 9], missing: true}}
      job: {{type: category, values: [a, b], missing: true}}
      group: {{type: category, values: [a, b], missing: false, roles: [condition]}}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 2
    columns:
      nr: {{type: id}}
      ward: {{type: category, values: [a, b], missing: true}}
      days: {{type: integer, bounds: [0, 9], missing: true}}
"""


def check_units_asked_for_by_any_column_of_the_root(syn):
    """A column that steers nothing is asked for by leaving units out, each with all that hangs on it."""
    made = syn.sample(50, given={"weight": (3, 5), "patients.job": "b", "group": "b"}, seed=2)
    patients, stays = made["patients"], made["stays"]
    assert patients["nr"].tolist() == list(range(1, 51))
    assert patients["weight"].between(3, 5).all()
    assert (set(patients["job"]), set(patients["group"])) == ({"b"}, {"b"})
    assert stays["nr"].isin(patients["nr"]).all()
    assert 1 < len(stays) / 50 <= 2  # two each, but for noise


@pytest.mark.parametrize("learned", ["", "missing: {learn: 0.1}"])
def test_missing_cells_of_several_tables_come_out_and_all_of_the_root_is_given(tmp_path, learned):
    """Where two columns of the root may be missing, a child's cells are missing as often, and follow its last one."""
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b"], UNITS)
    weight, days = (pd.Series(rng.integers(0, 10, many), dtype=object) for many in (UNITS, 2 * UNITS))
    nr = np.repeat(np.arange(UNITS), 2)
    tables = {
        "patients": pd.DataFrame(
            {
                "nr": np.arange(UNITS),
                "weight": weight.where(rng.random(UNITS) < 0.8, None),
                "job": np.where(rng.random(UNITS) < 0.3, None, group),
                "group": group,
            }
        ),
        "stays": pd.DataFrame(
            {
                "nr": nr,
                "ward": np.where(rng.random(2 * UNITS) < 0.25, None, group[nr]),
                "days": days.where(rng.random(2 * UNITS) < 0.4, None),
            }
        ),
    }
    schema = db.Schema.parse(MISSING.replace("missing: true", learned or "missing: true"))
    for stage in list_stages(schema, anywhere=True)[1:]:
        assert PATTERNS not in plan_releases(stage.schema, "", given=stage.given).tables
    plan = db.plan(schema, epsilon=30.0, delta=1e-5, accountant="rdp", components=8, starts=1, fit_steps=100)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="patients", epsilon=30.0, delta=1e-4)
    syn = db.fit(tables, plan, ledger=ledger, out=tmp_path / "run", seed=1)
    check_units_asked_for_by_any_column_of_the_root(syn)
    made = syn.sample(UNITS, seed=1)
    for name, own in (("patients", "weight"), ("patients", "job"), ("stays", "ward"), ("stays", "days")):
        assert made[name][own].isna().mean() == pytest.approx(tables[name][own].isna().mean(), abs=0.06)
    both = made["stays"].merge(made["patients"], on="nr").dropna(subset=["ward"])
    assert (both["ward"].astype(str) == both["group"].astype(str)).mean() > 0.9


def test_every_quick_attack_takes_whole_patients(syn):
    """As many targets of either side, each a patient with all stays; one that cannot be made says why."""
    found = audit(syn, "quick", made_up(UNITS, 1), made_up(400, 2))
    made = {entry.threat_model.attack: entry for entry in found.attacks if entry.skipped is None}
    assert {"gan-leaks", "gan-leaks-partial", "gan-leaks-calibrated"} <= made.keys()
    for entry in made.values():
        assert not entry.alarm
    drawn = syn.sample(20_000, seed=2)  # what the attacker draws: such members are found out, if they are not alike
    own = {name: table[table["nr"] <= 400] for name, table in drawn.items()}
    (entry,) = audit(syn, "gan-leaks-partial", own, made_up(400, 2)).attacks
    assert entry.value > 0.7


def test_a_page_takes_large_numbers_of_rows_together():
    shares = [(1 / 367, 1 / 367)] * 367
    lines = evaluation._numbers(shares)
    assert [name for name, _, _ in lines][-7:] == [
        "8",
        "9",
        "10 to 19",
        "20 to 49",
        "50 to 99",
        "100 to 199",
        "200 to 366",
    ]
    assert sum(real for _, real, _ in lines) == pytest.approx(1)
    assert [name for name, _, _ in evaluation._numbers(shares[:11])] == [str(number) for number in range(11)]
    assert [name for name, _, _ in evaluation._numbers(shares[:12])][-1] == "10 to 11"


def test_canaries_of_whole_patients_are_not_above_the_claim(syn):
    """Patients drawn over all that the schema allows, with their stays: put in or not, then guessed, after one fit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "DRAWN", 4000)
        found = audit(syn, "canary", made_up(UNITS, 1), made_up(400, 2))
    (entry,) = found.attacks
    assert entry.value is not None
    assert entry.value <= syn.plan.epsilon
    assert not entry.alarm
    assert entry.claim.epsilon == pytest.approx(8.0)


def test_rows_beyond_the_bounds_are_drawn_again(syn):
    """In a year of 300 days, histories do not pile up on the last one."""
    encoder = RelationalEncoder(db.Schema.parse(TEXT.replace("bounds: [0, 1000]", "bounds: [0, 300]")).resolve({}))
    generator = RelatedGenerator(encoder.layout, list(encoder.condition_sizes.values()), repeats=True)
    generator.load_state_dict(syn.generator.state_dict())
    drawn = encoder.decode(generator(np.random.default_rng(1).standard_normal((6000, 1))))
    last = pd.Series(drawn.frames["stays"]["day"]).groupby(drawn.parents["stays"]).max()
    assert last.max() == 300
    assert (last == 300).mean() < 5 * last.between(290, 299).mean() / 10


def test_an_error_of_what_is_given_makes_no_pair_strong():
    """Drawn units that miss a given column's margin move every score of it alike; its strongest pair stays."""
    tables = object.__new__(StageTables)
    tables._known, tables.score_noise = 2, 20.0
    tables.scores = np.full((6, 6), -np.inf)
    for place, own in ((0, [500.0, 510, 490, 2000]), (1, [-30.0, 5, 25, 300])):
        tables.scores[place, 2:] = tables.scores[2:, place] = own
    tables._take_off_errors_of_what_is_given()
    assert np.abs(tables.scores[0, 2:5]).max() < 20
    assert tables.scores[0, 5] == pytest.approx(1493, abs=1)
    assert tables.scores[1, 2:].tolist() == [-30, 5, 25, 300]  # the margin is right
    np.testing.assert_array_equal(tables.scores[:2, 2:], tables.scores[2:, :2].T)
    assert np.isneginf(tables.scores[2:, 2:]).all()
