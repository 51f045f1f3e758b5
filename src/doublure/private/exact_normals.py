"""Normal noise in whole numbers, drawn exactly: rounded normal numbers and discrete ones.

Rounded, it is round(N(0, scale²)); discrete, a whole number i has a chance ∝ e^(-i²/(2 scale²)). Both are drawn by
Karney's algorithms (2016, *Sampling exactly from the normal distribution*, ACM TOMS 42(1)): N (section 4) and D for the
discrete one, with Bernoulli trials H and B. They need no logarithm, no table and no floating-point number. What decides
is whether one uniform number is smaller than another, and uniform numbers are strings of bits that are as long as a
decision needs:

1. k = 0, 1, 2, … with chance ∝ e^(-k/2): as many successes of trials H, of chance e^(-1/2), as come before a failure;
2. go on if k(k - 1) trials H all succeed, else begin anew;
3. x uniform in (0, 1);
4. go on if k + 1 trials B, of chance e^(-x(2k + x)/(2k + 2)) each, all succeed, else begin anew;
5. k + x, with a random sign, is N(0, 1).

The chance of k and x is then ∝ e^(-k/2 - k(k - 1)/2 - x(2k + x)/2) = e^(-(k + x)²/2). A trial is von Neumann's: of
falling uniform numbers the length of the run is even with chance e^(-first bound).

A discrete normal number i has k and x, too: k + x = |i|/scale. Step 3 draws a whole number j evenly; i is the least
whole number from k · scale on, plus j. The proposal begins anew if x is not below 1, and if i is zero with one of the
two signs. x is a quotient of two whole numbers, and a long division gives its binary digits. The law is that of
Canonne, Kamath and Steinke (2020, Definition 1). Their sampler tries e^(-γ) for quotients γ of hundreds of bits; this
one divides numbers of 64 bits.

Many numbers are drawn at once, on words of 32 bits. Where two words are equal (once in 4e9 comparisons), or a word is
too short to say, this one trial goes on by itself with Python's whole numbers and as many words more as it takes. The
scale is a float and so a whole number over a power of two; its product with k + x is computed in whole numbers, and
where 64 bits of x do not say to which it is rounded, more are drawn. All bits are the operating system's.

Why rounded noise is a Gaussian mechanism without a floating-point hole: the answer S is whole, so S + round(Z) =
round(S + Z), a function of what the Gaussian mechanism gives out on real numbers. Events and prices are those of the
Gaussian. Discrete noise has the price of Canonne, Kamath and Steinke's Theorem 4.

===========================================  ==================================================================
edge case                                    what happens
===========================================  ==================================================================
no number                                    an empty array
a tie of two words                           decided by further words, one number at a time
halfway between two whole numbers            has chance zero; what comes close is decided by further words
a scale that cannot be handled               refused: below 2^-7, or from 2^51 on
timing                                       not covered: how long it takes depends on what is drawn
===========================================  ==================================================================
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from doublure.errors import SettingError
from doublure.support.arrays import Mask

Words: TypeAlias = npt.NDArray[np.uint64]
Places: TypeAlias = npt.NDArray[np.int64]

WORD = 32
"""Bits that are drawn at a time."""

LEAST, MOST = 2.0**-7, 2.0**51
"""Range of a scale: a product with it then fits into 128 bits."""

_CHUNK = 1 << 16  # proposals at a time
_ACCEPTED = 0.49  # (1 - e^(-1/2)) √(π/2) = 0.4932 of them
_A_SIGN = 0.19  # (1 - e^(-1/2)) / 2 = 0.1967: with this chance k is 0 and one of two signs is drawn
_DIVIDED = 11  # binary digits at a time: remainders are below 2^53
_SIGNIFICAND = 53
_HELD = np.uint64(64)
_LOW = np.uint64(0xFFFFFFFF)


def rounded_normals(size: int, scale: float) -> npt.NDArray[np.int64]:
    """Return independent draws of N(0, scale²), each rounded to the nearest whole number.

    Args:
        size: How many.
        scale: Standard deviation before rounding; taken as it is, to the last bit.

    Returns:
        int64 ``(size,)``.

    Raises:
        SettingError: The scale is not between 2^-7 and 2^51.
    """
    require_scale(scale)
    return _gathered(size, _ACCEPTED, lambda proposals: _Proposals(proposals).rounded(scale))


def discrete_normals(size: int, scale: float) -> npt.NDArray[np.int64]:
    """Return independent draws of whole numbers i, each with a chance proportional to e^(-i²/(2 scale²)).

    Args:
        size: How many.
        scale: The parameter σ; taken as it is, to the last bit, so that σ² is a quotient of two whole numbers.

    Returns:
        int64 ``(size,)``.

    Raises:
        SettingError: The scale is not between 2^-7 and 2^51.
    """
    require_scale(scale)
    # An i has the chance of its k (1 - e^(-1/2)), its sign (1/2), its j (1/⌈σ⌉), and e^(-i²/(2σ²)). The sum of the last
    # over all i is at least 1, and at least σ √(2π).
    accepted = max(_A_SIGN, _ACCEPTED * scale) / math.ceil(scale)
    return _gathered(size, accepted, lambda proposals: _WholeProposals(proposals, scale).numbers())


def _gathered(size: int, accepted: float, drawn: Callable[[int], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return as many numbers as asked for, drawn from proposals of which about a share is accepted."""
    found = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        proposals = min(_CHUNK, math.ceil((size - done) / accepted) + 16)
        # Proposals are independent and in no order that depends on them: the first that pass are as good as any.
        some = drawn(proposals)[: size - done]
        found[done : done + len(some)] = some
        done += len(some)
    return found


def require_scale(scale: float) -> None:
    """Refuse a scale for which the arithmetic is not made.

    Raises:
        SettingError: See :func:`rounded_normals`.
    """
    if not LEAST <= scale < MOST:
        raise SettingError(
            f"the noise's scale must lie between {LEAST:g} and {MOST:g} steps of the grid",
            field="scale",
            remedy="check noise_multiplier",
        )


def _words(size: int) -> Words:
    """Return fresh words, ``(size,)``."""
    drawn = np.frombuffer(os.urandom(4 * size), dtype="<u4")
    return (drawn if WORD == 32 else drawn >> np.uint32(32 - WORD)).astype(np.uint64)


def _word() -> int:
    """Return a fresh word."""
    return int.from_bytes(os.urandom(4), "little") >> (32 - WORD)


class _BinaryDigits(Protocol):
    """A number of [0, 1), to as many binary digits as are asked for."""

    words: int

    def to(self, words: int) -> int:
        """Return at least so many words of it, as one whole number."""


@dataclass
class _WholeQuotient:
    """A quotient of two whole numbers, below 1.

    Attributes:
        above: The number that is divided.
        below: The number that it is divided by.
        words: How many words of it were asked for.
    """

    above: int
    below: int
    words: int = 1

    def to(self, words: int) -> int:
        """Return at least so many words of it."""
        self.words = max(self.words, words)
        return (self.above << WORD * self.words) // self.below


@dataclass
class _Uniform:
    """A uniform number of (0, 1), of which some words are known.

    Attributes:
        known: These words, as one whole number.
        words: How many they are.
    """

    known: int
    words: int = 1

    def to(self, words: int) -> int:
        """Return at least so many words of it, drawing those that are not known."""
        while self.words < words:
            self.known = (self.known << WORD) | _word()
            self.words += 1
        return self.known

    def below(self, other: _BinaryDigits) -> bool:
        """Say whether it is the smaller one."""
        words = max(self.words, other.words)
        while (own := self.to(words)) == (known := other.to(words)):
            words += 1
        return own < known

    def chosen(self, k: int, x: _BinaryDigits) -> bool:
        """Say whether it is below (2k + x)/(2k + 2)."""
        words = max(self.words, x.words)
        while True:
            own, bound = (2 * k + 2) * self.to(words), (2 * k << WORD * words) + x.to(words)
            if own + 2 * k + 2 <= bound:
                return True
            if own >= bound + 1:
                return False
            words += 1


def _fresh() -> _Uniform:
    return _Uniform(_word())


class _BernoulliTrials(ABC):
    """Proposed k and x, of which some pass the trials B.

    Args:
        k: ``(n,)``.
        upper: ``(n,)`` the first word of each x.
    """

    def __init__(self, k: Words, upper: Words) -> None:
        self._k, self._upper = k, upper

    @abstractmethod
    def _x(self, place: int) -> _BinaryDigits:
        """Return one's x to any number of words."""

    def _passing(self) -> Mask:
        """Say of which all k + 1 trials B succeed."""
        passing = np.ones(len(self._k), dtype=np.bool_)
        left = np.arange(len(self._k))
        trial = 0
        while left.size:
            succeeded = self._trials(left)
            passing[left[~succeeded]] = False
            trial += 1
            left = left[succeeded]
            left = left[self._k[left] >= np.uint64(trial)]
        return passing

    def _trials(self, places: Places) -> Mask:
        """Make one trial B for some: its chance is e^(-x(2k + x)/(2k + 2)).

        A run falls from x, and each of its numbers has to be chosen with chance (2k + x)/(2k + 2) besides.
        """
        even = np.ones(len(places), dtype=np.bool_)
        run = np.arange(len(places))
        bound = self._upper[places]
        twice = np.uint64(2) * self._k[places]
        first, length = True, 0
        while run.size:
            drawn = _words(run.size)
            tied = drawn == bound
            going = drawn < bound
            for place in np.flatnonzero(tied):
                own = run[place]
                x = self._x(int(places[own]))
                last = x if first else _Uniform(int(bound[place]))
                even[own] = self._go_on(int(twice[own]) // 2, x, last, _Uniform(int(drawn[place])), length)
            run, drawn = run[going], drawn[going]
            choice, share = _words(run.size), twice[run] + np.uint64(2)
            low = share * choice
            limit = (twice[run] << np.uint64(WORD)) + self._upper[places[run]]
            going = low + share <= limit
            for place in np.flatnonzero(~going & (low <= limit)):
                own = run[place]
                k, x = int(twice[own]) // 2, self._x(int(places[own]))
                if _Uniform(int(choice[place])).chosen(k, x):
                    # The run is one longer, and goes on by itself.
                    even[own] = self._go_on(k, x, _Uniform(int(drawn[place])), _fresh(), length + 1)
                else:
                    even[own] = length % 2 == 0
            run, bound = run[going], drawn[going]
            length += 1
            even[run] = length % 2 == 0
            first = False
        return even

    def _go_on(self, k: int, x: _BinaryDigits, last: _BinaryDigits, drawn: _Uniform, length: int) -> bool:
        """Finish a trial B by itself, whose next number has been drawn."""
        while drawn.below(last) and _fresh().chosen(k, x):
            last, drawn, length = drawn, _fresh(), length + 1
        return length % 2 == 0


class _Proposals(_BernoulliTrials):
    """Proposed k and x, both drawn.

    Args:
        size: How many are proposed.
    """

    def __init__(self, size: int) -> None:
        k = _proposed(size)
        super().__init__(k, _words(len(k)))
        self._lower = _words(len(k))
        self._longer: dict[int, _Uniform] = {}

    def rounded(self, scale: float) -> npt.NDArray[np.int64]:
        """Return the whole numbers of those that pass."""
        passed = np.flatnonzero(self._passing())
        signs = 1 - 2 * (_words(len(passed)) >> np.uint64(WORD - 1)).astype(np.int64)
        left = 64 - 2 * WORD
        x = ((self._upper[passed] << np.uint64(WORD)) | self._lower[passed]) << np.uint64(left)
        whole, sure = _product(self._k[passed], x, np.uint64((1 << left) - 1), scale)
        longer = np.isin(passed, np.fromiter(self._longer, np.int64, len(self._longer)))
        for place in np.flatnonzero(longer | ~sure):
            whole[place] = _nearest(int(self._k[passed[place]]), self._x(int(passed[place])), scale)
        return whole * signs

    @override
    def _x(self, place: int) -> _Uniform:
        known = (int(self._upper[place]) << WORD) | int(self._lower[place])
        return self._longer.setdefault(place, _Uniform(known, 2))


class _WholeProposals(_BernoulliTrials):
    """Proposed whole numbers, from which k and x follow.

    Args:
        size: How many are proposed.
        scale: See :func:`discrete_normals`.
    """

    def __init__(self, size: int, scale: float) -> None:
        self._times, places = _ratio(scale)
        k = _proposed(size)
        first, over = _from_multiples(k, scale)
        further = _whole_below(math.ceil(scale), len(k))
        over += further << np.uint64(places)
        inside = over < np.uint64(self._times)  # x is their quotient
        self._far, self._over = (first + further)[inside], over[inside]
        super().__init__(k[inside], _first_word(self._over, np.uint64(self._times)))
        self._longer: dict[int, _WholeQuotient] = {}

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return those that pass, with their signs."""
        far = self._far[self._passing()].astype(np.int64)
        signs = 1 - 2 * (_words(len(far)) >> np.uint64(WORD - 1)).astype(np.int64)
        return (far * signs)[(far > 0) | (signs > 0)]

    @override
    def _x(self, place: int) -> _WholeQuotient:
        return self._longer.setdefault(place, _WholeQuotient(int(self._over[place]), self._times))


def _from_multiples(k: Words, scale: float) -> tuple[Words, Words]:
    """Return the least whole numbers from k · scale on, and by how much they exceed it, times 2^t of the scale."""
    numerator, places = _ratio(scale)
    product, shift = k * np.uint64(numerator), np.uint64(places)
    first = (product + np.uint64((1 << places) - 1)) >> shift
    over = (first << shift) - product
    for place in np.flatnonzero(k >= _HELD):  # the product is not held
        exact = int(k[place]) * numerator
        least = -(-exact >> places)
        first[place], over[place] = least, (least << places) - exact
    return first, over


def _whole_below(most: int, size: int) -> Words:
    """Return uniform whole numbers from 0 to most - 1, ``(size,)``."""
    found, left = np.zeros(size, dtype=np.uint64), np.arange(size)
    bits = (most - 1).bit_length()
    words = -(-bits // WORD)
    while words and left.size:
        drawn = np.zeros(left.size, dtype=np.uint64)
        for _ in range(words):
            drawn = (drawn << np.uint64(WORD)) | _words(left.size)
        drawn >>= np.uint64(words * WORD - bits)
        found[left] = drawn
        left = left[drawn >= np.uint64(most)]
    return found


def _first_word(above: Words, below: np.uint64) -> Words:
    """Return the first word of quotients below 1 of numbers below 2^53, by long division."""
    found, rest, left = np.zeros_like(above), above, WORD
    while left:
        digits = min(_DIVIDED, left)
        quotient, rest = np.divmod(rest << np.uint64(digits), below)
        found = (found << np.uint64(digits)) | quotient
        left -= digits
    return found


def _proposed(size: int) -> Words:
    """Return k of the proposals that go on to the third step."""
    k = _successes(size)
    return k[_all_succeed(k)]


def _successes(size: int) -> Words:
    """Return how many trials H succeed before one fails, ``(size,)``."""
    k = np.zeros(size, dtype=np.uint64)
    left = np.arange(size)
    while left.size:
        left = left[_halves(left.size)]
        k[left] += np.uint64(1)
    return k


def _all_succeed(k: Words) -> Mask:
    """Say for which k(k - 1) trials H all succeed."""
    passing = np.ones(len(k), dtype=np.bool_)
    trials = k * (np.maximum(k, np.uint64(1)) - np.uint64(1))
    left = np.flatnonzero(trials)
    done = 0
    while left.size:
        succeeded = _halves(left.size)
        passing[left[~succeeded]] = False
        done += 1
        left = left[succeeded]
        left = left[trials[left] > np.uint64(done)]
    return passing


def _halves(size: int) -> Mask:
    """Make trials H, whose chance is e^(-1/2): of a run that falls from one half the length is even."""
    even = np.ones(size, dtype=np.bool_)
    run = np.arange(size)
    bound = np.full(size, 1 << (WORD - 1), dtype=np.uint64)  # a half is no number that a word could tie with
    first, length = True, 0
    while run.size:
        drawn = _words(run.size)
        going = drawn < bound
        for place in np.flatnonzero(drawn == bound) if not first else ():
            even[run[place]] = _go_on_halving(_Uniform(int(bound[place])), _Uniform(int(drawn[place])), length)
        run, bound = run[going], drawn[going]
        length += 1
        even[run] = length % 2 == 0
        first = False
    return even


def _go_on_halving(last: _Uniform, drawn: _Uniform, length: int) -> bool:
    """Finish a trial H by itself, whose next number has been drawn."""
    while drawn.below(last):
        last, drawn, length = drawn, _fresh(), length + 1
    return length % 2 == 0


def _ratio(scale: float) -> tuple[int, int]:
    """Return a scale as a whole number over 2^t, and t; of as many digits as a float has."""
    fraction, exponent = math.frexp(scale)
    return int(math.ldexp(fraction, _SIGNIFICAND)), _SIGNIFICAND - exponent


def _product(k: Words, x: Words, spread: Any, scale: float) -> tuple[npt.NDArray[np.int64], Mask]:
    """Return (k + x) · scale rounded, and where this is sure.

    Args:
        k: ``(n,)``; from 64 on, the product is not held, and nothing is sure.
        x: Of 64 bits, ``(n,)``: the true one is at least x/2^64, and below (x + spread + 1)/2^64.
        spread: How many of its last bits are not known, all set.
        scale: See :func:`rounded_normals`.
    """
    numerator, places = _ratio(scale)
    times, half, shift = np.uint64(numerator), np.uint64(1 << (places - 1)), np.uint64(places)
    low_high, low = _wide(times, x)
    high, more = (low_high, low) if not spread else _wide(times, x | spread)
    last = more + (times - np.uint64(1))
    high = high + (last < more)  # carried
    least = (low_high + k * times + half) >> shift
    most = (high + k * times + half) >> shift
    return least.astype(np.int64), (least == most) & (k < _HELD)


def _wide(times: Any, x: Words) -> tuple[Words, Words]:
    """Return the upper and the lower 64 bits of a product of 64 bits each."""
    half = np.uint64(32)
    upper, lower = times >> half, times & _LOW
    x_upper, x_lower = x >> half, x & _LOW
    small = lower * x_lower
    middle = upper * x_lower + (small >> half)  # ``times`` has 53 bits: nothing runs over
    other = lower * x_upper + (middle & _LOW)
    return upper * x_upper + (middle >> half) + (other >> half), (other << half) | (small & _LOW)


def _nearest(k: int, x: _Uniform, scale: float) -> int:
    """Return (k + x) · scale rounded, drawing as much of x as that takes."""
    numerator, places = _ratio(scale)
    words = x.words
    while True:
        shift = WORD * words + places
        low = numerator * ((k << WORD * words) + x.to(words))
        half = 1 << (shift - 1)
        least, most = (low + half) >> shift, (low + numerator - 1 + half) >> shift
        if least == most:
            return least
        words += 1
