"""Progress of long work: events for a listener, or one line in a terminal or notebook.

Without a listener, a :class:`ProgressLine` is shown where it is visible: on stderr in a terminal, and below the cell in
a notebook. Elsewhere (a script's log, a pipe, a test) it is quiet. ``progress=False`` switches it off, and so does the
environment: ``DOUBLURE_PROGRESS=0``.

Another process follows a command through a file: ``DOUBLURE_PROGRESS_FILE=FILE doublure fit …`` keeps the current stage
there, and :func:`read_progress` reads it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol, TextIO

_EVERY = 0.25
"""Seconds between two writings of a line."""
_TELLING = 0.1
"""The share of a stage that is done before the rest is forecast."""
_OFF = frozenset({"0", "off", "no", "false"})
_WIDTH = 78


class Progress(Protocol):
    """Receives progress events: stages and counts."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage begins; ``total`` counts its units of work, if they can be counted."""

    def at(self, done: int) -> None:
        """So many units of the stage's work are done."""


class SilentProgress:
    """Ignores progress events."""

    def stage(self, name: str, total: int | None = None) -> None:
        """Ignore it."""

    def at(self, done: int) -> None:
        """Ignore it."""


class TitledProgress:
    """Passes progress events on, with the part of the work that each stage belongs to.

    Args:
        inner: Receives the events.
        title: The part, such as a table.
    """

    def __init__(self, inner: Progress, title: str) -> None:
        self._inner, self._title = inner, title

    def stage(self, name: str, total: int | None = None) -> None:
        """Pass the stage on under its title."""
        self._inner.stage(f"{self._title}: {name}", total)

    def at(self, done: int) -> None:
        """Pass it on."""
        self._inner.at(done)


class ProgressLine:
    """One line that is overwritten: the current stage, its progress, and the forecast of the remaining time.

    Args:
        stream: Stream to write to.
        work: Name of all stages together, for the last line.
    """

    def __init__(self, stream: TextIO, work: str) -> None:
        self._stream, self._work = stream, work
        self._name, self._total = "", 0
        self._began = self._stage_began = time.monotonic()
        self._written = 0.0

    def stage(self, name: str, total: int | None = None) -> None:
        """Show the stage's name."""
        self._name, self._total = name, total or 0
        self._stage_began = time.monotonic()
        self._write(f"{self._work}: {name}")

    def at(self, done: int) -> None:
        """Show the progress of the stage, at most four times a second."""
        now = time.monotonic()
        if not self._total or now - self._written < _EVERY:
            return
        left = forecast_rest(now - self._stage_began, done, self._total)
        still = "" if left is None else f", about {format_seconds(left)} left"
        self._write(f"{self._work}: {self._name}, {done:,} of {self._total:,}{still}")

    def close(self, *, done: bool) -> None:
        """End the line with the total time, or with the stage where the work stopped."""
        if not self._name:  # nothing was begun
            return
        took = format_seconds(time.monotonic() - self._began)
        self._write(f"{self._work}: done in {took}" if done else f"{self._work}: stopped at: {self._name}", end="\n")

    def _write(self, text: str, end: str = "") -> None:
        self._written = time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # full or closed: progress is optional
            self._stream.write(f"\r{text[:_WIDTH]:<{_WIDTH}}{end}")
            self._stream.flush()


def forecast_rest(elapsed: float, done: int, total: int) -> float | None:
    """Return the seconds that a stage still takes; None before a tenth of it is done, and at its end.

    Example:
        >>> forecast_rest(3.0, 25, 100), forecast_rest(3.0, 1, 100)
        (9.0, None)
    """
    return elapsed * (total - done) / max(1, done) if _TELLING * total <= done < total else None


@dataclass(frozen=True, kw_only=True)
class StageProgress:
    """The current stage of a command, as another process reads it.

    Attributes:
        stage: Its name.
        number: Its place among the stages so far, from 1.
        total: Units of work in it; 0 where they cannot be counted.
        done: Units that are done.
        elapsed: Seconds since the command began.
        left: Forecast of the seconds that the stage still takes; None where there is none.
    """

    stage: str
    number: int
    total: int
    done: int
    elapsed: float
    left: float | None


class FileProgress:
    """Keeps the current stage in a file of mode 0600, at most four times a second.

    Args:
        path: The file, replaced as a whole: a reader never meets half of it.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._name, self._total, self._number = path, "", 0, 0
        self._began = self._stage_began = time.monotonic()
        self._written = 0.0

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin a stage."""
        self._name, self._total, self._number = name, total or 0, self._number + 1
        self._stage_began = time.monotonic()
        self._write(0)

    def at(self, done: int) -> None:
        """Keep the progress of the stage."""
        if done == self._total or time.monotonic() - self._written >= _EVERY:
            self._write(done)

    def _write(self, done: int) -> None:
        now = self._written = time.monotonic()
        status = StageProgress(
            stage=self._name,
            number=self._number,
            total=self._total,
            done=done,
            elapsed=now - self._began,
            left=forecast_rest(now - self._stage_began, done, self._total) if self._total else None,
        )
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        with contextlib.suppress(OSError):  # a full disk: progress is optional
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(asdict(status), file)
            part.replace(self._path)


def followed() -> FileProgress | None:
    """Return the file by which another process follows this one, if the environment names one."""
    path = os.environ.get("DOUBLURE_PROGRESS_FILE", "")
    return FileProgress(Path(path)) if path else None


def read_progress(path: Path) -> StageProgress | None:
    """Return the stage that a command keeps in a file, its times as of now; None before its first."""
    try:
        age = max(0.0, time.time() - path.stat().st_mtime)
        kept = StageProgress(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    left = None if kept.left is None else max(0.0, kept.left - age)
    return replace(kept, elapsed=kept.elapsed + age, left=left)


@contextlib.contextmanager
def listen(asked: Progress | bool | None, work: str) -> Iterator[Progress]:
    """Yield the listener for the events of some work, and end its line.

    Args:
        asked: A listener; None for a line where it can be seen, False for none, True for a line in any case.
        work: Name of the work.
    """
    if asked is not None and not isinstance(asked, bool):
        yield asked
        return
    stream = None if asked is False else _seen(asked is True)
    if stream is None:
        yield SilentProgress()
        return
    shown = ProgressLine(stream, work)
    try:
        yield shown
    except BaseException:
        shown.close(done=False)
        raise
    shown.close(done=True)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this: an IPython shell with a kernel, as Jupyter, VS Code and Colab have it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def format_seconds(number: float) -> str:
    """Return a time in short words.

    Example:
        >>> format_seconds(0.4), format_seconds(11.4), format_seconds(4000)
        ('1 s', '11 s', '67 min')
    """
    return f"{max(1, round(number))} s" if number < 90 else f"{round(number / 60)} min"


def is_off() -> bool:
    """Whether the environment switches progress off."""
    return os.environ.get("DOUBLURE_PROGRESS", "").strip().lower() in _OFF


def _seen(anyway: bool) -> TextIO | None:
    """Return the stream on which a line is visible; not stderr in a notebook, which shows it as an error."""
    if is_off():
        return None
    if in_notebook():
        return sys.stdout
    stream = sys.stderr
    try:
        return stream if anyway or (stream is not None and stream.isatty()) else None
    except ValueError:  # closed
        return None


__all__ = [
    "FileProgress",
    "Progress",
    "ProgressLine",
    "SilentProgress",
    "StageProgress",
    "format_seconds",
    "in_notebook",
    "is_off",
    "listen",
    "read_progress",
]
