"""``doublure fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doublure.cli.options import (
    PLACE,
    Again,
    Config,
    Delta,
    Device,
    Epsilon,
    FitSeed,
    FitThreads,
    InDatabase,
    Json,
    Method,
    OfRows,
    Settings,
    settings,
)
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import SettingError

if TYPE_CHECKING:
    from doublure.planning import Plan


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("fit")(fit)


def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar=PLACE,
            help="The private data: a file, folder or pattern, s3://… and the like, or the URL of a database; see "
            "docs/scale.md, docs/images.md, docs/sources.md.",
        ),
    ],
    ledger: Annotated[str, typer.Option(metavar=PLACE, help="The ledger that pays.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The run folder to make.")],
    plan: Annotated[Path | None, typer.Option(help="A plan; or give schema, method, epsilon and delta.")] = None,
    schema: Annotated[Path | None, typer.Option(help="A schema file.")] = None,
    method: Method = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    set_: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was cut off.")] = False,
    seed: FitSeed = None,
    device: Device = "cpu",
    threads: FitThreads = None,
    memory: Annotated[
        str | None, typer.Option(help="What the process may hold, such as 2GB; a table is then read in parts.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Who reads and counts: local, or dask; see docs/scale.md.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Of a Dask cluster, such as tls://host:8786; none: workers of this machine.")
    ] = None,
    table: InDatabase = None,
    query: OfRows = None,
    again: Again = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Fit a plan to private data."""
    from doublure.ledger import Ledger
    from doublure.planning.explain import warning_lines
    from doublure.releasing.plain_words import opening
    from doublure.run.fitting import fit as run
    from doublure.run.ranks import FollowerRun, join_ranks, rank_device

    with join_ranks() as ranks:
        if isinstance(ranks, FollowerRun):  # rank 0 reports for all
            ranks.follow(data, device=rank_device(device), threads=threads)
            raise typer.Exit
        made = _make_plan(plan, schema, method, epsilon, delta, set_, out if resume else None)
        book = Ledger.open(ledger)
        with TerminalProgress() as progress:
            progress.tell(() if resume else warning_lines(made))
            syn = run(
                data,
                made,
                ledger=book,
                out=out,
                resume=resume,
                seed=seed,
                device=rank_device(device),
                threads=threads,
                memory=memory,
                engine=engine,
                scheduler=scheduler,
                again=again,
                table=table,
                query=query,
                progress=progress,
                ranks=ranks,
            )
    left = book.remaining
    text = opening(syn.guarantee.to_json(), syn.schema)
    text += f"\nWrote {out}. Left in {ledger}: ε = {left.epsilon:g}, δ = {left.delta:g}."
    if syn.bought:
        advice = f"Write them into your schema, and the next run need not buy them: {out / 'schema.yaml'} has them."
        text = "\n".join([text, "Bought:", *(f"  {line}" for line in syn.bought), advice])
    text = "\n".join([text, *(f"Note: {note}." for note in syn.notes)])
    entry = {key: syn.run["ledger"][key] for key in ("dataset", "path", "reservation", "sequence")}
    result = {"run": str(out), "guarantee": syn.guarantee.to_json(), "ledger": entry, "notes": list(syn.notes)}
    result["bought"] = list(syn.bought)
    return VerbResult(data=result, text=text)


def _make_plan(
    plan: Path | None,
    schema: Path | None,
    method: str | None,
    epsilon: float | None,
    delta: float | None,
    set_: list[str] | None,
    resumed: Path | None,
) -> Plan:
    from doublure.methods.choice import AUTO
    from doublure.planning import Plan
    from doublure.planning import plan as make

    parts = {"--schema": schema, "--method": method, "--epsilon": epsilon, "--delta": delta, "--set": set_}
    given = [flag for flag, value in parts.items() if value is not None]
    if plan is not None and given:
        raise SettingError("cannot stand beside --plan", field=given[0], remedy="the plan already says it")
    if plan is not None:
        return Plan.load(plan)
    if resumed is not None and not given:
        from doublure.run.folder import RunFolder

        return RunFolder.open(resumed).plan
    if schema is None:
        raise SettingError("is needed", field="--schema", remedy="give --plan, or --schema, --epsilon and --delta")
    return make(schema, method=AUTO if method is None else method, epsilon=epsilon, delta=delta, **settings(set_))
