"""Texts in a table's own spelling, rewritten as columns read them: ``31.01.2024`` and ``1.234,5``.

A text that means missing stays as it is. One that is not of the declared form becomes a text that is no number and no
date, even where it would be one in doublure's own spelling: with a decimal comma, ``1.5`` is a misfit and not one and a
half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeAlias

Spelling: TypeAlias = Callable[[str], str]

MISFIT = "not as declared"
_NOTHING = {"NaN", "nan", "NA", "<NA>", "NaT"}


def respelt_dates(date_format: str, missing: Collection[str]) -> Spelling:
    """Return how a text of a form such as ``DD.MM.YYYY`` becomes ISO 8601.

    Args:
        date_format: The form.
        missing: The texts that mean missing.
    """
    pattern, tokens = pattern_of(date_format), {*missing, *_NOTHING}

    def rewritten(text: str) -> str:
        if (bare := text.strip()) in tokens:
            return text
        found = pattern.fullmatch(bare)
        if found is None:
            return MISFIT
        part = found.groupdict()
        day = f"{part['YYYY']}-{part['MM']:0>2}-{part['DD']:0>2}"
        return f"{day}T{part['hh']:0>2}:{part['mm']}:{part.get('ss') or '00'}" if part.get("hh") else day

    return rewritten


def respelt_numbers(decimal: str, thousands: str | None, missing: Collection[str]) -> Spelling:
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

    return rewritten


def pattern_of(date_format: str) -> re.Pattern[str]:
    """Return the form of a date, with a group for each part; where it has no hours, a time of ISO 8601 may follow.

    Example:
        >>> pattern_of("DD.MM.YYYY").fullmatch("31.01.2024")["YYYY"]
        '2024'
    """
    digits = {"YYYY": r"\d{4}", "MM": r"\d{1,2}", "DD": r"\d{1,2}", "hh": r"\d{1,2}", "mm": r"\d{2}", "ss": r"\d{2}"}
    parts = re.split(r"(YYYY|MM|DD|hh|mm|ss)", date_format)
    form = "".join(f"(?P<{part}>{digits[part]})" if part in digits else re.escape(part) for part in parts)
    if "hh" not in date_format:
        form += r"(?:[T ](?P<hh>\d{1,2}):(?P<mm>\d{2})(?::(?P<ss>\d{2}))?)?"
    return re.compile(form, re.ASCII)
