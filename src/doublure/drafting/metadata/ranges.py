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
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH = "|".join(rf"{name[:3]}(?:{'t' if name[:3] == 'Sep' else ''}\.?|{name[3:]})" for name in _MONTHS)
_DAY = (
    r"\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/\d{4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:{_MONTH}),? \d{{4}}|(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
)
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
    r"(?:at most |up to |with |to |rounded to )?(\d|no|one|a|two|three|four) "
    r"(?:decimals?(?: places?| digits?)?|digits? after the (?:decimal )?point|d\.?p)"
)
_WHOLE = re.compile(r"(?:(?:only )?whole numbers?|integers?)(?: only)?")
_UNIT_WORDS = (
    "% ‰ percent per cent pct points years year yrs yr y months month weeks days day d hours hour hrs h minutes "
    "min seconds sec s ms kg g mg µg ug ng pg t lb oz cm mm m km in ft l dl ml µl m2 m3 kg/m2 kg/m² mmhg kpa "
    "bar bpm /min g/dl g/l mg/dl mg/l µg/l ug/l ng/ml ng/l pg/ml mmol/l µmol/l umol/l nmol/l pmol/l iu/l u/l "
    "miu/l iu mmol/mol °c °f c f k kcal kj kw kwh w v hz eur € euro euros usd $ dollars gbp £ pounds chf jpy "
    "inclusive incl"
)
_UNITS = frozenset(_UNIT_WORDS.split())
"""Units of measurement behind a range, in small letters; no word of a multiple, such as thousand, is one."""


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
    first, mark, behind = text.strip().partition(",")
    precision = decimals(first) if mark else None
    found = _RANGE.fullmatch((behind if precision is not None else text).strip())  # one decimal, 0 to 100
    if found is None:
        return None
    for part in re.split(r"[,;()]", found["rest"]):
        said = decimals(part)
        if said is not None and precision in (None, said):
            precision = said
        elif part.strip(" .") and not (
            part.strip() == "both included" or {*part.lower().strip(" .").split()} <= _UNITS
        ):
            raise Unclear("what stands behind the range is not understood")
    return between(found["lower"], found["upper"], precision)


def between(lower: str, upper: str, precision: int | None = None) -> Range:
    """Return the range between two ends.

    Raises:
        Unclear: An end is no number, day or time for certain, or they are not in order.
    """
    (low, one), (high, other) = map(_end, _slashed(lower, upper))
    kind = one if one == other else "datetime"
    if one != other and {one, other} != {"date", "datetime"}:
        raise Unclear("its ends are of two kinds")
    if kind == "datetime":
        low, high = (low if "T" in low else f"{low}T00:00:00", last_second(high))
    if low > high:
        raise Unclear("the first end is above the second")
    return Range(ends=(low, high), kind=kind, precision=precision)


def _slashed(*ends: str) -> list[str]:
    """Return ends with days such as 31/12/2023 in ISO 8601, if one of them tells whether days or months come first.

    Raises:
        Unclear: None does.
    """
    days = [re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})(.*)", end.strip()) for end in ends]
    found = [day for day in days if day is not None]
    first, second = (any(int(day[place]) > len(_MONTHS) for day in found) for place in (1, 2))
    if found and first == second:
        raise Unclear("the day or the month may stand first; write 2023-12-31")
    return [end if day is None else _iso(day[3], day[2 if first else 1], day[1 if first else 2]) + day[4]
           for end, day in zip(ends, days, strict=True)]  # fmt: skip


def _iso(year: str, month: str | int, day: str) -> str:
    return f"{year}-{int(month):02}-{int(day):02}"


def _day(text: str) -> str:
    """Return a day in ISO 8601, as far as its form tells it."""
    numbers = re.findall(r"\d+", text)
    if word := re.search(_MONTH, text, re.IGNORECASE):
        month = next(at for at, name in enumerate(_MONTHS, 1) if name[:3].lower() == word[0][:3].lower())
        return _iso(numbers[1], month, numbers[0])
    return text if "-" in text else _iso(*reversed(numbers))


def _end(text: str) -> tuple[Any, str]:
    text = text.strip()
    if re.fullmatch(_CLOCK, text):
        return text, "time"
    if found := re.fullmatch(rf"({_DAY})(?:[T ]({_CLOCK}))?", text, re.IGNORECASE):
        day = _day(found[1])
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
