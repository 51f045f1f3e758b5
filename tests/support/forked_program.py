"""A program on the path that is doublure as a fork of the tests' process, which has imported all that it needs.

The file on the path tells a server of its folder, words, environment and streams, passes SIGTERM on, and ends as the
fork does. When it is killed, so is the fork, before the next one is started.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forked_jobs import MOST, command
from killed import ended, started

_PROGRAM = """#!{python} -SE
import json, os, signal, socket, sys

server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
signal.signal(signal.SIGTERM, lambda number, _: server.send(bytes([number])))
told = {{"words": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}
socket.send_fds(server, [json.dumps(told).encode()], [1, 2])
os._exit(server.recv(1)[0])
"""


@contextmanager
def forked_program(path: Path, patch: Callable[[], object]) -> Iterator[None]:
    """Let a file be doublure for as long as the block runs.

    Args:
        path: The file, in a folder that is there; its name with ``.socket`` is that of the server.
        patch: Changes doublure in forks.
    """
    address = f"{path}.socket"
    path.write_text(_PROGRAM.format(python=sys.executable, address=address))
    path.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        server = started(lambda: _serve(listening, patch))
        try:
            yield
        finally:
            os.kill(server, signal.SIGKILL)
            ended(server)


def _serve(listening: socket.socket, patch: Callable[[], object]) -> None:
    patch()
    while True:
        with listening.accept()[0] as asked:
            told, streams, _, _ = socket.recv_fds(asked, MOST, 2)
            if (child := os.fork()) == 0:
                os._exit(command(json.loads(told), streams))
            for stream in streams:
                os.close(stream)
            code = _watched(child, asked)
            with suppress(OSError):  # it was killed
                asked.send(bytes([code]))


def _watched(child: int, asked: socket.socket) -> int:
    """Pass signals on to a fork until it ends, and kill it when nobody waits; return its exit code."""
    handle = os.pidfd_open(child)
    while handle not in select.select([asked, handle], [], [])[0]:
        number = asked.recv(1)
        os.kill(child, number[0] if number else signal.SIGKILL)
        if not number:
            break
    os.close(handle)
    return ended(child) % 256
