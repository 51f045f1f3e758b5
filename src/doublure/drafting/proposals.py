"""Propose column types beyond the storage type, as comments for a data steward to confirm.

A proposal follows from a column's name, and from the form of its first thousand cells: a form counts only if 19 in 20
cells share it, so that no single record decides. No value, bound, category or count leaves this module: where one
has to be written, the proposal holds a word in capitals. The number of decimals of most numbers is a form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pandas as pd

from doublure.drafting import forms
from doublure.drafting.code_lists import levels_named, unlevelled
from doublure.drafting.forms import ProposedForm
from doublure.drafting.identities import BEGIN, END, words_of
from doublure.drafting.storage_types import FEWEST, PLAIN, SHARE, Storage, is_blank, storage_of
from doublure.errors import printable
from doublure.schema.columns import Column, types, unmodelled_types
from doublure.schema.columns.constant import REMOVED
from doublure.schema.columns.fake import WITHOUT_LIBRARY
from doublure.schema.columns.year import is_year
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.rules.at_most import compared_pairs
from doublure.schema.rules.calendar_order import comparable, fineness
from doublure.schema.rules.registry import MODELS
from doublure.schema.rules.rule import Likeness, Rule
from doublure.schema.rules.rule_set import goes_with
from doublure.schema.schema import Schema
from doublure.schema.unit import is_id_name, people_in
from doublure.support import yaml12 as yaml_text
from doublure.support.extras import has_faker

_LEAVE_OUT = "take the line above out"
_MOST_CODES = 20
_DECIMALS_SAID = ("no decimals", "one decimal at most", "two decimals at most", "three decimals at most")
_SOME = 1 - SHARE
_CALENDAR = re.compile(r"(?i:(?:^|[_ .-])(?:year|yr|jahr|ann[eé]e|an|a[nñ]o|anno|jaar|ano|rok))$|[a-z]Year$|^YR")
"""Names of years in some languages."""
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2} ?(?:[A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)", re.ASCII)
_DECIMALS = re.compile(r"[+-]?\d*\.?(\d*)", re.ASCII)
_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)
_TIME = re.compile(r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?", re.ASCII)
_WITH_SECONDS = re.compile(r"\d+:\d{2}:\d{2}(?:[.,]\d+)?", re.ASCII)
_NO_CLOCKS = {*PLAIN} - {"text"}
_HOUR = re.compile(r"hr|hour|hours|time|clock", re.IGNORECASE)
_WORDS = re.compile(r"\S+\s+\S+\s+\S.*", re.DOTALL)
_TWIN = re.compile(r"[ _.-]?(num|number|nr|code|name|label|text|desc|description|cat|category|group|decile)$", re.I)
_LONGITUDE = re.compile(r"(?<![a-z])(?:longitude|long|lon|lng)(?![a-z])", re.IGNORECASE)
_LATITUDE = re.compile(r"(?<![a-z])(?:latitude|lat)(?![a-z])", re.IGNORECASE)
_BIRTH = {"birth", "born", "dob", "birthdate", "birthday", "geburtsdatum", "geboren", "naissance", "nacimiento"}
"""Words of a person's birth, which nothing that is recorded of that person comes before."""
_COARSER = {"cat", "category", "group", "decile"}
_WHOSE = r"(?:(?:patient|person|customer|client|user|employee|contact|doctor|physician)[ _.-]?)?"
_OF_PEOPLE = {
    subject: re.compile(_WHOSE + form, re.IGNORECASE)
    for subject, form in {
        "email": r"(?:e[ _-]?)?mail(?:[ _-]?addr(?:ess)?)?",
        "first_name": r"(?:first|given|fore)[ _-]?name|vorname|prenom",
        "last_name": r"(?:last|family|sur)[ _-]?name|surname|nachname",
        "person_name": r"(?:full[ _-]?)?name",
        "phone": r"(?:tele|mobile[ _-]?|cell[ _-]?)?phone(?:[ _-]?(?:number|no|nr))?|telefon",
        "street": r"street(?:[ _-]?address)?|address|adresse|strasse",
        "iban": r"iban",
    }.items()
}
"""Subject of ``fake`` -> names of columns that hold it."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A proposed description of a column.

    Attributes:
        why: The condition in a few words, after "if".
        column: The description, with words in capitals to replace; None where it had better not be described.
        keys: Keys of the file that go with it, such as ``date_format``.
        by_name: Whether name and storage type alone propose it, and no cell.
    """

    why: str
    column: Mapping[str, Any] | None
    keys: Mapping[str, str]
    by_name: bool = False


def proposal_for(name: str, storage: Storage, cells: pd.Series[Any]) -> Proposal | None:
    """Return what a column may be beside its storage type; None where nothing suggests itself.

    Args:
        name: Of the column.
        storage: How it is stored.
        cells: Its first cells. Private.
    """
    if (named := named_proposal(name, storage)) is not None:
        return named
    every = [text.strip() for text in map(str, cells.dropna())]
    texts = [text for text in every if not is_blank(text)]
    if len(texts) < FEWEST or (storage == "date" and cells.dtype.kind == "M"):  # a typed day is not written
        return None
    if storage == "integer" and _CALENDAR.search(name) and sum(map(is_year, texts)) >= SHARE * len(texts):
        return Proposal(why="its numbers are years", column={"type": "year", "bounds": "undeclared"}, keys={})
    found = _FORMS[storage](texts) if storage in _FORMS else None
    if storage == "real" and cells.dtype.kind == "f":  # programs of statistics store every number so
        found = _of_whole_floats(texts) or found
    return _with_missing(found, storage, Counter(text for text in every if text and is_blank(text)), len(every))


def named_proposal(name: str, storage: Storage) -> Proposal | None:
    """Return what a column may be by its name and storage type alone; None where they suggest nothing.

    Example:
        >>> named_proposal("patient_id", "integer").column, named_proposal("age", "integer")
        ({'type': 'id'}, None)
    """
    if is_id_name(name) and storage in ("integer", "text"):
        who = people_in(name)
        why = "it only tells records apart" if who is None else f"it names a {who}"
        return Proposal(why=f"{why}, as its name says", column={"type": "id"}, keys={}, by_name=True)
    if (levels := levels_named(name)) is not None and storage in ("integer", "text"):
        column = {"type": "code", "values": {"file": "CODES.txt"}, "levels": list(levels)}
        why = "it holds codes of a public list, as its name says"
        return Proposal(why=why, column=column, keys={}, by_name=True)
    if storage == "text" and (subject := subject_named(name)) is not None:
        return replace(_of_people(subject, "by its name it holds names or addresses of people"), by_name=True)
    return None


def of_lists(columns: Mapping[str, Column], files: Mapping[str, Any]) -> dict[str, Proposal]:
    """Return what long declared lists may be beside categories, by names and declared values alone.

    Args:
        columns: As declared.
        files: Column -> what names the file of its values.
    """
    why = "these are codes with chapters above them"
    return {
        name: Proposal(
            why=why,
            column={"type": "code", "values": files.get(name, ["CODE", "CODE"]), "levels": list(levels)},
            keys={},
        )
        for name, levels in unlevelled(columns)
    }


def proposed_line(name: str, proposal: Proposal) -> str:
    """Return what a column may be, and if what is so; one that says nothing of itself is better left out."""
    line = f"{yaml_text.inline(name)}: {yaml_text.inline(proposal.column)}" if proposal.column else _LEAVE_OUT
    return f"{line}  # if {proposal.why}"


def key_line(name: str, why: str) -> str:
    """Return where a column of series belongs that is not modelled: it is no column there, but a key."""
    return f"take {yaml_text.inline(name)} out and name it in unit.id or series.source, if {why}"


def series_line(name: str, proposal: Proposal) -> str:
    """Return what a column of series may be: one that tells records apart is no column there, but a key."""
    if proposal.column and proposal.column["type"] in unmodelled_types():
        return key_line(name, proposal.why)
    if proposal.keys:
        return f"proposed above: {' and '.join(proposal.keys)}, if {proposal.why}"
    line = proposed_line(name, proposal)
    codes = proposal.column is not None and proposal.column["type"] == "category"
    return f"{line}; under attributes, if it stays the same through a series" if codes else line


def subject_named(name: str) -> str | None:
    """Return what a column of this name holds of people, as ``fake`` has it; None where it says nothing of them.

    Example:
        >>> subject_named("Patient name"), subject_named("e-mail"), subject_named("ward")
        ('person_name', 'email', None)
    """
    return next((subject for subject, form in _OF_PEOPLE.items() if form.fullmatch(name.strip())), None)


def _with_missing(found: Proposal | None, storage: Storage, blanks: Counter[str], cells: int) -> Proposal | None:
    """Add that a text such as a question mark means missing, where one in 20 cells is one beside numbers or dates."""
    if max(blanks.values(), default=0) < _SOME * cells:
        return found
    if found is None and storage not in ("text", "boolean"):
        column = {"type": storage, "bounds": "undeclared", "missing": ["TEXT"]}
        return Proposal(why="one text in it means missing", column=column, keys={})
    if found is None or found.column is None or found.column["type"] in unmodelled_types():
        return found
    return replace(
        found, why=f"{found.why}, and one text that means missing", column={**found.column, "missing": ["TEXT"]}
    )


def _of_whole(texts: Sequence[str]) -> Proposal | None:
    """Return what whole numbers may be: dates, months, truth values, codes."""
    found = forms.whole_dates(texts) or forms.ones(texts)
    return _of_codes(texts) if found is None else _proposed(found)


def _of_form(form: Callable[[Sequence[str]], ProposedForm | None]) -> Callable[[Sequence[str]], Proposal | None]:
    def proposal(texts: Sequence[str]) -> Proposal | None:
        found = form(texts)
        return None if found is None else _proposed(found)

    return proposal


def _proposed(form: ProposedForm) -> Proposal:
    return Proposal(why=form.why, column=form.column, keys={})


def _of_codes(texts: Sequence[str]) -> Proposal | None:
    common = sum(count for _, count in Counter(texts).most_common(_MOST_CODES))
    if common < SHARE * len(texts):
        return None
    return Proposal(why="these are codes", column={"type": "category", "values": ["CODE", "CODE"]}, keys={})


def _of_people(subject: str, why: str) -> Proposal:
    """Return made-up cells of a kind; without the library that makes them, the way to them."""
    column = {"type": "fake", "as": subject}
    if subject in WITHOUT_LIBRARY or has_faker():
        return Proposal(why=f"{why}: cells are then made up, and never read", column=column, keys={})
    way = f"after pip install 'doublure[fake]' it may be {yaml_text.inline(column)}"
    return Proposal(why=f"{why}: it is then never read; {way}", column=None, keys={})


def _of_texts(texts: Sequence[str]) -> Proposal | None:
    if _most(_MAIL, texts):
        return _of_people("email", "it holds mail addresses")
    if _most(_IBAN, texts):
        return _of_people("iban", "it holds numbers of accounts")
    if _most(_UUID, texts):
        why = "it only tells records apart, as identifiers do"
        return Proposal(why=why, column={"type": "id"}, keys={})
    if (found := forms.dates(texts) or forms.months(texts) or forms.truths(texts)) is not None:
        return _proposed(found)
    commas = [text for text in texts if "," in text and _GROUPED.fullmatch(text) is None]
    if _most(_COMMA, texts) and len(commas) >= _SOME * len(texts):
        keys = {"decimal": ","}
        if sum("." in text for text in texts) >= _SOME * len(texts):
            keys["thousands"] = "."
        why = "it holds numbers with a decimal comma"
        return Proposal(why=why, column={"type": "real", "bounds": "undeclared"}, keys=keys)
    if (form := forms.numbers(texts)) is not None:
        return _proposed(form)
    return _of_numbers_and_a_code(texts) or _of_words(texts)


def _of_decimals(texts: Sequence[str]) -> Proposal | None:
    """Return a real with as many decimals as most numbers are written with, zeros at their end aside, if few.

    Each number counts once: a zero that is often there says nothing of the others.
    """
    if (months := forms.months(texts)) is not None:  # 03.2023
        return _proposed(months)
    different: Collection[str] = set(texts)
    if len(different) < FEWEST and _of_codes(texts) is not None:  # few values, each of many cells
        different = texts
    written = [found.group(1).rstrip("0") for text in different if (found := _DECIMALS.fullmatch(text))]
    enough = max(FEWEST, SHARE * len(different))
    for precision, said in enumerate(_DECIMALS_SAID):
        if sum(len(decimals) <= precision for decimals in written) >= enough:
            column = {"type": "real", "bounds": "undeclared", "precision": precision}
            if precision > 1 and forms.keep_zeros(texts, precision):
                column |= {"format": f"0.{'0' * precision}"}
            return Proposal(why=f"its numbers have {said}", column=column, keys={})
    return None


def _of_whole_floats(texts: Sequence[str]) -> Proposal | None:
    """Return what whole numbers may be that are stored with a fraction: dates, codes, or just whole."""
    whole = [text.removesuffix(".0") for text in texts if text.endswith(".0")]
    if len(whole) < SHARE * len(texts):
        return None
    column = {"type": "integer", "bounds": "undeclared"}
    return _of_whole(whole) or Proposal(why="its numbers are whole", column=column, keys={})


def _of_words(texts: Sequence[str]) -> Proposal | None:
    """Return what a text may be that is no list of values: free text, or a name of each record."""
    if sum(count for _, count in Counter(texts).most_common(_MOST_CODES)) >= SHARE * len(texts):
        return None
    if _most(_WORDS, texts):
        why = "it is free text, which no method makes: no cell is then read; or take the line above out"
        return Proposal(why=why, column={"type": "constant", "value": REMOVED}, keys={})
    if len(set(texts)) >= SHARE * len(texts):
        why = "it only tells records apart, as nearly every cell is another"
        return Proposal(why=why, column={"type": "id"}, keys={})
    return None


def _of_numbers_and_a_code(texts: Sequence[str]) -> Proposal | None:
    numbers = [text for text in texts if _NUMBER.fullmatch(text)]
    others = Counter(text for text in texts if not _NUMBER.fullmatch(text))
    code = max(others.values(), default=0)
    if min(len(numbers), code) < _SOME * len(texts) or len(numbers) + code < SHARE * len(texts):
        return None
    kind = storage_of(pd.Series(numbers, dtype=object))
    column = {"type": kind, "bounds": "undeclared", "missing": ["TEXT"]}
    return Proposal(why="its numbers stand beside one text that means missing", column=column, keys={})


def of_days(cells: pd.Series[Any]) -> bool:
    """Say whether cells have the form of days without a clock. Private."""
    texts = [text.strip() for text in map(str, cells.dropna()) if not is_blank(text)]
    return len(texts) >= FEWEST and sum(":" in text for text in texts) < SHARE * len(texts)


def is_clock(name: str, storage: Storage, cells: pd.Series[Any]) -> bool:
    """Say whether a column has the form of times of day, or is named as whole hours are.

    Args:
        name: Of the column.
        storage: How it is stored.
        cells: Its first cells. Private.
    """
    if storage == "integer":
        return _HOUR.fullmatch(name) is not None
    texts = [text.strip() for text in map(str, cells.dropna()) if not is_blank(text)]
    return storage not in _NO_CLOCKS and len(texts) >= FEWEST and _most(_TIME, texts)


def _of_clocks(texts: Sequence[str]) -> Proposal | None:
    """Return what times of day may be beside that: spans, where texts have seconds; else times in whole minutes."""
    if _most(_WITH_SECONDS, texts):
        why = "it says how long, not when"
        return Proposal(why=why, column={"type": "duration", "bounds": "undeclared"}, keys={})
    if _most(_TIME, texts):
        return Proposal(why="its times are of whole minutes", column={"type": "time", "step": 60}, keys={})
    return None


def _beside(other: str, name: str, longitude: re.Match[str]) -> bool:
    """Say whether a name is that of a longitude, with a latitude's word in its place."""
    latitude = _LATITUDE.search(other)
    rest = name[: longitude.start()] + name[longitude.end() :]
    return latitude is not None and other[: latitude.start()] + other[latitude.end() :] == rest


def _most(form: re.Pattern[str], texts: Sequence[str]) -> bool:
    return sum(form.fullmatch(text) is not None for text in texts) >= SHARE * len(texts)


_FORMS: Mapping[Storage, Callable[[Sequence[str]], Proposal | None]] = {
    "integer": _of_whole,
    "text": _of_texts,
    "boolean": _of_form(forms.spelt_truths),
    "date": _of_form(forms.moments),
    "datetime": _of_form(forms.moments),
    "real": _of_decimals,
    "time": _of_clocks,
}


# -- rules, by names and types alone ------------------------------------------------------------------------------


def rules_for(columns: Mapping[str, Column], declared: Sequence[Rule] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield rules that may hold, as YAML to paste, and their columns: by the names and types of columns alone.

    Args:
        columns: All columns.
        declared: Rules beside which they are to stand; each proposal stands beside those before, too.
    """
    suggested = {model.suggested_by: model for model in MODELS if model.suggested_by is not None}
    beside = [*declared]
    for likeness, pair in _alike(columns):
        model = suggested[likeness]
        file: dict[str, Any] = {model.file_key: {}} if model.file_key is not None and model.needs_file else {}
        said: dict[str, Any] = {model.word: pair, **file}
        rule = model.model_construct(**said)
        if goes_with(rule, beside, columns):
            beside.append(rule)
            named = "".join(f", {key}: FILE" for key in file)
            yield f"- {{{model.word}: {yaml_text.inline(list(pair))}{named}}}", pair


def following_bounds(schema: Schema) -> dict[str, Proposal]:
    """Return bounds of columns that are never below another whose bounds are declared, by rules and names alone.

    The least is the other's by the rule. The greatest is a proposal: what follows may end later.

    Args:
        schema: The public facts.
    """
    found: dict[str, Proposal] = {}
    for place, table in schema.each_table.items():
        if all(column.fact("bounds") != UNDECLARED for column in table.columns.values()):
            continue
        told = ((pair, "by a rule") for pair in compared_pairs(table.constraints, table.columns))
        likely = ((pair, "by their names") for pair in _two_times(table.columns))
        for (low, high), why in (*told, *likely):
            first, column = table.columns[low], table.columns[high]
            known, name = first.shown_bounds, f"{place.removeprefix('tables.')}{high}"
            still = isinstance(known, tuple) and column.fact("bounds") == UNDECLARED and column.alike(first)
            if not still or words_of(low) & _BIRTH:  # what follows a birth may do so by a life
                continue
            own = column.model_dump(mode="json", exclude_defaults=True, include={"missing", "roles", "description"})
            ends = [end if isinstance(end, (int, float)) else str(end).replace(" ", "T") for end in known or ()]
            said = f"it is at least {printable(low)} ({why}), and lies within the same bounds"
            found.setdefault(name, Proposal(why=said, column={"type": column.type, "bounds": ends, **own}, keys={}))
    return found


def _alike(columns: Mapping[str, Column]) -> Iterator[tuple[Likeness, tuple[str, str]]]:
    for name in columns:
        ending = _TWIN.search(name)
        bare = "" if ending is None else name[: ending.start()].lower()
        twin = next((other for other in columns if other.lower() == bare), None)
        if ending is not None and twin is not None:
            yield "a coarser name" if ending[1].lower() in _COARSER else "one name", (twin, name)
    for name in columns:
        if (found := _LONGITUDE.search(name)) is not None:
            twin = next((other for other in columns if _beside(other, name, found)), None)
            if twin is not None and all(columns[each].plain for each in (name, twin)):
                yield "two coordinates", (name, twin)
    yield from (("two times", both) for both in _two_times(columns))


def _two_times(columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield times of which the first is at most the second: a birth comes before the first of each other kind."""
    times = [(name, column) for name, column in columns.items() if column.clock is not None]
    births = [name for name, column in columns.items() if words_of(name) & _BIRTH and fineness(column) is not None]
    for birth in births if len(births) == 1 else ():
        later = [(name, column) for name, column in times if name != birth]
        for kind in types():
            first = next((name for name, column in later if column.shown_type == kind), None)
            if first is not None and (
                columns[first].alike(columns[birth]) or comparable(columns[birth], columns[first])
            ):
                yield birth, first
        times = later
    for kind in types():
        for one, other in pairwise(name for name, column in times if column.shown_type == kind):
            turned = words_of(one) & {*END} and words_of(other) & {*BEGIN}
            yield (other, one) if turned else (one, other)
