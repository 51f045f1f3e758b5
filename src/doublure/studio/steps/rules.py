"""Rules between columns, built from pickers: public knowledge that every synthetic row keeps, at no cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from doublure.drafting.asks import asks_of
from doublure.drafting.metadata.codebook import keys_of_type, read_facts
from doublure.drafting.order_words import order_in_words
from doublure.errors import DoublureError, InputError, SettingError
from doublure.schema import Schema
from doublure.studio.project import Project, with_table
from doublure.studio.visit import FormErrors, Visit
from doublure.support import yaml12

_MISSING, _RULES = "missing", "constraints"
_NOT_READ = "not read of its values: "
SPANS = ("minute", "hour", "day", "week", "year")
"""Units of a difference of days or moments."""


def _order(visit: Visit) -> dict[str, Any]:
    return {"at_most": [_picked(visit, "first"), _picked(visit, "second")]}


def _equal(visit: Visit) -> dict[str, Any]:
    return {"equal": [_picked(visit, "first"), _picked(visit, "second")]}


def _sum(visit: Visit) -> dict[str, Any]:
    return {"sum": {"total": _picked(visit, "first"), "of": _several(visit, 2)}}


def _together(visit: Visit) -> dict[str, Any]:
    return {"missing_together": _several(visit, 2)}


def _implies(visit: Visit) -> dict[str, Any]:
    when, then = _picked(visit, "first"), _picked(visit, "second")
    return {"implies": {"when": {when: _cells(visit, "when")}, "then": {then: _cells(visit, "then")}}}


def _difference(visit: Visit) -> dict[str, Any]:
    unit = {"unit": visit.text("unit")} if visit.text("unit") else {}
    names = {"of": _picked(visit, "of"), "from": _picked(visit, "first"), "to": _picked(visit, "second")}
    return {"difference": {**names, **unit}}


_KINDS: Mapping[str, tuple[str, Callable[[Visit], dict[str, Any]]]] = {
    "at_most": ("the first is at most the second", _order),
    "equal": ("both say the same", _equal),
    "implies": ("if the first is …, the second is …", _implies),
    "sum": ("the first is the sum of several", _sum),
    "missing_together": ("several are missing together, or none", _together),
    "difference": ("a column is what lies between two", _difference),
}
"""Word of a rule -> its sentence and its reader, for the pickers. The text field takes every other rule."""


def context(visit: Visit, schema: Schema) -> dict[str, Any]:
    """Return what the screen of columns shows of rules."""
    project = visit.project
    known = [each.name for each in project.columns if not each.left_out]
    proposals = [] if project.own_schema else [*_proposed(schema), *_said_in_words(project)]
    said = [text for text, *_ in proposals]
    proposals = [each for place, each in enumerate(proposals) if each[0] not in said[:place]]
    return {
        "rules": [(number, say(rule)) for number, rule in enumerate(project.rules)],
        "proposals": proposals,
        "opens": _to_open(visit),
        "kinds": [(word, said) for word, (said, _) in _KINDS.items()] + [("yaml", "another, as text")],
        "spans": [("", "its own unit"), *((span, f"{span}s") for span in SPANS)],
        "known": [("", "–"), *((name, name) for name in known)],
    }


def add(visit: Visit) -> str:
    """Add a rule."""
    kind = visit.text("rule_kind")
    found = FormErrors()
    rule: Any = None
    if kind == "yaml":
        with found.at("rule_text"):
            rule = yaml12.parse(visit.text("rule_text").removeprefix("- "), "rule")
            if not isinstance(rule, dict):
                raise SettingError("is no rule", remedy="write one such as {at_most: [born, admitted]}")
    elif kind in _KINDS:
        with found.at("rule_kind"):
            rule = _KINDS[kind][1](visit)
    else:
        raise InputError("is no kind of rule", field="rule_kind", remedy="choose one")
    found.stop()
    opens = visit.text("rule_opens")
    said = f"Rule added: {say(rule)}." + (f" {opens} may be missing now." if opens else "")
    with found.at("rule_kind" if kind != "yaml" else "rule_text"):
        visit.change(lambda before: _with_rule(_opened(before, opens), rule), said)
    found.stop()
    return "/columns#rules"


def _opened(project: Project, name: str) -> Project:
    """Return a project in which the cells of a column may be missing; of no name as it is."""
    column = project.column(name)
    return (
        project
        if column is None
        else project.with_columns({name: column.changed(facts={**column.facts, "missing": True})})
    )


def _to_open(visit: Visit) -> str:
    """Return the column whose cells have to be missing at times, so that the rule just refused goes; else nothing."""
    name = visit.text("rule_of") if visit.errors and visit.text("rule_kind") == "difference" else ""
    column = visit.project.column(name)
    if column is None or column.facts.get("missing") is not False:
        return ""
    try:
        _with_rule(_opened(visit.project, name), _difference(visit)).described(visit.studio.folder)
    except DoublureError:
        return ""
    return name


def remove(visit: Visit) -> str:
    """Take a rule out."""
    number = visit.text("number")
    rules = visit.project.rules
    if number not in map(str, range(len(rules))):
        raise InputError("is no rule", field="rules", remedy="go back to the columns")
    left = tuple(rule for place, rule in enumerate(rules) if place != int(number))
    visit.change(lambda before: before.changed(rules=left), "Rule taken out.")
    return "/columns#rules"


def say(rule: Mapping[str, Any]) -> str:
    """Return a rule in words, on a line.

    Example:
        >>> from doublure.studio.steps.rules import say
        >>> say({"at_most": ["admitted", "discharged"]})
        'admitted ≤ discharged'
    """
    word, said = next(iter(rule.items()))
    if word == "at_most":
        start = f", measured from {rule['measured_from']}" if "measured_from" in rule else ""
        return " ≤ ".join(map(str, said)) + start
    if word == "equal":
        return " = ".join(map(str, said))
    if word == "sum" and isinstance(said, Mapping):
        return f"{said['total']} = {' + '.join(map(str, said['of']))}"
    if word == "implies" and isinstance(said, Mapping):
        sides = (
            ", ".join(f"{name} is {_shown(cells)}" for name, cells in said[side].items()) for side in ("when", "then")
        )
        return "if {}, then {}".format(*sides)
    if word == "product" and isinstance(said, Mapping):
        return f"{said['of']} = {' × '.join(map(str, said['from']))}"
    if word == "point":
        return f"{' and '.join(map(str, said))} are one place on the map{_from_file(rule, 'region')}"
    if word == "determines":
        first, second = said
        group = f"level {first['level']} of {first['column']}" if isinstance(first, Mapping) else first
        return f"{second} follows from {group}{_from_file(rule, 'map')}"
    if word == "combinations":
        return f"only listed combinations{_from_file(rule, word)}"
    if word == "range" and isinstance(said, Mapping):
        ends = [f"at {key} {said[key]}" for key in ("least", "most") if key in said]
        return f"{said['of']} is {' and '.join(ends)}"
    if word == "formula" and isinstance(said, Mapping):
        return f"{said['of']} = {said['from']}"
    if word == "age" and isinstance(said, Mapping):
        return f"{said['of']} = years from {said['born']} to {said['at']}"
    if word == "missing_together":
        return f"missing together: {', '.join(map(str, said))}"
    if word == "difference" and isinstance(said, Mapping):
        unit = f", in {said['unit']}s" if "unit" in said else ""
        return f"{said['of']} = {said['to']} − {said['from']}{unit}"
    return yaml12.inline(dict(rule))


def _from_file(rule: Mapping[str, Any], key: str) -> str:
    found = rule.get(key)
    name = found.get("file") if isinstance(found, Mapping) else found
    return f", by {name}" if isinstance(name, str) else ""


def _shown(cells: object) -> str:
    return yaml12.inline(cells) if isinstance(cells, (list, dict)) else str(cells)


def _said_in_words(project: Project) -> list[tuple[str, str, str]]:
    """Return the orders of two columns that their codebook says in words, and that no rule holds yet."""
    found = []
    there = [column for column in project.columns if not column.left_out]
    for column in there:
        type_ = str(column.facts.get("type"))
        alike = {
            each.name: str(each.facts.get("description", ""))
            for each in there
            if each is not column and each.facts.get("type") == type_ and "bounds" in keys_of_type(type_)
        }
        for note in column.unread:
            pair = order_in_words(note.removeprefix(_NOT_READ), column.name, alike)
            held = any({*pair} <= {*map(str, each.get("at_most", ()))} for each in project.rules) if pair else True
            if pair is not None and not held:
                rule = {"at_most": [*pair]}
                found.append((yaml12.inline(rule), say(rule), ""))
    return found


def _proposed(schema: Schema) -> list[tuple[str, str, str]]:
    """Return rules that may hold by the names of columns: YAML, words, and the column that may then be missing."""
    tables = {f"{place}{_RULES}": (place, table) for place, table in schema.each_table.items()}
    found = []
    for ask in asks_of(schema):
        if ask.path not in tables or ask.declare is None or "FILE" in ask.declare:
            continue
        place, table = tables[ask.path]
        rule: Any = yaml12.parse(ask.declare.removeprefix("- "), "rule")
        if place:
            rule = with_table(rule, place.removeprefix("tables.").removesuffix("."), table.columns)
        found.append(
            (yaml12.inline(rule), say(rule), f"{place.removeprefix('tables.')}{ask.opens}" if ask.opens else "")
        )
    return found


def _with_rule(project: Project, rule: dict[str, Any]) -> Project:
    if rule in [dict(each) for each in project.rules]:
        raise SettingError("is there already", remedy="choose another")
    return project.changed(rules=(*project.rules, rule))


def _picked(visit: Visit, field: str) -> str:
    name = visit.text(f"rule_{field}")
    if visit.project.column(name) is None:
        raise SettingError(f"needs {'a column' if field == 'of' else f'the {field} column'}", remedy="choose it")
    return name


def _several(visit: Visit, least: int) -> list[str]:
    names = [name for name in visit.lists.get("rule_several", ()) if visit.project.column(name) is not None]
    if len(names) < least:
        raise SettingError(f"needs at least {least} columns in the list", remedy="tick them")
    return names


def _cells(visit: Visit, side: str) -> Any:
    """Return cells as a rule has them: missing, a value, several, or from..to."""
    text = visit.text(f"rule_{side}")
    if not text:
        raise SettingError("needs both cells", remedy="write missing, a value, several with | between, or 0..9")
    if text.lower() == _MISSING:
        return _MISSING
    low, mark, high = text.partition("..")
    if mark:
        return read_facts({"lower": low.strip(), "upper": high.strip()}, "rule")["bounds"]
    values = [yaml12.parse(each.strip(), "rule") for each in text.split("|")]
    return values[0] if len(values) == 1 else values


TAKES = {"rule": add, "unrule": remove}
