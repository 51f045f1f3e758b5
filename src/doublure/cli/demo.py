"""``doublure demo``: every step from data to bundle on bundled real data, offline, by the public API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import TerminalProgress, VerbResult, console

if TYPE_CHECKING:
    import pandas as pd

EPSILON, DELTA, CAP = 1.0, 1e-6, 3.0
ROWS = 24_421


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("demo")(demo)


def demo(
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Write the data, its codebook and its schema into this folder, or -o, and nothing else."
        ),
    ] = False,
    studio: Annotated[
        bool, typer.Option("--studio", help="Write them into a folder, and open the studio on it; see docs/studio.md.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="A folder to make; doublure-demo if left out.")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="With --studio: print its address, and open no browser.")
    ] = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Walk the whole way with bundled census data.

    Schema, plan, ledger, fit, sample, report, release. Ends with exit code 4 if models trained on the synthetic
    rows predict no better than independent columns do.
    """
    if studio:
        return _studio(out or Path("doublure-demo"), browser=not no_browser)
    return _files(out or Path()) if files else _walk(out or Path("doublure-demo"))


def _studio(folder: Path, *, browser: bool) -> VerbResult:
    """Open the studio on the bundled data and its codebook: no schema is there yet."""
    from doublure.cli.studio import serve_until_interrupted
    from doublure.datasets import demo_files
    from doublure.support.extras import require_studio

    require_studio("demo --studio")
    demo_files(folder)
    return serve_until_interrupted(folder, browser=browser)


def _files(folder: Path) -> VerbResult:
    """Write the files of the README's commands; equal files that are there already stay."""
    from doublure import datasets
    from doublure.datasets.demo import FILES

    written = datasets.demo_files(folder)
    names = ", ".join(FILES[:-1]) + f" and {FILES[-1]}"
    where = "here" if folder == Path() else f"in {folder}"
    text = f"{names} are {where} already, equal to the bundled ones."
    if written:
        text = f"Wrote {', '.join(str(path) for path in written)}: bundled census data, its codebook and its schema."
    result = {"files": [str(folder / name) for name in FILES], "written": [str(path) for path in written]}
    return VerbResult(data=result, text=text)


def _walk(out: Path) -> VerbResult:
    import doublure as db
    from doublure.errors import GateFailed, InputError
    from doublure.releasing.bundle import verify
    from doublure.support.files import check_output, holds_anything

    check_output(out)
    if holds_anything(out):
        raise InputError("is not empty", field=out, remedy="choose another folder with -o, or remove it")
    out.mkdir(parents=True, exist_ok=True)
    screen = console(stderr=True)

    def stop(number: int, title: str, text: str) -> None:
        screen.print(f"\n{number}. {title}", style="bold")
        screen.print(f"   {text}", style="dim")

    stop(1, "Data", "UCI Adult, 32,561 census records bundled with doublure; a fixed quarter is kept for testing.")
    train, holdout = db.datasets.demo_split()
    stop(2, "Schema", f"What is public, from the codebook: {db.datasets.adult_schema_path().name}")
    schema = db.Schema.load(db.datasets.adult_schema_path())
    (out / "adult.schema.yaml").write_bytes(db.datasets.adult_schema_path().read_bytes())
    stop(3, "Plan", "What the run will do and cost. No record is read yet.")
    plan = db.plan(schema, method="auto", epsilon=EPSILON, delta=DELTA)
    screen.print(plan.explain())
    stop(
        4,
        "Ledger",
        f"{out / 'adult.ledger'}: a cap of ε = {CAP:g} over all runs; the charge is on disk before the data is opened.",
    )
    ledger = db.Ledger.create(out / "adult.ledger", dataset="adult", epsilon=CAP, delta=1e-4)
    stop(5, "Fit", "The generator never sees a record. It is fitted to noisy tables of counts.")
    with TerminalProgress() as progress:
        syn = db.fit(train, plan, ledger=ledger, out=out / "run", seed=0, progress=progress)
    stop(6, "Sample", "As many rows as you like: sampling costs no budget.")
    screen.print(_that_fit(syn.sample(5, seed=7), screen.width))
    stop(7, "Report", "Synthetic rows compared with the held-out quarter. Internal: do not publish.")
    report = db.evaluate.report(syn, train, holdout)
    page = out / "run" / "internal" / "report.html"
    report.save(page, page.with_suffix(".json"))
    screen.print(str(report))
    if not _predicts(report):
        raise GateFailed(
            "models trained on the synthetic rows predict no better than independent columns",
            field="verdict",
            remedy=f"see {page}",
        )
    stop(8, "Release", "What may be published: data, card and dictionary.")
    db.release(syn, out / "bundle", n=ROWS, title="Synthetic census records")
    verify(out / "bundle", ledger=ledger)
    lines = [
        "",
        f"Guarantee   {syn.guarantee.sentence}",
        f"Left        ε = {ledger.remaining.epsilon:g} of {CAP:g} in {out / 'adult.ledger'}",
        f"Report      {page}   (internal)",
        f"Bundle      {out / 'bundle'}   (open card.html)",
    ]
    result = {"out": str(out), "guarantee": syn.guarantee.to_json(), "report": str(page), "bundle": str(out / "bundle")}
    return VerbResult(data=result, text="\n".join(lines))


def _that_fit(rows: pd.DataFrame, width: int) -> str:
    """Return the first rows side by side: as many as fit into a line, at least one."""
    for count in range(len(rows), 0, -1):
        text: str = rows.head(count).T.to_string()
        if max(map(len, text.split("\n"))) <= width:
            break
    return text


def _predicts(report: Any) -> bool:
    """Whether models learn more from the synthetic rows than from independent columns, the baseline."""
    ways = [score.way for score in report.measured.scores if score.key == "auc"]
    return any(way is not None and way > 0 for way in ways)
