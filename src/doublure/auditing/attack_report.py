"""What all attacks on one run found, together. Computed on real data: internal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from doublure.attack.results import ABSENCE, SHOWN, AttackResult, Claim
from doublure.report.display import outcome_html
from doublure.report.files import Saved
from doublure.results import INTERNAL, InternalReport, Verdict


class AttackReport(InternalReport, Saved):
    """Attacks on one run, or on a method. Computed on real data: internal.

    Attributes:
        claim: What was claimed.
        attacks: What each found.
        seed: What fixed every random choice.
        versions: What the figures were made with.
    """

    page: ClassVar[Literal["audit"]] = "audit"

    version: Literal[1] = 1
    internal: str = INTERNAL
    claim: Claim
    attacks: tuple[AttackResult, ...]
    seed: int
    versions: Mapping[str, str]

    def _repr_html_(self) -> str:
        return outcome_html(self, "Audit", self.internal)

    @property
    def alarms(self) -> tuple[AttackResult, ...]:
        """The attacks that show more than is claimed."""
        return tuple(found for found in self.attacks if found.alarm)

    @property
    def lower_bound(self) -> float | None:
        """The largest ε that any attack shows; null where none shows one."""
        return max((found.lower_bound for found in self.attacks if found.lower_bound is not None), default=None)

    @property
    def verdict(self) -> Verdict:
        """The outcome in plain words."""
        made = [found for found in self.attacks if found.skipped is None]
        lines = [found.sentence for found in made]
        return Verdict(headline=self._headline(len(made)), lines=tuple(lines), warnings=self._warnings())

    def _headline(self, made: int) -> str:
        shown, alarms = self.lower_bound, len(self.alarms)
        several = "attack" if made == 1 else "attacks"
        if alarms:
            return f"Alarm: {alarms} of {made} {several} {_show(alarms)} more leakage than the claim allows."
        if not made:
            return "No attack was made."
        if shown is None:
            nothing = "was made; it gives no" if made == 1 else "were made; none of them gives a"
            return f"{made} {several} {nothing} lower bound on ε."
        if self.claim.epsilon is None:
            found = f"ε ≥ {shown:.2f}" if shown >= SHOWN else "no lower bound on ε"
            return f"No ε is claimed, so none can be refuted. {made} {several} {_show(made)} {found}."
        claim = f"the claim of ε = {self.claim.epsilon:g}"
        said = f"1 attack was made and does not contradict {claim}"
        if made > 1:
            said = f"{made} attacks were made and none contradicts {claim}"
        return f"{said}: ε ≥ {shown:.2f} is shown." if shown >= SHOWN else f"{said}: no lower bound on ε is shown."

    def _warnings(self) -> tuple[str, ...]:
        found = [
            f"{entry.threat_model.name}: shows more than is claimed. Do not release; report it."
            for entry in self.alarms
        ]
        return (*found, ABSENCE)

    @property
    def further_lines(self) -> tuple[str, ...]:
        """What was not made, and why."""
        return tuple(found.sentence for found in self.attacks if found.skipped is not None)


def _show(count: int) -> str:
    return "shows" if count == 1 else "show"
