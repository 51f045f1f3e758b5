"""The studio's server on this machine."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from doublure.errors import SettingError
from doublure.support.extras import require_studio

LOCAL = "127.0.0.1"
_PATIENCE = 5.0
_OPEN = (
    "Others on the network can reach this address, and read the token and every page: nothing is encrypted. "
    "Leave --host out and use ssh -L where you can."
)


class Address(NamedTuple):
    """Where a studio is.

    Attributes:
        url: With the token, which lets its holder in.
        port: Its port.
        once: With a token that lets in once, for the command line of a browser.
        is_open: Whether others on the network can reach it.
    """

    url: str
    port: int
    once: str
    is_open: bool


@contextmanager
def running(folder: str | Path = ".", *, host: str = LOCAL, port: int | None = None) -> Iterator[Address]:
    """Serve a folder's studio for as long as the block runs.

    Args:
        folder: The project's folder; nothing outside it is read or written.
        host: The address to listen at; this machine alone, unless told otherwise.
        port: The port; a free one if None.

    Raises:
        MissingExtra: The extra is not installed.
        InputError: The folder is none, or has a studio already.
        SettingError: The port is taken, or every address was asked for.
    """
    require_studio("the studio")
    import uvicorn

    from doublure.studio.app import studio_app
    from doublure.studio.connection import Connection
    from doublure.studio.folder import ProjectFolder
    from doublure.studio.guard import LOOPBACK
    from doublure.studio.visit import Studio

    studio = Studio(ProjectFolder(folder))
    listening = _bound(host, port)
    name, found = listening.getsockname()[:2]
    local = ipaddress.ip_address(name).is_loopback
    base = f"http://{f'[{name}]' if ':' in name else name}:{found}/"
    token = secrets.token_urlsafe(32)
    hosts = (*(LOOPBACK if local else ()), name, host.lower())
    app = studio_app(studio, token=token, hosts=hosts, cookie=f"doublure-{found}")
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
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
    with closing(listening), studio.folder.held(base):
        serving.start()
        try:
            until = time.monotonic() + _PATIENCE
            while not server.started and serving.is_alive() and time.monotonic() < until:
                time.sleep(0.01)
            yield Address(f"{base}?token={token}", found, f"{base}?token={app.once()}", not local)
        finally:
            server.should_exit = True
            serving.join(_PATIENCE)


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
        say: Tells a line: the address, whole; before it, that others can reach it, if they can.
    """
    with running(folder, host=host, port=port) as address:
        if address.is_open:
            say(_OPEN)
        say(address.url)
        if browser:
            webbrowser.open(address.once)
        threading.Event().wait()


def _bound(host: str, port: int | None) -> socket.socket:
    field = "--host" if port is None else "--port"
    failed = SettingError("cannot be listened at", field=field, remedy="choose another, or leave it out")
    try:
        family, kind, _, _, where = socket.getaddrinfo(host or "0.0.0.0", port or 0, type=socket.SOCK_STREAM)[0]
    except (OSError, OverflowError, UnicodeError):
        raise failed from None
    address = ipaddress.ip_address(where[0])
    if address.is_unspecified or getattr(address, "ipv4_mapped", None) == ipaddress.IPv4Address(0):  # 0, 0.0, ::, …
        remedy = "give the one address that browsers will use, such as 192.168.1.5"
        raise SettingError("would listen at every address of this machine", field="--host", remedy=remedy)
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(where)
    except OSError:
        made.close()
        raise failed from None
    made.set_inheritable(False)
    return made
