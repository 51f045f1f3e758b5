"""``doublure plan``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doublure.cli.options import Config, Delta, Epsilon, Force, Json, Method, Settings, settings
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import InputError, SettingError

if TYPE_CHECKING:
    from doublure.planning import Plan


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("plan")(plan)


def plan(
    schema: Annotated[Path, typer.Argument(help="A schema file.")],
    method: Method = None,
    preset: Annotated[
        str | None, typer.Option(help="A method with its paper's settings: {presets} (docs/evidence/papers.md).")
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    set_: Settings = None,
    public: Annotated[
        Path | None,
        typer.Option(help="Public rows of the same columns, or a bundle's folder; for latentgan a public generator."),
    ] = None,
    provenance: Annotated[
        Path | None, typer.Option(help="YAML on public rows: what data, whose people, which licence.")
    ] = None,
    want: Annotated[
        Path | None,
        typer.Option(
            help="In place of --epsilon: YAML on the errors that readers accept; see docs/choosing-epsilon.md."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write plan.json.")] = None,
    force: Force = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Say what a run will do and cost, without reading data."""
    from doublure.methods.choice import AUTO
    from doublure.planning import least_epsilon
    from doublure.planning import plan as make
    from doublure.planning.forecasts import forecast_questions
    from doublure.support.files import check_output

    if out is not None:
        check_output(out, schema, replaces="plan", forced=force)
    if want is not None and epsilon is not None:
        raise SettingError("stands beside --epsilon, which follows from it", field="--want", remedy="leave one out")
    if preset is not None and want is not None:
        raise SettingError("takes an ε, which --want is to find", field="--preset", remedy="leave one of the two out")
    given = {"public": public, "provenance": provenance}
    asked = settings(set_) | {name: str(path) for name, path in given.items() if path is not None}
    chosen = AUTO if method is None else method
    if want is None:
        made, said = make(schema, method=chosen, preset=preset, epsilon=epsilon, delta=delta, **asked), ""
    else:
        with TerminalProgress() as progress:
            progress.stage("find the least budget that suffices")
            granted = least_epsilon(schema, want, method=chosen, delta=delta, **asked)
        made, said = granted.plan, f"\n{granted.explain()}"
    if out is not None and _holds(out, made):
        said += f"\n{out} holds this plan already"
    elif out is not None:
        made.save(out)
        said += f"\nWrote {out}"
    focus = [question.to_json() for question in forecast_questions(made)]
    return VerbResult(data=made.to_json() | ({"focus": focus} if focus else {}), text=made.explain() + said)


def _holds(out: Path, made: Plan) -> bool:
    """Return whether a file holds this plan already; a plan of an earlier version is another."""
    try:
        return out.is_file() and type(made).load(out).does_the_same_as(made)
    except InputError:
        return False
