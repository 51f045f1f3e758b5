"""Noisy sums over records: a unit moves them by no more than the noise is made for, and nothing is free."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import repeat

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import plant
from replay_noise import ReplayNoise
from scipy import stats

from doublure.access import Access
from doublure.errors import LedgerError, NotAsPriced, SettingError
from doublure.private import noise as noises
from doublure.private.accounting import GaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import sums as module
from doublure.private.queries.sums import BoundedSums
from doublure.private.records import PrivateRecords

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


class Sums:
    """Sums of some records, release by release, each an access of its own."""

    def __init__(self, kept, multipliers, *, most, **named):
        events = [GaussianEvent(noise_multiplier=multiplier) for multiplier in multipliers]
        self.accesses = [Access(purpose=f"sum {place}", event=event) for place, event in enumerate(events)]
        self.mechanism = Mechanism(self.accesses, **named)
        self.kept, self.most = kept, most

    @property
    def taken(self):
        return sum(self.mechanism.taken(access) for access in self.accesses)

    @property
    def spent(self):
        return [access.event.noise_multiplier for access in self.accesses if self.mechanism.taken(access)]

    @property
    def ran(self):
        events = [entry["event"] for entry in self.mechanism.executed.to_json()]
        return [event["noise_multiplier"] for event in events if event is not None]

    def release(self, factors, *, shape=SHAPE, bound=1.0):
        query = BoundedSums(factors=factors, shape=shape, max_records=self.most, bound=bound)
        access = self.accesses[min(self.taken, len(self.accesses) - 1)]
        return torch.from_numpy(self.mechanism.release(query, access, self.kept)).view(shape)


def sums_of(kept, *multipliers, most=1, noise=None, authorise=lambda access, step: None, taken=0):
    return Sums(
        kept, multipliers or (1.0,), most=most, noise=noise or silence(), authorise=authorise, taken=taken,
        allow_test_noise=True,
    )  # fmt: skip


def rows_of(size, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(size, LEFT + RIGHT)) * 3).float()


# -- what is summed up -------------------------------------------------------------------------------------------------


def test_short_vectors_are_summed_as_they_are():
    rows = rows_of(40) / 100
    found = sums_of(records(rows)).release(as_they_are)
    expected = torch.einsum("nl,nr->lr", rows[:, :LEFT].double(), rows[:, LEFT:].double())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=40 * 2.0**-20)


def test_long_ones_are_scaled_down_to_the_bound():
    rows = rows_of(30) / 4
    each = torch.einsum("nl,nr->nlr", rows[:, :LEFT].double(), rows[:, LEFT:].double())
    lengths = each.flatten(1).norm(dim=1)
    assert (lengths > 0.5).any()
    assert (lengths < 0.5).any()
    expected = (each * (0.5 / lengths).clamp(max=1)[:, None, None]).sum(0)
    found = sums_of(records(rows)).release(as_they_are, bound=0.5)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_batches_change_nothing(monkeypatch, rows):
    kept = records(rows_of(25))
    whole = sums_of(kept).release(as_they_are, bound=0.7)
    monkeypatch.setattr(module, "_ROWS", rows)
    monkeypatch.setattr(module, "refuse_meeting_rows", lambda *_, **named: None)  # which looks at made-up records
    sizes = []

    def watched(body, condition):
        sizes.append(len(body))
        return condition, body

    assert torch.equal(sums_of(kept).release(watched, bound=0.7), whole)
    assert set(sizes) == {rows}
    assert sum(sizes) >= 25


def test_an_empty_data_set_is_noise_alone():
    noise = ReplayNoise([torch.arange(6.0)])
    found = sums_of(records([]), 2.0, noise=noise).release(as_they_are)
    assert found.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


ODD = [math.nan, math.inf, -math.inf, 3e38, -3.4e38, 3e6, 1e-3, 5e-324, 1e-45, -1e-39, 0.0, 1.0]
NUMBERS = st.sampled_from(ODD) | st.floats(-10, 10, width=32)
RECORD = st.lists(NUMBERS, min_size=LEFT + RIGHT, max_size=LEFT + RIGHT)
UNITS = st.lists(st.lists(RECORD, min_size=1, max_size=3), max_size=3)


def answered(units, bound, most=3):
    """Return the sum as whole numbers of Python, and how far one unit may move it, squared."""
    rows = [record for unit in units for record in unit]
    owner = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    query = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=most, bound=bound)
    found = query.answer(records(rows, unit=owner, n_units=len(units)), sample_rate=1.0)
    assert found.total.dtype == np.int64
    assert found.unit == query.unit
    return found.total.tolist(), (Fraction(found.sensitivity.l2) / Fraction(found.unit)) ** 2


def require_neighbours(units, more, bound, most=3):
    """Require that one unit more moves the sum by no more than the noise is made for: in whole numbers, to the last."""
    one, allowed = answered(units, bound, most)
    other, _ = answered([*units[:1], more, *units[1:]], bound, most)
    assert math.isclose(allowed, (most * 2**42) ** 2)
    assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) <= allowed


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
    require_neighbours([], [row], bound, most=1)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, LEFT])
def test_what_is_not_finite_counts_for_zero_and_changes_nothing_else(odd, place):
    rows = rows_of(9)
    bad = torch.ones(1, LEFT + RIGHT)
    bad[0, place] = odd
    plain = sums_of(records(rows)).release(as_they_are)
    assert torch.equal(sums_of(records(torch.cat([rows, bad]))).release(as_they_are), plain)
    nothing = torch.zeros(1, LEFT + RIGHT)
    nothing[0, place] = odd  # an infinite length times a length of zero
    assert torch.equal(sums_of(records(torch.cat([rows, nothing]))).release(as_they_are), plain)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", range(LEFT + RIGHT))
def test_what_is_not_finite_adds_zero_to_the_last_step_of_the_grid(odd, place):
    row = [1.0] * (LEFT + RIGHT)
    row[place] = odd
    assert not any(answered([[row]], 1.0)[0])


FULL = 2**42 * (1 - 2**-17)  # in steps of the grid: what shortening and cutting off leave at least of one length


@pytest.mark.parametrize(
    "left", [(1e-10, 3e38), (-1e-10, -3e38), (3e38, -1e-10), (-3e38, 1e-10), (0.0, 1e-45), (-1e-38, 0.0), (1e-3, 1e-3)]
)
@pytest.mark.parametrize("right", [(3e38, 0.0, 0.0), (-3e38, 2e38, 1e-45), (1e5, -1e5, 1e38)])
def test_a_long_record_adds_all_of_its_bound_however_large_or_small_its_parts(left, right):
    (total, _) = answered([[[*left, *right]]], 1e-8)
    assert FULL**2 <= sum(number**2 for number in total) <= 2**84


def test_records_of_other_sizes_beside_it_take_nothing_from_a_record():
    rows = [[1e-20, 2e-20, 1e20, 3e20, -1e20], [3e38, -3e38, 3e38, 1e38, 2e38], [1e-45, 0.0, 3e38, 0.0, 0.0]]
    alone = [answered([[row]], 1e-8)[0] for row in rows]
    assert all(any(one) for one in alone)
    assert answered([[row] for row in rows], 1e-8)[0] == np.sum(alone, axis=0).tolist()


@pytest.mark.parametrize(("rows", "width"), [(40, 3), (5, 300), (2000, 2)])
def test_lengths_are_rounded_upwards_and_no_further_than_float32_may_be_out(rows, width):
    vectors = torch.randn(rows, width, generator=torch.Generator().manual_seed(rows))
    even, lengths = module._of_length_one(vectors)
    exact = vectors.double().square().sum(dim=1).sqrt()
    assert lengths.dtype == torch.float64
    assert (lengths >= exact).all()
    assert (lengths <= exact * (1 + 2 * (width + 1) * 2.0**-23)).all()
    assert (even.double().square().sum(dim=1) <= 1 + 2.0**-22).all()


def test_vectors_of_no_number_have_no_length():
    even, lengths = module._of_length_one(torch.zeros(4, 0))
    assert even.shape == (4, 0)
    assert (lengths.tolist(), lengths.dtype) == ([0.0] * 4, torch.float64)


def test_vectors_are_made_shorter_by_a_millionth():
    one = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    whole = module._in_whole_numbers(*one, bound=1e-3, bits=(20, 22))
    # 1 - 2^-20 of the grid, less what lengths are rounded upwards by, cut off.
    assert 2**20 - 3 <= float(whole.left[0, 1]) <= 2**20 - 2
    assert 2**22 - 4 - 3 <= float(whole.right[0, 0]) <= 2**22 - 4 - 1


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("side", ["left", "right"])
def test_what_counts_as_too_long_is_known_to_the_last_square(monkeypatch, side, more):
    """Up to 1 - 2^-21 of a squared length, which leaves room for how a sum's sensitivity is rounded."""
    longest = {LEFT: 2.0**40 - 2.0**19, RIGHT: 2.0**44 - 2.0**23}
    longest[LEFT if side == "left" else RIGHT] += more
    monkeypatch.setattr(
        module, "_squared", lambda vectors: torch.full((len(vectors),), longest[vectors.shape[1]], dtype=torch.float64)
    )
    total, _ = answered([[[1.0] * (LEFT + RIGHT)]], 1.0)
    assert any(total) is not bool(more)


SHARE = "torch.where(counts, lengths * weights / bound, 0.0)"
FITS = "(_squared(left) <= _LONGEST * 4.0 ** bits[0]) & (_squared(right) <= _LONGEST * 4.0 ** bits[1])"
EVEN = "even.div_(torch.where(lengths > 0, lengths, 1.0).to(vectors.dtype)[:, None])"
LONGER = {
    "not clipped": [(SHARE, "torch.where(counts, lengths / bound, 0.0)")],
    "clipped loosely": [(SHARE, SHARE.replace("/ bound", "/ bound * 1.01"))],
    "cut off away from zero": [("vectors.trunc_()", "vectors.copy_(vectors.sign() * (vectors.abs() + 9).ceil())")],
    "not of length one": [],
}
BAD = [1e3, 5e2, 1e3, 1e3, 1e3]


@pytest.mark.parametrize("mutant", LONGER)
def test_a_longer_record_is_caught(monkeypatch, mutant):
    """In whole numbers it adds nothing; without that look it would be noticed here."""
    if mutant == "not of length one":
        plant(monkeypatch, module, "_of_length_one", (EVEN, "even.mul_(1.0)"))
    plant(monkeypatch, module, "_in_whole_numbers", *LONGER[mutant], (FITS, "left[:, 0] == left[:, 0]"))
    with pytest.raises(AssertionError):
        require_neighbours([], [BAD], 0.5, most=1)


@pytest.mark.parametrize("factor", ["1.01", "1e6"])
def test_what_is_longer_in_whole_numbers_all_the_same_adds_zero(monkeypatch, factor):
    plant(monkeypatch, module, "_in_whole_numbers", (SHARE, f"{factor} * {SHARE}"))
    assert not any(answered([[BAD]], 1.0)[0])
    assert any(answered([[[1e-4, 0.0, 1e-4, 0.0, 0.0]], [BAD]], 1e-3)[0]) is (factor == "1.01")


def test_all_numbers_are_whole_and_their_products_exact():
    rows = rows_of(64, seed=8)
    whole = module._in_whole_numbers(rows[:, :LEFT], rows[:, LEFT:], bound=1.0, bits=(20, 22))
    for some, bits in zip(whole, (20, 22), strict=True):
        assert torch.equal(some, some.round())
        assert float(some.abs().max()) <= 2**bits
    times = torch.tensor([0, 1, 31, 32, 33, 1000, 10**9, 10**12] * 8)
    expected = [
        [
            sum(int(a) * int(b) * int(c) for a, b, c in zip(times, whole.left[:, i], whole.right[:, j], strict=True))
            for j in range(RIGHT)
        ]
        for i in range(LEFT)
    ]
    wrapped = [[(number + 2**63) % 2**64 - 2**63 for number in row] for row in expected]
    assert module._sum(whole, times).tolist() == wrapped
    few = times % 32
    assert module._sum(whole, few).tolist() == (whole.left.long().T * few @ whole.right.long()).tolist()


def test_equal_records_count_as_often_as_they_are():
    rows = rows_of(5)
    many = rows[[0] * 100 + [1] * 33 + [2, 3, 4]]
    expected = sum(
        n * np.array(answered([[row.tolist()]], 0.5)[0]) for n, row in zip([100, 33, 1, 1, 1], rows, strict=True)
    )
    query = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1, bound=0.5)
    assert query.answer(records(many), sample_rate=1.0).total.tolist() == expected.tolist()


@pytest.mark.parametrize("noise", [1e-3, 1.0, 1.9, 2.0, 700.0, 1e9])
def test_the_grid_grows_with_the_noise(noise):
    """The noise's scale in steps stays below what a whole number holds; a step stays below all that is of use."""
    query = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1, bound=0.3, noise=noise)
    steps = noise * query.bound / query.unit
    assert steps == pytest.approx(min(noise, noise / 2 ** math.floor(math.log2(noise))) * 2**42)
    assert sum(query._bits) == 42 - max(0, math.floor(math.log2(noise)))


def test_the_grid_does_not_grow_beyond_all_bounds():
    for noise, coarser in ((2.0**31, 31), (2.0**32, 32), (2.0**33, 32), (1e30, 32)):
        query = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1, noise=noise)
        assert sum(query._bits) == 42 - coarser
        assert query._bits == (20 - coarser // 2, 22 - (coarser + 1) // 2)
    plain = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1)
    assert (plain.bound, plain.noise, plain.unit) == (1.0, 1.0, 2.0**-42)


# -- what a record adds is a function of that record -------------------------------------------------------------------


def features_of(width, numbers, seed=0):
    """Return factors of several products of matrices, whose last digits are anybody's guess."""
    source = torch.Generator().manual_seed(seed)
    first, second = torch.randn(width, 300, generator=source), torch.randn(300, numbers, generator=source)

    def factors(body, condition):
        return condition, torch.cos((body @ first).tanh() @ second)

    return factors


def totals(rows, factors, shape):
    query = BoundedSums(factors=factors, shape=shape, max_records=1)
    kept = PrivateRecords(rows, np.arange(len(rows)), len(rows), lambda some: (some[:, 3:], some[:, :3]))
    return query.answer(kept, sample_rate=1.0).total


def require_others_stay(places):
    rows = torch.rand((403, 43), generator=torch.Generator().manual_seed(1))
    factors, shape = features_of(40, 50), (3, 50)
    whole = totals(rows, factors, shape)
    for place in places:
        left = np.delete(np.arange(len(rows)), place)
        moved = (whole - totals(rows[left], factors, shape)).reshape(shape)
        assert (moved.ravel() == totals(rows[[place]], factors, shape)).all()
        assert sum(int(number) ** 2 for number in moved.flat) <= 4**42


def test_a_record_that_is_taken_away_takes_its_own_part_away_and_nothing_else():
    require_others_stay([0, 7, 200, 402])


def test_records_in_their_order_would_not_do(monkeypatch):
    """A product of matrices makes of a row what differs by its place."""

    def in_order(kept, rows):
        for body, condition in kept.expanded(rows):
            yield body, condition, torch.ones(len(body), dtype=torch.int64)

    monkeypatch.setattr(PrivateRecords, "placed", in_order)
    with pytest.raises(AssertionError):
        require_others_stay([0, 7, 200, 402])


def test_what_is_cut_off_is_far_below_the_noise():
    """Of 2,000 records no number is out by more than it may be; together by a ten-thousandth of the least noise."""
    rows = torch.rand((2000, 43), generator=torch.Generator().manual_seed(1))
    factors, shape = features_of(40, 50), (3, 50)
    left, right = factors(rows[:, 3:], rows[:, :3])
    lengths = (left.norm(dim=1) * right.norm(dim=1)).double()
    exact = (left.double() / lengths.clamp(min=1.0)[:, None]).T @ right.double()
    query = BoundedSums(factors=factors, shape=shape, max_records=1)
    out = totals(rows, factors, shape) * query.unit - exact.numpy().ravel()
    assert np.abs(out).max() <= 2000 * (2.0**-20 + 2.0**-22 + 1e-6)  # the last: scaling down by a little more
    assert np.sqrt((out**2).mean()) < 1e-3


# -- whole sum and whole noise -----------------------------------------------------------------------------------------


def test_a_whole_sum_and_rounded_noise_are_the_rounded_sum_and_noise():
    """What is given out is a function of what the Gaussian mechanism gives out: its events and prices stand."""
    rows = rows_of(30)
    exact, _ = answered([[row] for row in rows.tolist()], 1.0, most=1)
    unit = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1, noise=2.5).unit
    query = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1)
    for seed in range(20):
        draw = np.random.default_rng(seed).standard_normal(len(exact))
        noise = ReplayNoise([draw])
        found = sums_of(records(rows), 2.5, noise=noise).release(as_they_are).numpy().ravel()
        scale = 2.5 / query.unit
        rounded_after = np.array(
            [round(Fraction(s) + Fraction(float(z * scale))) for s, z in zip(exact, draw, strict=True)]
        )
        assert (found == (rounded_after * query.unit).astype(np.float32)).all()
    assert unit == 2 * query.unit


@pytest.mark.parametrize("multiplier", [0.3, 1 / 3, 1.1, 7e3])
@pytest.mark.parametrize("bound", [1.0, 0.1, 1 / 3])
@pytest.mark.parametrize("source", [OsKeyedNoise])
def test_the_noise_is_never_less_than_was_priced(monkeypatch, multiplier, bound, source):
    scales = []
    monkeypatch.setattr(noises, "rounded_normals", lambda size, scale: scales.append(scale) or np.zeros(size, np.int64))
    sums_of(records(rows_of(3)), multiplier, noise=source(), most=3).release(as_they_are, bound=bound)
    unit = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=3, bound=bound).unit
    least = Fraction(multiplier) * Fraction(3 * bound) / Fraction(unit)
    assert least <= Fraction(scales[0]) <= least * (1 + Fraction(1, 2**51))


def test_an_access_that_promises_whole_numbers_is_held_to_it(monkeypatch):
    access = Access(purpose="sum", event=GaussianEvent(noise_multiplier=1.0), whole=True)
    mechanism = Mechanism([access], noise=silence(), authorise=lambda access, step: None, allow_test_noise=True)
    plant(monkeypatch, BoundedSums, "answer", ("unit=self.unit", "unit=None"))
    with pytest.raises(NotAsPriced, match="whole numbers"):
        mechanism.release(BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1), access, records(rows_of(2)))


def test_real_numbers_get_no_whole_noise(monkeypatch):
    plant(monkeypatch, BoundedSums, "answer", ("total.cpu().flatten().numpy()", "total.cpu().flatten().numpy() / 2"))
    with pytest.raises(SettingError, match="whole numbers"):
        sums_of(records(rows_of(2))).release(as_they_are)


STD = "product_upwards(event.noise_multiplier, moved.l2)"
MUTANTS = {
    "0.7 of the noise": (STD, f"0.7 * {STD}"),
    "noise for C alone": (STD, "event.noise_multiplier * 0.5"),
    "noise by the data": (STD, "float(abs(total).max())"),
    "a little more": (STD, f"{STD} * (1 + 1e-8)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_scale_is_not_as_priced(monkeypatch, mutant):
    plant(monkeypatch, Mechanism, "_noised", MUTANTS[mutant])
    with pytest.raises(NotAsPriced):
        sums_of(records(rows_of(2))).release(as_they_are)


# -- noise -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [OsKeyedNoise])
def test_the_noise_is_sigma_times_the_bound_times_the_records_of_a_unit(source):
    """20,000 numbers: the standard deviation is right to 3 %, rejecting what is right once in a million."""
    shape, std = (20, 1000), 1.7 * 0.5 * 3
    kept = records(torch.zeros(1, LEFT + RIGHT))

    def nothing(body, condition):
        return torch.zeros(len(body), shape[0]), torch.zeros(len(body), shape[1])

    made = Sums(kept, (1.7,), most=3, noise=source(), authorise=lambda access, step: None)
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
        made.release(as_they_are, bound=bound)
    assert [std for _, std in noise.asked] == pytest.approx([2.0, 0.8, 1.6])
    real = sums_of(records(rows_of(3)), 1.0, 1.0, noise=OsKeyedNoise())
    assert not torch.equal(*(real.release(as_they_are) for _ in range(2)))


def test_noise_for_tests_is_refused():
    with pytest.raises(SettingError, match="tests only"):
        Sums(records([]), (1.0,), most=1, noise=silence(), authorise=lambda access, step: None)


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
        for name in ("placed", "chunks", "lot"):
            self.watch(monkeypatch, name, getattr(PrivateRecords, name))

    def watch(self, monkeypatch, name, opened):
        def watched(kept, *arguments):
            self.acts.append(name)
            return opened(kept, *arguments)

        monkeypatch.setattr(PrivateRecords, name, watched)

    def whole(self, size, std, unit):
        self.acts.append("noise")
        return ScaledNoise(np.zeros(size, dtype=np.int64), std)

    def authorise(self, access, step):
        self.acts.append(step)


OPENED, AGAIN = ["placed", "chunks"], ["placed"]


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


def test_a_release_is_paid_for_once_it_is_summed_and_before_it_is_drawn(watched):
    made = sums_of(records(rows_of(4)), 2.0, 9.0, noise=watched, authorise=watched.authorise)
    assert made.spent == made.ran == []
    assert watched.acts == []
    made.release(as_they_are)
    assert watched.acts == [*OPENED, 1, "noise"]
    assert made.spent == made.ran == [2.0]
    made.release(as_they_are, bound=3.0)
    assert watched.acts[4:] == [*AGAIN, 2, "noise"]
    assert made.spent == made.ran == [2.0, 9.0]


def test_more_than_was_planned_is_refused_before_anything_is_asked_or_opened(watched):
    few, two = records(rows_of(4)), records(rows_of(4), unit=[0, 1, 1, 1])
    watching = {"noise": watched, "authorise": watched.authorise}
    cases = [
        (sums_of(few, 1.0, taken=1, **watching), 1.0, "steps"),
        (sums_of(few, 1.0, 1.0, taken=5, **watching), 1.0, "steps"),
        (sums_of(two, 1.0, most=2, **watching), 1.0, "max_records"),
        (sums_of(few, 1.0, **watching), 1e-40, "sensitivity"),
        (sums_of(few, 1e20, **watching), 1e20, "sensitivity"),
        (sums_of(few, 1.0, **watching), math.nan, "sensitivity"),
    ]
    for made, bound, field in cases:
        taken = made.taken
        with pytest.raises(SettingError) as refused:
            made.release(as_they_are, bound=bound)
        assert refused.value.field == field
        assert made.taken == taken
    assert watched.acts == []
    sums_of(two, 1.0, most=3, **watching).release(as_they_are)
    assert watched.acts == [*OPENED, 1, "noise"]


def test_what_is_not_paid_for_is_not_drawn(watched):
    def refuses(access, step):
        raise LedgerError("the disk is full")

    made = sums_of(records(rows_of(4)), 1.0, noise=watched, authorise=refuses)
    with pytest.raises(LedgerError):
        made.release(as_they_are)
    assert watched.acts == OPENED
    assert (made.taken, made.ran) == (0, [])


def test_a_release_that_fails_while_it_is_summed_costs_nothing(watched):
    rows = rows_of(5)

    def fails(body, condition):
        if len(body) == module._ROWS:  # made-up records are something else
            raise MemoryError
        return condition, body

    made = sums_of(records(rows), 2.0, 3.0, noise=watched, authorise=watched.authorise)
    with pytest.raises(MemoryError):
        made.release(fails)
    assert (made.spent, made.ran) == ([], [])
    made.release(as_they_are)
    assert watched.acts == [*OPENED, *AGAIN, 1, "noise"]
    assert (made.spent, made.ran) == ([2.0], [2.0])


def test_releases_of_an_earlier_session_are_not_made_again(watched):
    made = sums_of(records(rows_of(4)), 2.0, 9.0, 9.0, noise=watched, authorise=watched.authorise, taken=2)
    assert made.spent == [2.0, 9.0]
    made.release(as_they_are)
    assert watched.acts == [*OPENED, 3, "noise"]
    with pytest.raises(SettingError):
        made.release(as_they_are)


def test_a_lot_is_no_place_for_a_sum_of_everybody(watched):
    """The price of a lot is less than what is done."""
    access = Access(purpose="sum", event=GaussianEvent(noise_multiplier=1.0, sample_rate=0.5))
    mechanism = Mechanism([access], noise=watched, authorise=lambda access, step: None, allow_test_noise=True)
    query = BoundedSums(factors=as_they_are, shape=SHAPE, max_records=1)
    with pytest.raises(SettingError) as refused:
        mechanism.release(query, access, records(rows_of(4)))
    assert refused.value.field == "sample_rate"
    assert watched.acts == []


# -- rows that meet ----------------------------------------------------------------------------------------------------


def centred(body, condition):
    return condition, body - body.mean(0)


def centred_and_detached(body, condition):
    return condition, body - body.detach().mean(0)


def normalised(body, condition):
    return condition, torch.nn.functional.batch_norm(body, None, None, training=True)


def ranked(body, condition):
    return condition, body.sort(0).values


def centred_conditions(body, condition):
    return condition - condition.mean(0), body


def above_the_median(body, condition):
    return (condition > condition.median(0).values).float(), body


def running(body, condition):
    return condition, body + body.detach().cumsum(0) - body.detach()


def shared(body, condition):
    return condition, body / len(body)


def summed_already(body, condition):
    return condition, body.sum(0, keepdim=True)


MEETING = [
    centred, centred_and_detached, normalised, ranked, centred_conditions, above_the_median, running, shared,
    summed_already,
]  # fmt: skip


@pytest.mark.parametrize("factors", MEETING)
def test_factors_in_which_rows_meet_are_refused_before_a_record_is_looked_at(watched, factors):
    made = sums_of(records(rows_of(4)), noise=watched, authorise=watched.authorise)
    with pytest.raises(SettingError, match="not independent") as refused:
        made.release(factors)
    assert refused.value.field == "factors"
    assert watched.acts == []
    assert (made.taken, made.ran) == (0, [])


def test_factors_of_each_row_alone_are_taken():
    public = rows_of(LEFT, seed=3)[:, :RIGHT]

    def of_each(body, condition):
        return condition.softmax(dim=1), torch.nn.functional.layer_norm(body @ public.T @ public, (RIGHT,))

    assert sums_of(records(rows_of(4))).release(of_each).isfinite().all()


# -- the same records in another form ----------------------------------------------------------------------------------


def test_mapped_records_may_be_none():
    found = sums_of(records([]).mapped(lambda body: body, RIGHT, rows=3)).release(as_they_are)
    assert not found.any()


def test_a_number_too_large_for_float16_costs_one_record_and_no_other():
    rows = rows_of(4)
    rows[1, LEFT] = 1e6
    kept = records(rows).mapped(lambda body: body, RIGHT, rows=2)
    other = records(rows[[0, 2, 3]]).mapped(lambda body: body, RIGHT, rows=2)
    assert torch.equal(*(sums_of(some).release(as_they_are) for some in (kept, other)))


def test_sums_go_on_with_another_form():
    made = sums_of(records(torch.zeros(3, LEFT + RIGHT)), 1.0, 1.0)
    assert not made.release(as_they_are).any()
    made.kept = records(torch.full((3, LEFT + RIGHT), 0.1))
    torch.testing.assert_close(made.release(as_they_are), torch.full(SHAPE, 0.03))
    made = sums_of(records(rows_of(1)), 1.0)
    made.kept = records(rows_of(2), unit=[0, 0])
    with pytest.raises(SettingError, match="max_records"):
        made.release(as_they_are)
