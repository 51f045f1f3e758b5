"""Reading ``plan.json``, which anybody may have edited: its figures must follow from its settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from doublure.access import events
from doublure.errors import InputError, SettingError
from doublure.guarantee import FLOATING, Guarantee
from doublure.methods import choice
from doublure.methods import registry as table
from doublure.methods.method import settings_of
from doublure.planning.assembling import assemble, is_priced, with_prices
from doublure.planning.budget import Budget
from doublure.planning.contents import VERSION, PlanContents
from doublure.private import accounting
from doublure.private.noise import source as noise_source
from doublure.schema import Schema

_PRICE_TOLERANCE = 0.01
_LARGEST_ESTIMATE = 1e18
WORDS = ("warnings",)
"""What a plan says and does not follow from its settings alone: another version may find other words."""


def read(data: Mapping[str, Any], name: str, *, reprice: bool) -> PlanContents:
    """Return the contents of a JSON object; see :meth:`doublure.planning.Plan.from_json`.

    Raises:
        InputError: It is no plan, of another version, or says something that does not follow from its settings.
    """
    if data.get("version") != VERSION:
        raise InputError("is of another version", field=f"{name} version", remedy="make the plan again")
    made = _reassembled(data, name)
    rewritten = json.loads(json.dumps(made.to_json()))
    for key in sorted(set(rewritten) | set(data)):
        if key not in data or key not in rewritten or (rewritten[key] != data[key] and key not in WORDS):
            raise _edited(name, key)
    if reprice:
        _recheck(made, name)
    return made


def _edited(name: str, key: str) -> InputError:
    return InputError("does not follow from the plan's settings", field=f"{name} {key}", remedy="make the plan again")


def _reassembled(data: Mapping[str, Any], name: str) -> PlanContents:
    """Build the plan that the file's settings give, with the prices and estimates that the file says."""
    try:
        schema = Schema.from_plain(data["schema"])
        chosen = table.method(data["method"])
        settings = chosen.resolve_defaults(schema, settings_of(chosen, schema.kind, dict(data["settings"])))
        budget = Budget.of(chosen, schema, data["epsilon"], data["delta"])
        _check_accountant(data["accountant"], budget)
        fixed = chosen.fixed_noise(settings)
        given = chosen.given_noise(settings)
        calibrated = data["noise_multiplier"] if given is None else given
        noise = calibrated if fixed is None else fixed.multiplier
        worst = None if fixed is None else (float(data["guarantee"]["epsilon"]), fixed.delta)
        made = assemble(chosen, schema, settings, budget, data["accountant"], noise, worst)
        prices = [access["epsilon"] for access in data["touches"]]
        touches = tuple(
            replace(access, epsilon=price) if is_priced(access) else access
            for access, price in zip(made.touches, prices, strict=True)
        )
        estimates = {key: data[key] for key in ("memory_bytes", "seconds_estimate")}
        epsilon = budget.epsilon if schema.kind in choice.CHOICES else None
        chose = () if epsilon is None else (choice.sentence(schema, epsilon),)
        said = tuple(sentence for sentence in chose if sentence in list(data["warnings"]))
        if FLOATING in data["guarantee"].get("excluded", ()):  # a plan of 0.1.0 claims less, and goes on doing so
            made = replace(made, guarantee=_before_exact_sums(made.guarantee, data["guarantee"].get("noise_source")))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("is not a plan", field=name, remedy="make it with doublure plan") from None
    if not all(_is_estimate(figure) for figure in estimates.values()):
        raise InputError("is not a plan", field=f"{name} memory_bytes", remedy="make it with doublure plan")
    return replace(made, touches=touches, warnings=(*said, *made.warnings), **estimates)


def _before_exact_sums(guarantee: Guarantee, source: object) -> Guarantee:
    """Return a claim as 0.1.0 made it: it did not say that noise is exact, and named a stream."""
    named = {"noise_source": source} if source == noise_source().name else {}
    return guarantee.inexact.model_copy(update=named)


def _is_estimate(figure: object) -> bool:
    return isinstance(figure, (int, float)) and not isinstance(figure, bool) and 0 <= figure < _LARGEST_ESTIMATE


def _check_accountant(accountant: object, budget: Budget) -> None:
    known = (None,) if budget.epsilon is None else ("pld", "rdp")
    if accountant not in known:
        raise SettingError("is not an accountant", field="accountant", remedy="make the plan again")


def _recheck(made: PlanContents, name: str) -> None:
    """Compose the accesses again: a price may differ in its last digits between machines, the total may not pass."""
    fresh = with_prices(made)
    for written, priced in zip(made.touches, fresh.touches, strict=True):
        if not _close(written.epsilon, priced.epsilon):
            raise _edited(name, "touches")
    epsilon, delta = made.worst_case or (made.epsilon, made.delta)
    if epsilon is not None and delta is not None:
        spent = accounting.epsilon_of(events(made.touches), delta, accountant=made.accountant)  # type: ignore[arg-type]
        if spent > epsilon:
            raise InputError(
                f"its accesses cost {spent:.6g}, more than it says",
                field=f"{name} epsilon",
                remedy="make the plan again",
            )


def _close(written: float | None, priced: float | None) -> bool:
    if written is None or priced is None:
        return written is priced
    return isinstance(written, (int, float)) and math.isclose(written, priced, rel_tol=_PRICE_TOLERANCE)
