"""What an attack says: a figure, how sure it is, what is good, and what the attacker knew.

Every figure stands beside that of somebody who does not look at the synthetic records. Where it is the same, nothing
was shown; that is no proof that nothing can be.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from doublure.attack.roc import Roc
from doublure.guarantee import Guarantee
from doublure.intervals import Interval, Result

Family: TypeAlias = Literal["membership", "linkage", "neighbours", "audit", "inversion"]

CONFIDENCE = 0.95
_DELTA_WITHOUT_CLAIM = 1e-5
LOWER_BOUND = "lower bound on ε"
SHOWN = 0.005
"""What a lower bound on ε has to reach before it is called one: it is written with two digits."""

ABSENCE = "A lower bound; absence of evidence is not privacy."


class ThreatModel(Result):
    """An attacker: who this is, and what counts as success.

    Attributes:
        attack: The name that ``--attack`` takes.
        name: The same in words.
        family: What kind of attack it is.
        holds: What the attacker holds.
        does: What the attacker does with it.
        success: What it means to succeed.
        shows: What the figure can show.
        cannot: What it cannot show.
        reference: Where the attack comes from.
    """

    attack: str
    name: str
    family: Family
    holds: tuple[str, ...]
    does: str
    success: str
    shows: str
    cannot: str
    reference: str = ""


class Rate(Result):
    """One share with its interval.

    Attributes:
        name: What it is the share of.
        value: The share; null where it cannot be estimated.
        interval: Where it lies at 95 %.
        note: Why there is none, or how it is to be read.
    """

    name: str
    value: float | None
    interval: Interval | None = None
    note: str = ""


class Claim(Result):
    """What the attacked release claims.

    Attributes:
        kind: The kind of its guarantee.
        epsilon: Worst-case ε; null where none is claimed.
        delta: Worst-case δ.
        sentence: The claim in the words that may be printed.
    """

    kind: str
    epsilon: float | None = None
    delta: float | None = None
    sentence: str = ""

    @property
    def delta_shown_at(self) -> float:
        """The δ at which an attack shows a lower bound on ε: the claimed one, or 1e-5 where none is claimed."""
        return _DELTA_WITHOUT_CLAIM if self.delta is None else self.delta

    @classmethod
    def of(cls, guarantee: Guarantee) -> Claim:
        """Return what an attack is held against."""
        return cls(kind=guarantee.kind, epsilon=guarantee.epsilon, delta=guarantee.delta, sentence=guarantee.sentence)


class Picture(Result):
    """A sheet of pictures or a few rows side by side, for the page alone. Private.

    Attributes:
        title: What is shown.
        png: A picture; empty for rows.
        header: The columns of rows.
        rows: Their cells.
    """

    title: str
    png: bytes = b""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class AttackResult(Result):
    """What one attack found. Computed on real data: internal.

    Attributes:
        threat_model: The threat model.
        measure: What the value is.
        value: The figure; null where the attack could not be made.
        interval: Where it lies at 95 %.
        baseline: The figure of somebody who does not look at the synthetic records.
        desired: What is desired, in words.
        rates: Further shares.
        roc: What the attacker traded between hits and false alarms, for membership.
        claim: What was claimed.
        lower_bound: The least ε that this attack shows to be true, at 95 % confidence; null where it shows none.
        alarm: Whether more was shown than the claim allows.
        notes: What a reader has to know to read the figures right.
        skipped: Why the attack was not made; null where it was.
        pictures: For the page alone.
    """

    threat_model: ThreatModel
    measure: str
    value: float | None = None
    interval: Interval | None = None
    baseline: float | None = None
    desired: str = ""
    rates: tuple[Rate, ...] = ()
    roc: Roc | None = None
    claim: Claim
    lower_bound: float | None = None
    alarm: bool = False
    notes: tuple[str, ...] = ()
    skipped: str | None = None
    pictures: tuple[Picture, ...] = Field(default=(), exclude=True, repr=False)

    @property
    def sentence(self) -> str:
        """The result in one line."""
        if self.skipped is not None:
            return f"{self.threat_model.name}: not made, because {self.skipped}."
        said = f"{self.threat_model.name}: {self.measure} {written(self.value)}"
        if self.interval is not None:
            said += f" (95 %: {written(self.interval[0])} to {written(self.interval[1])})"
        if self.baseline is not None:
            said += f"; baseline {written(self.baseline)}"
        if self.lower_bound is not None and self.lower_bound >= SHOWN and self.measure != LOWER_BOUND:
            said += f"; shows ε ≥ {self.lower_bound:.2f}"
        return said + (": MORE THAN IS CLAIMED." if self.alarm else ".")


def written(value: float | None) -> str:
    """Return a figure as it stands in a sentence.

    Example:
        >>> written(0.51234), written(None)
        ('0.512', 'not estimable')
    """
    return "not estimable" if value is None else f"{value:.3f}"


def skipped(threat_model: ThreatModel, claim: Claim, why: str, **more: Any) -> AttackResult:
    """Return the result of an attack that was not made.

    Args:
        threat_model: Its threat model.
        claim: What was claimed.
        why: A reason that goes on after "because".
        more: Further fields.
    """
    return AttackResult(threat_model=threat_model, measure="", claim=claim, skipped=why, **more)
