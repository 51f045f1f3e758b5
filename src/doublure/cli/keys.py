"""``doublure keys``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import VerbResult
from doublure.cli.verb import VerbApp


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Make the keys that sign releases.")
    group.command("new")(new)
    app.add_typer(group, name="keys")


def new(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The private key to write; .pub beside it is the public one.")
    ],
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Make a key pair (Ed25519) for release --sign and verify --key."""
    from doublure.releasing.signing import new_keys, spelt

    public, fingerprint = new_keys(out)
    text = (
        f"Wrote {out}, readable by you alone: keep it, and never publish it.\n"
        f"Wrote {public}: give it to those who receive your releases.\n"
        f"Fingerprint of the key (SHA-256), to be published apart from your releases: {spelt(fingerprint)}"
    )
    return VerbResult(data={"private": str(out), "public": str(public), "fingerprint": fingerprint}, text=text)
