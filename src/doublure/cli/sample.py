"""``doublure sample``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import PLACE, Config, Device, Force, Given, Json, Sampling, Seed, Shares, pairs, settings
from doublure.cli.options import shares as shares_of
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import SettingError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sample")(sample)


def sample(
    run: Annotated[Path, typer.Argument(help="A run folder, or a published generator.")],
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar=PLACE,
            help="A .parquet, .csv, .xlsx, .jsonl, .feather, .dta or .sav file, a folder of Parquet parts; images: "
            ".npz, .png or a folder; series: .npz; related tables: a folder. Any of them in a store, such as s3://…. "
            "Or a table: duckdb:///file.db?table=people, postgresql://user@host/database/people.",
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--rows",
            min=1,
            help="How many rows, images, series (each of several rows) or units, at least 1; left out, as many as the "
            "units have.",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Time series: steps of each, in windows that follow one another; -n is then 1."),
    ] = None,
    exogenous: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --steps: a CSV of public readings, such as a forecast, in place of the schema's."
        ),
    ] = None,
    given: Given = None,
    shares: Shares = None,
    sampling: Sampling = None,
    seed: Seed = None,
    syntheses: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Write so many tables, each from another draw of what noise leaves open, for intervals: rows.csv "
            "becomes rows-01.csv, rows-02.csv, …",
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="How many draw the parts of a folder; the rows are the same.")
    ] = 1,
    device: Device = "cpu",
    spreadsheet_safe: Annotated[bool, typer.Option("--spreadsheet-safe", help="Defuse formulas in text.")] = False,
    force: Force = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Make synthetic records; it costs nothing."""
    from doublure.data.databases.address import is_database
    from doublure.data.databases.streaming import table_output
    from doublure.releasing.plain_words import opening_warning
    from doublure.releasing.writing import WorkerProcesses, records_in_words, write_sample, write_syntheses
    from doublure.run.continuing import read_readings
    from doublure.run.loading import load
    from doublure.schema.kinds import KINDS
    from doublure.support.devices import use_device
    from doublure.support.outputs import output

    use_device(device)
    own = settings(sampling)
    syn = load(run).sampling_with(**own)
    asked = _asked(given, shares)
    default = syn.default_n if steps is None else 1
    count = default if rows is None else rows
    if syntheses is not None and steps is not None:
        raise SettingError("has no syntheses", field="--steps", remedy="leave one of the two out")
    if syntheses is not None and (asked or processes > 1):
        field = "--processes" if processes > 1 else "--given and --shares"
        raise SettingError("are not for syntheses", field=field, remedy="leave it out")
    opened = table_output if is_database(out) else output
    with ExitStack() as open_outputs, TerminalProgress() as progress:
        if syntheses is None:
            files = [out]
            count = write_sample(
                syn,
                open_outputs.enter_context(opened(out, forced=force)),
                count,
                given=asked,
                seed=seed,
                spreadsheet_safe=spreadsheet_safe,
                progress=progress,
                others=WorkerProcesses(run=run, settings=own, processes=processes),
                steps=steps,
                exogenous=None if exogenous is None else read_readings(exogenous),
            )
        else:
            files = _numbered(out, syntheses)
            paths = [open_outputs.enter_context(output(each, forced=force)) for each in files]
            count = write_syntheses(syn, paths, count, seed=seed, spreadsheet_safe=spreadsheet_safe, progress=progress)
    result = {"path": out, "rows": count, "watermark": syn.guarantee.watermark, "notes": list(syn.notes)}
    if syntheses is not None:
        result["files"] = files
    records = KINDS[syn.schema.kind].records
    to = out if syntheses is None else f"each of {files[0]} … {files[-1]}"
    said = opening_warning(syn.guarantee.model_dump(), records) or f"{syn.guarantee.watermark}."
    text = f"Wrote {count:,} synthetic {records_in_words(syn.schema, steps)} to {to}. {said}"
    return VerbResult(data=result, text="\n".join([text, *(f"Note: {note}." for note in syn.notes)]))


def _numbered(out: str, syntheses: int) -> list[str]:
    """Return a file name for each synthesis: its number before the ending.

    Raises:
        SettingError: The path has no ending, or is a table of a database.
    """
    from doublure.data.databases.address import is_database

    stem, dot, ending = out.rpartition(".")
    if not dot or "/" in ending or is_database(out):
        raise SettingError("needs a file's ending with --syntheses", field=f"-o {out}", remedy="write -o rows.csv")
    return [f"{stem}-{number:02}.{ending}" for number in range(1, syntheses + 1)]


def _asked(given: list[str] | None, shares: list[str] | None) -> dict[str, object]:
    """Return the conditions on every row, and the distributions of columns.

    Raises:
        SettingError: A column stands in both.
    """
    fixed, spread = pairs(given, "--given"), shares_of(shares)
    both = next((name for name in spread if name in fixed), None)
    if both is not None:
        raise SettingError("is given too", field=f"--shares {both}", remedy="take one of the two away")
    return {**fixed, **spread}
