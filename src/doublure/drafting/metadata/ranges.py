"""Ranges in words, such as ``0 to 1,000,000, two decimals``; what may mean two things is not read."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from doublure.drafting.codebook import last_second
from doublure.schema.columns import MOST_VALUES

_GROUPS = r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:[ '\u2019\u00a0\u202f]\d{3})+|[1-9]\d{0,2}(?:\.\d{3}){2,}"
_NUMBER = rf"[+\-\u2212]?(?:(?:{_GROUPS})(?!\d|[,']\d)|\d+(?!\d|[,']\d))(?:\.\d+)?(?:[eE][+-]?\d+)?"
_DAY = r"\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4}"
_CLOCK = r"\d{2}:\d{2}(?::\d{2})?"
_END = rf"(?:(?:{_DAY})(?:[T ]{_CLOCK})?|{_CLOCK}|{_NUMBER})"
_BETWEEN = r"\s*(?:-|–|—|−|\bto\b|\bthrough\b|\buntil\b|\band\b|\.\.\.?|…)\s*"
_RANGE = re.compile(
    rf"(?:between\s+|from\s+)?(?P<lower>{_END}){_BETWEEN}(?P<upper>{_END})(?P<rest>(?:[\s,;(].*)?)", re.I | re.S
)
_ANYWHERE = re.compile(r"\d\s*(?:-|–|—|−|\bto\b|\bthrough\b|\.\.)\s*\d", re.IGNORECASE)
_RUN = re.compile(r"([+-]?\d+)\s*\.\.\s*([+-]?\d+)")
_CODES = re.compile(rf"(0\d+){_BETWEEN}(\d+)", re.IGNORECASE)
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_COUNTS = {"no": 0, "one": 1, "a": 1, "two": 2, "three": 3, "four": 4}
_DECIMALS = re.compile(
    r"(?:at most |up to |with )?(\d|no|one|a|two|three|four) "
    r"(?:decimals?(?: places?| digits?)?|digits? after the (?:decimal )?point|dp)"
)
_WHOLE = re.compile(r"(?:(?:only )?whole numbers?|integers?)(?: only)?")
_INCLUSIVE = re.compile(r"inclusive|incl|both included")


class Unclear(ValueError):
    """A text that may mean two things, and in which way."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """Bounds that a text says.

    Attributes:
        ends: As a schema file has them; empty where only decimals are said.
        kind: The column type that they are of: ``number``, ``date``, ``datetime`` or ``time``.
        precision: Decimals of its numbers; None where nothing is said.
    """

    ends: tuple[Any, ...]
    kind: str
    precision: int | None = None


def decimals(text: str) -> int | None:
    """Return the decimals that a text says, and nothing beside; 0 for whole numbers.

    Example:
        >>> decimals("one decimal"), decimals("2 decimals"), decimals("whole numbers"), decimals("5 digits")
        (1, 2, 0, None)
    """
    plain = " ".join(text.lower().split()).strip(" .()")
    if _WHOLE.fullmatch(plain):
        return 0
    found = _DECIMALS.fullmatch(plain)
    return None if found is None else _COUNTS[found[1]] if found[1] in _COUNTS else int(found[1])


def read_range(text: str) -> Range | None:
    """Return the range that a text says; None for a text that says none.

    Raises:
        Unclear: It may mean two things.

    Example:
        >>> read_range("0 to 1,000,000, two decimals")
        Range(ends=(0, 1000000), kind='number', precision=2)
    """
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        return None
    precision = None
    for part in re.split(r"[,;()]", found["rest"]):
        said = decimals(part)
        if said is not None and precision in (None, said):
            precision = said
        elif part.strip(" .") and not _INCLUSIVE.fullmatch(part.strip(" .").lower()) and part.strip() != "%":
            raise Unclear("what stands behind the range is not understood")
    return between(found["lower"], found["upper"], precision)


def between(lower: str, upper: str, precision: int | None = None) -> Range:
    """Return the range between two ends.

    Raises:
        Unclear: An end is no number, day or time for certain, or they are not in order.
    """
    (low, one), (high, other) = _end(lower), _end(upper)
    kind = one if one == other else "datetime"
    if one != other and {one, other} != {"date", "datetime"}:
        raise Unclear("its ends are of two kinds")
    if kind == "datetime":
        low, high = (low if "T" in low else f"{low}T00:00:00", last_second(high))
    if low > high:
        raise Unclear("the first end is above the second")
    return Range(ends=(low, high), kind=kind, precision=precision)


def _end(text: str) -> tuple[Any, str]:
    text = text.strip()
    if re.fullmatch(_CLOCK, text):
        return text, "time"
    if found := re.fullmatch(rf"({_DAY})(?:[T ]({_CLOCK}))?", text):
        day = found[1] if "-" in found[1] else "-".join(part.zfill(2) for part in reversed(found[1].split(".")))
        try:
            datetime.fromisoformat(day)
        except ValueError:
            raise Unclear("an end is no day of the calendar") from None
        return (f"{day}T{found[2]}", "datetime") if found[2] else (day, "date")
    if not re.fullmatch(_NUMBER, text):
        raise Unclear("an end is no number or day for certain; write 1234.5 or 2023-12-31")
    if _MAYBE_THOUSANDS.fullmatch(text):
        raise Unclear("the point may stand for thousands; write 1000 or 1.0")
    plain = re.sub(r"[,'\u2019\u00a0\u202f ]", "", text).replace("\u2212", "-")
    plain = plain.replace(".", "") if plain.count(".") > 1 else plain
    number = float(plain)
    if not math.isfinite(number):
        raise Unclear("an end is no finite number")
    return int(number) if number.is_integer() else number, "number"


def holds_range(text: str) -> bool:
    """Whether a range of numbers stands anywhere in a text."""
    return _ANYWHERE.search(text) is not None


def run(text: str) -> list[str] | None:
    """Return the values of ``low..high``: of codes with leading zeros texts as wide; None for a text of another form.

    Raises:
        Unclear: It is not in order, too long, or its ends have leading zeros and are not of one width.

    Example:
        >>> run("-1..1"), run("098..101"), run("A..C")
        (['-1', '0', '1'], ['098', '099', '100', '101'], None)
    """
    found = _RUN.fullmatch(text.strip())
    return None if found is None else _between(found[1], found[2])


def codes(text: str) -> list[str] | None:
    """Return the codes of a range whose first one has a leading zero, in any of its spellings; None for any other.

    Raises:
        Unclear: As :func:`run`.
    """
    found = _CODES.fullmatch(text.strip())
    return None if found is None else _between(found[1], found[2])


def _between(lower: str, upper: str) -> list[str]:
    first, last = int(lower), int(upper)
    if not 0 < last - first < MOST_VALUES:
        raise Unclear("has a range that is not in order, or too long")
    width = 0
    if any(re.fullmatch(r"[+-]?0\d+", end) for end in (lower, upper)):
        width = len(lower)
        if not (lower.isdigit() and upper.isdigit() and len(upper) == width):
            raise Unclear("has a range whose ends have leading zeros and another width")
    return [str(number).zfill(width) for number in range(first, last + 1)]
