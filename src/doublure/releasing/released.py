"""What a release returns: where it lies, its card, its files. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from doublure.access import COVERED
from doublure.releasing.signing import SIGNATURE
from doublure.releasing.verifying import CARD
from doublure.support import views


class Card(dict[str, Any]):
    """What ``card.json`` holds, key by key, that a notebook shows as a card."""

    def _repr_html_(self) -> str:
        return views.view(self["title"], *_parts(self))


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What was released, or a generator that was.

    Attributes:
        path: The folder.
        card: What ``card.json`` holds.
        fingerprint: SHA-256 of ``card.json``, for the publisher to tell those who receive it.
        signed_by: The fingerprint of the key that signed it; None where nobody did.
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
        return f"Bundle({str(self.path)!r}, {len(self.files)} files: {self.card['guarantee']['sentence']})"

    def _repr_html_(self) -> str:
        where = views.line(f"{self.path}: {len(self.files)} files; open {self.page.name}", "plain")
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
        views.folded("Limits", *(views.line(limit, "plain") for limit in card["limits"])),
    ]
