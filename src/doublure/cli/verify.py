"""``doublure verify``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import PLACE, Config, Json
from doublure.cli.terminal import VerbResult


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("verify")(verify)


_RAN: dict[object, str] = {
    True: " what ran is what was priced;",
    False: " what ran was not all written down, so the price rests on the plan alone;",
    None: "",
}


def verify(
    bundle: Annotated[
        Path, typer.Argument(help="A released bundle or a published generator: its folder, or a ZIP file of it.")
    ],
    ledger: Annotated[
        str | None, typer.Option(metavar=PLACE, help="The ledger that should contain the card's entry.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="The publisher's public key: a bundle that it did not sign is refused.")
    ] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option(metavar="SHA256", help="The card's, as the publisher tells it: a bundle of another is refused."),
    ] = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Check a bundle: files, cells, claim, price, page, entry."""
    from doublure.releasing.verifying import verify as check

    checked = check(bundle, ledger=ledger, key=key, fingerprint=fingerprint)
    number = checked["files"] + 1 + (checked["signature"] is not None)
    files = f"its {number} files are its card and those that the card lists, and hold what it says"
    price = _price(checked["recomputed_epsilon"], checked["epsilon"])
    ran = _RAN[checked["executed"]]
    kept = _rules(checked["rules"])
    text = f"{bundle} agrees with its card: {files};{kept}{price}{ran} {checked['origin']}."
    return VerbResult(data=checked, text=text)


def _rules(found: Mapping[str, int] | None) -> str:
    """Return what was found of the declared rules."""
    if found is None or not any(found.values()):
        return ""
    kept, unchecked = found["kept"], found["unchecked"]
    told = f" every row keeps {'the declared rule' if kept == 1 else f'all {kept} declared rules'};" if kept else ""
    more = f" {unchecked} declared {'rule was' if unchecked == 1 else 'rules were'} not checked;" if unchecked else ""
    return told + more


def _price(found: float | None, claimed: float | None) -> str:
    """Return the cost of the accesses, beside the claim."""
    if found is None or claimed is None:
        return ""
    cost, claim = f"{found:.4g}", f"{claimed:.4g}"
    beside = f"below the claimed {claim}" if found < claimed and cost != claim else f"as claimed ({claim})"
    return f" its accesses cost ε = {cost}, {beside}, computed by a second program (dp-accounting);"
