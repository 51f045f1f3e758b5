"""Fit: a process of its own, which survives this page, the browser and the server."""

from __future__ import annotations

from doublure.access import COVERED
from doublure.errors import BudgetRefused, DoublureError, InputError
from doublure.ledger import Ledger
from doublure.ledger.amounts import Budget
from doublure.planning import Plan
from doublure.planning.explain import duration
from doublure.releasing.plain_words import coin_sentence
from doublure.studio import script
from doublure.studio.project import PLAN, RUN, Project
from doublure.studio.runs import FoundRun, all_runs, done_runs, find_run, free_name, jobs_in, progress, stop
from doublure.studio.step import Page, Step
from doublure.studio.visit import FieldError, Misfits, Studio, Visit


def show(visit: Visit) -> Page:
    """Show the plan, what it costs, and how far the run is."""
    studio, project = visit.studio, visit.project
    made = _plan(studio)
    run = find_run(studio, script.fitted(project))
    left, trouble = None, None
    try:
        left = _left(studio)
    except DoublureError as error:
        trouble = str(error)
    context = {
        "plan": made,
        "guarantee": None if made is None else made.guarantee.sentence,
        "coin": ""
        if made is None or made.guarantee.kind not in COVERED
        else coin_sentence(made.guarantee.model_dump()),
        "time": None if made is None else duration(made.seconds_estimate),
        "run": run,
        "job": None if _of_another_plan(run, made) else run.job,
        "left": left,
        "beyond": None if made is None or trouble else _beyond(studio, made),
        "trouble": trouble,
        "stale": made is not None and _is_stale(studio, made),
        "others": [each for each in all_runs(studio) if each.name != run.name],
    }
    return Page("fit.html.j2", context)


def _beyond(studio: Studio, made: Plan) -> str | None:
    """Return why the ledger would refuse the plan once more; None where it would not."""
    name = studio.project.ledger
    if name is None:
        return None
    try:
        Ledger.open(studio.folder.existing(name)).refuse_beyond_cap(made)
    except BudgetRefused as error:
        return error.message
    return None


def left_now(visit: Visit) -> Page:
    """Show what is left in the ledger, while a fit is charged."""
    studio = visit.studio
    run = find_run(studio, script.fitted(studio.project))
    return Page("ledger_left.html.j2", {"left": _left(studio), "run": run})


def _left(studio: Studio) -> Budget | None:
    name = studio.project.ledger
    return None if name is None else Ledger.open(studio.folder.existing(name)).remaining


def start(visit: Visit) -> str:
    """Begin a new run."""
    studio, jobs = visit.studio, jobs_in(visit.studio)
    made = _plan(studio)
    if made is None:
        raise InputError("is not made yet", field="plan", remedy="make it under Budget")
    if _is_stale(studio, made):
        raise InputError("is of an older schema", field="plan", remedy="make it again under Budget")
    latest = find_run(studio, script.fitted(visit.project))
    if latest.state == "running":
        raise InputError("runs already", field=latest.name, remedy="wait until it has ended, or stop it")
    name = free_name(studio.root, RUN)
    again = visit.text("again") == "yes"
    if not again:
        _refuse_repeated(studio, made)
    project = visit.change(lambda before: _begun(before, name, again=again), "The fit has begun.", undoes=_chosen(name))
    _refuse_gone(studio, project)
    jobs.start(script.fit_words(project), run=name, plan=made.sha256)
    return "/fit"


def resume(visit: Visit) -> str:
    """Go on with a run that was cut off."""
    studio = visit.studio
    name = visit.text("run")
    studio.folder.existing(name)
    project = visit.change(lambda before: _begun(before, name, again=False), "The fit goes on.", undoes=_chosen(name))
    _refuse_gone(studio, project)
    jobs_in(studio).start(script.resume_words(project), run=name)
    return "/fit"


def choose(visit: Visit) -> str:
    """Choose the run that the next steps are about."""
    name = visit.text("run")
    visit.studio.folder.existing(name)
    visit.change(
        lambda before: _begun(before, name, again=False), f"The next steps are about {name}.", undoes=_chosen(name)
    )
    return "/fit"


def _refuse_repeated(studio: Studio, made: Plan) -> None:
    """Refuse a plan that was charged already, before the run that it made is left; the fit asks again under its lock.

    Raises:
        Misfits: Beside the box that pays once more.
    """
    name = studio.project.ledger
    if name is None or not (studio.root / name).exists():
        return
    try:
        Ledger.open(studio.folder.existing(name)).refuse_repeated(made)
    except BudgetRefused as error:
        said = f"{error.message}; use that run, which costs nothing, or tick this to pay once more"
        raise Misfits((FieldError("again", said),)) from None


def _begun(project: Project, name: str, *, again: bool) -> Project:
    return project.answer("fit", run=name, again=again)


def _chosen(name: str) -> str:
    """Return what undoing takes back: a fit goes on, and stays charged."""
    return f"the choice of {name}"


def _of_another_plan(run: FoundRun, made: Plan | None) -> bool:
    """Whether a fit was refused by a plan that has been made anew since."""
    if run.state != "refused" or run.job is None or made is None:
        return False
    return run.job.about.get("plan", made.sha256) != made.sha256


def _plan(studio: Studio) -> Plan | None:
    path = studio.folder.path(PLAN)
    return Plan.load(path) if path.is_file() else None


def _is_stale(studio: Studio, made: Plan) -> bool:
    """Whether the schema was changed after the plan was made."""
    project = studio.project
    return project.schema_file is not None and studio.schema().sha256 != made.schema_sha256


def _refuse_gone(studio: Studio, project: Project) -> None:
    """Refuse data that are not in the folder any more."""
    source = project.source
    if source is not None and source.table is None:
        studio.folder.part(source.place)


def done(studio: Studio) -> bool:
    """Return whether a run is finished."""
    return bool(done_runs(studio))


STEP = Step(
    key="fit",
    title="Fit",
    show=show,
    takes={"start": start, "resume": resume, "choose": choose, "stop": lambda visit: stop(visit, "/fit")},
    parts={"progress": progress, "left": left_now},
    same=script.fit,
    done=done,
)
