"""The public card: what may be said about a bundle, for the people who receive it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doublure.guarantee import CHOICE_OF_KIND, beside, figure, odds_factor
from doublure.report import page

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
_CLAIMS = frozenset({"epsilon", "delta", "epsilon_mu", "delta_mu", "mu", "gamma"})
_RAN: dict[object, str] = {
    True: "Every access was recorded as it ran, and matches this list.",
    False: "Not every access was recorded as it ran: this is the plan’s list.",
}
_TOUCHED = ("purpose", "event", "epsilon", "delta")


def card_page(card: Mapping[str, Any], sheet: bytes | None = None, records: str = "rows") -> str:
    """Return the HTML of a bundle's card.

    Args:
        card: What ``card.json`` holds; what is missing or null is left out.
        sheet: A contact sheet of released images, as PNG.
        records: What the bundle's records are called: rows, images or series.
    """
    return page.render("card.html.j2", context(card, sheet, records))


def context(card: Mapping[str, Any], sheet: bytes | None = None, records: str = "rows") -> dict[str, Any]:
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
        "sheet": None if sheet is None else page.inline_png(sheet),
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
                "contact": "contact",
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
            {key: _text(entry.get(key)) for key in ("path", "rows", "sha256")} for entry in card.get("files") or ()
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
            f"This is an estimate of how much the data reveal about one {unit} that is like the others.",
            f"For a {unit} that is unlike the others only the worst case counts: a factor of "
            f"{_factor(guarantee.get('epsilon'))}{_slack(guarantee.get('delta'))}.",
            "The estimate itself was computed from private data without noise, and is not published. "
            "This card states the ceiling that was fixed beforehand.",
            *chosen,
            rows,
        ]
    if kind == "empirical":
        measured = _NOTHING if guarantee.get("mu") is None else _AVERAGE
        return [
            f"{measured} It does not bound the risk of any individual {unit}.",
            "Treat these data as you would treat the private data they were made from.",
        ]
    return [
        "These data were made without any protection. They may repeat private records as they are.",
        "Treat them as you would treat the private data they were made from.",
    ]


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
