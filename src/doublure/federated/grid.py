"""In-process Flower grid without Ray: each message is answered by a client app's function.

This is the only place that uses a private name of Flower (the identity of the process's task, which messages need); the
version of Flower therefore has an upper bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

_SELF = 1
_AT_ONCE = 8


class InProcessGrid(Grid):
    """Client apps in this process, several at once, as owners mostly wait for their disks.

    Args:
        app: The app of every node.
        nodes: Their numbers.
        check: Called after each reply; may raise to stop.
    """

    def __init__(self, app: ClientApp, nodes: Sequence[int], check: Callable[[], None] = lambda: None) -> None:
        for name in ("task_id", "run_id", "node_id"):
            setattr(TaskIdentity, name, _SELF)
        self._app = app
        self._contexts = {node: Context(_SELF, node, {}, RecordDict(), {}) for node in nodes}
        self._replies: dict[str, Message] = {}
        self._numbers = itertools.count(1)
        self._check = check

    def set_run(self, run: Any) -> None:
        """Do nothing: there is one run."""

    @property
    def run(self) -> Any:
        """None: there is one run."""
        return None

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """Return a message."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> list[int]:
        """Return the numbers of all nodes."""
        return list(self._contexts)

    def get_nodes(self) -> list[Any]:
        """Return nothing: nodes are not described."""
        return []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Deliver messages, several at once, and keep the replies."""
        numbered = []
        for message in messages:
            number = str(next(self._numbers))
            message.metadata.__dict__["_message_id"] = number
            numbered.append((number, message))
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            try:
                for (number, _), reply in zip(numbered, workers.map(self._replied, numbered), strict=True):
                    self._check()
                    self._replies[number] = reply
            except BaseException:
                workers.shutdown(cancel_futures=True)
                raise
        return [number for number, _ in numbered]

    def _replied(self, numbered: tuple[str, Message]) -> Message:
        _, message = numbered
        return self._app(message, self._contexts[message.metadata.dst_node_id])

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies that have come."""
        return [self._replies.pop(each) for each in list(message_ids) if each in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Deliver messages and return the replies."""
        return self.pull_messages(self.push_messages(messages))
