"""``doublure federate simulate|init|logs``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import PLACE, Again, Config, FitSeed, FitThreads, Json
from doublure.cli.terminal import TerminalProgress, VerbResult, console, on_stderr
from doublure.cli.verb import VerbApp
from doublure.errors import counted

_Plan = Annotated[Path, typer.Option(help="The plan; its schema has federated: {max_silos: 1}.")]
_TYPISTS = ("coordinator", "each owner", "coordinator", "coordinator")
_Ledger = Annotated[str, typer.Option(metavar=PLACE, help="The coordinator's ledger.")]
_Out = Annotated[Path, typer.Option("-o", "--out", help="The run folder to make.")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Fit a plan to records that stay with their owners.")
    group.command("simulate")(simulate)
    group.command("init")(init)
    group.command("logs")(logs)
    app.add_typer(group, name="federate")


def simulate(
    plan: _Plan,
    clients: Annotated[Path, typer.Option(help="A folder; each file or subfolder in it is a client's data.")],
    ledger: _Ledger,
    out: _Out,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was cut off.")] = False,
    again: Again = False,
    units: Annotated[
        Path | None, typer.Option(help="A YAML file of each client's public number of units, such as north.csv: 2500.")
    ] = None,
    one_unit: Annotated[
        bool, typer.Option("--one-unit", help="Each client is one unit, and lots are drawn here.")
    ] = False,
    seed: FitSeed = None,
    threads: FitThreads = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Fit with all clients in this process, through Flower's messages."""
    from doublure.federated import declared
    from doublure.federated.simulate import simulate as run
    from doublure.ledger import Ledger
    from doublure.planning import Plan

    book = Ledger.open(ledger)

    def tell(line: str) -> None:
        with on_stderr():
            console(stderr=True).print(f"doublure: {line}")

    with TerminalProgress() as progress:
        syn = run(
            clients,
            Plan.load(plan),
            ledger=book,
            out=out,
            resume=resume,
            again=again,
            units=None if units is None else declared.read(units),
            one_unit=one_unit,
            seed=seed,
            threads=threads,
            progress=progress,
            said=tell,
        )
    federated = syn.run["federated"]
    missed = sum(bool(each["missed"]) for each in federated["rounds"])
    left = book.remaining
    lines = [
        syn.guarantee.sentence,
        f"Wrote {out}. Left in {ledger}: ε = {left.epsilon:g}, δ = {left.delta:g}.",
        f"{syn.run['owners']['answered']} of {syn.run['owners']['of']} clients, "
        f"{counted(len(federated['rounds']), 'round')}; "
        + (f"in {missed} of them some were missed: see run.json." if missed else "none was missed."),
    ]
    known = federated.get("epsilon_where_lots_are_known")
    if known is not None:
        lines.append(
            f"An observer who sees which owners are asked, as on the network, knows the lots: ε = {known:.3g} for them."
        )
    result = {"run": str(out), "guarantee": syn.guarantee.to_json(), "federated": federated}
    return VerbResult(data=result, text="\n".join(lines))


def init(
    app: Annotated[Path, typer.Argument(metavar="APP", help="The folder to make.")],
    plan: _Plan = Path("plan.json"),
    ledger: _Ledger = "ledger",
    out: _Out = Path("run"),
    clients: Annotated[int, typer.Option(min=1, help="How many owners there have to be.")] = 2,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for answers to one question.")] = 600.0,
    host: Annotated[
        list[str] | None,
        typer.Option(help="Name or address by which owners reach the SuperLink; repeat it. Left out: localhost."),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The SuperLink's port.")] = 8000,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Write a Flower app, certificates and Flower's config entry; print what to type."""
    from doublure.federated.simulate import require_flower

    require_flower()
    from doublure.federated import network
    from doublure.federated.app import init as write

    hosts = host or ["localhost"]
    written = write(app, plan=plan, ledger=ledger, out=out, clients=clients, timeout=timeout, hosts=hosts, port=port)
    typed = network.commands(app, host=hosts[0], port=port)
    lines = [
        f"Wrote {app}: {', '.join(written)}; and [superlink.{app.name}] in {network.flower_config()}.",
        f"Give every owner {app / network.TLS / network.AUTHORITY}. Each owner on a machine needs a port of its own.",
        *(f"{who:<12} {command}" for who, command in zip(_TYPISTS, typed, strict=True)),
    ]
    return VerbResult(data={"app": str(app), "files": written, "commands": typed}, text="\n".join(lines))


def logs(
    app: Annotated[Path, typer.Argument(metavar="APP", help="The folder that init wrote.")],
    follow: Annotated[bool, typer.Option("--follow", help="Show lines as they come, until the run ends.")] = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Show the last run of an app: its stages, its questions, and the owners that failed."""
    from doublure.federated.rounds_log import follow_log, read_log

    if follow:
        lines = []
        for line in follow_log(app):
            lines.append(line)
            with on_stderr():
                console(stderr=True).print(str(line), highlight=False, markup=False)
    else:
        lines = read_log(app)
    text = "no run has begun" if not lines else lines[-1].said if follow else "\n".join(map(str, lines))
    return VerbResult(data={"lines": [asdict(line) for line in lines]}, text=text)
