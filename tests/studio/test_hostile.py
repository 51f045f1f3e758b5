"""Attacks on the studio: by links, by requests that do not end, by files that grow, by a second studio."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from studios import StudioClient

from doublure.errors import InputError, SettingError
from doublure.releasing.archive import pack, unpack
from doublure.studio.folder import ProjectFolder
from doublure.studio.jobs import StudioJobs
from doublure.studio.steps import data
from doublure.studio.visit import Studio, Visit


@pytest.fixture
def connection(monkeypatch):
    """The module of connections, with little patience."""
    pytest.importorskip("uvicorn")
    from doublure.studio import connection

    monkeypatch.setattr(connection, "PATIENCE", 0.3)
    return connection


@pytest.fixture
def served(connection, tmp_path):
    from doublure.studio.server import running

    with running(tmp_path) as address:
        yield address


def cookie_of(address):
    with closing(HTTPConnection("127.0.0.1", address.port)) as http:
        parts = urlsplit(address.url)
        http.request("GET", f"/?{parts.query}")
        return http.getresponse().getheader("set-cookie").partition(";")[0]


def ends_within(asked, seconds):
    """Return what comes before the other side ends a connection; fail if it does not end it."""
    asked.settimeout(seconds)
    found = b""
    try:
        while part := asked.recv(65_536):
            found += part
    except ConnectionResetError:
        pass
    return found


# -- links and what is no file ----------------------------------------------------------------------------------------


def test_a_pipe_is_no_data_and_nobody_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    client = StudioClient(tmp_path)
    assert "pipe.csv" not in client.get("/data").text
    assert client.post("/data/choose", place="pipe.csv", form="codebook").status_code == 422
    with pytest.raises(InputError, match="neither a file nor a folder"):
        ProjectFolder(tmp_path).open("pipe.csv")


def test_a_link_to_nothing_hides_no_screen(tmp_path):
    (tmp_path / "gone.csv").symlink_to(tmp_path / "never.csv")
    assert StudioClient(tmp_path).get("/data").status_code == 200


@pytest.mark.parametrize("name", ["page.html", "inner/page.html"])
def test_a_link_set_between_the_check_and_the_open_is_not_followed(tmp_path, monkeypatch, name):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, text in ((inside, "public"), (outside, "secret")):
        (folder / "inner").mkdir(parents=True)
        for each in ("page.html", "inner/page.html"):
            (folder / each).write_text(text)
    checked = ProjectFolder.existing

    def swapped(self, given):
        found = checked(self, given)
        first = name.partition("/")[0]
        (inside / first).rename(inside / "away")
        (inside / first).symlink_to(outside / first)
        return found

    folder = ProjectFolder(inside)
    with folder.open(name) as file:
        assert file.read() == b"public"
    monkeypatch.setattr(ProjectFolder, "existing", swapped)
    with pytest.raises(InputError, match="behind a link"):
        folder.open(name)


def test_nothing_is_written_through_a_link_of_the_studios_own_folders(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    for name in (".studio", "received"):
        (inside / name).symlink_to(outside)
    with zipfile.ZipFile(inside / "b.zip", "w") as archive:
        archive.writestr("b/card.json", "{}")
    client = StudioClient(inside)
    answer = client.post("/received/take", archive="b.zip")
    assert answer.status_code == 422
    assert "is a link" in answer.text
    with pytest.raises(InputError, match="is a link"):
        StudioJobs(inside / ".studio" / "jobs", inside).start(["doctor"])
    assert list(outside.iterdir()) == []


def test_an_archive_to_be_sent_is_not_another_file(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.zip").write_bytes(b"secret")
    client = StudioClient(folder)
    (folder / "bundle.zip").symlink_to(tmp_path / "secret.zip")
    answer = client.get("/release/archive")
    assert answer.status_code == 422
    assert b"secret" not in answer.content
    (folder / "bundle.zip").unlink()
    (folder / "bundle").mkdir()
    (folder / "bundle" / "card.json").write_bytes(b"{}")
    pack(folder / "bundle", folder / "bundle.zip")
    packed = (folder / "bundle.zip").read_bytes()
    assert client.get("/release/archive").status_code == 409
    job = folder / ".studio" / "jobs" / "checked"
    job.mkdir(parents=True)
    told = {"arguments": ["verify"], "about": {"bundle": "bundle"}, "began": "2024-01-01"}
    (job / "job.json").write_text(json.dumps(told))
    result = {"fingerprint": hashlib.sha256(b"{}").hexdigest()}
    (job / "outcome.json").write_text(json.dumps({"ok": True, "result": result, "error": None}))
    answer = client.get("/release/archive")
    assert (answer.content, answer.headers["content-length"]) == (packed, str(len(packed)))
    assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''bundle.zip"


# -- requests that do not end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"], ids=["nothing", "half a head"])
def test_a_request_that_does_not_come_is_not_waited_for(served, sent):
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(sent)
        assert ends_within(asked, 5) == b""


def trickle(asked):
    """Send a letter at a time until the other side ends the connection."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        asked.sendall(b"a")
        time.sleep(0.05)


def test_a_head_that_trickles_is_not_waited_for(served):
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        with pytest.raises(OSError):
            trickle(asked)


def test_a_second_head_that_trickles_is_not_waited_for(served):
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie_of(served)}\r\n\r\n".encode())
        assert asked.recv(65_536).startswith(b"HTTP/1.1 303")
        asked.sendall(b"GET / HTTP/1.1\r\nX: ")
        with pytest.raises(OSError):
            trickle(asked)


def test_a_body_that_stops_is_not_waited_for(served):
    head = (
        f"POST /undo HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nCookie: {cookie_of(served)}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 20\r\n\r\nversion=0"
    )
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(head.encode())
        assert b"200 OK" not in ends_within(asked, 5)


def test_a_body_without_an_end_behind_a_stated_length_is_not_read(served):
    head = (
        f"POST /undo HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nCookie: {cookie_of(served)}\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n"
        "4\r\na=bc\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(head.encode())
        assert b" 413 " in ends_within(asked, 5)


def test_after_a_refusal_nothing_more_is_read(served):
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(b"POST /undo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n")
        assert b"connection: close" in ends_within(asked, 5).lower()


def test_the_descriptors_are_not_all_for_connections(served, connection, monkeypatch):
    monkeypatch.setattr(connection, "_most_connections", lambda: 2)
    monkeypatch.setattr(connection, "PATIENCE", 60)
    taken = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(3)]
    try:
        assert ends_within(taken[-1], 5) == b""
    finally:
        for each in taken:
            each.close()


def test_fields_that_fill_the_memory_are_not_read(tmp_path):
    client = StudioClient(tmp_path)
    headers = {"origin": "http://127.0.0.1:8600", "content-type": "application/x-www-form-urlencoded"}
    answer = client.http.post("/undo", content=b"a=b", headers={**headers, "content-length": "100000000"})
    assert answer.status_code == 413


def test_no_upgrade_leads_to_a_socket(served):
    head = (
        f"GET /data HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie_of(served)}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port)) as asked:
        asked.sendall(head.encode())
        asked.settimeout(5)
        assert asked.recv(20).split()[1] == b"200"


def test_a_defect_behind_the_real_server_is_not_logged(served, monkeypatch, capfd):
    from doublure.studio import app

    def broken(*_):
        raise RuntimeError("a-private-cell")

    monkeypatch.setattr(app, "render", broken)
    with closing(HTTPConnection("127.0.0.1", served.port)) as http:
        http.request("GET", "/data", headers={"cookie": cookie_of(served)})
        assert http.getresponse().status == 500
    assert capfd.readouterr() == ("", "")


# -- where it listens, and to whom -------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0", "0.0", "0x0", "::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"])
def test_no_spelling_of_every_address_is_listened_at(tmp_path, host):
    pytest.importorskip("uvicorn")
    from doublure.studio.server import running

    with pytest.raises(SettingError, match=r"every address|cannot be listened at"), running(tmp_path, host=host):
        pass


def test_another_spelling_of_this_machine_is_shown_as_browsers_ask_for_it(tmp_path):
    pytest.importorskip("uvicorn")
    from doublure.studio.server import running

    with running(tmp_path, host="127.1") as address:
        assert address.url.startswith("http://127.0.0.1:")
        assert not address.is_open
        assert cookie_of(address)


def test_an_address_of_the_network_is_told_in_a_line(tmp_path):
    pytest.importorskip("uvicorn")
    from doublure.studio import server

    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # sends nothing
            here = asked.getsockname()[0]
        except OSError:
            pytest.skip("this machine has no network")
    said = []

    class Ended(Exception):
        pass

    def say(line):
        said.append(line)
        if not line.startswith("http"):
            return
        with closing(HTTPConnection(here, urlsplit(line).port)) as http:
            for host, code in ((here, 401), ("127.0.0.1", 403), ("evil.example", 403)):
                http.request("GET", "/data", headers={"host": host})
                answer = http.getresponse()
                answer.read()
                assert answer.status == code, host
        raise Ended

    with pytest.raises(Ended):
        server.serve(tmp_path, host=here, browser=False, say=say)
    assert len(said) == 2
    assert "nothing is encrypted" in said[0]
    assert "\n" not in said[0]
    assert said[1].startswith(f"http://{here}:")


def test_the_address_that_a_browser_is_started_with_lets_in_once(served):
    def status(url):
        with closing(HTTPConnection("127.0.0.1", served.port)) as http:
            http.request("GET", f"/?{urlsplit(url).query}")
            return http.getresponse().status

    assert [status(served.once), status(served.once)] == [303, 403]
    assert [status(served.url), status(served.url)] == [303, 303]


# -- two at once -------------------------------------------------------------------------------------------------------


def test_a_second_studio_is_told_where_the_first_is(tmp_path):
    pytest.importorskip("uvicorn")
    from doublure.studio.server import running

    with running(tmp_path) as first:
        with pytest.raises(InputError) as caught, running(tmp_path):
            pass
        assert f"http://127.0.0.1:{first.port}/" in str(caught.value)
        assert "token" not in str(caught.value)
        assert "\n" not in str(caught.value)
        kept = (tmp_path / ".studio" / "address").read_text()
        assert kept == f"http://127.0.0.1:{first.port}/"
    with running(tmp_path):
        pass


def test_of_many_tabs_at_once_one_is_saved(tmp_path):
    shutil.copy(data.__file__, tmp_path / "a.py")
    studio = Studio(ProjectFolder(tmp_path))

    def change(number):
        try:
            studio.change(0, lambda before: before.answer("people", tab=number), "")
        except InputError as error:
            return error.code
        return number

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(change, range(8)))
    saved = [each for each in found if each != "stale"]
    assert len(saved) == 1
    assert studio.project.answers["people"]["tab"] == saved[0]


def test_of_two_files_of_one_name_none_replaces_the_other(tmp_path, monkeypatch):
    studio = Studio(ProjectFolder(tmp_path))
    written, together = data.write_atomic, threading.Barrier(2, timeout=1)

    def slow(*args, **how):
        with suppress(threading.BrokenBarrierError):
            together.wait()
        written(*args, **how)

    monkeypatch.setattr(data, "write_atomic", slow)

    def take(content):
        path = tmp_path / f".{content}"
        path.write_text(content)
        with path.open("rb") as file:
            try:
                return data._file(Visit(studio=studio, uploads={"data_file": ("a.csv", file)}), "place", "data_file")
            except InputError:
                return None

    with ThreadPoolExecutor(2) as pool:
        taken = list(pool.map(take, ("one", "two")))
    assert sorted(map(str, taken)) == ["None", "a.csv"]
    assert (tmp_path / "a.csv").read_text() == ("one" if taken[0] else "two")


# -- files that grow ---------------------------------------------------------------------------------------------------


def workbook(path, cells):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    with xlsxwriter.Workbook(str(path)) as made:
        sheet = made.add_worksheet()
        for row, place, text in cells:
            sheet.write(row, place, text)


def test_a_workbook_with_a_far_cell_does_not_end_the_studio(tmp_path):
    workbook(tmp_path / "book.xlsx", [(0, 0, "column"), (0, 1, "type"), (2**20 - 1, 2**14 - 1, "far")])
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    client = StudioClient(tmp_path)
    answer = client.post("/data/choose", place="a.csv", codebook="book.xlsx", form="codebook")
    assert answer.status_code == 422
    assert "half of this machine" in answer.text
    assert client.post("/data/choose", place="book.xlsx", form="codebook").status_code == 422


def test_an_archive_with_a_long_list_of_entries_is_refused_unread(tmp_path):
    with zipfile.ZipFile(tmp_path / "long.zip", "w") as archive:
        archive.writestr("b/card.json", "{}")
        for number in range(15_000):
            archive.writestr(f"b/tables/{number:030d}.csv", "")
    with pytest.raises(InputError, match="no ZIP file"):
        unpack(tmp_path / "long.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_aliases_of_aliases_are_refused_in_a_line(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="a.csv", form="codebook")
    bomb = "{a: &a0 [x, x, x, x, x, x, x, x]"
    bomb += "".join(f", a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 30)) + "}"
    answer = client.post("/columns/rule", rule_kind="yaml", rule_text=bomb)
    assert answer.status_code == 422
    assert "stand for too many values" in answer.text


def test_a_name_of_ten_megabytes_is_shown_short(tmp_path):
    (tmp_path / "a.csv").write_text(f"{'x' * 10_000_000},b\n1,2\n")
    client = StudioClient(tmp_path)
    for answer in (client.post("/data/choose", place="a.csv", form="codebook"), client.get("/columns")):
        assert len(answer.content) < 1_000_000
    long = client.post("/data/choose", files={"data_file": ("y" * 10_000_000 + ".csv", b"a\n1\n")}, form="codebook")
    assert long.status_code in (400, 422)
    assert len(long.content) < 1_000_000


# -- what is downloaded ------------------------------------------------------------------------------------------------


def test_a_list_of_misfits_has_no_formula(tmp_path):
    from doublure import Schema
    from doublure.drafting.misfits import list_misfits

    name = "=cmd|' /C calc'!A0"
    schema = Schema.from_plain(
        {"doublure": 1, "kind": "table", "unit": {"name": "person"}, "units": 2,
         "columns": {name: {"type": "integer", "bounds": [0, 9], "missing": False}}}, "s"
    )  # fmt: skip
    (tmp_path / "a.csv").write_text(f'"{name}"\n"=HYPERLINK(""http://a"")"\n-5\n')
    list_misfits(schema, tmp_path / "a.csv", tmp_path / "out.csv")
    import csv

    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [cell for row in list(csv.reader(file))[1:] for cell in row]
    assert cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
