"""A bundle as one file: packed, unpacked, verified; and archives that somebody hostile made."""

from __future__ import annotations

import io
import os
import shutil
import struct
import zipfile

import pytest

import doublure as db
from doublure.errors import DoublureError, GateFailed, InputError
from doublure.releasing import archive
from doublure.releasing.archive import pack, unpack


@pytest.fixture(scope="module")
def bundle(small, tmp_path_factory):
    place = tmp_path_factory.mktemp("archives") / "bundle"
    db.release(db.load(small.run), place, n=40, ledger=small.ledger, seed=1, tables=False, progress=False)
    return place


def written(path, entries, **how):
    """Write an archive of these entries: a name or a ZipInfo, and its bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries:
            file.writestr(name, content, **how)
    return path


def refused(path, tmp_path, kind=GateFailed):
    out = tmp_path / "out"
    with pytest.raises(kind) as caught:
        unpack(path, out)
    assert not out.exists()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    return str(caught.value)


def test_a_packed_bundle_is_unpacked_equal_and_verified_as_it_is(bundle, small, tmp_path):
    packed = pack(bundle, tmp_path / "bundle.zip")
    inside = unpack(packed, tmp_path / "received")
    names = sorted(each.name for each in bundle.iterdir())
    assert sorted(each.name for each in inside.iterdir()) == names
    assert all((inside / name).read_bytes() == (bundle / name).read_bytes() for name in names)
    assert db.verify(packed, ledger=small.ledger) == db.verify(bundle, ledger=small.ledger)
    assert pack(bundle, tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_what_a_mac_adds_is_left_out_and_a_bundle_may_lie_at_the_root(bundle, tmp_path):
    entries = [(each.name, each.read_bytes()) for each in bundle.iterdir()]
    added = [("__MACOSX/._card.json", b"x"), (".DS_Store", b"x")]
    assert db.verify(written(tmp_path / "mac.zip", [*entries, *added]))["files"] == len(entries) - 1


def test_a_changed_file_in_an_archive_is_found(bundle, tmp_path):
    entries = [(each.name, each.read_bytes() + (b" " if each.name == "data.csv" else b"")) for each in bundle.iterdir()]
    with pytest.raises(GateFailed, match=r"data.csv: is not the file"):
        db.verify(written(tmp_path / "changed.zip", entries))


@pytest.mark.parametrize(
    "name",
    [
        "../escaped.txt",
        "b/../../escaped.txt",
        "/tmp/escaped.txt",
        "C:/escaped.txt",
        "..\\escaped.txt",
        "b/\u202etxt.exe",
        "b/a\nb",
        "b//data.csv",
        "./b/data.csv",
        "b/data.csv ",
        "b/...",
    ],
)
def test_paths_that_lead_elsewhere_are_refused(name, tmp_path):
    assert "reads otherwise" in (said := refused(
        written(tmp_path / "a.zip", [("b/card.json", "{}"), (name, "x")]), tmp_path
    )) or "leads elsewhere" in said  # fmt: skip
    assert not (tmp_path / "escaped.txt").exists()


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o010644])
def test_links_and_devices_are_refused(mode, tmp_path):
    link = zipfile.ZipInfo("b/data.csv")
    link.external_attr = mode << 16
    assert "no plain file" in refused(
        written(tmp_path / "a.zip", [("b/card.json", "{}"), (link, "/etc/passwd")]), tmp_path
    )


def test_two_files_of_one_name_are_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = written(tmp_path / "a.zip", [("card.json", "{}"), ("data.csv", "1"), ("data.csv", "2")])
    assert "twice" in refused(twice, tmp_path)
    cased = written(tmp_path / "b.zip", [("card.json", "{}"), ("data.csv", "1"), ("DATA.csv", "2")])
    assert "twice" in refused(cased, tmp_path)


def test_other_folders_and_other_bundles_are_refused(tmp_path):
    assert "a folder" in refused(written(tmp_path / "a.zip", [("card.json", "{}"), ("x/y.csv", "")]), tmp_path)
    assert "beside" in refused(written(tmp_path / "b.zip", [("b/card.json", "{}"), ("y.csv", "")]), tmp_path)
    two = written(tmp_path / "c.zip", [("a/card.json", "{}"), ("b/card.json", "{}")])
    assert "more than one" in refused(two, tmp_path, InputError)
    assert "no card.json" in refused(written(tmp_path / "d.zip", [("a.csv", "")]), tmp_path, InputError)


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 and nothing")
    assert "no ZIP file" in refused(tmp_path / "a.zip", tmp_path, InputError)
    assert "no such file" in refused(tmp_path / "gone.zip", tmp_path, InputError)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    bomb = written(tmp_path / "a.zip", [("card.json", "{}"), ("data.csv", b"0" * 10_000_000)])
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: usage._replace(free=15_000_000))
    assert "half of what is free" in refused(bomb, tmp_path, InputError)
    text = written(tmp_path / "b.zip", [("card.json", b" " * (archive._LARGEST_TEXT + 1))])
    assert "larger than the 100 MB" in refused(text, tmp_path)


def lying(path, name, size):
    """Write an archive that states another size of an entry than it holds, in both of its headers."""
    content = bytearray(written(path, [("card.json", "{}"), (name, b"0" * 50_000)]).read_bytes())
    true, place = struct.pack("<L", 50_000), -1
    while (place := content.find(true, place + 1)) >= 0:
        content[place : place + 4] = struct.pack("<L", size)
    path.write_bytes(content)
    return path


def test_sizes_that_lie_are_refused(tmp_path):
    assert "damaged" in (said := refused(lying(tmp_path / "a.zip", "data.csv", 100), tmp_path)) or "more bytes" in said
    assert "than it can hold" in refused(lying(tmp_path / "b.zip", "data.csv", 2**31), tmp_path)


def test_a_flipped_byte_is_refused(tmp_path):
    path = written(tmp_path / "a.zip", [("card.json", "{}"), ("data.csv", os.urandom(5_000))])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert "damaged" in refused(path, tmp_path)


def test_an_archive_of_an_archive_is_not_opened(bundle, tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("../escaped.txt", "x")
    entries = [(each.name, each.read_bytes()) for each in bundle.iterdir()]
    with pytest.raises(GateFailed, match=r"inner.zip: is in the bundle and not on its card"):
        db.verify(written(tmp_path / "a.zip", [*entries, ("inner.zip", inner.getvalue())]))


def test_a_folder_that_is_no_bundle_is_not_packed(tmp_path):
    with pytest.raises(DoublureError, match="is not a bundle"):
        pack(tmp_path, tmp_path / "a.zip")
