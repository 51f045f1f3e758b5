"""Noisy sums over records: a unit moves them by no more than the noise is made for, and nothing is free."""

from __future__ import annotations

import math
import pickle
from itertools import repeat

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from doublure.errors import LedgerError, SettingError
from doublure.private import sums as module
from doublure.private.accounting import GaussianEvent
from doublure.private.noise import ChaCha20Noise, OsKeyedNoise, ReplayNoise
from doublure.private.records import PrivateRecords
from doublure.private.sums import PrivateSums

ALPHA = 1e-6
LEFT, RIGHT = 2, 3
SHAPE = (LEFT, RIGHT)


def split(rows):
    return rows[:, LEFT:], rows[:, :LEFT]


def as_they_are(body, condition):
    return condition, body


def records(rows, unit=None, n_units=None, expand=split):
    rows = torch.as_tensor(rows, dtype=torch.float32).reshape(len(rows), -1 if len(rows) else LEFT + RIGHT)
    unit = np.arange(len(rows)) if unit is None else np.asarray(unit)
    n_units = (int(unit.max()) + 1 if len(unit) else 0) if n_units is None else n_units
    return PrivateRecords(rows, unit.astype(np.int64), n_units, expand)


def silence(shape=SHAPE):
    return ReplayNoise(repeat(torch.zeros(math.prod(shape))))


def sums_of(kept, *multipliers, most=1, noise=None, authorise=lambda release: None, taken=0):
    return PrivateSums(
        kept, multipliers or (1.0,), max_records=most, noise=noise or silence(), authorise=authorise, taken=taken,
        allow_test_noise=True,
    )  # fmt: skip


def rows_of(size, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(size, LEFT + RIGHT)) * 3).float()


# -- what is summed up -------------------------------------------------------------------------------------------------


def test_short_vectors_are_summed_as_they_are():
    rows = rows_of(40) / 100
    found = sums_of(records(rows)).release(as_they_are, shape=SHAPE)
    expected = torch.einsum("nl,nr->lr", rows[:, :LEFT].double(), rows[:, LEFT:].double())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-9)


def test_long_ones_are_scaled_down_to_the_bound():
    rows = rows_of(30) / 4
    each = torch.einsum("nl,nr->nlr", rows[:, :LEFT].double(), rows[:, LEFT:].double())
    lengths = each.flatten(1).norm(dim=1)
    assert (lengths > 0.5).any()
    assert (lengths < 0.5).any()
    expected = (each * (0.5 / lengths).clamp(max=1)[:, None, None]).sum(0)
    found = sums_of(records(rows)).release(as_they_are, shape=SHAPE, bound=0.5)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_chunks_change_nothing(monkeypatch, chunk):
    kept = records(rows_of(25))
    whole = sums_of(kept).release(as_they_are, shape=SHAPE, bound=0.7)
    monkeypatch.setattr(module, "_CHUNK", chunk)
    sizes = []

    def watched(body, condition):
        sizes.append(len(body))
        return condition, body

    torch.testing.assert_close(sums_of(kept).release(watched, shape=SHAPE, bound=0.7), whole)
    assert max(sizes) == min(chunk, 25)
    assert sum(sizes) == 25


def test_an_empty_data_set_is_noise_alone():
    noise = ReplayNoise([torch.arange(6.0)])
    found = sums_of(records([]), 2.0, noise=noise).release(as_they_are, shape=SHAPE)
    assert found.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


ODD = [math.nan, math.inf, -math.inf, 3e38, -3.4e38, 3e6, 1e-3, 5e-324, 1e-45, -1e-39, 0.0, 1.0]
NUMBERS = st.sampled_from(ODD) | st.floats(-10, 10, width=32)
RECORD = st.lists(NUMBERS, min_size=LEFT + RIGHT, max_size=LEFT + RIGHT)
UNITS = st.lists(st.lists(RECORD, min_size=1, max_size=3), max_size=3)


def summed(units, bound, most=3):
    rows = [record for unit in units for record in unit]
    owner = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    noise = silence()
    made = sums_of(records(rows, unit=owner, n_units=len(units)), most=most, noise=noise)
    return made.release(as_they_are, shape=SHAPE, bound=bound).double(), noise.asked


def require_neighbours(units, more, bound, most=3):
    """Require that one unit more moves the sum by no more than the noise is made for."""
    one, asked = summed(units, bound, most)
    other, also = summed([*units[:1], more, *units[1:]], bound, most)
    assert asked == also == [(LEFT * RIGHT, bound * most)]
    assert torch.isfinite(one).all()
    assert torch.isfinite(other).all()
    rounding = 2.0**-22 * float(one.norm() + other.norm())
    assert float((one - other).norm()) <= bound * most * (1 + 1e-9) + rounding


@given(units=UNITS, more=st.lists(RECORD, min_size=1, max_size=3), bound=st.sampled_from([1e-6, 0.1, 1.0, 1e6]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_unit_moves_a_sum_by_its_bound_at_most(units, more, bound):
    require_neighbours(units, more, bound)
    require_neighbours(units, [more[0]] * 3, bound)


@pytest.mark.parametrize(
    ("left", "right"),
    [(3e38, 3e6), (3e6, 3e38), (3e38, 3e38), (1e-30, 3e38), (1e-39, 3e38), (3e38, 1e-45), (1e-45, 1e-45), (1e5, 1e5)],
)
@pytest.mark.parametrize("bound", [1e-6, 1e-3, 1.0])
def test_one_record_alone_is_never_longer_than_the_bound(left, right, bound):
    """A weight that float32 holds only roughly must not be rounded up (3e38 times 3e6 once counted for 1.26 C)."""
    row = [left, -left, right, right, -right]
    assert float(summed([[row]], bound, most=1)[0].norm()) <= bound * (1 + 1e-7)
    require_neighbours([], [row], bound, most=1)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, LEFT])
def test_what_is_not_finite_counts_for_zero_and_changes_nothing_else(odd, place):
    rows = rows_of(9)
    bad = torch.ones(1, LEFT + RIGHT)
    bad[0, place] = odd
    plain = sums_of(records(rows)).release(as_they_are, shape=SHAPE)
    assert torch.equal(sums_of(records(torch.cat([rows, bad]))).release(as_they_are, shape=SHAPE), plain)
    nothing = torch.zeros(1, LEFT + RIGHT)
    nothing[0, place] = odd  # an infinite length times a length of zero
    assert torch.equal(sums_of(records(torch.cat([rows, nothing]))).release(as_they_are, shape=SHAPE), plain)


def unclipped(left, right, bound):
    return (left.T @ right).double()


def loosely(left, right, bound):
    return BOUNDED(left, right, bound * 1.01)


def rounded(left, right, bound):
    weights = module.clip_factors(module._length(left) * module._length(right), bound)
    counts = (weights > 0)[:, None]
    return (torch.where(counts, left, 0.0) * weights[:, None].float()).T.double() @ torch.where(
        counts, right, 0.0
    ).double()


def kept_apart(left, right, bound):
    return BOUNDED(left / left.norm(dim=1, keepdim=True), right, bound) * 2


BOUNDED = module._bounded_sum


@pytest.mark.parametrize("mutant", [unclipped, loosely, rounded, kept_apart])
def test_a_longer_record_is_caught(monkeypatch, mutant):
    monkeypatch.setattr(module, "_bounded_sum", mutant)
    more = [[1e3, 0.0, 1e3, 0.0, 0.0], [3e38, 0.0, 3e6, 0.0, 0.0]]
    with pytest.raises(AssertionError):
        require_neighbours([], more[1:] if mutant is rounded else more[:1], 1.0, most=1)


# -- noise -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [OsKeyedNoise, ChaCha20Noise])
def test_the_noise_is_sigma_times_the_bound_times_the_records_of_a_unit(source):
    """20,000 numbers: the standard deviation is right to 3 %, rejecting what is right once in a million."""
    shape, std = (20, 1000), 1.7 * 0.5 * 3
    kept = records(torch.zeros(1, LEFT + RIGHT))

    def nothing(body, condition):
        return torch.zeros(len(body), shape[0]), torch.zeros(len(body), shape[1])

    made = PrivateSums(kept, (1.7,), max_records=3, noise=source(), authorise=lambda release: None)
    noise = made.release(nothing, shape=shape, bound=0.5).double().flatten()
    size = noise.numel()
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], size)
    share = float((noise / std).square().sum())
    assert low < share < high
    assert low > 0.94 * size
    assert not low < share * 1.06**2 < high
    assert abs(float(noise.mean())) < stats.norm.isf(ALPHA / 2) * std / size**0.5
    assert stats.kstest((noise / std).numpy(), "norm").pvalue > ALPHA


def test_each_release_has_its_own_multiplier_and_fresh_noise():
    noise = silence()
    made = sums_of(records(rows_of(3)), 1.0, 4.0, 4.0, noise=noise, most=2)
    for bound in (1.0, 0.1, 0.2):
        made.release(as_they_are, shape=SHAPE, bound=bound)
    assert [std for _, std in noise.asked] == pytest.approx([2.0, 0.8, 1.6])
    real = sums_of(records(rows_of(3)), 1.0, 1.0, noise=OsKeyedNoise())
    assert not torch.equal(*(real.release(as_they_are, shape=SHAPE) for _ in range(2)))


def test_noise_for_tests_is_refused():
    with pytest.raises(SettingError, match="tests only"):
        PrivateSums(records([]), (1.0,), max_records=1, noise=silence(), authorise=lambda release: None)


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan])
def test_no_noise_is_refused(multiplier):
    with pytest.raises(SettingError) as refused:
        sums_of(records([]), 1.0, multiplier)
    assert refused.value.field == "noise_multiplier"


# -- paid for, as planned ----------------------------------------------------------------------------------------------


class Watched:
    """Says when records are opened, noise is drawn and payment is asked for."""

    name, for_tests = "watched", True

    def __init__(self, monkeypatch):
        self.acts = []
        for name in ("expanded", "chunks", "lot"):
            self.watch(monkeypatch, name, getattr(PrivateRecords, name))

    def watch(self, monkeypatch, name, opened):
        def watched(kept, *arguments):
            self.acts.append(name)
            return opened(kept, *arguments)

        monkeypatch.setattr(PrivateRecords, name, watched)

    def normal(self, size, std, *, device="cpu"):
        self.acts.append("noise")
        return torch.zeros(size)

    def authorise(self, release):
        self.acts.append(release)


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


def test_a_release_is_paid_for_before_it_is_summed(watched):
    made = sums_of(records(rows_of(4)), 2.0, 9.0, noise=watched, authorise=watched.authorise)
    assert made.events == ()
    assert watched.acts == []
    made.release(as_they_are, shape=SHAPE)
    assert watched.acts == [1, "expanded", "noise"]
    assert made.events == (GaussianEvent(noise_multiplier=2.0),)
    made.release(as_they_are, shape=SHAPE, bound=3.0)
    assert watched.acts[3:] == [2, "expanded", "noise"]
    assert made.events == (GaussianEvent(noise_multiplier=2.0), GaussianEvent(noise_multiplier=9.0))


def test_more_than_was_planned_is_refused_before_anything_is_asked_or_opened(watched):
    few, two = records(rows_of(4)), records(rows_of(4), unit=[0, 1, 1, 1])
    watching = {"noise": watched, "authorise": watched.authorise}
    cases = [
        (sums_of(few, 1.0, taken=1, **watching), 1.0, "releases"),
        (sums_of(few, 1.0, 1.0, taken=5, **watching), 1.0, "releases"),
        (sums_of(two, 1.0, most=2, **watching), 1.0, "max_records"),
        (sums_of(few, 1.0, **watching), 1e-40, "bound"),
        (sums_of(few, 1e20, **watching), 1e20, "bound"),
        (sums_of(few, 1.0, **watching), math.nan, "bound"),
    ]
    for made, bound, field in cases:
        taken = made.taken
        with pytest.raises(SettingError) as refused:
            made.release(as_they_are, shape=SHAPE, bound=bound)
        assert refused.value.field == field
        assert made.taken == taken
    assert watched.acts == []
    sums_of(two, 1.0, most=3, **watching).release(as_they_are, shape=SHAPE)
    assert watched.acts == [1, "expanded", "noise"]


def test_what_is_not_paid_for_is_not_opened(watched):
    def refuses(release):
        raise LedgerError("the disk is full")

    made = sums_of(records(rows_of(4)), 1.0, noise=watched, authorise=refuses)
    with pytest.raises(LedgerError):
        made.release(as_they_are, shape=SHAPE)
    assert watched.acts == []
    assert (made.taken, made.events) == (0, ())


def test_a_release_that_fails_is_taken_all_the_same(watched):
    """It was authorised: whether a number came out cannot be shown."""

    def fails(body, condition):
        raise MemoryError

    made = sums_of(records(rows_of(4)), 2.0, 3.0, noise=watched, authorise=watched.authorise)
    with pytest.raises(MemoryError):
        made.release(fails, shape=SHAPE)
    assert made.events == (GaussianEvent(noise_multiplier=2.0),)
    made.release(as_they_are, shape=SHAPE)
    assert watched.acts == [1, "expanded", 2, "expanded", "noise"]


def test_releases_of_an_earlier_session_are_not_made_again(watched):
    made = sums_of(records(rows_of(4)), 2.0, 9.0, 9.0, noise=watched, authorise=watched.authorise, taken=2)
    assert made.events == (GaussianEvent(noise_multiplier=2.0), GaussianEvent(noise_multiplier=9.0))
    made.release(as_they_are, shape=SHAPE)
    assert watched.acts[0] == 3
    with pytest.raises(SettingError):
        made.release(as_they_are, shape=SHAPE)


# -- the same records in another form ----------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("labelled", [True, False])
def test_mapped_records_keep_units_rows_and_conditions(rows, labelled, apart):
    values = torch.arange(5.0 * (LEFT + RIGHT)).reshape(5, -1)
    unit = np.array([2, 0, 2, 1, 0])
    kept = records(values, unit=unit, n_units=4, expand=split if labelled else lambda rows: (rows[:, LEFT:], None))
    sizes = []

    def doubled(body):
        sizes.append(len(body))
        return torch.cat([body * 2, body[:, :1]], dim=1)

    mapped = kept.mapped(doubled, RIGHT + 1, rows=rows, apart=apart)
    assert set(sizes) == {rows} if apart else max(sizes) == min(rows, 5)
    assert (mapped.n_units, mapped.most_records, len(mapped.lot(np.array([3]))[0])) == (4, 2, 0)
    for unit in range(4):
        body, condition, _, _ = kept.lot(np.array([unit]))
        found, label, _, _ = mapped.lot(np.array([unit]))
        assert torch.equal(found, torch.cat([body * 2, body[:, :1]], dim=1))
        assert (label is None) == (not labelled)
        if labelled:
            assert torch.equal(label, condition)
    (whole,) = mapped.expanded(100)
    assert whole[0].dtype == torch.float32


def places_of(rows, size):
    """Return where in its batch a function saw each record, by the record's first number; all batches are full."""
    seen = {}

    def watching(body):
        assert body.shape == (size, RIGHT)
        for place, row in enumerate(body):
            if row.any():
                assert seen.setdefault(float(row[0]), place) == place
        return body

    records(rows).mapped(watching, RIGHT, rows=size, apart=True)
    return seen


def test_a_records_place_in_its_batch_is_its_own():
    """Whoever is added in front, between or behind, and in whatever order: nobody else's place changes."""
    rows = 1.0 + torch.arange(60.0 * (LEFT + RIGHT)).reshape(60, -1)
    whole = places_of(rows, 7)
    assert len(whole) == 60
    assert len(set(whole.values())) == 7
    for some in (
        rows[1:],
        rows[:-1],
        rows[::3],
        rows.flip(0),
        rows[torch.randperm(60, generator=torch.Generator().manual_seed(1))],
        rows[:1],
    ):
        found = places_of(some, 7)
        assert len(found) == len(some)
        assert found.items() <= whole.items()


def test_equal_records_are_computed_once_and_come_to_the_same():
    rows = 1.0 + torch.arange(6.0 * (LEFT + RIGHT)).reshape(6, -1)
    repeated = torch.arange(6).repeat(50)
    calls = []
    kept = records(rows[repeated], expand=split).mapped(
        lambda body: calls.append(len(body)) or body * 2, RIGHT, rows=4, apart=True
    )
    assert len(calls) <= 6
    ((found, labels),) = kept.expanded(1000)
    assert torch.equal(found, 2 * rows[repeated, LEFT:])
    assert torch.equal(labels, split(rows[repeated])[1])


def test_what_was_mapped_is_taken_up_where_it_stopped():
    rows = 1.0 + torch.arange(20.0 * (LEFT + RIGHT)).reshape(20, -1) / 100
    whole = records(rows).mapped(lambda body: body * 2, RIGHT, rows=4, apart=True)

    class Kept:
        def __init__(self, ready=None):
            self.ready, self.told = ready, []

        def load(self, shape):
            assert shape == (20, RIGHT)
            return self.ready

        def save(self, found, batches, *, last):
            self.told.append((found.clone(), batches, last))

    first = Kept()
    records(rows).mapped(lambda body: body * 2, RIGHT, rows=4, apart=True, halfway=first)
    assert [batches for _, batches, _ in first.told] == list(range(1, len(first.told) + 1))
    assert [last for _, _, last in first.told] == [False] * (len(first.told) - 1) + [True]
    calls = []
    again = records(rows).mapped(
        lambda body: calls.append(len(body)) or body * 2, RIGHT, rows=4, apart=True, halfway=Kept(first.told[1][0])
    )
    assert len(calls) == len(first.told) - 2  # two batches were done
    (one,), (other,) = whole.expanded(100), again.expanded(100)
    assert torch.equal(one[0], other[0])


@pytest.mark.parametrize("apart", [True, False])
def test_mapped_records_may_be_none(apart):
    mapped = records([]).mapped(lambda body: body, RIGHT, rows=3, apart=apart)
    assert mapped.n_units == 0
    found = sums_of(mapped).release(as_they_are, shape=SHAPE)
    assert not found.any()


def test_mapped_records_are_private_still():
    mapped = records(rows_of(3)).mapped(lambda body: body, RIGHT, rows=3)
    assert repr(mapped) == "PrivateRecords(private)"
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(mapped)


def test_a_number_too_large_for_float16_costs_one_record_and_no_other():
    rows = rows_of(4)
    rows[1, LEFT] = 1e6
    kept = records(rows).mapped(lambda body: body, RIGHT, rows=2)
    other = records(rows[[0, 2, 3]]).mapped(lambda body: body, RIGHT, rows=2)
    assert torch.equal(*(sums_of(some).release(as_they_are, shape=SHAPE) for some in (kept, other)))


def test_sums_go_on_with_another_form():
    made = sums_of(records(torch.zeros(3, LEFT + RIGHT)), 1.0, 1.0)
    assert not made.release(as_they_are, shape=SHAPE).any()
    made.see(records(torch.full((3, LEFT + RIGHT), 0.1)))
    torch.testing.assert_close(made.release(as_they_are, shape=SHAPE), torch.full(SHAPE, 0.03))
    made = sums_of(records(rows_of(1)), 1.0)
    made.see(records(rows_of(2), unit=[0, 0]))
    with pytest.raises(SettingError, match="max_records"):
        made.release(as_they_are, shape=SHAPE)
