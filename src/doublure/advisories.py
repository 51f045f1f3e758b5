"""Known faults of earlier versions, reported when an affected run or bundle is loaded, released or verified."""

from __future__ import annotations

from collections.abc import Mapping

_CRITICS = {"guided": {"teach the critic", "train the critic"}, "latentgan": {"train the critic of latents"}}
_COUNTED = "count the units"

REMEDY = "withdraw what was released from it, and fit again from a new plan"
"""The remedy for each of them."""


def known_fault(version: object, made: object) -> str | None:
    """Return the known fault of the ε of a run or a bundle, if there is one.

    doublure 0.1.0 took the sampling rate of a critic, and with it σ, from the number of units that was bought: with
    ``guided`` (``critic_share`` above 0) and ``latentgan`` (``teacher=critic``) another mechanism ran than was priced.

    Args:
        version: The doublure that made it.
        made: A plan's or a card's JSON, whatever it holds.
    """
    if version != "0.1.0" or not isinstance(made, Mapping):
        return None
    touches = made.get("touches")
    purposes = {
        touch["purpose"]
        for touch in (touches if isinstance(touches, list) else ())
        if isinstance(touch, Mapping) and isinstance(touch.get("purpose"), str)
    }
    if _COUNTED not in purposes or purposes.isdisjoint(_CRITICS.get(str(made.get("method")), ())):
        return None
    return (
        "its ε is wrong, and may be far too small: doublure 0.1.0 took the critic's rate and noise from the number of "
        "units that was bought"
    )
