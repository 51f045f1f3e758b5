"""``doublure audit``: attacks on a run, on a method, and on the mechanism that trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doublure.cli.options import PLACE, Config, Device, FitSeed, Json, Settings, settings
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import GateFailed, SettingError

if TYPE_CHECKING:
    from doublure.report.audit import AttackReport


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("audit")(audit)


def audit(
    run: Annotated[Path | None, typer.Argument(help="A run folder.")] = None,
    attack: Annotated[
        list[str] | None,
        typer.Option(help="An attack or a group ({groups}); may be repeated; see docs/attacks.md."),
    ] = None,
    real: Annotated[str | None, typer.Option(metavar=PLACE, help="The data it was fitted on.")] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar=PLACE, help="Real data of the same kind that it never saw; --attack canary and one-run need none."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the page.")] = None,
    shadows: Annotated[int, typer.Option(min=1, help="How often an attack that refits the model does so.")] = 16,
    trainer: Annotated[bool, typer.Option("--trainer", help="Attack the mechanism that trains.")] = False,
    method: Annotated[str | None, typer.Option(help="Attack a whole method by four records and by five.")] = None,
    kind: Annotated[str, typer.Option(help="Of which data: {kinds} (--method).")] = "table",
    setting: Settings = None,
    epsilon: Annotated[float, typer.Option(help="The ε to claim (--trainer, --method).")] = 4.0,
    delta: Annotated[float, typer.Option(help="The δ to claim (--trainer, --method).")] = 1e-5,
    sample_rate: Annotated[float, typer.Option(help="q; 1 gives the attacker the most (--trainer).")] = 1.0,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of the generator (--trainer).")] = 2,
    n_critic: Annotated[int, typer.Option(min=1, help="Noisy steps in each (--trainer).")] = 1,
    filter_steps: Annotated[
        int | None, typer.Option(min=1, help="Steps that each unit's privacy filter has room for (--trainer).")
    ] = None,
    runs: Annotated[
        int, typer.Option(min=20, help="Runs with, and without, the tested record (--trainer, --method).")
    ] = 1000,
    seed: FitSeed = None,
    device: Device = "cpu",
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Attack our own work. Internal: the page is not to be published.

    A run (--attack NAME --real DATA --holdout DATA), a method (--method NAME), or the mechanism that trains
    (--trainer). A lower bound on ε above the one that is claimed ends with exit code 4.
    """
    from doublure.support.devices import use_device

    asked = [run is not None or bool(attack), method is not None, trainer]
    if sum(asked) != 1:
        remedy = "write doublure audit run/ --attack NAME --real DATA --holdout DATA, or --method NAME, or --trainer"
        raise SettingError("give a run, --method or --trainer, and one of them", field="audit", remedy=remedy)
    use_device(device)
    files = {"--real": real, "--holdout": holdout}
    if trainer:
        _refuse_idle("--trainer", **files, **{"--out": out, "--set": setting})
        return _trainer(epsilon, delta, sample_rate, iterations, n_critic, runs, filter_steps)
    if method is not None:
        _refuse_idle("--method", **files)
        return _method(method, kind, epsilon, delta, runs, setting, seed or 0, out)
    _refuse_idle("a run", **{"--set": setting})
    return _run(run, attack, real, holdout, out, shadows, seed or 0)


def _refuse_idle(beside: str, **given: object) -> None:
    for flag, value in given.items():
        if value:
            raise SettingError(f"does not go with {beside}", field=flag, remedy="leave it out; see docs/attacks.md")


def _trainer(
    epsilon: float,
    delta: float,
    sample_rate: float,
    iterations: int,
    n_critic: int,
    runs: int,
    filter_steps: int | None,
) -> VerbResult:
    from doublure.auditing.trainer import audit_trainer

    with TerminalProgress() as progress:
        found = audit_trainer(
            epsilon=epsilon,
            delta=delta,
            sample_rate=sample_rate,
            iterations=iterations,
            n_critic=n_critic,
            runs=runs,
            filter_steps=filter_steps,
            progress=progress,
        )
    if found.violated:
        raise GateFailed(found.sentence, field="trainer", remedy="do not fit with this build; report it")
    return VerbResult(data=found.to_json(), text=found.sentence)


def _method(
    method: str,
    kind: str,
    epsilon: float,
    delta: float,
    runs: int,
    given: list[str] | None,
    seed: int,
    out: Path | None,
) -> VerbResult:
    from doublure.auditing import audit_method
    from doublure.report import check_places, named_page

    if out is not None:
        out = named_page(out)
        check_places(out, out.with_name(f"{out.stem}.json"), form="audit")
    with TerminalProgress() as progress:
        report = audit_method(
            method, kind=kind, epsilon=epsilon, delta=delta, runs=runs, seed=seed, progress=progress, **settings(given)
        )
    return _outcome(report, out)


def _run(
    run: Path | None,
    attack: list[str] | None,
    real: str | None,
    holdout: str | None,
    out: Path | None,
    shadows: int,
    seed: int,
) -> VerbResult:
    from doublure.attack.registry import named
    from doublure.auditing import audit
    from doublure.report import check_places, named_page
    from doublure.run.folder import RunFolder

    if run is None:
        raise SettingError("is missing", field="run", remedy="give the folder that doublure fit -o made")
    wanted = named(attack or ())
    if real is None:
        raise SettingError("is needed", field="--real", remedy="give the data that the run was fitted on")
    RunFolder.open(run)
    page = named_page(out) if out is not None else run / "internal" / "audit.html"
    check_places(page, page.with_name(f"{page.stem}.json"), real, holdout, form="audit")
    with TerminalProgress() as progress:
        report = audit(run, wanted, real, holdout, shadows=shadows, seed=seed, progress=progress)
    return _outcome(report, page)


def _outcome(report: AttackReport, page: Path | None) -> VerbResult:
    """Write the page if one is wanted, and say what was found; an alarm ends with exit code 4."""
    text, data = str(report), {"internal": True, "report": json.loads(report.to_json())}
    if page is not None:
        report.save(page, page.with_name(f"{page.stem}.json"))
        text = f"{text}\nWrote {page} (internal: computed on real data, do not publish)."
        data["page"] = str(page)
    gate = None
    if report.alarms:
        names = ", ".join(found.threat_model.attack for found in report.alarms)
        remedy = "do not release; report it"
        gate = GateFailed(f"more was shown than is claimed: {report.verdict.headline}", field=names, remedy=remedy)
    return VerbResult(data=data, text=text, gate=gate)
