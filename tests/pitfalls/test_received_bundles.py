"""A received bundle writes nothing beside its folder, and its page runs, loads and reads nothing; planted faults."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from planting import plant

from doublure.errors import DoublureError
from doublure.releasing import archive
from doublure.studio import frames, jobs
from doublure.studio.folder import ProjectFolder
from doublure.studio.steps import received
from doublure.studio.visit import Studio, Visit


def write(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in (("b/card.json", "{}"), *entries):
            file.writestr(name, content)
    return path


def linked(name, target):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o120777 << 16
    return entry, target


def hostile(folder):
    """Return archives that have to be refused, by what they do."""
    return {
        "leads out": write(folder / "a.zip", ("../escaped.txt", "x")),
        "leads to the root": write(folder / "b.zip", ("/tmp/escaped.txt", "x")),
        "leads out on Windows": write(folder / "c.zip", ("b/x\\..\\escaped.txt", "x")),
        "is a link": write(folder / "d.zip", linked("b/data.csv", "/etc/passwd")),
        "has two spellings": write(folder / "e.zip", ("b/data.csv", "1"), ("b/DATA.csv", "2")),
        "has a folder": write(folder / "f.zip", ("b/internal/x", "1")),
        "is a bomb of text": write(folder / "g.zip", ("b/README.md", b"0" * (archive._LARGEST_TEXT + 1))),
    }


def check_archives(folder):
    folder.mkdir()
    for what, path in hostile(folder).items():
        with pytest.raises(DoublureError):
            archive.unpack(path, folder / "out")
        assert not (folder / "out").exists(), what
    assert not list(folder.rglob("escaped.txt"))
    assert archive.unpack(write(folder / "good.zip", ("b/data.csv", "1")), folder / "out").is_dir()


def test_hostile_archives_are_refused_whole(tmp_path):
    check_archives(tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("_fault", ('"\\\\" in name', "False")),
        ("_fault", ("mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode)", "False")),
        ("_fault", ("entry.file_size > _LARGEST_TEXT", "False")),
        ("_checked", ("spellings[entry.filename.casefold()] > 1", "False")),
        ("_checked", ("parts[0] != FOLDER", "False")),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else each,
)
def test_an_archive_reader_with_a_hole_is_caught(tmp_path, monkeypatch, name, edit):
    plant(monkeypatch, archive, name, edit)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_archives(tmp_path / "a")


def check_frames(folder):
    pytest.importorskip("starlette")
    folder.mkdir()
    (folder / "card.html").write_text("<script>1</script>")
    (folder / "link.html").symlink_to(folder / "card.html")
    inside = ProjectFolder(folder)
    policy = frames.framed_file(inside, "card.html").headers["content-security-policy"]
    said = {part.split()[0]: part.split()[1:] for part in policy.split(";")}
    assert said["sandbox"] == []
    assert said["default-src"] == ["'none'"]
    assert "script-src" not in said
    with pytest.raises(DoublureError):
        frames.framed_file(inside, "link.html")


def test_a_framed_page_may_do_nothing(tmp_path):
    check_frames(tmp_path / "a")
    for template in Path(frames.__file__).parent.glob("templates/*.j2"):
        text = template.read_text()
        assert text.count("<iframe") == text.count('<iframe class="sheet-frame" sandbox loading'), template.name
        assert "allow-" not in text, template.name


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (
            frames,
            "framed",
            (
                'headers={"content-security-policy": POLICY}',
                'headers={"content-security-policy": "default-src \'none\'"}',
            ),
        ),
        (ProjectFolder, "open", ("os.open(last, _FILE, dir_fd=at)", "os.open(last, os.O_RDONLY, dir_fd=at)")),
    ],
)
def test_a_frame_with_a_hole_is_caught(tmp_path, monkeypatch, owner, name, edit):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, KeyError, pytest.fail.Exception)):
        check_frames(tmp_path / "a")


def check_unchecked_card(folder):
    """A card is not shown before its check has passed, nor once it differs from what was checked."""
    pytest.importorskip("starlette")
    (folder / "bundle").mkdir(parents=True)
    for name in ("card.json", "card.html"):
        (folder / "bundle" / name).write_text("{}")
    page = hashlib.sha256(b"{}").hexdigest()
    (folder / "bundle" / "card.json").write_text(json.dumps({"files": [{"path": "card.html", "sha256": page}]}))
    visit = Visit(studio=Studio(ProjectFolder(folder)), query={"bundle": "bundle"})
    with pytest.raises(DoublureError):
        received.card(visit)
    job = folder / ".studio" / "jobs" / "1"
    job.mkdir(parents=True)
    told = {"arguments": ["verify", "bundle"], "about": {"received": "bundle"}, "began": ""}
    (job / "job.json").write_text(json.dumps(told))
    (job / "lock").write_text("")
    passed = received._fingerprint(folder / "bundle")
    for own, fingerprint in (
        ({"1"}, "of another card"),
        ({"1"}, None),
        (set(), passed),
    ):  # the last came with the folder
        visit.studio.own_jobs.clear()
        visit.studio.own_jobs.update(own)
        (job / "outcome.json").write_text(json.dumps({"ok": True, "result": {"fingerprint": fingerprint}}))
        with pytest.raises(DoublureError):
            received.card(visit)
    visit.studio.own_jobs.add("1")
    assert received.card(visit).status_code == 200
    (folder / "bundle" / "card.html").write_text("another page")
    with pytest.raises(DoublureError):
        received.card(visit)


def test_a_card_is_shown_after_its_check_alone(tmp_path):
    check_unchecked_card(tmp_path / "a")


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (received, "_is_of", ('job.result.get("fingerprint") == fingerprint', "True")),
        (received, "_is_of", ('job.result.get("fingerprint") == fingerprint', "bool(job.result)")),
        (received, "card", ("_sha256(shown) not in _hashes(listed)", "False")),
        (jobs.StudioJobs, "latest_own", ("found.name in self._own", "True")),
    ],
)
def test_a_card_shown_unchecked_is_caught(tmp_path, monkeypatch, owner, name, edit):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises(pytest.fail.Exception):
        check_unchecked_card(tmp_path / "a")


class Recorded(Exception):
    """Raised in place of a process."""


def check_words(folder, monkeypatch):
    """A command imports nothing of the data's folder, is given no shell, and says nothing to the server's streams."""
    asked = {}

    def popen(words, **how):
        asked.update(words=words, **how)
        raise Recorded

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(Recorded):
        jobs.StudioJobs(folder / "jobs", folder).start(["verify", "a; touch b"])
    assert "-P" in asked["words"]
    assert asked["words"].index("-P") < asked["words"].index("-m")
    assert asked["words"][-2:] == ["a; touch b", "--json"]
    assert not asked.get("shell")
    assert asked["stdout"] is not None
    assert asked["stderr"] is not None
    shutil.rmtree(folder / "jobs")


def test_commands_are_words_and_import_nothing_of_the_folder(tmp_path, monkeypatch):
    check_words(tmp_path, monkeypatch)


def test_a_command_that_imports_from_the_folder_is_caught(tmp_path, monkeypatch):
    plant(monkeypatch, jobs.StudioJobs, "start", ('"-P"', '"-B"'))
    with pytest.raises((AssertionError, ValueError)):
        check_words(tmp_path, monkeypatch)
