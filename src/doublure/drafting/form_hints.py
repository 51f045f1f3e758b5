"""Hints for cells that a schema cannot read: the form that is read, and how another is declared.

A form is proposed by public words alone: a codebook's, or a column's description. No cell is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from doublure.drafting.forms import dates
from doublure.schema.columns import Column, label
from doublure.schema.columns.date_format import DateFormat, is_iso
from doublure.schema.columns.patterns import EXAMPLE
from doublure.schema.columns.spelling import TextMarks

_PART = r"(?:YYYY|JJJJ|AAAA|DD|TT|JJ|MM|D|T|M)"
_LETTERS = re.compile(
    rf"(?<!\w)(?P<day>{_PART}(?P<mark>[-./]){_PART}(?P=mark){_PART})"
    r"(?:(?P<between>[T ])(?P<clock>hh?:mm(?::ss)?))?(?!\w)",
    re.IGNORECASE,
)
_WRITTEN = re.compile(
    r"(?<![\d.,/-])(?:\d{1,2}([-./])\d{1,2}\1\d{4}|\d{4}([-./])\d{1,2}\2\d{1,2})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?: ?[AP]M)?)?(?!\d)",
    re.ASCII,
)
_COMMA = re.compile(r"(?<![\d.,])(?:(?P<grouped>\d{1,3}(?:\.\d{3})+)|\d+),(?P<rest>\d+)(?![\d.,])", re.ASCII)
_THOUSAND = 3
_COMMA_WORDS = re.compile(r"decimal comma|dezimalkomma|virgule décimale|coma decimal|decimale komma", re.IGNORECASE)


_SUCH = re.compile(
    r"(?i:such as|e\.? ?g\.?|for example|example|like|format|form|written(?: as)?|z\. ?B\.)[:,]?\s+[\"'“”]?"
    r"(?P<id>[A-Za-z0-9#][A-Za-z0-9#/_.-]*[A-Za-z0-9#])"
)
"""An id that public words give as an example, or its form: ``such as 2024-00001``, ``format YYYY-NNNNN``."""
_RUN = re.compile(r"\d+|(?<![A-Z])(?:Y{2,4}|N+)(?![A-Z])|#+|(?<=[YN])N+")


class FormHint(NamedTuple):
    """A hint for cells of a column that cannot be read.

    Attributes:
        line: The form that is expected, and the key that declares another.
        key: That key of the column; empty where it has none.
        proposed: The form that public words name; empty where they name none.
    """

    line: str
    key: str = ""
    proposed: str = ""


def form_hint(column: Column, marks: TextMarks, words: Iterable[str], *, fractions: bool = False) -> FormHint:
    """Return the hint for cells of a column that cannot be read.

    Args:
        column: The column.
        marks: How text writes dates and numbers where the column does not say it.
        words: Public texts about it: of a codebook, or a description.
        fractions: Whether they are numbers, and not whole where they have to be.

    Example:
        >>> from doublure.schema.columns.datetime import DatetimeColumn
        >>> from doublure.schema.columns.spelling import TextMarks
        >>> form_hint(DatetimeColumn(), TextMarks(), ["time of admission, TT.MM.JJJJ hh:mm"]).proposed
        'DD.MM.YYYY hh:mm'
    """
    keys, texts = type(column).model_fields, tuple(words)
    if "date_format" in keys:
        now = column.fact("date_format") or marks.date_format
        form = _date_form(texts) if column.clock is not None else ""
        such = form or ("DD.MM.YYYY hh:mm" if column.tells_hour else "DD.MM.YYYY" if column.clock else "MM/YYYY")
        read = f"as {now}" if now else f"in ISO 8601, as {_iso(column)}"
        return _hint(read, "date_format", such, form if form != now else "")
    if column.plain:
        if fractions:
            return FormHint("declare type: real, with a precision; or format: #.##0, if a point parts thousands")
        now = column.fact("format")
        comma = marks.decimal or "."
        read = f"as {now}" if now else f"with a decimal {'comma' if comma == ',' else 'point'}"
        form = "" if column.integral or comma == "," else _number_form(column, texts)
        return _hint(read, "format", form or ("#.##0" if column.integral else "0,00"), form if form != now else "")
    if column.identifies:
        return _hint("as any text, and made anew as 1, 2, 3, …", "pattern", EXAMPLE, id_pattern(texts))
    if column.domain and "spellings" in keys:
        said = f"TEXT = {label(column.domain[0])}"
        return FormHint(
            "if a cell is another spelling of a declared value, and the keeper of the codebook says so, declare "
            f"spellings: {said}",
            "spellings",
        )
    return FormHint(column.expected if column.bounded else "")


def id_pattern(texts: Iterable[str]) -> str:
    """Return the pattern of ids that public texts give an example of; empty without one, or for whole numbers.

    Example:
        >>> id_pattern(["patient number, such as 2024-00001"]), id_pattern(["format: MRN-NNNNNN"])
        ('{4 digits}-{5 digits}', 'MRN-{6 digits}')
        >>> id_pattern(["numbers such as 100234", "form of the visit"])
        ''
    """
    for text in texts:
        for each in _SUCH.finditer(text):
            places = [f"{{{len(run)} digit{'s' if len(run) > 1 else ''}}}" for run in _RUN.findall(each["id"])]
            whole = each["id"].isdigit() and not each["id"].startswith("0")
            if places and not whole:
                rest = _RUN.split(each["id"])
                return "".join(part + place for part, place in zip(rest, [*places, ""], strict=True))
    return ""


def _hint(read: str, key: str, such: str, proposed: str) -> FormHint:
    said = f"{proposed}, as public words of it say" if proposed else f"such as {such}"
    return FormHint(f"cells are read {read}; if all are written otherwise, declare {key}: {said}", key, proposed)


def _iso(column: Column) -> str:
    if column.clock is None:
        return "2024-01"
    return "2024-01-31T14:05" if column.tells_hour else "2024-01-31"


def _date_form(texts: Iterable[str]) -> str:
    """Return the form of dates that public texts name by letters, or by dates of their own; empty for ISO 8601."""
    found = ""
    for text in texts:
        for each in _LETTERS.finditer(text):
            day = "".join(map(_letters, re.split(r"([-./])", each["day"])))
            clock = f"{each['between']}{each['clock'].lower()}" if each["clock"] else ""
            if _is_form(f"{day}{clock}") and not is_iso(f"{day}{clock}"):
                return f"{day}{clock}"
        written = [each.group() for each in _WRITTEN.finditer(text)]
        proposal = dates(written) if written and not found else None
        found = found or ("" if proposal is None else str(proposal.column["date_format"]))
    return found


def _letters(part: str) -> str:
    """Return a part of a form in German, French or Spanish letters as this package's."""
    large = part.upper()
    if len(large) == len("YYYY"):
        return "YYYY"
    return large.replace("T", "D").replace("J", "D")


def _is_form(text: str) -> bool:
    try:
        TypeAdapter(DateFormat).validate_python(text)
    except ValidationError:
        return False
    return True


def _number_form(column: Column, texts: Iterable[str]) -> str:
    """Return the form of numbers with a decimal comma that public texts use; empty where they use none."""
    found = [each for text in texts for each in _COMMA.finditer(text) if len(each["rest"]) != _THOUSAND]
    said = any(_COMMA_WORDS.search(text) for text in texts)
    decimals = column.decimals or max((len(each["rest"]) for each in found), default=0)
    if not decimals or not (found or said):
        return ""
    return f"{'#.##0' if any(each['grouped'] for each in found) else '0'},{'0' * decimals}"
