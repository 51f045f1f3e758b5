"""Who gets in: the holder of the token, from the studio's own pages; nobody else, and nothing is kept by a browser."""

from __future__ import annotations

import asyncio
import re

import pytest
from studios import ORIGIN, TOKEN, StudioClient

from doublure.studio.guard import HEADERS, Guard

PATHS = ("/", "/data", "/columns", "/budget", "/budget/forecast", "/static/studio.js", "/nothing")


@pytest.fixture
def entered(tmp_path):
    return StudioClient(tmp_path)


@pytest.fixture
def stranger(entered):
    from starlette.testclient import TestClient

    return TestClient(entered.app, base_url=ORIGIN)


@pytest.mark.parametrize("path", PATHS)
def test_without_the_cookie_every_path_is_refused(stranger, path):
    assert stranger.get(path).status_code == 401
    assert stranger.post(path, headers={"origin": ORIGIN}).status_code == 401


def test_a_wrong_token_gets_no_cookie(stranger):
    for token in ("", "a", TOKEN[:-1], TOKEN + "a", "é"):
        answer = stranger.get("/", params={"token": token}, follow_redirects=False)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_the_token_leaves_the_address_for_a_strict_cookie(stranger):
    answer = stranger.get(f"/columns?q=a&token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/columns?q=a"
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get("/data").status_code == 200


def test_no_redirect_leads_to_another_host(stranger):
    answer = stranger.get(f"{ORIGIN}//evil.example/?token={TOKEN}", follow_redirects=False)
    assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8600"},
        {"host": "a@127.0.0.1"},
        {"host": "127.0.0.1:x"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8600"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_foreign_host_or_page_is_refused_with_the_cookie_too(entered, headers):
    assert entered.get("/data", headers=headers).status_code == 403
    sent = entered.http.post("/undo", data={"version": "0"}, headers={"origin": ORIGIN, **headers})
    assert sent.status_code == 403


def test_a_form_that_does_not_say_its_page_is_refused(entered):
    assert entered.http.post("/undo", data={"version": "0"}).status_code == 403


def test_websockets_are_refused(entered):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), entered.http.websocket_connect("/data", headers={"origin": ORIGIN}):
        pass


@pytest.mark.parametrize("path", ["/data", "/static/style.css", "/nothing"])
def test_every_answer_has_the_headers(entered, stranger, path):
    for answer in (entered.get(path), stranger.get(path)):
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "server" not in answer.headers


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere(entered):
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert policy.startswith("default-src 'none'")
    for path in ("/data", "/people", "/columns", "/budget"):
        text = entered.get(path).text
        assert not re.search(r"<script(?! src=\"/static/)|\sstyle=|<style|\son\w+=|javascript:|https?://", text), path


def test_a_form_without_a_length_or_too_large_is_not_read(entered):
    headers = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    assert entered.http.post("/undo", content=iter([b"version=0"]), headers=headers).status_code == 413
    huge = {**headers, "content-length": "3000000000"}
    assert entered.http.post("/undo", content=b"version=0", headers=huge).status_code == 413


def test_a_defect_is_answered_by_its_place_alone(tmp_path, capsys, monkeypatch):
    entered = StudioClient(tmp_path)
    from starlette.testclient import TestClient

    from doublure.studio import app

    def broken(*_):
        raise RuntimeError("a-private-cell")

    monkeypatch.setattr(app, "render", broken)
    http = TestClient(entered.app, base_url=ORIGIN, raise_server_exceptions=False)
    http.cookies = entered.http.cookies
    answer = http.get("/data")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.text
    assert "a-private-cell" not in answer.text
    assert "a-private-cell" not in "".join(capsys.readouterr())


def test_two_studios_have_sessions_of_their_own():
    async def app(scope, receive, send):
        raise AssertionError("nobody gets in")

    one, two = (Guard(app, token=TOKEN) for _ in range(2))

    async def ask(guard, path, headers):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "query_string": path, "headers": headers}
        await guard(scope, None, send)
        return sent[0]

    host = [(b"host", b"127.0.0.1:1")]
    entered = asyncio.run(ask(one, f"token={TOKEN}".encode(), host))
    cookie = dict(entered["headers"])[b"set-cookie"].partition(b";")[0]
    assert asyncio.run(ask(two, b"", [*host, (b"cookie", cookie)]))["status"] == 401
