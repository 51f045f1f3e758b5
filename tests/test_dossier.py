"""A privacy officer's file: the claim, what to sign, who saw what, what was published, attacks, the ledger."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import LedgerError, RunFolderError
from doublure.releasing.dossier import CapDecision, dossier


@pytest.fixture
def charged(small, tmp_path, monkeypatch):
    """A run and its ledger, in this folder."""
    monkeypatch.chdir(tmp_path)
    schema = db.Schema.parse(small.declared_text)
    plan = db.plan(schema, epsilon=1.0, delta=1e-5)
    ledger = db.Ledger.create("people.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    return db.fit(small.frame(), plan, ledger=ledger, out="run", seed=1, progress=False)


def test_it_holds_the_claim_what_to_sign_and_the_ledger(charged):
    page = dossier("run")
    assert charged.guarantee.sentence in page
    assert all(each in page for each in charged.guarantee.assumptions)
    assert "Nothing, by the ledger." in page
    assert "None was made." in page
    assert "ε = 3, δ = 0.0001" in page
    assert "this run" in page
    assert "the person who ran the fit" in page


def test_it_lists_what_was_published_by_hash(charged):
    bundle = db.release(charged, "bundle", n=20)
    page = dossier("run")
    assert "Nothing, by the ledger." not in page
    assert all(entry["sha256"] in page for entry in bundle.card["files"])


def test_it_repeats_what_attacks_showed(charged, small):
    report = db.audit(charged, "gan-leaks", small.frame(), small.frame(600).tail(300), progress=False)
    report.save("run/internal/audit.html", "run/internal/audit.json")
    assert report.verdict.headline in dossier("run")


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
    assert said in dossier("run")


def test_without_its_ledger_it_says_so_and_another_ledger_is_refused(charged, tmp_path):
    shutil.move("people.ledger", "moved.ledger")
    assert "could not be opened" in dossier("run")
    assert "ε = 3, δ = 0.0001" in dossier("run", ledger="moved.ledger")
    other = db.Ledger.create("other.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    with pytest.raises(LedgerError, match="does not know this run"):
        dossier("run", ledger=other)


def test_a_ledger_of_the_same_name_is_not_that_of_the_run(charged, small, tmp_path):
    """Its first run is another one, of the same data set's name and the same place in the ledger."""
    book = db.Ledger.create(tmp_path / "namesake.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    db.fit(small.frame(), charged.plan, ledger=book, out=tmp_path / "other", seed=2, progress=False)
    assert book.show()["runs"][0]["sequence"] == db.Ledger.open("people.ledger").show()["runs"][0]["sequence"]
    with pytest.raises(LedgerError, match="does not know this run"):
        dossier("run", ledger=book)


def test_a_damaged_audit_is_named(charged):
    Path("run/internal/audit.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunFolderError, match="cannot be read"):
        dossier("run")


def test_the_command_writes_a_private_page(charged, tmp_path, capsys):
    assert run_guarded(app, ["dossier", "run", "-o", "file"]) == 0
    assert stat.S_IMODE((tmp_path / "file.html").stat().st_mode) == 0o600
    assert run_guarded(app, ["dossier", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["result"]["internal"] is True
    assert run_guarded(app, ["dossier", "nowhere"]) == 2


def test_who_decided_is_on_the_file_and_on_nothing_that_is_published(charged):
    decision = CapDecision(name="Ada <b>Steward</b>", role="data protection officer", date="2026-11-29")
    page = dossier("run", decision=decision)
    assert "Ada &lt;b&gt;Steward&lt;/b&gt;</b>, data protection officer, on 2026-11-29" in page
    assert "Decided on cap" not in dossier("run")
    words = ["--name", "Ada Steward", "--role", "data protection officer", "--date", "2026-11-29"]
    assert run_guarded(app, ["dossier", "run", *words]) == 0
    assert "Ada Steward" in Path("run/internal/dossier.html").read_text()
    bundle = db.release(charged, "bundle", n=20)
    assert not [path for path in bundle.files if b"Steward" in path.read_bytes()]
    with pytest.raises(db.errors.SettingError, match="name"):
        CapDecision(name="")
