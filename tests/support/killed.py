"""Fits that are killed with -9 at a named point, in a child of this process, and noise by which a second draw shows.

The noise of a question follows from its exact answer, so that a killed run that goes on gives, bit for bit, what
one gives that nobody kills. Each draw is written down before it is made: a line twice is a draw twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import named_noise
import numpy as np
import pytest

POINTS = ("asked", "paid", "kept")
"""After an exact answer; after its payment; after its noisy answer is kept."""


def noted_noise(patch: pytest.MonkeyPatch, notes: Path) -> None:
    """Draw whole noise from the exact answer, and note each draw.

    Args:
        patch: What it is installed by.
        notes: A file that only grows.
    """
    from doublure.private import whole_noise
    from doublure.private.noise import ScaledNoise

    gaussian, laplace, thresholded = whole_noise.gaussian, whole_noise.laplace, whole_noise.thresholded

    def stream(exact: bytes, *words: object) -> np.random.Generator:
        name = hashlib.sha256(exact + repr(words).encode()).hexdigest()
        note(notes, name)
        return np.random.default_rng(int(name[:16], 16))

    def noisy(counts: Any, spread: float, *words: object) -> Any:
        exact = whole_noise.whole(counts)
        return exact + np.rint(stream(exact.tobytes(), *words).normal(0, spread, exact.shape)).astype(np.int64)

    def drawn(counts: Any, *, scale: float) -> Any:
        return ScaledNoise(noisy(counts, scale, "gaussian", scale), gaussian(counts, scale=scale).scale)

    def of_laplace(counts: Any, *, epsilon: float, moved: int) -> Any:
        honest = laplace(counts, epsilon=epsilon, moved=moved)
        return ScaledNoise(noisy(counts, moved / epsilon, "laplace", epsilon), honest.scale)

    def of_names(counts: Any, *, epsilon: float, delta: float, moved: int) -> Any:
        honest = thresholded(counts, epsilon=epsilon, delta=delta, moved=moved)
        source = stream(repr(sorted(counts.items())).encode(), "names")
        found = {name: int(count + round(source.normal())) for name, count in sorted(counts.items())}
        return honest._replace(counts={name: count for name, count in found.items() if count > 20})

    patch.setattr(whole_noise, "gaussian", drawn)
    patch.setattr(whole_noise, "laplace", of_laplace)
    patch.setattr(whole_noise, "thresholded", of_names)


def note(notes: Path, line: str) -> None:
    """Write a line down, unbuffered: a kill loses none."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def draws(notes: Path) -> list[str]:
    """Return the draws that were noted."""
    return notes.read_text().split() if notes.is_file() else []


def dies_at(point: str, number: int, ledger: Path | None = None) -> None:
    """Let this process kill itself when it reaches a point for so many times.

    Args:
        point: One of ``POINTS``.
        number: From 1.
        ledger: The one whose payments count, where others are paid from in this process, too.
    """
    from doublure.ledger import Reservation
    from doublure.run.answers import AnswersInFolder

    left = [number]

    def turn(name: str) -> None:
        if name == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    room = AnswersInFolder.room

    @contextlib.contextmanager
    def watched(store: Any, place: Any, size: int) -> Iterator[Callable[[Any], None]]:
        turn("asked")
        with room(store, place, size) as keep:

            def kept(answer: Any) -> None:
                keep(answer)
                turn("kept")

            yield kept

    AnswersInFolder.room = watched  # type: ignore[method-assign]
    for name in ("advance", "noise_drawn"):
        honest = getattr(Reservation, name)

        def paid(reservation: Any, what: Any, honest: Any = honest) -> None:
            honest(reservation, what)
            if ledger is None or reservation._store.place.address == str(ledger.absolute()):
                turn("paid")

        setattr(Reservation, name, paid)


def started(act: Callable[[], int | None]) -> int:
    """Do something in a child of this process, which need not import what it needs; return the child's number.

    It draws from the operating system, as every other process does, and ends with what ``act`` returns, or with 70.
    """
    child = os.fork()
    if child == 0:
        code = 70
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest-timeout's would go on with the tests here
            signal.alarm(120)
            named_noise.leave()
            if "torch" in sys.modules:  # threads that the parent's work has started are no longer there
                sys.modules["torch"].set_num_threads(1)
            code = act() or 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a child; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(act: Callable[[], object], point: str, number: int, ledger: Path | None = None) -> bool:
    """Do something in a child that dies at a point; return whether it got there."""

    def watched() -> None:
        dies_at(point, number, ledger)
        act()

    return ended(started(watched)) == -signal.SIGKILL
