"""``doublure verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import Outcome


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify")(verify)


_RAN: dict[object, str] = {
    True: " what ran is what was priced;",
    False: " what ran was not all written down, so the price rests on the plan alone;",
    None: "",
}


def verify(
    bundle: Annotated[Path, typer.Argument(help="A released bundle, or a published generator.")],
    ledger: Annotated[Path | None, typer.Option(help="The ledger that should contain the card's entry.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Check a bundle: hashes, claim, price, ledger entry."""
    from doublure.releasing.bundle import verify as check

    checked = check(bundle, ledger=ledger)
    entry = "its entry is in the ledger" if checked["ledger"] else "the ledger was not given, so its entry is unchecked"
    found = checked["recomputed_epsilon"]
    ran = _RAN[checked["executed"]]
    price = "" if found is None else f" its accesses cost ε = {found:.4g} by dp-accounting alone;"
    return Outcome(
        data=checked, text=f"{bundle} is intact: {checked['files']} files match its card;{price}{ran} {entry}."
    )
