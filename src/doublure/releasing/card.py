"""The public card: what may be said about a bundle, for the people who receive it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from doublure.guarantee import CHOICE_OF_KIND, beside, figure, odds_factor
from doublure.releasing.card_contents import columns_of, drawings_of, precision_of
from doublure.releasing.examples import Examples
from doublure.report import page
from doublure.schema import Schema
from doublure.schema.kinds import KINDS
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
_FIGURES = {
    "epsilon": "ε",
    "delta": "δ",
    "epsilon_mu": "ε_μ (Bayesian, estimated)",
    "delta_mu": "δ_μ (Bayesian, estimated)",
    "mu": "μ, expected privacy loss (not ε)",
    "gamma": "γ, chance that the loss of one more record is above μ",
    "unit": "unit of privacy",
    "max_records": "records used of each unit, at most",
    "relation": "neighbouring data sets",
    "accountant": "accountant",
    "sample_rate": "sampling rate q of a lot",
    "noise_multiplier": "noise multiplier σ",
    "steps": "noisy steps",
    "noise_source": "source of the noise",
}
_BAYESIAN = {
    "epsilon": "ε, worst case",
    "delta": "δ, worst case",
    "gamma": "γ, chance that the estimate of ε_μ is too low, over all orders (union bound)",
}

_AVERAGE = "The measured figure is an average over this data set, computed from real records without noise."
_NOTHING = "Nothing has been measured yet. A measurement would be an average over this data set."
_AT_MOST = {"epsilon_mu": "≤ "}
_PRICED = frozenset({"dp", "bayesian-dp"})
_CERTAIN = 100.0
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
        "kind_in_words": _KINDS.get(kind, kind),
        "sentence": guarantee.get("sentence"),
        "plain": plain_words(guarantee, records),
        "description": card.get("description"),
        "records": records,
        "sheet": None if examples.sheet is None else page.inline_png(examples.sheet),
        "columns": columns_of(described, card.get("margins"), examples),
        "drawings": drawings_of(examples),
        "precision": precision_of(card, records) if kind in _PRICED else None,
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
        "ledger": [
            (name, _text((card.get("ledger") or {}).get(key)))
            for key, name in {"dataset": "data set", "sequence": "entry", "head_sha256": "head, SHA-256"}.items()
            if (card.get("ledger") or {}).get(key) is not None
        ],
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
    # Without a guarantee nobody is protected, and no figure may look as if somebody were.
    banned = {"epsilon", "delta", "unit", "max_records", "relation"} if kind in ("none", "empirical") else set()
    if guarantee.get("max_records") == 1:
        banned.add("max_records")  # as in the sentence: of related tables it is a row with all that hangs on it
    names = _FIGURES | (_BAYESIAN if kind == "bayesian-dp" else {})
    known = {key: guarantee[key] for key in names if key not in banned and guarantee.get(key) is not None}
    shown = [(names[key], f"{_AT_MOST.get(key, '')}{_shown(key, value)}") for key, value in known.items()]
    return [*shown, *beside(kind, known)]


def plain_words(guarantee: Mapping[str, Any], records: str = "rows") -> list[str]:
    """Return what a guarantee means to somebody who has never met one, sentence by sentence.

    No figure of another kind is ever worded as ε.
    """
    kind, unit = guarantee.get("kind") or "none", guarantee.get("unit") or "unit"
    either = kind == "bayesian-dp" or CHOICE_OF_KIND in (guarantee.get("excluded") or ())
    chosen = [f"{CHOICE_OF_KIND.capitalize()}."] if either else []
    rows = f"The {records} are synthetic. One of them may resemble a real one by chance."
    if kind == "dp":
        return [
            *_coin(guarantee, unit),
            f"Take all records of any one {unit} out of the private data, or put them in: the probability of any "
            f"result changes by at most a factor of {_factor(guarantee.get('epsilon'))}"
            f"{_slack(guarantee.get('delta'))}.",
            f"This holds for every {unit}, whatever a reader already knows.",
            "It does not prevent learning about groups, or about everybody.",
            *chosen,
            rows,
        ]
    if kind == "bayesian-dp":
        return [
            *_coin(guarantee, unit),
            f"This is an estimate of how much the data reveal about one {unit} that is like the others.",
            f"For one {unit} that is unlike the others only the worst case counts: a factor of "
            f"{_factor(guarantee.get('epsilon'))}{_slack(guarantee.get('delta'))}.",
            "The estimate itself was computed from private data without noise, and is not published. "
            "This card states the ceiling that was fixed beforehand.",
            *chosen,
            rows,
        ]
    if kind == "empirical":
        measured = _NOTHING if guarantee.get("mu") is None else _AVERAGE
        return [
            f"If your records are among the private ones: nothing limits what these {records} tell of you.",
            f"{measured} It does not bound the risk of any individual {unit}.",
            "Treat these data as you would treat the private data they were made from.",
        ]
    return [
        f"If your records are among the private ones: nothing limits what these {records} tell of you.",
        "These data were made without any protection. They may repeat private records as they are.",
        "Treat them as you would treat the private data they were made from.",
    ]


def opening(guarantee: Mapping[str, Any], schema: Schema) -> str:
    """Return what a terminal says of a guarantee: the card's first plain words, and on the next line its formal ones.

    Without a guarantee the formal ones refuse, and stand alone.
    """
    sentence = str(guarantee["sentence"])
    if (guarantee.get("kind") or "none") == "none":
        return sentence
    return f"{plain_words(guarantee, KINDS[schema.kind].records)[0]}\n{sentence}"


def _coin(guarantee: Mapping[str, Any], unit: object) -> list[str]:
    """Return the guarantee as a bet, which everybody understands: how often a guess can be right at best.

    Of two equally likely worlds, with the records of one unit and without, an (ε, δ)-differentially private result is
    told from at most with probability (e^ε + δ) / (e^ε + 1) (Kairouz, Oh & Viswanath 2015, theorem 2.1).
    """
    epsilon, delta = guarantee.get("epsilon"), guarantee.get("delta")
    if not isinstance(epsilon, (int, float)) or not isinstance(delta, (int, float)):
        return []
    right = (1 + min(1.0, delta) * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    often = math.ceil(1000 * min(1.0, right)) / 10
    bet = (
        f"Suppose that a coin decides whether the records of one {unit} are used at all; they could be yours. Whoever "
        f"then guesses from this release, whatever else they know, is right in"
    )
    if often >= _CERTAIN:
        return [f"{bet} up to 100 of 100 cases: this protects hardly anybody. Without the release it is 50."]
    return [f"{bet} at most {often:g} of 100 cases. Without the release it is 50."]


def _mail(contact: object) -> str | None:
    """Return the address that a contact is, if it is one of mail and nothing else."""
    return contact if isinstance(contact, str) and _ADDRESS.fullmatch(contact) else None


def _factor(epsilon: object) -> str:
    """Return e^ε in words."""
    if not isinstance(epsilon, (int, float)):
        return "e to the ε"
    return f"{odds_factor(epsilon)} (e^ε for ε = {figure(epsilon)})"


def _slack(delta: object) -> str:
    if not isinstance(delta, (int, float)) or delta <= 0:
        return ""
    return f", plus δ = {figure(delta)}"


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
