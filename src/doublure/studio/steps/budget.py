"""Budget: the ledger, ε, and what this ε will show; all from the plan, which reads no data."""

from __future__ import annotations

from doublure.ledger import Ledger
from doublure.planning import plan
from doublure.studio import script
from doublure.studio.project import PLAN, Project
from doublure.studio.step import Page, Step
from doublure.studio.visit import Misfit, Studio, Visit


def show(visit: Visit) -> Page:
    """Show the ledger and the choice of ε."""
    project = visit.project
    units = visit.studio.schema(project).public_units if project.schema_file else 10_000
    return Page("budget.html.j2", {"delta": project.delta or script.usual_delta(units)})


def keep(visit: Visit) -> str:
    """Make the ledger if there is none, and the plan."""
    found, project = Misfit(), visit.project
    figures: dict[str, float] = {}
    for field in ("cap_epsilon", "cap_delta", "epsilon", "delta"):
        with found.at(field):
            figures[field] = visit.number(field)
    found.stop()
    name = project.ledger or f"{visit.text('dataset')}.ledger"
    path = visit.studio.folder.path(name)
    cap = {key: figures[key] for key in ("cap_epsilon", "cap_delta")}
    with found.at("dataset"):
        Ledger.open_or_create(path, dataset=visit.text("dataset"), epsilon=cap["cap_epsilon"], delta=cap["cap_delta"])
    with found.at("epsilon"):
        made = plan(visit.studio.schema(project), epsilon=figures["epsilon"], delta=figures["delta"])
    found.stop()

    def by(before: Project) -> Project:
        new = before.changed(ledger=name, epsilon=figures["epsilon"], delta=figures["delta"])
        return new.answer("budget", dataset=visit.text("dataset"), **cap)

    visit.change(by, "The plan is made. No record was read.")
    made.save(visit.studio.root / PLAN)
    return "/budget"


def done(studio: Studio) -> bool:
    """Return whether there is a plan."""
    return (studio.root / PLAN).is_file() and studio.project.ledger is not None


STEP = Step(key="budget", title="Budget", show=show, takes={"keep": keep}, same=script.budget, done=done)
