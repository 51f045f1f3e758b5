"""``doublure dossier``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import PLACE, Config, Force, Json
from doublure.cli.terminal import VerbResult
from doublure.errors import GateFailed, counted, escaped


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("dossier")(dossier)


def dossier(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the page.")] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar=PLACE, help="The ledger that it was charged to, if it was moved.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Who decided on cap and ε. It is not published.")] = None,
    role: Annotated[str | None, typer.Option(help="Their office.")] = None,
    date: Annotated[str | None, typer.Option(help="The day of the decision.")] = None,
    force: Force = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Write a privacy officer's file of a run. Internal.

    It holds the claim, the assumptions to sign, who saw what, what was published, what attacks showed, and the ledger.
    It is written in any case; a part that is missing, edited or of another run ends with exit code 4. A file that is
    there already, and may be filled in, is replaced by --force alone.
    """
    from doublure.releasing.dossier import CapDecision
    from doublure.releasing.dossier import dossier as drawn
    from doublure.report import named_page, write_private
    from doublure.run.folder import RunFolder
    from doublure.run.published import refuse_inside
    from doublure.support.files import check_output, refuse_unwritable

    RunFolder.open(run)
    refuse_inside(run, out)
    page = named_page(out) if out is not None else run / "internal" / "dossier.html"
    check_output(page, forced=force)
    refuse_unwritable(page)
    decision = CapDecision(name=name, role=role, date=date)
    made = drawn(run, ledger=ledger, decision=decision)
    write_private(page, made.page)
    gate = None
    if made.problems:
        what = f"{counted(len(made.problems), 'part')} cannot be trusted: {' '.join(made.problems).rstrip('.')}"
        gate = GateFailed(what, field="dossier", remedy=f"do not sign it; it is written to {escaped(str(page))}")
    data = {"page": str(page), "internal": True, "problems": list(made.problems)}
    return VerbResult(data=data, text=f"Wrote {page} (internal: do not publish).", gate=gate)
