"""Flower transport: messages as the content of Flower's messages, over a Flower grid.

A message's bytes (:mod:`doublure.support.messages`) are the data of one Flower array. Flower splits large ones and does
not interpret them. Flower's own differential privacy is not used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.app import Array, ArrayRecord, Context, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from doublure.errors import SettingError
from doublure.federated.silo import Silo
from doublure.support.messages import Message

if TYPE_CHECKING:
    from collections.abc import Callable

ACTION = "doublure"
_CONTENT, _FORM = "message", "bytes"


def encode(message: Message) -> RecordDict:
    """Return the content of a Flower message that carries a message."""
    content = message.to_bytes()
    return RecordDict({_CONTENT: ArrayRecord({_CONTENT: Array(_FORM, (len(content),), _FORM, content)})})


def decode(content: RecordDict) -> Message | None:
    """Return the message that a Flower message carries; None if it is malformed."""
    try:
        return Message.from_bytes(content[_CONTENT][_CONTENT].data)
    except Exception:  # untrusted bytes, in Flower's own records
        return None


class FlowerTransport:
    """Transport over a Flower grid.

    Args:
        grid: Flower's, or one in this process.
        timeout: Seconds to wait for all answers to one question; None: for ever.
    """

    def __init__(self, grid: Grid, *, timeout: float | None = None) -> None:
        self._grid = grid
        self._timeout = timeout

    def nodes(self) -> Iterable[int]:
        """Return the numbers of the connected nodes."""
        return list(self._grid.get_node_ids())

    def send(self, messages: Mapping[int, Message]) -> Iterator[tuple[int, Message | None]]:
        """Send a message to each node; yield nodes with their replies, None for an unreadable one."""
        contents: dict[int, RecordDict] = {}
        outgoing = []
        for number, (node, message) in enumerate(messages.items()):
            contents[node] = encode(message)
            outgoing.append(FlowerMessage(contents[node], node, f"query.{ACTION}", group_id=str(number)))
        for reply in self._grid.send_and_receive(outgoing, timeout=self._timeout):
            node = reply.metadata.src_node_id
            if not reply.has_error():  # else the owner has not answered, and it may be the link that says so
                yield node, decode(reply.content)


def client_app(owner_of: Callable[[Context], Silo]) -> ClientApp:
    """Return the Flower app of an owner.

    Args:
        owner_of: Returns the owner of a node, the same one on each call.
    """
    app = ClientApp()

    @app.query(ACTION)
    def query(message: FlowerMessage, context: Context) -> FlowerMessage:
        answer = owner_of(context).answer(decode(message.content) or Message())
        return FlowerMessage(encode(answer), reply_to=message)

    return app


_OWNERS: dict[str, Silo] = {}


def open_node_owner(context: Context) -> Silo:
    """Return the owner that a SuperNode's ``--node-config`` describes.

    It names data, plan, ledger and folder; optionally the owner's name, its public number of units, and whether a plan
    may be charged again.

    Raises:
        SettingError: One of them is missing or malformed.
    """
    from doublure.planning import Plan

    config: Mapping[str, Any] = context.node_config
    for key in ("data", "plan", "ledger", "folder"):
        if not isinstance(config.get(key), str):
            remedy = 'start flower-supernode with --node-config \'data="…" plan="…" ledger="…" folder="…"\''
            raise SettingError("is missing", field=f"node-config {key}", remedy=remedy)
    folder = Path(str(config["folder"])).resolve()
    units, again = config.get("units"), config.get("again", False)
    if units is not None and type(units) is not int:
        raise SettingError("is no whole number", field="node-config units", remedy="write units=2500, without quotes")
    if type(again) is not bool:
        raise SettingError("is neither true nor false", field="node-config again", remedy="write again=true")
    if str(folder) not in _OWNERS:
        _OWNERS[str(folder)] = Silo(
            name=str(config.get("name", f"node {context.node_id}")),
            data=os.fspath(str(config["data"])),
            plan=Plan.load(str(config["plan"])),
            ledger=str(config["ledger"]),
            folder=folder,
            units=units,
            again=again,
        )
    return _OWNERS[str(folder)]
