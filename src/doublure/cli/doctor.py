"""``doublure doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import VerbResult


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor")(doctor)


def doctor(
    folder: Annotated[Path, typer.Argument(help="Where to look for runs that were cut off.")] = Path(),
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Say what this machine can do, and what would fail.

    Versions, threads, devices, the entropy source, file locking, free disk; encoded records that runs have left behind.
    """
    from doublure.doctor import describe, examine

    found = examine(folder)
    return VerbResult(data=found, text=describe(found))
