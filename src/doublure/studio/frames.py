"""Finished pages and received ones, in a frame that may do nothing: no script, no origin, nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doublure.errors import InputError, RunFolderError

POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""The content policy of a framed page: its browser gives it an origin of its own, and runs and loads nothing."""
_LARGEST = 100_000_000


def framed(page: str | Path) -> Any:
    """Return a page as the answer that a frame shows.

    Args:
        page: The page, or its file.

    Raises:
        InputError: There is no such file, or it is no page that a frame can show.
    """
    from starlette.responses import Response

    if isinstance(page, Path):
        if not page.is_file() or page.is_symlink():
            raise RunFolderError("is not there", field=page.name, remedy="make it again")
        if page.stat().st_size > _LARGEST:
            raise InputError("is too large to be shown", field=page.name, remedy="open it with a browser yourself")
        content = page.read_bytes()
    else:
        content = page.encode()
    return Response(content, media_type="text/html; charset=utf-8", headers={"content-security-policy": POLICY})
