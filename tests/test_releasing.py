"""What is published, and how a change to it is found out."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import get_args

import pandas as pd
import pyarrow.parquet as pq
import pytest

import doublure as db
from doublure.cli import budget
from doublure.cli import verify as verify_command
from doublure.data.tables import writing
from doublure.errors import DoublureError, GateFailed, InputError, LedgerError, RunFolderError, SettingError
from doublure.guarantee import Kind
from doublure.releasing import bundle as releasing
from doublure.releasing import issuing, verifying
from doublure.releasing.bundle import verify
from doublure.releasing.catalogue_names import NAMES
from doublure.releasing.plain_words import opening
from doublure.schema.kinds import KINDS
from doublure.support import files

BUNDLE = {"data.csv", "data.parquet", "card.json", "card.html", "dictionary.json", *NAMES}
CARD = {
    "version", "doublure_version", "created", "title", "contact", "method", "watermark", "guarantee", "touches",
    "executed", "owners", "columns", "margins", "description", "licence", "citation", "links", "schema_sha256",
    "public_sources", "ledger", "files", "limits", "review_by",
}  # fmt: skip
GUARANTEE = {
    "kind", "epsilon", "delta", "epsilon_mu", "delta_mu", "mu", "gamma", "unit", "max_records", "relation",
    "accountant", "sample_rate", "noise_multiplier", "steps", "noise_source", "assumptions", "excluded", "sentence",
}  # fmt: skip


@pytest.fixture(scope="module")
def released(small, tmp_path_factory):
    """Return a bundle and the ledger that knows it; they are only read, or copied."""
    folder = tmp_path_factory.mktemp("released")
    run, ledger = small.copies(folder)
    db.release(db.load(run), folder / "bundle", n=120, seed=1, title="Artificial people", contact="us@example.org")
    return folder / "bundle", ledger


@pytest.fixture
def mine(released, tmp_path):
    """Return copies of a bundle and its ledger, to be changed."""
    shutil.copytree(released[0], tmp_path / "bundle")
    shutil.copy(released[1], tmp_path / "people.ledger")
    return tmp_path / "bundle", tmp_path / "people.ledger"


def read_card(bundle):
    return json.loads((bundle / "card.json").read_text())


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def write_card(bundle, card):
    (bundle / "card.json").write_text(json.dumps(card))


# -- what paid for it -------------------------------------------------------------------


def test_a_run_whose_charge_was_cut_off_the_ledger_is_neither_released_nor_gone_on_with(small, tmp_path, monkeypatch):
    """By hand, after the run: its owner, told to remove the line only if no run was begun for it, removes it."""
    run, path = small.copies(tmp_path)
    start = path.read_bytes().index(b'{"body":{"charge"')
    os.truncate(path, start + 20)
    sampled = []
    monkeypatch.setattr(releasing, "write_released", lambda *given, **named: sampled.append(given))
    for length in (start + 20, start):
        os.truncate(path, length)
        with pytest.raises(LedgerError, match="is not a reservation of this ledger"):
            db.release(db.load(run), tmp_path / "bundle", n=20, ledger=path)
    assert sampled == []
    assert not (tmp_path / "bundle").exists()
    assert db.Ledger.open(path).spent.epsilon == 0  # which is why the line's owner is asked first
    state = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(state | {"status": "interrupted"}))
    with pytest.raises(LedgerError, match="is not a reservation of this ledger"):
        db.fit(small.frame(), small.plan, ledger=path, out=run, resume=True)


# -- what is in it ----------------------------------------------------------------------


def test_these_files_and_no_others(released):
    assert {path.name for path in released[0].iterdir()} == BUNDLE
    assert not [path for path in released[0].parent.iterdir() if path.name.startswith(".")]


def test_the_card_holds_these_keys(released, small):
    card = read_card(released[0])
    assert set(card) == CARD
    assert set(card["guarantee"]) == GUARANTEE
    assert set(card["ledger"]) == {"dataset", "head_sha256"}
    assert {frozenset(entry) for entry in card["files"]} == {frozenset({"path", "sha256", "rows"})}
    assert {frozenset(touch) for touch in card["touches"]} == {frozenset({"purpose", "event", "epsilon", "delta"})}
    assert {entry["path"]: entry["rows"] for entry in card["files"]} == {
        "data.csv": 120, "data.parquet": 120, "dictionary.json": None, "card.html": None, **dict.fromkeys(NAMES),
    }  # fmt: skip
    assert card["guarantee"]["sentence"] == small.plan.guarantee.sentence
    assert card["guarantee"]["epsilon_mu"] is None
    assert card["executed"] is True
    assert (card["title"], card["contact"]) == ("Artificial people", "us@example.org")
    assert card["review_by"] > card["created"]


def test_no_card_says_more_than_is_known(released, small, tmp_path):
    """A row may equal a real one by chance, and where nothing is guaranteed nothing is said to be covered."""
    gan = db.plan(small.declared, method="gan", **small.tiny)
    db.release(db.fit(small.frame(), gan, ledger=small.book(tmp_path)), tmp_path / "bundle", n=5)
    for bundle, covered in ((released[0], True), (tmp_path / "bundle", False)):
        text = (bundle / "card.json").read_text() + (bundle / "card.html").read_text()
        assert "none describes" not in text
        assert "one may still equal a real one" in text
        assert ("The guarantee covers" in text) == covered
        assert ("No guarantee covers the records of any person" in text) == (not covered)
    for kind in get_args(Kind):
        assert ("The guarantee covers" in releasing._UNIT_LIMIT[kind]) == (kind in ("dp", "bayesian-dp"))
    assert not any("none " in line for kind in KINDS.values() for line in kind.limits)


def test_neither_nan_nor_infinity_nor_a_path_of_this_machine_is_on_the_card(released, tmp_path):
    text = (released[0] / "card.json").read_text()
    for word in ("NaN", "Infinity", str(tmp_path.parent), str(Path.home()) + "/"):
        assert word not in text


def test_the_rows_are_the_same_in_both_formats(released, small):
    in_csv = pd.read_csv(released[0] / "data.csv", dtype=str, keep_default_na=False)
    in_parquet = pd.read_parquet(released[0] / "data.parquet")
    assert len(in_csv) == len(in_parquet) == 120
    assert list(in_csv.columns) == list(in_parquet.columns) == list(small.declared.columns)
    assert in_csv["age"].tolist() == in_parquet["age"].astype(str).tolist()
    assert in_csv["row"].tolist() == [str(number) for number in range(1, 121)]
    jobs = in_parquet["job"].astype(object)
    assert in_csv["job"].tolist() == jobs.where(jobs.notna(), "?").tolist()


def test_the_released_rows_fit_the_schema(released, small):
    from doublure.data.tables.opening import open_table

    for name in ("data.csv", "data.parquet"):
        source = open_table(released[0] / name)
        source.check(small.declared)
        assert len(source.load(small.declared).frame) == 120


def test_the_parquet_says_what_it_is(released, small):
    metadata = pq.read_schema(released[0] / "data.parquet").metadata
    assert metadata[b"watermark"].decode() == small.plan.guarantee.watermark
    assert metadata[b"guarantee"].decode() == small.plan.guarantee.sentence


def test_the_dictionary_names_every_column(released, small):
    written = json.loads((released[0] / "dictionary.json").read_text())
    assert written["watermark"] == small.plan.guarantee.watermark
    columns = {column["name"]: column for column in written["columns"]}
    assert list(columns) == list(small.declared.columns)
    assert columns["job"]["values"] == ["cook", "nurse", "=cmd", "Other"]
    assert columns["job"]["missing"] == ["?"]
    assert columns["day"]["bounds"] == ["2020-01-01", "2023-12-31"]
    assert columns["income"]["roles"] == ["target", "condition"]
    assert columns["job"]["description"] is None


def test_what_columns_mean_is_on_the_card_and_in_the_dictionary(small, tmp_path):
    columns = {
        name: column.model_copy(update={"description": f"what <{name}> means"} if name in ("job", "income") else {})
        for name, column in small.declared.columns.items()
    }
    schema = small.declared.model_copy(update={"columns": columns})
    assert schema.sha256 != small.declared.sha256
    syn = db.fit(small.frame(), db.plan(schema, method="gan", **small.tiny), ledger=small.book(tmp_path))
    db.release(syn, tmp_path / "bundle", n=5)
    assert read_card(tmp_path / "bundle")["columns"] == {
        "job": "what <job> means", "income": "what <income> means"
    }  # fmt: skip
    written = json.loads((tmp_path / "bundle" / "dictionary.json").read_text())
    said = {column["name"]: column["description"] for column in written["columns"]}
    assert {name: text for name, text in said.items() if text} == read_card(tmp_path / "bundle")["columns"]
    assert "what &lt;job&gt; means" in (tmp_path / "bundle" / "card.html").read_text()


def test_the_ledger_shows_a_release_by_the_entry_that_its_card_names(released):
    text = budget.show(released[1]).text
    (line,) = (each for each in text.splitlines() if " released from entry " in each)
    card = read_card(released[0])
    assert f"card ledger {card['ledger']['head_sha256'][:12]}…" in line
    assert "data.csv, data.parquet" in line
    assert "nonce" not in line


def test_what_verify_says_of_files_and_price(released):
    text = verify_command.verify(released[0], ledger=released[1]).text
    assert f"its {len(BUNDLE)} files are its card and those that the card lists" in text
    assert "computed by a second program (dp-accounting)" in text
    claimed = read_card(released[0])["guarantee"]["epsilon"]
    assert f"below the claimed {claimed:.4g}" in text or f"as claimed ({claimed:.4g})" in text
    assert verify_command._price(0.99968, 1.0) == (
        " its accesses cost ε = 0.9997, below the claimed 1, computed by a second program (dp-accounting);"
    )
    assert "as claimed (1)" in verify_command._price(1.00001, 1.0)
    assert verify_command._price(None, None) == ""


def test_a_terminal_says_the_plain_words_first(released, small):
    plain, formal = opening(read_card(released[0])["guarantee"], small.declared).split("\n")
    assert plain.startswith("Suppose that a coin decides whether the records of one ")
    assert formal == read_card(released[0])["guarantee"]["sentence"]
    unsaid = {"kind": "none", "sentence": "No privacy guarantee. Do not publish."}
    assert opening(unsaid, small.declared) == unsaid["sentence"]


def test_a_seed_makes_the_rows_repeatable(small, released, tmp_path):
    run, _ = small.copies(tmp_path)
    db.release(db.load(run), tmp_path / "bundle", n=120, seed=1)
    assert (tmp_path / "bundle" / "data.csv").read_bytes() == (released[0] / "data.csv").read_bytes()


@pytest.mark.parametrize("formats", [["csv"], ["parquet"], "csv", ("parquet", "csv", "csv")])
def test_formats_can_be_chosen(small, tmp_path, formats):
    run, ledger = small.copies(tmp_path)
    db.release(db.load(run), tmp_path / "bundle", n=5, formats=formats)
    data = {path.name for path in (tmp_path / "bundle").glob("data.*")}
    assert data == {f"data.{form}" for form in ([formats] if isinstance(formats, str) else formats)}
    assert verify(tmp_path / "bundle", ledger=ledger)["files"] == len(data) + 2 + len(NAMES)


def test_internal_files_are_never_read(small, tmp_path):
    run, _ = small.copies(tmp_path)
    shutil.rmtree(run / "internal")
    db.release(db.load(run), tmp_path / "bundle", n=5)


def test_the_ledger_records_every_release(small, tmp_path):
    run, ledger = small.copies(tmp_path)
    before = db.Ledger.open(ledger).spent
    for name in ("one", "two"):
        db.release(db.load(run), tmp_path / name, n=5)
    book = db.Ledger.open(ledger)
    assert book.spent == before
    assert [record.kind for record in book.entries][-2:] == ["release", "release"]
    assert book.covers_all_releases
    assert read_card(tmp_path / "two")["ledger"]["head_sha256"] == book.head[1]


def test_a_saved_copy_can_be_released_too(small, tmp_path):
    run, ledger = small.copies(tmp_path)
    db.load(run).save(tmp_path / "copy")
    db.release(db.load(tmp_path / "copy"), tmp_path / "bundle", n=5)
    assert verify(tmp_path / "bundle", ledger=ledger)["ledger"]


def test_a_ledger_that_has_moved_is_named(small, tmp_path):
    run, ledger = small.copies(tmp_path)
    ledger.rename(tmp_path / "moved.ledger")
    with pytest.raises(LedgerError, match="--ledger"):
        db.release(db.load(run), tmp_path / "bundle", n=5)
    assert not (tmp_path / "bundle").exists()
    db.release(db.load(run), tmp_path / "bundle", n=5, ledger=tmp_path / "moved.ledger")


def test_a_run_without_a_guarantee_is_marked_everywhere(small, tmp_path):
    ledger = small.book(tmp_path)
    gan = db.plan(small.declared, method="gan", **small.tiny)
    syn = db.fit(small.frame(), gan, ledger=ledger)
    assert ledger.covers_all_releases
    db.release(syn, tmp_path / "bundle", n=30)
    mark, sentence = "no privacy guarantee: do not publish", "No privacy guarantee. Do not publish."
    assert mark in (tmp_path / "bundle" / "card.json").read_text()
    assert mark in (tmp_path / "bundle" / "dictionary.json").read_text()
    assert sentence in (tmp_path / "bundle" / "card.html").read_text()
    assert mark in pq.read_schema(tmp_path / "bundle" / "data.parquet").metadata[b"watermark"].decode()
    assert read_card(tmp_path / "bundle")["guarantee"]["epsilon"] is None
    assert not ledger.covers_all_releases
    assert "no longer covers all releases" in ledger.coverage
    assert verify(tmp_path / "bundle", ledger=ledger)["guarantee"] == sentence


# -- what a spreadsheet would run ----------------------------------------------------------------------


def test_formulas_are_defused_on_request(small, tmp_path):
    run, _ = small.copies(tmp_path)
    syn = db.load(run)
    db.release(syn, tmp_path / "plain", n=200, seed=1, formats=["csv"])
    db.release(syn, tmp_path / "bundle", n=200, seed=1, formats=["csv"], spreadsheet_safe=True)
    plain = rows_of(tmp_path / "plain" / "data.csv")
    made = rows_of(tmp_path / "bundle" / "data.csv")
    assert any(cell == "=cmd" for row in plain for cell in row)
    assert any(cell == "'=cmd" for row in made for cell in row)
    for row, harmless in zip(plain, made, strict=True):
        assert harmless == ["'=cmd" if cell == "=cmd" else cell for cell in row]


def test_the_dictionary_says_what_was_defused():
    schema = db.Schema.parse("""
doublure: 1
kind: table
units: 10
columns:
  "=SUM(A1)": {type: boolean, missing: false}
  plain: {type: boolean, missing: false}
""").resolve({})
    described = releasing.dictionary(schema, spreadsheet_safe=True)
    assert [column.get("written_as") for column in described["columns"]] == ["'=SUM(A1)", None]
    assert "apostrophe" in described["spreadsheet_safe"]
    plain = releasing.dictionary(schema)
    assert "spreadsheet_safe" not in plain
    assert all("written_as" not in column for column in plain["columns"])


def test_every_way_to_begin_a_formula_is_known(tmp_path):
    schema = db.Schema.parse("""
doublure: 1
kind: table
units: 10
columns:
  "=SUM(A1)": {type: category, values: ["=1", "+1", "-1", "@x", "plain", "'=1", "＝1"], missing: ["-"]}
  number: {type: integer, bounds: [-5, 5], missing: false}
""")
    values = ["=1", "+1", "-1", "@x", "plain", "'=1", "＝1"]
    cells = pd.Categorical([*values, None], categories=values)
    frame = pd.DataFrame({"=SUM(A1)": cells, "number": [-5, -4, -3, -2, -1, 0, 1, 2]})
    for name in ("data.csv", "data.parquet"):
        writing.write_table([frame], tmp_path / name, schema, spreadsheet_safe=True)
    rows = rows_of(tmp_path / "data.csv")
    assert rows[0] == ["'=SUM(A1)", "number"]
    assert [row[0] for row in rows[1:]] == ["'=1", "'+1", "'-1", "'@x", "plain", "'=1", "'＝1", ""]
    assert [row[1] for row in rows[1:]] == ["-5", "-4", "-3", "-2", "-1", "0", "1", "2"]
    stored = pd.read_parquet(tmp_path / "data.parquet")
    assert list(stored.columns) == ["'=SUM(A1)", "number"]
    assert stored["number"].tolist() == frame["number"].tolist()
    writing.write_table([frame], tmp_path / "as-is.csv", schema)
    assert [row[0] for row in rows_of(tmp_path / "as-is.csv")] == ["=SUM(A1)", *values, "-"]


def test_a_day_is_written_without_a_time_beside_a_text_for_missing_ones(tmp_path):
    schema = db.Schema.parse("""
doublure: 1
kind: table
units: 10
columns:
  back: {type: date, bounds: [2020-01-01, 2020-12-31], missing: [lost]}
  due: {type: date, bounds: [2020-01-01, 2020-12-31], missing: false}
""")
    days = pd.to_datetime(pd.Series(["2020-03-01", None, "2020-04-30"]))
    writing.write_table([pd.DataFrame({"back": days, "due": days.ffill()})], tmp_path / "data.csv", schema)
    rows = rows_of(tmp_path / "data.csv")
    assert rows[1::2] == [["2020-03-01", "2020-03-01"], ["2020-04-30", "2020-04-30"]]
    assert rows[2] == ["lost", "2020-03-01"]


# -- when it does not come about ----------------------------------------------------------------------


class Stop(BaseException):
    """What a signal does."""


@pytest.mark.parametrize("error", [Stop(), KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()])
@pytest.mark.parametrize("place", ["data", "dictionary", "ledger", "card", "rename"])
def test_an_interrupted_release_leaves_nothing(small, tmp_path, monkeypatch, place, error):
    run, _ = small.copies(tmp_path)
    syn = db.load(run)

    def fails(*_: object, **__: object) -> None:
        raise error

    owner, name = {
        "data": (releasing, "write_released"),
        "dictionary": (releasing, "dictionary"),
        "ledger": (db.Ledger, "record_release"),
        "card": (issuing, "write_page"),
        "rename": (Path, "rename"),
    }[place]
    before = {path.name for path in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails)
        with pytest.raises((type(error), InputError)) as caught:
            db.release(syn, tmp_path / "bundle", n=5)
    assert {path.name for path in tmp_path.iterdir()} == before
    if isinstance(error, OSError):
        assert "no space left" in str(caught.value)
    db.release(syn, tmp_path / "bundle", n=5)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"n": 0}, "n"),
        ({"n": -5}, "n"),
        ({"n": 2.5}, "n"),
        ({"n": True}, "n"),
        ({"n": 5, "formats": ["docx"]}, "format"),
        ({"n": 5, "formats": []}, "format"),
        ({"n": 5, "seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused(small, tmp_path, changes, field):
    run, ledger = small.copies(tmp_path)
    before = ledger.read_bytes()
    with pytest.raises(SettingError) as caught:
        db.release(db.load(run), tmp_path / "bundle", **changes)
    assert caught.value.field == field
    assert not (tmp_path / "bundle").exists()
    assert ledger.read_bytes() == before


def test_a_folder_with_something_in_it_is_never_used(small, tmp_path, monkeypatch):
    run, _ = small.copies(tmp_path)
    for target in (run, tmp_path / "people.ledger"):
        with pytest.raises(InputError, match="is not empty"):
            db.release(db.load(run), target, n=5)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    db.release(db.load(run), "bundle", n=5)
    assert {path.name for path in (tmp_path / "empty" / "bundle").iterdir()} == BUNDLE


def test_a_run_of_another_plan_than_the_ledger_paid_for_is_refused(small, tmp_path):
    run, ledger = small.copies(tmp_path)
    syn = db.load(run)
    other = db.plan(small.declared, method="dpgan", epsilon=1.0, delta=1e-4, accountant="rdp", **small.tiny)
    placement = db.Synthesizer(
        schema=syn.schema, plan=other, guarantee=other.guarantee, generator=syn.generator, run=syn.run
    )
    before = ledger.read_bytes()
    with pytest.raises(RunFolderError, match="not the plan that the ledger paid for"):
        db.release(placement, tmp_path / "bundle", n=5)
    assert ledger.read_bytes() == before


def test_a_synthesizer_without_a_ledger_entry_is_refused(small, tmp_path):
    syn = db.load(small.run)
    orphan = db.Synthesizer(schema=syn.schema, plan=syn.plan, guarantee=syn.guarantee, generator=syn.generator)
    with pytest.raises(RunFolderError, match="names no ledger entry"):
        db.release(orphan, tmp_path / "bundle", n=5, ledger=small.ledger)


# -- verifying ----------------------------------------------------------------------


def test_what_its_accesses_cost_is_computed_again(mine):
    bundle, _ = mine
    card = read_card(bundle)
    checked = verify(bundle)
    assert 1.5 < checked["recomputed_epsilon"] < card["guarantee"]["epsilon"] == 2.0  # priced by rdp, which is looser
    for change in (
        {"noise_multiplier": card["touches"][0]["event"]["noise_multiplier"] / 2},
        {"steps": 600},
        {"sample_rate": 1.0},
    ):
        other = card | {"touches": [card["touches"][0] | {"event": card["touches"][0]["event"] | change}]}
        write_card(bundle, other)
        with pytest.raises(GateFailed, match="and its accesses cost"):
            verify(bundle)


@pytest.mark.parametrize("said", ["yes", 2, [], {}])
def test_a_card_that_says_nothing_of_what_ran_is_refused(mine, said):
    bundle, _ = mine
    write_card(bundle, read_card(bundle) | {"executed": said})
    with pytest.raises(GateFailed, match="what ran"):
        verify(bundle)


def test_a_card_with_fewer_steps_than_it_claims_is_refused(mine):
    bundle, _ = mine
    card = read_card(bundle)
    (touch,) = card["touches"]
    write_card(bundle, card | {"touches": [touch | {"event": touch["event"] | {"steps": touch["event"]["steps"] - 1}}]})
    with pytest.raises(GateFailed, match="steps, and its accesses have"):
        verify(bundle)


@pytest.mark.parametrize(
    "touches",
    [None, [3], [], [{"event": None}], [{"event": 3}], [{"event": {"type": "gaussian"}}], [{"event": {"type": "x"}}]],
)
def test_a_card_without_accesses_that_can_be_read_is_refused(mine, touches):
    bundle, _ = mine
    write_card(bundle, read_card(bundle) | {"touches": touches})
    with pytest.raises(GateFailed, match="what touched private data"):
        verify(bundle)


def test_an_intact_bundle_is_intact(released):
    bundle, ledger = released
    checked = verify(bundle)
    assert checked.pop("recomputed_epsilon") < 2.0
    sentence = read_card(bundle)["guarantee"]["sentence"]
    fingerprint = files_sha256(bundle / "card.json")
    assert checked.pop("origin").startswith("who wrote the card is not checked: compare this fingerprint with the pub")
    assert checked == {
        "files": 7, "guarantee": sentence, "ledger": None, "epsilon": 2.0, "executed": True, "signature": None,
        "rules": {"kept": 0, "unchecked": 0},
        "page": "drawn again", "fingerprint": fingerprint,
    }  # fmt: skip
    assert verify(bundle, ledger=ledger)["ledger"] == read_card(bundle)["ledger"]
    assert verify(str(bundle), ledger=db.Ledger.open(ledger))["ledger"]


def test_an_intact_bundle_stays_intact_as_the_ledger_grows(small, tmp_path):
    run, ledger = small.copies(tmp_path)
    db.release(db.load(run), tmp_path / "one", n=5)
    db.release(db.load(run), tmp_path / "two", n=5)
    assert verify(tmp_path / "one", ledger=ledger)["ledger"]


@pytest.mark.parametrize("name", sorted(BUNDLE - {"card.json"}))
@pytest.mark.parametrize("how", ["append", "flip", "empty", "remove", "link", "folder"])
def test_a_changed_file_is_found(mine, tmp_path, name, how):
    path = mine[0] / name
    content = path.read_bytes()
    path.unlink()
    if how == "append":
        path.write_bytes(content + b"\n")
    elif how == "flip":
        path.write_bytes(content[:-10] + bytes([content[-10] ^ 1]) + content[-9:])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "folder":
        path.mkdir()
    with pytest.raises(GateFailed) as caught:
        verify(mine[0])
    assert caught.value.field == name
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("name", ["more.csv", ".hidden", "internal", "card.json.bak"])
def test_an_added_file_is_found(mine, name):
    (mine[0] / name).write_text("more")
    with pytest.raises(GateFailed, match="not on its card"):
        verify(mine[0])


def test_a_card_that_is_a_link_is_found(mine, tmp_path):
    (mine[0] / "card.json").rename(tmp_path / "elsewhere.json")
    (mine[0] / "card.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(GateFailed, match="is a link"):
        verify(mine[0])


CLAIMS = {
    "a better epsilon": lambda card: card["guarantee"].update(epsilon=0.01),
    "a better sentence": lambda card: card["guarantee"].update(sentence="Perfectly private."),
    "no sentence": lambda card: card["guarantee"].pop("sentence"),
    "another kind": lambda card: card["guarantee"].update(kind="none"),
    "another mark": lambda card: card.update(watermark="Real data"),
    "no guarantee": lambda card: card.update(guarantee=None),
    "a guarantee of text": lambda card: card.update(guarantee="perfect"),
    "files that are none": lambda card: card.update(files="all"),
    "no files": lambda card: card.update(files=[]),
    "a file elsewhere": lambda card: card["files"].append(
        {"path": "../people.ledger", "sha256": "0" * 64, "rows": None}
    ),
    "itself": lambda card: card["files"].append({"path": "card.json", "sha256": "0" * 64, "rows": None}),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_card_that_does_not_hold_together_is_found(mine, name):
    card = read_card(mine[0])
    CLAIMS[name](card)
    write_card(mine[0], card)
    with pytest.raises(GateFailed):
        verify(mine[0])


def test_the_mark_of_an_earlier_version_is_known(mine):
    card = read_card(mine[0])
    assert verifying._checked_claim(card | {"watermark": card["watermark"].replace("Synthetic", "Artificial")})
    with pytest.raises(GateFailed, match="goes with the guarantee"):
        verifying._checked_claim(card | {"watermark": "Artificial data"})


@pytest.mark.parametrize("content", [b"", b"{", b"\x00\xff", b"[]", b'{"version": 1}', b'{"version": NaN}'])
def test_a_card_that_is_none_is_found(mine, content):
    (mine[0] / "card.json").write_bytes(content)
    with pytest.raises(GateFailed):
        verify(mine[0])


def consistently(card):
    """Claim less than was paid, in every place that agrees with it."""
    better = db.Guarantee.from_json({**card["guarantee"], "epsilon": 0.01, "sentence": None}).to_json()
    card["guarantee"] = {key: better[key] for key in card["guarantee"]}


SAID = {
    "title": lambda card: card.update(title="Real people"),
    "contact": lambda card: card.update(contact="nobody"),
    "method": lambda card: card.update(method="magic"),
    "limits": lambda card: card.update(limits=[]),
    "touches": lambda card: card.update(touches=[]),
    "a consistent claim": consistently,
    "another entry": lambda card: card["ledger"].update(sequence=2),
    "an entry that is none": lambda card: card["ledger"].update(sequence="last"),
    "no hash": lambda card: card["ledger"].pop("head_sha256"),
    "a hash that is none": lambda card: card["ledger"].update(head_sha256=["0"]),
    "another hash": lambda card: card["ledger"].update(head_sha256="0" * 64),
    "another data set": lambda card: card["ledger"].update(dataset="others"),
    "no entry": lambda card: card.update(ledger=None),
    "entry of text": lambda card: card.update(ledger="L"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_card_that_says_something_else_is_found_by_the_ledger(mine, name):
    card = read_card(mine[0])
    SAID[name](card)
    write_card(mine[0], card)
    with pytest.raises(GateFailed):
        verify(mine[0], ledger=mine[1])


def files_sha256(path):
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_ledger_that_was_put_back_is_found(small, mine):
    shutil.copy(small.ledger, mine[1])  # as it was before the release
    with pytest.raises(GateFailed, match="cut short, put back or rewritten"):
        verify(mine[0], ledger=mine[1])


def test_a_ledger_that_was_edited_is_found(mine):
    mine[1].write_text(mine[1].read_text().replace('"epsilon":2.0', '"epsilon":1.0'))
    with pytest.raises(GateFailed):
        verify(mine[0], ledger=mine[1])


def test_what_is_not_there_is_bad_input(mine, tmp_path):
    with pytest.raises(LedgerError, match="no such file"):
        verify(mine[0], ledger=tmp_path / "none")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(RunFolderError, match="is not a bundle"):
            verify(path)


def test_another_version_is_bad_input(mine):
    write_card(mine[0], read_card(mine[0]) | {"version": 2})
    with pytest.raises(DoublureError, match="version") as caught:
        verify(mine[0])
    assert caught.value.exit_code == 2


def test_a_staged_bundle_has_a_name_nobody_can_guess(tmp_path):
    assert files.temporary_path(tmp_path / "bundle") != files.temporary_path(tmp_path / "bundle")
