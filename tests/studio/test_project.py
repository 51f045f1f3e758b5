"""project.yaml: private, atomic, one version at a time, and enough to go on without the studio."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import doublure as db
from doublure.errors import InputError
from doublure.studio.project import FILE, Project
from doublure.studio.script import budget, data, schema


def test_a_project_comes_back_as_it_was(described):
    written = (described.studio.root / FILE).read_text(encoding="utf-8")
    read = Project.load(described.studio.root / FILE)
    assert read == described.project
    assert read.to_yaml() == written


@pytest.mark.parametrize("name", [FILE, "commands.sh", "visits.schema.yaml"])
def test_what_is_written_is_for_its_owner_alone(described, name):
    assert (described.studio.root / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "said"),
    [("studio: 2\n", "studio"), ("studio: 1\nother: a\n", "other"), ("[", "YAML"), ("- a\n", "project.yaml")],
)
def test_a_damaged_project_is_told_in_a_line(folder, text, said):
    from studios import StudioClient

    client = StudioClient(folder)
    (folder / FILE).write_text(text)
    with pytest.raises(InputError, match=said):
        Project.load(folder / FILE)
    answer = client.get("/data")
    assert answer.status_code == 422
    assert "Traceback" not in answer.text


def test_of_two_tabs_the_later_one_is_told(chosen):
    old = chosen.project.version
    assert chosen.post("/columns/apply", version=old, do="leave_out", names=["email"], whom="ticked").status_code == 200
    answer = chosen.post("/columns/apply", version=old, do="leave_out", names=["age"], whom="ticked")
    assert answer.status_code == 409
    assert "another tab" in answer.text
    assert not chosen.project.column("age").left_out
    assert chosen.project.column("email").left_out


def test_a_change_is_undone_and_its_files_with_it(chosen):
    root = chosen.studio.root
    before = chosen.project, (root / "visits.schema.yaml").read_bytes()
    chosen.post("/columns/apply", do="leave_out", names=["age", "ward"], whom="ticked")
    assert (root / "visits.schema.yaml").read_bytes() != before[1]
    assert chosen.post("/undo", step="columns").status_code == 200
    assert (root / "visits.schema.yaml").read_bytes() == before[1]
    assert chosen.project.changed(version=0) == before[0].changed(version=0)
    assert chosen.project.version > before[0].version  # a form of before the undo is stale


def test_a_change_that_contradicts_itself_leaves_every_file(chosen):
    root = chosen.studio.root
    before = {path: path.read_bytes() for path in root.iterdir()}
    answer = chosen.post("/columns/rule", rule_kind="at_most", rule_first="sex", rule_second="age")
    assert answer.status_code == 422
    assert {path: path.read_bytes() for path in root.iterdir()} == before


def test_a_schema_that_was_edited_by_hand_is_not_written_over(chosen):
    path = chosen.studio.root / "visits.schema.yaml"
    edited = path.read_text(encoding="utf-8").replace("120", "130")
    path.write_text(edited, encoding="utf-8")
    answer = chosen.post("/columns/apply", do="leave_out", names=["ward"], whom="ticked")
    assert answer.status_code == 422
    assert "edited outside" in answer.text
    assert path.read_text(encoding="utf-8") == edited
    assert chosen.post("/data/choose", place="visits.csv", schema=path.name, form="codebook").status_code == 200
    assert chosen.studio.schema().columns["age"].bounds == (18, 130)
    assert chosen.post("/columns/apply", do="leave_out", names=["ward"], whom="ticked").status_code == 200


def test_a_draft_takes_no_name_of_another_schema(studio):
    path = studio.studio.root / "visits.schema.yaml"
    path.write_text("# by hand\n")
    assert studio.post("/data/choose", place="visits.csv", form="codebook").status_code == 200
    assert studio.project.schema_file == "visits-2.schema.yaml"
    assert path.read_text() == "# by hand\n"


def test_a_folder_that_cannot_be_written_is_told(chosen, monkeypatch):
    from doublure.support import files

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    version = chosen.project.version
    monkeypatch.setattr(files.os, "open", full)
    answer = chosen.post("/columns/apply", do="leave_out", names=["age"], whom="ticked")
    monkeypatch.undo()
    assert answer.status_code == 422
    assert "space" in answer.text
    assert chosen.project.version == version


def test_the_saved_commands_give_an_equal_plan_without_the_studio(described, tmp_path_factory):
    root = described.studio.root
    sent = {"dataset": "visits", "cap_epsilon": "3", "cap_delta": "1e-3", "epsilon": "2", "delta": "1e-4"}
    assert described.post("/budget/keep", **sent).status_code == 200
    made = db.Plan.load(root / "plan.json")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("visits.csv", "visits.schema.yaml", "commands.sh"):
        (elsewhere / name).write_bytes((root / name).read_bytes())
    program = elsewhere / "doublure"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m doublure "$@"\n')
    program.chmod(0o700)
    source = str(Path(db.__file__).parents[1])
    environment = {"PATH": f"{elsewhere}:/usr/bin:/bin", "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        ["/bin/sh", "commands.sh"],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    again = db.Plan.load(elsewhere / "plan.json")
    assert again.does_the_same_as(made)
    assert db.Ledger.open(elsewhere / "visits.ledger").cap == db.Ledger.open(root / "visits.ledger").cap


def test_the_shown_python_gives_an_equal_plan(described, monkeypatch):
    sent = {"dataset": "visits", "cap_epsilon": "3", "cap_delta": "1e-3", "epsilon": "2", "delta": "1e-4"}
    described.post("/budget/keep", **sent)
    made = db.Plan.load(described.studio.root / "plan.json")
    monkeypatch.chdir(described.studio.root)
    for said in (data(described.project), schema(described.project), budget(described.project)):
        exec(said.python, {})
    assert db.Plan.load("plan.json").does_the_same_as(made)


def test_every_screen_shows_the_same_without_the_studio(described):
    sent = {"dataset": "visits", "cap_epsilon": "3", "cap_delta": "1e-3", "epsilon": "2", "delta": "1e-4"}
    described.post("/budget/keep", **sent)
    for path in ("/data", "/people", "/columns", "/budget"):
        shown = described.get(path).text
        for part in ('id="same-commands"', "doublure ", 'id="same-python"', "import doublure as db"):
            assert part in shown, (path, part)


def test_no_cell_is_kept(described):
    described.post("/columns/misfits", owner="yes")
    for name in (FILE, "commands.sh", "visits.schema.yaml"):
        text = (described.studio.root / name).read_text(encoding="utf-8")
        assert "example.org" not in text
        assert "alert(1)" not in text
    assert yaml.safe_load((described.studio.root / FILE).read_text(encoding="utf-8"))["studio"] == 1
