"""The public card: what may be said about a bundle, for the people who receive it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from doublure.access import COVERED
from doublure.guarantee import beside, figure
from doublure.releasing.card_contents import columns_of, drawings_of, precision_of, sheet_of
from doublure.releasing.examples import Examples
from doublure.releasing.plain_words import figures_of, plain_words
from doublure.report import page
from doublure.schema.release_words import is_link

_TITLE = "Synthetic data"
_WATERMARK = "Synthetic data, made by doublure"
_NO_GUARANTEE = "No privacy guarantee. Do not publish."
_KINDS = {
    "dp": "differential privacy",
    "bayesian-dp": "Bayesian differential privacy (an estimate), and a worst case",
    "empirical": "empirical estimate only",
    "none": "none",
}
_AT_MOST = {"epsilon_mu": "≤ "}
_ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_CLAIMS = frozenset({"epsilon", "delta", "epsilon_mu", "delta_mu", "mu", "gamma"})
_RAN: dict[object, str] = {
    True: "Every access was recorded as it ran, and matches this list.",
    False: "Not every access was recorded as it ran: this is the plan’s list.",
}
_TOUCHED = ("purpose", "event", "epsilon", "delta")


def card_page(
    card: Mapping[str, Any],
    records: str = "rows",
    described: Mapping[str, Any] | None = None,
    examples: Examples | None = None,
) -> str:
    """Return the HTML of a release's card.

    Args:
        card: What ``card.json`` holds; what is missing or null is left out.
        records: What the release's records are called: rows, images or series.
        described: Its data dictionary.
        examples: Its first records.
    """
    return page.render("card.html.j2", context(card, records, described or {}, examples or Examples()))


def context(card: Mapping[str, Any], records: str, described: Mapping[str, Any], examples: Examples) -> dict[str, Any]:
    """Return what the template names."""
    guarantee: Mapping[str, Any] = card.get("guarantee") or {}
    kind = str(guarantee.get("kind") or "none")
    return {
        "title": card.get("title") or _TITLE,
        "watermark": _watermark(card.get("watermark"), kind),
        "loud": _NO_GUARANTEE if kind == "none" else None,
        "kind": kind,
        "covered": kind in COVERED,
        "kind_in_words": _KINDS.get(kind, kind),
        "sentence": guarantee.get("sentence"),
        "plain": plain_words(guarantee, records),
        "description": card.get("description"),
        "records": records,
        "sheet": sheet_of(examples),
        "columns": columns_of(described, card.get("margins"), examples),
        "drawings": drawings_of(examples),
        "precision": precision_of(card, records) if kind in COVERED else None,
        "licence": card.get("licence"),
        "citation": card.get("citation"),
        "contact": card.get("contact"),
        "mail": _mail(card.get("contact")),
        "links": [link for link in card.get("links") or () if is_link(link)],
        "figures": _figures(guarantee, kind),
        "assumptions": _list(guarantee.get("assumptions")),
        "excluded": _list(guarantee.get("excluded")),
        "touches": [_touched(touch, guarantee.get("kind")) for touch in card.get("touches") or ()],
        "ran": _RAN.get(card.get("executed")),
        "owners": _owners(card.get("owners")),
        "about": [
            (name, _text(card[key]))
            for key, name in {
                "method": "method",
                "created": "made on",
                "review_by": "review by",
                "doublure_version": "doublure",
                "schema_sha256": "schema, SHA-256",
            }.items()
            if card.get(key) is not None
        ],
        "public_sources": _list(card.get("public_sources")),
        "ledger": [("data set", _text(named))] if (named := (card.get("ledger") or {}).get("dataset")) else [],
        "files": [
            {key: _text(entry.get(key)) for key in ("path", "rows", "sha256")}
            | {"address": "./" + quote(str(entry.get("path")))}
            for entry in card.get("files") or ()
        ],
        "limits": _list(card.get("limits")),
        "review_by": card.get("review_by"),
    }


def _watermark(written: object, kind: str) -> str:
    """Return the mark of the page; the refusal of a card without a guarantee stands beside it and is not repeated."""
    mark = written.strip().removesuffix(".") if isinstance(written, str) else ""
    return _WATERMARK if not mark or (kind == "none" and mark in _NO_GUARANTEE) else mark


def _figures(guarantee: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    names = figures_of(kind)
    known = {key: guarantee[key] for key in names if guarantee.get(key) is not None}
    if known.get("max_records") == 1:
        del known["max_records"]  # as in the sentence: of related tables it is a row with all that hangs on it
    shown = [(names[key], f"{_AT_MOST.get(key, '')}{_shown(key, value)}") for key, value in known.items()]
    return [*shown, *beside(kind, known)]


def _mail(contact: object) -> str | None:
    """Return the address that a contact is, if it is one of mail and nothing else."""
    return contact if isinstance(contact, str) and _ADDRESS.fullmatch(contact) else None


def _shown(key: str, value: object) -> str:
    return _claim(value) if key in _CLAIMS else _text(value)


def _claim(value: object) -> str:
    """Return a figure of a claim, rounded up, so that it never claims less."""
    return figure(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _text(value)


def _touched(touch: Mapping[str, Any], kind: object) -> dict[str, str]:
    """Return one access in words; what an empirical run paid for is one table of votes, priced as a label moves it."""
    found = {key: _shown(key, touch.get(key)) for key in _TOUCHED}
    event = touch.get("event")
    if kind == "empirical" and isinstance(event, Mapping) and event.get("type") == "discrete-gaussian":
        scale = _text(event.get("scale"))
        found["event"] = f"discrete-gaussian: scale {scale} on each count of votes; a label moves two"
    return found


def _owners(said: object) -> str | None:
    """Return how many of how many owners took part, where records stay with several."""
    if not isinstance(said, Mapping):
        return None
    answered, of = (_text(said.get(key)) for key in ("answered", "of"))
    return f"The private records stayed with their owners, of whom {answered} of {of} answered. Which is not published."


def _text(value: object) -> str:
    """Return a card's value as text; a dash for null."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        # A mechanism: its type, then its figures.
        rest = [f"{str(key).replace('_', ' ')} {_text(entry)}" for key, entry in value.items() if key != "type"]
        return ": ".join(part for part in (str(value.get("type") or ""), ", ".join(rest)) if part)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_text(entry) for entry in value)
    return str(value)


def _list(value: object) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_text(entry) for entry in value if entry is not None]
    return [] if value is None else [_text(value)]
