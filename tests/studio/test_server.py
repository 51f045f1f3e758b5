"""The server: at this machine alone, one line with the token, and nothing else on the terminal."""

from __future__ import annotations

import importlib.util
import socket
import urllib.error
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

import pytest

from doublure.errors import MissingExtra, SettingError
from doublure.studio import server


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
