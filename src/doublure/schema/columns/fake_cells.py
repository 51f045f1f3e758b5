"""Made-up cells: parts of a library's lists, chosen by the number of a unit and the seed of a sample.

No value can belong to a person by more than its name: mail addresses are of domains that are kept for examples (RFC
2606), telephone numbers are kept for films or begin with a country code that no country has, and an IBAN has check
digits that none has.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from doublure.errors import SettingError
from doublure.schema.columns.made_rows import MadeRows
from doublure.schema.columns.patterns import TextPattern
from doublure.support.extras import require_faker
from doublure.support.guessing import nearest_name
from doublure.support.mixing import Marks, remarked

if TYPE_CHECKING:
    from faker import Faker

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Texts: TypeAlias = "np.ndarray[Any, np.dtype[np.object_]]"

_DRAWS = 4_096
"""Draws of each part from the library: first and last names make 16 million full names, in a tenth of a second."""
_MAIL_DOMAINS = ("example.com", "example.net", "example.org")
_IN_ASCII = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "o", "æ": "ae", "ł": "l", "đ": "d"})
_NORTH_AMERICA = ("(2{2 digits}) 555-01{2 digits}", "2{2 digits}-555-01{2 digits}")
_PHONES: Mapping[str, tuple[str, ...]] = {
    "US": _NORTH_AMERICA,
    "CA": _NORTH_AMERICA,
    "GB": ("07700 900{3 digits}", "020 7946 0{3 digits}", "01632 960{3 digits}"),
    "AU": ("(02) 5550 {4 digits}", "(03) 5550 {4 digits}", "(07) 5550 {4 digits}", "(08) 5550 {4 digits}"),
    "DE": (
        "030 23125{3 digits}", "069 90009{3 digits}", "040 66969{3 digits}", "0221 4710{3 digits}",
        "089 99998{3 digits}",
    ),
    "FR": (
        "01 99 00 {2 digits} {2 digits}", "02 61 91 {2 digits} {2 digits}", "03 53 01 {2 digits} {2 digits}",
        "04 65 71 {2 digits} {2 digits}", "05 36 49 {2 digits} {2 digits}", "06 39 98 {2 digits} {2 digits}",
    ),
}  # fmt: skip
"""Country -> numbers that its regulator keeps for films: NANPA, Ofcom, ACMA, Bundesnetzagentur, ARCEP."""
_NOWHERE = ("+999 {3 digits} {3 digits} {3 digits}",)
"""Numbers that cannot be dialled: E.164 gives the country code 999 to none."""
_ALWAYS_WRONG = "00"
"""Check digits of no IBAN: ISO 13616 gives 02 to 98. Those that leave the same remainder, 97, take 01."""
_TURNS = {"sex": 1, "first": 2, "last": 3, "form": 4, "number": 5, "place": 6, "further": 7}
"""Choice by a unit's mark -> number of its sequence."""


@dataclass(frozen=True, kw_only=True)
class FakeFacts:
    """The public facts of made-up cells, as :class:`~doublure.schema.columns.fake.FakeColumn` has them.

    ``female`` says of each synthetic person whether she is, missing where that is unknown.
    """

    subject: str
    locale: str
    pattern: str | None
    who: str
    per: str
    form: str | None = None
    female: Any = None


def refuse_unready(locale: str, name: str) -> None:
    """Refuse a column whose library is not installed, or has no such locale.

    Raises:
        MissingExtra: The library is not installed.
        SettingError: It does not know the locale.
    """
    require_faker(name)
    from faker.config import AVAILABLE_LOCALES

    if locale not in AVAILABLE_LOCALES:
        near = nearest_name(locale, sorted(AVAILABLE_LOCALES))
        remedy = f"did you mean {near}?" if near else "write one such as en_GB or de_DE"
        raise SettingError("has a locale that Faker does not know", field=f"{name}.locale", remedy=remedy)


def fake_texts(column: FakeFacts, rows: MadeRows) -> Texts:
    """Return ``(N,)`` made-up texts: the same for a unit at a seed, whatever else its rows hold."""
    numbers, salt = (rows.units, "") if column.per == "unit" else (rows.numbers, rows.table)
    return _MAKERS[column.subject](column, unit_marks(rows, numbers, f"{salt}/{column.who}"), numbers)


def unit_marks(rows: MadeRows, numbers: Ints, salt: str) -> Marks:
    """Return ``(N,)`` marks that are as good as random and follow from numbers, the seed of a sample, and a word."""
    seed = remarked(np.array([rows.seed], dtype=np.uint64), zlib.crc32(salt.encode()))
    return remarked(numbers.astype(np.uint64) ^ seed)


def chosen(values: Sequence[str] | Texts, marks: Marks) -> Texts:
    """Return the value that each mark points at."""
    found: Texts = np.asarray(values, dtype=object)[(marks % np.uint64(len(values))).astype(np.int64)]
    return found


def _turned(marks: Marks, what: str) -> Marks:
    return remarked(marks, _TURNS[what])


# -- parts -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _drawn(locale: str, part: str) -> Texts:
    """Return draws of one part, the same in each process: ``(_DRAWS,)``, each on one line."""
    library = _library(locale)
    library.seed_instance(0)
    draw = getattr(library, part)
    return np.array([", ".join(str(draw()).split("\n")) for _ in range(_DRAWS)], dtype=object)


def _library(locale: str) -> Faker:
    from faker import Faker

    return Faker(locale)


@lru_cache(maxsize=64)
def _family_first(locale: str) -> tuple[bool, str]:
    """Return whether a full name begins with the family's, and what stands between, by the library's first form."""
    named = next(each for each in _library(locale).get_providers() if hasattr(each, "first_name"))
    forms = list(named.formats)
    form = str(forms[0]) if forms else ""
    return form.startswith("{{last_name"), "" if "}}{{" in form else " "


def _name(column: FakeFacts, marks: Marks, part: str) -> Texts:
    female = _turned(marks, "sex") % np.uint64(2) == 0
    if column.female is not None:
        female = column.female.where(column.female.notna(), female).to_numpy(dtype=np.bool_)
    own = _turned(marks, part)
    of_women = chosen(_drawn(column.locale, f"{part}_name_female"), own)
    return np.where(female, of_women, chosen(_drawn(column.locale, f"{part}_name_male"), own))


# -- what cells hold -------------------------------------------------------------------------------------------------


def _full_names(column: FakeFacts, marks: Marks, numbers: Ints) -> Texts:
    first, last = _name(column, marks, "first"), _name(column, marks, "last")
    if column.form is not None:
        return _array(column.form.format(first=one, last=other) for one, other in zip(first, last, strict=True))
    family_first, between = _family_first(column.locale)
    names: Texts = last + between + first if family_first else first + between + last
    return names


def _mails(column: FakeFacts, marks: Marks, numbers: Ints) -> Texts:
    names = zip(_name(column, marks, "first"), _name(column, marks, "last"), strict=True)
    before = [".".join(filter(None, map(_ascii, name))) or "user" for name in names]
    domains = chosen(_MAIL_DOMAINS, _turned(marks, "form"))
    return _array(f"{own}{number}@{at}" for own, number, at in zip(before, numbers, domains, strict=True))


def _ascii(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.lower().translate(_IN_ASCII))
    return "".join(mark for mark in plain if mark.isascii() and mark.isalnum())


def _phones(column: FakeFacts, marks: Marks, numbers: Ints) -> Texts:
    forms = _PHONES.get(column.locale.partition("_")[2], _NOWHERE)
    return chosen_texts(forms, marks)


def chosen_texts(patterns: Sequence[str], marks: Marks) -> Texts:
    """Return a text of one of several patterns for each mark; other patterns have other texts."""
    marks = remarked(marks, zlib.crc32("\n".join(patterns).encode()))
    which = (_turned(marks, "form") % np.uint64(len(patterns))).astype(np.int64)
    found = np.empty(len(marks), dtype=object)
    for at, pattern in enumerate(map(TextPattern, patterns)):
        own = which == at
        places = _turned(marks[own], "number") % np.uint64(pattern.size)
        found[own] = pattern.texts(places.astype(np.int64))
    return found


def _ibans(column: FakeFacts, marks: Marks, numbers: Ints) -> Texts:
    forms = chosen(_drawn(column.locale, "iban"), _turned(marks, "place"))
    digits = zip(forms, _turned(marks, "number"), _turned(marks, "further"), strict=True)
    return _array(_invalid(form, f"{one:020d}{other:020d}"[::-1]) for form, one, other in digits)


def _invalid(form: str, digits: str) -> str:
    """Return an IBAN of a form with other digits, and check digits that are wrong by any rule."""
    own = "".join(digits[at] if mark.isdigit() else mark for at, mark in enumerate(form[4:]))
    remainder = int("".join(str(int(mark, 36)) for mark in f"{own}{form[:2]}{_ALWAYS_WRONG}")) % 97
    return f"{form[:2]}{'01' if remainder == 1 else _ALWAYS_WRONG}{own}"


def _array(texts: Any) -> Texts:
    return np.array([*texts], dtype=object)


def _of_part(part: str) -> Maker:
    def made(column: FakeFacts, marks: Marks, numbers: Ints) -> Texts:
        return chosen(_drawn(column.locale, part), _turned(marks, "place"))

    return made


Maker: TypeAlias = Callable[[FakeFacts, Marks, Ints], Texts]
_MAKERS: Mapping[str, Maker] = {
    "person_name": _full_names,
    "first_name": lambda column, marks, numbers: _name(column, marks, "first"),
    "last_name": lambda column, marks, numbers: _name(column, marks, "last"),
    "email": _mails,
    "phone": _phones,
    "street": _of_part("street_address"),
    "city": _of_part("city"),
    "company": _of_part("company"),
    "iban": _ibans,
    "pattern": lambda column, marks, numbers: chosen_texts([column.pattern or ""], marks),
}
"""Subject -> cells from a column's facts, marks of its persons, and their numbers."""
