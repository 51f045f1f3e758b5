"""``doublure public fit|adopt|show|overlap``: public generators, for ``latentgan``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doublure.cli.options import Config, Device, Json, Seed, Settings, Threads, settings
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.cli.verb import VerbApp

if TYPE_CHECKING:
    from doublure.public import PublicFacts

_Schema = Annotated[Path, typer.Option(help="The schema of what it makes.")]
_Provenance = Annotated[Path, typer.Option(help="YAML: what data, whose people, which licence; see docs/latent.md.")]
_Out = Annotated[Path, typer.Option("-o", "--out", help="The folder to make.")]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Generators of public data, for latentgan.")
    group.command("fit")(fit)
    group.command("adopt")(adopt)
    group.command("show")(show)
    group.command("overlap")(overlap)
    app.add_typer(group, name="public")


def fit(
    data: Annotated[Path, typer.Argument(help="Public data: a table, or images.")],
    schema: _Schema,
    provenance: _Provenance,
    out: _Out,
    set_: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a fit that was cut off.")] = False,
    seed: Seed = None,
    device: Device = "cpu",
    threads: Threads = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Train a generator on public data, without privacy."""
    from doublure import public

    with TerminalProgress() as progress:
        made = public.fit(
            data,
            schema,
            provenance=provenance,
            out=out,
            resume=resume,
            seed=seed,
            device=device,
            threads=threads,
            progress=progress,
            **settings(set_, public.fit),
        )
    return _told(made, f"Wrote {out}. Plan with --method latentgan --set public={out}")


def adopt(
    weights: Annotated[Path, typer.Argument(help="A safetensors file.")],
    schema: _Schema,
    provenance: _Provenance,
    out: _Out,
    encoder: Annotated[Path | None, typer.Option(help="The safetensors file of its encoder.")] = None,
    set_: Settings = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Take the weights of a public generator that was trained elsewhere."""
    from doublure import public

    made = public.adopt(
        weights, schema, provenance=provenance, out=out, encoder=encoder, **settings(set_, public.adopt)
    )
    return _told(made, f"Wrote {out}. Plan with --method latentgan --set public={out}")


def show(
    folder: Annotated[Path, typer.Argument(help="The folder of a public generator.")],
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Say where a public generator comes from, and check its weights against their hashes."""
    from doublure import public

    return _told(public.load(folder), "")


def overlap(
    data: Annotated[Path, typer.Argument(help="Public data.")],
    private: Annotated[Path, typer.Option(help="Private data to search for in the public data.")],
    schema: Annotated[Path, typer.Option(help="The schema of either.")],
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Look for private records among public data. Internal: the figures are not to be published."""
    from doublure.measures.overlap import overlap as look
    from doublure.schema import Schema

    found = look(data, private, Schema.load(schema))
    return VerbResult(data={"internal": True} | asdict(found), text="\n".join(found.lines))


def _told(made: PublicFacts, last: str) -> VerbResult:
    lines = [made.source, *(f"A claim made through it assumes: {said}." for said in made.assumptions), last]
    return VerbResult(data=made.model_dump(mode="json"), text="\n".join(line for line in lines if line))
