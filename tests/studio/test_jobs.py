"""Commands that run as processes of their own, and outlive whoever started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doublure.studio import script
from doublure.studio.jobs import StudioJob, StudioJobs
from doublure.studio.project import Project
from doublure.studio.script import operand

SCHEMA = """
doublure: 1
kind: table
unit: {name: record, id: none}
units: 300
columns:
  sex: {type: category, values: [Female, Male], missing: false}
  age: {type: integer, bounds: [0, 100], missing: false}
"""


@pytest.fixture
def jobs(tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    return StudioJobs(tmp_path / ".studio" / "jobs", tmp_path)


def ended(job: StudioJob, seconds: float = 60) -> StudioJob:
    until = time.monotonic() + seconds
    while job.alive:
        assert time.monotonic() < until, job.messages
        time.sleep(0.05)
    return job


def test_a_command_ends_with_its_result_or_its_one_line(jobs):
    words = ["keys", "new", "-o", "key"]
    done = ended(jobs.start(words, step="release"))
    assert (done.state, done.line, done.about) == ("done", "", {"step": "release"})
    assert (jobs.folder / "key").is_file()
    assert done.result
    assert done.command == "doublure keys new -o key"
    told = json.loads((done.path / "job.json").read_text())
    assert set(told) == {"arguments", "about", "began"}
    refused = ended(jobs.start(words))
    assert refused.state == "refused"
    assert "key" in refused.line
    assert "\n" not in refused.line
    assert [each.name for each in jobs.all()] == [refused.name, done.name]
    assert jobs.latest("keys", step="release").name == done.name
    assert jobs.find(done.name).path == done.path
    assert all(each.stat().st_mode & 0o077 == 0 for each in (jobs.room.parent, done.path) if each == done.path)


def test_modules_in_the_folder_are_not_imported(jobs):
    for name in ("json.py", "typer.py", "doublure.py"):
        (jobs.folder / name).write_text(f"open({str(jobs.folder / 'ran')!r}, 'w')")
    assert ended(jobs.start(["keys", "new", "-o", "key"])).state == "done"
    assert not (jobs.folder / "ran").exists()


def test_a_killed_process_is_told_from_one_that_said_something(jobs):
    job = jobs.start(["plan", "s.yaml", "--epsilon", "1", "--delta", "1e-6"])
    assert job.state == "running"
    os.kill(int((job.path / "process").read_text()), signal.SIGKILL)
    assert ended(job).state == "killed"
    assert job.result == {}
    assert job.line == ""
    job.forget()
    assert jobs.all() == []


def test_a_job_outlives_the_server_that_started_it(jobs):
    script = (
        "import sys; from pathlib import Path; from doublure.studio.jobs import StudioJobs; import os\n"
        f"job = StudioJobs(Path({str(jobs.room)!r}), Path({str(jobs.folder)!r})).start("
        "['keys', 'new', '-o', 'key'])\n"
        "print(job.name, flush=True); os.kill(os.getpid(), 9)"
    )
    place = str(Path(__file__).parents[2] / "src")
    server = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": place}
    )
    job = jobs.find(server.stdout.strip())
    assert job is not None, server.stderr
    assert ended(job).state == "done"


def test_stopping_is_what_ctrl_c_does(jobs):
    job = jobs.start(["plan", "s.yaml", "--epsilon", "1", "--delta", "1e-6"])
    job.stop()
    assert ended(job).state in ("stopped", "killed", "done")  # done before the signal, or not yet listening


def test_names_that_look_like_flags_are_no_flags(jobs, forked_here):
    assert [operand(each) for each in ("-rf.csv", "--help", "a b.csv")] == ["./-rf.csv", "./--help", "a b.csv"]
    (jobs.folder / "--version").write_text("")
    assert ended(jobs.start(["verify", operand("--version")])).state == "refused"


def test_a_folder_that_is_not_writable_is_one_line(tmp_path):
    from doublure.errors import InputError

    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        StudioJobs(tmp_path / "file" / "jobs", tmp_path).start(["doctor"])
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_no_place_of_python_is_relative_to_the_folder(jobs, monkeypatch):
    (jobs.folder / "src").mkdir()
    for place in (jobs.folder, jobs.folder / "src"):
        (place / "typer.py").write_text(f"open({str(jobs.folder / 'ran')!r}, 'w')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "src", ""]))
    assert ended(jobs.start(["keys", "new", "-o", "key"])).state == "done"
    assert not (jobs.folder / "ran").exists()


def test_what_commands_said_is_its_owners_alone(jobs, forked_here):
    job = ended(jobs.start(["keys", "new", "-o", "key"]))
    assert {each.stat().st_mode & 0o777 for each in (job.path, jobs.room, jobs.room.parent)} == {0o700}
    assert {each.stat().st_mode & 0o777 for each in job.path.iterdir()} == {0o600}


def test_a_run_with_a_name_like_a_flag_is_no_flag():
    project = Project(
        ledger="--l", answers={"fit": {"run": "--run"}, "look": {"real": "-r.csv"}, "release": {"bundle": "--b"}}
    )
    for words in (script.evaluate_words(project), script.audit_words(project), script.release_words(project)):
        assert words[1] == "./--run"
    assert script.verify_words(project)[1] == "./--b"
