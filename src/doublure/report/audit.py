"""From attacks to what their page shows: no figure is computed here, only put into words and places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from doublure.attack.results import AttackResult, Family, Picture, Rate
from doublure.attack.roc import TprAtFpr
from doublure.report import page
from doublure.report.contents import Attacked, Evaluated
from doublure.report.tiles import terms
from doublure.results import percent, span

_TITLES: Mapping[Family, tuple[str, str]] = {
    "membership": (
        "Membership inference",
        "Each attacker gives every target a score; members should not have higher scores than others. The axes are "
        "logarithmic: on the left, false positives are rare. The dotted line is guessing. The band holds the whole "
        "true curve of an attacker with a confidence of 95 %.",
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

_MOST_ABREAST = 140
"""The most characters side by side that a sheet of paper has room for; records that have more are printed as text."""

_BOUNDED = (
    "If the claim holds, a true curve is nowhere above the dashed line. The drawn estimate may cross it by chance; a "
    "band that lies wholly above it at some point contradicts the claim."
)


def audit_context(report: Attacked) -> dict[str, Any]:
    """Return what the template of an audit names."""
    made = [found for found in report.attacks if found.skipped is None]
    return {
        "title": "Privacy audit",
        "internal": report.internal,
        "about": report.about,
        "claim": report.claim,
        "verdict": report.verdict,
        "terms": terms([report.verdict.headline, *report.verdict.lines], ["baseline"]),
        "alarm": bool(report.alarms),
        "sections": sections_of(made),
        "stories": [found.threat_model for found in made],
        "skipped": [found.sentence for found in report.attacks if found.skipped is not None],
        "seed": report.seed,
        "versions": report.versions,
    }


def attacks_context(report: Evaluated) -> dict[str, Any]:
    """Return what an evaluation's page says of attacks."""
    return {
        "sections": sections_of(report.attacks),
        "stories": [found.threat_model for found in report.attacks],
        "skipped": report.attacks_skipped,
    }


def sections_of(made: Sequence[AttackResult]) -> list[dict[str, Any]]:
    """Return a section for each family of attacks that were made, in the page's order."""
    found = []
    for family, (title, lead) in _TITLES.items():
        own = [entry for entry in made if entry.threat_model.family == family]
        if own:
            bounded = family == "membership" and any(entry.claim.epsilon is not None for entry in own)
            lead = f"{lead} {_BOUNDED}" if bounded else lead
            first = sorted(own, key=lambda entry: not entry.alarm)  # what contradicts the claim heads each table
            shown = {"attacks": [_shown(entry) for entry in first], "notes": _notes(own)}
            found.append({"family": family, "title": title, "lead": lead, "bounded": bounded, **shown})
    return found


def _notes(made: Sequence[AttackResult]) -> list[tuple[str, str]]:
    """Return whose each note is, and the note; what several attacks say stands once."""
    said: dict[str, list[str]] = {}
    for entry in made:
        for note in entry.notes:
            said.setdefault(note, []).append(entry.threat_model.name)
    everybody = "" if len(made) == 1 else "All of them"
    return [(everybody if len(names) == len(made) else ", ".join(names), note) for note, names in said.items()]


def _shown(found: AttackResult) -> dict[str, Any]:
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
        "targets": "" if roc is None else f"{roc.inside:,} members, {roc.outside:,} others",
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
    """Return how many characters a line has at least: of each column its longest piece, and a space."""
    columns = zip(*((picture.header, *picture.rows) if picture.rows else ()), strict=True)
    return sum(1 + max(len(piece) for cell in column for piece in re.split(r"[ -]", cell)) for column in columns)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _scale(found: AttackResult) -> dict[str, Any] | None:
    """Return the places of value, interval and baseline on a scale from 0 to 1."""
    if found.value is None or found.threat_model.family == "audit":
        return None
    dots = {"baseline": found.baseline, "synthetic": found.value}
    return {
        "dots": {role: round(100 * value, 2) for role, value in dots.items() if value is not None},
        "whisker": None if found.interval is None else tuple(round(100 * end, 2) for end in found.interval),
    }


def _rate(entry: Rate) -> dict[str, str]:
    return {
        "name": entry.name,
        "value": _figure(entry.value),
        "interval": span(entry.interval),
        "note": entry.note,
    }


def _at(entry: TprAtFpr) -> dict[str, str]:
    return {
        "value": "too few others" if entry.value is None else percent(entry.value),
        "interval": span(entry.interval, shares=True),
        "allowed": "" if entry.allowed is None else f"claim allows {percent(entry.allowed)}",
    }
