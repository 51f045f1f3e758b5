"""Log of a coordinator's runs in the app's folder: stages, questions, owners that failed, and how each run ended."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from typing_extensions import override

from doublure.errors import DoublureError, InputError
from doublure.support.progress import SilentProgress

LOG = "rounds.log"
_WAIT = 0.5
"""Seconds between two looks at the file while it is followed."""
End = Literal["", "done", "failed"]


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line.

    Attributes:
        utc: The time, ISO 8601.
        said: The event in words; no value of a record.
        begins: Whether a run begins with it.
        end: How the run ended with it, if it did.
    """

    utc: str
    said: str
    begins: bool = False
    end: End = ""

    def __str__(self) -> str:
        return f"{self.utc} {self.said}"


class RoundsLog:
    """A log that only grows, mode 0600: it names owners.

    Args:
        path: Of the file; None: nothing is kept.
        tell: Called with each line, too.
    """

    def __init__(self, path: Path | None, tell: Callable[[str], None] = lambda line: None) -> None:
        self._path = path
        self._tell = tell

    def add(self, said: str, *, begins: bool = False, end: End = "") -> None:
        """Add a line; a log that cannot be written stops no run."""
        self._tell(said)
        if self._path is None:
            return
        utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps(asdict(LogLine(utc=utc, said=said, begins=begins, end=end))) + "\n"
        with contextlib.suppress(OSError):
            log = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(log, line.encode())
            finally:
                os.close(log)

    @contextlib.contextmanager
    def run(self, said: str) -> Iterator[None]:
        """Log the beginning of a run, and its end however it comes."""
        self.add(said, begins=True)
        try:
            yield
        except DoublureError as error:
            self.add(str(error), end="failed")
            raise
        except BaseException as error:
            self.add(f"ended by a defect: {type(error).__name__}", end="failed")
            raise
        self.add("done", end="done")


class LoggedStages(SilentProgress):
    """Progress as lines of a log, one a stage.

    Args:
        log: The log.
    """

    def __init__(self, log: RoundsLog) -> None:
        self._log = log

    @override
    def stage(self, name: str, total: int | None = None) -> None:
        self._log.add(name)


def read_log(app: Path) -> list[LogLine]:
    """Return the lines of the last run; empty before the first.

    Raises:
        InputError: The folder is no app.
    """
    if not (app / "pyproject.toml").is_file():
        raise InputError("is no app", field=app, remedy="give the folder that doublure federate init wrote")
    found: list[LogLine] = []
    with contextlib.suppress(FileNotFoundError):
        for text in (app / LOG).read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, TypeError):  # a line that is being written
                line = LogLine(**json.loads(text))
                found = [line] if line.begins else [*found, line]
    return found


def follow_log(app: Path) -> Iterator[LogLine]:
    """Yield the lines of the last run as they come, until it ends.

    Raises:
        InputError: The folder is no app.
    """
    shown: list[LogLine] = []
    while True:
        lines = read_log(app)
        known = shown if lines[: len(shown)] == shown else []  # another run has begun
        yield from lines[len(known) :]
        shown = lines
        if shown and shown[-1].end:
            return
        time.sleep(_WAIT)
