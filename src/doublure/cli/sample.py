"""``doublure sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Given, Json, Sampling, Seed, pairs, settings
from doublure.cli.terminal import Outcome, TerminalProgress


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sample")(sample)


def sample(
    run: Annotated[Path, typer.Argument(help="A run folder, or a published generator.")],
    rows: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows, at least 1.")],
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            help="A .parquet or .csv file; images: .npz, .png or a folder; series: .npz too; related tables: a folder.",
        ),
    ],
    given: Given = None,
    sampling: Sampling = None,
    seed: Seed = None,
    spreadsheet_safe: Annotated[bool, typer.Option("--spreadsheet-safe", help="Defuse formulas in text.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Make synthetic records; it costs nothing."""
    from doublure.releasing.writing import write_sample
    from doublure.run.loading import load
    from doublure.schema.kinds import KINDS
    from doublure.support.files import check_output

    check_output(out)
    syn = load(run).sampling_with(**settings(sampling))
    asked = pairs(given, "--given")
    with TerminalProgress() as progress:
        count = write_sample(
            syn, out, rows, given=asked, seed=seed, spreadsheet_safe=spreadsheet_safe, progress=progress
        )
    result = {"path": str(out), "rows": count, "watermark": syn.guarantee.watermark}
    records = KINDS[syn.schema.kind].records
    return Outcome(data=result, text=f"Wrote {count} synthetic {records} to {out}. {syn.guarantee.watermark}.")
