"""The routes of the studio: a page a step, what takes its forms, and styles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from doublure.errors import DoublureError, defect_place
from doublure.studio.guard import LOOPBACK, Guard
from doublure.studio.pages import render, static
from doublure.studio.step import Step
from doublure.studio.steps import STEPS
from doublure.studio.visit import Stale, Studio, Visit, as_fields

_MOST_FIELDS, _MOST_FILES = 20_000, 4
_LARGEST_FIELD = 10_000_000
LARGEST_UPLOAD = 2_000_000_000
"""Bytes of a form with its files: above, a copy through the browser is of no use to anybody."""


def studio_app(studio: Studio, *, token: str, hosts: tuple[str, ...] = LOOPBACK, cookie: str = "doublure") -> Any:
    """Return the application, guarded.

    Args:
        studio: The studio of one folder.
        token: What the first address has to hold.
        hosts: Names that a browser may ask for.
        cookie: The name of the cookie.
    """
    routes = [
        Route("/", _home(studio)),
        Route("/static/{name}", _static),
        Route("/undo", _undo(studio), methods=["POST"]),
    ]
    for step in STEPS:
        routes.append(Route(f"/{step.key}", _shown(studio, step)))
        routes += [Route(f"/{step.key}/{word}", _taken(studio, step, word), methods=["POST"]) for word in step.takes]
        routes += [
            Route(f"/{step.key}/{word}", _part(studio, step, word)) for word in step.parts if word not in step.takes
        ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused, Exception: _defect})
    return Guard(app, token=token, hosts=hosts, cookie=cookie)


def page(step: Step, visit: Visit, status: int = 200) -> Response:
    """Return a step's page."""
    shown = step.show(visit)
    studio = visit.studio
    context = {
        "visit": visit,
        "project": studio.project,
        "step": step,
        "steps": [(each, each.done(studio)) for each in STEPS],
        "following": next((after for before, after in pairwise(STEPS) if before is step and not after.aside), None),
        "same": step.same(studio.project),
        "status": studio.status,
        "can_undo": studio.can_undo,
        "undoes": studio.undoes,
        **shown.context,
    }
    studio.status = ""
    return HTMLResponse(render(shown.template, context), status)


def _home(studio: Studio) -> Callable[[Request], Response]:
    def home(request: Request) -> Response:
        way = [step for step in STEPS if not step.aside]
        first = next((step for step in way if not step.done(studio)), way[-1])
        return RedirectResponse(f"/{first.key}", 303)

    return home


def _static(request: Request) -> Response:
    found = static(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return Response(found[0], media_type=found[1])


def _undo(studio: Studio) -> Callable[[Request], Any]:
    async def undo(request: Request) -> Response:
        async with _entered(studio, request) as visit:
            back = visit.text("step")
            step = next((each for each in STEPS if each.key == back), STEPS[0])
            return await run_in_threadpool(_answered, step, visit, lambda each: _undone(each, step))

    return undo


def _undone(visit: Visit, step: Step) -> str:
    visit.studio.undo(visit.version)
    return f"/{step.key}"


def _shown(studio: Studio, step: Step) -> Callable[[Request], Response]:
    def show(request: Request) -> Response:
        visit = Visit(studio=studio, query=dict(request.query_params))
        try:
            return page(step, visit)
        except DoublureError as error:
            return HTMLResponse(render("refused.html.j2", {"error": error, "steps": STEPS, "step": step}), 422)

    return show


def _part(studio: Studio, step: Step, word: str) -> Callable[[Request], Response]:
    def part(request: Request) -> Response:
        try:
            found = step.parts[word](Visit(studio=studio, query=dict(request.query_params)))
        except DoublureError as error:
            return PlainTextResponse(str(error), 422)
        if isinstance(found, Response):
            return found
        return HTMLResponse(render(found.template, found.context))

    return part


def _taken(studio: Studio, step: Step, word: str) -> Callable[[Request], Any]:
    async def take(request: Request) -> Response:
        async with _entered(studio, request) as visit:
            return await run_in_threadpool(_answered, step, visit, step.takes[word])

    return take


def _answered(step: Step, visit: Visit, take: Callable[[Visit], str]) -> Response:
    """Take a form and send the browser on; what was refused is shown on the step's page."""
    try:
        return RedirectResponse(take(visit), 303)
    except Stale as error:
        again = Visit(studio=visit.studio, query=visit.query, errors=as_fields(error))
        return page(step, again, 409)
    except DoublureError as error:
        again = Visit(
            studio=visit.studio,
            query=visit.query,
            form=visit.form,
            lists=visit.lists,
            errors=as_fields(error),
        )
        return page(step, again, 422)


@asynccontextmanager
async def _entered(studio: Studio, request: Request) -> AsyncIterator[Visit]:
    """Yield what was sent; its files are open, and on the disk but for their beginnings."""
    length = request.headers.get("content-length", "")
    with_files = request.headers.get("content-type", "").startswith("multipart/")
    largest = LARGEST_UPLOAD if with_files else _LARGEST_FIELD  # fields are held in memory, and files are not
    if not (length.isascii() and length.isdigit() and len(length) < 20) or int(length) > largest:
        raise HTTPException(413)
    if "transfer-encoding" in request.headers:  # it counts, and the length that is stated beside it does not
        raise HTTPException(413)
    async with request.form(max_fields=_MOST_FIELDS, max_files=_MOST_FILES, max_part_size=_LARGEST_FIELD) as sent:
        yield _read(studio, request, sent)


def _read(studio: Studio, request: Request, sent: FormData) -> Visit:
    form: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    uploads: dict[str, tuple[str, BinaryIO]] = {}
    for name, value in sent.multi_items():
        if isinstance(value, UploadFile):
            if value.filename:
                uploads[name] = (PurePosixPath(value.filename.replace("\\", "/")).name, value.file)
        else:
            form[name] = value
            lists[name] = (*lists.get(name, ()), value)
    return Visit(studio=studio, query=dict(request.query_params), form=form, lists=lists, uploads=uploads)


def _refused(request: Request, error: Exception) -> Response:
    code = getattr(error, "status_code", 400)
    said = {
        404: "There is no such page.",
        405: "This page takes no such request.",
        413: "This is too large: put the file into the folder by hand.",
    }.get(code, "This cannot be read.")
    return PlainTextResponse(said, code)


def _defect(request: Request, error: Exception) -> Response:
    """Answer a defect by its place alone: its text may hold private values."""
    return PlainTextResponse(
        f"A defect of doublure: {type(error).__name__} at {defect_place(error)}. Please report it.", 500
    )
