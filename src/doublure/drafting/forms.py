"""Forms of cells that a draft proposes to declare: dates, months, truth values, numbers with something around them.

A form counts only if 19 in 20 cells share it, and a part of one, such as a mark between thousands, only if one in 20
has it: no single record decides. No cell leaves this module: marks, signs of currencies and words for yes and no are
public lists, and other text around a number becomes a word in capitals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from doublure.drafting.storage_types import SHARE
from doublure.schema.columns.date_format import MONTHS

_SOME = 1 - SHARE
_CLOCK = r"(?:(?P<between>[T ])(?P<h>\d{1,2}):\d{2}(?P<s>:\d{2})?(?P<noon> ?[AP]M)?)?"
_DAY_OR_MONTH = re.compile(rf"(?P<first>\d{{1,2}})(?P<mark>[-./])(?P<then>\d{{1,2}})(?P=mark)\d{{4}}{_CLOCK}", re.ASCII)
_YEAR_FIRST = re.compile(rf"\d{{4}}(?P<mark>[-./])(?P<first>\d{{1,2}})(?P=mark)(?P<then>\d{{1,2}}){_CLOCK}", re.ASCII)
_NAMED = re.compile(
    rf"(?P<first>\d{{1,2}})(?P<mark>[-./ ]?)(?P<name>{'|'.join((*MONTHS, *map(str.upper, MONTHS)))})(?P=mark)\d{{4}}"
    rf"{_CLOCK}",
    re.ASCII,
)
_MONTH = re.compile(r"(?P<first>0?[1-9]|1[0-2])(?P<mark>[-./])(?:1[5-9]|2[01])\d\d", re.ASCII)
_WHOLE_DAY = re.compile(r"(?:1[5-9]|2[01])\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_WHOLE_MONTH = re.compile(r"(?:1[5-9]|2[01])\d\d(?:0[1-9]|1[0-2])", re.ASCII)
_OPEN_ENDS = frozenset({"99991231", "99990101", "0", "00000000", "99999999"})
"""Whole numbers that stand for no date in many systems."""
_TRUTHS = (
    ("Y", "N"), ("y", "n"), ("Yes", "No"), ("yes", "no"), ("YES", "NO"), ("T", "F"), ("t", "f"),
    ("True", "False"), ("true", "false"), ("TRUE", "FALSE"), ("J", "N"), ("Ja", "Nein"), ("ja", "nein"),
    ("O", "N"), ("Oui", "Non"), ("oui", "non"), ("S", "N"), ("Sí", "No"), ("sí", "no"), ("Si", "No"), ("si", "no"),
    ("Ja", "Nee"), ("ja", "nee"), ("Sim", "Não"), ("sim", "não"), ("Tak", "Nie"), ("tak", "nie"),
)  # fmt: skip
"""Words for true and false in some languages."""
_AMOUNT = re.compile(r"(?P<sign>[+-]?)(?P<before>[^\d+-]*?)(?P<number>\d(?:[\d.,'’ \u00a0\u202f]*\d)?)(?P<after>\D*)")
_CODES = r"USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|MXN|ZAR|kr|zł|Rs|R\$|US\$|C\$|A\$"
_KNOWN = re.compile(rf" ?(?:[$€£¥₹₽₩₺₪₫₴₦]|%|‰|{_CODES}) ?")
"""Text around numbers that says nothing of any record."""
_UNIT = re.compile(r" ?[^\s\d]{1,10}")
"""A unit behind a number, which becomes a word in capitals."""


@dataclass(frozen=True, kw_only=True)
class ProposedForm:
    """A form of cells.

    Attributes:
        column: What a schema says of a column of it.
        why: The condition in a few words, after "if".
    """

    column: Mapping[str, Any]
    why: str


def dates(texts: Sequence[str]) -> ProposedForm | None:
    """Return how dates are written; of 03-04-2024, whichever part passes 12 is the day.

    Where none does in 19 of 20, the order is ambiguous, and the day comes first.
    """
    found = _matches(_YEAR_FIRST, texts)
    order = ("YYYY", "M", "D")
    if not found:
        found = _matches(_DAY_OR_MONTH, texts)
        american = sum(int(each["then"]) > 12 for each in found) >= _SOME * len(texts)
        order = ("M", "D", "YYYY") if american else ("D", "M", "YYYY")
    if not found:
        found = _matches(_NAMED, texts)
        order = ("D", "MMM" if sum(each["name"].isupper() for each in found) >= SHARE * len(found) else "Mmm", "YYYY")
    if not found:
        return None
    mark = found[0]["mark"]
    if order[0] == "YYYY" and mark == "-" and not _short(found, "first") and not _short(found, "then"):
        return None  # ISO 8601
    places = iter(("first", "then"))
    parts = [part if len(part) > 1 else part * (1 if _short(found, next(places)) else 2) for part in order]
    date_format = mark.join(parts) + _clock(found)
    if found[0]["between"] is None:
        return ProposedForm(column=_dated("date", date_format), why=f"it holds dates written {date_format}")
    return ProposedForm(column=_timed(date_format), why=f"it holds dates written {date_format}")


def moments(texts: Sequence[str]) -> ProposedForm | None:
    """Return how dates of ISO 8601 are written, where doublure would write them otherwise."""
    found = _matches(_YEAR_FIRST, texts)
    if not found or found[0]["between"] is None:
        return None
    if found[0]["between"] == " " and found[0]["s"] is not None:
        midnight = sum(text.endswith(" 00:00:00") for text in texts) >= SHARE * len(texts)
        form = "YYYY-MM-DD hh:mm:ss"
        return (
            ProposedForm(column=_dated("date", form), why="its days are written with a midnight") if midnight else None
        )
    if found[0]["between"] == " ":
        return ProposedForm(
            column={"type": "datetime", "step": 60, "bounds": "undeclared"}, why="its moments are of whole minutes"
        )
    form = "YYYY-MM-DD" + _clock(found)
    return ProposedForm(column=_timed(form), why=f"its moments are written {form}")


def months(texts: Sequence[str]) -> ProposedForm | None:
    """Return how months are written."""
    found = _matches(_MONTH, texts)
    if not found:
        return None
    form = f"{'M' if _short(found, 'first') else 'MM'}{found[0]['mark']}YYYY"
    return ProposedForm(column=_dated("month", form), why=f"it holds months written {form}")


def whole_dates(texts: Sequence[str]) -> ProposedForm | None:
    """Return how dates are written as whole numbers, which mostly stand beside one for an open end."""
    for pattern, kind, form in ((_WHOLE_DAY, "date", "YYYYMMDD"), (_WHOLE_MONTH, "month", "YYYYMM")):
        fitting = sum(pattern.fullmatch(text) is not None for text in texts)
        ends = Counter(text for text in texts if text in _OPEN_ENDS)
        several = max(ends.values(), default=0) >= _SOME * len(texts)
        if fitting >= _SOME * len(texts) and fitting + sum(ends.values()) >= SHARE * len(texts):
            column = _dated(kind, form) | ({"missing": ["TEXT"]} if several else {})
            said = f"its whole numbers are {kind}s, such as {_EXAMPLES[form]}"
            return ProposedForm(
                column=column, why=said + (", and one number that means an open end" if several else "")
            )
    return None


_EXAMPLES = {"YYYYMMDD": "20240131", "YYYYMM": "202401"}


def truths(texts: Sequence[str]) -> ProposedForm | None:
    """Return how true and false are written."""
    counts = Counter(texts)
    fitting = [pair for pair in _TRUTHS if counts[pair[0]] + counts[pair[1]] >= SHARE * len(texts)]
    if not fitting:
        return None
    said = next((pair for pair in fitting if counts[pair[0]] >= _SOME * len(texts)), fitting[0])
    written = {True: said[0], False: said[1]}
    return ProposedForm(column={"type": "boolean", "written": written}, why=f"{said[0]} means true and {said[1]} false")


def ones(texts: Sequence[str]) -> ProposedForm | None:
    """Return how true and false are written, where whole numbers are 0 and 1, and many are of each."""
    counts = Counter(texts)
    if counts["0"] + counts["1"] < SHARE * len(texts) or min(counts["0"], counts["1"]) < _SOME * len(texts):
        return None
    return ProposedForm(column={"type": "boolean", "written": {True: 1, False: 0}}, why="1 means true and 0 false")


def spelt_truths(texts: Sequence[str]) -> ProposedForm | None:
    """Return how true and false are written, where doublure would write True and False."""
    found = truths(texts)
    if found is None or found.column["written"][True] == "True":
        return None
    return replace(found, why="its truth values are written so")


def numbers(texts: Sequence[str]) -> ProposedForm | None:
    """Return how numbers are written that have something around them, or marks between thousands."""
    found = [each for text in texts if (each := _AMOUNT.fullmatch(text.translate(_SPACES))) is not None]
    if len(found) < SHARE * len(texts):
        return None
    before = _common((each["before"] for each in found), len(texts))
    after = _common((each["after"] for each in found), len(texts))
    if (
        before is None
        or after is None
        or not _says_nothing(before)
        or not (_says_nothing(after) or _UNIT.fullmatch(after))
    ):
        return None
    for decimal, thousands in ((".", ","), (",", "."), (".", "'"), (".", "’"), (",", " "), (".", " ")):
        form = re.compile(
            rf"(?:\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d+)(?:{re.escape(decimal)}(\d+))?", re.ASCII
        )
        fitting = [each for text in found if (each := form.fullmatch(text["number"])) is not None]
        grouped = sum(thousands in each.group() for each in fitting) >= _SOME * len(texts)
        marked = sum(each[1] is not None for each in fitting) >= _SOME * len(texts)
        if len(fitting) < SHARE * len(texts) or not (grouped or marked or (decimal, thousands) == (".", ",")):
            continue
        if not (before.strip() or after.strip() or grouped):
            return None
        digits = [len(each[1] or "") for each in fitting]
        decimals = next(many for many in range(max(digits) + 1) if sum(n <= many for n in digits) >= SHARE * len(texts))
        return _numbered(before, after, f"#{thousands}##0" if grouped else "0", decimal, decimals)
    return None


def keep_zeros(texts: Sequence[str], decimals: int) -> bool:
    """Whether numbers are written with all of their decimals, zeros at the end too."""
    form = re.compile(rf"[+-]?\d+\.\d{{{decimals}}}", re.ASCII)
    fitting = [text for text in texts if form.fullmatch(text) is not None]
    return len(fitting) >= SHARE * len(texts) and sum(text.endswith("0") for text in fitting) >= _SOME * len(texts)


def _numbered(before: str, after: str, whole: str, decimal: str, decimals: int) -> ProposedForm:
    behind = after if _says_nothing(after) else f"{' ' if after.startswith(' ') else ''}UNIT"
    picture = before + whole + (f"{decimal}{'0' * decimals}" if decimals else "") + behind
    column: dict[str, Any] = {"type": "real" if decimals else "integer", "format": picture, "bounds": "undeclared"}
    return ProposedForm(
        column=column | ({"precision": decimals} if decimals else {}), why=f"its numbers are written {picture}"
    )


_SPACES = {0xA0: " ", 0x202F: " "}


def _says_nothing(text: str) -> bool:
    """Whether a text beside a number is of a public list, or none."""
    return not text.strip() or _KNOWN.fullmatch(text) is not None


def _dated(kind: str, date_format: str) -> dict[str, Any]:
    return {"type": kind, "date_format": date_format, "bounds": "undeclared"}


def _timed(date_format: str) -> dict[str, Any]:
    step = {} if "s" in date_format else {"step": 60}
    return _dated("datetime", date_format) | step


def _clock(found: Sequence[re.Match[str]]) -> str:
    """Return the form of the time behind a day; nothing where there is none."""
    if found[0]["between"] is None:
        return ""
    noon = (found[0]["noon"] or "").replace("PM", "AM")
    return f"{found[0]['between']}{'h' if _short(found, 'h') else 'hh'}:mm{':ss' if found[0]['s'] else ''}{noon}"


def _short(found: Sequence[re.Match[str]], group: str) -> bool:
    """Whether numbers of one digit have no zero before them."""
    return sum(len(each[group] or "00") == 1 for each in found) >= _SOME * len(found)


def _matches(form: re.Pattern[str], texts: Sequence[str]) -> list[re.Match[str]]:
    """Return the cells of a form, all with the same marks; none where 19 in 20 do not have it."""
    found = [each for text in texts if (each := form.fullmatch(text)) is not None]

    def marks(each: re.Match[str]) -> tuple[object, ...]:
        part = each.groupdict()
        noon = (part.get("noon") or "").replace("PM", "AM")
        return part["mark"], part.get("between"), part.get("s") is not None, noon

    for said, count in Counter(map(marks, found)).most_common(1):
        if count >= SHARE * len(texts):
            return [each for each in found if marks(each) == said]
    return []


def _common(texts: Iterable[str], of: int) -> str | None:
    """Return the text that enough cells share."""
    text, count = Counter(texts).most_common(1)[0]
    return text if count >= SHARE * of else None
