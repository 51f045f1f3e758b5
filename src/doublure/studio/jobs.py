"""Commands that run as processes of their own: they outlive the page, the browser and the server.

A job is a folder of mode 0700 in the project's own folder::

    job.json        the command line, what it is about, when it began
    process         its number, to stop it
    lock            locked as long as the process lives, however it ends
    progress.json   its current stage (:mod:`doublure.support.progress`)
    outcome.json    the one object that the command prints with --json; empty if it was killed
    messages.txt    what it says on stderr

The lock tells whether a process lives: the kernel releases it, also after ``kill -9``, and a number of a process that
was given out again cannot be taken for it.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from doublure.errors import InputError
from doublure.studio.script import command
from doublure.support import files
from doublure.support.progress import StageProgress, read_progress

State = Literal["running", "done", "refused", "stopped", "killed"]

_MESSAGES = 20_000
_INTERRUPTED = "interrupted"


class StudioJobs:
    """The jobs of a project.

    Args:
        room: The folder of the jobs; it is made when the first begins.
        folder: The folder in which commands run, so that their paths read as the pages show them.
        own: The names of jobs that were started since the studio was; those that are started here are added.
    """

    def __init__(self, room: Path, folder: Path, own: set[str] | None = None) -> None:
        self.room, self.folder = room, folder
        self._own = set() if own is None else own

    def start(self, arguments: Sequence[str], **about: str) -> StudioJob:
        """Start a command of doublure's, unless it runs already about the same, such as from a second tab.

        Args:
            arguments: Its words, without ``doublure`` and ``--json``.
            about: Facts by which a page finds it again, such as ``run="runs/first"``.

        Raises:
            InputError: It runs already, or the project's folder cannot be written.
        """
        import fcntl

        latest = self.latest(arguments[0], **about)
        if latest is not None and latest.alive:
            raise InputError("runs already", field=f"doublure {latest.verb}", remedy="wait until it ends, or stop it")

        now = datetime.datetime.now(datetime.UTC)
        path = self.room / f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
        try:
            for folder in (self.room.parent, self.room, path):
                folder.mkdir(mode=0o700, exist_ok=folder != path)
                if folder.is_symlink():  # it may lead elsewhere
                    raise NotADirectoryError(errno.ENOTDIR, "it is a link")
            told = {"arguments": list(arguments), "about": about, "began": now.isoformat(timespec="seconds")}
            files.write_json(path / "job.json", told, mode=0o600)
            job = StudioJob(path)
            with _private(job.lock) as lock, _private(job.outcome_file) as out, _private(job.messages_file) as said:
                fcntl.flock(lock, fcntl.LOCK_EX)
                process = subprocess.Popen(
                    # -P: no module of the project's folder is imported
                    [sys.executable, "-P", "-m", "doublure", *arguments, "--json"],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=said,
                    env=_environment(job),
                    pass_fds=[lock.fileno()],
                    start_new_session=True,
                )
            with _private(path / "process") as file:
                file.write(str(process.pid).encode())
        except OSError as error:
            raise files.Unwritable(self.room, error) from None
        self._own.add(path.name)
        threading.Thread(target=process.wait, name=f"reaper of {path.name}", daemon=True).start()
        return job

    def all(self) -> list[StudioJob]:
        """Return the jobs, the newest first."""
        found = sorted(self.room.glob("*/job.json"), reverse=True) if self.room.is_dir() else []
        return [StudioJob(path.parent) for path in found]

    def find(self, name: str) -> StudioJob | None:
        """Return the job of a name, if there is one."""
        return next((job for job in self.all() if job.name == name), None)

    def latest(self, verb: str, **about: str) -> StudioJob | None:
        """Return the newest job of a verb about something."""
        return next(
            (job for job in self.all() if job.verb == verb and about.items() <= job.about.items()),
            None,
        )

    def latest_own(self, verb: str, **about: str) -> StudioJob | None:
        """Return the newest job of a verb about something, if it was started since the studio was.

        A check in a received folder may be forged, with its outcome.
        """
        found = self.latest(verb, **about)
        return found if found is not None and found.name in self._own else None


@dataclass(frozen=True)
class StudioJob:
    """A command that runs, or ran.

    Attributes:
        path: Its folder.
    """

    path: Path

    @property
    def name(self) -> str:
        """Its name, which is part of an address."""
        return self.path.name

    @property
    def lock(self) -> Path:
        """The file that is locked as long as the process lives."""
        return self.path / "lock"

    @property
    def outcome_file(self) -> Path:
        """The file of stdout."""
        return self.path / "outcome.json"

    @property
    def messages_file(self) -> Path:
        """The file of stderr."""
        return self.path / "messages.txt"

    @property
    def progress_file(self) -> Path:
        """The file of the current stage."""
        return self.path / "progress.json"

    @property
    def _told(self) -> Mapping[str, Any]:
        told: Mapping[str, Any] = files.read_json(self.path / "job.json", "job")
        return told

    @property
    def arguments(self) -> list[str]:
        """The words of the command."""
        return [str(word) for word in self._told["arguments"]]

    @property
    def verb(self) -> str:
        """Its verb."""
        return self.arguments[0]

    @property
    def about(self) -> Mapping[str, str]:
        """The facts that it was started with."""
        found: Mapping[str, str] = self._told["about"]
        return found

    @property
    def began(self) -> str:
        """The moment at which it began, as ISO 8601."""
        return str(self._told["began"])

    @property
    def command(self) -> str:
        """The command line."""
        return command(*self.arguments)

    @property
    def alive(self) -> bool:
        """Whether its process lives."""
        import fcntl

        try:
            with self.lock.open("rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def state(self) -> State:
        """Its state; ``killed`` where it ended without a word."""
        if self.alive:
            return "running"
        told = self._outcome
        if told is None:
            return "killed"
        if told["ok"]:
            return "done"
        return "stopped" if (told["error"] or {}).get("code") == _INTERRUPTED else "refused"

    @property
    def progress(self) -> StageProgress | None:
        """Its current stage, or the one in which it ended."""
        return read_progress(self.progress_file)

    @property
    def result(self) -> Mapping[str, Any]:
        """Its result as ``--json`` prints it; empty where there is none."""
        told = self._outcome
        return told["result"] if told is not None and told["ok"] else {}

    @property
    def error(self) -> Mapping[str, str | None]:
        """Code, field, message and remedy of its error; empty where there is none."""
        told = self._outcome
        return {} if told is None or told["ok"] else told["error"]

    @property
    def line(self) -> str:
        """Its error in one line, as the command line prints it; empty where there is none."""
        error = self.error
        if not error:
            return ""
        head = ": ".join(str(error[key]) for key in ("field", "message") if error.get(key))
        return f"{head}; {error['remedy']}" if error.get("remedy") else head

    @property
    def messages(self) -> str:
        """The end of what it said on stderr."""
        try:
            with self.messages_file.open("rb") as file:
                file.seek(max(0, self.messages_file.stat().st_size - _MESSAGES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def stop(self) -> None:
        """Ask it to stop, as Ctrl-C does: at its next safe place, with what was bought kept."""
        if self.alive:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self.path / "process").read_text()), signal.SIGTERM)

    def forget(self) -> None:
        """Remove its folder, unless it runs."""
        if not self.alive:
            shutil.rmtree(self.path, ignore_errors=True)

    @property
    def _outcome(self) -> Mapping[str, Any] | None:
        try:
            found = json.loads(self.outcome_file.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "ok" in found else None


def _private(path: Path) -> BinaryIO:
    """Return a new file that its owner alone can read: what an evaluation prints is computed on real rows."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _environment(job: StudioJob) -> dict[str, str]:
    """Return the environment of a job: this doublure, whatever the folder, and the file of its progress."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)  # an empty or relative one would be in the data's folder
    places = [str(Path(__file__).parents[2]), *(str(Path(place).resolve()) for place in given if place)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "DOUBLURE_PROGRESS_FILE": str(job.progress_file),
    }


__all__ = ["StudioJob", "StudioJobs"]
