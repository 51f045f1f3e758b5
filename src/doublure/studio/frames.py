"""Finished pages and received ones, in a frame that may do nothing: no script, no origin, nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from doublure.errors import InputError
from doublure.studio.folder import ProjectFolder

POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""The content policy of a framed page: its browser gives it an origin of its own, and runs and loads nothing."""
LARGEST = 100_000_000
"""Bytes of a page that a frame can show, as of other files that are read whole (:mod:`doublure.support.files`)."""


def framed(page: str | bytes) -> Any:
    """Return a page as the answer that a frame shows."""
    from starlette.responses import Response

    return Response(page, media_type="text/html; charset=utf-8", headers={"content-security-policy": POLICY})


def framed_file(folder: ProjectFolder, name: str) -> Any:
    """Return a page that lies in the project's folder as the answer that a frame shows.

    Raises:
        InputError: There is no such file, or it is too large.
    """
    return framed(page_of(folder, name))


def page_of(folder: ProjectFolder, name: str) -> bytes:
    """Return the bytes of a page that lies in the project's folder.

    Raises:
        InputError: There is no such file, or it is too large.
    """
    with folder.open(name) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InputError("is too large to be shown", field=name, remedy="open it with a browser yourself")
    return content
