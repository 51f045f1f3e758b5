"""Stopping a run on Ctrl-C or SIGTERM: between two steps, where its state is kept, and within two seconds.

==========================================  ==========================================================================
a signal, of either kind                    what happens
==========================================  ==========================================================================
the first, while nothing could be lost      the run ends at once: records are read or encoded
the first, otherwise                        it ends at its next safe place, where nothing that was drawn is lost
no such place within a second               it ends at once, as if killed: what was authorised and lost counts
the second, before that                     it ends at once, too
any, while something is drawn and kept      nothing until it is kept; then as above
any, while a run that ends is being closed  nothing: the ledger and the folder are closed undisturbed
==========================================  ==========================================================================
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from doublure.errors import Interrupted

_PATIENCE = 1.0  # seconds; a step of most runs takes less


class StopSignal:
    """Watches for SIGINT and SIGTERM."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._closing = False
        self._careful = True
        self._unbroken = False
        self._late = False
        self._alarm: threading.Timer | None = None

    def check(self) -> None:
        """Go on, or stop here.

        Raises:
            Interrupted: A signal has come.
        """
        if self._event.is_set():
            raise Interrupted("stopped")

    def close(self) -> None:
        """Ignore signals from now on, as the run is being closed."""
        self._closing = True

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Let the first signal, too, end the run at once, as nothing can be lost inside.

        Raises:
            Interrupted: It came before.
            KeyboardInterrupt: It comes here.
        """
        self._careful = False
        try:
            self.check()
            yield
        finally:
            self._careful = True

    @contextlib.contextmanager
    def unbroken(self) -> Iterator[None]:
        """Delay signals until the block has ended.

        Raises:
            KeyboardInterrupt: It came.
        """
        self._unbroken = True
        try:
            yield
        finally:
            self._unbroken = False
        if self._late:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Report the first signal by :meth:`check`; a second one, or a second without a check, ends the run at once.

        Raises:
            KeyboardInterrupt: The run ends at once.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {}
        for watched in (signal.SIGINT, signal.SIGTERM):
            # None: a handler that Python did not install and cannot put back
            before[watched] = signal.getsignal(watched) or signal.SIG_DFL
            signal.signal(watched, self._seen)
        try:
            yield
        finally:
            self._closing = True
            self._disarm()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _seen(self, number: int, _: object) -> None:
        if self._closing:
            return
        first = not self._event.is_set()
        self._event.set()
        self._disarm()
        self._alarm = threading.Timer(_PATIENCE, _signal_again, [number])
        self._alarm.daemon = True
        self._alarm.start()
        if first and self._careful:
            return
        if self._unbroken:
            self._late = True
            return
        raise KeyboardInterrupt

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm.join()  # so that it does not signal a later handler


def _signal_again(number: int) -> None:
    """Signal the main thread, to interrupt a system call that it waits for."""
    signal.pthread_kill(threading.main_thread().ident or 0, number)


@contextlib.contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM; without effect outside the main thread, which alone can set handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)
