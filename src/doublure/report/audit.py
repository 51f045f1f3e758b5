"""Report of attacks and its page, which words and lays out figures computed elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from typing_extensions import override

from doublure.attack.results import ABSENCE, SHOWN, AttackResult, Claim, Family, Picture, RateEstimate
from doublure.attack.roc import TprAtFpr, others_needed
from doublure.errors import counted
from doublure.report import page
from doublure.report.display import outcome_html
from doublure.report.files import PageResult
from doublure.report.tiles import find_terms
from doublure.results import INTERNAL, InternalReport, Verdict, percent, span
from doublure.support.files import Form

_TITLES: Mapping[Family, tuple[str, str]] = {
    "membership": (
        "Membership inference",
        "Each attacker gives every target a score; members should not have higher scores than others. Others are half "
        "of the records kept aside: the other half is the attacker’s own. The axes are logarithmic: on the left, false "
        "positives are rare. The dotted line is guessing. The band holds the whole true curve of an attacker with a "
        "confidence of 95 %.",
    ),
    "linkage": (
        "Singling out, linking, inferring",
        "The three risks that regulators name. The risk is what an attack gains on members compared with the same "
        "attack on other records: 0 is none.",
    ),
    "audit": (
        "Audit by refitted models",
        "Lower bounds on the true ε that hold with a confidence of 95 %, whatever the distribution of the records.",
    ),
    "inversion": (
        "Model inversion",
        "Reconstructions from classifiers trained on real records, on synthetic ones, and on real ones under "
        "differential privacy.",
    ),
    "neighbours": (
        "Are there copies?",
        "Synthetic records beside the real ones that are nearest to them.",
    ),
}

_AT_ZERO = "could be found at ε = 0 too"
_MOST_ABREAST = 140
"""Most characters per line on printed paper; wider records are printed as text."""

_BOUNDED = (
    "If the claim holds, a true curve is nowhere above the dashed line. The drawn estimate may cross it by chance; a "
    "band that lies wholly above it at some point contradicts the claim."
)


class AttackReport(InternalReport, PageResult):
    """Attacks on one run, or on a method. Computed on real data: internal.

    Attributes:
        claim: The claim under attack.
        attacks: The result of each.
        seed: Fixes every random choice.
        versions: Versions of the software behind the figures.
    """

    form: ClassVar[Form] = "audit"

    version: Literal[1] = 1
    internal: str = INTERNAL
    claim: Claim
    attacks: tuple[AttackResult, ...]
    seed: int
    versions: Mapping[str, str]

    @override
    def to_html(self) -> str:
        return page.render("audit.html.j2", audit_context(self))

    def _repr_html_(self) -> str:
        return outcome_html("Audit", self.about, self.verdict, self.internal)

    @property
    def alarms(self) -> tuple[AttackResult, ...]:
        """The attacks that show more than the claim allows."""
        return tuple(found for found in self.attacks if found.alarm)

    @property
    def lower_bound(self) -> float | None:
        """The largest ε that any attack shows; null where none shows one."""
        return max((found.lower_bound for found in self.attacks if found.lower_bound is not None), default=None)

    @property
    @override
    def verdict(self) -> Verdict:
        made = [found for found in self.attacks if found.skipped is None]
        lines = [found.sentence for found in made]
        return Verdict(headline=self._headline(len(made)), lines=(*lines, ABSENCE), warnings=self._warnings())

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
            none = "No ε is claimed, so none can be refuted."
            if shown < SHOWN:
                return f"{none} What {made} {several} found {_AT_ZERO}."
            return f"{none} {made} {several} {_show(made)} ε ≥ {shown:.2f}."
        claim = f"the claim of ε = {self.claim.epsilon:g}"
        said = f"1 attack was made and does not contradict {claim}"
        if made > 1:
            said = f"{made} attacks were made and none contradicts {claim}"
        them = "it" if made == 1 else "they"
        if shown < SHOWN:
            return f"{said}: what {them} found {_AT_ZERO}."
        return f"{said}: {them} {_show(made)} ε ≥ {shown:.2f}, which it allows."

    def _warnings(self) -> tuple[str, ...]:
        return tuple(
            f"{entry.threat_model.name}: shows more than is claimed. Do not release; report it."
            for entry in self.alarms
        )

    @property
    @override
    def further_lines(self) -> tuple[str, ...]:
        return tuple(found.sentence for found in self.attacks if found.skipped is not None)


def audit_context(report: AttackReport) -> dict[str, Any]:
    """Return the variables of an audit's template."""
    made = [found for found in report.attacks if found.skipped is None]
    return {
        "title": "Privacy audit",
        "internal": report.internal,
        "about": report.about,
        "claim": report.claim,
        "verdict": report.verdict,
        "terms": find_terms([report.verdict.headline, *report.verdict.lines], ["baseline"]),
        "alarm": bool(report.alarms),
        "sections": attack_sections(made),
        "stories": [found.threat_model for found in made],
        "skipped": [found.sentence for found in report.attacks if found.skipped is not None],
        "seed": report.seed,
        "versions": report.versions,
    }


def attacks_context(attacks: Sequence[AttackResult], skipped: str | None) -> dict[str, Any]:
    """Return the variables of an evaluation's section on attacks, or the reason why none was made."""
    return {
        "sections": attack_sections(attacks),
        "stories": [found.threat_model for found in attacks],
        "skipped": skipped,
    }


def attack_sections(made: Sequence[AttackResult]) -> list[dict[str, Any]]:
    """Return a section for each family of attacks made, in the page's order."""
    found = []
    for family, (title, lead) in _TITLES.items():
        own = [entry for entry in made if entry.threat_model.family == family]
        if own:
            bounded = family == "membership" and any(entry.claim.epsilon is not None for entry in own)
            lead = f"{lead} {_BOUNDED}" if bounded else lead
            first = sorted(own, key=lambda entry: not entry.alarm)  # contradictions of the claim head each table
            shown = {"attacks": [_attack_entry(entry) for entry in first], "notes": _notes(own)}
            found.append({"family": family, "title": title, "lead": lead, "bounded": bounded, **shown})
    return found


def _notes(made: Sequence[AttackResult]) -> list[tuple[str, str]]:
    """Return the attacks of each note, and the note; a shared note appears once."""
    said: dict[str, list[str]] = {}
    for entry in made:
        for note in entry.notes:
            said.setdefault(note, []).append(entry.threat_model.name)
    everybody = "" if len(made) == 1 else "All of them"
    return [(everybody if len(names) == len(made) else ", ".join(names), note) for note, names in said.items()]


def _show(count: int) -> str:
    return "shows" if count == 1 else "show"


def _attack_entry(found: AttackResult) -> dict[str, Any]:
    from doublure.report import plots

    roc = found.roc
    return {
        "key": found.threat_model.attack,
        "name": found.threat_model.name,
        "measure": found.measure,
        "value": _figure(found.value),
        "interval": span(found.interval),
        "baseline": _figure(found.baseline),
        "good": found.desired,
        "cell": _scale(found),
        "lower_bound": "–" if found.lower_bound is None else f"{found.lower_bound:.2f}",
        "alarm": found.alarm,
        "rates": [_rate(entry) for entry in found.rates],
        "drawing": None
        if roc is None
        else plots.roc(roc, found.claim.epsilon, found.claim.delta, found.threat_model.name),
        "targets": "" if roc is None else f"{counted(roc.inside, 'member')}, {counted(roc.outside, 'other')}",
        "at": [] if roc is None else [_at(entry) for entry in roc.at],
        "pictures": [
            {
                "title": entry.title,
                "source": page.inline_png(entry.png) if entry.png else "",
                "header": entry.header,
                "rows": entry.rows,
                "many": _widest(entry) > _MOST_ABREAST,
            }
            for entry in found.pictures
        ],
    }


def _widest(picture: Picture) -> int:
    """Return the minimum line length in characters: each column's longest word, and a space."""
    columns = zip(*((picture.header, *picture.rows) if picture.rows else ()), strict=True)
    return sum(1 + max(len(piece) for cell in column for piece in re.split(r"[ -]", cell)) for column in columns)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _scale(found: AttackResult) -> dict[str, Any] | None:
    """Return the positions of value, interval and baseline on a scale from 0 to 1."""
    if found.value is None or found.threat_model.family == "audit":
        return None
    dots = {"baseline": found.baseline, "synthetic": found.value}
    return {
        "dots": {role: round(100 * value, 2) for role, value in dots.items() if value is not None},
        "whisker": None if found.interval is None else tuple(round(100 * end, 2) for end in found.interval),
    }


def _rate(entry: RateEstimate) -> dict[str, str]:
    return {
        "name": entry.name,
        "value": _figure(entry.value),
        "interval": span(entry.interval),
        "note": entry.note,
    }


def _at(entry: TprAtFpr) -> dict[str, str]:
    return {
        "value": f"needs {counted(others_needed(entry.false_positives), 'other')}"
        if entry.value is None
        else percent(entry.value),
        "interval": span(entry.interval, shares=True),
        "allowed": "" if entry.allowed is None else f"claim allows {percent(entry.allowed)}",
    }
