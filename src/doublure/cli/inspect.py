"""``doublure inspect``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Device, Json, Threads
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import SettingError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("inspect")(inspect)


def inspect(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    against: Annotated[
        list[Path] | None,
        typer.Option(help="A run folder that is known to be right; several say what is usual."),
    ] = None,
    images: Annotated[int, typer.Option(help="How many records of each run are tested.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Fixes the samples.")] = 0,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the page.")] = None,
    device: Device = "cpu",
    threads: Threads = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Look for signs of a broken pipeline in synthetic records alone. No real record is read."""
    from doublure import evaluate as measures
    from doublure.report import check_places, named_page
    from doublure.run.loading import load
    from doublure.run.published import refuse_inside
    from doublure.support.devices import use_device, use_threads

    places = [os.path.realpath(place) for place in (run, *(against or []))]
    if len(set(places)) < len(places):
        raise SettingError("names a run twice", field="against", remedy="name runs that are others, each once")
    refuse_inside(run, out)
    use_device(device)
    syn, right = load(run), [load(place) for place in against or []]
    page = named_page(out) if out is not None else run / "internal" / "inspection.html"
    figures = page.with_name(f"{page.stem}.json") if page.name else page
    check_places(page, figures, form="inspection")
    if threads is not None:
        use_threads(threads)
    with TerminalProgress() as progress:
        found = measures.inspect(syn, right, images=images, seed=seed, progress=progress)
    found.save(page, figures)
    data = {"page": str(page), "inspection": json.loads(found.to_json())}
    return VerbResult(data=data, text=f"{found}\nWrote {page}.")
