"""The form of one column, whose fields are the cells of a codebook: facts in, facts out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from doublure.drafting.check import LEARN_EPSILON
from doublure.drafting.codebook import Entry, facts_with_files
from doublure.drafting.metadata.codebook import codebook_cells, further, keys_of_type, read_facts
from doublure.drafting.metadata.own_words import values_and_labels
from doublure.errors import DoublureError, SchemaError, SettingError, escaped
from doublure.planning.offers import describe_purchase
from doublure.schema import Schema
from doublure.schema.columns import Column, type_named
from doublure.schema.fact_states import UNDECLARED, Learn
from doublure.schema.scalars import LONGEST_MEANING, label
from doublure.studio.folder import ProjectFolder
from doublure.studio.project import ProjectColumn, refuse_outside
from doublure.studio.visit import FormErrors, Visit
from doublure.support.guessing import free_word

FACTS = ("values", "bounds", "missing", "shares")
"""The facts that may be open or bought, as a codebook names them."""
_APART = ("type", "description", "roles", *FACTS)
_MARKS = "|,;{["
"""Characters that stand in a list of values, and in YAML."""
_BETWEEN = re.compile(r"[\r\n\t\v\f\x85\u2028\u2029]+")
"""Ends of lines and of cells, as a sheet, a document or a file gives them."""
STATES = ("declared", "learned", "undeclared")
_HINTS = {
    "values": "one a line, or separated by | or ; or tabs; 1 = male | 2 = female for codes with meanings; -2..8 for "
    "numbers in a row; or the name of a file in the folder with one value a line",
    "bounds": "the least and the greatest that there can be in any such table",
    "missing": "no, yes, or the texts that mean missing, separated by |; |<0.2 for <0.2 beside empty cells",
    "shares": "such as {a: 0.3, b: 0.7}",
}
_PROPOSED = "; proposed by public words: change it if it is not so"
_NAMES = {"values": "Values", "bounds": "Bounds", "missing": "Missing cells", "shares": "Shares of values"}


@dataclass(frozen=True, kw_only=True)
class FactField:
    """A fact in the form.

    Attributes:
        key: As the codebook names it.
        name: As people name it.
        state: One of :data:`STATES`; empty for a fact that may be left out and is.
        needed: Whether no plan is made without it.
        cells: Key -> text: of bounds ``lower`` and ``upper``, else the fact itself.
        hint: How it is written.
        price: In ε; None where it cannot be bought.
        finds: What that would find.
    """

    key: str
    name: str
    state: str
    needed: bool
    cells: Mapping[str, str]
    hint: str
    price: float | None
    finds: str


def fact_fields(schema: Schema, column: ProjectColumn, type_: str) -> list[FactField]:
    """Return the facts that a column of a type has.

    Args:
        schema: The public facts of all columns.
        column: The column as it is.
        type_: The type that is chosen in the form.
    """
    facts = {**column.facts, "type": type_}
    cells = codebook_cells(column.name, column.facts)
    model = _model_of(column, facts)
    found = []
    for fact in FACTS:
        if not may_say(fact, type_):
            continue
        needed = needs(fact, type_)
        known = facts.get(fact, UNDECLARED if needed else None)
        price = LEARN_EPSILON if _can_be_bought(model, fact) else None
        if isinstance(known, Mapping) and "learn" in known:
            price = float(known["learn"])
        words = ("lower", "upper") if fact == "bounds" else (fact,)
        own = {key: "" if _state(known) != "declared" else cells.get(key, "") for key in words}
        if fact == "values" and isinstance(known, (list, tuple)) and len(known) == 1:
            own = {key: _alone(cell) for key, cell in own.items()}
        field = FactField(
            key=fact,
            name=_NAMES[fact],
            state="" if known is None or (not needed and known == UNDECLARED) else _state(known),
            needed=needed,
            cells=own,
            hint=_HINTS[fact],
            price=price,
            finds="" if price is None or model is None else _finds(schema, column.name, fact, price),
        )
        found.append(field)
    return found


@dataclass(frozen=True, kw_only=True)
class FurtherField:
    """A further key in the form.

    Attributes:
        key: As the codebook names it.
        text: The cell.
        meaning: What it means.
        needed: Whether no column of the type is made without it.
        choices: What it may be; empty where that is not listed.
    """

    key: str
    text: str
    meaning: str
    needed: bool
    choices: tuple[str, ...]


def further_fields(column: ProjectColumn, type_: str, proposed: Mapping[str, str]) -> list[FurtherField]:
    """Return the further keys of a type.

    Args:
        column: The column as it is.
        type_: The type that is chosen in the form.
        proposed: Key -> text, for those that are not said yet.
    """
    cells, keys = codebook_cells(column.name, column.facts), keys_of_type(type_)
    words = column.facts.get("written")
    cells |= {"written": " | ".join(map(str, words.values()))} if isinstance(words, Mapping) else {}
    known = {each.alias or key: each for key, each in type_named(type_).model_fields.items()}
    return [
        FurtherField(
            key=key,
            text=cells.get(key) or proposed.get(key, ""),
            meaning=keys[key] + (_PROPOSED if not cells.get(key) and proposed.get(key) else ""),
            needed=known[key].is_required(),
            choices=_choices(known[key].annotation),
        )
        for key in further()
        if key in keys and key not in _APART
    ]


def _choices(annotation: Any) -> tuple[str, ...]:
    """Return the texts that a key may be; nothing where it may be others, too."""
    parts = [each for each in get_args(annotation) or (annotation,) if each is not type(None)]
    if get_origin(annotation) is Literal:
        return tuple(each for each in parts if isinstance(each, str))
    return _choices(parts[0]) if len(parts) == 1 and get_origin(parts[0]) is Literal else ()


def facts_entered(visit: Visit, column: ProjectColumn, found: FormErrors, folder: ProjectFolder) -> dict[str, Any]:
    """Return the facts that a form holds; all that do not fit are told beside their fields.

    Args:
        visit: The request.
        column: The column as it is.
        found: Collects what does not fit.
        folder: Where files of values lie.
    """
    type_ = visit.text("edit--type")
    facts: dict[str, Any] = {}
    more: dict[str, Any] = {}
    with found.at("edit--type"):
        facts |= read_facts({"type": type_}, column.name)
        keys = keys_of_type(type_)
    if "type" not in facts:
        return facts
    for key in further():
        if key in keys and key not in ("type", "roles", *FACTS):
            with found.at(f"edit--{key}"):
                more |= _further_entered(visit, key, column.name)
    by_state = sorted(FACTS, key=lambda fact: visit.text(f"edit--{fact}-state") == "learned")  # beside what is declared
    for key in by_state:
        if may_say(key, type_):
            with found.at(f"edit--{'lower' if key == 'bounds' else key}"):
                facts |= _fact_entered(visit, key, facts | more, column.name, folder)
    facts = {key: facts[key] for key in ("type", *FACTS) if key in facts} | more | facts
    if (role := visit.text("edit--role")) and "roles" in keys:
        facts["roles"] = [role]
    if text := visit.text("edit--description"):
        facts["description"] = text
    facts = still_labelled(facts, column)
    if not found.errors:
        _judge(facts, column.name, found, visit)
    return facts


def still_labelled(facts: dict[str, Any], column: ProjectColumn) -> dict[str, Any]:
    """Return changed facts without the meanings of codes that are gone, unless the meanings were changed, too."""
    labels = facts.get("value_labels")
    if not isinstance(labels, Mapping) or labels != column.facts.get("value_labels"):
        return facts
    known = {label(code) for key in ("values", "missing") for code in _codes(facts.get(key))}
    before = {label(code) for key in ("values", "missing") for code in _codes(column.facts.get(key))}
    left = {code: text for code, text in labels.items() if code in known or code not in before}
    rest = {key: fact for key, fact in facts.items() if key != "value_labels"}
    return rest | ({"value_labels": left} if left else {})


def _codes(fact: object) -> Sequence[Any]:
    return fact if isinstance(fact, (list, tuple)) else ()


def judged(facts: Mapping[str, Any], name: str, visit: Visit) -> None:
    """Refuse facts that do not go together, or name a file that is not inside the folder.

    Args:
        facts: As a schema's YAML would hold them.
        name: The column.
        visit: The request.

    Raises:
        InputError: Naming the key.
    """
    refuse_outside({"columns": {name: facts}}, visit.studio.folder)
    read, _ = facts_with_files(facts, visit.studio.root, name, visit.project.own_name(name))
    Entry(place=name, facts=read).model(name, None)


def bought(facts: Mapping[str, Any], name: str, price: float) -> dict[str, Any]:
    """Return facts with what is open bought, as far as it can be."""
    model = Entry(place=name, facts=dict(facts)).model(name, None)
    new = dict(facts)
    for fact in FACTS[:3]:
        if model.fact(fact) == UNDECLARED and _can_be_bought(model, fact):
            new |= _purchase(new, name, fact, price)
    return new


def _purchase(facts: Mapping[str, Any], name: str, fact: str, price: float) -> dict[str, Any]:
    """Return a fact as bought; values that are not found need another one to become."""
    found: dict[str, Any] = {fact: {"learn": price}}
    if fact == "values" and "other" not in facts and "other" in keys_of_type(str(facts["type"])):
        known = Entry(place=name, facts=dict(facts)).model(name, None)
        if known.fallback is None:
            found["other"] = free_word(known.missing_tokens)
    return found


def may_say(fact: str, type_: str) -> bool:
    """Return whether a column of a type may say a fact."""
    return fact in keys_of_type(type_) and (fact != "missing" or type_named(type_).tells_missing)


def needs(fact: str, type_: str) -> bool:
    """Return whether no plan is made without a fact of a type."""
    return fact in type_named(type_).facts


def _further_entered(visit: Visit, key: str, name: str) -> dict[str, Any]:
    """Return what a form says of a further key."""
    text = visit.text(f"edit--{key}")
    if key == "written" and text:
        return written_words(text)
    return read_facts({key: text}, name) if text else {}


def _fact_entered(visit: Visit, key: str, facts: Mapping[str, Any], name: str, folder: ProjectFolder) -> dict[str, Any]:
    """Return what a form says of a fact, beside those that stand already."""
    state = visit.text(f"edit--{key}-state")
    if state == "learned":
        return _purchase(facts, name, key, visit.number(f"edit--{key}-price"))
    words = ("lower", "upper") if key == "bounds" else (key,)
    cells = {word: _yes_no(visit.text(f"edit--{word}")) for word in words}
    if key == "values":
        found = None if cells[key].startswith(("[", "{")) else values_and_labels(cells[key], str(facts["type"]))
        if state == "declared" and found is not None and (found[1] or not _BETWEEN.search(cells[key])):
            labels = {**(facts.get("value_labels") or {}), **found[1]}
            return {key: found[0]} | ({"value_labels": labels} if labels else {})
        cells = {key: _listed(cells[key], folder)}
    if state != "declared":
        return {key: UNDECLARED} if needs(key, str(facts["type"])) else {}
    if not any(cells.values()):
        raise SettingError("is not given", remedy="write it, or choose another answer")
    return read_facts(cells, name)


def written_words(text: str) -> dict[str, Any]:
    """Return how a boolean's cells say yes and no, as a schema has it: whole numbers stay numbers.

    Raises:
        SettingError: There are not two.

    Example:
        >>> from doublure.studio.steps.column_form import written_words
        >>> written_words("Y | N"), written_words("1|0")
        ({'written': {'true': 'Y', 'false': 'N'}}, {'written': {'true': 1, 'false': 0}})
    """
    if text.startswith("{"):
        return read_facts({"written": text}, "written")
    words = [each.strip() for each in text.split("|")]
    if len(words) != 2 or not all(words):
        raise SettingError("needs the two cells for yes and for no", remedy="write them as Y|N")
    yes, no = (int(each) if each.isascii() and each.isdigit() and str(int(each)) == each else each for each in words)
    return {"written": {"true": yes, "false": no}}


def _listed(text: str, folder: ProjectFolder) -> str:
    """Return values as a codebook has them: a file of the folder by its name alone, and one value alone as a list.

    A field is no cell of a table, in which one value may be several that something else separates.

    Raises:
        SettingError: As :func:`values_entered`.
    """
    text = values_entered(text)
    if not text or any(mark in text for mark in _MARKS) or ".." in text:
        return text
    return f"{{file: {text}}}" if any(each.name == text and each.is_file() for each in folder.entries()) else f"{text}|"


def values_entered(text: str) -> str:
    r"""Return values as they were typed or pasted, one a line or in cells of a sheet, as a codebook has them.

    Raises:
        SettingError: One is longer than any meaning of a value, or holds what no line of text does.

    Example:
        >>> from doublure.studio.steps.column_form import values_entered
        >>> values_entered("A00\r\nA01\tA02"), values_entered("a|b")
        ('A00|A01|A02', 'a|b')
    """
    if text.startswith(("[", "{")):  # YAML, in which a value may be anything
        return text
    lines = [line.strip() for line in _BETWEEN.split(text)]
    found = text if len(lines) == 1 else "|".join(filter(None, (line.strip("| ") for line in lines)))
    if any(len(value) > LONGEST_MEANING or escaped(value) != value for value in found.split("|")):
        remedy = 'separate several by line breaks or |; if it is one, write it as ["the value"]'
        raise SettingError("has a value that looks like several, or like no text", remedy=remedy)
    return found


def _alone(cell: str) -> str:
    """Return a list of one value as :func:`_listed` takes it, without the mark of a codebook behind it."""
    bare = cell.removesuffix("|")
    return cell if any(mark in bare for mark in _MARKS) or ".." in bare else bare


def _yes_no(text: str) -> str:
    return {"yes": "true", "no": "false"}.get(text.lower(), text)


def _judge(facts: dict[str, Any], name: str, found: FormErrors, visit: Visit) -> None:
    """Tell all that does not go together, key by key."""
    left = dict(facts)
    while True:
        try:
            judged(left, name, visit)
            return
        except SchemaError as error:
            key = (error.field or "").rpartition(", ")[2]
            fact = "bounds" if key in ("lower", "upper") else key
            known = fact in left or fact in keys_of_type(str(left["type"]))  # one that is asked for, and is not there
            field = "lower" if fact == "bounds" else fact if known else "type"
            with found.at(f"edit--{field}"):
                raise
            if fact not in left or fact == "type":
                return
            del left[fact]
        except DoublureError:
            with found.at("edit--values"):
                raise
            return


def _model_of(column: ProjectColumn, facts: Mapping[str, Any]) -> Column | None:
    known = keys_of_type(str(facts["type"]))
    own = {key: value for key, value in facts.items() if key in known and key not in ("values", "parents", "from")}
    for given in (own, {"type": facts["type"]}):
        try:
            return Entry(place=column.name, facts=given).model(column.name, None)
        except SchemaError:
            continue
    return None


def _can_be_bought(model: Column | None, fact: str) -> bool:
    """Return whether a fact of a type can be bought: its key takes a price, and nothing else stands against it."""
    if model is None or not model.modelled or not model.learnable(fact):
        return False
    return _takes_a_price(type(model), fact)


@lru_cache
def _takes_a_price(model: type[Column], fact: str) -> bool:
    return Learn.__name__ in str(model.model_fields[fact].annotation)


def _finds(schema: Schema, name: str, fact: str, price: float) -> str:
    try:
        return describe_purchase(schema, name, fact, price)
    except (DoublureError, KeyError, NotImplementedError, AttributeError):  # units or the column are not known yet
        return ""


def _state(known: object) -> str:
    if known == UNDECLARED:
        return "undeclared"
    return "learned" if isinstance(known, Mapping) and "learn" in known else "declared"
