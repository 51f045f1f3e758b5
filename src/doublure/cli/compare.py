"""``doublure compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import Outcome, TerminalProgress
from doublure.errors import SettingError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("compare")(compare)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of the same data.")],
    real: Annotated[Path, typer.Option(help="The data they were fitted on.")],
    holdout: Annotated[Path | None, typer.Option(help="Real data kept aside.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the figures as JSON.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Put runs of our own side by side. Internal: computed on real data."""
    from doublure import evaluate as measures
    from doublure.files import check_output, write_json
    from doublure.run_folder import load

    names = [str(run) for run in runs]
    if len(set(names)) < len(names):
        raise SettingError("is named twice", field="runs", remedy="name each run folder once")
    if out is not None:
        check_output(out, real, holdout, replaces="comparison")
    with TerminalProgress() as progress:
        found = measures.compare({str(run): load(run) for run in runs}, real, holdout, progress=progress)
    figures = json.loads(found.to_json())
    if out is not None:
        write_json(out, figures, mode=0o600)
    text = str(found) + (f"\nWrote {out} (internal)." if out else "")
    return Outcome(data=figures, text=text)
