"""Ask a person for the facts of a schema, column by column, without showing a cell.

Answers are spelt as the cells of a codebook. An empty answer decides nothing. So does the end of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from doublure.drafting.check import LEARN_EPSILON
from doublure.drafting.codebook import OMITTED, DataDescription, Entry
from doublure.drafting.draft import Draft
from doublure.drafting.metadata.codebook import read_facts
from doublure.errors import SchemaError, printable
from doublure.schema.columns import Column, types
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.schema import Schema
from doublure.support import yaml12 as yaml_text
from doublure.support.guessing import free_word

_BUY = "buy"
_LATER = "Enter decides later"
_YES, _NO = ("y", "yes"), ("n", "no")
_FACTS = {
    "bounds": "lower..upper, such as 0..120",
    "missing": "may cells be missing: n, y, or the texts that mean it, such as ?|NA",
    "values": "every value, such as a|b|c or {file: codes.txt}",
}


@dataclass(kw_only=True)
class FactDialogue:
    """The two ends of a conversation.

    Attributes:
        ask: Puts a question; returns the answer, None where there is none to come.
        say: Tells something.
    """

    ask: Callable[[str], str | None]
    say: Callable[[str], None]
    ended: bool = field(default=False, init=False)

    def answer(self, question: str) -> str:
        """Return an answer without spaces around; nothing once there is none to come."""
        said = None if self.ended else self.ask(question)
        self.ended = said is None
        return (said or "").strip()

    def answered(self, question: str, read: Callable[[str], Any]) -> Any:
        """Return the first answer that can be read; None for an empty one.

        Args:
            question: The question.
            read: Reads an answer; a SchemaError or ValueError says that it is none.
        """
        while text := self.answer(question):
            try:
                return read(text)
            except SchemaError as error:
                self.say(f"  {error.message}" + (f"; {error.remedy}" if error.remedy else ""))
            except ValueError:
                self.say("  is no whole number of at least 1")
        return None


def ask_for_facts(made: Draft, dialogue: FactDialogue) -> DataDescription:
    """Return what a person says of the data, with what metadata says already.

    Args:
        made: A draft.
        dialogue: The conversation.
    """
    known = made.metadata or DataDescription(name="answers", form="answers", entries={})
    schema, entries, whole = made.schema, dict(known.entries), dict(known.whole)
    if "unit" not in whole and not schema.one_record:
        whole["unit"] = _unit(schema, dialogue)
    if schema.units == UNDECLARED and "units" not in whole:
        name = printable((whole.get("unit") or {}).get("name", schema.unit.name))
        units = dialogue.answered(f"How many units ({name}) are there? A public figure; {_LATER}: ", _count)
        whole |= {} if units is None else {"units": units}
    unit_id = (whole.get("unit") or {}).get("id")
    for number, (name, column) in enumerate(schema.columns.items(), start=1):
        row = made.rows.get(name) or Entry(place=printable(name))
        if name == unit_id:
            entries[name] = replace(row, facts={"type": "id"})
        elif column.modelled and not dialogue.ended and (_open(column) or not row.facts):
            dialogue.say(f"{printable(name)}, {column.shown_type} ({number} of {len(schema.columns)})")
            entries[name] = _column(name, column, row, dialogue)
    if schema.target is None and not dialogue.ended:
        _ask_for_target(schema, entries, dialogue)
    return replace(known, entries=entries, whole=whole)


def ask_for_root(tables: Sequence[str], dialogue: FactDialogue) -> str | None:
    """Return the table that a person names as the root; None without an answer.

    Args:
        tables: Those that may be it.
        dialogue: The conversation.
    """

    def read(text: str) -> str:
        if text not in tables:
            raise SchemaError("is none of them", remedy=f"give one of {', '.join(map(printable, tables))}")
        return text

    names = ", ".join(map(printable, tables))
    found: str | None = dialogue.answered(f"Which table has one row for each unit ({names})? Enter ends: ", read)
    return found


def _unit(schema: Schema, dialogue: FactDialogue) -> dict[str, Any]:
    name = dialogue.answer(f"Whom does the guarantee protect? One word; Enter for {schema.unit.name}: ")
    unit = {"name": name or schema.unit.name}
    shown = printable(unit["name"])
    key = dialogue.answered(
        f"Which column tells one {shown} from another, if one can have several rows? Enter for none: ",
        lambda text: _known(text, schema),
    )
    if key is None:
        return unit
    most = dialogue.answered(f"At most how many rows of one {shown} are used? Enter for 1: ", _count)
    return {**unit, "id": key, "max_records": most or 1}


def _count(text: str) -> int:
    found = int(text.replace(",", ""))
    if found < 1:
        raise ValueError(text)
    return found


def _known(text: str, schema: Schema) -> str:
    if text not in schema.columns:
        raise SchemaError("is no column", remedy=f"give one of {', '.join(map(printable, schema.columns))}")
    return text


def _open(column: Column) -> bool:
    return any(column.fact(fact) == UNDECLARED for fact in _FACTS)


def _column(name: str, column: Column, row: Entry, dialogue: FactDialogue) -> Entry:
    """Ask for one column's type, if nothing says it, and for its facts."""
    found = row
    if not row.facts:
        others = ", ".join((*types(), OMITTED))
        question = f"  type; Enter for {column.shown_type}, or one of {others}: "
        kind = dialogue.answered(question, lambda text: _typed(name, text, row, column))
        found = kind if kind is not None else replace(row, facts={"type": column.shown_type})
    if found.omitted:
        return found
    for fact, words in _FACTS.items():
        current = found.model(name, column.type)
        if fact not in type(current).model_fields or current.fact(fact) != UNDECLARED:
            continue
        ways = f"; {_BUY} costs ε = {LEARN_EPSILON:g}" if current.learnable(fact) else ""
        read = _reader(name, fact, found, column)
        found = dialogue.answered(f"  {words}{ways}; {_LATER}: ", read) or found
    return found


def _typed(name: str, text: str, row: Entry, column: Column) -> Entry:
    """Return a row with a type, or with the facts of a mapping such as ``{type: fake, as: email}``."""
    if text.lower() == OMITTED:
        return replace(row, omitted=True)
    facts = yaml_text.parse(text, "type") if text.startswith("{") else {"type": text.lower()}
    if not isinstance(facts, dict) or facts.get("type") not in types():
        raise SchemaError("is no type", remedy=f"give one of {', '.join((*types(), OMITTED))}")
    return _checked(name, replace(row, facts=facts), column)


def _reader(name: str, fact: str, row: Entry, column: Column) -> Callable[[str], Entry]:
    """Return what reads an answer about a fact: as a codebook's cells, or as a price."""

    def read(text: str) -> Entry:
        if text.lower() == _BUY:
            known = row.model(name, column.type)
            more = {"other": free_word(known.missing_tokens)} if fact == "values" and known.fallback is None else {}
            return _checked(name, replace(row, facts={**row.facts, fact: {"learn": LEARN_EPSILON}, **more}), column)
        facts = read_facts(dict(_cells(fact, text)), printable(name))
        return _checked(name, replace(row, facts={**row.facts, **facts}), column)

    return read


def _cells(fact: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the cells of a codebook that an answer stands for."""
    if fact == "missing":
        yield fact, "true" if text.lower() in _YES else "false" if text.lower() in _NO else text
    elif fact == "bounds" and not text.startswith(("{", "[")):
        lower, _, upper = text.partition("..")
        yield from (("lower", lower.strip()), ("upper", upper.strip()))
    else:
        yield fact, text


def _checked(name: str, row: Entry, column: Column) -> Entry:
    row.model(name, column.type)
    return row


def _ask_for_target(schema: Schema, entries: dict[str, Entry], dialogue: FactDialogue) -> None:
    question = "Which column is to be predicted from the others? Enter for none: "
    target = dialogue.answered(question, lambda text: _known(text, schema))
    if target is not None:
        row = entries.get(target) or Entry(place=printable(target))
        entries[target] = replace(row, facts={**_typed_facts(row.facts, schema.columns[target]), "roles": ["target"]})


def _typed_facts(facts: Mapping[str, Any], column: Column) -> Mapping[str, Any]:
    return facts if "type" in facts else {"type": column.shown_type, **facts}
