"""The last steps of a release, in order: page, ledger record, card, signature.

The ledger records the hash of every file and of the card's claims before the release appears. The page is drawn before
that, so that its hash is among them; the ledger's answer stands on the card alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from doublure.access import COVERED
from doublure.errors import counted
from doublure.ledger import Ledger
from doublure.releasing.card import draw_page
from doublure.releasing.checking import PAGE
from doublure.releasing.signing import SIGNATURE, sign
from doublure.releasing.verifying import CARD, claims_sha256
from doublure.support import files, views
from doublure.support.tensors import sha256_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def file_entry(folder: Path, name: str, rows: int | None = None) -> dict[str, Any]:
    """Return a card's entry for a file, with the number of records in it."""
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
        staging: The folder of its files.
        asked: Their final folder.
        card: The card, complete but for the page and the ledger's record.
        described: The data dictionary.
        book: The ledger that records it.
        reservation: The run's reservation.
        key: The key that signs it; None: no signature.
    """
    write_page(staging, card | {"ledger": {"dataset": book.dataset}}, described)
    card["files"] = [*card["files"], file_entry(staging, PAGE)]
    recorded = {file["path"]: file["sha256"] for file in card["files"]} | {CARD: claims_sha256(card)}
    card["ledger"] = book.record_release(reservation, recorded, card["guarantee"]["kind"]).to_json()
    files.write_json(staging / CARD, card)
    written = (staging / CARD).read_bytes()
    signed_by = None if key is None else sign(staging, written, key)
    return Bundle(path=asked, card=card, fingerprint=hashlib.sha256(written).hexdigest(), signed_by=signed_by)


def write_page(folder: Path, card: Mapping[str, Any], described: Mapping[str, Any]) -> None:
    """Write the page of a card that is complete but for it."""
    page = draw_page(folder, card, described).encode()
    files.write_atomic(folder / PAGE, lambda file: file.write(page))


# -- the result of a release: its folder, card and files, all public ---------------------------------------------------


class Card(dict[str, Any]):
    """Contents of ``card.json``, key by key, which a notebook shows as a card."""

    def _repr_html_(self) -> str:
        return views.view(self["title"], *_parts(self))


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A released bundle, or a released generator.

    Attributes:
        path: The folder.
        card: The contents of ``card.json``.
        fingerprint: SHA-256 of ``card.json``, which the publisher tells recipients by another way.
        signed_by: The fingerprint of the key that signed it; None without a signature.

    Example:
        >>> bundle
        Bundle('bundle', 8 files: (ε=1, δ=1e-05)-differentially private ...)
        >>> bundle.card["title"], bundle.page.name
        ('Synthetic people', 'card.html')
    """

    path: Path
    card: Card
    fingerprint: str
    signed_by: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that was written, the card last, and its signature."""
        last = (CARD,) if self.signed_by is None else (CARD, SIGNATURE)
        return (*(self.path / entry["path"] for entry in self.card["files"]), *(self.path / name for name in last))

    @property
    def page(self) -> Path:
        """The card as a page, for the people who receive the bundle."""
        return self.path / "card.html"

    def __repr__(self) -> str:
        return f"Bundle({str(self.path)!r}, {counted(len(self.files), 'file')}: {self.card['guarantee']['sentence']})"

    def _repr_html_(self) -> str:
        where = views.line(f"{self.path}: {counted(len(self.files), 'file')}; open {self.page.name}", "plain")
        return views.view(self.card["title"], where, *_parts(self.card))


def _parts(card: Card) -> list[Markup]:
    guarantee, ledger = card["guarantee"], card["ledger"] or {}
    covered = guarantee["kind"] in COVERED
    named = [
        ("method", card["method"]),
        ("made on", str(card["created"])[:10]),
        ("review by", card["review_by"]),
        ("contact", card["contact"]),
        ("data set", ledger.get("dataset")),
    ]
    rows = [
        (entry["path"], "–" if entry["rows"] is None else f"{entry['rows']:,}", f"{entry['sha256'][:12]}…")
        for entry in card["files"]
    ]
    return [
        views.line(guarantee["sentence"], "claim" if covered else "warn"),
        views.line(f"{card['watermark']}.", "plain"),
        views.facts(named),
        views.grid(("file", "records", "SHA-256"), rows, right=(1,)),
        views.fold("Limits", *(views.line(limit, "plain") for limit in card["limits"])),
    ]
