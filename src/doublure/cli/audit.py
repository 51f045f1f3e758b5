"""``doublure audit --trainer``."""

from __future__ import annotations

from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import Outcome, TerminalProgress
from doublure.errors import GateFailed, SettingError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("audit")(audit)


def audit(
    trainer: Annotated[bool, typer.Option("--trainer", help="Attack the mechanism that trains.")] = False,
    epsilon: Annotated[float, typer.Option(help="The ε to claim.")] = 4.0,
    delta: Annotated[float, typer.Option(help="The δ to claim.")] = 1e-5,
    sample_rate: Annotated[float, typer.Option(help="q; 1 gives the attacker the most.")] = 1.0,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of the generator.")] = 2,
    n_critic: Annotated[int, typer.Option(min=1, help="Noisy steps in each.")] = 1,
    runs: Annotated[int, typer.Option(min=20, help="Runs a world.")] = 1000,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Attack our own mechanism: lower bounds on ε.

    They are printed beside the ε that was claimed; one above it ends with exit code 4.
    """
    from doublure.attack.audit import audit_trainer

    if not trainer:
        raise SettingError("is needed", field="--trainer", remedy="write doublure audit --trainer")
    with TerminalProgress() as progress:
        found = audit_trainer(
            epsilon=epsilon,
            delta=delta,
            sample_rate=sample_rate,
            iterations=iterations,
            n_critic=n_critic,
            runs=runs,
            progress=progress,
        )
    if found.violated:
        raise GateFailed(found.sentence, field="trainer", remedy="do not fit with this build; report it")
    return Outcome(data=found.to_json(), text=found.sentence)
