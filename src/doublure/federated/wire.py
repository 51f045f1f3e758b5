"""Questions of a federation as messages (:mod:`doublure.support.messages`).

Nothing that arrives is trusted: malformed messages are refused by name. Both ends state their version of this format,
which must be the same. Answers are written by :meth:`doublure.private.queries.query.Answer.to_message`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from doublure.access import Access, without_purpose
from doublure.planning import Plan
from doublure.private.queries.axes import axes_from_message, axes_to_message, whole
from doublure.private.queries.counts import Counts
from doublure.support.messages import Message, malformed

VERSION = 8
"""Version of the format. In version 7 the words of purposes were compared; in version 6 gaps between moments were
differences; in version 5 no identities were counted; in version 4 no hours were; in version 3 owners were told the
schema where nothing is learned; in version 2 words and arrays travelled apart; in version 1 they declared no units."""
HELLO, HEADER, BEGIN, END = "hello", "header", "begin", "end"
CHARGED = "charged"
"""Key of an owner's final answer whether a run stays charged."""

UNITS = "units"
"""Key of an owner's declared number of units."""

_MOST_TABLES, _MOST_CELLS = 10**6, 2**28
_FREE = ("seconds_estimate", "memory_bytes", "warnings")
"""Keys of a plan that depend on the machine and on the version's wording; they are not binding."""


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of the binding part of a plan.

    Versions may word the purpose of an access differently, and the sentence of a claim. What an owner pays for is the
    rest: the events, their prices, order and number, the fact that each learns, how its noise is held to its claim, and
    the claim's figures, assumptions and exclusions.
    """
    said = json.loads(json.dumps({**plan.to_json(), "touches": [_binding(access) for access in plan.touches]}))
    del said["guarantee"]["sentence"]
    return Message({key: value for key, value in said.items() if key not in _FREE}).sha256


def _binding(access: Access) -> dict[str, Any]:
    held = {"path": access.path, "estimated": access.estimated, "whole": access.whole}
    return without_purpose(access.to_json()) | held


def encode_counts(query: Counts) -> Message:
    """Return the message of a counting query; each owner knows the most records of a unit by itself."""
    axes = {id(axis): axis for table in query.tables for axis in table}
    places = {key: place for place, key in enumerate(axes)}
    tables = {id(table): [places[id(axis)] for axis in table] for table in query.tables}
    order = {key: place for place, key in enumerate(tables)}
    said = axes_to_message(axes.values())
    words = {"tables": [*tables.values()], "order": [order[id(table)] for table in query.tables]}
    return Message({**said.words, **words}, said.arrays)


def decode_counts(message: Message, max_records: int) -> Counts:
    """Return the counting query of a message; the query itself checks whether it fits the records.

    Raises:
        MalformedMessage: The message is malformed.
    """
    try:
        axes, tables, order = axes_from_message(message), message.words["tables"], message.words["order"]
        made = [tuple(axes[_place(each, len(axes))] for each in table) for table in tables]
        cells = sum(math.prod(axis.size for axis in table) for table in made)
        if not 0 < len(order) <= _MOST_TABLES or not 0 < cells <= _MOST_CELLS:
            raise ValueError
        return Counts(tables=[made[_place(each, len(made))] for each in order], max_records=max_records)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise malformed("question") from None


def _place(number: object, size: int) -> int:
    if not 0 <= whole(number) < size:
        raise IndexError
    return whole(number)
