"""``doublure datasets list|fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.cli.verb import VerbApp


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Public data sets to try things on.")
    group.command("list")(list_)
    group.command("fetch")(fetch)
    app.add_typer(group, name="datasets")


def list_(as_json: Json = False, config: Config = None) -> VerbResult:
    """List the data sets doublure knows."""
    from doublure import datasets
    from doublure.schema.kinds import KINDS

    known = [datasets.info(name) for name in datasets.names()]
    wide = max(len(one.name) for one in known)
    lines = [
        f"{one.name:<{wide}}  {one.kind:<6}  {one.rows:>7} {KINDS[one.kind].lines:<8}  {one.licence}; {one.title}"
        for one in known
    ]
    rows = [{"name": one.name, "kind": one.kind, "rows": one.rows, "licence": one.licence} for one in known]
    return VerbResult(data={"datasets": rows}, text="\n".join(lines))


def fetch(
    name: Annotated[str, typer.Argument(help="A name from the list.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to put it.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Download a data set and check its checksums."""
    from doublure import datasets

    with TerminalProgress() as progress:
        current = ""

        def tell(file: str, received: int, expected: int | None) -> None:
            nonlocal current
            if file != current:
                current = file
                progress.stage(file, expected)
            progress.at(received)

        folder = datasets.fetch(name, folder=out, progress=tell)
    return VerbResult(data={"name": name, "folder": str(folder)}, text=f"{name} is in {folder}")
