"""Rows of a codebook under headings in its keepers' own words.

Such as ``Variable | Meaning | Allowed values / range``. What cannot be read for certain stays a note beside the column,
with the reason: a draft shows it, and declares nothing by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from doublure.drafting.code_lists import default_levels, is_code
from doublure.drafting.codebook import OMITTED, Entry, facts_with_files, last_second
from doublure.drafting.form_hints import id_pattern
from doublure.drafting.metadata.blank_words import answered, may_be_empty, plain_words
from doublure.drafting.metadata.form import LARGEST_FILE, labelled, line, listed, meaning
from doublure.drafting.metadata.ranges import (
    Range,
    Unclear,
    between,
    codes,
    decimals,
    holds_range,
    read_range,
    run,
)
from doublure.drafting.proposals import subject_named
from doublure.errors import SchemaError
from doublure.schema.columns import type_named, types, unmodelled_types
from doublure.schema.columns.constant import REMOVED
from doublure.schema.columns.date_format import is_iso
from doublure.schema.columns.fake import SUBJECTS

_HEADINGS: Mapping[str, str] = {
    "column": "variable|variable name|field|field name|column|column name|item|name|element|element name|data element",
    "type": "type|data type|datatype|variable type|class",
    "form": "format|how it is written|written as",
    "allowed": "allowed values range|allowed values|permitted values|valid values|values|range|domain|value range",
    "codes": "value labels|codes|coding|code list|categories|choices|options|response options",
    "lower": "min|minimum|lower|lower bound|min value|minimum value",
    "upper": "max|maximum|upper|upper bound|max value|maximum value",
    "missing": "missing|missing values|missing codes|missing value code|missing data",
    "description": "meaning|description|label|variable label|definition|title|what|"
    "what it is|what is it|long name|question|question text|unit|units|unit of measure|measurement unit",
}
"""Meaning of a heading -> the headings, in small letters and without marks."""
_STEMS: Mapping[str, str] = {
    "missing": "missing|unknown|unavailable|empty|null|blank",
    "description": "mean|meaning|means|description|describes|explanation|explains|definition",
    "lower": "minimum|lowest|least|smallest",
    "upper": "maximum|highest|greatest|largest",
    "allowed": "allowed|permitted|valid|possible|values|range|codes|categories|answers",
    "type": "type",
}
"""Meaning of a heading -> words that tell it in a heading that is not listed; the first decides."""
_NAMED = frozenset({"name", "item", "title"})
"""Headings that are words about a column where another heading names it."""
_TYPES: Mapping[str, str] = {
    "id": "id|identifier|key",
    "integer": "integer|int|whole number|count",
    "real": "real|number|numeric|float|decimal|double",
    "date": "date|day",
    "datetime": "datetime|date time|timestamp|date and time",
    "time": "time|time of day",
    "boolean": "boolean|bool|logical|yes no|y n|flag|true false",
    "category": "category|categorical|coded|text code|coded text|code list|factor|nominal|list",
    "ordinal": "ordinal|ordered",
    "constant": "free text|freetext|free form|free form text|open text|narrative|prose",
}
_STORED = frozenset({"text", "string", "character", "char", "varchar", "alphanumeric"})
"""Words for how cells are stored, which say nothing of their values."""
_SAYS = {word: says for says, words in _HEADINGS.items() for word in words.split("|")}
_TYPE_OF = {word: own for own, words in _TYPES.items() for word in words.split("|")}
_SUBJECT_OF = {subject.replace("_", " "): subject for subject in SUBJECTS} | {"name": "person_name", "e mail": "email"}
_PROSE = frozenset({*_TYPE_OF, "text", "string", "free", "any", "characters", "digits", "letters"})
"""Words that describe values, and are none."""
_JOINING_WORDS = (
    "if when where unless while until or and but not any all each per see ask as the a an "
    "of in on at by for with from to is are was be means only than etc such like later earlier"
)
_JOINING = frozenset(_JOINING_WORDS.split())
"""Words that join others to a clause: a value is a name, and has none."""
_GONE = re.compile(
    r"missing|unknown|unavailable|not (?:known|recorded|available|applicable|asked|measured|stated|reported|done)"
    r"|no (?:answer|information|data)|refused|declined|below (?:the )?(?:limit of )?(?:detection|quantification)",
    re.IGNORECASE,
)
"""Labels of a code that stands for a missing cell."""
_SIGNED = re.compile(r"(?:^|[;.,(]\s*)(?P<text>[^\s=;.,()][^\s=;,()]*)\s*=\s*(?P<label>[^=;.]+?)\s*(?=[;.)]|$)")
"""``<0.2 = below detection limit`` within a description."""
_DIGITS = re.compile(r"(\d{1,2}) digits?", re.IGNORECASE)
_TRUE = frozenset({"y", "yes", "true", "t", "1", "ja", "oui", "j"})
_FALSE = frozenset({"n", "no", "false", "f", "0", "nein", "non"})
_EMPTY = frozenset({"empty", "blank", "empty cell", "empty cells", "blank cell", "nothing"})
_ABOUT_MISSING: Mapping[str, bool | None] = {"missing": None, "blank": False, "required": True}
"""Meaning of a heading of missing cells -> whether it asks if cells are filled; None for a list of texts."""
_LABELLED = re.compile(r"\s*([^=:]+?)\s*[=:]\s*(.+?)\s*", re.DOTALL)
_CLOCK = re.compile(r"\s*\d{1,2}:\d{2}(:\d{2})?\s*")
_THOUSANDS = re.compile(r"\d,\d{3}(?!\d)")
_OF_TYPE = re.compile(r"(fake|constant)(?:\s*[:=]\s*(?P<said>.*)|\s*\((?P<within>.*)\))?", re.DOTALL | re.IGNORECASE)
_BOUNDED = {"number": ("integer", "real", "year"), "date": ("date", "datetime"), "time": ("time",)}
"""Kind of a range -> the column types that take it; one of moments is for ``datetime`` alone."""
_BEHIND = re.compile(r"[,;:(]|\s(?=(?:between|from|with|such as|like)\s)")
"""The mark or word between a type and more of its words."""
_DATE_FORM = re.compile(r"(?=.*[Yy])(?=.*[Dd])[YyMmDdHhSs](?:[YyMmDdHhSsT .:/-]*[YyMmDdHhSs])?")
_LONGEST_SAID = 110
"""Characters of a cell in a note: as many as of a column's facts in a line."""
_NO_TYPE = "no type is called so"
_ALONE = "one text alone may be a word about the values"
_SEVERAL = "it may be a sentence, and no list"
_UNREAD_VALUES = "not read of its values"
_NAMED_FILE = re.compile(r"[\w.-]+\.(?:txt|csv)\b")
_FEWEST_CODES = 2


def headings(header: Iterable[str]) -> list[str | None] | None:
    """Return what each heading says, None for one that is not taken; None where they are not such a codebook's.

    Of two that say the same the first is taken, but of values, whose second heading may be that of their codes.

    Example:
        >>> headings(["Variable", "What it means", "Allowed values / range", "Unknown coded as", "Owner"])
        ['column', 'description', 'allowed', 'missing', None]
    """
    plain = [plain_words(cell) for cell in header]
    found = [_SAYS.get(words) or _asked(words) for words in plain]
    if found.count("column") > 1:
        found = ["description" if says == "column" and plain[at] in _NAMED else says for at, says in enumerate(found)]
    for place, words in enumerate(plain):
        said = None if found[place] else next((says for says in _STEMS if {*words.split()} & _words(says)), None)
        if said is not None and (said not in found or said == "description"):
            found[place] = said
    if found.count("allowed") > 1 and "codes" not in found:
        found[len(found) - 1 - found[::-1].index("allowed")] = "codes"
    found = [says if says == "description" or says not in found[:at] else None for at, says in enumerate(found)]
    return found if "column" in found and len({*found} - {None, "column"}) > 0 else None


def _asked(heading: str) -> str | None:
    """Return what a heading such as "may be blank" or "required" asks."""
    says = may_be_empty(heading)
    return None if says is None else "blank" if says else "required"


def described(
    name: str,
    cells: Iterable[tuple[str | None, str]],
    place: str,
    folder: Path,
    as_written: Callable[[str], Any],
    further: Mapping[str, Any],
) -> Entry:
    """Return the entry of a row.

    Args:
        name: The column.
        cells: What each cell's heading says, and the cell.
        place: The file and the row, for messages.
        folder: Of the codebook, and of files that it names.
        as_written: Returns a cell that is a list, a mapping or a text of YAML as that; None for any other.
        further: Facts of cells whose headings are keys of a schema's column.

    Raises:
        SchemaError: A file that the row names cannot be read.
    """
    rows = [(says, cell.strip()) for says, cell in cells]
    said = {says: cell for says, cell in rows if says is not None and cell}
    words = "; ".join(cell for says, cell in rows if says == "description" and cell)
    if plain_words(said.get("type", "")) == OMITTED:
        return Entry(place=place, description=line(words), omitted=True)
    if "codes" in said and "allowed" not in said:
        said["allowed"] = said.pop("codes")
    facts, notes, said = _typed(said, name)
    if facts.get("type") == "id":
        facts, said = _numbered(facts, said)
    written = as_written(said.get("allowed", ""))
    more, labels, unread = ({"values": written}, {}, ()) if written else _values(facts.get("type"), said)
    facts, notes = facts | more, (*notes, *unread)
    coded, of_codes, gone, unread = _merged(facts, labels, said.get("codes", ""))
    gone |= {} if "missing" in said else said_missing(words, facts)
    facts, labels, notes = facts | coded, labels | of_codes, (*notes, *unread)
    missing, of_missing, unread = _missing(said)
    if gone:
        empty = [] if missing is False else [""]
        missing = [*dict.fromkeys((*(missing if isinstance(missing, list) else empty), *gone))]
        of_missing |= gone
    if missing is not None and facts.get("type") not in unmodelled_types():
        facts["missing"] = missing
    elif missing:
        told = "; ".join(said[says] for says in _ABOUT_MISSING if says in said)
        unread = (*unread, _unread("missing cells", told, f"type {facts['type']} has none"))
    if not facts and plain_words(said.get("type", "")) in _STORED:
        unread = (*unread, _unread("type", said["type"], _NO_TYPE))
    facts, of_a_list = _with_list(facts, said.get("allowed", ""), folder)
    if of_a_list:
        notes = tuple(each for each in notes if not each.startswith(_UNREAD_VALUES))
    facts = labelled(facts, labels | of_missing)
    read, files = facts_with_files({**facts, **further}, folder, place, name)
    read, decided, lacking = with_levels(read, name)
    read, also = _complete(read)
    asked, because = asked_missing(words, read)
    return Entry(
        place=place,
        facts=read,
        description=meaning(words),
        notes=(*notes, *unread, *lacking, *also),
        files={key: fact for key, fact in files.items() if key in read},
        decided=(*filter(None, [of_a_list]), *decided),
        asked=asked,
        because=because,
    )


def _with_list(facts: dict[str, Any], text: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Return facts with the list of codes that a text names, if it lies beside the codebook, and a note on it.

    A file with a cell that is no code, such as a name, may be anything, and is not taken.
    """
    named = _NAMED_FILE.search(text)
    if named is None or "values" in facts or facts.get("type") not in (None, "category", "ordinal", "code"):
        return facts, ""
    path = folder / named[0]
    if not path.is_file() or path.is_symlink() or path.stat().st_size > LARGEST_FILE:
        return facts, ""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        return facts, ""
    listed_here = [each for each in lines if each]
    if len(listed_here) < _FEWEST_CODES or not all(map(is_code, listed_here)):
        return facts, ""
    note = f"its values are the {len(listed_here):,} codes of {named[0]}, which lies beside the codebook"
    return facts | {"type": facts.get("type", "category"), "values": {"file": named[0]}}, note


def _merged(
    facts: Mapping[str, Any], labels: Mapping[str, str], text: str
) -> tuple[dict[str, Any], dict[str, str], dict[str, str], tuple[str, ...]]:
    """Return what a cell of codes says beside one of allowed values.

    Returns:
        Further facts; the labels of values; the texts that mean missing, with their labels; what is not taken.
    """
    if not text:
        return {}, {}, {}, ()
    found, mark = _codes(text)
    listed_here = facts.get("values")
    known = {str(each) for each in listed_here} if isinstance(listed_here, list) else {*labels}
    gone = {code: said for code, said in found.items() if code not in known and _GONE.search(said)}
    rest = {code: said for code, said in found.items() if code not in gone}
    if known:
        others = [code for code in rest if code not in known]
        why = "the allowed values do not have " + ", ".join(others)
        return (
            {},
            {code: rest[code] for code in rest if code in known},
            gone,
            ((_unread("codes", text, why),) if others else ()),
        )
    if not rest or (gone and len(rest) < len(found) and facts.get("bounds")):
        return {}, {}, gone, ()
    if facts.get("bounds") or facts.get("written"):
        codes_of = _written(rest)
        ends = facts.get("bounds") or ()
        if ends and "type" not in facts and [*map(str, _whole_range(ends))] == [*rest]:
            return {"type": "category", "values": listed(rest)}, rest, gone, ()
        same = codes_of is not None and codes_of == facts.get("written")
        return {}, {}, gone, () if same else (_unread("codes", text, "the allowed values say otherwise"),)
    more, own, unread = _listed(
        facts.get("type"),
        text if not gone else (mark or ";").join(f"{code} = {said}" if said else code for code, said in rest.items()),
    )
    return more, own, gone, tuple(each.replace("of its values", "of its codes") for each in unread)


def _whole_range(ends: Iterable[Any]) -> range:
    """Return the whole numbers between two ends; none where an end is no whole number."""
    low, high = ends
    whole = isinstance(low, int) and isinstance(high, int) and high - low < len(_TYPE_OF)
    return range(low, high + 1) if whole else range(0)


def said_missing(description: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that a description says to mean missing, where no cell of the type is written so.

    Example:
        >>> from doublure.drafting.metadata.own_words import said_missing
        >>> said_missing("mg/dL; <0.2 = below detection limit; 9 = unknown", {"type": "real"})
        {'<0.2': 'below detection limit'}
    """
    type_, values = facts.get("type"), facts.get("values")
    found = {each["text"]: each["label"] for each in _SIGNED.finditer(description) if _GONE.search(each["label"])}
    if type_ in ("integer", "real"):
        return {text: said for text, said in found.items() if not re.fullmatch(r"[+-]?[\d.,]+", text)}
    if type_ in ("category", "ordinal", "code") and isinstance(values, list):
        return {text: said for text, said in found.items() if text not in map(str, values)}
    return {}


def asked_missing(description: str, facts: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return what a description may say of missing cells, and its words: texts that could be values, too.

    Args:
        description: Public words about a column.
        facts: What is said of it already.

    Returns:
        Facts to ask for, none where it names no such text, and the words after "if".

    Example:
        >>> asked_missing("date of birth; 1900-01-01 = unknown", {"type": "date"})
        ({'missing': ['', '1900-01-01']}, 'its description says 1900-01-01 = unknown')
    """
    if facts.get("type") in unmodelled_types() or facts.get("type") == "boolean":
        return {}, ""
    missing, values = facts.get("missing"), facts.get("values")
    known = [*map(str, missing)] if isinstance(missing, list) else [] if missing is False else [""]
    taken = {*known, *(map(str, values) if isinstance(values, list) else ())}
    found = {each["text"]: each["label"] for each in _SIGNED.finditer(description) if _GONE.search(each["label"])}
    new = {text: said for text, said in found.items() if text not in taken}
    said = " and ".join(f"{text} = {label}" for text, label in new.items())
    return ({"missing": [*known, *new]}, f"its description says {said}") if new else ({}, "")


def values_and_labels(text: str, type_: str) -> tuple[list[Any], dict[str, str]] | None:
    """Return the values of a text and their labels, read as a cell of a codebook; None for no list.

    Example:
        >>> values_and_labels("1 = male; 2 = female", "category")
        ([1, 2], {'1': 'male', '2': 'female'})
    """
    found, mark = _codes(text)
    labels = {code: label for code, label in found.items() if label}
    if "=" not in text:
        found, labels = (dict.fromkeys(filter(None, map(str.strip, text.split(mark or "\n"))), ""), {})
    if len(found) < 2 or (labels and len(labels) < len(found)) or _doubt(type_, text, found, mark) is not None:
        return None
    return listed(found), labels


def _words(says: str) -> set[str]:
    return {*_STEMS[says].split("|")}


def _unread(what: str, text: str, why: str) -> str:
    said = line(text)
    return f"not read of its {what}: {said if len(said) <= _LONGEST_SAID else said[:_LONGEST_SAID] + '…'} ({why})"


def _type(text: str, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the facts that the cell of a type says, and what is not understood of it."""
    if not text:
        return {}, ()
    if form := _OF_TYPE.fullmatch(text):
        own, words = form[1].lower(), form["said"] or form["within"] or ""
        if own == "constant":
            return {"type": own} | ({"value": words} if words else {}), ()
        subject = _SUBJECT_OF.get(plain_words(words)) if words else subject_named(name)
        return {"type": own} | ({"as": subject} if subject is not None else {}), ()
    if (known := _type_named(text)) is not None:
        return {"type": known} | ({"value": REMOVED} if known == "constant" else {}), ()
    said = [number for each in re.split(r"[,;()]", text) if (number := decimals(each)) is not None]
    if len(said) == 1:
        return ({"type": "real", "precision": said[0]} if said[0] else {"type": "integer"}), ()
    return {}, () if plain_words(text) in _STORED else (_unread("type", text, _NO_TYPE),)


def _type_named(text: str) -> str | None:
    plain = plain_words(text)
    return plain if plain in types() else _TYPE_OF.get(plain)


def _led(text: str) -> tuple[str, str]:
    """Return the type that a text leads with, and the words behind it; two empty texts where it leads with none.

    Example:
        >>> from doublure.drafting.metadata.own_words import _led
        >>> _led("number, 0 to 25, one decimal"), _led("date/time"), _led("day, night")
        (('number', '0 to 25, one decimal'), ('date/time', ''), ('day', 'night'))
    """
    if not text or _type_named(text) is not None or _OF_TYPE.fullmatch(text):
        return text, ""
    first, *rest = _BEHIND.split(text, maxsplit=1)
    return (first, rest[0].strip(" )")) if rest and _type_named(first) is not None else ("", "")


def _typed(said: Mapping[str, str], name: str) -> tuple[dict[str, Any], tuple[str, ...], dict[str, str]]:
    """Return the facts of a column's type and form, what is not understood of them, and the cells that are left.

    A type may stand before other words, such as ``number, 0 to 25``, and among the allowed values.
    """
    text, allowed, form = (said.get(key, "") for key in ("type", "allowed", "form"))
    if (not text or plain_words(text) in _STORED) and _type_named(form) is not None:
        text, form = form, ""
    leads = _type_named(_led(allowed)[0]) is not None and _is_behind(_led(allowed)[1])
    if (not text or plain_words(text) in _STORED) and leads and _written(_codes(allowed)[0]) is None:
        text, allowed = allowed, ""
    first, behind = _led(text)
    if not behind:
        first = text
    elif not allowed and decimals(behind) is None and _date_form(behind, None) is None:
        allowed, behind = behind, ""
    facts, notes = _type(first, name)
    for what, word in (("type", behind), ("format", form)):
        found = _formed(word, facts.get("type")) if word else {}
        notes = notes if found is not None else (*notes, _unread(what, word, "it is no form that is known"))
        facts |= found or {}
    left = {key: cell for key, cell in said.items() if key != "allowed"}
    return facts, notes, left | ({"allowed": allowed} if allowed else {})


def _numbered(facts: dict[str, Any], said: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the facts of an id whose words give an example of one, and the cells that are left."""
    found = {key: pattern for key in ("allowed", "description") if (pattern := id_pattern([said.get(key, "")]))}
    if digits := _DIGITS.fullmatch(said.get("allowed", "").strip()):
        found["allowed"] = f"{{{digits[1]} digits}}"
    left = {key: cell for key, cell in said.items() if key not in found or key == "description"}
    return facts | ({"pattern": next(iter(found.values()))} if found else {}), left


def _is_behind(text: str) -> bool:
    """Return whether words behind a type are a range or a form, so that what leads them is no value."""
    try:
        return not text or bool(id_pattern([text])) or _formed(text, None) is not None or read_range(text) is not None
    except Unclear:
        return False


def _formed(text: str, type_: str | None) -> dict[str, Any] | None:
    """Return the facts of a form in words, such as decimals or ``DD.MM.YYYY``; None for one that is not known."""
    if type_ == "id":
        pattern = id_pattern([text, f"such as {text}"])
        return {"pattern": pattern} if pattern else None
    number = decimals(text)
    if number is not None and type_ in (None, "real", "integer"):
        return {"type": "real", "precision": number} if number else {"type": "integer"}
    return _date_form(text, type_)


def _date_form(text: str, type_: str | None) -> dict[str, Any] | None:
    """Return the facts of a form of dates in letters of either case; None for another text, or another type."""
    if not _DATE_FORM.fullmatch(text):
        return None
    day, *clock = re.split(r"(?=[Hh])", text, maxsplit=1)
    form = "".join([day.upper(), *(each.lower() for each in clock)])
    own = type_ or ("datetime" if clock else "date")
    try:
        facts = {"type": own} | ({} if is_iso(form) else {"date_format": form})
        Entry(place="", facts=facts).model("x", None)
    except SchemaError:
        return None
    return facts if own in ("date", "datetime") else None


def _values(type_: str | None, said: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Return the facts of a column's values, the labels of its codes, and what is not understood."""
    text = said.get("allowed", "")
    try:
        if (several := run(text) if type_ in (None, "category", "ordinal", "code") else None) is None:
            several = codes(text) if type_ in (None, "category", "ordinal", "code") else None
        if several is not None and (type_ is not None or several[0].startswith("0")):
            return {"type": type_ or "category", "values": listed(several)}, {}, ()
        if (found := read_range(text)) is None and (number := decimals(text)) is not None:
            found = None if type_ not in (None, "real", "integer") else Range(ends=(), kind="number", precision=number)
    except Unclear as unclear:
        return {}, {}, (_unread("values", text, str(unclear)),)
    notes: tuple[str, ...] = ()
    if found is None and (ends := [said[key] for key in ("lower", "upper") if key in said]):
        notes = (_unread("values", text, "the ends are in cells of their own"),) if text else ()
        if len(ends) == 1:
            return {}, {}, (*notes, _unread("bounds", ends[0], "bounds have two ends"))
        try:
            found = between(ends[0], ends[1])
        except Unclear as unclear:
            return {}, {}, (*notes, _unread("bounds", " to ".join(ends), str(unclear)))
    if found is not None:
        facts, more = _bounds(type_, found, text or " to ".join(said[key] for key in ("lower", "upper")))
        return facts, {}, (*notes, *more)
    return _listed(type_, text)


def _bounds(type_: str | None, found: Range, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the facts of a range, in the type that is said; where none is, that of the stored cells decides."""
    if type_ not in (None, *_BOUNDED.get(found.kind, ("datetime",))):
        return {}, (_unread("values", text, f"type {type_} has no such bounds"),)
    of_decimals = "real" if any(isinstance(end, float) for end in found.ends) else None
    own = type_ or {None: of_decimals, 0: "integer"}.get(found.precision, "real")
    if own == "integer" and found.precision:
        return {}, (_unread("values", text, "type integer has no decimals"),)
    facts: dict[str, Any] = {"type": own} if own else {}
    if found.ends:
        facts["bounds"] = [found.ends[0], last_second(found.ends[1]) if own == "datetime" else found.ends[1]]
    return facts | ({"precision": found.precision} if own == "real" and found.precision is not None else {}), ()


def _listed(type_: str | None, text: str) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """Return the facts of listed values, the labels of codes, and what is not understood."""
    if not text:
        return {}, {}, ()
    found, mark = _codes(text)
    truths = _written(found) if type_ in (None, "boolean") else None
    if truths and (type_ == "boolean" or mark == "/"):
        return {"type": "boolean", "written": truths}, {}, ()
    why = _doubt(type_, text, found, mark)
    if why is None and type_ in (None, "integer", "category", "ordinal", "code"):
        labels = {code: label for code, label in found.items() if label}
        own = {"code": "code", "ordinal": "ordinal"}.get(type_ or "", "category")
        return {"type": own, "values": listed(found)}, labels, ()
    return {}, {}, (_unread("values", text, why or f"type {type_} has no list of values"),)


def _doubt(type_: str | None, text: str, found: Mapping[str, str], mark: str | None) -> str | None:
    """Return why a text may be no list of values; None where it is one."""
    said = type_ in ("category", "ordinal", "code")
    certain = mark in ("|", ";", "\n") or all(found.values())
    if mark == "," and _THOUSANDS.search(text):
        return "a comma may stand for thousands, or between values"
    if mark != "|" and not said and any(map(holds_range, found)):
        return "a range stands among other words"
    if len(found) < 2:
        file = _NAMED_FILE.search(text)
        single = (text.endswith("|") and found) or (type_ in ("category", "ordinal") and " " not in text and not file)
        return None if single else f"no list of codes called {file[0]} lies beside it" if file else _ALONE
    if (mark == "/" and not said) or any(decimals(code) is not None for code in found):
        return _SEVERAL
    words = {word for code in found for word in plain_words(code).split()}
    joined = {word for code in found if " " in code.strip() for word in plain_words(code).split()}
    if not certain and (words & _PROSE or (not said and joined & _JOINING)):
        return _SEVERAL
    return None


def _codes(text: str) -> tuple[dict[str, str], str | None]:
    """Return code -> label of ``1=male, 2=female`` or ``a; b; c``, and what separates them; labels may be empty."""
    text = re.sub(r"^(?:one of|any of|either)[:\s]+", "", text, flags=re.IGNORECASE)
    if re.fullmatch(r"[^\s,]+(?:, [^\s,]+)*,? or [^\s,]+", text):  # A, B or C
        text = re.sub(r",? or ", ", ", text)
    mark = next((mark for mark in ("|", ";", "\n", ",", "/") if mark in text), None)
    parts = [part for part in (text.split(mark) if mark else [text]) if part.strip()]
    found = [None if _CLOCK.fullmatch(part) else _LABELLED.fullmatch(part) for part in parts]
    if mark == "/" and not all(found) and (whole := _LABELLED.fullmatch(text)) and "=" in text:
        return {whole[1]: whole[2]}, None  # n/a = not recorded
    if parts and all(found):
        return {each[1]: each[2] for each in found if each}, mark
    return {part.strip(): "" for part in parts}, mark


def _written(codes: Mapping[str, str]) -> dict[str, str] | None:
    true = [code for code in codes if code.lower() in _TRUE]
    false = [code for code in codes if code.lower() in _FALSE]
    return {"true": true[0], "false": false[0]} if len(true) == len(false) == 1 and len(codes) == 2 else None


def _missing(said: Mapping[str, str]) -> tuple[Any, dict[str, str], tuple[str, ...]]:
    """Return what cells say of missing cells, the labels of their texts, and what is not understood; None for nothing.

    An empty cell is a kind of its own beside any text: as one kind with it, it would come out as that text.
    """
    found: dict[str, str] = {}
    empty: set[bool] = set()
    unread: list[str] = []
    for says, required in _ABOUT_MISSING.items():
        text = said.get(says, "")
        for part in filter(None, map(str.strip, re.split(r"[|;,\n]", text))):
            form = _LABELLED.fullmatch(part) if "=" in part else None
            token, label = (form[1], form[2]) if form else (part, "")
            if (may := answered(part, required=required)) is not None:
                empty.add(may)
            elif plain_words(token) in _EMPTY:
                found[""] = label
            elif re.search(r"\s", token) or (required is not None and form is None and "|" not in text):
                unread.append(_unread("missing cells", text, "it may be a sentence, and no list of texts"))
                break
            else:
                found[token] = label
    if len(empty) > 1:
        unread.append(
            _unread("missing cells", "; ".join(said[says] for says in _ABOUT_MISSING if says in said), "it says both")
        )
    if unread:
        return None, {}, tuple(unread)
    labels = {token: label for token, label in found.items() if token and label}
    tokens = [*filter(None, found)]
    if not tokens:
        return (None if not empty | {*found} else "" in found or True in empty), labels, ()
    return (tokens if empty == {False} else ["", *tokens]), labels, ()


def with_levels(facts: Mapping[str, Any], name: str) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Return facts of codes with the levels that they have by default.

    Args:
        facts: What is said of a column.
        name: The column.

    Returns:
        The facts; what was decided; why the column is no list of codes, if it is none.
    """
    if facts.get("type") != "code" or facts.keys() & {"levels", "parents"}:
        return dict(facts), (), ()
    values = facts.get("values")
    levels = default_levels(name, values if isinstance(values, list) else ())
    if levels is None or "values" not in facts:
        why = "its list is not given" if "values" not in facts else "no two of its codes begin alike"
        return {**facts, "type": "category"}, (), (f"read as category: code ({why})",)
    said = " and ".join(map(str, levels))
    return {**facts, "levels": list(levels)}, (f"levels proposed: the first {said} letters and digits of a code",), ()


def _complete(facts: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return facts of a type that has all it needs, and what another lacks."""
    type_ = facts.get("type")
    lacking = [
        field.alias or key
        for key, field in (type_named(type_).model_fields.items() if type_ in types() else ())
        if field.is_required() and (field.alias or key) not in facts
    ]
    if lacking:
        why = f"it needs {' and '.join(lacking)} in a column of its own"
        why += f", or fake: and one of {', '.join(SUBJECTS)}" if type_ == "fake" else ""
        return {}, (_unread("type", str(type_), why),)
    return dict(facts), ()
