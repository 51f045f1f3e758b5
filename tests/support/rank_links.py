"""Ranks as threads of one process: the production code of all of them, over queues in place of gloo."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

GONE = b""


class ThreadLink:
    """One rank's way to the others.

    Args:
        rank: Which.
        size: How many there are.
        queues: From each rank to each.

    Attributes:
        dies_before: Tells of a message that is about to be sent whether the rank dies in place of it.
    """

    def __init__(self, rank: int, size: int, queues: dict[tuple[int, int], queue.SimpleQueue[bytes]]) -> None:
        self.rank, self.size, self._queues = rank, size, queues
        self.dies_before: Callable[[bytes], bool] = lambda content: False
        self.sent: list[bytes] = []

    def send(self, content: bytes, to: int, within: timedelta | None = None) -> None:
        if self.dies_before(content):
            self.die()
            raise SystemExit
        self.sent.append(content)
        self._queues[self.rank, to].put(content)

    def receive(self, of: int) -> bytes:
        content = self._queues[of, self.rank].get(timeout=60)
        if content == GONE:
            self._queues[of, self.rank].put(GONE)
            raise ConnectionError
        return content

    def die(self) -> None:
        """Close all connections, as the end of a process does."""
        for other in range(self.size):
            self._queues[self.rank, other].put(GONE)


def links(size: int) -> list[ThreadLink]:
    """Return one link a rank."""
    queues: dict[tuple[int, int], queue.SimpleQueue[bytes]] = {
        (one, other): queue.SimpleQueue() for one in range(size) for other in range(size)
    }
    return [ThreadLink(rank, size, queues) for rank in range(size)]


def on_ranks(first: Callable[[ThreadLink], Any], other: Callable[[ThreadLink], Any], *, size: int = 2) -> Any:
    """Run rank 0 here and the others in threads; return what rank 0 returns, or raise what it raises.

    Args:
        first: Rank 0's program.
        other: That of every other rank; what it raises is raised here, if rank 0 raises nothing.
        size: How many there are.
    """
    own = links(size)
    raised: list[BaseException] = []

    def run(link: ThreadLink) -> None:
        try:
            other(link)
        except SystemExit:
            pass
        except BaseException as error:
            raised.append(error)
        finally:
            link.die()

    threads = [threading.Thread(target=run, args=[link], daemon=True) for link in own[1:]]
    for thread in threads:
        thread.start()
    try:
        found = first(own[0])
    finally:
        own[0].die()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a rank hangs"
    if raised:
        raise raised[0]
    return found
