"""Stopping a run between two steps, where its state can be kept."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from doublure.errors import Interrupted


class StopSignal:
    """Whether SIGINT or SIGTERM has come."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def check(self) -> None:
        """Go on, or stop here.

        Raises:
            Interrupted: A signal has come.
        """
        if self._event.is_set():
            raise Interrupted("stopped")

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Let the first signal be seen by :meth:`check`; a second one ends the run at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {}

        def stop(number: int, _: object) -> None:
            self._event.set()
            signal.signal(number, before[number])

        for watched in (signal.SIGINT, signal.SIGTERM):
            # None: a handler that Python did not install and cannot put back
            before[watched] = signal.getsignal(watched) or signal.SIG_DFL
            signal.signal(watched, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
