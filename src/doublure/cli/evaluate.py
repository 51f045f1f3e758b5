"""``doublure evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import Outcome, TerminalProgress


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("evaluate")(evaluate)


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    real: Annotated[Path, typer.Option(help="The data it was fitted on.")],
    holdout: Annotated[Path | None, typer.Option(help="Real data kept aside.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the page.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Compare the understudy with the real data. Internal: the page is not to be published."""
    from doublure import evaluate as measures
    from doublure.report import check_places
    from doublure.run_folder import load

    syn = load(run)
    page = out or run / "internal" / "report.html"
    figures = page.with_name(f"{page.stem}.json") if page.name else page
    check_places(page, figures, real, holdout)
    with TerminalProgress() as progress:
        report = measures.report(syn, real, holdout, progress=progress)
    report.save(page, figures)
    text = f"{report}\nWrote {page} (internal: computed on real data, do not publish)."
    return Outcome(data={"page": str(page), "internal": True, "report": json.loads(report.to_json())}, text=text)
