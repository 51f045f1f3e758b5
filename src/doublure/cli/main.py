"""``doublure``: the same verbs as in Python.

Exit codes: 0 done, 2 bad input, 3 budget refused, 4 a gate failed, 130 interrupted. With ``--json`` one object goes to
stdout and progress to stderr.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import Any

import typer

from doublure._version import __version__
from doublure.cli.verb import VerbApp
from doublure.errors import Interrupted

app = VerbApp(
    name="doublure",
    help="Train a synthesizer on private data and publish synthetic data, with a privacy guarantee.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERBS = (
    "demo", "studio", "schema", "budget", "plan", "fit", "federate", "sample", "label", "public", "evaluate",
    "compare", "inspect", "release", "verify", "keys", "datasets", "audit", "dossier", "doctor",
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Train a synthesizer on private data and publish synthetic data."""


for _verb in VERBS:
    importlib.import_module(f"doublure.cli.{_verb}").register(app)


def run(arguments: list[str] | None = None) -> Any:
    """Run the command line and end the process with its exit code."""
    from doublure.cli.terminal import run_guarded

    code = run_guarded(app, arguments)
    # The work is done: a second signal would only show a traceback of the libraries' own exit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if code == Interrupted.exit_code:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)  # all files are closed, and freeing millions of records one by one takes seconds
    sys.exit(code)
