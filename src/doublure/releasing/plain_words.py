"""A guarantee in plain words, for readers without the field's terms, and the names of its figures.

Each kind has its own sentences: no figure of another kind is ever called ε.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from doublure.guarantee import CHOICE_OF_KIND, HARDLY_ANYBODY, figure, odds_factor, protects_records
from doublure.schema import Schema
from doublure.schema.kinds import KINDS
from doublure.schema.unit import people_in

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
_UNCLAIMED = frozenset({"epsilon", "delta", "unit", "max_records", "relation"})
_NOT_SHOWN = {"empirical": _UNCLAIMED, "none": _UNCLAIMED}
"""Figures that would suggest a protection where there is no guarantee."""
_INSTEAD = {"bayesian-dp": _BAYESIAN}

_AVERAGE = "The measured figure is an average over this data set, computed from real records without noise."
_NOTHING = "Nothing has been measured yet. A measurement would be an average over this data set."
_CERTAIN = 100.0


def figure_names(kind: str) -> dict[str, str]:
    """Return the names of a claim's figures on a card, by key; a figure that must not be shown has none."""
    named = _FIGURES | _INSTEAD.get(kind, {})
    return {key: name for key, name in named.items() if key not in _NOT_SHOWN.get(kind, ())}


def plain_words(guarantee: Mapping[str, Any], records: str = "rows") -> list[str]:
    """Return a guarantee in plain words, for whom or what the data is about.

    A unit that its name calls a person is spoken to; a station or a meter is not.

    Args:
        guarantee: The card's guarantee; an empty or unknown one means no protection.
        records: The name of the release's records, such as ``rows``.
    """
    return _WORDS.get(str(guarantee.get("kind")), _unprotected)(guarantee, records)


def opening(guarantee: Mapping[str, Any], schema: Schema) -> str:
    """Return a guarantee for a terminal: the card's first plain sentence, and the formal one on the next line.

    Without a guarantee the formal sentence is a refusal, and stands alone.
    """
    sentence = str(guarantee["sentence"])
    if (guarantee.get("kind") or "none") == "none":
        return sentence
    return f"{plain_words(guarantee, KINDS[schema.kind].records)[0]}\n{sentence}"


def opening_warning(guarantee: Mapping[str, Any], records: str = "rows") -> str | None:
    """Return the card's first sentence on a claim that limits next to nothing; None for any other claim.

    Example:
        >>> opening_warning({"kind": "dp", "epsilon": 1.0, "delta": 1e-5}) is None
        True
        >>> opening_warning({"kind": "dp", "epsilon": 125_100.0, "delta": 1e-5, "unit": "person"})
        'Suppose that a coin decides ... is right up to 100 times in 100, ... This protects hardly anybody.'
        >>> opening_warning({"kind": "empirical", "unit": "meter"}, "series")
        'Nothing limits what these series tell of any one meter among the private records.'
    """
    first = plain_words(guarantee, records)[0]
    return first if HARDLY_ANYBODY in first or guarantee.get("kind") == "empirical" else None


def coin_sentence(guarantee: Mapping[str, Any]) -> str:
    """Return a guarantee as a bet on whether one unit's records were used; nothing without an (ε, δ).

    Args:
        guarantee: As a plan or a card has it.

    Example:
        >>> print(coin_sentence({"epsilon": 1.0, "delta": 1e-6, "unit": "patient"}))
        Suppose that a coin decides whether the records of one patient are used ... 50 times.
    """
    return next(iter(_coin(guarantee, _unit(guarantee))), "")


def _dp(guarantee: Mapping[str, Any], records: str) -> list[str]:
    unit = _unit(guarantee)
    return [
        *_coin(guarantee, unit),
        f"{_taken(guarantee, unit)}: the probability of any "
        f"result changes by at most a factor of {_factor(guarantee.get('epsilon'))}"
        f"{_slack(guarantee.get('delta'))}.",
        f"This holds for every {unit}, whatever a reader already knows, if what the card assumes is true.",
        f"If the same {unit} is in another release, too, the factors multiply.",
        "It does not prevent learning about groups, or about everybody.",
        *_chosen(guarantee),
        _synthetic(records),
    ]


def _bayesian(guarantee: Mapping[str, Any], records: str) -> list[str]:
    unit = _unit(guarantee)
    return [
        *_coin(guarantee, unit),
        f"This is an estimate of how much the data reveal about one {unit} that is like the others.",
        f"For one {unit} that is unlike the others only the worst case counts: a factor of "
        f"{_factor(guarantee.get('epsilon'))}{_slack(guarantee.get('delta'))}.",
        "The estimate itself was computed from private data without noise, and is not published. "
        "This card states the ceiling that was fixed beforehand.",
        *_chosen(guarantee),
        _synthetic(records),
    ]


def _empirical(guarantee: Mapping[str, Any], records: str) -> list[str]:
    measured = _NOTHING if guarantee.get("mu") is None else _AVERAGE
    return [
        _unlimited(guarantee, records),
        f"{measured} It does not bound the risk of any individual {_unit(guarantee)}.",
        "Treat these data as you would treat the private data they were made from.",
    ]


def _unprotected(guarantee: Mapping[str, Any], records: str) -> list[str]:
    return [
        _unlimited(guarantee, records),
        "These data were made without any protection. They may repeat private records as they are.",
        "Treat them as you would treat the private data they were made from.",
    ]


def _chosen(guarantee: Mapping[str, Any]) -> list[str]:
    return [f"{CHOICE_OF_KIND.capitalize()}."] if CHOICE_OF_KIND in (guarantee.get("excluded") or ()) else []


_WORDS = {"dp": _dp, "bayesian-dp": _bayesian, "empirical": _empirical}


def _unit(guarantee: Mapping[str, Any]) -> str:
    return guarantee.get("unit") or "unit"


def _unlimited(guarantee: Mapping[str, Any], records: str) -> str:
    unit = _unit(guarantee)
    if people_in(unit) is None:
        return f"Nothing limits what these {records} tell of any one {unit} among the private records."
    return f"If your records are among the private ones: nothing limits what these {records} tell of you."


def _of_records(guarantee: Mapping[str, Any]) -> bool:
    """Return whether single records are protected, and not people."""
    return protects_records(guarantee.get("excluded") or ())


def _taken(guarantee: Mapping[str, Any], unit: str) -> str:
    if _of_records(guarantee):
        return f"Take any one {unit} out of the private data, or put it in"
    return f"Take all records of any one {unit} out of the private data, or put them in"


def _synthetic(records: str) -> str:
    return f"The {records} are synthetic. One of them may resemble a real one by chance."


def _coin(guarantee: Mapping[str, Any], unit: object) -> list[str]:
    """Return the guarantee as a bet: the best chance of a right guess.

    Given an (ε, δ)-differentially private result, two equally likely worlds, with and without the records of one unit,
    are told apart with probability at most (e^ε + δ) / (e^ε + 1) (Kairouz, Oh & Viswanath 2015, theorem 2.1).
    """
    epsilon, delta = guarantee.get("epsilon"), guarantee.get("delta")
    if not isinstance(epsilon, (int, float)) or not isinstance(delta, (int, float)):
        return []
    right = (1 + min(1.0, delta) * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    often = math.ceil(1000 * min(1.0, right)) / 10
    which = f"one {unit} is used at all"
    if not _of_records(guarantee):
        yours = "" if people_in(str(unit)) is None else "; they could be yours"
        which = f"the records of one {unit} are used at all{yours}"
    bet = f"Suppose that a coin decides whether {which}. Anyone who guesses its side from this release is right"
    blind = "whatever else they know. A blind guess is right 50 times."
    if often >= _CERTAIN:
        return [f"{bet} up to 100 times in 100, {blind} This {HARDLY_ANYBODY}."]
    return [f"{bet} at most {often:g} times in 100, {blind}"]


def _factor(epsilon: object) -> str:
    if not isinstance(epsilon, (int, float)):
        return "e to the ε"
    return f"{odds_factor(epsilon)} (e^ε for ε = {figure(epsilon)})"


def _slack(delta: object) -> str:
    if not isinstance(delta, (int, float)) or delta <= 0:
        return ""
    return f", plus δ = {figure(delta)}"
