"""``doublure release``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json, Sampling, Seed, settings
from doublure.cli.terminal import Outcome, TerminalProgress


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("release")(release)


def release(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    rows: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows, at least 1.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The bundle's folder.")],
    ledger: Annotated[Path | None, typer.Option(help="The ledger, if it has moved since the fit.")] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="FORMAT", help="csv or parquet, npz for images; all if left out."),
    ] = None,
    spreadsheet_safe: Annotated[bool, typer.Option("--spreadsheet-safe", help="Defuse formulas in text.")] = False,
    title: Annotated[str | None, typer.Option(help="The card's title.")] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask.")] = None,
    sampling: Sampling = None,
    seed: Seed = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Write a bundle to publish: data, card and dictionary."""
    from doublure.releasing.bundle import release as write
    from doublure.run.loading import load
    from doublure.schema.kinds import KINDS

    wanted = [form.strip() for word in formats or () for form in word.split(",") if form.strip()]
    syn = load(run).sampling_with(**settings(sampling))
    with TerminalProgress() as progress:
        card = write(
            syn,
            out,
            n=rows,
            seed=seed,
            ledger=ledger,
            formats=None if formats is None else wanted,
            spreadsheet_safe=spreadsheet_safe,
            title=title,
            contact=contact,
            progress=progress,
        )
    records = KINDS[syn.schema.kind].records
    sentence = card["guarantee"]["sentence"]
    text = f"Wrote {out} with {rows} artificial {records}.\n{sentence}"
    if syn.guarantee.kind == "none":
        text = f"*** {sentence} ***\nWrote {out} with {rows} {records} that nothing protects."
    text = "\n".join([text, *(f"Note: {note}." for note in syn.notes)])
    return Outcome(data={"bundle": str(out), "card": card}, text=text)
