"""Normal numbers, rounded and discrete: exact, whatever the words are cut to, from the operating system's bits."""

from __future__ import annotations

import math
import os
import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from planting import plant
from scipy import stats
from scipy.special import ndtr
from tiers import by_tier, exhaustive

from doublure.errors import SettingError
from doublure.private import exact_normals as module
from doublure.private.exact_normals import discrete_normals, rounded_normals

ALPHA = 1e-6
SIZE = by_tier(300_000, 1_000_000)
SCALES = (0.02, 0.3, 1.0, 2.7, 31.4)
LEAST_EXPECTED = 20


def p_value(found, scale):
    """Return the chi² p-value against round(N(0, scale²)); what is rare is counted together, each tail by itself."""
    edge = int(8 * scale) + 2
    values = np.arange(-edge, edge + 1)
    # Computed in the lower half, where no digits are lost, and mirrored.
    chances = ndtr((-np.abs(values) + 0.5) / scale) - ndtr((-np.abs(values) - 0.5) / scale)
    often = values[chances * len(found) >= LEAST_EXPECTED]
    last = int(often[-1])
    counts = [int((found < -last).sum()), *np.bincount(np.clip(found, -last, last) + last, minlength=2 * last + 1)]
    counts.append(int((found > last).sum()))
    counts[1] -= counts[0]
    counts[-2] -= counts[-1]
    tail = float(ndtr(-(last + 0.5) / scale))
    expected = len(found) * np.array([tail, *chances[np.abs(values) <= last], tail])
    if expected[0] < LEAST_EXPECTED:  # too rare for a cell of its own
        expected = np.array([expected[0] + expected[1], *expected[2:-2], expected[-2] + expected[-1]])
        counts = [counts[0] + counts[1], *counts[2:-2], counts[-2] + counts[-1]]
        if len(counts) == 2:  # one value alone
            return 1.0
    statistic = float(((np.array(counts) - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(expected) - 1))


class Bytes:
    """Stands in for the operating system, a slice at a time: what it has given can be given once more."""

    def __init__(self, seed, size=4_000_000):
        self.left = np.random.default_rng(seed).bytes(size)
        self.given = 0

    def urandom(self, size):
        found = self.left[self.given : self.given + size]
        if len(found) < size:
            raise EOFError
        self.given += size
        return found

    def word(self):
        return int.from_bytes(self.urandom(4), "little") >> (32 - module.WORD)


@pytest.fixture
def shorten(monkeypatch):
    """Return what cuts words to so many bits, and draws their bytes at once: ties ask for them word by word."""

    def shorten(bits):
        monkeypatch.setattr(os, "urandom", Bytes(int.from_bytes(os.urandom(8)), size=16_000_000).urandom)
        monkeypatch.setattr(module, "WORD", bits)

    return shorten


@pytest.mark.parametrize("scale", SCALES)
def test_chances_are_those_of_a_rounded_normal_number(scale):
    assert p_value(rounded_normals(SIZE, scale), scale) > ALPHA


@pytest.mark.parametrize(
    ("bits", "scale"),
    [
        pytest.param(bits, scale, marks=() if scale == (2.7 if bits % 2 else 0.3) else exhaustive)
        for bits in (1, 2, 3, 5)
        for scale in (0.3, 2.7)
    ],
)
def test_short_words_give_the_same_chances(shorten, bits, scale):
    """Ties, which words of 32 bits hardly ever have, are then everywhere."""
    shorten(bits)
    assert p_value(rounded_normals(by_tier(12_000, 60_000), scale), scale) > ALPHA


@pytest.mark.parametrize("wrong", [1.02, 0.98])
def test_another_scale_is_noticed(wrong):
    assert p_value(rounded_normals(SIZE, 2.7 * wrong), 2.7) < ALPHA


def parity(self, k, x, last, drawn, length):
    return length % 2 == 0


@pytest.mark.parametrize(
    ("owner", "name", "planted", "size"),
    [
        (module._Proposals, "_go_on", parity, 6_000),
        (module, "_go_on_halving", lambda last, drawn, length: length % 2 == 0, 6_000),
        (module._Uniform, "chosen", lambda self, k, x: True, 10_000),
        (module._Uniform, "below", lambda self, other: False, 16_000),
        (module, "_nearest", lambda k, x, scale: int((k + x.known / 2 ** (module.WORD * x.words)) * scale), 2_000),
    ],
)
def test_a_tie_that_is_decided_wrongly_is_caught(shorten, monkeypatch, owner, name, planted, size):
    """In as many numbers as show it at p < 1e-10 and less."""
    shorten(1)
    monkeypatch.setattr(owner, name, planted)
    assert p_value(rounded_normals(size, 2.7), 2.7) < ALPHA


def test_whole_tails_are_drawn():
    """Beyond 4.5 lie 6.8 in a million, on both sides together."""
    far = np.abs(rounded_normals(2_000_000, 2.0**30)) > 4.5 * 2.0**30
    assert stats.binomtest(int(far.sum()), 2_000_000, 2 * float(ndtr(-4.5))).pvalue > ALPHA


@pytest.mark.parametrize("scale", [2.0**50.9, 3e12 / 7])
def test_of_a_large_scale_every_last_digit_is_used(scale):
    found = rounded_normals(200_000, scale)
    assert stats.kstest(found / scale, "norm").pvalue > ALPHA
    assert len(found) - len(np.unique(found)) <= 2  # of the smaller scale one pair in 75 runs, three in 3 million
    for bit in range(8):
        assert stats.binomtest(int(((found >> bit) & 1).sum()), len(found)).pvalue > ALPHA


def test_draws_are_independent():
    found = rounded_normals(SIZE, 2.0**40) / 2.0**40
    for lag in (1, 2, 3, 65_536):
        assert abs(float((found[:-lag] * found[lag:]).mean())) < stats.norm.isf(ALPHA / 2) / math.sqrt(SIZE - lag)
        of_squares = float(((found[:-lag] ** 2 - 1) * (found[lag:] ** 2 - 1)).mean())
        assert abs(of_squares) < stats.norm.isf(ALPHA / 2) * 2 / math.sqrt(SIZE - lag)
    sums = found.reshape(-1, 1000).sum(1) / math.sqrt(1000)
    assert stats.kstest(sums, "norm").pvalue > ALPHA


# -- bit by bit --------------------------------------------------------------------------------------------------------


class Lazy:
    """A uniform number as a list of words."""

    def __init__(self, source, words=None):
        self.source, self.words = source, [source.word()] if words is None else words

    def to(self, words):
        while len(self.words) < words:
            self.words.append(self.source.word())
        return self

    @property
    def low(self):
        whole = 0
        for word in self.words:
            whole = whole << module.WORD | word
        return Fraction(whole, 1 << module.WORD * len(self.words))

    @property
    def high(self):
        return self.low + Fraction(1, 2 ** (module.WORD * len(self.words)))

    def below(self, other):
        words = max(len(self.words), len(other.words))
        while self.to(words).low == other.to(words).low:
            words += 1
        return self.low < other.low

    def tied(self, other):
        return not isinstance(other, Fraction) and self.words[0] == other.words[0]

    def leads(self, other):
        """Say whether it is smaller by the first word."""
        return self.low < (other if isinstance(other, Fraction) else Lazy(self.source, other.words[:1]).low)

    def chosen(self, k, x):
        words = max(len(self.words), len(x.words))
        while not self.decided(k, x):
            words += 1
            self.to(words), x.to(words)
        return self.high <= Fraction(2 * k + x.low, 2 * k + 2)

    def decided(self, k, x):
        """Say whether it is on one side of (2k + x)/(2k + 2) for sure."""
        self.to(max(len(self.words), len(x.words)))
        x.to(len(self.words))
        return self.high * (2 * k + 2) <= 2 * k + x.low or self.low * (2 * k + 2) >= 2 * k + x.high


class Known(Lazy):
    """A fraction below 1 as a list of words."""

    def __init__(self, x):
        self.x, self.words = x, []
        self.to(1)

    def to(self, words):
        while len(self.words) < words:
            shift = module.WORD * (len(self.words) + 1)
            self.words.append(math.floor(self.x * 2**shift) % 2**module.WORD)
        return self


def alone(source, last, drawn, length, chosen=lambda: True):
    while drawn.below(last) and chosen():
        last, drawn, length = drawn, Lazy(source), length + 1
    return length % 2 == 0


def trials(source, numbers):
    """Make one trial B for each k and x, in the order in which words are handed out."""
    even, going, length = [True] * len(numbers), [(place, x) for place, (_, x) in enumerate(numbers)], 0
    while going:
        drawn = [Lazy(source) for _ in going]
        falling = []
        for (place, last), own in zip(going, drawn, strict=True):
            k, x = numbers[place]
            if own.tied(last):
                even[place] = alone(source, last, own, length, lambda k=k, x=x: Lazy(source).chosen(k, x))
            elif own.leads(last):
                falling.append((place, own))
            else:
                even[place] = length % 2 == 0
        choices = [Lazy(source) for _ in falling]
        left = []
        for (place, own), choice in zip(falling, choices, strict=True):
            k, x = numbers[place]
            first = Lazy(source, x.words[:1])
            if choice.decided(k, first):  # by a word of each
                sure = choice.low * (2 * k + 2) < 2 * k + first.low
                if sure:
                    left.append((place, own))
                else:
                    even[place] = length % 2 == 0
            elif choice.chosen(k, x):
                even[place] = alone(source, own, Lazy(source), length + 1, lambda k=k, x=x: Lazy(source).chosen(k, x))
            else:
                even[place] = length % 2 == 0
        going, length = left, length + 1
    return even


def one_by_one(size, scale, source):
    """Algorithm N with fractions, in the order in which words are handed out: everybody's next number together."""

    def halves(size):
        even, going, length = [True] * size, [(place, Fraction(1, 2)) for place in range(size)], 0
        while going:
            drawn = [Lazy(source) for _ in going]
            left = []
            for (place, last), own in zip(going, drawn, strict=True):
                if own.tied(last):
                    even[place] = alone(source, last, own, length)
                elif own.leads(last):
                    left.append((place, own))
                else:
                    even[place] = length % 2 == 0
            going, length = left, length + 1
        return even

    ks = [0] * size
    left = list(range(size))
    while left:
        left = [place for place, even in zip(left, halves(len(left)), strict=True) if even]
        for place in left:
            ks[place] += 1
    passing = [True] * size
    left, done = [place for place in range(size) if ks[place] > 1], 0
    while left:
        even = halves(len(left))
        for place, own in zip(left, even, strict=True):
            passing[place] &= own
        done += 1
        left = [place for place in left if passing[place] and ks[place] * (ks[place] - 1) > done]
    ks = [k for k, own in zip(ks, passing, strict=True) if own]
    upper, lower = ([source.word() for _ in ks] for _ in range(2))
    numbers = [(k, Lazy(source, [*words])) for k, *words in zip(ks, upper, lower, strict=True)]
    passing, left, trial = [True] * len(numbers), list(range(len(numbers))), 0
    while left:
        for place, own in zip(left, trials(source, [numbers[place] for place in left]), strict=True):
            passing[place] = own
        trial += 1
        left = [place for place in left if passing[place] and numbers[place][0] >= trial]
    kept = [number for number, own in zip(numbers, passing, strict=True) if own]
    signs = [1 - 2 * (source.word() >> (module.WORD - 1)) for _ in kept]
    found = []
    for sign, (k, x) in zip(signs, kept, strict=True):
        while True:
            least = math.floor((k + x.low) * Fraction(scale) + Fraction(1, 2))
            most = math.ceil((k + x.high) * Fraction(scale) + Fraction(1, 2)) - 1  # the upper end is not reached
            if least == most:
                break
            x.to(len(x.words) + 1)
        found.append(sign * least)
    return found


@pytest.mark.parametrize(("bits", "size"), [(1, 150), (2, 400), (4, 400), (8, 600), (32, 1000)])
@pytest.mark.parametrize("scale", [2.0**-7, 0.3, 17.0, 12345.678, 2.0**51 * (1 - 2.0**-53)])
def test_the_same_bits_give_the_same_numbers(monkeypatch, bits, size, scale):
    monkeypatch.setattr(module, "WORD", bits)
    one, other = (Bytes(size + bits) for _ in range(2))
    monkeypatch.setattr(os, "urandom", one.urandom)
    found = module._Proposals(size).rounded(scale)
    assert found.tolist() == one_by_one(size, scale, other)
    assert one.given == other.given


@pytest.mark.parametrize("scale", [2.0**-7, 0.7, 5.0, 2.0**40 + 0.25, 2.0**51 - 0.25])
def test_products_are_exact(scale):
    """The sure ones are right whatever follows in x; the others are not sure."""
    random = np.random.default_rng(5)
    x = random.integers(0, 2**64, 2000, dtype=np.uint64, endpoint=False)
    x[:3] = 0, 2**64 - 1, 2**63
    k = random.integers(0, 64, len(x), dtype=np.uint64)
    for spread in (0, 2**30 - 1):
        given = x & ~np.uint64(spread)
        whole, sure = module._product(k, given, np.uint64(spread), scale)
        for own, part, number, certain in zip(k.tolist(), given.tolist(), whole.tolist(), sure.tolist(), strict=True):
            low = (own + Fraction(part, 2**64)) * Fraction(scale) + Fraction(1, 2)
            high = (own + Fraction(part + spread + 1, 2**64)) * Fraction(scale) + Fraction(1, 2)
            assert number == math.floor(low)
            assert certain == (math.floor(low) == math.ceil(high) - 1)


def test_a_number_far_out_is_not_computed_in_64_bits():
    assert not module._product(np.array([64], np.uint64), np.zeros(1, np.uint64), np.uint64(0), 2.0**50)[1].any()


def test_all_bits_are_the_operating_systems(monkeypatch):
    source = Bytes(1)
    monkeypatch.setattr(os, "urandom", source.urandom)
    one = rounded_normals(500, 1e6)
    assert source.given > 4 * 500
    source.given = 0
    assert (rounded_normals(500, 1e6) == one).all()
    monkeypatch.setattr(os, "urandom", Bytes(1, size=0).urandom)
    with pytest.raises(EOFError):  # nothing stands in for it
        rounded_normals(1, 1.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**-8, 2.0**51])
def test_a_scale_that_cannot_be_handled_is_refused(scale):
    with pytest.raises(SettingError) as refused:
        rounded_normals(1, scale)
    assert refused.value.field == "scale"


def test_the_least_and_nearly_the_largest_scale_are_handled():
    assert not rounded_normals(50, 2.0**-7).any()  # half a step is 64 deviations away
    assert np.abs(rounded_normals(50, math.nextafter(2.0**51, 0))).max() > 2**49


def test_none_and_many_have_their_sizes(monkeypatch):
    assert rounded_normals(0, 1.0).shape == (0,)
    monkeypatch.setattr(module, "_CHUNK", 100)
    found = rounded_normals(5001, 3.0)
    assert (found.shape, found.dtype) == ((5001,), np.int64)


def test_it_is_fast():
    """Some 0.7 µs a number; fifteen times that, on a machine that is busy otherwise, is what a loop would take."""
    rounded_normals(1000, 1.0)
    begun = time.process_time()
    rounded_normals(300_000, 2.0**40)
    assert time.process_time() - begun < 300_000 * 10e-6


# -- discrete normal numbers -------------------------------------------------------------------------------------------

DISCRETE = (0.3, 0.75, 1.0, 2.7, 4.0, 31.4, 300.123)


def discrete_chances(scale):
    """Return whole numbers and how likely each is, by the law's definition."""
    edge = max(2, math.ceil(12 * scale))
    values = np.arange(-edge, edge + 1)
    weights = np.exp(-((values / scale) ** 2) / 2)
    return values, weights / weights.sum()


def discrete_p(found, scale):
    """Return the chi² p-value against the discrete law; what is rare is counted together."""
    values, chances = discrete_chances(scale)
    seen = np.bincount(np.clip(found, values[0], values[-1]) - values[0], minlength=len(values))
    rare = chances * len(found) < LEAST_EXPECTED
    expected = np.append(chances[~rare], chances[rare].sum()) * len(found)
    counted = np.append(seen[~rare], seen[rare].sum())
    if expected[-1] < LEAST_EXPECTED:
        expected, counted = [np.append(each[1:-1], each[0] + each[-1]) for each in (expected, counted)]
    return float(stats.chi2.sf(((counted - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.parametrize("scale", DISCRETE)
def test_chances_are_those_of_a_discrete_normal_number(scale):
    found = discrete_normals(by_tier(150_000, 1_000_000), scale)
    assert discrete_p(found, scale) > ALPHA
    if scale > 0.3:
        assert discrete_p(found, scale * 1.08) < ALPHA
        assert discrete_p(found, scale / 1.08) < ALPHA


@pytest.mark.parametrize(("bits", "scale"), [(1, 2.7), (1, 0.75), (2, 4.0), (3, 31.4), (5, 2.7)])
def test_short_words_give_the_same_chances_of_discrete_numbers(shorten, bits, scale):
    shorten(bits)
    assert discrete_p(discrete_normals(by_tier(6_000, 60_000), scale), scale) > ALPHA


@pytest.mark.parametrize(
    ("owner", "name", "planted"),
    [
        (module._WholeProposals, "_go_on", parity),
        (module._WholeProposals, "_x", lambda self, place: module._WholeQuotient(0, 1)),
        (module._WholeQuotient, "to", lambda self, words: 0),
        (module, "_first_word", lambda above, below: np.zeros_like(above)),
        (module, "_whole_below", lambda most, size: np.zeros(size, np.uint64)),
        (module, "_all_succeed", lambda k: np.ones(len(k), np.bool_)),
    ],
)
def test_a_fault_in_discrete_numbers_is_caught(shorten, monkeypatch, owner, name, planted):
    shorten(1)
    monkeypatch.setattr(owner, name, planted)
    sizes = 1_000, by_tier(8_000, 25_000)
    assert any(discrete_p(discrete_normals(size, 2.7), 2.7) < ALPHA for size in sizes)


def test_zero_has_one_sign(monkeypatch):
    plant(monkeypatch, module._WholeProposals, "numbers", ("(far > 0) | (signs > 0)", "far > -1"))
    assert discrete_p(discrete_normals(20_000, 2.7), 2.7) < ALPHA


def test_discrete_numbers_of_a_large_scale():
    scale = 2.0**50.9
    found = discrete_normals(100_000, scale)
    assert stats.kstest(found / scale, "norm").pvalue > ALPHA
    for bit in range(8):
        assert stats.binomtest(int(((found >> bit) & 1).sum()), len(found)).pvalue > ALPHA


def test_of_next_to_no_scale_all_are_zero():
    assert not discrete_normals(50, 2.0**-7).any()  # one is 128 deviations away
    with pytest.raises(SettingError):
        discrete_normals(1, 2.0**-8)
    with pytest.raises(SettingError):
        discrete_normals(1, 2.0**51)


@pytest.mark.parametrize("scale", [2.0**-7, 0.3, 1.0, 17.0, 12345.678, 2.0**51 * (1 - 2.0**-53)])
def test_what_lies_beyond_a_multiple_is_exact(scale):
    """Also where products are not held by 64 bits."""
    exact = Fraction(scale)
    k = np.array([0, 1, 2, 5, 63, 64, 2047, 2048, 4000], np.uint64)
    first, over = module._from_multiples(k, scale)
    numerator, places = module._ratio(scale)
    assert Fraction(numerator, 2**places) == exact
    for own, least, beyond in zip(k.tolist(), first.tolist(), over.tolist(), strict=True):
        assert least == math.ceil(own * exact)
        assert Fraction(beyond, 2**places) == least - own * exact


@pytest.mark.parametrize("bits", [1, 8, 11, 13, 32])
def test_first_words_are_those_of_the_quotient(monkeypatch, bits):
    monkeypatch.setattr(module, "WORD", bits)
    random = np.random.default_rng(3)
    for below in (2**53 - 1, 2**52, 2**52 + 12_345):
        above = random.integers(0, below, 500, dtype=np.uint64)
        above[:2] = 0, below - 1
        found = module._first_word(above, np.uint64(below))
        assert found.tolist() == [(number << bits) // below for number in above.tolist()]
        whole = module._WholeQuotient(int(above[5]), below)
        assert whole.to(1) == int(found[5])
        assert whole.to(3) == (int(above[5]) << 3 * bits) // below


@pytest.mark.parametrize("bits", [1, 3, 32])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 1000, 2**51 - 5])
def test_whole_numbers_below_another_are_even(monkeypatch, bits, most):
    monkeypatch.setattr(module, "WORD", bits)
    found = module._whole_below(most, 3000)
    assert int(found.max()) < most
    if most <= 8:
        assert most == 1 or stats.chisquare(np.bincount(found.astype(np.int64), minlength=most)).pvalue > ALPHA
    else:
        assert stats.kstest((found + 0.5) / most, "uniform").pvalue > ALPHA


@pytest.mark.parametrize("scale", [0.3, 4.0, 1e6 / 7])
@pytest.mark.parametrize("bits", [1, 4, 32])
def test_trials_of_discrete_numbers_are_decided_as_fractions_decide(monkeypatch, bits, scale):
    """The same words, read by loops over exact fractions, let the same proposals pass."""
    monkeypatch.setattr(module, "WORD", bits)
    one, other = (Bytes(bits) for _ in range(2))
    monkeypatch.setattr(os, "urandom", one.urandom)
    proposals = module._WholeProposals(300, scale)
    k, far = proposals._k.tolist(), proposals._far.tolist()
    exact = [Fraction(number) / Fraction(scale) - own for own, number in zip(k, far, strict=True)]
    assert all(0 <= x < 1 for x in exact)
    begun = one.given
    passed = proposals._passing().tolist()
    other.given = begun
    numbers = [(own, Known(x)) for own, x in zip(k, exact, strict=True)]
    wanted, left, trial = [True] * len(numbers), list(range(len(numbers))), 0
    while left:
        for place, own in zip(left, trials(other, [numbers[place] for place in left]), strict=True):
            wanted[place] = own
        trial += 1
        left = [place for place in left if wanted[place] and numbers[place][0] >= trial]
    assert passed == wanted
    assert one.given == other.given


def test_discrete_numbers_come_from_the_operating_systems_bits(monkeypatch):
    source = Bytes(1)
    monkeypatch.setattr(os, "urandom", source.urandom)
    one = discrete_normals(500, 1e6)
    source.given = 0
    assert (discrete_normals(500, 1e6) == one).all()
    monkeypatch.setattr(os, "urandom", Bytes(1, size=0).urandom)
    with pytest.raises(EOFError):
        discrete_normals(1, 1.0)


def test_discrete_numbers_are_fast_and_take_no_more_memory_for_more():
    discrete_normals(1000, 1.0)
    begun = time.process_time()
    discrete_normals(300_000, 12.3)
    assert time.process_time() - begun < 300_000 * 10e-6
    peaks = []
    for size in (100_000, 400_000):
        tracemalloc.start()
        discrete_normals(size, 12.3)
        peaks.append(tracemalloc.get_traced_memory()[1] - 8 * size)
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
