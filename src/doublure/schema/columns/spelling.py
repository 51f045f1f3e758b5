"""Texts in a table's own spelling, rewritten as columns read them: ``31.01.2024`` and ``1.234,5``.

A text that means missing stays as it is. One that is not of the declared form becomes a text that is no number and no
date, even where it would be one in doublure's own spelling: with a decimal comma, ``1.5`` is a misfit and not one and a
half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from doublure.schema.columns.date_format import is_whole, iso_text
from doublure.schema.columns.number_format import number_form

MISFIT = "not as declared"
_NOTHING = {"NaN", "nan", "NA", "<NA>", "NaT"}


class TextMarks(NamedTuple):
    """The form of dates and numbers in all text of a table, where a column does not say its own."""

    date_format: str | None = None
    decimal: str | None = None
    thousands: str | None = None


@dataclass(frozen=True)
class CellSpelling:
    """The rule by which a column's texts are rewritten before they are read.

    Attributes:
        rewritten: Takes one text to another.
        digits: How many digits a cell has that is stored as a whole number, and is rewritten, too; None where numbers
            stay.
    """

    rewritten: Callable[[str], str]
    digits: int | None = None

    def __call__(self, text: str) -> str:
        """Return a text as the column reads it."""
        return self.rewritten(text)

    def of_number(self, text: str) -> str:
        """Return a whole number, as text, as the column reads it."""
        return self.rewritten(text.zfill(self.digits or 0))


def respelt_dates(date_format: str, missing: Collection[str]) -> CellSpelling:
    """Return how a text of a form such as ``DD.MM.YYYY`` becomes ISO 8601; a form without days gives months.

    Args:
        date_format: The form.
        missing: The texts that mean missing.
    """
    tokens = {*missing, *_NOTHING}

    def rewritten(text: str) -> str:
        return text if (bare := text.strip()) in tokens else iso_text(date_format, bare) or MISFIT

    padded = 0 if date_format.startswith("Y") else len(date_format)  # 9032023 has lost a zero
    return CellSpelling(rewritten, digits=padded if is_whole(date_format) else None)


def respelt_numbers(decimal: str, thousands: str | None, missing: Collection[str]) -> CellSpelling:
    """Return how a number with other marks becomes one with a decimal point.

    Args:
        decimal: Between its whole part and its fraction.
        thousands: Between groups of three digits, if there is one.
        missing: The texts that mean missing.
    """
    tokens = {*missing, *_NOTHING}
    point, digits = re.escape(decimal), r"[0-9]+"
    if thousands is not None:
        digits = rf"(?:[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+)"
    form = re.compile(rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def rewritten(text: str) -> str:
        if (bare := text.strip()) in tokens:
            return text
        if form.fullmatch(bare) is None:
            return MISFIT
        return (bare if thousands is None else bare.replace(thousands, "")).replace(decimal, ".")

    return CellSpelling(rewritten)


def respelt_form(form: str, missing: Collection[str]) -> CellSpelling:
    """Return how a number of a form such as ``$#,##0.00`` becomes a plain one.

    Args:
        form: As :mod:`doublure.schema.columns.number_format` draws it.
        missing: The texts that mean missing.
    """
    tokens, plain = {*missing, *_NOTHING}, number_form(form).plain

    def rewritten(text: str) -> str:
        return text if (bare := text.strip()) in tokens else plain(bare) or MISFIT

    return CellSpelling(rewritten)


def respelt_words(words: Mapping[str, str], missing: Collection[str]) -> CellSpelling:
    """Return how words become others: Y becomes true, say; a number is its text.

    Args:
        words: Text -> text.
        missing: The texts that mean missing.
    """
    tokens = {*missing, *_NOTHING}

    def rewritten(text: str) -> str:
        return text if (bare := text.strip()) in tokens else words.get(bare, MISFIT)

    return CellSpelling(rewritten, digits=0)
