"""``doublure sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Given, Json, Seed, pairs
from doublure.cli.terminal import Outcome


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sample")(sample)


def sample(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    rows: Annotated[int, typer.Option("-n", "--rows", min=0, help="How many rows.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A .parquet or .csv file.")],
    given: Given = None,
    seed: Seed = None,
    spreadsheet_safe: Annotated[bool, typer.Option("--spreadsheet-safe", help="Defuse formulas in text.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Make artificial rows; it costs nothing."""
    from doublure.data.writing import check_ending, write_table
    from doublure.run_folder import load

    check_ending(out)
    syn = load(run)
    chunks = syn.sample_chunks(rows, given=pairs(given, "--given"), seed=seed)
    metadata = {"watermark": syn.guarantee.watermark, "guarantee": syn.guarantee.sentence}
    count = write_table(chunks, out, syn.schema, spreadsheet_safe=spreadsheet_safe, metadata=metadata)
    result = {"path": str(out), "rows": count, "watermark": syn.guarantee.watermark}
    return Outcome(data=result, text=f"Wrote {count} artificial rows to {out}. {syn.guarantee.watermark}.")
