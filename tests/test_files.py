"""A failed write says what to do about it, names what was asked for, and leaves nothing half-written."""

from __future__ import annotations

import errno
import os

import pytest

from doublure.errors import InputError
from doublure.support import files


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some of your quota"),
        (errno.EFBIG, "write less"),
        (errno.ENOENT, "make its folder first"),
        (errno.ENOTDIR, "does not lead through a file"),
        (errno.EISDIR, "give the name of a file"),
        (errno.ENOTEMPTY, "choose another -o"),
        (errno.EACCES, "may write to"),
        (errno.EPERM, "may write to"),
        (errno.EROFS, "not read-only"),
        (errno.ENAMETOOLONG, "shorter name"),
        (errno.EIO, "check the path and the disk"),
    ],
)
def test_the_remedy_fits_what_is_wrong(tmp_path, monkeypatch, code, remedy):
    def fails(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "fsync", fails)
    with pytest.raises(files.Unwritable) as caught:
        files.write_atomic(tmp_path / "out", lambda file: file.write(b"x"))
    monkeypatch.undo()
    assert remedy in caught.value.remedy
    assert ("space" in caught.value.remedy) == (code == errno.ENOSPC)
    assert caught.value.field == str(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def places(folder):
    (folder / "file").write_text("x")
    (folder / "folder").mkdir()
    return {
        "nowhere/out": errno.ENOENT,
        "file/out": errno.ENOTDIR,
        "folder": errno.EISDIR,
        "x" * 300: errno.ENAMETOOLONG,
        "nowhere/" + "x" * 300: errno.ENOENT,
    }


def test_a_place_that_cannot_be_written_is_found_before_the_work(tmp_path):
    for name, code in places(tmp_path).items():
        with pytest.raises(files.Unwritable) as caught:
            files.refuse_unwritable(tmp_path / name)
        assert caught.value.reason.errno == code, name
    files.refuse_unwritable(tmp_path / "file")
    files.refuse_unwritable(tmp_path / "new")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(files.Unwritable, match="may write to"):
        files.refuse_unwritable(tmp_path / "out")
    tmp_path.chmod(0o700)


def test_what_is_read_is_not_written_over(tmp_path):
    (tmp_path / "people.csv").write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    for out in ("people.csv", "link.csv"):
        with pytest.raises(InputError, match="written over"):
            files.check_output(tmp_path / out, None, tmp_path / "people.csv")
    files.check_output(tmp_path / "new.csv", tmp_path / "people.csv")


CONTENTS = {
    "plan": '{"schema_sha256": "", "settings": {}, "touches": []}',
    "page": '<!doctype html>\n<html>\n<head>\n<meta name="generator" content="doublure">',
    "figures": '{"about": null, "table": {}}',
    "comparison": '{"internal": "", "contenders": []}',
    "ledger": '{"body":{"dataset":"people"},"schema_sha256":"","settings":{},"touches":[]}',
    "page of others": "<!doctype html>\n<html><body>mine</body></html>",
    "table": "a,b\n1,2\n",
    "JSON of others": "{}",
    "broken JSON": '{"schema_sha256": ',
    "bytes": "\0\0",
    "nothing": "",
}


@pytest.mark.parametrize("form", ["plan", "page", "figures", "comparison", None])
@pytest.mark.parametrize("there", CONTENTS)
def test_only_a_file_of_the_same_form_is_replaced(tmp_path, form, there):
    path = tmp_path / "out"
    path.write_text(CONTENTS[there])
    if there == form:
        files.check_output(path, replaces=form)
        return
    with pytest.raises(InputError) as caught:
        files.check_output(path, replaces=form)
    assert ("ledger" in caught.value.message) == (there == "ledger")
    assert "choose another -o" in caught.value.remedy


@pytest.mark.parametrize("name", ["run.json", "card.json"])
def test_nothing_is_written_among_what_is_kept_or_published(tmp_path, name):
    (tmp_path / name).write_text("{}")
    (tmp_path / "plan.json").write_text(CONTENTS["plan"])
    for out, form in (("new.csv", None), ("plan.json", "plan")):
        with pytest.raises(InputError, match="lies in a"):
            files.check_output(tmp_path / out, replaces=form)


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    for name in ("pipe", "lost"):
        with pytest.raises(InputError, match="no regular file"):
            files.check_output(tmp_path / name, replaces="plan")
    (tmp_path / "folder").mkdir()
    files.check_output(tmp_path / "folder")  # whoever writes refuses it, or fills it if it is empty


def test_a_folder_is_whole_or_not_there(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    with files.staged_folder(target) as staging:
        (staging / "one").write_text("x")
        assert list(target.iterdir()) == []
    assert [path.name for path in target.iterdir()] == ["one"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyError("x")])
def test_a_folder_that_fails_halfway_leaves_nothing(tmp_path, error):
    def half():
        with files.staged_folder(tmp_path / "out") as staging:
            (staging / "one").write_text("x")
            raise error

    with pytest.raises(files.Unwritable if isinstance(error, OSError) else KeyError) as caught:
        half()
    assert list(tmp_path.iterdir()) == []
    assert isinstance(error, KeyError) or caught.value.field == str(tmp_path / "out")


def test_a_folder_whose_file_cannot_be_written_is_named_and_not_the_file(tmp_path):
    with pytest.raises(files.Unwritable) as caught, files.staged_folder(tmp_path / "out") as staging:
        files.write_json(staging / "nowhere" / "one.json", {})
    assert caught.value.field == str(tmp_path / "out")
    assert "nowhere" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_something_in_it_is_left_as_it_is(tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    whole = files.staged_folder(target)
    (whole.__enter__() / "new").write_text("x")
    (target / "old").write_text("x")
    with pytest.raises(files.Unwritable):
        whole.__exit__(None, None, None)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "old"]
