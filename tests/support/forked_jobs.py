"""Commands of the studio as forks of one process that has imported doublure already.

A command takes two seconds to import its libraries, and a test that walks through the studio starts a dozen. What runs
is the same: the words, the folder, the environment, the streams and the lock. Figures are not drawn, fits and forests
draw few rows and trees, and nobody waits for the disk. That the studio starts Python itself, and how, is tested where
no fork stands in (``tests/studio/test_jobs.py``).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")
MOST = 1_000_000
_IMPORTED = (
    "doublure.cli.main", "doublure.evaluate", "doublure.releasing.bundle", "doublure.releasing.issuing",
    "doublure.releasing.verifying", "doublure.run.fitting", "doublure.report.plots", "sklearn.ensemble",
)  # fmt: skip


class _Fork:
    """A command that was started; what :class:`subprocess.Popen` is to the studio."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self) -> int:
        """Return at once: the process that forks does not keep what has ended."""
        return 0


@contextmanager
def forking() -> Iterator[Any]:
    """Yield what starts a command as a fork; it takes what :class:`subprocess.Popen` takes."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    words = [sys.executable, "-P", __file__, str(there.fileno())]
    server = subprocess.Popen(words, pass_fds=[there.fileno()], env=environment)
    there.close()

    def start(words: Sequence[str], *, cwd: Path, stdout: Any, stderr: Any, env: Any, pass_fds: Any, **_: Any) -> _Fork:
        assert words[1:4] == ["-P", "-m", "doublure"]
        told = json.dumps({"words": list(words[4:]), "cwd": str(cwd), "env": dict(env)}).encode()
        assert len(told) < MOST
        socket.send_fds(here, [told], [stdout.fileno(), stderr.fileno(), *pass_fds])
        return _Fork(int(here.recv(100)))

    try:
        yield start
    finally:
        here.close()
        server.wait(60)


@contextmanager
def forked_jobs(start: Any) -> Iterator[None]:
    """Let commands of the studio be forks for as long as the block runs."""
    with pytest.MonkeyPatch.context() as patched:
        stand_in = SimpleNamespace(Popen=start, DEVNULL=subprocess.DEVNULL)
        patched.setattr("doublure.studio.jobs.subprocess", stand_in)
        yield


def _serve(asked: socket.socket) -> None:
    for name in _IMPORTED:
        __import__(name)
    _hurry()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        told, handles, _, _ = socket.recv_fds(asked, MOST, 10)
        if not told:
            return
        pid = os.fork()
        if pid == 0:
            asked.close()
            os._exit(command(json.loads(told), handles))
        for handle in handles:
            os.close(handle)
        asked.send(str(pid).encode())


def _hurry() -> None:
    from doublure.measures.tables import utility
    from doublure.methods.statistics.tables import work
    from doublure.report import plots

    utility._TREES, work.DRAWN = 25, 500
    plots.draw = lambda width, height, key, alt, paint: alt  # type: ignore[assignment, return-value]
    os.fsync = os.fstat  # type: ignore[assignment]


def command(told: Mapping[str, Any], handles: Sequence[int]) -> int:
    """Run a command in this process, with its words, folder and environment; return its exit code.

    Args:
        told: ``words``, ``cwd`` and ``env``.
        handles: Where it writes what it says, and its errors.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate((nothing, *handles[:2])):
        os.dup2(handle, number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", 1, closefd=False)
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["env"])
    sys.argv = ["doublure", *told["words"]]
    from doublure.cli import run

    code: Any = 1
    try:
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code if isinstance(code, int) else 1


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # what was imported is not taken apart
