"""The claim about a release: its kind, its figures and its wording.

The four kinds are never added up: ``dp``, ``bayesian-dp``, ``empirical``, ``none``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from doublure._version import __version__
from doublure.errors import RunFolderError
from doublure.models import Model

Kind: TypeAlias = Literal["dp", "bayesian-dp", "empirical", "none"]

WATERMARKS: dict[Kind, str] = {
    "dp": "Synthetic data with a differential-privacy guarantee",
    "bayesian-dp": "Synthetic data with a Bayesian differential-privacy estimate",
    "empirical": "Synthetic data with an empirical privacy estimate only",
    "none": "Synthetic data with no privacy guarantee: do not publish",
}
FORMER_WATERMARKS = {kind: mark.replace("Synthetic", "Artificial") for kind, mark in WATERMARKS.items()}
"""The wording of 0.1.0, on bundles that are still verified."""
_ONE_STEP, _FORMER_ONE_STEP = "1 noisy step", "1 noisy steps"
_EDITED = "it was edited: use it as fit or release wrote it, or ask who changed it"


BAYESIAN_ASSUMPTIONS = (
    "records are drawn independently from one distribution",
    "ε_μ is itself computed from private gradients, without noise; it stays internal, and its ceiling was fixed before",
    "the confidence of ε_μ is spent over all orders (union bound)",
    "distances are sampled from the records that were learned from, at the planned number of steps",
)
"""Assumptions of a Bayesian claim, besides those of every claim."""

PUBLIC_GENERATOR = "the public generator"
PUBLIC_LABELS = "the public labelling set"
PUBLIC_CANDIDATES = "the public candidates"
PUBLIC_ROWS = "the public rows"
UNPROTECTED_ROWS = (
    "the public rows are not protected; if they include these people, nothing is claimed about them there"
)
NO_SHARED_PEOPLE = "no person of its public data is among the private records"
NO_SHARED_PEOPLE_IN_LABELS = f"no person of {PUBLIC_LABELS} is among the private records"
SHARED_PEOPLE = "what the public data itself tells about people who are in both"
"""Assumptions and an exclusion of a claim that uses public data; its sentence states them too."""

CHOICE_OF_KIND = "which claim was made depends on the private data and is not accounted for"
"""An exclusion of a Bayesian claim, and of the worst case that may replace it; the sentences of both state it."""

AGGREGATOR = "whoever adds up the owners' answers sees each owner's exact sums, and is trusted with them"
CHOSEN = "where each owner is one unit, nobody but whoever adds up knows who was asked in which step"
"""Assumptions where records stay with several owners."""
ENDED = "what an end tells: an owner that fails, whatever the cause, ends the run, and nothing of it is published"
"""An exclusion there: a record may make its owner fail, and the missing release reveals that."""

ANY_DATA = (
    "the container's form is public: names of columns and arrays, the encoding and delimiter of text, types and "
    "shapes of Parquet and arrays, and that files and folders can be read; all data of that form is read, each record "
    "by itself"
)
QUOTING = "quoting is part of that form (multiline: true): a quote that is not closed may refuse a fit"
REFUSALS = "what a refusal tells: neighbours are data sets that the schema admits, and a fit refuses all others"
"""The data sets among which a claim holds: all of a form, with ``misfit: coerce``; a further part of that form where
quoted cells may hold line ends; and the exclusion with ``refuse``."""

_OF_RECORDS = (
    "several records together: each ",
    " is protected alone, so that k of them have k times this ε, and a larger δ",
)
_FORMER_OF_RECORDS = (
    "people with several records: one ",
    " is protected, so that someone with k of them has k times this ε, and a larger δ",
)


def of_records(unit: str) -> str:
    """Return the exclusion where single records are protected (``unit.id: none``), of one unit in words."""
    return unit.join(_OF_RECORDS)


def formerly_of_records(unit: str) -> tuple[str, str]:
    """Return that exclusion as earlier versions worded it, and as they did of a table's record, whatever it was of."""
    return unit.join(_FORMER_OF_RECORDS), "record (one row of a table)".join(_FORMER_OF_RECORDS)


def protects_records(excluded: Iterable[object]) -> bool:
    """Return whether one of a claim's exclusions is, as a whole, that of records: of some unit, in any wording."""
    said = [str(each) for each in excluded]
    return any(
        each == each.removeprefix(before).removesuffix(after).join((before, after))
        for before, after in (_OF_RECORDS, _FORMER_OF_RECORDS)
        for each in said
    )


FLOATING = "floating-point and timing side channels"
TIMING = "timing side channels"
"""Exclusions of the arithmetic: the second where all noise is exact. A claim that names neither excludes the first."""
INTERNAL = "internal reports"
"""An exclusion of every claim."""
_SENTENCES_OF_THEIR_OWN = (CHOICE_OF_KIND, UNPROTECTED_ROWS)

LARGE_EPSILON = 10.0
"""The ε above which a plan explains its meaning in a warning."""
HARDLY_ANYBODY = "protects hardly anybody"
_BEYOND_USE = math.log(1e6)

_FIGURES_OF: dict[Kind, frozenset[str]] = {
    "dp": frozenset({"epsilon", "delta"}),
    "bayesian-dp": frozenset({"epsilon_mu", "delta_mu", "epsilon", "delta", "gamma"}),
    "empirical": frozenset({"mu", "gamma"}),
    "none": frozenset(),
}
_FIGURES = ("epsilon", "delta", "epsilon_mu", "delta_mu", "mu", "gamma")
_LATER: dict[Kind, frozenset[str]] = {"empirical": frozenset({"mu", "gamma"})}
"""Figures that a claim has together, once they are estimated, or not at all."""

_CHANCES = frozenset({"delta", "delta_mu", "gamma"})
_VISIBLE = 1e-6
_ESTIMATE = "{distances} gradient distances per step, bound {bound}"
_WITHOUT_NOISE = "μ was itself computed from real records, without noise"
_ESTIMATED = re.compile(r"([1-9][0-9]*) gradient distances per step, bound (.+)")


class Guarantee(Model):
    """One claim; figures that do not apply are None.

    Attributes:
        kind: One of the four kinds.
        epsilon: Worst-case ε (``dp``; beside the estimate for ``bayesian-dp``).
        delta: Worst-case δ.
        epsilon_mu: The ceiling of the plan, which the Bayesian ε does not pass (``bayesian-dp``).
        delta_mu: Bayesian δ.
        mu: Expected privacy loss (``empirical``); None until it was estimated.
        gamma: The estimate's failure probability.
        unit: The unit of privacy, such as ``person``.
        max_records: The most records of one unit that are covered.
        relation: The neighbouring relation.
        accountant: The accountant that composed the events.
        sample_rate: q of the Poisson lots.
        noise_multiplier: Noise standard deviation over the clipping norm.
        steps: Noisy steps, T.
        noise_source: The source of the noise.
        assumptions: The assumptions of the claim.
        excluded: The exclusions of the claim.
        distances: The number of gradient distances that each step was estimated from (``bayesian-dp``). A card's keys
            are a contract, so this and ``bound`` are written among its assumptions.
        bound: The bound on their mean (``bayesian-dp``).

    Example:
        >>> guarantee = syn.guarantee
        >>> guarantee.kind, guarantee.epsilon, guarantee.delta, guarantee.unit
        ('dp', 1.0, 1e-05, 'person')
    """

    kind: Kind
    epsilon: float | None = None
    delta: float | None = None
    epsilon_mu: float | None = None
    delta_mu: float | None = None
    mu: float | None = None
    gamma: float | None = None
    unit: str = "person"
    max_records: int = 1
    relation: str = "add-remove"
    accountant: str | None = None
    sample_rate: float | None = None
    noise_multiplier: float | None = None
    steps: int | None = None
    noise_source: str | None = None
    assumptions: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    distances: int | None = Field(default=None, ge=1)
    bound: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        later = _LATER.get(self.kind, frozenset())
        unknown = all(getattr(self, name) is None for name in later)
        for name in _FIGURES:
            value, own = getattr(self, name), name in _FIGURES_OF[self.kind]
            if own and value is None and not (unknown and name in later):
                raise ValueError(f"a guarantee of kind {self.kind} needs {name}")
            if not own and value is not None:
                raise ValueError(f"a guarantee of kind {self.kind} never states {name}")
            if value is not None and (value < 0 or (name in _CHANCES and value >= 1)):
                raise ValueError(f"{name} is out of range")
        for name in ("distances", "bound"):
            if (getattr(self, name) is not None) != (self.kind == "bayesian-dp"):
                raise ValueError(f"{name} belongs to a guarantee of kind bayesian-dp, and to no other")
        return self

    @property
    def watermark(self) -> str:
        """The line that stands in every artefact.

        Example:
            >>> syn.guarantee.watermark
            'Synthetic data with a differential-privacy guarantee'
        """
        return WATERMARKS[self.kind]

    @property
    def sentence(self) -> str:
        """The claim in the design's words; nothing else about privacy may be printed.

        Example:
            >>> syn.guarantee.sentence
            '(ε=1, δ=1e-05)-differentially private for one person, add/remove neighbours, full batch, ...'
        """
        return _SENTENCES[self.kind](self)

    @property
    def former_sentence(self) -> str:
        """The claim as it was worded when its sentence named some exclusions alone; files and plans' hashes keep it."""
        if self.kind == "dp":
            left = [TIMING if TIMING in self.excluded else FLOATING, INTERNAL]
            shared = [SHARED_PEOPLE] if SHARED_PEOPLE in self.excluded else []
            return f"{_private(self)} Not covered: {', '.join(left + shared)}.{_said_apart(self.excluded)}"
        if self.kind == "bayesian-dp":
            return f"{_estimate(self)} {CHOICE_OF_KIND.capitalize()}."
        return self.sentence

    @property
    def about(self) -> dict[str, str]:
        """The metadata of every file of synthetic records."""
        return {"doublure": __version__, "watermark": self.watermark, "guarantee": self.sentence}

    def with_public_labels(self, *, shared_people: bool) -> Guarantee:
        """Return the claim about records that were labelled by a model of labelled public data.

        Args:
            shared_people: Whether people of the public data may be among the private records.
        """
        made = f"{PUBLIC_LABELS} was made and chosen without the private records"
        said = (made,) if shared_people else (made, NO_SHARED_PEOPLE_IN_LABELS)
        left = (SHARED_PEOPLE,) if shared_people and SHARED_PEOPLE not in self.excluded else ()
        return self.model_copy(update={"assumptions": (*self.assumptions, *said), "excluded": (*self.excluded, *left)})

    def assuming(self, said: Sequence[str]) -> Guarantee:
        """Return the claim with further assumptions, as a card states them."""
        return self.model_copy(update={"assumptions": (*self.assumptions, *said)})

    def without(self, said: Sequence[str]) -> Guarantee:
        """Return the claim without assumptions that a card adds."""
        kept = tuple(entry for entry in self.assumptions if entry not in said)
        return self.model_copy(update={"assumptions": kept})

    @property
    def inexact(self) -> Guarantee:
        """The same claim, without saying that all noise is exact."""
        excluded = tuple(FLOATING if left == TIMING else left for left in self.excluded)
        return self.model_copy(update={"excluded": excluded})

    def estimated(self, *, mu: float, gamma: float, basis: str) -> Guarantee:
        """Return an ``empirical`` claim that states an estimate, in place of an earlier one if there was one.

        Args:
            mu: The expected privacy loss, at least 0; stated with three digits, rounded up, since more would only tell
                more of the records that it was computed from.
            gamma: The chance that one more pair's loss passes it.
            basis: The data that it was computed from, in words.
        """
        said = (basis, _WITHOUT_NOISE)
        kept = self.unestimated
        return Guarantee.model_validate(
            kept.model_dump() | {"mu": rounded_up(mu, 3), "gamma": gamma, "assumptions": (*kept.assumptions, *said)}
        )

    @property
    def unestimated(self) -> Guarantee:
        """The claim of the plan, without estimates that were made afterwards (``empirical``; others as they are)."""
        if self.kind != "empirical" or self.mu is None:
            return self
        assumptions = self.assumptions[:-2] if self.assumptions[-1:] == (_WITHOUT_NOISE,) else self.assumptions
        return self.model_copy(update={"mu": None, "gamma": None, "assumptions": assumptions})

    @property
    def worst_case(self) -> Guarantee:
        """The worst case, of kind dp, that remains of a Bayesian claim without its estimate.

        Example:
            >>> syn.guarantee.worst_case is syn.guarantee  # not Bayesian
            True
        """
        if self.kind != "bayesian-dp":
            return self
        own = {"kind", "epsilon_mu", "delta_mu", "gamma", "distances", "bound", "assumptions", "excluded"}
        assumptions = tuple(entry for entry in self.assumptions if entry not in BAYESIAN_ASSUMPTIONS)
        excluded = tuple(dict.fromkeys((*self.excluded, CHOICE_OF_KIND)))
        return Guarantee(kind="dp", assumptions=assumptions, excluded=excluded, **self.model_dump(exclude=own))

    def to_json(self) -> dict[str, Any]:
        """Return the keys of the contract, as a card and ``guarantee.json`` hold them.

        Example:
            >>> syn.guarantee.to_json()["assumptions"]
            ['the declared facts of the schema are public']
        """
        fields = self.model_dump(mode="json", exclude={"distances", "bound"})
        if self.distances is not None:
            fields["assumptions"].append(_ESTIMATE.format(distances=self.distances, bound=self.bound))
        return {**fields, "sentence": self.sentence}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Guarantee:
        """Read what :meth:`to_json` wrote.

        Raises:
            RunFolderError: The sentence is not the one that these figures give.

        Example:
            >>> db.Guarantee.from_json(syn.guarantee.to_json()) == syn.guarantee
            True
        """
        fields = dict(data)
        sentence = fields.pop("sentence", None)
        try:
            if {"distances", "bound"} & fields.keys():
                raise ValueError("no keys of the contract")
            guarantee = cls.model_validate(_with_estimate(fields))
        except ValueError:
            raise RunFolderError("has figures that make no guarantee", field="guarantee", remedy=_EDITED) from None
        if sentence is not None and as_worded_now(str(sentence)) not in (guarantee.sentence, guarantee.former_sentence):
            said = "is not the sentence that its figures give"
            raise RunFolderError(said, field="guarantee.sentence", remedy=_EDITED)
        return guarantee


def claim_as_worded_now(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a written claim with its sentence as this version words it; one that is no claim as it is."""
    try:
        return {**claim, "sentence": Guarantee.from_json(dict(claim)).sentence}
    except RunFolderError:
        return claim


def as_worded_now(text: str) -> str:
    """Return a text with the sentence of a claim of one step as this version words it."""
    return text.replace(f", {_FORMER_ONE_STEP},", f", {_ONE_STEP},")


def as_worded_formerly(text: str) -> str:
    """Return canonical JSON with a sentence of one step and an exclusion of records as they were worded before.

    Plans' hashes keep that.
    """
    for now, formerly in zip(_OF_RECORDS, _FORMER_OF_RECORDS, strict=True):
        text = text.replace(json.dumps(now)[1:-1], json.dumps(formerly)[1:-1])
    return text.replace(f", {_ONE_STEP},", f", {_FORMER_ONE_STEP},")


def may_state_measured_epsilon(written: Mapping[str, Any]) -> bool:
    """Whether an unreadable claim may be one of 0.1.0, which stated the measured ε_μ and no ceiling."""
    return written.get("kind") == "bayesian-dp"


def _with_estimate(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields, with those that :meth:`Guarantee.to_json` wrote among the assumptions restored."""
    written = fields.get("assumptions")
    if fields.get("kind") != "bayesian-dp" or not isinstance(written, list) or not written:
        return fields
    found = _ESTIMATED.fullmatch(str(written[-1]))
    if found is None:
        return fields
    return {**fields, "assumptions": written[:-1], "distances": int(found[1]), "bound": found[2]}


def figure(value: float | None) -> str:
    """Return a figure of a claim as text: four significant digits, rounded up, so that it never claims less.

    Example:
        >>> figure(0.99999), figure(1e-5), figure(2.99612)
        ('1', '1e-05', '2.997')
    """
    return "unknown" if value is None else f"{rounded_up(value, 4):g}"


def odds_factor(epsilon: float) -> str:
    """Return the factor by which an attacker's odds may grow, as text: e^ε, rounded up.

    Example:
        >>> odds_factor(1.0), odds_factor(7.0), odds_factor(700.0)
        ('2.72', '1,097', 'more than a million, which protects hardly anybody')
    """
    if epsilon > _BEYOND_USE:
        return f"more than a million, which {HARDLY_ANYBODY}"
    factor, digits = math.exp(epsilon), 2 if epsilon < math.log(100) else 0
    return f"{math.ceil(factor * 10**digits) / 10**digits:,.{digits}f}"


def rounded_up(value: float, digits: int) -> float:
    """Return a number with so many significant digits, rounded up.

    Example:
        >>> rounded_up(0.12301, 3), rounded_up(1e-5, 3)
        (0.124, 1e-05)
    """
    from decimal import ROUND_CEILING, Context, Decimal

    # repr, not the binary value: 1e-5 is meant as written and must not be rounded up to 1.001e-05.
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(value))))


def _covered(guarantee: Guarantee) -> str:
    if guarantee.max_records == 1:
        return guarantee.unit
    return f"{guarantee.unit} (at most {guarantee.max_records} records of each are used)"


def _dp(guarantee: Guarantee) -> str:
    return f"{_private(guarantee)} {_uncovered(guarantee.excluded)}"


def _private(guarantee: Guarantee) -> str:
    """Return what an (ε, δ) claims, in a sentence."""
    how = [f"{guarantee.relation.replace('add-remove', 'add/remove')} neighbours"]
    if guarantee.sample_rate is not None:
        how.append("full batch" if guarantee.sample_rate == 1 else f"Poisson lots q={figure(guarantee.sample_rate)}")
    if guarantee.steps is not None:
        how.append(_ONE_STEP if guarantee.steps == 1 else f"{guarantee.steps} noisy steps")
    how.append(f"accountant {guarantee.accountant}")
    given = _given_public(guarantee)
    public = f", and that {given}" if given else ""
    return (
        f"(ε={figure(guarantee.epsilon)}, δ={figure(guarantee.delta)})-differentially private for one "
        f"{_covered(guarantee)}, {', '.join(how)}; given the declared schema{public}."
    )


def _uncovered(excluded: Sequence[str]) -> str:
    """Return all exclusions of a claim, as its sentence ends."""
    listed = (left for left in excluded if left not in _SENTENCES_OF_THEIR_OWN)
    named = dict.fromkeys((TIMING if TIMING in excluded else FLOATING, INTERNAL, *listed))
    return f"Not covered: {'; '.join(named)}.{_said_apart(excluded)}"


def _said_apart(excluded: Sequence[str]) -> str:
    return "".join(f" {said.capitalize()}." for said in _SENTENCES_OF_THEIR_OWN if said in excluded)


def _given_public(guarantee: Guarantee) -> str:
    """Return the assumptions about public data that a claim uses; nothing where it uses none."""
    known = (
        PUBLIC_GENERATOR,
        PUBLIC_LABELS,
        PUBLIC_CANDIDATES,
        PUBLIC_ROWS,
        NO_SHARED_PEOPLE,
        NO_SHARED_PEOPLE_IN_LABELS,
    )
    return " and that ".join(said for said in guarantee.assumptions if said.startswith(known))


def _confidence(gamma: float) -> str:
    """Return 1 - γ; in figures only where they would not be rounded up to certainty."""
    return f"{1 - gamma:.10g}" if gamma >= _VISIBLE else f"1−{figure(gamma)}"


def _bayesian(guarantee: Guarantee) -> str:
    """Return the claim that holds first: the worst case, unless which claim is made depends on what is measured."""
    no_more = _orders((guarantee.epsilon, guarantee.delta), (guarantee.epsilon_mu, guarantee.delta_mu))
    if CHOICE_OF_KIND in guarantee.excluded and not no_more:
        return f"{_estimate(guarantee)} {_uncovered(guarantee.excluded)}"
    beside = "The estimate says no more" if no_more else "Whatever is measured, this holds, too"
    return f"{_private(guarantee)} {beside}: {_ceiling(guarantee)}. {_uncovered(guarantee.excluded)}"


def _orders(stronger: tuple[float | None, ...], weaker: tuple[float | None, ...]) -> bool:
    """Whether each figure of a claim is at most that of another."""
    return all((left or 0.0) <= (right or 0.0) for left, right in zip(stronger, weaker, strict=True))


def _estimate(guarantee: Guarantee) -> str:
    """Return what a Bayesian claim estimates, in a sentence."""
    given = _given_public(guarantee)
    public = f"; given that {given}" if given else ""
    return (
        f"{_ceiling(guarantee)}; a record from elsewhere is covered only by the worst-case "
        f"(ε={figure(guarantee.epsilon)}, δ={figure(guarantee.delta)}) of the same run{public}."
    )


def _ceiling(guarantee: Guarantee) -> str:
    heuristic = "; heuristic" if str(guarantee.bound).lower().startswith("student") else ""
    return (
        f"(ε_μ ≤ {figure(guarantee.epsilon_mu)}, δ_μ={figure(guarantee.delta_mu)})-Bayesian DP for records drawn from "
        f"the data's own distribution, estimated from {guarantee.distances} gradient distances per step at confidence "
        f"{_confidence(guarantee.gamma or 0.0)} ({guarantee.bound}{heuristic})"
    )


def _empirical(guarantee: Guarantee) -> str:
    stated = f"μ={figure(guarantee.mu)} at γ={figure(guarantee.gamma)}"
    return (
        f"Empirical estimate for this data set only: expected privacy loss "
        f"{'not estimated' if guarantee.mu is None else stated}. This is not ε and bounds no individual's risk."
    )


def _none(guarantee: Guarantee) -> str:
    del guarantee
    return "No privacy guarantee. Do not publish."


_SENTENCES = {"dp": _dp, "bayesian-dp": _bayesian, "empirical": _empirical, "none": _none}
