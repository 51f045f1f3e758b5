"""Plans as users handle them: made, read, written, explained and compared with a claim."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from doublure.access import Access, events, same_accesses
from doublure.errors import InputError, SettingError, printable
from doublure.guarantee import (
    CHOICE_OF_KIND,
    FLOATING,
    Guarantee,
    as_worded_formerly,
    claim_as_worded_now,
    formerly_of_records,
    of_records,
)
from doublure.ledger.chain import canonical_json
from doublure.methods import choice, presets
from doublure.methods import registry as methods
from doublure.methods.method import settings_of
from doublure.planning import explain as words
from doublure.planning.contents import VERSION, PlanContents, is_priced, with_prices
from doublure.planning.planner import (
    DELTA_WITHOUT_PRIVACY,
    BudgetRequest,
    assemble,
    learned_facts,
    plan_contents,
    with_fallback_said,
)
from doublure.private import accounting
from doublure.private.noise import source as noise_source
from doublure.schema import Schema
from doublure.support.files import read_json, write_json

WORDS = ("warnings",)
"""Keys of a plan that do not follow from its settings alone: another version may word them differently."""

_OPENDP, _EXACT_COUNTS = "opendp discrete Gaussian", "exact discrete Gaussian"
"""Sources of counts' noise, up to 0.2.0 and since, of one law; a plan keeps the name that it was made with."""

_BINDS_NOBODY = frozenset({"seconds_estimate", "memory_bytes", *WORDS})
_PRICE_TOLERANCE = 0.01
_LARGEST_ESTIMATE = 1e18


def plan(
    schema: Schema | str | Path,
    *,
    method: str = choice.AUTO,
    epsilon: float | None = None,
    delta: float | None = None,
    accountant: Literal["auto", "pld", "rdp"] = "auto",
    preset: str | None = None,
    **settings: Any,
) -> Plan:
    """Plan a run. Reads no data.

    Args:
        schema: The public facts (or the path of the file that holds them).
        method: A name from :mod:`doublure.methods.registry`; left out, or ``auto``, it is chosen from the schema and ε,
            with the reason.
        epsilon: The total ε, learned facts included. There is no default; ``gan`` takes none, for ``bayesgan`` it is
            the ceiling on ε_μ, and where the setting ``noise_multiplier`` gives ``dpgan`` its σ it follows.
        delta: The total δ; for ``bayesgan`` δ_μ.
        accountant: ``pld`` (tight), ``rdp``, or ``auto``: ``pld``, and ``rdp`` where that cannot.
        preset: One of :mod:`doublure.methods.presets`: a paper's method, and its settings for those that
            are not given.
        settings: Settings of the method, by name.

    Returns:
        A frozen plan.

    Raises:
        SchemaError: A fact is undeclared; the message names it and the ways out.
        SettingError: A setting is out of range, ε is not feasible (the message says what would be), or this machine
            could not hold the run.

    Example:
        >>> plan = db.plan("people.schema.yaml", method="dpgan", epsilon=3.0, delta=1e-5, steps=100)
        >>> plan.steps, plan.guarantee.kind, plan.noise_multiplier > 1
        (100, 'dp', True)
    """
    read = schema if isinstance(schema, Schema) else Schema.load(schema)
    if preset is None:
        return Plan.from_contents(plan_contents(read, method, epsilon, delta, accountant, settings))
    own, settings = presets.with_preset(preset, read.kind, settings)
    if method not in (choice.AUTO, own):
        raise SettingError(f"stands beside preset {preset}, which is {own}", field="method", remedy="leave one out")
    made = plan_contents(read, own, epsilon, delta, accountant, settings)
    return Plan.from_contents(replace(made, warnings=(presets.sentence(preset, read.kind), *made.warnings)))


@dataclass(frozen=True, kw_only=True)
class Plan(PlanContents):
    """A planned run, made by :func:`doublure.plan` and read by :func:`doublure.fit`.

    Example:
        >>> plan
        Plan(method='statistics', 3 columns, guarantee='(ε=1, δ=1e-05)-differentially private ...')
        >>> plan.epsilon, plan.guarantee.kind, plan.steps, plan.touches[0].purpose
        (1.0, 'dp', 8, 'count wide columns in public cells')
    """

    def __repr__(self) -> str:
        """Return the plan in one line; :meth:`explain` says the rest."""
        return words.short(self)

    def _repr_html_(self) -> str:
        return words.html(self)

    @property
    def sha256(self) -> str:
        """The SHA-256 of all that the plan does and claims, without estimates and warnings.

        Example:
            >>> plan.sha256 == db.plan(schema, epsilon=1.0, delta=1e-5).sha256
            True
        """
        kept = {key: value for key, value in self.to_json().items() if key not in _BINDS_NOBODY}
        kept["guarantee"]["sentence"] = self.guarantee.former_sentence
        return hashlib.sha256(as_worded_formerly(canonical_json(kept).decode()).encode()).hexdigest()

    @property
    def answered_facts(self) -> tuple[Access, ...]:
        """The accesses that buy facts, as they are answered: with noise even where a plan claims nothing."""
        priced = all(access.event is not None for access in self.learned)
        return self.learned if priced else learned_facts(self.schema, DELTA_WITHOUT_PRIVACY)

    @property
    def answered(self) -> tuple[Access, ...]:
        """All accesses, as they are answered."""
        return (*self.answered_facts, *self.training)

    @property
    def fewest_records(self) -> int:
        """The fewest records that a fit needs: 0 where misfits are coerced, since a refusal would reveal the count.

        Without a claim nothing is protected, and a generator needs records to learn from.
        """
        return 0 if self.schema.misfit == "coerce" and self.guarantee.epsilon is not None else 2

    @classmethod
    def from_contents(cls, contents: PlanContents) -> Plan:
        """Return the plan of these contents."""
        return cls(**vars(contents))

    def may_claim(self, guarantee: Guarantee) -> bool:
        """Whether a run of this plan can end with a claim: the plan's own, or one that its method may end with instead.

        No figure of a Bayesian claim is decided afterwards: another ceiling is another plan, and another charge.
        """
        return methods.method(self.method).may_claim(guarantee, self.guarantee, self.settings)

    def does_the_same_as(self, other: Plan) -> bool:
        """Return whether another plan is the same but for its estimate of time."""
        return replace(self, seconds_estimate=other.seconds_estimate) == other

    def explain(self) -> str:
        """Return the plan in words and figures, for a terminal.

        Example:
            >>> print(plan.explain())
            Method statistics: a generator fitted to noisy statistics: ...
            Unit of privacy: one person
            Assumed: no person has more than one record
            Budget: ε = 1, δ = 1e-05, add/remove, accountant pld
            ...
        """
        return words.explain(self)

    def save(self, path: str | Path) -> None:
        """Write ``plan.json``.

        Example:
            >>> plan.save("plan.json")
            >>> db.Plan.load("plan.json") == plan
            True
        """
        write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read ``plan.json`` and check that its figures are those its settings give.

        Raises:
            InputError: The file is missing, of another version, or was edited into something it does not pay for.

        Example:
            >>> plan.save("plan.json")
            >>> db.Plan.load("plan.json").steps
            8
        """
        return cls.from_json(read_json(Path(path), "plan"), name=Path(path).name)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], name: str = "plan.json", *, reprice: bool = True) -> Plan:
        """Read what :meth:`to_json` wrote; see :meth:`load`.

        Args:
            data: The JSON object.
            name: The file's name, for errors.
            reprice: Compose the accesses again. A run folder leaves it out: its plan was paid for when it was
                reserved, the ledger has its own record of it, and loading has to be quick.
        """
        return cls.from_contents(_read(data, name, reprice=reprice))


_REMAKE = "make the plan again; if you were given it, ask who edited it"
_UNREGISTERED = (
    "in Python, first import the module that calls doublure.methods.registry.register for it; the command line knows "
    "the methods of this package alone"
)


# -- plan.json: its figures must follow from its settings --------------------------------------------------------------


def _read(data: Mapping[str, Any], name: str, *, reprice: bool) -> PlanContents:
    """Return the contents of a JSON object, which may have been edited; see :meth:`Plan.from_json`.

    Raises:
        InputError: It is no plan, of another version, or says something that does not follow from its settings.
    """
    if data.get("version") != VERSION:
        raise InputError("is of another version", field=f"{name} version", remedy=_REMAKE)
    claim = data.get("guarantee")
    if isinstance(claim, Mapping) and "sentence" in claim:
        data = {**data, "guarantee": claim_as_worded_now(claim)}
    made = _reassembled(data, name)
    rewritten = json.loads(json.dumps(made.to_json()))
    for key in sorted(set(rewritten) | set(data)):
        if key not in data or key not in rewritten or not _follows(key, data[key], rewritten[key]):
            raise _edited(name, key)
    if reprice:
        _recheck(made, name)
    return made


def _follows(key: str, written: Any, made: Any) -> bool:
    """Whether what a file says under a key is what its settings give, but for words."""
    return key in WORDS or (same_accesses(written, made) if key == "touches" else bool(written == made))


def _edited(name: str, key: str) -> InputError:
    return InputError("does not follow from the plan's settings", field=f"{name} {key}", remedy=_REMAKE)


def _reassembled(data: Mapping[str, Any], name: str) -> PlanContents:
    """Build the plan that the file's settings give, with the prices and estimates that the file says."""
    if isinstance(named := data.get("method"), str) and named not in methods.METHODS:
        message = f"is of the method {printable(named)}, which is not registered in this process"
        raise InputError(message, field=name, remedy=_UNREGISTERED)
    try:
        schema = Schema.from_plain(data["schema"])
        chosen = methods.method(data["method"])
        settings = chosen.resolve_defaults(
            schema, settings_of(chosen, schema.kind, dict(data["settings"]), planned=True)
        )
        budget = BudgetRequest.from_request(chosen, schema, data["epsilon"], data["delta"])
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
        chose = (
            *(presets.sentence(name, schema.kind) for name in presets.about(schema.kind)),
            *(() if epsilon is None else (choice.sentence(schema, epsilon),)),
        )
        said = tuple(sentence for sentence in chose if sentence in list(data["warnings"]))
        made = with_fallback_said(made) if choice.FELL_BACK in data["warnings"] else made
        if FLOATING in data["guarantee"].get("excluded", ()):  # a plan of 0.1.0 claims less, and goes on doing so
            made = replace(made, guarantee=_before_exact_sums(made.guarantee, data["guarantee"].get("noise_source")))
        source = data["guarantee"].get("noise_source")
        if source == chosen.noise_source(settings):  # as earlier plans have
            made = replace(made, guarantee=made.guarantee.model_copy(update={"noise_source": source}))
        if CHOICE_OF_KIND in data["guarantee"].get("excluded", ()):  # which earlier plans say of every Bayesian claim
            chosen_by = dict.fromkeys((*made.guarantee.excluded, CHOICE_OF_KIND))
            made = replace(made, guarantee=made.guarantee.model_copy(update={"excluded": tuple(chosen_by)}))
        own = of_records(schema.unit_in_words)
        for former in formerly_of_records(schema.unit_in_words):
            if former in data["guarantee"].get("excluded", ()):  # a plan goes on saying what it said
                said_so = tuple(former if each == own else each for each in made.guarantee.excluded)
                made = replace(made, guarantee=made.guarantee.model_copy(update={"excluded": said_so}))
        if _OPENDP in (data["guarantee"].get("noise_source") or ""):
            named = (made.guarantee.noise_source or "").replace(_EXACT_COUNTS, _OPENDP)
            made = replace(made, guarantee=made.guarantee.model_copy(update={"noise_source": named}))
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


def _check_accountant(accountant: object, budget: BudgetRequest) -> None:
    known = (None,) if budget.epsilon is None else ("pld", "rdp")
    if accountant not in known:
        raise SettingError("is not an accountant", field="accountant", remedy=_REMAKE)


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
                remedy=_REMAKE,
            )


def _close(written: float | None, priced: float | None) -> bool:
    if written is None or priced is None:
        return written is priced
    return isinstance(written, (int, float)) and math.isclose(written, priced, rel_tol=_PRICE_TOLERANCE)
