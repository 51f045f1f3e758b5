"""Ask for optional entries of a schema that affect quality: a target, conditions and rules.

No plan needs them. They are proposed by names and types alone; a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from doublure.drafting.code_lists import begun_by, unlevelled
from doublure.drafting.identities import identities_for
from doublure.drafting.metadata.own_words import asked_missing
from doublure.drafting.mixed_missing import both_kinds, lone_text
from doublure.drafting.proposals import rules_for
from doublure.drafting.storage_types import is_blank
from doublure.drafting.whose import id_names, likely_id, unit_yaml
from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.rules.determines import Determines
from doublure.schema.rules.missing_together import MissingTogether
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.rule_set import goes_with
from doublure.schema.schema import Schema
from doublure.schema.unit import UNIT_ID, people_in
from doublure.support import yaml12 as yaml_text

_PART = re.compile(r"(.+[ _.-])\d+|(.*\d[ _.-]?)[A-Za-z]")
"""A part of a question: a number behind a sign, or a letter behind a number."""


class Ask(NamedTuple):
    """Something to decide.

    Attributes:
        path: Where it would stand.
        message: Why it matters, in a line.
        declare: YAML that says it.
        opens: The column whose cells may then be missing, too; empty where none has to.
    """

    path: str
    message: str
    declare: str | None
    opens: str = ""


def _of_the_unit(schema: Schema) -> Iterator[Ask]:
    """Yield what is left open of whose records they are, by names alone."""
    unit = schema.unit
    name = likely_id(id_names({name: column for name, column in schema.columns.items() if not column.identifies}))
    who = None if name is None else people_in(name)
    if name is not None and who is not None and unit.id is None and not (unit.each_record or schema.open_ids):
        yield Ask(
            UNIT_ID,
            f"{printable(name)} is named as the id of a {who}, and each row is treated as a different {unit.name}; if "
            "one can have several rows, make it type: id and name it here",
            unit_yaml(name, "max_records: NUMBER"),
        )
    if schema.row_note is not None and unit.id is not None and (unit.max_records > 1 or people_in(unit.id)):
        yield Ask(
            "unit.per_unit",
            f"{schema.row_note}; if several rows of one are to come, name the columns that stay the same within a "
            f"{unit.name}",
            unit_yaml(
                unit.id,
                f"max_records: {unit.max_records if unit.max_records > 1 else 'NUMBER'}, per_unit: [COLUMN, COLUMN]",
            ),
        )


def asks_of(schema: Schema) -> Iterator[Ask]:
    """Yield what a schema of tables leaves open that no plan needs."""
    rules = [ask for place, table in schema.each_table.items() for ask in _rules(table, place)]
    if schema.only_columns:
        yield from _of_the_unit(schema)
    if schema.only_columns and schema.target is None:
        told = [name for name, column in schema.columns.items() if column.listed] or list(schema.columns)
        guess = yaml_text.inline(told[-1])
        yield Ask(
            "roles",
            "no column is the target, so no report can say how well models trained on the synthetic rows predict; name "
            f"what is to be predicted, such as {guess}, and add condition where samples are to be asked for its values",
            "roles: [target]",
        )
    for place, table in schema.each_table.items():
        for name, levels in unlevelled(table.columns):
            yield Ask(
                f"{place}columns.{printable(name)}",
                "its values look like codes with chapters above them: if so, name the lengths of their prefixes, so "
                "that chapters are counted, too",
                f"type: code, levels: {list(levels)}",
            )
        for name, column in table.columns.items():
            said = {"type": column.shown_type, "missing": column.fact("missing"), "values": [*column.domain]}
            said["missing"] = [*column.missing_texts] if column.missing_states > 1 else said["missing"]
            asked, because = asked_missing(column.description or "", said)
            if asked:
                yield Ask(
                    f"{place}columns.{printable(name)}.missing",
                    f"may mean a missing cell, as {because}; if so, list it",
                    f"missing: {yaml_text.inline(asked['missing'])}",
                )
            text = lone_text(column)
            if text is not None and not is_blank(text):
                yield Ask(
                    f"{place}columns.{printable(name)}.missing",
                    f"empty cells come out as {printable(text)}, too; where some are empty, {both_kinds(text)} keeps "
                    "both in their shares",
                    None,
                )
    yield from rules
    if schema.only_columns and not (schema.constraints or rules):
        yield Ask(
            "constraints",
            "no rule is declared; what holds in every such table (at_most, equal, implies, determines, sum, "
            "combinations) is kept in every synthetic row, at no cost",
            None,
        )


def _rules(table: Schema, place: str) -> Iterator[Ask]:
    """Yield rules that may hold in each row of a table, each of which it takes beside its own and those before.

    Args:
        table: The table's schema.
        place: The path of the table in the schema.
    """
    together = [frozenset(rule.names) for rule in table.constraints]
    for rule, names in rules_for(table.columns, table.constraints):
        if not any(set(names) <= known for known in together):
            yield Ask(f"{place}constraints", f"may hold, by the names of {' and '.join(map(printable, names))}", rule)
    for names in _numbered(table.columns):
        block = MissingTogether(missing_together=names)
        if not any({*names} <= known for known in together) and goes_with(block, table.constraints, table.columns):
            yield Ask(
                f"{place}constraints",
                f"{printable(names[0])} to {printable(names[-1])} may be skipped together, by their names; if all are "
                "missing or none, that is kept at no cost",
                f"- {{missing_together: {yaml_text.inline(list(names))}}}",
            )
    begun = begun_by(table.columns)
    beside = [*table.constraints]
    for likely in identities_for(table.columns):
        if any({*likely.names} <= own for own in together) or likely.names in begun:
            continue
        opens = next((each for each in ("", *likely.derives) if _goes(likely, beside, table, each)), None)
        if opens is not None:
            beside.append(likely)
            yield _identity(likely, place, opens)
    for fine, coarse in begun:
        listed = Determines.model_construct(determines=(fine, coarse), map={})
        known = any({fine, coarse} <= names for names in together)
        if not known and goes_with(listed, table.constraints, table.columns):
            yield Ask(
                f"{place}constraints",
                f"every declared value of {printable(fine)} begins with one of {printable(coarse)}; if that one follows"
                ", a list of both keeps it right in every row, at no cost",
                f"{{determines: [{yaml_text.inline(fine)}, {yaml_text.inline(coarse)}], map: FILE}}",
            )


def _goes(rule: Rule, beside: list[Rule], table: Schema, opens: str) -> bool:
    """Return whether a table takes a rule beside others, once the cells of a column that follows may be missing."""
    column = table.columns.get(opens)
    if column is None:
        return goes_with(rule, beside, table.columns)
    if column.fact("missing") is not False:
        return False
    return goes_with(rule, beside, {**table.columns, opens: column.model_copy(update={"missing": True})})


def _identity(rule: Rule, place: str, opens: str) -> Ask:
    """Return what to decide about a rule that names suggest."""
    file = f", {rule.file_key}: FILE" if rule.needs_file and rule.file_key else ""
    said = {rule.word: rule.model_dump(by_alias=True)[rule.word]}
    *names, last = map(printable, rule.names)
    return Ask(
        f"{place}constraints",
        f"may hold, by the names of {', '.join(names)} and {last}; where it holds, declaring it keeps it in every row, "
        "at no cost"
        + (f"; declare missing: true of {printable(opens)}, which follows from what may be missing" if opens else ""),
        f"- {{{yaml_text.inline(said)[1:-1]}{file}}}",
        opens,
    )


def _numbered(columns: Mapping[str, Column]) -> list[tuple[str, ...]]:
    """Return columns that are named as parts of one question, such as Q28_1 and Q28_2, or Q5a and Q5b."""
    found: dict[str, list[str]] = {}
    for name, column in columns.items():
        part = _PART.fullmatch(name)
        if part is not None and column.modelled and column.may_be_missing:
            found.setdefault(part[1] or part[2], []).append(name)
    return [tuple(names) for names in found.values() if len(names) > 1]
