"""The server: at this machine alone, one line with the token, and nothing else on the terminal."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from doublure.errors import MissingExtra, SettingError
from doublure.studio import peer, server


def test_it_listens_here_alone_and_says_nothing(folder, capfd):
    pytest.importorskip("uvicorn")
    with server.running(folder) as address:
        assert address.url.startswith(f"http://127.0.0.1:{address.port}/?token=")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{address.port}/data")
        connection = HTTPConnection("127.0.0.1", address.port)
        connection.request("GET", "/" + address.url.partition("/?")[2].join(["?", ""]))
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("location")) == (303, "/")
        answer.read()
        connection.request("GET", "/data", headers={"cookie": answer.getheader("set-cookie").partition(";")[0]})
        assert connection.getresponse().status == 200
        connection.close()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", address.port), timeout=1)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_it_does_not_listen_everywhere(folder, host):
    pytest.importorskip("uvicorn")
    with pytest.raises(SettingError, match="every address"), server.running(folder, host=host):
        pass


def test_a_port_that_is_taken_is_told(folder):
    pytest.importorskip("uvicorn")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SettingError, match="--port"), server.running(folder, port=taken.getsockname()[1]):
            pass


def test_without_the_extra_one_line_says_the_remedy(folder, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "starlette" else found(name))
    with pytest.raises(MissingExtra, match=r"pip install 'doublure\[studio\]'"), server.running(Path(folder)):
        pass


_ASKS = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
asked = socket.socket()
asked.connect(("127.0.0.1", int(sys.argv[2])))
words = [f"GET {sys.argv[3]} HTTP/1.1", f"Host: 127.0.0.1:{sys.argv[2]}", f"Cookie: {sys.argv[4]}"]
asked.sendall("\\r\\n".join([*words, "", ""]).encode())
print(asked.recv(20).split()[1].decode())
"""


def test_another_user_of_the_machine_is_refused_with_token_and_cookie(folder):
    pytest.importorskip("uvicorn")
    if not sys.platform.startswith("linux") or os.getuid() != 0:
        pytest.skip("only root can be another user, and only Linux tells whose a connection is")
    with server.running(folder) as address:
        entry = "/" + address.url.rpartition("/")[2]
        with closing(HTTPConnection("127.0.0.1", address.port)) as connection:
            connection.request("GET", entry)
            cookie = connection.getresponse().getheader("set-cookie").partition(";")[0]

        def status(uid, path, held):
            words = [sys.executable, "-c", _ASKS, str(uid), str(address.port), path, held]
            return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

        assert status(0, "/data", cookie) == 200
        assert status(65534, "/data", cookie) == 403
        assert status(65534, entry, "") == 403


@pytest.mark.parametrize(
    ("uid", "state", "strange"), [(1000, "01", False), (0, "01", False), (1001, "01", True), (0, "06", True)]
)
def test_whose_a_connection_is_stands_in_the_kernels_table(tmp_path, monkeypatch, uid, state, strange):
    ends = "0100007F:C350 0100007F:2198" if sys.byteorder == "little" else "7F000001:C350 7F000001:2198"
    table = tmp_path / "tcp"
    table.write_text(f"  sl  local rem st\n 0: {ends} {state} 00000000:00000000 00:00000000 00000000 {uid} 0 1 1\n")
    monkeypatch.setattr(peer, "_TABLES", {4: table})
    monkeypatch.setattr(peer.platform, "release", lambda: "6.1.0")
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert peer.is_strange(("127.0.0.1", 50000), ("127.0.0.1", 8600)) is strange
    assert peer.is_strange(("127.0.0.1", 50001), ("127.0.0.1", 8600))  # gone already
    assert not peer.is_strange(("192.168.1.7", 50000), ("192.168.1.5", 8600))


def test_ctrl_c_is_how_a_studio_ends(folder, monkeypatch):
    pytest.importorskip("uvicorn")
    from doublure.cli.studio import serve_until_interrupted

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "serve", interrupted)
    assert "project.yaml" in serve_until_interrupted(folder, browser=False).text
