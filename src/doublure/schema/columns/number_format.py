"""Forms of numbers in text, drawn as spreadsheets draw them: ``$#,##0.00``, ``0.0 %``, ``#.##0,00 €``, ``00000``.

``0`` is a digit that is always written, ``#`` one that is written where there is one. A mark between ``#`` and ``##0``
stands between groups of three digits; one before further zeros is the decimal mark. All else is text around the number.
A second form behind ``;`` is that of negative numbers: ``#,##0;(#,##0)``. The number of ``12.5 %`` is 12.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, StrictStr

from doublure.errors import escaped

_FORM = re.compile(
    r"(?P<before>[^#0]*)(?:#(?P<thousands>[^\w#+-])##)?(?P<digits>0+)"
    r"(?:(?P<decimal>[^\w\s#+-])(?P<decimals>0+))?(?P<after>[^#0]*)"
)
_AROUND = re.compile(r"[-1-9+=@\"\u2212]")
"""Characters around a number that could be taken for a part of it, or that spreadsheets run."""
_LONGEST = 40
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-"})
"""The spaces and the sign that people type alike."""
_REMEDY = "write one such as '$#,##0.00', '0.0 %' or '#.##0,00'"


@dataclass(frozen=True, kw_only=True)
class NumberForm:
    """The form of a number.

    Attributes:
        before: The text before it.
        after: The text behind it.
        around_negative: The texts around a negative one; None where a sign does.
        thousands: Between groups of three digits; empty for none.
        decimal: Before the decimals.
        decimals: How many are written.
        digits: How many digits stand before them at least.
    """

    before: str
    after: str
    around_negative: tuple[str, str] | None
    thousands: str
    decimal: str
    decimals: int
    digits: int

    @property
    def is_plain(self) -> bool:
        """Whether any reader of numbers reads it."""
        return not (self.before or self.after or self.around_negative or self.thousands) and self.decimal in ("", ".")

    def text(self, number: float) -> str:
        """Return a number in this form."""
        whole, _, rest = f"{abs(number):,.{self.decimals}f}".partition(".")
        plain = whole.replace(",", "")
        negative = number < 0 and (plain.strip("0") != "" or rest.strip("0") != "")
        whole = whole.replace(",", self.thousands) if self.thousands else plain
        whole = "0" * (self.digits - len(plain)) + whole
        body = f"{whole}{self.decimal}{rest}" if rest else whole
        if negative and self.around_negative is not None:
            return f"{self.around_negative[0]}{body}{self.around_negative[1]}"
        return f"{'-' if negative else ''}{self.before}{body}{self.after}"

    def plain(self, text: str) -> str | None:
        """Return a number of this form with a decimal point and nothing around it; None where it has another form."""
        text = text.translate(_SPACES)
        found = self._pattern.fullmatch(text)
        if found is not None:
            return f"{found['first'] or found['second'] or ''}{self._digits(found)}"
        found = None if self._negative is None else self._negative.fullmatch(text)
        return None if found is None else f"-{self._digits(found)}"

    def _digits(self, found: re.Match[str]) -> str:
        whole = found["whole"].replace(self.thousands.translate(_SPACES), "") if self.thousands else found["whole"]
        return f"{whole}.{found['rest']}" if found["rest"] else whole

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        within = "[+-]?" if self.before else ""  # -$5, and $-5
        return self._around(self.before, self.after, "(?P<first>[+-]?)", f"(?P<second>{within})")

    @cached_property
    def _negative(self) -> re.Pattern[str] | None:
        return None if self.around_negative is None else self._around(*self.around_negative, "", "")

    def _around(self, before: str, after: str, first: str, second: str) -> re.Pattern[str]:
        whole = r"\d+"
        if self.thousands:
            whole = rf"(?:\d{{1,3}}(?:{re.escape(self.thousands.translate(_SPACES))}\d{{3}})+|\d+)"
        rest = rf"(?:{re.escape(self.decimal)}(?P<rest>\d*))?" if self.decimal else r"(?P<rest>(?!))?"
        form = rf"{first}{_spaced(before)}{second}(?P<whole>{whole}){rest}{_spaced(after)}"
        return re.compile(form, re.ASCII)


def _spaced(text: str) -> str:
    """Return the pattern of a text around a number, with a space or without."""
    bare = text.translate(_SPACES).strip()
    return rf" ?{re.escape(bare)} ?" if bare else ""


@cache
def number_form(text: str) -> NumberForm:
    """Return the form that a text draws.

    Raises:
        ValueError: It draws none; ``message; remedy``.

    Example:
        >>> number_form("$#,##0.00").text(1234.5), number_form("#.##0,00 €").plain("1.234,50 €")
        ('$1,234.50', '1234.50')
    """
    positive, semicolon, negative = text.partition(";")
    found, below = _FORM.fullmatch(positive), _FORM.fullmatch(negative) if semicolon else None
    if found is None or (semicolon and below is None) or len(text) > _LONGEST or escaped(text) != text:
        raise ValueError(f"is no form of numbers; {_REMEDY}")
    around = [found["before"], found["after"]]
    sides = None if below is None else (below["before"], below["after"])
    if any(_AROUND.search(each) for each in around) or found["thousands"] == found["decimal"] is not None:
        raise ValueError(f"has signs, digits or quotes around the number, or one mark for two things; {_REMEDY}")
    if sides is not None and (sides == tuple(around) or any(re.search(r"[1-9=@\"]", each) for each in sides)):
        raise ValueError("does not tell negative numbers from others; write one such as '#,##0;(#,##0)'")
    return NumberForm(
        before=around[0],
        after=around[1],
        around_negative=sides,
        thousands=found["thousands"] or "",
        decimal=found["decimal"] or "",
        decimals=len(found["decimals"] or ""),
        digits=len(found["digits"]),
    )


def _checked(text: str) -> str:
    number_form(text)
    return text


NumberFormat: TypeAlias = Annotated[StrictStr, AfterValidator(_checked)]


def marked(decimal: str, thousands: str | None) -> Callable[[str], str]:
    """Return how a plain number is written with other marks.

    Example:
        >>> marked(",", ".")("-1234567.5")
        '-1.234.567,5'
    """

    def rewritten(text: str) -> str:
        whole, point, rest = text.partition(".")
        sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
        if thousands is not None and digits.isdigit():
            digits = f"{int(digits):,}".replace(",", thousands)
        return f"{sign}{digits}{decimal}{rest}" if point else f"{sign}{digits}"

    return rewritten
