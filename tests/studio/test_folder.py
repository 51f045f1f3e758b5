"""No name leads out of the folder: not upwards, not from the root, not through a link."""

from __future__ import annotations

import tempfile
import tracemalloc

import pytest
from studios import StudioClient

from doublure.errors import InputError
from doublure.studio.folder import ProjectFolder
from doublure.studio.steps import data
from doublure.studio.visit import Studio, Visit
from doublure.support import yaml12

HOSTILE = (
    "",
    "..",
    "../a.csv",
    "a/../../a.csv",
    "/etc/passwd",
    "a\\b.csv",
    "a\0b",
    "a\nb",
    "link.csv",
    "link.csv#sheet",
    "links/a.csv",
    "loop",
    "a\u202eb",
)


@pytest.fixture
def folder(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for each in (outside, inside):
        each.mkdir()
        (each / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (outside / "codes.txt").write_text("secret\nother\n")
    (inside / "link.csv").symlink_to(outside / "a.csv")
    (inside / "links").symlink_to(outside)
    (inside / "codes.txt").symlink_to(outside / "codes.txt")
    (inside / "loop").symlink_to(inside / "loop")
    (inside / "own.csv").symlink_to(inside / "a.csv")
    return inside


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_leads_out_is_refused(folder, name):
    with pytest.raises(InputError):
        ProjectFolder(folder).path(name)


def test_what_is_inside_is_found(folder):
    found = ProjectFolder(folder)
    assert found.existing("a.csv").name == found.existing("own.csv").name == "a.csv"
    assert [each.name for each in found.entries()] == ["a.csv", "own.csv"]


@pytest.mark.parametrize(
    "fields",
    [
        {"place": "../outside/a.csv"},
        {"place": "link.csv"},
        {"place": "a.csv", "codebook": "links/a.csv"},
        {"url": "duckdb:///../outside/a.duckdb", "table": "t"},
        {"url": "duckdb:////etc/passwd", "table": "t"},
        {"url": "s3://bucket/a.csv", "table": "t"},
        {"url": "https://evil.example/a.csv", "table": "t"},
    ],
)
def test_data_outside_is_not_read(folder, fields):
    client = StudioClient(folder)
    answer = client.post("/data/choose", **{"place": "", "form": "codebook", **fields})
    assert answer.status_code == 422
    assert "not saved" in answer.text
    assert client.project.source is None


def test_a_list_behind_a_link_is_not_read(folder):
    client = StudioClient(folder)
    assert client.post("/data/choose", place="a.csv", form="codebook").status_code == 200
    fields = {"edit--type": "category", "edit--values-state": "declared", "edit--missing-state": "undeclared"}
    answer = client.post("/columns/keep", name="x", **fields, **{"edit--values": "{file: codes.txt}"})
    assert answer.status_code == 422
    assert "outside the folder" in answer.text
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    "name", ["../a.csv", "/tmp/a.csv", ".bashrc", "project.yaml", "plan.json", "b.ledger", "a\u202eb.csv"]
)
def test_what_is_dropped_in_stays_in_the_folder(folder, name):
    client = StudioClient(folder)
    before = sorted(folder.parent.rglob("*"))
    client.post("/data/choose", files={"data_file": (name, b"x,z\n1,2\n")}, form="codebook")
    new = [path for path in sorted(folder.parent.rglob("*")) if path not in before]
    assert all(path.is_relative_to(folder) for path in new)
    assert (folder / "a.csv").read_text() == "x,y\n1,2\n3,4\n"  # not replaced by another content


@pytest.mark.parametrize(
    "hostile",
    [
        {"source": {"place": "../outside.csv"}},
        {"source": {"place": "/etc/passwd"}},
        {"source": {"place": "duckdb:///../outside.db", "table": "t"}},
        {"source": {"place": "postgresql://user:word@127.0.0.1/clinic", "table": "t"}},
        {"ledger": "../other.ledger"},
        {"codebook": "../codes.csv"},
        {"schema_file": "../s.schema.yaml", "own_schema": True},
        {"answers": {"fit": {"run": "../run"}}},
        {"answers": {"look": {"real": "../outside.csv"}}},
        {"answers": {"look": {"holdout": "link.csv"}}},
        {"answers": {"release": {"bundle": "/tmp/bundle"}}},
    ],
)
def test_a_project_of_somebody_else_names_nothing_outside(tmp_path, hostile):
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("name\nprivate\n")
    (tmp_path / "outside.db").write_bytes(b"")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "project.yaml").write_text(yaml12.dump({"studio": 1, **hostile}))
    with pytest.raises(InputError, match=r"outside the folder|holds a password"):
        _ = Studio(ProjectFolder(folder)).project


def test_a_link_that_leads_elsewhere_since_is_refused_before_the_next_command(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "a.csv").write_text("x\n1\n")
    (tmp_path / "outside.csv").write_text("x\n2\n")
    studio = Studio(ProjectFolder(folder))
    project = studio.change(0, lambda before: before.changed(source={"place": "a.csv"}), "")
    (folder / "a.csv").unlink()
    (folder / "a.csv").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(InputError, match="outside the folder"):
        studio.change(project.version, lambda before: before.answer("fit", run="run"), "")


def test_a_name_that_the_disk_does_not_take_is_refused_in_a_line(tmp_path):
    with pytest.raises(InputError, match="no usable name"):
        ProjectFolder(tmp_path).existing("a" * 300)


def test_what_is_dropped_in_is_copied_in_parts(tmp_path):
    studio, size = Studio(ProjectFolder(tmp_path)), 40_000_000
    with tempfile.TemporaryFile() as file:
        file.write(b"1,2\n" * (size // 4))
        for _ in range(2):  # a new file, and one that is there already
            file.seek(0)
            tracemalloc.start()
            try:
                data._file(Visit(studio=studio, uploads={"data_file": ("large.csv", file)}), "place", "data_file")
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < size / 10
    assert (tmp_path / "large.csv").stat().st_size == size
    assert (tmp_path / "large.csv").stat().st_mode & 0o777 == 0o600


def test_an_upload_is_a_file_that_is_open(folder, monkeypatch):
    seen = []
    taken = data._file

    def looked(visit, chosen, dropped):
        if dropped in visit.uploads:
            seen.append(visit.uploads[dropped][1].read(3))
            visit.uploads[dropped][1].seek(0)
        return taken(visit, chosen, dropped)

    monkeypatch.setattr(data, "_file", looked)
    answer = StudioClient(folder).post("/data/choose", files={"data_file": ("b.csv", b"x,z\n1,2\n")}, form="codebook")
    assert answer.status_code == 200
    assert seen == [b"x,z"]


def test_a_view_of_a_database_reads_nothing_outside(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "sent.db")) as connection:
        for name, place in (("outside", folder.parent / "outside.csv"), ("inside", folder / "a.csv")):
            place.write_text("x,y\n1,2\n")
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{place}')")
    client = StudioClient(folder)
    fields = {"place": "", "form": "codebook", "url": "duckdb:///sent.db"}
    assert client.post("/data/choose", table="outside", **fields).status_code == 422
    assert client.post("/data/choose", table="inside", **fields).status_code == 200
    assert [column.name for column in client.project.columns] == ["x", "y"]
