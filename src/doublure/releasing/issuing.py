"""The last steps of every release: its page, its record in the ledger, its card, its signature, in this order.

The ledger records the hash of every file and of the card's claims before the release appears. The page is drawn before
that, so that its hash is among them; what the ledger answers stands on the card alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure.ledger import Ledger
from doublure.releasing.card import page_of
from doublure.releasing.checking import PAGE
from doublure.releasing.released import Bundle, Card
from doublure.releasing.signing import sign
from doublure.releasing.verifying import CARD, claims_sha256
from doublure.support import files
from doublure.support.tensors import sha256_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def entry_of(folder: Path, name: str, rows: int | None = None) -> dict[str, Any]:
    """Return a file of a folder as a card lists it, with how many records are in it."""
    return {"path": name, "sha256": sha256_of(folder / name), "rows": rows}


def issue(
    staging: Path,
    asked: Path,
    card: Card,
    described: Mapping[str, Any],
    book: Ledger,
    reservation: str,
    key: Ed25519PrivateKey | None,
) -> Bundle:
    """Finish a release.

    Args:
        staging: Where its files lie.
        asked: Where they will lie.
        card: Complete but for the page and the ledger's record.
        described: The data dictionary.
        book: Records it.
        reservation: Of the run.
        key: Signs it; None: nobody does.
    """
    write_page(staging, card | {"ledger": {"dataset": book.dataset}}, described)
    card["files"] = [*card["files"], entry_of(staging, PAGE)]
    recorded = {file["path"]: file["sha256"] for file in card["files"]} | {CARD: claims_sha256(card)}
    card["ledger"] = book.record_release(reservation, recorded, card["guarantee"]["kind"]).to_json()
    files.write_json(staging / CARD, card)
    written = (staging / CARD).read_bytes()
    signed_by = None if key is None else sign(staging, written, key)
    return Bundle(path=asked, card=card, fingerprint=hashlib.sha256(written).hexdigest(), signed_by=signed_by)


def write_page(folder: Path, card: Mapping[str, Any], described: Mapping[str, Any]) -> None:
    """Write the page of a card that is complete but for it."""
    page = page_of(folder, card, described).encode()
    files.write_atomic(folder / PAGE, lambda file: file.write(page))
