"""The runs in a project's folder, and the commands that run or ran in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from doublure.errors import InputError
from doublure.run.folder import RunFolder
from doublure.studio.folder import ROOM
from doublure.studio.jobs import StudioJob, StudioJobs
from doublure.studio.step import Page
from doublure.studio.visit import Studio, Visit

State = Literal["none", "running", "done", "unfinished", "unbegun", "refused", "killed"]


class FoundRun(NamedTuple):
    """A run of the project.

    Attributes:
        name: Its folder's name.
        state: ``unfinished`` where it was paid for and can be resumed; ``unbegun`` where it was cut off before.
        job: The newest command that fitted it here.
        created: The day it was begun; empty where there is no folder.
        dataset: The data set that its ledger names.
    """

    name: str
    state: State
    job: StudioJob | None
    created: str = ""
    dataset: str = ""


def jobs_in(studio: Studio) -> StudioJobs:
    """Return the commands of a project."""
    return StudioJobs(studio.root / ROOM / "jobs", studio.root, studio.own_jobs)


def find_run(studio: Studio, name: str) -> FoundRun:
    """Return a run by its name, whether or not it is there."""
    job, path = jobs_in(studio).latest("fit", run=name), studio.root / name
    ended: State = (
        "none" if job is None else "running" if job.alive else "killed" if job.state == "killed" else "refused"
    )
    if not (path / "run.json").is_file() or path.is_symlink():
        return FoundRun(name, ended, job)
    try:
        folder = RunFolder.open(path)
        run = folder.run
        state: State = "done" if run.get("status") == "done" else "unfinished" if folder.unfinished else "unbegun"
    except InputError:
        return FoundRun(name, "unbegun", job)
    created, dataset = str(run.get("created", ""))[:10], str(folder.reservation.get("dataset", ""))
    return FoundRun(name, "running" if ended == "running" else state, job, created, dataset)


def all_runs(studio: Studio) -> list[FoundRun]:
    """Return the runs that lie in the folder, the oldest first."""
    names = [each.name for each in studio.folder.entries() if (each / "run.json").is_file()]
    return sorted((find_run(studio, name) for name in names), key=lambda run: (run.created, len(run.name), run.name))


def done_runs(studio: Studio) -> list[FoundRun]:
    """Return the finished ones."""
    return [run for run in all_runs(studio) if run.state == "done"]


def free_name(root: Path, stem: str, taken: Sequence[str] = ()) -> str:
    """Return a name that nothing in a folder has: the stem, or the stem with a number.

    Example:
        >>> from doublure.studio.runs import free_name
        >>> free_name(Path("."), "first", ["first"])
        'first-2'
    """
    number = 1
    while (
        (name := stem if number == 1 else f"{stem}-{number}") in taken
        or (root / name).exists()
        or (root / f"{name}.zip").exists()
    ):
        number += 1
    return name


def progress(visit: Visit) -> Page:
    """Answer a page that asks how far a command is; one that has ended asks for the page again."""
    job = jobs_in(visit.studio).find(visit.query.get("job", ""))
    context = {"job": job, "alive": job is not None and job.alive, "step": visit.query.get("step", "")}
    return Page("progress.html.j2", context)


def stop(visit: Visit, back: str) -> str:
    """Ask a command to stop at its next safe place."""
    job = jobs_in(visit.studio).find(visit.text("job"))
    if job is None:
        raise InputError("is not known", field="job", remedy="look at the page again")
    job.stop()
    visit.studio.status = "It stops where nothing is lost; what was bought is kept."
    return back
