"""``doublure studio``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import VerbResult

LOCAL = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("studio")(studio)


def studio(
    folder: Annotated[
        Path, typer.Argument(help="The project's folder; nothing outside it is read or written.")
    ] = Path(),
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port; a free one if left out.")] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at: this machine alone, unless told otherwise.")
    ] = LOCAL,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open no browser.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Lead from a table to a bundle in a browser.

    The address is printed with a token, which lets its holder in. Ctrl-C ends it; what was decided stays in FOLDER.
    """
    return serve_until_interrupted(folder, host=host, port=port, browser=not no_browser)


def serve_until_interrupted(folder: Path, *, host: str = LOCAL, port: int | None = None, browser: bool) -> VerbResult:
    """Serve a folder until Ctrl-C, which is how a studio ends: done, and no error."""
    from doublure.studio.server import serve

    with suppress(KeyboardInterrupt):
        serve(folder, host=host, port=port, browser=browser, say=lambda url: print(url, flush=True))  # noqa: T201
    return VerbResult(data={"folder": str(folder)}, text="The studio ended. What was decided is in project.yaml.")
