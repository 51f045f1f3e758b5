"""Look: the evaluation page, real rows beside synthetic ones, and attacks; all of it internal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doublure.data.tables.containers.registry import find_container
from doublure.errors import InputError, RunFolderError
from doublure.studio import script
from doublure.studio.frames import framed_file
from doublure.studio.project import Project
from doublure.studio.runs import done_runs, find_run, jobs_in, progress, stop
from doublure.studio.sheets import with_sheets
from doublure.studio.step import Page, Step
from doublure.studio.steps import misfits
from doublure.studio.visit import FormErrors, Studio, Visit

_PAGES = {"report": "report.html", "audit": "audit.html"}
EXAMPLES = 10


def show(visit: Visit) -> Page:
    """Show what was found, and how to look again."""
    studio, project = visit.studio, visit.project
    name = script.fitted(project)
    run, said = find_run(studio, name), {"holdout": "", "examples": 0, **project.answers.get("look", {})}
    jobs = jobs_in(studio)
    finished = done_runs(studio)
    context = {
        "run": run,
        "finished": [each.name for each in finished],
        "same_data": [each.name for each in finished if each.dataset == run.dataset],
        "files": _data_files(studio),
        "real": script.real_data(project),
        "said": said,
        "database": project.source is not None and project.source.table is not None,
        "table": project.kind == "table",
        "pages": {which: (studio.root / name / "internal" / page).is_file() for which, page in _PAGES.items()},
        "evaluation": jobs.latest("evaluate", run=name),
        "audit": jobs.latest("audit", run=name),
        "examples": EXAMPLES,
    }
    return Page("look.html.j2", context)


def _data_files(studio: Studio) -> list[str]:
    """Return the files that may hold rows: those of a container of tables, or with the ending of the data."""
    project = studio.project
    ending = "" if project.source is None else Path(project.source.place).suffix
    files = [each for each in studio.folder.entries() if each.is_file()]
    data = [each for each in files if find_container(each) is not None or (ending and each.suffix == ending)]
    names = [name for each in data for name in with_sheets(studio.folder, each)]
    return [name for name in names if name not in (project.codebook, misfits.FILE)]


def evaluate(visit: Visit) -> str:
    """Compare the run with real rows."""
    project = _kept(
        visit, audit=bool(visit.project.answers.get("look", {}).get("audit")), said="The evaluation has begun."
    )
    jobs_in(visit.studio).start(script.evaluate_words(project), run=script.fitted(project))
    return "/look"


def audit(visit: Visit) -> str:
    """Attack the run."""
    project = _kept(visit, audit=True, said="The attacks have begun.")
    jobs_in(visit.studio).start(script.audit_words(project), run=script.fitted(project))
    return "/look"


def _kept(visit: Visit, *, audit: bool, said: str) -> Project:
    """Keep what was chosen, once there is a finished run and real rows."""
    folder, found = visit.studio.folder, FormErrors()
    run = find_run(visit.studio, script.fitted(visit.project))
    if run.state != "done":
        raise RunFolderError("is not finished", field=run.name, remedy="go on with it under Fit")
    chosen: dict[str, Any] = {"audit": audit}
    for field in ("real", "holdout"):
        if field not in visit.form:
            continue
        with found.at(field):
            chosen[field] = folder.name(folder.part(visit.text(field))) if visit.text(field) else ""
    if "examples_shown" in visit.form:
        chosen["examples"] = EXAMPLES if visit.text("examples") == "yes" else 0
    if not (chosen.get("real") or script.real_data(visit.project)):
        with found.at("real"):
            raise InputError("is not chosen", remedy="choose a file with the rows that were fitted")
    found.stop()
    return visit.change(
        lambda before: before.answer("look", **chosen), said, undoes="the choice of rows to compare with"
    )


def page(visit: Visit) -> Any:
    """Answer the frame: the page of the evaluation, or of the attacks."""
    file = _PAGES.get(visit.query.get("which", ""))
    if file is None:
        raise InputError("is not known", field="which", remedy="look at the page again")
    return framed_file(visit.studio.folder, f"{script.fitted(visit.project)}/internal/{file}")


def done(studio: Studio) -> bool:
    """Return whether the chosen run was evaluated."""
    return (studio.root / script.fitted(studio.project) / "internal" / _PAGES["report"]).is_file()


STEP = Step(
    key="look",
    title="Look",
    show=show,
    takes={"evaluate": evaluate, "audit": audit, "stop": lambda visit: stop(visit, "/look")},
    parts={"progress": progress, "page": page},
    same=script.look,
    done=done,
)
