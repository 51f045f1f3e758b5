"""Forms of dates in text, such as ``DD.MM.YYYY hh:mm``: read, and written back.

======  =======================    ======  =======================
part    meaning                    part    meaning
======  =======================    ======  =======================
YYYY    year                       hh, h   hour, 0 to 24
MM, M   month                      mm      minute
DD, D   day                        ss      second
Mmm     Jan, Feb, …                AM      AM or PM: h is 1 to 12
MMM     JAN, FEB, …
======  =======================    ======  =======================

Two letters are written with two digits, one letter without a zero before it. Either form reads both, and names of
months in any case.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, StrictStr

from doublure.schema.columns.dtypes import WHOLE, Dtype
from doublure.schema.fact_states import KeyFault

_PART = re.compile(r"YYYY|Mmm|MMM|MM|M|DD|D|hh|h|mm|ss|AM")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PART_OR_LETTER = re.compile(rf"{_PART.pattern}|(?<=D)T(?=h)|[A-Za-z]")
_DIGITS = {"Y": r"\d{4}", "M": r"\d{1,2}", "D": r"\d{1,2}", "h": r"\d{1,2}", "m": r"\d{2}", "s": r"\d{2}"}
_WORDS = {word: "|".join(MONTHS) for word in ("Mmm", "MMM")} | {"AM": "AM|PM"}
_ISO = re.compile(r"YYYY-MM-DD(?:[T ]hh:mm(?::ss)?)?")
_TIME = r"(?:[T ](?P<h>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2}))?)?"

Moment: TypeAlias = tuple[int, int, int, int, int, int]
"""Year, month, day, hour, minute and second."""


def _parts(text: str) -> list[str]:
    """Return a form's parts by their first letters.

    Raises:
        ValueError: It has letters that are no part, or a part twice; ``message; remedy``.
    """
    found = [part for part in _PART_OR_LETTER.findall(text) if part != "T"]
    letters = [part[0] for part in found]
    noon = "A" in letters and "h" not in letters
    if any(_PART.fullmatch(part) is None for part in found) or len(set(letters)) != len(letters) or noon:
        raise ValueError("is no form of dates; write DD-MM-YYYY or MM/DD/YYYY hh:mm, each part once")
    return letters


def _of_days(text: str) -> str:
    found = set(_parts(text))
    if not found >= {"Y", "M", "D"} or ("s" in found and "m" not in found) or ("m" in found) != ("h" in found):
        raise ValueError("needs a year, a month and a day, and minutes with hours; write DD-MM-YYYY, or add hh:mm")
    return text


def _of_months(text: str) -> str:
    if set(_parts(text)) != {"Y", "M"}:
        raise ValueError("is no form of months; write MM/YYYY or YYYYMM")
    return text


DateFormat: TypeAlias = Annotated[StrictStr, AfterValidator(_of_days)]
MonthFormat: TypeAlias = Annotated[StrictStr, AfterValidator(_of_months)]


@cache
def pattern_of(date_format: str) -> re.Pattern[str]:
    """Return the form of a date, a group for each part by its letter; a day may be followed by a time of ISO 8601.

    Example:
        >>> pattern_of("DD.MM.YYYY").fullmatch("31.01.2024")["Y"]
        '2024'
    """
    form, end = "", 0
    for part in _PART.finditer(date_format):
        letter, fixed = part.group()[0], is_whole(date_format)
        digits = rf"\d{{{len(part.group())}}}" if fixed else _WORDS.get(part.group()) or _DIGITS[letter]
        form += re.escape(date_format[end : part.start()]) + f"(?P<{letter}>{digits})"
        end = part.end()
    form += re.escape(date_format[end:])
    form += "" if "h" in date_format or "D" not in date_format else _TIME
    return re.compile(form, re.ASCII | re.IGNORECASE)


def iso_text(date_format: str, text: str) -> str | None:
    """Return a text of a form in ISO 8601; None where it has another form.

    Example:
        >>> iso_text("D.M.YYYY", "31.1.2024"), iso_text("MM/YYYY", "01/2024"), iso_text("YYYYMMDD", "2024")
        ('2024-01-31', '2024-01', None)
    """
    found = pattern_of(date_format).fullmatch(text)
    if found is None:
        return None
    part = found.groupdict()
    month = part["M"] if part["M"].isdigit() else str(MONTHS.index(part["M"].capitalize()) + 1)
    day = f"{part['Y']}-{month:0>2}" + (f"-{part['D']:0>2}" if "D" in part else "")
    if not part.get("h"):
        return day
    hour = int(part["h"])
    if noon := part.get("A"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (noon.upper() == "PM")
    return f"{day}T{hour:02}:{part['m']}:{part.get('s') or '00'}"


def respelt(written: object, date_format: str | None) -> object:
    """Return a requested date in ISO 8601 where it has a column's own form; anything else as it is."""
    if date_format is None or isinstance(written, bool) or not isinstance(written, (str, int)):
        return written
    return iso_text(date_format, str(written).strip()) or written


def is_iso(date_format: str) -> bool:
    """Return whether a form is read as ISO 8601 anyway."""
    return _ISO.fullmatch(date_format) is not None


def shown_seconds(date_format: str) -> int:
    """Return the seconds between neighbouring moments that a form tells apart; a form of days is followed by a clock.

    Example:
        >>> shown_seconds("DD.MM.YYYY h:mm AM"), shown_seconds("DD.MM.YYYY")
        (60, 1)
    """
    parts = _parts(date_format)
    return 60 if "h" in parts and "s" not in parts else 1


def whole_ends(date_format: str | None) -> tuple[float, float] | None:
    """Return the ends of what dates of this form may be as whole numbers; None if they are none."""
    form = date_format or ""
    return (0.0, 10.0 ** len(form) - 1) if is_whole(form) else None


def is_whole(date_format: str) -> bool:
    """Return whether dates of this form are whole numbers, such as 20230309.

    Example:
        >>> is_whole("YYYYMMDD"), is_whole("YYYYMD"), is_whole("YYYY-MM-DD")
        (True, False, False)
    """
    parts = [part for part in _PART.findall(date_format) if len(part) > 1 and part not in _WORDS]
    return bool(date_format) and "".join(parts) == date_format


def check_whole(dtype: Dtype | None, date_format: str | None, example: str) -> None:
    """Refuse a storage type of whole numbers of dates whose form has more than digits.

    Args:
        dtype: The storage type.
        date_format: The form.
        example: One of digits alone.

    Raises:
        KeyFault: The form has more than digits.
    """
    if dtype in WHOLE and not is_whole(date_format or ""):
        raise KeyFault("dtype", f"of whole numbers needs a date_format of digits alone; write date_format: {example}")


def date_text(date_format: str, moment: Moment) -> str:
    """Return a moment in a form.

    Example:
        >>> date_text("D.M.YYYY hh:mm", (2024, 1, 31, 7, 5, 0))
        '31.1.2024 07:05'
    """
    number = dict(zip("YMDhms", moment, strict=True))
    noon = "AM" in date_format

    def text(found: re.Match[str]) -> str:
        part = found.group()
        if part == "AM":
            return "AM" if number["h"] < 12 else "PM"
        if part in _WORDS:
            name = MONTHS[number["M"] - 1]
            return name.upper() if part == "MMM" else name
        own = (number["h"] + 11) % 12 + 1 if part[0] == "h" and noon else number[part[0]]
        return f"{own:0{len(part)}}"

    return _PART.sub(text, date_format)
