"""Columns: a table with one row a column: its type, what is public about it, and what is still open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from doublure.drafting.check import LEARN_EPSILON, Finding, check
from doublure.drafting.code_lists import default_levels
from doublure.drafting.codebook import OMITTED, fits_pattern
from doublure.drafting.form_hints import id_pattern
from doublure.drafting.metadata.codebook import facts_in_words, keys_of_type, read_facts
from doublure.drafting.proposals import Proposal, following_bounds
from doublure.errors import DoublureError, InputError, SettingError
from doublure.schema import Schema
from doublure.schema.columns import type_named, types, unmodelled_types
from doublure.schema.columns.number_format import number_form
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.scalars import is_plain_number
from doublure.schema.unit import UNIT_ID
from doublure.studio import script
from doublure.studio.project import Project, ProjectColumn, refuse_outside
from doublure.studio.step import Page, Step
from doublure.studio.steps import misfits, rules
from doublure.studio.steps.column_form import (
    STATES,
    bought,
    fact_fields,
    facts_entered,
    further_fields,
    judged,
    may_say,
    needs,
    still_labelled,
    values_entered,
    written_words,
)
from doublure.studio.visit import FormErrors, Studio, Visit
from doublure.support import yaml12
from doublure.support.files import write_atomic

_LEFT, DECIDE = "left", "decide"
_NUMBERS = ("integer", "real")
_CODE = "code"
_PRIVATE = 0o600
_ROLES = (
    ("", "none"),
    ("target", "target: to be predicted"),
    ("condition", "condition: samples are asked for its values"),
    ("weight", "weight of a survey"),
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table.

    Attributes:
        column: The column.
        type: Its type.
        facts: What is said of it, in a line.
        state: ``declared``, ``learned``, ``undeclared`` or ``left``.
        open: Facts that are open.
        epsilon: What its facts cost.
        roles: Its roles.
        perhaps: What its proposal adds, in words; empty without.
        why: The condition of the proposal, after "if".
        mind: Why no stored cell can be a declared value; empty where one can.
    """

    column: ProjectColumn
    type: str
    facts: str
    state: str
    open: tuple[str, ...]
    epsilon: float
    roles: str
    perhaps: str
    why: str
    mind: str


def show(visit: Visit) -> Page:
    """Show the columns: all of them, or those that are searched for, with one that is edited."""
    project = visit.project
    if project.own_schema and project.schema_file is not None:
        path = visit.studio.folder.existing(project.schema_file)
        text = visit.shown("text", path.read_text(encoding="utf-8"))
        refuse_outside(yaml12.load(path, "schema"), visit.studio.folder)
        found = check(path)
        return Page("schema_text.html.j2", {"text": text, "findings": found.findings, "ok": found.ok})
    if not project.columns:
        return Page("columns.html.j2", {"rows": (), "counts": {}})
    schema = visit.studio.schema(project)
    every = table_rows(project, schema)
    asked, state = visit.query.get("q", ""), visit.query.get("state", "")
    shown = [row for row in every if wanted(row, asked, state)]
    context: dict[str, Any] = {
        "rows": shown,
        "all": len(every),
        "counts": {each: sum(row.state == each for row in every) for each in (*STATES, _LEFT)},
        "to_decide": sum(map(_to_decide, every)),
        "epsilon": sum(row.epsilon for row in every),
        "asked": asked,
        "state": state,
        "types": types(),
        "price": LEARN_EPSILON,
        "to_buy": {row.column.name: number for row in shown if (number := _to_buy(row))},
        "plan_epsilon": project.epsilon,
        "here": search_query(visit),
        "target": schema.target,
        "notes": _worth_knowing(project, schema),
        "edit": None,
        **rules.context(visit, schema),
        **misfits.context(visit),
    }
    edited = project.column(visit.query.get("edit") or (visit.text("name") if visit.errors else ""))
    if edited is not None:
        context |= edit_context(visit, edited, visit.query.get("type") or visit.text("edit--type"))
    return Page("columns.html.j2", context)


def _worth_knowing(project: Project, schema: Schema) -> list[Finding]:
    """Return what ``schema check`` notes; whose the rows are is no note once it was answered."""
    answered = bool(project.answers.get("people"))
    notes = [each for each in check(schema).findings if each.kind in ("ask", "note") and each.declare is None]
    return [each for each in notes if not (answered and each.path == UNIT_ID)]


def _to_buy(row: Row) -> int:
    """Return how many facts of a column would be bought with what is open."""
    if not row.open:
        return 0
    try:
        after = bought(row.column.facts, row.column.name, LEARN_EPSILON)
    except DoublureError:
        return 0
    return sum(after.get(fact) != row.column.facts.get(fact) for fact in row.open)


def edit_context(visit: Visit, column: ProjectColumn, type_: str) -> dict[str, Any]:
    """Return what the form of one column shows."""
    known = type_ if type_ in types() else str(column.facts.get("type", "category"))
    schema = visit.studio.schema(visit.project)
    proposal, why = _find_proposal(column, following_bounds(schema))
    roles, declared = column.facts.get("roles") or ("",), visit.query.get("declare", "")
    proposed = {declared: visit.query.get("as", "")} | _beside_declared(declared, visit.query.get("as", ""))
    if type_named(known).identifies:
        proposed["pattern"] = id_pattern(misfits.public_words(visit, column.name))
    if known == _CODE and "parents" not in column.facts:
        proposed["levels"] = "|".join(map(str, default_levels(column.name, _declared_values(column)) or ()))
    fields_of = fact_fields(schema, column, known)
    if declared == "missing":
        said = {"missing": visit.query.get("as", "")}
        fields_of = [
            replace(each, state="declared", cells=said) if each.key == declared else each for each in fields_of
        ]
    return {
        "edit": column,
        "type": known,
        "facts": fields_of,
        "further": further_fields(column, known, proposed),
        "declared": declared,
        "made": known in unmodelled_types(),
        "role": roles[0],
        "roles": _ROLES,
        "types": types(),
        "here": search_query(visit),
        "proposal": proposal_in_words(column.name, proposal) if proposal else "",
        "why": why,
    }


def _declared_values(column: ProjectColumn) -> Sequence[object]:
    values = column.facts.get("values")
    return values if isinstance(values, (list, tuple)) else ()


def _beside_declared(key: str, text: str) -> dict[str, str]:
    """Return what a form of numbers says beside itself: how many decimals they have."""
    try:
        return {"precision": str(number_form(text).decimals)} if key == "format" and text else {}
    except ValueError:
        return {}


def proposal_in_words(name: str, proposal: Mapping[str, Any]) -> str:
    """Return what a column may be, in a line as people write it."""
    said = f"{proposal['as']} · " if "as" in proposal else ""
    rest = facts_in_words(name, {key: fact for key, fact in proposal.items() if key != "as"})
    return f"{proposal['type']} · {said}{rest}".removesuffix(" · ")


def fields(visit: Visit) -> Page:
    """Show the fields of another type, before it is saved."""
    column = _named(visit.project, visit.query.get("name", ""))
    context = edit_context(visit, column, visit.query.get("edit--type", ""))
    return Page("column_fields.html.j2", {"visit": visit, "project": visit.project, **context})


def keep(visit: Visit) -> str:
    """Keep what was entered of one column."""
    column = _named(visit.project, visit.text("name"))
    found = FormErrors()
    facts = facts_entered(visit, column, found, visit.studio.folder)
    found.stop()

    def by(before: Project) -> Project:
        return before.with_columns({column.name: column.changed(facts=facts, left_out=False, unread=())})

    with found.at("edit--type"):
        visit.change(lambda before: _one_target(by(before), column.name, facts), f"Saved: {column.name}.")
    found.stop()
    return back(visit)


def apply(visit: Visit) -> str:
    """Apply something to many columns: to those that are ticked, or to all that are shown."""
    project, does = visit.project, visit.text("do")
    names = visit.lists.get("names", ())
    if visit.text("whom") == "shown":
        every = table_rows(project, visit.studio.schema(project))
        names = tuple(row.column.name for row in every if wanted(row, visit.text("q"), visit.text("state")))
    chosen = [_named(project, name) for name in names]
    if not chosen:
        raise InputError("no column is ticked", field="columns", remedy="tick some, or choose all that are shown")
    if does not in _CHANGES:
        raise InputError("is nothing that can be done", field="do", remedy="choose one of the buttons")
    found = FormErrors()
    changed: dict[str, ProjectColumn] = {}
    for column in chosen:
        with found.at(f"names--{column.name}" if len(chosen) > 1 else ""):
            if (new := _CHANGES[does](column, visit)) is not None:
                if not new.left_out:
                    judged(new.facts, column.name, visit)
                changed[column.name] = new if _open(new) else new.changed(unread=())
    found.stop()
    if not changed:
        raise InputError("changes none of these columns", field=does, remedy="choose others")
    gone = {name for name, new in changed.items() if new.left_out}
    named = [name for name in _of_a_person(project) if name in gone]
    said = f"{_SAID[does]}: {len(changed)} {'column' if len(changed) == 1 else 'columns'}."
    if named:
        said += f" Under Who is protected, {', '.join(named)} {'is' if len(named) == 1 else 'are'} taken out, too."
    visit.change(lambda before: _apart(before.with_columns(changed), gone), said)
    return back(visit)


def _of_a_person(project: Project) -> tuple[str, ...]:
    """Return the columns that the unit names: those that stay the same within a person, and what orders its rows."""
    unit = project.unit
    return tuple(dict.fromkeys((*(unit.get("per_unit") or ()), *filter(None, [unit.get("order")]))))


def _apart(project: Project, gone: Iterable[str]) -> Project:
    """Return a project whose unit names none of some columns; an order goes with the last that stays the same."""
    stays = [name for name in project.unit.get("per_unit") or () if name not in gone]
    rest = {key: said for key, said in project.unit.items() if key not in ("per_unit", "order")}
    order = project.unit.get("order")
    kept = ({"per_unit": stays} if stays else {}) | ({"order": order} if stays and order and order not in gone else {})
    return project if not {*_of_a_person(project)} & {*gone} else project.changed(unit=rest | kept)


def text(visit: Visit) -> str:
    """Keep a schema that is edited as text."""
    project = visit.project
    name = project.schema_file or "schema.yaml"
    Schema.parse(visit.form.get("text", ""), name)
    content = visit.form.get("text", "").replace("\r\n", "\n").encode()
    visit.change(lambda before: before, "Saved: the schema.")
    write_atomic(visit.studio.folder.path(name), lambda file: file.write(content), mode=_PRIVATE)
    return "/columns"


def _open(column: ProjectColumn) -> bool:
    """Return whether a fact is open that no plan is made without: only then does it matter what was not read."""
    type_ = str(column.facts["type"])
    return any(column.facts.get(fact, UNDECLARED) == UNDECLARED for fact in type_named(type_).facts)


# -- what can be applied to many ---------------------------------------------------------------------------------------


def _leave_out(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    return None if column.left_out else column.changed(left_out=True)


def _confirm(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    """Take what was read of the codebook, and decided where it says nothing, as it is."""
    return column.changed(unread=()) if column.unread else None


def _take_in(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    return column.changed(left_out=False) if column.left_out else None


def _propose(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    proposal, _ = _find_proposal(column, following_bounds(visit.studio.schema(visit.project)))
    if not proposal:
        return None
    named = [key for key, value in proposal.items() if _is_placeholder(key, value)]
    same = proposal["type"] == column.facts.get("type")  # what was said of another type may not fit
    kept = {
        key: fact
        for key, fact in column.facts.items()
        if key in ("description", "roles")
        or (same and fact != UNDECLARED and not (key in proposal and _asks(column, proposal, key)))
    }
    named = [key for key in named if key not in kept]
    facts = {**proposal, **kept}
    if "missing" not in facts and "missing" in column.facts and needs("missing", facts["type"]):
        facts["missing"] = column.facts["missing"]
    for key in named:  # words in CAPITALS stand for what a person has to say
        facts[key] = UNDECLARED
    return column.changed(facts=facts, left_out=False)


def _retype(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    new = visit.text("type")
    if new == OMITTED:
        return _leave_out(column, visit)
    facts = read_facts({"type": new}, column.name)
    if not new or column.facts.get("type") == new:
        return None
    kept = {
        key: value
        for key, value in column.facts.items()
        if may_say(key, new) and key not in ("type", "dtype") and (value != UNDECLARED or needs(key, new))
    }
    if new == _CODE and (levels := default_levels(column.name, _declared_values(column))) is not None:
        facts |= {"levels": list(levels)}
    return column.changed(facts=still_labelled({**kept, **facts}, column), left_out=False)


def _never_missing(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    return _fact(column, {"missing": False})


def _may_be_missing(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    texts = visit.text("missing_texts")
    return _fact(column, read_facts({"missing": texts or "true"}, column.name))


def _declare_values(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    if not visit.text("many_values"):
        raise SettingError("are not given", field="values", remedy="write them, one a line or separated by |")
    words = column.facts.get("type") == "boolean"  # a boolean has no list: its two cells are how it is written
    text = values_entered(visit.text("many_values"))
    facts = written_words(text) if words else {"values": text}
    return _fact(column, facts if words else read_facts(facts, column.name))


def _declare_bounds(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    ends = {"lower": visit.text("many_lower"), "upper": visit.text("many_upper")}
    if not all(ends.values()):
        raise SettingError("are not given", field="bounds", remedy="write the least and the greatest")
    return _fact(column, read_facts(ends, column.name))


def _precision(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    if not visit.text("many_precision"):
        raise SettingError("is not given", field="precision", remedy="write how many decimals")
    if "precision" not in keys_of_type(str(column.facts["type"])):
        return None
    return _fact(column, read_facts({"precision": visit.text("many_precision")}, column.name))


def _buy(column: ProjectColumn, visit: Visit) -> ProjectColumn | None:
    facts = still_labelled(bought(column.facts, column.name, visit.number("price")), column)
    return None if column.left_out or facts == dict(column.facts) else column.changed(facts=facts)


def _fact(column: ProjectColumn, facts: Mapping[str, Any]) -> ProjectColumn | None:
    return None if column.left_out else column.changed(facts=still_labelled({**column.facts, **facts}, column))


_CHANGES: Mapping[str, Callable[[ProjectColumn, Visit], ProjectColumn | None]] = {
    "leave_out": _leave_out,
    "take_in": _take_in,
    "confirm": _confirm,
    "propose": _propose,
    "retype": _retype,
    "never_missing": _never_missing,
    "may_be_missing": _may_be_missing,
    "values": _declare_values,
    "bounds": _declare_bounds,
    "precision": _precision,
    "buy": _buy,
}
_SAID = {
    "leave_out": "Left out",
    "take_in": "Taken in",
    "confirm": "Taken as it is",
    "propose": "Proposal taken",
    "retype": "Type changed",
    "never_missing": "Never missing",
    "may_be_missing": "May be missing",
    "values": "Values declared",
    "bounds": "Bounds declared",
    "precision": "Precision declared",
    "buy": "Open facts are bought",
}


# -- rows --------------------------------------------------------------------------------------------------------------


def table_rows(project: Project, schema: Schema) -> list[Row]:
    """Return the table's rows."""
    prices: dict[str, float] = {}
    for question in schema.questions:
        prices[question.column or ""] = prices.get(question.column or "", 0.0) + question.epsilon
    still: dict[str, list[str]] = {}
    for path in schema.undeclared:
        still.setdefault(path.rpartition(".")[0], []).append(path.rpartition(".")[2])
    found = []
    following = following_bounds(schema)
    for column in project.columns:
        proposal, why = _find_proposal(column, following)
        missing = tuple(still.get(schema.path_of(column.name), ())) if not column.left_out else ()
        cost = prices.get(column.name, 0.0) if not column.left_out else 0.0
        state = _LEFT if column.left_out else "undeclared" if missing else "learned" if cost else "declared"
        row = Row(
            column=column,
            type=str(column.facts.get("type", "")),
            facts="" if column.left_out else _said(column),
            state=state,
            open=missing,
            epsilon=cost,
            roles=", ".join(column.facts.get("roles") or ()),
            perhaps="" if column.left_out else _added(column, proposal),
            why=why,
            mind="" if column.left_out else _unlike_stored(column),
        )
        found.append(row)
    return found


def _said(column: ProjectColumn) -> str:
    """Return what is said of a column, in a line; of ids without a pattern what they become."""
    said = facts_in_words(column.name, column.facts)
    numbered = column.facts.get("type") == "id" and "pattern" not in column.facts
    return " · ".join(filter(None, ("made anew: 1, 2, 3, …" if numbered else "", said)))


def _unlike_stored(column: ProjectColumn) -> str:
    """Return why no cell can be a declared value: cells are stored as numbers, and no value is one."""
    values = column.facts.get("values")
    if column.storage not in _NUMBERS or not isinstance(values, (list, tuple)) or not values:
        return ""
    if any(is_plain_number(str(value)) for value in values):
        return ""
    return "cells are stored as numbers, and no declared value is one: write the codes, such as 1 = male | 2 = female"


def _find_proposal(column: ProjectColumn, following: Mapping[str, Proposal]) -> tuple[Mapping[str, Any], str]:
    """Return a column's proposal and its condition: the draft's, or bounds that follow from what was said since."""
    later = following.get(column.name)
    if later is None or later.column is None:
        return column.proposal or {}, column.why
    return later.column, later.why


def _asks(column: ProjectColumn, proposal: Mapping[str, Any], key: str) -> bool:
    """Return whether a proposal says something of a key that a person has not said, or texts that mean missing."""
    said, fact = column.facts.get(key, UNDECLARED), proposal[key]
    if said == UNDECLARED:
        return fact != UNDECLARED and not _is_placeholder(key, fact)
    return key == "missing" and isinstance(fact, (list, tuple)) and said != fact and not _is_placeholder(key, fact)


def _added(column: ProjectColumn, proposal: Mapping[str, Any]) -> str:
    """Return what a proposal says beyond what is said of a column: another type, or a form of its cells."""
    if not proposal:
        return ""
    if proposal["type"] != column.facts.get("type"):
        return f"{proposal['type']} ({proposal['as']})" if "as" in proposal else str(proposal["type"])
    new = {key: fact for key, fact in proposal.items() if _asks(column, proposal, key)}
    return facts_in_words(column.name, {"type": proposal["type"], **new})


def wanted(row: Row, asked: str, state: str) -> bool:
    """Return whether a row is searched for: by a pattern such as ``Q28_*``, or a part of its name, type or meaning."""
    if state and (not _to_decide(row) if state == DECIDE else row.state != state):
        return False
    asked = asked.strip()
    if "*" in asked:
        return fits_pattern(row.column.name, asked)
    told = (row.column.name, row.type, row.roles, str(row.column.facts.get("description", "")))
    return any(asked.lower() in each.lower() for each in told)


def _to_decide(row: Row) -> bool:
    """Return whether a column needs a decision: a fact is open, a proposal or a note stands, no cell can be a value."""
    left = row.state == _LEFT
    return row.state == "undeclared" or bool(row.perhaps or row.mind or (row.column.unread and not left))


def search_query(visit: Visit) -> str:
    """Return the search, to come back to."""
    found = {key: value for key in ("q", "state") if (value := visit.query.get(key) or visit.text(key))}
    return urlencode(found)


def back(visit: Visit) -> str:
    """Return the address to come back to: the same search."""
    query = search_query(visit)
    return "/columns" + (f"?{query}" if query else "")


def _named(project: Project, name: str) -> ProjectColumn:
    found = project.column(name)
    if found is None:
        raise InputError("is no column of this data", field=name or "column", remedy="go back to the columns")
    return found


def _one_target(project: Project, name: str, facts: Mapping[str, Any]) -> Project:
    """Return a project with one target: a new one takes the role from another."""
    if "target" not in (facts.get("roles") or ()):
        return project
    others: dict[str, ProjectColumn] = {}
    for column in project.columns:
        if column.name != name and "target" in (column.facts.get("roles") or ()):
            left = [role for role in column.facts["roles"] if role != "target"]
            rest = {key: value for key, value in column.facts.items() if key != "roles"}
            others[column.name] = column.changed(facts=rest | ({"roles": left} if left else {}))
    return project.with_columns(others)


def _is_placeholder(key: str, value: object) -> bool:
    """Return whether a proposal's fact is a word in CAPITALS, in a list or as a file, that a person has to replace."""
    if key == "date_format":  # DD.MM.YYYY stands for itself
        return False
    texts: Iterable[object] = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else (value,)
    )
    return any(isinstance(each, str) and each.partition(".")[0].isupper() and len(each) > 3 for each in texts)


def done(studio: Studio) -> bool:
    """Return whether nothing is undeclared."""
    project = studio.project
    if project.schema_file is None or not (project.columns or project.own_schema):
        return False
    try:
        return not studio.schema(project).undeclared
    except DoublureError:
        return False


STEP = Step(
    key="columns",
    title="Columns",
    show=show,
    takes={"keep": keep, "apply": apply, "text": text, **rules.TAKES, **misfits.TAKES},
    parts={"fields": fields},
    same=script.schema,
    done=done,
)
