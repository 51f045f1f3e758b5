"""Budget: the ledger, ε, and what this ε will show; all from the plan, which reads no data."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from doublure.access import COVERED
from doublure.errors import DoublureError, InputError, LedgerError, SettingError
from doublure.guarantee import figure
from doublure.ledger import Ledger
from doublure.ledger.amounts import Budget
from doublure.methods.choice import AUTO
from doublure.planning import Plan, plan
from doublure.planning.forecasts import PlanForecast, forecast_plan
from doublure.planning.offers import method_offers
from doublure.releasing.plain_words import coin_sentence
from doublure.schema import Schema
from doublure.schema.unit import UNIT_ID
from doublure.studio import script
from doublure.studio.project import PLAN, Project
from doublure.studio.step import Page, Step
from doublure.studio.visit import FormErrors, Studio, Visit

_ENDING = ".ledger"
_LEAST, _MOST = 0.05, 10.0
"""The ends of the slider; any ε may be typed. 0.05 is what ``schema check`` proposes for one fact, and above 10 a plan
warns that ε bounds little."""
_SHOWN = 8
_AT_MOST = "left"
"""Where a plan is asked for that is no more than what the ledger has left."""
_QUICK: Literal["rdp"] = "rdp"
"""The accountant of a forecast while the slider moves: an upper bound in a tenth of the time of the plan's own."""


class Precedent(NamedTuple):
    """An ε that others chose, as docs/choosing-epsilon.md has it."""

    release: str
    epsilon: str
    delta: str
    unit: str


class OpenFact(NamedTuple):
    """A fact that is not decided yet: in words, and the address where it is decided."""

    words: str
    address: str


PRECEDENTS = (
    Precedent("Synthetic census linked with deaths, ONS (England and Wales)", "1", "–", "person"),
    Precedent("Page views by country, Wikimedia", "about 1", "1e-7", "the first ten pages of a device and day"),
    Precedent("Registry of live births 2014, Israel", "9.98", "0", "mother and newborn"),
    Precedent("Census 2020, redistricting file, US", "17.14 and 2.47", "1e-10", "person; housing unit"),
)


def show(visit: Visit) -> Page:
    """Show the ledger and the choice of ε."""
    project, studio = visit.project, visit.studio
    schema = studio.schema(project) if project.schema_file else None
    open_facts = [] if schema is None else _open_facts(project, schema)
    if schema is None or open_facts:
        return Page("budget.html.j2", {"ready": False, "open": open_facts})
    delta = project.delta or script.usual_delta(schema.public_units)
    book = _ledger(studio, project)
    left = _left(studio, project) if (visit.query.get("most") or visit.text("most")) == _AT_MOST else None
    epsilon = project.epsilon
    if left is not None:
        epsilon, delta = min(epsilon, left.epsilon), min(delta, left.delta)
    here = sorted(each.name for each in studio.folder.entries() if each.name.endswith(_ENDING))
    context: dict[str, Any] = {
        "ready": True,
        "delta": delta,
        "epsilon": epsilon,
        "most": None if left is None else left.epsilon,
        "book": book,
        "ledgers": [("", "make a new one"), *((name, name) for name in here)],
        "units": schema.public_units,
        "unit": schema.unit.name,
        "precedents": PRECEDENTS,
        "slider": {
            "min": math.log10(_LEAST),
            "max": math.log10(_MOST if left is None else max(_LEAST, min(_MOST, left.epsilon))),
            "value": math.log10(epsilon),
        },
        "fits": _fits(visit),
        "methods": method_offers(schema, project.epsilon),
        "decided": dict.fromkeys(script.DECIDED, "") | dict(project.answers.get("decided", {})),
        "method": visit.shown("method", project.method),
        "figure": figure,
    }
    context |= {"forecast": None, "refused": ""}  # a wide plan takes a second: it is asked for once the page is there
    made = None if context["fits"] is not None or left is not None else _made(studio)
    if made is not None:
        context |= _shown_forecast(made, quick=False)
    elif visit.query.get("forecast"):
        try:
            context |= forecast_context(studio, project, epsilon, delta, project.method)
        except DoublureError as error:
            context |= {"refused": str(error)}
    return Page("budget.html.j2", context)


def _open_facts(project: Project, schema: Schema) -> list[OpenFact]:
    """Return what keeps a plan from being made, each with where it is decided."""
    columns = {schema.path_of(name): name for name in schema.columns}
    tables = {f"tables.{name}.max_children": (number, name) for number, name in enumerate(project.tables)}
    found = []
    for path in schema.undeclared:
        under, _, fact = path.rpartition(".")
        if path in tables:
            number, name = tables[path]
            found.append(OpenFact(f"{name}: rows of one above, at most", f"/people#table{number}--max_children"))
        elif under in columns and not project.own_schema:
            query = urlencode({"state": "undeclared", "edit": columns[under]})
            found.append(OpenFact(f"{columns[under]}: {fact}", f"/columns?{query}#edit"))
        elif project.own_schema:
            found.append(OpenFact(path, "/columns"))
        else:
            said = {
                UNIT_ID: f"whose {', '.join(schema.open_ids)} is",
                "units": f"how many there are ({schema.unit.name})",
            }
            found.append(OpenFact(said.get(path, path), "/people"))
    return found


def forecast(visit: Visit) -> Page:
    """Show what another ε will show, while the slider moves."""
    epsilon, delta = _figure(visit.query.get("epsilon", ""), "epsilon"), _figure(visit.query.get("delta", ""), "delta")
    method = visit.query.get("method") or visit.project.method
    context = forecast_context(visit.studio, visit.project, epsilon, delta, method)
    return Page("forecast.html.j2", {"book": _ledger(visit.studio, visit.project), "figure": figure, **context})


def forecast_context(studio: Studio, project: Project, epsilon: float, delta: float, method: str) -> dict[str, Any]:
    """Return what the forecast of an ε and a δ shows."""
    made = plan(studio.schema(project), method=method, epsilon=epsilon, delta=delta, accountant=_QUICK)
    return _shown_forecast(made, quick=True)


def _shown_forecast(made: Plan, *, quick: bool) -> dict[str, Any]:
    found: PlanForecast = forecast_plan(made)
    covered = made.guarantee.kind in COVERED
    return {
        "forecast": found,
        "coin": coin_sentence(made.guarantee.model_dump()) if covered else "",
        "epsilon": made.epsilon,
        "chance": made.delta,
        "quick": quick,
        "least": [each for each in found.columns if each.drowned or each.below][:_SHOWN],
        "more": max(0, sum(each.drowned or bool(each.below) for each in found.columns) - _SHOWN),
        "pairs": found.pairs[:_SHOWN],
        "bought": made.schema.questions,
        "refused": "",
    }


def keep(visit: Visit) -> str:
    """Make the ledger if there is none, and the plan."""
    found, project, studio = FormErrors(), visit.project, visit.studio
    figures: dict[str, float] = {}
    chosen = visit.text("ledger")
    new = not (project.ledger or chosen)
    for field in ("epsilon", "delta", *(("cap_epsilon", "cap_delta") if new else ())):
        with found.at(field):
            figures[field] = visit.number(field)
    dataset = visit.text("dataset")
    if new and not dataset:
        with found.at("dataset"):
            raise SettingError("is empty", remedy="give the data set a short id")
    method = visit.text("method") or project.method
    refused = {each.name: each.refused for each in method_offers(studio.schema(project), project.epsilon)}
    with found.at("method"):
        if refused.get(method, "is not known"):
            raise SettingError(f"{method}: {refused.get(method, 'is not known')}", remedy="choose another")
    left = _left(studio, project) if visit.text("most") == _AT_MOST else None
    for field, most in () if left is None else (("epsilon", left.epsilon), ("delta", left.delta)):
        with found.at(field):
            if figures.get(field, 0.0) > most:
                raise SettingError(f"is more than the {most:g} that is left", remedy="write no more than that")
    decided = {key: visit.text(f"decided_{key}") for key in script.DECIDED}
    found.stop()
    name = project.ledger or chosen or f"{dataset}{_ENDING}"
    path = studio.folder.path(name)
    with found.at("epsilon", "delta"):
        made = plan(studio.schema(project), method=method, epsilon=figures["epsilon"], delta=figures["delta"])
    found.stop()
    with found.at("dataset" if new else "ledger"):
        if "/" in name:
            raise InputError("is no plain word", field=name, remedy="leave the slash out")
        if new:
            cap = {"epsilon": figures["cap_epsilon"], "delta": figures["cap_delta"]}
            Ledger.open_or_create(path, dataset=dataset, **cap)
        Ledger.open(path)
    found.stop()

    def by(before: Project) -> Project:
        after = before.changed(ledger=name, method=method, epsilon=figures["epsilon"], delta=figures["delta"])
        after = after.answer("decided", **decided)
        if not new:
            return after
        return after.answer(
            "budget", dataset=dataset, cap_epsilon=figures["cap_epsilon"], cap_delta=figures["cap_delta"]
        )

    said = "The plan is made. No record was read, and nothing is charged yet."
    visit.change(by, said, undoes="what was entered under Budget")
    made.save(studio.root / PLAN)
    return "/budget"


def _ledger(studio: Studio, project: Project) -> dict[str, Any] | None:
    """Return the ledger's figures; None where there is none yet."""
    if project.ledger is None:
        return None
    try:
        return Ledger.open(studio.folder.existing(project.ledger)).show()
    except (InputError, LedgerError):
        return None


def _left(studio: Studio, project: Project) -> Budget | None:
    """Return what is left of the ledger, of which a plan can be made; None where nothing is, or there is no ledger."""
    if project.ledger is None:
        return None
    try:
        left = Ledger.open(studio.folder.existing(project.ledger)).remaining
    except (InputError, LedgerError):
        return None
    return left if left.epsilon > 0 and left.delta > 0 else None


def _made(studio: Studio) -> Plan | None:
    """Return the plan that is there; None where there is none, or it is damaged."""
    try:
        return Plan.load(studio.root / PLAN) if (studio.root / PLAN).is_file() else None
    except DoublureError:
        return None


def _fits(visit: Visit) -> str | None:
    """Return why the plan that is there is not the one of this page; None if it is, or if there is none."""
    if not (visit.studio.root / PLAN).is_file():
        return None
    made = _made(visit.studio)
    if made is None:
        return "It is damaged: make it again."
    project = visit.project
    same = made.epsilon == project.epsilon and made.delta == project.delta
    same = same and project.method in (AUTO, made.method)
    return (
        None if same and made.schema == visit.studio.schema(project) else "Something was changed since: make it again."
    )


def _figure(text: str, field: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise SettingError("is not a number", field=field, remedy="write one such as 1.0 or 1e-6")
    return found


def done(studio: Studio) -> bool:
    """Return whether there is a plan."""
    return (studio.root / PLAN).is_file() and studio.project.ledger is not None


STEP = Step(
    key="budget",
    title="Budget",
    show=show,
    takes={"keep": keep},
    parts={"forecast": forecast},
    same=script.budget,
    done=done,
)
