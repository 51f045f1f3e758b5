"""``doublure compare``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import PLACE, Config, Json
from doublure.cli.terminal import TerminalProgress, VerbResult, console
from doublure.errors import SettingError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("compare")(compare)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of the same data.")],
    real: Annotated[str, typer.Option(metavar=PLACE, help="The data they were fitted on.")],
    holdout: Annotated[str | None, typer.Option(metavar=PLACE, help="Real data kept aside.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the page.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Put runs of our own side by side. Internal: computed on real data."""
    from doublure import evaluate as measures
    from doublure.report import check_places, named_page
    from doublure.run.loading import load

    names = [str(run) for run in runs]
    if len(set(names)) < len(names):
        raise SettingError("is named twice", field="runs", remedy="name each run folder once")
    out = None if out is None else named_page(out)
    figures = out.with_name(f"{out.stem}.json") if out and out.name else out
    if out is not None:
        check_places(out, figures, real, holdout, form="comparison")
    with TerminalProgress() as progress:
        found = measures.compare({str(run): load(run) for run in runs}, real, holdout, progress=progress)
    screen = console()
    text = found.text(screen.width if screen.is_terminal else None)
    said = VerbResult(data=json.loads(found.to_json()), text=text)
    if out is None:
        return said
    found.save(out, figures)
    return replace(said, text=f"{said.text}\nWrote {out} (internal: computed on real data, do not publish).")
