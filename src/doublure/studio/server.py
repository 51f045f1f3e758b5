"""The studio's server on this machine."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from doublure.errors import SettingError
from doublure.support.extras import require_studio

LOCAL = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::", "")
_PATIENCE = 5.0


class Address(NamedTuple):
    """Where a studio is.

    Attributes:
        url: With the token, which lets its holder in.
        port: Its port.
    """

    url: str
    port: int


@contextmanager
def running(folder: str | Path = ".", *, host: str = LOCAL, port: int | None = None) -> Iterator[Address]:
    """Serve a folder's studio for as long as the block runs.

    Args:
        folder: The project's folder; nothing outside it is read or written.
        host: The address to listen at; this machine alone, unless told otherwise.
        port: The port; a free one if None.

    Raises:
        MissingExtra: The extra is not installed.
        InputError: The folder is none.
        SettingError: The port is taken, or every address was asked for.
    """
    require_studio("the studio")
    import uvicorn

    from doublure.studio.app import studio_app
    from doublure.studio.folder import ProjectFolder
    from doublure.studio.guard import LOOPBACK
    from doublure.studio.visit import Studio

    if host in _EVERYWHERE:
        remedy = "give the one address that browsers will use, such as 192.168.1.5"
        raise SettingError("would listen at every address of this machine", field="--host", remedy=remedy)
    studio = Studio(ProjectFolder(folder))
    listening = _bound(host, port)
    found = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    hosts = LOOPBACK if host in LOOPBACK else (host.lower(),)
    app = studio_app(studio, token=token, hosts=hosts, cookie=f"doublure-{found}")
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            log_level="critical",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
    )
    serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="studio", daemon=True)
    serving.start()
    try:
        until = time.monotonic() + _PATIENCE
        while not server.started and serving.is_alive() and time.monotonic() < until:
            time.sleep(0.01)
        shown = f"[{host}]" if ":" in host else host
        yield Address(f"http://{shown}:{found}/?token={token}", found)
    finally:
        server.should_exit = True
        serving.join(_PATIENCE)
        listening.close()


def serve(
    folder: str | Path,
    *,
    host: str = LOCAL,
    port: int | None = None,
    browser: bool = True,
    say: Callable[[str], None],
) -> None:
    """Serve a folder's studio until the process is told to end.

    Args:
        folder: The project's folder.
        host: The address to listen at.
        port: The port; a free one if None.
        browser: Whether to open a browser.
        say: Tells the address, whole, on a line of its own.
    """
    with running(folder, host=host, port=port) as address:
        say(address.url)
        if browser:
            webbrowser.open(address.url)
        threading.Event().wait()


def _bound(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port or 0))
    except (OSError, OverflowError):
        made.close()
        field = "--host" if port is None else "--port"
        raise SettingError("cannot be listened at", field=field, remedy="choose another, or leave it out") from None
    made.set_inheritable(False)
    return made
