"""Progress of long work: events for a listener, or one line in a terminal or notebook.

Without a listener, a :class:`ProgressLine` is shown where it is visible: on stderr in a terminal, and below the cell in
a notebook. Elsewhere (a script's log, a pipe, a test) it is quiet. ``progress=False`` switches it off, and so does the
environment: ``DOUBLURE_PROGRESS=0``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
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
        left = (now - self._stage_began) * (self._total - done) / max(1, done)
        still = f", about {format_seconds(left)} left" if _TELLING * self._total <= done < self._total else ""
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


def _seen(anyway: bool) -> TextIO | None:
    """Return the stream on which a line is visible; not stderr in a notebook, which shows it as an error."""
    if os.environ.get("DOUBLURE_PROGRESS", "").strip().lower() in _OFF:
        return None
    if in_notebook():
        return sys.stdout
    stream = sys.stderr
    try:
        return stream if anyway or (stream is not None and stream.isatty()) else None
    except ValueError:  # closed
        return None


__all__ = ["Progress", "ProgressLine", "SilentProgress", "format_seconds", "in_notebook", "listen"]
