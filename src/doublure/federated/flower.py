"""Flower's messages: what is said becomes a message's content, and a Flower grid becomes a post.

Words travel as JSON in a ``ConfigRecord``, arrays in an ``ArrayRecord``, each as Flower's NumPy bytes, which are read
without pickle. Flower's own differential privacy is not used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from doublure.errors import SettingError
from doublure.federated.silo import Silo
from doublure.federated.wire import NUMBERS, Said

if TYPE_CHECKING:
    from collections.abc import Callable

ACTION = "doublure"
_WORDS, _ARRAYS, _JSON = "words", "arrays", "json"
_MOST_WORDS = 10**8


def written(said: Said) -> RecordDict:
    """Return a message's content."""
    arrays = ArrayRecord({name: Array(array) for name, array in said.arrays.items()})
    words = ConfigRecord({_JSON: json.dumps(said.words, ensure_ascii=False)})
    return RecordDict({_WORDS: words, _ARRAYS: arrays})


def read(content: RecordDict) -> Said | None:
    """Return what a message's content says; None where it is not in this form."""
    try:
        text = content[_WORDS][_JSON]
        if not isinstance(text, str) or len(text) > _MOST_WORDS:
            return None
        words = json.loads(text)
        arrays = {str(name): array.numpy() for name, array in content[_ARRAYS].items()}
    except Exception:  # a stranger's bytes: whatever they are, they are not in this form
        return None
    if not isinstance(words, dict) or any(array.dtype.kind not in NUMBERS for array in arrays.values()):
        return None
    return Said(words, arrays)


class FlowerPost:
    """A Flower grid as a post.

    Args:
        grid: Flower's, or one in this process.
        timeout: Seconds to wait for everybody's answer to one question; None: for ever.
    """

    def __init__(self, grid: Grid, *, timeout: float | None = None) -> None:
        self._grid = grid
        self._timeout = timeout

    def nodes(self) -> Iterable[int]:
        """Return who is there."""
        return list(self._grid.get_node_ids())

    def sent(self, messages: Mapping[int, Said]) -> Iterator[tuple[int, Said | None]]:
        """Send a message to each node; yield who answers and what, None where it is unreadable."""
        contents: dict[int, RecordDict] = {}
        outgoing = []
        for number, (node, said) in enumerate(messages.items()):
            contents[node] = written(said)
            outgoing.append(Message(contents[node], node, f"query.{ACTION}", group_id=str(number)))
        for reply in self._grid.send_and_receive(outgoing, timeout=self._timeout):
            node = reply.metadata.src_node_id
            if not reply.has_error():  # else the owner has not answered, and it may be the link that says so
                yield node, read(reply.content)


def client_app(owner_of: Callable[[Context], Silo]) -> ClientApp:
    """Return the Flower app of an owner.

    Args:
        owner_of: Returns the owner that a node is, the same one each time.
    """
    app = ClientApp()

    @app.query(ACTION)
    def query(message: Message, context: Context) -> Message:
        said = read(message.content)
        answer = owner_of(context).heard(Said({}, {}) if said is None else said)
        return Message(written(answer), reply_to=message)

    return app


_OWNERS: dict[str, Silo] = {}


def owner_of_node(context: Context) -> Silo:
    """Return the owner that a SuperNode's ``--node-config`` describes.

    It names data, plan, ledger and folder; and, if that is wanted, the owner, its public number of units, and whether
    a plan may be charged again.

    Raises:
        SettingError: One of them is missing, or of another form.
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
            ledger=Path(str(config["ledger"])),
            folder=folder,
            units=units,
            again=again,
        )
    return _OWNERS[str(folder)]
