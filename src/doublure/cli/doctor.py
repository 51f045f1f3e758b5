"""``doublure doctor``."""

from __future__ import annotations

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import Outcome


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("doctor")(doctor)


def doctor(as_json: Json = False, config: Config = None) -> Outcome:
    """Say what this machine can do and what would fail.

    Versions, threads, devices, the entropy source, file locking, free disk.
    """
    from doublure.doctor import describe, examine

    found = examine()
    return Outcome(data=found, text=describe(found))
