"""The count of rows that keep an identity: one record moves one cell by one, and what is released shows no more."""

from __future__ import annotations

import json
from itertools import count

import numpy as np
import pytest

from doublure.access import Access
from doublure.attack.results import Claim
from doublure.auditing import worst_case
from doublure.errors import SettingError
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.axes import LinearIdentity, axes_from_message, axes_to_message
from doublure.private.queries.counts import Counts
from doublure.private.records import PrivateRecords
from doublure.support.messages import Message

SUM = {"parts": (2, 0, 1), "weights": (-1, 1, 1), "marks": (21, 11, 11)}
ROWS = np.array([[1, 2, 3], [1, 2, 4], [0, 0, 0], [10, 10, 20], [11, 2, 13], [1, 2, 21], [10, 10, 19]])
CLAIM = Claim(kind="dp", epsilon=1.0, delta=1e-5)


def records(rows):
    return PrivateRecords(np.asarray(rows, dtype=np.float64), np.arange(len(rows)), len(rows), lambda own: (own, None))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.float32, np.float64])
def test_rows_hold_break_or_miss_whatever_their_type(kind):
    assert LinearIdentity(**SUM).of(ROWS.astype(kind)).tolist() == [0, 1, 0, 0, 2, 2, 1]
    assert LinearIdentity(**SUM, slack=1).of(ROWS.astype(kind)).tolist() == [0, 0, 0, 0, 2, 2, 0]


def test_every_record_counts_in_one_cell_whatever_it_holds():
    odd = np.array([[np.nan, 1, 1], [np.inf, 1, 1], [-np.inf, 0, 0], [-(2.0**60), 2.0**40, -(2.0**60)], [0.5, 1, 1]])
    found = LinearIdentity(**SUM).of(odd)
    assert ((found >= 0) & (found < 3)).all()
    wide = LinearIdentity(parts=(0, 1), weights=(2**16, 2**16), marks=(2**40, 2**40))
    assert wide.of(np.array([[2.0**40 - 1, 2.0**40 - 1], [-(2.0**40), -(2.0**40)]])).tolist() == [1, 1]


def test_one_record_moves_one_cell_by_one():
    draw = np.random.default_rng(0)
    rows = draw.integers(0, 12, (400, 3))
    axis = LinearIdentity(**SUM, slack=2)
    asked = Counts(tables=[(axis,), (LinearIdentity(parts=(0, 1), weights=(1, -1), marks=(11, 11)),)], max_records=1)
    whole = asked.answer(records(rows), sample_rate=1.0).total
    assert asked.sensitivity.l2 == pytest.approx(np.sqrt(2))
    for without in range(0, 400, 20):
        moved = whole - asked.answer(records(np.delete(rows, without, axis=0)), sample_rate=1.0).total
        assert np.abs(moved[:3]).sum() == np.abs(moved[3:]).sum() == 1
        assert np.linalg.norm(moved) <= asked.sensitivity.l2 + 1e-12


def test_identities_that_were_described_are_the_same_again():
    message = axes_to_message([LinearIdentity(**SUM, slack=1)])
    (words,) = json.loads(json.dumps(message.words))["axes"]
    (again,) = axes_from_message(Message({"axes": [words]}, message.arrays))
    assert again.of(ROWS).tolist() == LinearIdentity(**SUM, slack=1).of(ROWS).tolist()
    for changed in ({"parts": [0, 1.0, 2]}, {"weights": [True, 1, 1]}, {"marks": [1, 2, "3"]}, {"slack": 1.0}):
        with pytest.raises((TypeError, ValueError)):
            axes_from_message(Message({"axes": [words | changed]}, {}))


@pytest.mark.parametrize(
    "odd",
    [
        {"weights": (-1, 1)}, {"weights": (0, 1, 1)}, {"weights": (2**16 + 1, 1, 1)}, {"parts": (0, 0, 1)},
        {"marks": (2**41, 11, 11)}, {"slack": -1}, {"parts": (0, 1, 3)},
        {"parts": (0,), "weights": (1,), "marks": (1,)},
    ],
)  # fmt: skip
def test_what_no_64_bits_may_hold_is_refused(odd):
    with pytest.raises(SettingError):
        LinearIdentity(**SUM | odd).refuse_unfit(3)


def released(scale: float):
    """Noisy counts of four rows that keep an identity, or of these and one that breaks it."""
    number = count()

    def make(fifth: bool, run: int) -> np.ndarray:
        del run
        event = DiscreteGaussianEvent(records=1, scale=scale, tables=1)
        access = Access(purpose=f"identities {next(number)}", event=event)
        rows = [[1, 2, 3]] * 4 + [[1, 2, 9]] * fifth
        query = Counts(tables=[(LinearIdentity(**SUM),)], max_records=1)
        mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
        return np.append(mechanism.release(query, access, records(rows)), np.zeros(5))

    return make


def test_an_attacker_who_sees_the_noisy_count_learns_no_more_than_is_claimed():
    found = worst_case.audit_runs(released(3.8), CLAIM, runs=500)  # ε = 1 at δ = 1e-5
    assert not found.alarm


def test_the_same_attacker_finds_too_little_noise():
    found = worst_case.audit_runs(released(0.4), CLAIM, runs=500)
    assert found.alarm
