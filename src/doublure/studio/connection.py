"""A connection to the studio: of this user, and not for ever.

=====================================  ===============================================================================
what a connection does                 what happens
=====================================  ===============================================================================
it is another user's of this machine   it is told so, and what it sends is not read
it sends no request, or half a head    it is closed after :data:`PATIENCE`
a body stops in the middle             it is closed after :data:`PATIENCE`
there are too many                     it is closed: half of the descriptors are for files
=====================================  ===============================================================================
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from doublure.studio.peer import is_strange

PATIENCE = 10.0
"""Seconds: a packet that is lost three times is sent again after 1 + 2 + 4 of them (RFC 6298)."""
_TOLD = 1.0
_STRANGE = b"The studio is another user's of this machine."
_REFUSAL = (
    b"HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_STRANGE), _STRANGE)
)


class Connection(H11Protocol):  # type: ignore[misc]
    """HTTP on one connection, as uvicorn speaks it, with an end to waiting."""

    _late: asyncio.TimerHandle | None = None
    _strange = False

    def connection_made(self, transport: Any) -> None:
        """Begin, or refuse."""
        super().connection_made(transport)
        self._strange = is_strange(self.client, self.server)
        if self._strange:
            transport.write(_REFUSAL)
            self._wait(_TOLD)  # closed at once, with a request unread, the answer might be lost
        elif len(self.connections) > _most_connections():
            transport.abort()
        else:
            self._wait(PATIENCE)

    def data_received(self, data: bytes) -> None:
        """Take what was sent, and wait for the rest of it."""
        if not self._strange:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        """Go on with what was sent meanwhile."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Wait for the rest of a head, from its first byte on, or for the next part of a body."""
        begun = self.conn.their_state
        if begun is h11.IDLE and self.timeout_keep_alive_task is None:
            if self._late is None:
                self._wait(PATIENCE)
        elif begun is h11.SEND_BODY:
            self._wait(PATIENCE)
        else:
            self._forget()

    def _wait(self, seconds: float) -> None:
        self._forget()
        self._late = self.loop.call_later(seconds, self._end)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end(self) -> None:
        if self.flow.read_paused:  # what was sent is still being taken
            self._wait(PATIENCE)
        else:
            self.transport.abort()


def _most_connections() -> int:
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most // 2


__all__ = ["PATIENCE", "Connection"]
