"""A privacy officer's file: the claim, what to sign, who saw what, what was published, attacks, the ledger."""

from __future__ import annotations

import json
import re
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import RunFolderError
from doublure.releasing.dossier import CapDecision, dossier
from doublure.releasing.plain_words import coin_sentence
from doublure.report.page import show_text
from doublure.schema.display import facts_in_words
from doublure.schema.scalars import label


def drawn(*run, **how):
    """Return the page of a run of which every part is there and its own."""
    made = dossier(*run, **how)
    assert made.problems == ()
    return made.page


def distrusted(match, **how):
    """Check that the file is written, begins with what is wrong, and ends the command with 4; return the page."""
    made = dossier("run", **how)
    assert [each for each in made.problems if re.search(match, each)], made.problems
    assert "Do not sign" in made.page
    assert len(made.problems) == made.page.partition('id="problems"')[2].partition("</section>")[0].count("<li>")
    told = [word for key, value in how.items() for word in (f"--{key}", str(value))]
    assert run_guarded(app, ["dossier", "run", "-o", "told.html", "--force", *told]) == 4
    assert "Do not sign" in Path("told.html").read_text(encoding="utf-8")
    return made.page


@pytest.fixture
def charged(small, tmp_path, monkeypatch):
    """A run and its ledger, in this folder."""
    monkeypatch.chdir(tmp_path)
    schema = db.Schema.parse(small.declared_text)
    plan = db.plan(schema, epsilon=1.0, delta=1e-5)
    ledger = db.Ledger.create("people.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    return db.fit(small.frame(), plan, ledger=ledger, out="run", seed=1, progress=False)


def test_it_holds_the_claim_what_to_sign_and_the_ledger(charged):
    page = drawn("run")
    assert charged.guarantee.sentence in page
    assert all(each in page for each in charged.guarantee.assumptions)
    assert "The ledger records no release of this run, up to record" in page
    assert "No result of one lies in the run folder" in page
    assert "no other ledger, under this name or another, has fits on records of the same person" in page
    assert "legal basis" in page
    assert "ε = 3, δ = 0.0001" in page
    assert "this run" in page
    assert "the person who ran the fit" in page


def test_what_is_still_open_stands_before_what_is_signed(charged, attacked):
    page = drawn("run")
    still_open = page.partition('id="open"')[2].partition("</section>")[0]
    assert "Nobody is named who decided" in still_open
    assert "No attack was made" not in still_open
    assert page.index('id="open"') < page.index('id="sign"')
    assert "Nothing that this file can know" not in page
    assert "Nothing that this file can know" in drawn("run", decision=CapDecision(name="Ada Lovelace"))
    db.Ledger.create("other.ledger", dataset="people", epsilon=1.0, delta=1e-5)
    assert "another of the same data set (other.ledger)" in drawn("run")
    assert "No audit was made" not in still_open
    shutil.rmtree("run/internal")
    assert "No attack was made" in drawn("run")


def test_attacks_of_an_evaluation_are_no_audit(charged, small):
    report = db.evaluate.report(charged, small.frame(), small.frame(600).tail(300), progress=False)
    report.save("run/internal/report.html", "run/internal/report.json")
    page = drawn("run")
    assert "No audit was made" in page
    assert "No attack was made" not in page


def test_the_hash_of_a_cards_claims_is_not_called_its_fingerprint(charged):
    bundle = db.release(charged, "bundle", n=20)
    row = drawn("run").partition("card.json<small>")[2].partition("</tr>")[0]
    assert row.startswith("its claims, without entry and page</small>")
    assert bundle.fingerprint not in row


def test_it_lists_what_was_published_by_hash(charged):
    bundle = db.release(charged, "bundle", n=20)
    page = drawn("run")
    assert "records no release of this run" not in page
    assert all(entry["sha256"] in page for entry in bundle.card["files"])


@pytest.fixture
def attacked(charged, small):
    """The run with an audit in its folder; returns the audit."""
    report = db.audit(charged, "gan-leaks", small.frame(), small.frame(600).tail(300), progress=False)
    report.save("run/internal/audit.html", "run/internal/audit.json")
    return report


def test_it_repeats_what_attacks_showed(attacked):
    page = drawn("run")
    assert attacked.verdict.headline in page
    assert "internal/audit.json</code> was made" in page


def _edit(**changes):
    path = Path("run/internal/audit.json")
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


@pytest.mark.usefixtures("attacked")
def test_an_edited_audit_is_no_audit():
    _edit()  # laid out anew, and nothing changed
    assert "ε" in drawn("run")
    written = json.loads(Path("run/internal/audit.json").read_text(encoding="utf-8"))
    _edit(attacks=[written["attacks"][0] | {"value": 0.5, "alarm": False}])
    page = distrusted(r"audit\.json: is not as doublure wrote it")
    assert "To be signed" in page
    assert '<div class="sign">' not in page
    assert "No result of one lies" in page
    _edit(sha256=None)
    distrusted("is not as doublure wrote it")


@pytest.mark.parametrize("name", ["audit.json", "report.json"])
def test_another_runs_figures_are_not_this_runs(charged, small, name):
    """Put in by mistake, or to look better: the plan and the data are the same."""
    real, aside = small.frame(), small.frame(600).tail(300)
    other = db.fit(real, charged.plan, ledger="people.ledger", again=True, out="other", seed=2, progress=False)
    if name == "audit.json":
        report = db.audit(other, "gan-leaks", real, aside, progress=False)
    else:
        report = db.evaluate.report(other, real, aside, progress=False)
    report.save("other/internal/page.html", f"other/internal/{name}")
    shutil.copy(f"other/internal/{name}", f"run/internal/{name}")
    distrusted(rf"{name}: is of another generator \({other.run['generator_sha256'][:12]}")


def test_figures_that_name_no_generator_are_not_this_runs(charged, small):
    told = {key: value for key, value in charged.run.items() if key != "generator_sha256"}
    unbound = replace(charged, run=told)
    report = db.audit(unbound, "gan-leaks", small.frame(), small.frame(600).tail(300), progress=False)
    report.save("run/internal/audit.html", "run/internal/audit.json")
    distrusted("does not say of which generator it is")


def test_a_generator_of_another_run_is_not_this_runs_by_the_ledger(charged, small):
    """All files of the folder agree with one another: the ledger alone knows."""
    db.fit(small.frame(), charged.plan, ledger="people.ledger", again=True, out="other", seed=2, progress=False)
    own, other = (json.loads(Path(run, "run.json").read_text(encoding="utf-8")) for run in ("run", "other"))
    shutil.copy("other/generator.safetensors", "run/generator.safetensors")
    page = distrusted(r"is not the generator that run\.json names. The folder was edited")
    assert "no claim is stated" in page
    assert charged.guarantee.sentence not in page
    told = {key: other[key] for key in ("generator_sha256", "tables_sha256") if key in other}
    Path("run/run.json").write_text(json.dumps(own | told), encoding="utf-8")
    if "tables_sha256" in told:
        shutil.copy("other/tables.safetensors", "run/tables.safetensors")
    distrusted("ended with another generator")


def test_each_declared_fact_has_a_place_for_its_source(charged):
    page = drawn("run")
    rows = dict(facts_in_words(charged.plan.schema))
    assert {"units", "most records of one person", *charged.schema.columns} <= rows.keys()
    for of, fact in rows.items():
        row = next(line for line in page.splitlines() if line.startswith("<tr>") and f">{of}</th>" in line)
        assert row.endswith("<td></td></tr>"), of
        assert str(show_text(fact)) in row


PUBLISHED = {
    "table": """
doublure: 1
kind: table
unit: {name: patient, id: nr, max_records: 2}
units: 12345
date_format: DD.MM.YYYY
missing_together: [[took, since]]
release: {title: Of a ward, contact: me@example.org}
columns:
  nr: {type: id}
  age: {type: integer, bounds: [3, 97], missing: [-8, -9, -7, -6], step: 2}
  hosp: {type: category, values: [Central, Port], other: elsewhere, spellings: {Centrl: Central, Prot: Port},
         description: as the ward wrote it, missing: false, value_labels: {Central: the old one}}
  pay: {type: real, bounds: [0, 1e6], precision: 2, spikes: [501], missing: false}
  icd: {type: code, values: [A01, A02, B01], levels: [1], missing: false}
  ward: {type: category, values: [w1, w2, w3, w4, w5, w6, w7, w8], missing: false, roles: [condition],
         shares: {w1: .3, w2: .1, w3: .1, w4: .1, w5: .1, w6: .1, w7: .1, w8: .1}}
  icu: {type: boolean, written: {true: Y, false: N}, missing: false}
  took: {type: duration, bounds: ["0:00:00", "6:00:00"], missing: true}
  since: {type: month, bounds: [2020-01, 2020-12], missing: true}
  day: {type: date, bounds: [2020-02-03, 2020-12-31], dtype: date32, missing: true}
  mrn: {type: fake, as: pattern, pattern: "MRN-{6 digits}"}
  site: {type: constant, value: MAIN}
constraints:
  - {implies: {when: {age: [5, 41]}, then: {icd: A01}}}
  - {determines: [ward, hosp], map: {w1: Central, w2: Port, w3: Port, w4: Port, w5: Port, w6: Port, w7: Port, w8: Port}}
""",
    "visits": """
doublure: 1
kind: table
unit: {name: patient, id: nr, max_records: 3, per_unit: [sex], order: day}
units: 60
columns:
  nr: {type: id}
  sex: {type: category, values: [f, m], spellings: {female: f}, missing: false}
  day: {type: date, bounds: [2020-02-03, 2020-12-31], missing: false}
""",
    "relational": """
doublure: 1
kind: relational
unit: {name: person}
units: 60
tables:
  people: {key: nr, columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}}
  stays:
    parent: people
    foreign_key: nr
    max_children: 3
    columns: {nr: {type: id}, ward: {type: category, values: [a, b], spellings: {A1: a}, missing: false}}
""",
    "series": """
doublure: 1
kind: series
units: 40
unit: {name: meter, id: meter}
series: {time: at, step: 6h, length: 4, timezone: Europe/Paris}
channels: {litres: {type: real, bounds: [0, 17], precision: 1, missing: false}}
attributes: {tariff: {type: category, values: [flat, night], missing: false}}
""",
}
_OF_THE_FORM = {"doublure", "kind"}
_SHOWN_BY_VALUE = {"name", "type", "columns", "values", "bounds", "max records", "implies", "when", "then"}


def leaves(value, key=""):
    """Yield the names and values that plain data holds; of a truth its key."""
    if isinstance(value, dict):
        for own, each in value.items():
            yield from leaves(each, own)
            yield from () if key in ("", "tables") or each in (False, None) else (own.replace("_", " "),)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, key)
    elif value not in (True, False, None) or isinstance(value, float):
        yield label(value)


@pytest.mark.parametrize("kind", PUBLISHED)
def test_all_that_a_published_schema_says_is_there_to_be_signed(kind):
    """Spellings read off the data were published, and nobody was asked where they came from."""
    schema = db.Schema.parse(PUBLISHED[kind])
    words = "\n".join(f"{of}: {fact}" for of, fact in facts_in_words(schema)).replace(",", "").replace("_", " ")
    plain = {key: value for key, value in schema.to_plain().items() if key not in _OF_THE_FORM}
    said = {each.replace(",", "").replace("_", " ") for each in leaves(plain)}
    assert {each for each in said if each not in words} <= _SHOWN_BY_VALUE


def test_bought_facts_need_no_source(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = db.Schema.parse(small.declared_text.replace("units: 300", "units: {learn: 0.1, magnitude: 300}"))
    db.Ledger.create("people.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    plan = db.plan(schema, epsilon=1.0, delta=1e-5)
    syn = db.fit(small.frame(), plan, ledger="people.ledger", out="run", seed=1, progress=False)
    page = drawn("run")
    assert len(syn.bought) == 1
    assert syn.bought[0] in page
    assert dict(facts_in_words(schema))["units"] == "bought, ε = 0.1"


def test_the_total_is_in_plain_words_and_no_path_is_shown(charged, small, tmp_path):
    db.fit(small.frame(), charged.plan, ledger="people.ledger", again=True, out="other", seed=2, progress=False)
    page = drawn("run")
    assert coin_sentence({"epsilon": 2.0, "delta": 2e-5, "unit": "person"}) in page
    assert "2 fits were charged, whether released or not." in page
    assert "covers all fits recorded of people, released or not" in page
    shutil.move("people.ledger", "moved.ledger")
    for shown in (page, dossier("run").page):
        assert str(tmp_path) not in shown


def test_a_ledger_whose_end_was_cut_off_is_intact_up_to_a_record(charged, capsys):
    bundle = db.release(charged, "bundle", n=20)
    lines = Path("people.ledger").read_bytes().splitlines(keepends=True)
    Path("people.ledger").write_bytes(b"".join(lines[:-1]))
    book = db.Ledger.open("people.ledger")
    upto = f"record {len(lines) - 1} of {book.entries[-1].utc}"
    assert f"The ledger records no release of this run, up to {upto}" in drawn("run")
    for verb in ("verify", "show"):
        assert run_guarded(app, ["budget", verb, "people.ledger"]) == 0
        said = capsys.readouterr().out
        assert f"p to {upto}" in said
        assert "cut" in said
        assert "doublure verify" in said
    assert run_guarded(app, ["verify", str(bundle.path), "--ledger", "people.ledger"]) == 4


def test_a_line_that_was_cut_short_is_still_open(charged):
    db.release(charged, "bundle", n=20)
    assert "A line of the ledger was cut short" not in drawn("run")
    with Path("people.ledger").open("rb+") as file:
        file.truncate(file.seek(0, 2) - 5)
    assert "A line of the ledger was cut short" in drawn("run")


@pytest.mark.parametrize(
    ("public", "said"),
    [
        ({"database": {"engine": "duckdb", "table": "t"}}, "the database"),
        ({"owners": {"answered": 2, "of": 3}}, "2 of 3"),
    ],
)
def test_who_saw_what_follows_from_where_the_records_were(charged, public, said):
    run = json.loads(Path("run/run.json").read_text(encoding="utf-8"))
    Path("run/run.json").write_text(json.dumps(run | public), encoding="utf-8")
    assert said in drawn("run")


def test_without_its_ledger_and_with_another_one_it_says_so(charged, tmp_path):
    shutil.move("people.ledger", "moved.ledger")
    distrusted("people.ledger: ")
    assert "ε = 3, δ = 0.0001" in drawn("run", ledger="moved.ledger")
    db.Ledger.create("other.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    distrusted("does not know this run", ledger="other.ledger")


def test_a_ledger_of_the_same_name_is_not_that_of_the_run(charged, small, tmp_path):
    """Its first run is another one, of the same data set's name and the same place in the ledger."""
    book = db.Ledger.create(tmp_path / "namesake.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    db.fit(small.frame(), charged.plan, ledger=book, out=tmp_path / "other", seed=2, progress=False)
    assert book.show()["runs"][0]["sequence"] == db.Ledger.open("people.ledger").show()["runs"][0]["sequence"]
    distrusted("does not know this run", ledger=book.path)


@pytest.mark.parametrize("text", ["{", "[" * 200_000], ids=["cut", "deep"])
def test_a_damaged_audit_is_named(charged, text):
    Path("run/internal/audit.json").write_text(text, encoding="utf-8")
    distrusted("cannot be read")


def test_a_run_without_a_record_of_what_ran_is_distrusted(charged):
    Path("run/executed.json").unlink()
    distrusted("nothing says what ran")


def test_a_run_that_names_no_ledger_is_distrusted(charged):
    told = json.loads(Path("run/run.json").read_text(encoding="utf-8"))
    del told["ledger"]["path"]
    Path("run/run.json").write_text(json.dumps(told), encoding="utf-8")
    distrusted("names no ledger")


def test_the_command_writes_a_private_page(charged, tmp_path, capsys):
    assert run_guarded(app, ["dossier", "run", "-o", "file"]) == 0
    assert stat.S_IMODE((tmp_path / "file.html").stat().st_mode) == 0o600
    assert run_guarded(app, ["dossier", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["result"]["internal"] is True
    assert run_guarded(app, ["dossier", "nowhere"]) == 2


def test_who_decided_is_on_the_file_and_on_nothing_that_is_published(charged):
    decision = CapDecision(name="Ada <b>Steward</b>", role="data protection officer", date="2026-11-29")
    page = drawn("run", decision=decision)
    assert "Ada &lt;b&gt;Steward&lt;/b&gt;</b>, data protection officer, on 2026-11-29" in page
    assert "Decided on cap" not in drawn("run")
    words = ["--name", "Ada Steward", "--role", "data protection officer", "--date", "2026-11-29"]
    assert run_guarded(app, ["dossier", "run", *words]) == 0
    assert "Ada Steward" in Path("run/internal/dossier.html").read_text()
    bundle = db.release(charged, "bundle", n=20)
    assert not [path for path in bundle.files if b"Steward" in path.read_bytes()]
    with pytest.raises(db.errors.SettingError, match="name"):
        CapDecision(name="")


@pytest.mark.parametrize("place", [["-o", "file.html"], []])
def test_a_file_that_an_officer_filled_in_is_replaced_by_force_alone(charged, place, capsys):
    page = Path(place[-1] if place else "run/internal/dossier.html")
    assert run_guarded(app, ["dossier", "run", "--name", "Ada Steward", *place]) == 0
    signed = page.read_text(encoding="utf-8").replace("<dd></dd>", "<dd>legitimate interest</dd>")
    page.write_text(signed, encoding="utf-8")
    capsys.readouterr()
    assert run_guarded(app, ["dossier", "run", *place]) == 2
    assert "already exists; choose another -o, or give --force" in capsys.readouterr().err
    assert run_guarded(app, ["inspect", "run", "--images", "50", "-o", str(page)]) == 2  # no page to be made again
    assert page.read_text(encoding="utf-8") == signed
    assert run_guarded(app, ["dossier", "run", "--force", *place]) == 0
    assert "legitimate interest" not in page.read_text(encoding="utf-8")


def test_several_forgeries_are_told_at_once(attacked, capsys):
    _edit(sha256=None)
    Path("run/internal/report.json").write_text("{", encoding="utf-8")
    shutil.move("people.ledger", "moved.ledger")
    page = distrusted(r"audit\.json")
    assert "3 parts of this run cannot be trusted" in page
    capsys.readouterr()
    assert run_guarded(app, ["dossier", "run", "--json"]) == 4
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["error"]["code"] == "gate"


def test_a_run_that_is_not_finished_has_no_file(charged):
    told = json.loads(Path("run/run.json").read_text(encoding="utf-8"))
    Path("run/run.json").write_text(json.dumps(told | {"status": "running"}), encoding="utf-8")
    with pytest.raises(RunFolderError, match="is not finished"):
        dossier("run")


def test_questions_and_settings_are_on_the_file(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    db.Ledger.create("people.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    schema = db.Schema.parse(small.declared_text)
    first, other = [name for name, column in schema.columns.items() if column.modelled][:2]
    plan = db.plan(schema, epsilon=1.0, delta=1e-5, focus=(f"{first} & {other}",))
    db.fit(small.frame(), plan, ledger="people.ledger", out="run", seed=1, progress=False)
    page = drawn("run")
    assert "Questions named before the fit" in page
    assert f"{first} &amp; {other}: expected to be" in page
    assert "fit_steps=" in page
