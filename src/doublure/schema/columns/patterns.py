"""Patterns of ids and codes: ``MRN-{6 digits}``, and the numbers that their texts stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, StrictStr

from doublure.errors import printable

if TYPE_CHECKING:
    import numpy as np

    from doublure.support.mixing import Marks

    Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_PLACES = re.compile(r"\{([1-9][0-9]?) (digit|letter|hex)s?\}")
_MARKS = {"digit": "0123456789", "letter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "hex": "0123456789abcdef"}
_MOST = 2**62
"""Texts of a pattern at most, so that each has a number in int64."""
_ROUNDS = 4
"""Rounds after which a Feistel network is as good as a random permutation (Luby and Rackoff 1988)."""
EXAMPLE = "MRN-{6 digits}"


@dataclass(frozen=True)
class TextPattern:
    """A text with places for digits, letters (A to Z) or hex digits.

    Attributes:
        text: As a schema has it.

    Example:
        >>> TextPattern("P{2 digits}-{1 letter}").texts([0, 27])
        ['P00-A', 'P01-B']
    """

    text: str

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Each character's marks, in order; one that stands for itself has a single one."""
        found, end = list[str](), 0
        for place in _PLACES.finditer(self.text):
            found += [*self.text[end : place.start()], *[_MARKS[place[2]]] * int(place[1])]
            end = place.end()
        return (*found, *self.text[end:])

    @cached_property
    def size(self) -> int:
        """The number of its texts."""
        size = 1
        for marks in self.parts:
            size *= len(marks)
        return size

    def texts(self, places: Sequence[int] | Ints) -> list[str]:
        """Return the text at each of some places, 0 to :attr:`size` - 1."""
        import numpy as np

        left = np.asarray(places, dtype=np.int64)
        found = np.full(len(left), "", dtype=object)
        for marks in reversed(self.parts):
            found = np.array([*marks], dtype=object)[left % len(marks)] + found
            left = left // len(marks)
        return [str(text) for text in found]

    def places(self, texts: Sequence[str]) -> Ints:
        """Return the place of each text.

        Raises:
            ValueError: One has another form.
        """
        import numpy as np

        found = np.zeros(len(texts), dtype=np.int64)
        for at, text in enumerate(texts):
            if len(text) != len(self.parts):
                raise ValueError
            place = 0
            for mark, marks in zip(text, self.parts, strict=True):
                place = place * len(marks) + marks.index(mark)
            found[at] = place
        return found


@dataclass(frozen=True)
class RowNumbering:
    """The text of a pattern that each row has: in order, or in one that looks random and is the same in each sample.

    Attributes:
        pattern: Of the texts.
        shuffled: Whether neighbouring rows have unlike texts.

    Example:
        >>> RowNumbering(TextPattern("P{3 digits}"), shuffled=False).texts([1, 2])
        ['P001', 'P002']
    """

    pattern: TextPattern
    shuffled: bool

    @property
    def room(self) -> int:
        """The highest number of a row that it has a text for."""
        return self.pattern.size - 1

    def texts(self, numbers: Sequence[int] | Ints) -> list[str]:
        """Return the texts of rows that are numbered from 1."""
        import numpy as np

        places = np.asarray(numbers, dtype=np.int64)
        return self.pattern.texts(_walked(places, self.pattern.size, range(_ROUNDS)) if self.shuffled else places)

    def numbers(self, texts: Sequence[str]) -> Ints:
        """Return which row has each text.

        Raises:
            ValueError: One has another form.
        """
        places = self.pattern.places(texts)
        return _walked(places, self.pattern.size, range(_ROUNDS)[::-1], back=True) if self.shuffled else places


def _walked(places: Ints, size: int, rounds: Sequence[int], *, back: bool = False) -> Ints:
    """Return a fixed permutation of 0 to size - 1, or its inverse.

    A Feistel network permutes the numbers below the next power of four; what it puts beyond the size is put through it
    again (cycle walking: Black and Rogaway 2002).
    """
    import numpy as np

    found = places.astype(np.uint64)
    beyond = np.ones(len(found), dtype=np.bool_)
    while beyond.any():
        found[beyond] = _turned(found[beyond], ((size - 1).bit_length() + 1) // 2, rounds, back)
        beyond = found >= np.uint64(size)
    return found.astype(np.int64)


def _turned(numbers: Marks, bits: int, rounds: Sequence[int], back: bool) -> Marks:
    """Return numbers of ``2 * bits`` bits after the rounds of a Feistel network, or before them."""
    import numpy as np

    from doublure.support.mixing import remarked

    mask, half = np.uint64(2**bits - 1), np.uint64(bits)
    left, right = numbers >> half, numbers & mask
    for turn in rounds:
        if back:
            left, right = right ^ (remarked(left, turn) & mask), left
        else:
            left, right = right, left ^ (remarked(right, turn) & mask)
    return (left << half) | right


def _checked(text: str) -> str:
    places = _PLACES.findall(text)
    if not places or re.search(r"[{}]", _PLACES.sub("", text)):
        raise ValueError(f"has no places, or one of another form; write it as {EXAMPLE}, of digits, letters or hex")
    if printable(text) != text or text != text.strip():
        raise ValueError(f"is long, or has spaces around or invisible characters; write it as {EXAMPLE}")
    if sum(int(number) for number, _ in places) > _MOST.bit_length() or TextPattern(text).size > _MOST:
        raise ValueError("has more than 2^62 texts; shorten it")
    return text


PatternText: TypeAlias = Annotated[StrictStr, AfterValidator(_checked)]
"""A pattern as a schema file holds it."""
