"""A Flower grid in this process, without Ray: each message goes to a client app's function, and its reply comes back.

The one place that uses a private name of Flower (the identity of the process's task, without which no message can be
made), which is why the version of Flower has an upper bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

_SELF = 1


class InProcessGrid(Grid):
    """Client apps in this process, one after the other.

    Args:
        app: What every node runs.
        nodes: Their numbers.
        check: Called before each message is handed over; may raise to stop.
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
        """There is one run."""

    @property
    def run(self) -> Any:
        """There is one run."""
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
        """Nobody is described."""
        return []

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Hand messages over, one after the other, and keep the replies."""
        pushed = []
        for message in messages:
            self._check()
            number = str(next(self._numbers))
            message.metadata.__dict__["_message_id"] = number
            self._replies[number] = self._app(message, self._contexts[message.metadata.dst_node_id])
            pushed.append(number)
        return pushed

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies that are there."""
        return [self._replies.pop(each) for each in list(message_ids) if each in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Hand messages over and return the replies."""
        return self.pull_messages(self.push_messages(messages))
