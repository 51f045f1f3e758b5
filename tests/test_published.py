"""A published generator: what is in it, what it does without the private side, how a change to it is found out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors import safe_open

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import DoublureError, GateFailed, RunFolderError
from doublure.releasing.bundle import verify
from doublure.releasing.generator import publish
from doublure.support import files

FILES = {"generator.safetensors", "schema.yaml", "card.json", "card.html"}


@pytest.fixture(scope="module")
def made(small, tmp_path_factory):
    """Return a published generator and the ledger that knows it, the run gone; they are only read, or copied."""
    folder = tmp_path_factory.mktemp("published")
    run, ledger = small.copies(folder)
    assert run_guarded(app, ["release", str(run), "--generator", "-o", str(folder / "gen"), "--contact", "us"]) == 0
    shutil.rmtree(run)
    return folder / "gen", ledger


@pytest.fixture
def mine(made, tmp_path):
    """Return a copy of a published generator, to be changed."""
    return Path(shutil.copytree(made[0], tmp_path / "gen"))


def read_card(folder):
    return json.loads((folder / "card.json").read_text())


def said(words, capsys):
    """Return the exit code of a command and its one line of error."""
    code = run_guarded(app, [str(word) for word in words])
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("  ")]
    return code, "".join(lines)


def test_these_files_and_no_others(made):
    assert {path.name for path in made[0].iterdir()} == FILES
    assert {entry["path"] for entry in read_card(made[0])["files"]} == FILES - {"card.json"}


def test_it_samples_what_the_run_samples(made, small, capsys, tmp_path):
    ours, theirs = db.load(small.run), db.load(made[0])
    assert theirs.guarantee == ours.guarantee
    assert theirs.schema == ours.schema
    given = {"income": "high"}
    assert theirs.sample(50, given=given, seed=4).equals(ours.sample(50, given=given, seed=4))
    out = tmp_path / "rows.csv"
    assert said(["sample", made[0], "-n", "30", "--seed", "2", "-o", out], capsys)[0] == 0
    assert len(out.read_text().splitlines()) == 31


def test_the_card_is_a_card_and_speaks_of_a_generator(made, small):
    card, page = read_card(made[0]), (made[0] / "card.html").read_text()
    assert card["guarantee"]["sentence"] == small.plan.guarantee.sentence
    assert (card["executed"], card["contact"]) == (True, "us")
    assert card["title"] == "Generator of synthetic rows for people"
    assert any("all that is sampled from them" in limit for limit in card["limits"])
    assert "the probability of any result changes by at most a factor of" in " ".join(page.split())
    assert "making these data" not in page


def test_verifying_knows_it(made):
    checked = verify(made[0], ledger=made[1])
    assert (checked["files"], checked["executed"]) == (3, True)
    assert checked["ledger"] == read_card(made[0])["ledger"]
    assert checked["recomputed_epsilon"] is not None


def test_the_ledger_records_it_and_charges_nothing(made, small):
    book = db.Ledger.open(made[1])
    assert book.spent == db.Ledger.open(small.ledger).spent
    record = book.entries[-1]
    assert record.kind == "release"
    assert set(record.body["files"]) == {*FILES, "nonce"}


def test_nothing_of_this_machine_and_no_seed_goes_with_it(letters, tmp_path):
    """The plan of ``latentgan`` names a folder here; what is published names none, and needs none."""
    plan = letters.plan()
    ledger = db.Ledger.create(tmp_path / "l", dataset="even", epsilon=10.0, delta=1e-3)
    db.fit(letters.private, plan, ledger=ledger, out=tmp_path / "run", seed=730_411)
    assert str(letters.folder) in (tmp_path / "run/plan.json").read_text()
    publish(db.load(tmp_path / "run"), tmp_path / "gen")
    with safe_open(tmp_path / "gen/generator.safetensors", "pt") as file:
        assert set(file.metadata()) == {"doublure", "schema", "plan", "watermark"}
        assert json.loads(file.metadata()["plan"])["settings"]["public"] == ""
    for path in (tmp_path / "gen").iterdir():
        content = path.read_bytes()
        assert str(letters.folder).encode() not in content
        assert str(tmp_path).encode() not in content
        assert b"730411" not in content
    ours, theirs = (db.load(tmp_path / name).sample(9, seed=1) for name in ("run", "gen"))
    assert (ours.images == theirs.images).all()


def test_a_bayesian_run_is_published_as_it_claims(small, tmp_path):
    own = small.tiny | {"noise_multiplier": 3.0, "distances": 3}
    plan = db.plan(small.declared, method="bayesgan", epsilon=2.0, delta=1e-4, accountant="rdp", **own)
    syn = db.fit(small.frame(), plan, ledger=small.book(tmp_path, epsilon=1e4), out=tmp_path / "run")
    card = publish(syn, tmp_path / "gen").card
    assert card["guarantee"]["kind"] == syn.guarantee.kind
    assert db.load(tmp_path / "gen").guarantee == syn.guarantee
    assert verify(tmp_path / "gen", ledger=tmp_path / "people.ledger")["ledger"]


def test_a_kind_that_covers_no_generator_is_refused(small, tmp_path, capsys):
    plan = db.plan(small.declared, method="gan", **small.tiny)
    db.fit(small.frame(), plan, ledger=small.book(tmp_path), out=tmp_path / "run")
    code, line = said(["release", tmp_path / "run", "--generator", "-o", tmp_path / "gen"], capsys)
    assert code == 2
    assert "guarantee: is of kind none, which covers no generator; fit a method of kind dp" in line
    assert not (tmp_path / "gen").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--generator", "-n", "5"], "--rows"),
        (["--generator", "--format", "csv"], "--format"),
        (["--generator", "--seed", "1"], "--seed"),
        (["--generator", "--spreadsheet-safe"], "--spreadsheet-safe"),
        ([], "-n"),
    ],
)
def test_what_is_said_of_records_is_refused(small, tmp_path, capsys, words, named):
    code, line = said(["release", small.run, "-o", tmp_path / "gen", *words], capsys)
    assert (code, named in line) == (2, True)
    assert not (tmp_path / "gen").exists()


@pytest.mark.parametrize("name", ["generator.safetensors", "schema.yaml"])
def test_a_changed_file_is_found_out(mine, name):
    content = bytearray((mine / name).read_bytes())
    content[-1] ^= 1
    (mine / name).write_bytes(content)
    with pytest.raises(RunFolderError, match="is not the file that the card names"):
        db.load(mine)
    with pytest.raises(GateFailed):
        verify(mine)


@pytest.mark.parametrize(
    "changed",
    [
        {"guarantee": None}, {"files": []}, {"files": 3}, {"version": 2},
        {"guarantee": {"kind": "dp"}},
    ],
)  # fmt: skip
def test_a_changed_card_is_refused(mine, changed):
    files.write_json(mine / "card.json", read_card(mine) | changed)
    with pytest.raises(DoublureError):
        verify(mine)
    with pytest.raises(DoublureError):
        db.load(mine)


def test_a_card_that_claims_less_epsilon_is_refused(mine):
    half = db.load(mine).guarantee.model_copy(update={"epsilon": 1.0})
    files.write_json(mine / "card.json", read_card(mine) | {"guarantee": half.to_json()})
    with pytest.raises(RunFolderError, match="is not what the plan gives"):
        db.load(mine)


def test_what_lacks_a_run_cannot_be_released_or_saved_again(made, tmp_path):
    syn = db.load(made[0])
    for act in (
        lambda: db.release(syn, tmp_path / "out", n=5),
        lambda: publish(syn, tmp_path / "out"),
        lambda: syn.save(tmp_path / "out"),
    ):
        with pytest.raises(RunFolderError, match="is a published generator"):
            act()
    assert not (tmp_path / "out").exists()


def test_no_report_lands_among_what_is_published(mine, small, tmp_path, capsys):
    real = small.csv(tmp_path)
    for words in (
        ["evaluate", mine, "--real", real],
        ["inspect", mine],
        ["audit", mine, "--real", real, "--attack", "quick"],
    ):
        code, line = said(words, capsys)
        assert code == 2
        assert "-o: is needed" in line or "is not a run folder" in line
    assert {path.name for path in mine.iterdir()} == FILES


def test_it_is_evaluated_as_a_run_is(made, small, tmp_path, capsys):
    words = ["evaluate", made[0], "--real", small.csv(tmp_path), "-o", tmp_path / "page.html"]
    assert said(words, capsys)[0] == 0
    assert (tmp_path / "page.json").is_file()
    assert verify(made[0], ledger=made[1])["files"] == 3
