"""Rule 18: whatever an owner sends is bounded by its public units, and no term of a sum can swallow the noise.

A float32 sum of 2^31 has steps of 256: it rounds what the others have added, before the noise, and the noise goes with
it. Every power of two is sent here, by one owner and by two that take it back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planting import plant

from doublure.access import Access
from doublure.errors import Interrupted
from doublure.private import mechanism, owner_partitions, owners, partitions
from doublure.private.accounting import GaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import ScaledNoise
from doublure.private.owner_partitions import OwnerPartitions, validate_answer
from doublure.private.owners import bound_answer
from doublure.private.queries.axes import Axis
from doublure.private.queries.counts import Counts
from doublure.private.queries.query import Answer, Sensitivity
from doublure.support.messages import Message

C = 0.7
WIDTH = 5
UNITS = 10**6
ACCESS = Access(purpose="train", event=GaussianEvent(noise_multiplier=4.0))
NOTHING = Answer(total=np.zeros(WIDTH, np.float32), sensitivity=Sensitivity.of_length(C, WIDTH))
POWERS = range(128)
TARGET = np.eye(WIDTH, dtype=np.float32)[0] * np.float32(C)


class Gradients:
    """A critic's step, as owners are asked for it: its shape, its type and its sensitivity."""

    sensitivity = NOTHING.sensitivity

    def refuse_unfit(self, records):
        """Refuse nothing."""

    def answer(self, records, *, sample_rate):
        """Return zeros."""
        return replace(NOTHING, sample_rate=sample_rate)


class Fixed:
    """The same noise each time."""

    name, for_tests = "fixed", True

    def normal(self, size, std):
        """Return it."""
        return ScaledNoise((np.linspace(-1.3, 1.1, size) * std).astype(np.float32), std)


def sent(honest, most, order):
    """Return owners' answers: of the honest one, and of those who send so much, and take it back."""
    much = np.full(WIDTH, most, dtype=np.float32)
    return {
        "alone, before": {"e": much, "h": honest},
        "alone, after": {"h": honest, "e": much},
        "taken back around": {"e": much, "h": honest, "f": -much},
        "taken back before": {"e": much, "f": -much, "h": honest},
        "taken back in between": {"g": np.full(WIDTH, 0.3, np.float32), "e": much, "h": honest, "f": -much},
    }[order]


ORDERS = ["alone, before", "alone, after", "taken back around", "taken back before", "taken back in between"]


def released(patch, answers, units=UNITS):
    """Return what is released, what it was before rounding, and who was refused; none where that ends a run."""
    refused, sums, real = [], [], mechanism._sum

    def post(*_):
        yield from ((owner, Message({}, {"total": total})) for owner, total in answers.items())

    places = OwnerPartitions(
        post, object(), refused=lambda owner, why: refused.append((owner, why)), one_unit=False,
        owners=lambda: [*answers], units=lambda: dict.fromkeys(answers, units),
    )  # fmt: skip
    with patch.context() as inner:
        inner.setattr(mechanism, "_sum", lambda *given: (sums.append(real(*given)), sums[-1])[1])
        made = Mechanism([ACCESS], noise=Fixed(), authorise=lambda *_: None, allow_test_noise=True)
        try:
            noisy = made.release(Gradients(), ACCESS, places)
        except Interrupted:
            return None, None, refused
    return noisy, sums[0], refused


def check_nothing_is_swallowed(patch, order):
    """With and without one unit, beside whatever others send: refused, or moved by that unit and no further."""
    honest = np.linspace(-7, 9, WIDTH).astype(np.float32)
    for power in POWERS:
        much = np.float32(2.0**power) * np.float32(C)
        with np.errstate(over="raise"):
            (_, one, refused), (out, other, also) = (
                released(patch, sent(of, much, order)) for of in (honest, honest + TARGET)
            )
        assert refused == also
        fits = np.linalg.norm(np.full(WIDTH, much, np.float64)) <= UNITS * C
        assert bool(refused) != fits
        assert {why for _, why in refused} <= {"is longer than what its units may add"}
        if refused and one is None:
            continue
        assert np.abs(other - one - (honest + TARGET - honest).astype(np.float64)).max() <= 1e-6 * C
        assert np.array_equal(out, other.astype(np.float32))


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_that_an_owner_sends_swallows_the_noise(monkeypatch, order):
    check_nothing_is_swallowed(monkeypatch, order)


@pytest.mark.parametrize("order", ORDERS)
def test_beside_more_units_than_anybody_has_the_error_is_as_stated(monkeypatch, order):
    """Where nothing is declared and units are learned: K U 2^-52 C, and half a step of what is compared here."""
    most = 2**32
    much = np.float32(most * C / np.sqrt(WIDTH) * (1 - 1e-6))
    honest = np.linspace(-7, 9, WIDTH).astype(np.float32)
    (_, one, refused), (_, other, _) = (
        released(monkeypatch, sent(of, much, order), most) for of in (honest, honest + TARGET)
    )
    assert not refused
    moved = np.linalg.norm(other - one)
    parties = len(sent(honest, much, order))
    assert abs(moved - C) <= C * (parties + 1) * (parties * most) * 2.0**-52


MUTANTS = {
    "sums are added in float32": (partitions, "add_totals", ("one.astype(np.float64) + other", "one + other")),
    "noise is added in float32": (mechanism, "_sum", ("total.astype(np.float64)", "total.astype(np.float32)")),
    "an owner may add 2^20 times as much": (
        owner_partitions, "validate_answer", ("nothing.sensitivity.l2 * (1 if one_unit else units)",
                             "nothing.sensitivity.l2 * (1 if one_unit else units * 2**20)"),
    ),
    "an owner's sum has no bound": (owner_partitions, "_fault_of_gradient", ("l2_norm(total) <= longest", "True")),
    "every owner is held against one unit": (
        owner_partitions, "validate_answer", ("(1 if one_unit else units)", "(1 if one_unit else 1)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_sum_that_can_swallow_noise_is_caught(monkeypatch, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    order = "alone, after" if "noise" in mutant else "taken back around"
    with pytest.raises((AssertionError, FloatingPointError)):
        check_nothing_is_swallowed(monkeypatch, order)


# -- an honest owner's own process keeps within the bound, and is never refused ----------------------------------------

FEW = 6
TABLES = Counts(tables=((Axis.of_codes(0, 4),), (Axis.of_codes(1, 3),)), max_records=2)


def gradients_of(draw, units):
    """Return units' clipped gradients; most point the same way, so that their sum is long."""
    each = draw.normal(size=(units, WIDTH)) + 2
    return each * (C * draw.choice([0.3, 1.0], (units, 1)) / np.linalg.norm(each, axis=1, keepdims=True))


def counts_of(draw, units):
    """Return the counts of units of one or two records, most of them in one cell."""
    return sum((counts_of_one(draw) for _ in range(units)), np.zeros(7, dtype=np.int64))


def counts_of_one(draw):
    found = np.zeros(7, dtype=np.int64)
    for _ in range(draw.integers(1, 3)):
        found[draw.choice(4, p=[0.7, 0.1, 0.1, 0.1])] += 1
        found[4 + draw.choice(3, p=[0.8, 0.1, 0.1])] += 1
    return found


def check_an_owner_keeps_within(draws=400):
    """With more units than it declares, too: accepted, and moved by one unit no further than before."""
    draw, beyond = np.random.default_rng(5), 0
    counted = Answer(total=np.zeros(7, dtype=np.int64), sensitivity=TABLES.sensitivity)
    for _ in range(draws):
        units = int(draw.integers(0, 3 * FEW))
        gradients = gradients_of(draw, units + 1)
        sums = [gradients[:-1].sum(axis=0), gradients.sum(axis=0)]
        pair = [bound_answer(replace(NOTHING, total=total.astype(np.float32)), FEW).total for total in sums]
        assert all(validate_answer(object(), NOTHING, each, units=FEW, one_unit=False) is None for each in pair)
        moved = np.linalg.norm(pair[1].astype(np.float64) - pair[0].astype(np.float64))
        assert moved <= C * (1 + 1e-6)
        beyond += np.linalg.norm(sums[1]) > FEW * C
        before, one = counts_of(draw, units), counts_of_one(draw)
        pair = [bound_answer(replace(counted, total=total), FEW).total for total in (before, before + one)]
        assert all(validate_answer(TABLES, counted, each, units=FEW, one_unit=False) is None for each in pair)
        assert all(each.dtype == np.int64 for each in pair)
        assert (np.abs(pair[1] - pair[0]) <= one).all()
        names = Answer(total={"a": int(before[0]) + 1, "b": 1}, sensitivity=Sensitivity(l1=2.0, l2=2.0))
        assert (
            validate_answer(
                object(), replace(names, total={}), bound_answer(names, FEW).total, units=FEW, one_unit=False
            )
            is None
        )
        beyond += int(before[0]) > FEW * 2
    assert beyond > draws / 2


def test_an_owner_with_more_units_than_it_declares_is_not_refused_and_moves_no_further():
    check_an_owner_keeps_within()


def test_an_owner_that_keeps_within_is_left_as_it_is():
    total = gradients_of(np.random.default_rng(1), FEW - 1).sum(axis=0).astype(np.float32)
    answer = replace(NOTHING, total=total)
    assert bound_answer(answer, FEW) is answer
    whole = Answer(total=np.array([2**62, -(2**62)]), sensitivity=Sensitivity.of_length(1.0, 2), unit=2.0**-42)
    assert bound_answer(whole, 1) is whole  # it goes round modulo 2^64, and its noise with it


KEEPING = {
    "gradients are not projected": ("not length > longest", "True"),
    "the ball has no margin": ("(1 - _MARGIN)", "1"),
    "the ball has the wrong centre": ("total.astype(np.float64) * (longest / length)", "total * 0.0"),
    "counts are not cut off": ("np.minimum(total, largest_count(answer, units))", "total"),
    "names are not cut off": ("min(count, most)", "count"),
}


@pytest.mark.parametrize("mutant", KEEPING)
def test_an_owner_that_does_not_keep_within_is_caught(monkeypatch, mutant):
    plant(monkeypatch, owners, "bound_answer", KEEPING[mutant])
    with pytest.raises(AssertionError):
        check_an_owner_keeps_within()


def test_who_holds_a_count_that_was_cut_off_against_its_owner_is_caught(monkeypatch):
    plant(monkeypatch, owner_partitions, "_fault_of_counts", ("(one_unit or largest < most)", "True"))
    with pytest.raises(AssertionError):
        check_an_owner_keeps_within()
