"""Messages between processes: JSON words and named arrays of numbers.

===========  ==========================================================================================================
part         content
===========  ==========================================================================================================
8 bytes      the length of the head, little-endian
head         JSON: ``words``, and ``arrays``: by name each one's type and shape
the rest     the arrays' bytes in that order, C-contiguous and little-endian, without gap or remainder
===========  ==========================================================================================================

Nothing is pickled, and every message is treated as untrusted. The lengths in a head have to add up to the bytes that
arrived, so that reading allocates no more than that again, whatever shapes it claims.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doublure.errors import InputError
from doublure.support.tensors import Array

NUMBERS = frozenset({"|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8"})
"""NumPy's names of the array types that are sent."""

_MOST_WORDS = 10**8
_MOST_AXES = 32  # of NumPy, before its second version
_LENGTH = 8


class MalformedMessage(InputError):
    """A message that is not in the agreed form."""


@dataclass(frozen=True, eq=False)
class Message:
    """One message.

    Attributes:
        words: Plain JSON.
        arrays: Of plain numbers, by name.
    """

    words: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the message as bytes.

        Raises:
            TypeError: An array holds something other than numbers.
        """
        if any(array.dtype.str not in NUMBERS for array in self.arrays.values()):
            raise TypeError("only numbers are sent")
        shapes = {name: [array.dtype.str, array.shape] for name, array in self.arrays.items()}
        head = json.dumps({"words": self.words, "arrays": shapes}).encode()
        return b"".join(
            [len(head).to_bytes(_LENGTH, "little"), head, *(array.tobytes() for array in self.arrays.values())]
        )

    @classmethod
    def from_bytes(cls, content: bytes) -> Message:
        """Read what :meth:`to_bytes` wrote, into arrays of its own.

        Raises:
            MalformedMessage: It is something else.
        """
        try:
            return _read(content)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise malformed("message") from None

    @property
    def sha256(self) -> str:
        """A hash of its content, independent of the order of arrays."""
        arrays = {
            name: [array.dtype.str, array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]
            for name, array in self.arrays.items()
        }
        said = json.dumps({"words": self.words, "arrays": arrays}, sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


def require_word(words: Mapping[str, Any], key: str, form: type, of: str = "question") -> Any:
    """Return one word of a message, of exactly the type that it must have.

    Raises:
        MalformedMessage: It is missing, or of another type.
    """
    found = words.get(key)
    if type(found) is not form:
        raise malformed(of)
    return found


def select_part(arrays: Mapping[str, Array], name: str) -> dict[str, Array]:
    """Return the arrays that belong to one part of a message, by their own names."""
    before = f"{name}."
    return {each.removeprefix(before): array for each, array in arrays.items() if each.startswith(before)}


def prefix_part(arrays: Mapping[str, Array], name: object) -> dict[str, Array]:
    """Return arrays as those of one part of a message."""
    return {f"{name}.{each}": array for each, array in arrays.items()}


def malformed(what: str) -> MalformedMessage:
    """Return the refusal of something that is not in the agreed form."""
    return MalformedMessage(
        "is not in the form that is asked for", field=what, remedy="use the same doublure at both ends"
    )


def _read(content: bytes) -> Message:
    start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    if not _LENGTH <= start <= min(len(content), _LENGTH + _MOST_WORDS):
        raise ValueError("the head is longer than the message")
    head = json.loads(content[_LENGTH:start])
    words, shapes = head["words"], head["arrays"]
    if not isinstance(words, dict) or not isinstance(shapes, dict):
        raise ValueError("a part of the head is no object")
    arrays: dict[str, Array] = {}
    for name, (kind, shape) in shapes.items():
        if kind not in NUMBERS or not isinstance(shape, list) or len(shape) > _MOST_AXES:
            raise ValueError("an array has no type or shape")
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("an array has a size that is none")
        found = np.frombuffer(content, kind, count=math.prod(shape), offset=start).reshape(shape)
        start += found.nbytes
        arrays[name] = found.copy()
    if start != len(content):
        raise ValueError("the message is longer than it says")
    return Message(words, arrays)
