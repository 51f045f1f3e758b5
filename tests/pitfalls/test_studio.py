"""The studio shows nothing to strangers, names nothing outside its folder, and reads records for their owner alone."""

from __future__ import annotations

import asyncio
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from planting import plant

from doublure.errors import InputError
from doublure.studio import connection as connections
from doublure.studio import guard as guards
from doublure.studio import visit as visits
from doublure.studio.folder import ProjectFolder
from doublure.studio.guard import Guard
from doublure.studio.server import running
from doublure.studio.steps import misfits
from doublure.studio.visit import Studio, Visit

TOKEN, HOST = "a-token-of-a-test", "127.0.0.1:8600"
OWN = [(b"host", HOST.encode()), (b"origin", f"http://{HOST}".encode())]


class Doorman:
    """A guard before an application that would show private data, and the answers of the two."""

    def __init__(self):
        async def private(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"private"})

        self._guard = Guard(private, token=TOKEN)
        entered = self.ask(headers=OWN[:1], query=f"token={TOKEN}")
        self.entering = dict(entered[0]["headers"])
        self.cookie = (b"cookie", self.entering[b"set-cookie"].partition(b";")[0])

    def ask(self, *, headers, method="GET", query="", kind="http"):
        sent = []

        async def send(message):
            sent.append(message)

        async def receive():
            return {"type": "websocket.connect"}

        scope = {"type": kind, "method": method, "path": "/", "query_string": query.encode(), "headers": headers}
        asyncio.run(self._guard(scope, receive, send))
        return sent

    def gets(self, *headers, **how):
        """Return whether a request reaches what is private."""
        return any(message.get("body") == b"private" for message in self.ask(headers=[*headers], **how))


def check_the_door():
    door = Doorman()
    name = door.cookie[1].partition(b"=")[0]
    assert door.gets(*OWN, door.cookie)
    assert door.gets(*OWN, door.cookie, method="POST")
    assert not door.gets(*OWN)
    assert not door.gets(*OWN, (b"cookie", name + b"="))
    assert not door.gets(*OWN, (b"cookie", name + b"=guessed"))
    assert not door.gets((b"host", b"evil.example"), door.cookie)
    assert not door.gets(*OWN[:1], (b"origin", b"http://evil.example"), door.cookie)
    assert not door.gets(*OWN[:1], (b"origin", b"http://127.0.0.1:9999"), door.cookie)
    assert not door.gets(*OWN[:1], door.cookie, method="POST")
    assert not door.gets(*OWN[:1], (b"sec-fetch-site", b"same-site"), door.cookie)
    assert not door.gets(*OWN, door.cookie, kind="websocket")
    assert b"set-cookie" not in dict(door.ask(headers=OWN[:1], query="token=guessed")[0]["headers"])
    assert {b"HttpOnly", b"SameSite=Strict"} <= {*door.entering[b"set-cookie"].split(b"; ")}
    assert TOKEN.encode() not in door.entering[b"location"] + door.entering[b"set-cookie"]
    assert door.entering[b"cache-control"] == b"no-store"


def test_the_door_is_open_to_one_user_alone():
    check_the_door()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("_foreign", "len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts", "False"),
        ("_foreign", "any(origin != f'http://{hosts[0]}' for origin in origins)", "False"),
        ("_foreign", "method not in _SAFE and not origins", "False"),
        ("_foreign", "any(site not in _OWN_FETCHES for site in headers.get('sec-fetch-site', []))", "False"),
        ("_has_cookie", "found is not None and secrets.compare_digest(found.value.encode(), self._session)", "True"),
        ("_has_cookie", "secrets.compare_digest(found.value.encode(), self._session)", "True"),
        ("_enter", "secrets.compare_digest(given.encode(), token)", "True"),
        ("_enter", "key != TOKEN", "True"),
        ("__call__", "scope['type'] != 'http'", "False"),
        ("__call__", "not self._has_cookie(headers)", "False"),
    ],
)
def test_a_door_with_a_gap_is_caught(lab, monkeypatch, name, old, new):
    plant(monkeypatch, Guard, name, (old, new))
    with lab.caught():
        check_the_door()


def check_the_other_user(monkeypatch, folder):
    monkeypatch.setattr(connections, "is_strange", lambda *_: True)
    with running(folder) as address, closing(HTTPConnection("127.0.0.1", address.port)) as asked:
        asked.request("GET", f"/?{urlsplit(address.url).query}")
        answer = asked.getresponse()
        assert answer.status == 403
        assert answer.getheader("set-cookie") is None


def test_the_door_is_closed_to_another_user_of_the_machine(monkeypatch, tmp_path):
    check_the_other_user(monkeypatch, tmp_path)


def test_a_door_that_another_user_opens_is_caught(lab, monkeypatch, tmp_path):
    plant(monkeypatch, connections.Connection, "connection_made", ("is_strange(self.client, self.server)", "False"))
    with lab.caught():
        check_the_other_user(monkeypatch, tmp_path)


@pytest.mark.parametrize("mutant", ["a cookie that scripts read", "a page that browsers keep"])
def test_a_door_that_leaves_a_trace_is_caught(lab, monkeypatch, mutant):
    if mutant == "a page that browsers keep":
        monkeypatch.setitem(guards.HEADERS, "cache-control", "private")
    else:
        said = guards._say

        async def loose(send, status, text, headers=None):
            own = [(key, value.replace(b"; HttpOnly", b"")) for key, value in headers or []]
            await said(send, status, text, own)

        monkeypatch.setattr(guards, "_say", loose)
    with lab.caught():
        check_the_door()


def check_the_folder(lab, tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for each in (outside, inside):
        each.mkdir(exist_ok=True)
    (outside / "a.csv").write_text("private")
    if not (inside / "link.csv").is_symlink():
        (inside / "link.csv").symlink_to(outside / "a.csv")
        (inside / "link.xlsx").symlink_to(outside / "a.xlsx")
    folder = ProjectFolder(inside)
    for name in ("../outside/a.csv", str(outside / "a.csv"), "link.csv", "link.xlsx#a sheet"):
        lab.refusal(InputError, lambda name=name: folder.path(name))
    assert [each.name for each in folder.entries()] == []


def test_nothing_outside_the_folder_is_named(lab, tmp_path):
    check_the_folder(lab, tmp_path)


@pytest.mark.parametrize(
    ("gap", "planted"),
    [
        ("found.is_relative_to(self.root) and file.is_relative_to(self.root)", "True"),
        ("file.is_relative_to(self.root)", "True"),
        ("Path(name).is_absolute() or '..' in Path(name).parts or (not inside)", "False"),
    ],
)
def test_a_folder_with_a_gap_is_caught(lab, monkeypatch, tmp_path, gap, planted):
    plant(monkeypatch, ProjectFolder, "path", (gap, planted))
    with lab.caught():
        check_the_folder(lab, tmp_path)


def check_the_project(lab, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    for words in ("source: {place: ../a.csv}", "ledger: ../a.ledger", "answers: {look: {real: ../a.csv}}"):
        (folder / "project.yaml").write_text(f"studio: 1\n{words}\n")
        lab.refusal(InputError, lambda: Studio(ProjectFolder(folder)).project)


def test_a_project_of_somebody_else_leads_nowhere(lab, tmp_path):
    check_the_project(lab, tmp_path)


def test_a_project_that_leads_elsewhere_is_caught(lab, monkeypatch, tmp_path):
    plant(monkeypatch, Studio, "_confined", ("project.refuse_outside(self.folder)", "None"))
    with lab.caught():
        check_the_project(lab, tmp_path)


def check_the_owner(lab, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(misfits, "list_misfits", lambda *_, **__: read.append("records") or {})
    monkeypatch.setattr(misfits, "NOTES", {"table": lambda *_: read.append("records") or ()})
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    studio = Studio(ProjectFolder(tmp_path))
    version = studio.project.version
    data = {"source": {"place": "a.csv"}, "schema_file": "a.schema.yaml"}
    columns = ({"name": "x", "facts": {"type": "integer", "bounds": [0, 9], "missing": False}},)
    studio.change(version, lambda before: before.changed(**data, columns=columns, units=2), "")
    assert not read
    for answer in ({}, {"owner": ""}, {"owner": "no"}):
        visit = Visit(studio=studio, form=answer)
        lab.refusal(InputError, lambda visit=visit: misfits.look(visit))
        assert not read
    misfits.look(Visit(studio=studio, form={"owner": "yes"}))
    assert read


def test_records_are_read_for_their_owner_alone(lab, tmp_path, monkeypatch):
    check_the_owner(lab, tmp_path, monkeypatch)


def test_records_that_are_read_unasked_are_caught(lab, tmp_path, monkeypatch):
    plant(monkeypatch, misfits, "look", ("visit.text('owner') != 'yes'", "False"))
    with lab.caught():
        check_the_owner(lab, tmp_path, monkeypatch)


def check_two_tabs(lab, tmp_path):
    (tmp_path / "a").mkdir(exist_ok=True)
    studio = Studio(ProjectFolder(tmp_path / "a"))
    version = studio.project.version
    studio.change(version, lambda before: before.changed(epsilon=2.0), "")
    late = visits.Stale
    lab.refusal(late, lambda: studio.change(version, lambda before: before.changed(epsilon=9.0), ""))
    assert studio.project.epsilon == 2.0


def test_a_tab_does_not_overwrite_what_another_decided(lab, tmp_path):
    check_two_tabs(lab, tmp_path)


def test_a_tab_that_overwrites_is_caught(lab, tmp_path, monkeypatch):
    plant(monkeypatch, Studio, "_of", ("found.version != version", "False"))
    with lab.caught():
        check_two_tabs(lab, tmp_path)
