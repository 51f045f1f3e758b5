"""Results of attacks: a figure, its uncertainty, the desired value, and the threat model.

Every figure stands beside that of an attacker without the synthetic records. Where the two are equal, nothing was
shown; that does not prove that nothing can be.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from doublure.attack.roc import RocCurve
from doublure.guarantee import Guarantee
from doublure.intervals import Interval, Result

Family: TypeAlias = Literal["membership", "linkage", "neighbours", "audit", "inversion"]

CONFIDENCE = 0.95
_DELTA_WITHOUT_CLAIM = 1e-5
LOWER_BOUND = "lower bound on ε"
SHOWN = 0.005
"""Smallest lower bound on ε that is reported: it is written with two digits."""

ABSENCE = "Attacks that find nothing are no proof of privacy: a better one may find more."


class ThreatModel(Result):
    """An attacker's knowledge and goal.

    Attributes:
        attack: The name that ``--attack`` takes.
        name: The name for people.
        family: The kind of attack.
        holds: The attacker's knowledge.
        does: The attacker's procedure.
        success: The criterion of success.
        shows: The conclusion a result allows.
        cannot: The conclusion it does not allow.
        reference: The attack's source.
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


class RateEstimate(Result):
    """One share with its interval.

    Attributes:
        name: The meaning of the share.
        value: The share; null where it cannot be estimated.
        interval: Its 95 % interval.
        note: The reason where there is none, or a remark.
    """

    name: str
    value: float | None
    interval: Interval | None = None
    note: str = ""


class Claim(Result):
    """The claim of an attacked release.

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
        """The δ for lower bounds on ε: the claimed one, or 1e-5 where none is claimed."""
        return _DELTA_WITHOUT_CLAIM if self.delta is None else self.delta

    @classmethod
    def of(cls, guarantee: Guarantee) -> Claim:
        """Return the claim of a guarantee."""
        return cls(kind=guarantee.kind, epsilon=guarantee.epsilon, delta=guarantee.delta, sentence=guarantee.sentence)


class Picture(Result):
    """A sheet of pictures or a few rows side by side, for the page alone. Private.

    Attributes:
        title: The title.
        png: A picture; empty for rows.
        header: The columns of rows.
        rows: Their cells.
    """

    title: str
    png: bytes = b""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class AttackResult(Result):
    """Result of one attack. Computed on real data: internal.

    Attributes:
        threat_model: The threat model.
        measure: The meaning of the value.
        value: The figure; null where the attack could not be made.
        interval: Its 95 % interval.
        baseline: The figure of an attacker without the synthetic records.
        desired: The desired value, in words.
        rates: Further shares.
        roc: The ROC curve, for membership.
        claim: The claim under attack.
        lower_bound: Lower bound on ε shown by this attack, at 95 % confidence; null where it shows none.
        alarm: Whether the result exceeds the claim.
        notes: Facts a reader needs to interpret the figures.
        skipped: The reason why the attack was not made; null where it was.
        pictures: For the page alone.
    """

    threat_model: ThreatModel
    measure: str
    value: float | None = None
    interval: Interval | None = None
    baseline: float | None = None
    desired: str = ""
    rates: tuple[RateEstimate, ...] = ()
    roc: RocCurve | None = None
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
        said = f"{self.threat_model.name}: {self.measure} {write_figure(self.value)}"
        if self.interval is not None:
            said += f" (95 %: {write_figure(self.interval[0])} to {write_figure(self.interval[1])})"
        if self.threat_model.family == "linkage" and self.rates:
            said += "; " + ", ".join(f"{rate.name} {write_figure(rate.value)}" for rate in self.rates)
        elif self.baseline is not None:
            said += f"; baseline {write_figure(self.baseline)}"
        if self.lower_bound is not None and self.lower_bound >= SHOWN and self.measure != LOWER_BOUND:
            said += f"; shows ε ≥ {self.lower_bound:.2f}"
        return said + (": MORE THAN IS CLAIMED." if self.alarm else ".")


def write_figure(value: float | None) -> str:
    """Return a figure as written in a sentence.

    Example:
        >>> write_figure(0.51234), write_figure(None)
        ('0.512', 'not estimable')
    """
    return "not estimable" if value is None else f"{value:.3f}"


def skip_attack(threat_model: ThreatModel, claim: Claim, why: str, **more: Any) -> AttackResult:
    """Return the result of an attack that was not made.

    Args:
        threat_model: Its threat model.
        claim: The claim under attack.
        why: The reason, as it goes on after "because".
        more: Further fields.
    """
    return AttackResult(threat_model=threat_model, measure="", claim=claim, skipped=why, **more)
