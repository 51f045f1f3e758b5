"""Keys and values of each kind of record.

Keys are exact. A key that is not listed here cannot enter the ledger, which keeps seeds, numbers of rows and private
values out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from doublure.errors import LedgerError
from doublure.ledger.amounts import is_figure
from doublure.ledger.request import KINDS

NO_NOISE = "no-noise-drawn"
NONCE = "nonce"
"""Key among a release's files, so that every version of doublure reads it; no file of a bundle has this name."""
STATUSES = ("done", NO_NOISE, "aborted", "interrupted")

_Check = Callable[[Any], bool]


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _delta(value: Any) -> bool:
    return is_figure(value) and value < 1


def _sha256(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _object(shape: Mapping[str, _Check]) -> _Check:
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == shape.keys()
        and all(check(value[key]) for key, check in shape.items())
    )


def _files(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_text, value)) and all(map(_sha256, value.values()))


_PLAN: dict[str, _Check] = {
    "method": _text,
    "kind": lambda value: value in KINDS,
    "epsilon": _or_none(is_figure),
    "delta": _or_none(_delta),
    "unit": lambda value: isinstance(value, dict),
    "relation": _text,
    "accountant": _or_none(_text),
    "schema_sha256": _text,
    "touches": lambda value: isinstance(value, list) and all(isinstance(touch, dict) for touch in value),
    "steps": _count,
}
_RESERVATION: dict[str, _Check] = {"id": _text, "session": _text}
SHAPES: dict[str, dict[str, _Check]] = {
    "open": {"format": _count, "dataset": _text, "epsilon": is_figure, "delta": _delta},
    "reserve": _RESERVATION
    | {
        "run_id": _text,
        "plan": _object(_PLAN),
        "charge": _or_none(_object({"epsilon": is_figure, "delta": _delta})),
    },
    "noise": _RESERVATION | {"what": _text},
    "advance": _RESERVATION | {"through_step": _count},
    "resume": _RESERVATION | {"from_session": _text},
    "close": _RESERVATION
    | {"status": lambda value: value in STATUSES, "steps": _or_none(_count), "artefact_sha256": _or_none(_sha256)},
    "release": {"id": _text, "kind": lambda value: value in KINDS, "files": _files},
}


def check_shape(kind: str, body: Mapping[str, Any]) -> None:
    """Check a record's body against its kind.

    Raises:
        LedgerError: The kind is unknown, or a key is missing, superfluous, or has a value it cannot have.
    """
    shape = SHAPES.get(kind)
    if shape is None:
        raise LedgerError("a record of an unknown kind", remedy="use a newer doublure")
    if body.keys() != shape.keys():
        raise LedgerError(f"a record of kind {kind} with other keys than it should have")
    for key, is_right in shape.items():
        if not is_right(body[key]):
            raise LedgerError(f"a record of kind {kind} cannot have this value", field=key, remedy="give a valid one")
