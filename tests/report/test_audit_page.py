"""The page of an audit: marked internal, complete, and deaf to hostile names."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.attack.results import AttackResult, Claim, Picture, RateEstimate, ThreatModel
from doublure.attack.roc import roc
from doublure.report.audit import AttackReport, attack_sections

HOSTILE = '<script>alert("x")</script>'


def threat(name: str, family: str) -> ThreatModel:
    return ThreatModel(
        attack=name, name=name.title(), family=family, holds=("a key",), does="Turns it.", success="It opens.",
        shows="That it fits.", cannot="That no other does.",
    )  # fmt: skip


@pytest.fixture
def report():
    claim = Claim(kind="dp", epsilon=1.0, delta=1e-5, sentence="a claim")
    curve = roc(np.array([0.9, 0.8, 0.7]), np.array([0.1, 0.2, 0.3]), 1.0, 1e-5)
    attacks = (
        AttackResult(threat_model=threat("first", "membership"), measure="area", value=1.0, interval=(0.9, 1.0),
                     baseline=0.5, claim=claim, roc=curve, lower_bound=2.0, alarm=True, notes=("shared", "own")),
        AttackResult(threat_model=threat("second", "membership"), measure="area", value=0.5, claim=claim, roc=curve,
                     lower_bound=0.0, notes=("shared",)),
        AttackResult(threat_model=threat("copies", "neighbours"), measure="share", value=None, claim=claim,
                     rates=(RateEstimate(name="equal", value=0.1, interval=(0.0, 0.2)),),
                     pictures=(Picture(title="Pairs", header=("", HOSTILE), rows=(("real", HOSTILE),)),)),
        AttackResult(threat_model=threat("missing", "audit"), measure="", claim=claim, skipped=f"of {HOSTILE}"),
    )  # fmt: skip
    return AttackReport(claim=claim, attacks=attacks, seed=3, versions={"doublure": "1"})


def test_the_page_is_marked_and_whole(report, parse):
    html = report.to_html()
    page = parse(html)
    assert "script" not in page.tags
    assert "INTERNAL" in page.text
    assert "Alarm: 1 of 3 attacks shows more leakage than the claim allows." in page.text
    assert "above the claim" in page.text
    assert "needs 1,000 others" in page.text
    assert "the other half is the attacker’s own" in page.text
    for words in ("Bands are simultaneous", "That no other does.", "That it fits.", "Missing: not made", "Pairs"):
        assert words in page.text
    assert html.count("alert(") == html.count("alert(&#34;")
    assert len(page.ids) == len(set(page.ids))


def test_what_several_say_stands_once(report):
    (membership, neighbours) = attack_sections([entry for entry in report.attacks if entry.skipped is None])
    assert membership["notes"] == [("All of them", "shared"), ("First", "own")]
    assert neighbours["notes"] == []


def test_a_bound_is_spoken_of_where_one_is_claimed(report):
    made = [entry for entry in report.attacks if entry.skipped is None]
    bare = Claim(kind="none", sentence="nothing is claimed")
    for claim, said in ((report.claim, True), (bare, False)):
        (membership, _) = attack_sections([entry.model_copy(update={"claim": claim}) for entry in made])
        assert ("dashed line" in membership["lead"]) == said


def test_nothing_is_written_as_nan(report):
    assert "NaN" not in report.to_json()
    assert report.lower_bound == 2.0
    assert [entry.threat_model.attack for entry in report.alarms] == ["first"]


@pytest.mark.parametrize(
    ("chosen", "claimed", "said"),
    [
        ([2], 1.0, "1 attack was made; it gives no lower bound on ε."),
        ([2, 2], 1.0, "2 attacks were made; none of them gives a lower bound on ε."),
        ([0], None, "No ε is claimed, so none can be refuted. 1 attack shows ε ≥ 2.00."),
        ([0, 1], None, "No ε is claimed, so none can be refuted. 2 attacks show ε ≥ 2.00."),
        ([1], None, "No ε is claimed, so none can be refuted. What 1 attack found could be found at ε = 0 too."),
        (
            [1],
            1.0,
            "1 attack was made and does not contradict the claim of ε = 1: what it found could be found at ε = 0 too.",
        ),
        ([0, 0], 1.0, "Alarm: 2 of 2 attacks show more leakage than the claim allows."),
        ([3], 1.0, "No attack was made."),
    ],
)
def test_the_headline_counts(report, chosen, claimed, said):
    made = [report.attacks[place] for place in chosen]
    if claimed is None:
        made = [entry.model_copy(update={"alarm": False}) for entry in made]
    claim = report.claim.model_copy(update={"epsilon": claimed})
    changed = report.model_copy(update={"attacks": tuple(made), "claim": claim})
    assert changed.verdict.headline == said
