"""What is shown of an account: every figure, by run, by kind and apart."""

from __future__ import annotations

import json

HASH = "0f" * 32


def test_an_empty_account_is_shown_whole(ledger):
    assert ledger.show() == {
        "dataset": "adult",
        "cap": {"epsilon": 3.0, "delta": 1e-4},
        "spent": {
            "epsilon": 0.0, "delta": 0.0,
            "kinds": {
                "dp": {"runs": 0, "epsilon": 0.0, "delta": 0.0},
                "bayesian-dp": {"runs": 0, "epsilon": 0.0, "delta": 0.0},
                "empirical": {"runs": 0, "epsilon": None, "delta": None},
                "none": {"runs": 0, "epsilon": None, "delta": None},
            },
        },
        "remaining": {"epsilon": 3.0, "delta": 1e-4},
        "runs": [], "apart": [], "releases": [], "covers_all_releases": True, "note": ledger.coverage,
    }  # fmt: skip


def test_a_run_is_shown_with_what_it_may_have_drawn(ledger, make_plan):
    reservation = ledger.reserve(make_plan(), run_id="first")
    reservation.advance(60)
    (run,) = ledger.show()["runs"]
    assert run == {
        "sequence": 2, "utc": run["utc"], "run_id": "first", "method": "dpgan", "kind": "dp", "epsilon": 0.5,
        "delta": 1e-6, "apart": [], "status": "open", "steps": 60, "planned_steps": 100,
    }  # fmt: skip
    reservation.close("interrupted", steps=0)
    assert [(run["status"], run["steps"]) for run in ledger.show()["runs"]] == [("interrupted", 0)]


def test_priced_accesses_of_empirical_runs_stand_apart(ledger, make_plan):
    vote = {"purpose": "votes", "event": {}, "epsilon": 0.25, "delta": 0.125}
    other = {"purpose": "labels", "event": {}, "epsilon": 1.0, "delta": 0.0}
    free = {"purpose": "train", "event": {}, "epsilon": None, "delta": None}

    def plan(kind, *touches):
        return make_plan(kind=kind, touches=[type("T", (), {"to_json": lambda self, t=t: t})() for t in touches])

    ledger.reserve(plan("empirical", vote, free, other), run_id="a")
    ledger.reserve(plan("empirical", vote), run_id="b")
    ledger.reserve(plan("empirical", vote), run_id="unused").close("no-noise-drawn", steps=0)
    ledger.reserve(plan("none", vote), run_id="c")
    ledger.reserve(plan("dp", vote), run_id="d")
    shown = json.loads(json.dumps(ledger.show(), allow_nan=False))
    assert shown["apart"] == [
        {"purpose": "votes", "times": 2, "epsilon": 0.5, "delta": 0.25},
        {"purpose": "labels", "times": 1, "epsilon": 1.0, "delta": 0.0},
    ]
    own = {"purpose": "votes", "epsilon": 0.25, "delta": 0.125}
    assert {run["run_id"]: run["apart"] for run in shown["runs"]} == {
        "a": [own, {"purpose": "labels", "epsilon": 1.0, "delta": 0.0}], "b": [own], "unused": [own], "c": [], "d": [],
    }  # fmt: skip
    assert {run["run_id"]: run["epsilon"] for run in shown["runs"]} == {
        "a": None, "b": None, "unused": None, "c": None, "d": 0.5,
    }  # fmt: skip
    assert {kind: total["runs"] for kind, total in shown["spent"]["kinds"].items()} == {
        "dp": 1, "bayesian-dp": 0, "empirical": 3, "none": 1,
    }  # fmt: skip


def test_releases_are_shown_and_what_the_total_does_not_cover(ledger, make_plan):
    ledger.reserve(make_plan(), run_id="first")
    entry = ledger.record_release("first", {"data.csv": HASH}, "dp")
    (shown,) = ledger.show()["releases"]
    assert shown == {
        "sequence": 3, "utc": shown["utc"], "run_id": "first", "kind": "dp", "head_sha256": entry.head_sha256,
        "files": {"data.csv": HASH},
    }  # fmt: skip
    assert (ledger.show()["covers_all_releases"], ledger.covers_all_releases) == (True, True)
    assert "covers all fits recorded" in ledger.coverage
    for bundles in ("1 bundle was", "2 bundles were"):
        ledger.record_release("first", {"data.csv": HASH}, "none")
        assert (ledger.show()["covers_all_releases"], ledger.covers_all_releases) == (False, False)
        assert f"no longer covers all releases of adult: {bundles} released" in ledger.show()["note"]
