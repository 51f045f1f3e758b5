"""What a record of each kind must hold: every key, and values at the edge of what they may be."""

from __future__ import annotations

import math

import pytest

from doublure.errors import LedgerError
from doublure.ledger.shapes import check_shape

HASH = "0123456789abcdef" * 4  # every digit
PLAN = {
    "method": "m", "kind": "dp", "epsilon": 0.5, "delta": 1e-6, "unit": {}, "relation": "add/remove",
    "accountant": "pld", "schema_sha256": HASH, "touches": [{}, {"purpose": "train"}], "steps": 0,
}  # fmt: skip
RESERVATION = {"id": "i", "session": "s"}
RIGHT = {
    "open": {"format": 1, "dataset": "adult", "epsilon": 3.0, "delta": 0.0},
    "reserve": RESERVATION | {"run_id": "r", "plan": PLAN, "charge": {"epsilon": 0.5, "delta": 0.25}},
    "noise": RESERVATION | {"what": "bounds"},
    "advance": RESERVATION | {"through_step": 1},
    "resume": RESERVATION | {"from_session": "t"},
    "close": RESERVATION | {"status": "done", "steps": 0, "artefact_sha256": HASH},
    "release": {"id": "i", "kind": "dp", "files": {"data.csv": HASH, "card.json": HASH}},
}
TEXTS = [("reserve", "run_id"), ("noise", "what"), ("resume", "from_session"), ("advance", "id"), ("close", "session")]
COUNTS = [("open", "format"), ("advance", "through_step"), ("close", "steps")]
PLAN_TEXTS = ("method", "relation", "accountant", "schema_sha256")


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_right_passes_and_keys_are_exact(kind):
    check_shape(kind, RIGHT[kind])
    for key in RIGHT[kind]:
        rest = {name: value for name, value in RIGHT[kind].items() if name != key}
        for other in (rest, rest | {"other": 1}, RIGHT[kind] | {"seed": 1}):
            with pytest.raises(LedgerError, match="other keys"):
                check_shape(kind, other)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("close", {"status": "no-noise-drawn"}),
        ("close", {"status": "aborted"}),
        ("close", {"status": "interrupted"}),
        ("close", {"steps": None}),
        ("close", {"artefact_sha256": None}),
        ("open", {"epsilon": 0}),
        ("open", {"delta": math.nextafter(1, 0)}),
        ("reserve", {"charge": None}),
        ("reserve", {"plan": PLAN | {"epsilon": None, "delta": None, "accountant": None, "kind": "none"}}),
        ("reserve", {"plan": PLAN | {"touches": []}}),
        *(("release", {"kind": kind}) for kind in ("dp", "bayesian-dp", "empirical", "none")),
    ],
)
def test_the_edges_are_within(kind, change):
    check_shape(kind, RIGHT[kind] | change)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *((kind, {key: value}) for kind, key in TEXTS for value in ("", 7, None, ["a"])),
        *((kind, {key: value}) for kind, key in COUNTS for value in (-1, True, 1.0, "1")),
        *(("open", {"epsilon": value}) for value in (-0.1, math.inf, math.nan, True, None)),
        *(("open", {"delta": value}) for value in (-0.1, 1.0, 1, math.nan, False, None)),
        *(
            ("close", {"artefact_sha256": value})
            for value in (HASH[1:], HASH + "0", HASH[1:] + "g", HASH.upper(), 7, "")
        ),
        *(("close", {"artefact_sha256": value}) for value in (list(HASH), b"0" * 64)),
        *(("release", {"files": value}) for value in ({}, {"": HASH}, {"a": HASH, "b": "x"}, [HASH], {1: HASH}, None)),
        *(("release", {"kind": value}) for value in ("anonymous", "", None)),
        *(("close", {"status": value}) for value in ("open", "", None)),
        *(
            ("reserve", {"charge": value})
            for value in ({}, {"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1.0}, {"epsilon": -1.0, "delta": 0.0}, 0.5)
        ),
        ("reserve", {"charge": {"epsilon": 0.5, "delta": 0.0, "seed": 1}}),
        *(("reserve", {"plan": PLAN | {key: value}}) for key in PLAN_TEXTS for value in ("", 7)),
        *(("reserve", {"plan": PLAN | {key: -0.5}}) for key in ("epsilon", "delta", "steps")),
        *(("reserve", {"plan": PLAN | {"touches": value}}) for value in ({}, None, ["train"], [{}, 1])),
        ("reserve", {"plan": PLAN | {"unit": ["person"]}}),
        ("reserve", {"plan": PLAN | {"kind": "anonymous"}}),
        ("reserve", {"plan": PLAN | {"rows": 10}}),
        ("reserve", {"plan": [*PLAN]}),
    ],
)
def test_beyond_the_edges_is_refused(kind, change):
    with pytest.raises(LedgerError, match="cannot have this value") as caught:
        check_shape(kind, RIGHT[kind] | change)
    assert caught.value.field == next(iter(change))


def test_an_unknown_kind_is_refused():
    with pytest.raises(LedgerError, match="unknown kind"):
        check_shape("refund", {})
