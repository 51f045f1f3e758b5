"""Plan of a copula of series: its parts and the cost of each release, from public facts.

One figure decides: the noise of the share of series on one side of a cut, at one step of one channel. If it is small,
series are divided into groups of levels, groups have tables of their own, and tables are trusted more than means.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from doublure.access import Access
from doublure.encode.attribute_groups import groups_of
from doublure.errors import SettingError, printable
from doublure.methods.statistics.settings import (
    ATTRIBUTE_SHARE,
    CALM_SHARE,
    CONSTANT_SHARE,
    GAP_SHARE,
    LOOK_SHARE,
    OWN_TABLE_SHARE,
    TABLE_SHARE,
    SeriesStatisticsSettings,
)
from doublure.networks.look_names import NAMES, QUANTILES, SIXTEENTHS
from doublure.networks.sizes import copula_noise
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.schema.series import SeriesSchema
from doublure.training.settings import Work

S = TypeVar("S", bound=SeriesStatisticsSettings)
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TABLES, GAPS, SHARED_GAPS, ATTRIBUTES, OWN_TABLES, PRODUCTS, CALM, LOOKS, STEEPEST_LOOKS = (
    "count each step's values in trees",
    "count steps without a value in pairs",
    "average how many steps without a value two channels share",
    "count attributes in pairs",
    "count each group's values in trees",
    "add up products of normal scores",
    "average how calm series are by stretches",
    "count series by level, spread, peak and runs",
    "count series by level, spread, peak, runs and steepest step",
)

WEIGHT = 1024
"""Denominator of the weights of the root and the levels, which are whole numbers."""
OWN_LEAVES = 64
"""Leaves of a group's own trees."""

FEW_VALUES = 8
"""Most values of every channel, missing included, for which chains are the default."""

CANDIDATES = 8
"""Candidates of a series: none is more than eight times as likely to be drawn as the model has it."""

LOOKED_AT, VALUES_LOOKED_AT = 2000, 2_000_000
"""Series of which candidates are drawn to learn which to keep, or as many as have so many values, but at least 200."""
_FEWEST_LOOKED_AT = 200

_BYTES = 4
_FLOPS_A_NUMBER, _FLOPS_A_VALUE, _FLOPS_A_CUBE = 30_000.0, 30_000.0, 40.0
"""Cost of exact noise on a number, of a value's score, and of eigenvalues (times the side's cube), in operations on
matrices."""
_LEVELS, _COMMON_SHARE = 4, 0.5
_MOST_NOISE_OF_CHANNELS = 0.03
_MOST_NOISE_OF_GROUPS = 0.03
"""Noise of a share of series within a group, at which groups are worth it: tables of a group differ from the common
ones by some 0.03, so that noisier ones would be noise for the most part."""
_UNITS_A_VALUE = 10
"""Series a level for each of a series' values, from which levels have covariances of their own: chance alone then moves
one by some √(1/10) of itself, however little noise there is."""
_HARDLY_AGREES = 0.12
_MOST_NOISE_OF_EXACT = 0.012
_MOST_NOISE_OF_CALM = 0.3
_ROOT_WEIGHT = 0.3
_FALL = 0.25
_MOST_NUMBERS = 50_000_000
_MOST_COMBINATIONS = 100_000
_LEAST_STEPS = 12


def count_values(schema: SeriesSchema, channel: str) -> float:
    """Return the number of values of a channel's step, missing included; infinite if it is not known yet."""
    column = schema.channels[channel]
    if column.grid is None or column.unit == 0:
        return math.inf
    lower, upper = column.grid
    return round((upper - lower) / column.unit) + 1 + schema.may_be_missing(channel)


def cut_noise(schema: SeriesSchema, noise_multiplier: float) -> float:
    """Return the noise of the share of series on one side of a cut, at one step of one channel."""
    parts = len(schema.channels) * schema.length
    return noise_multiplier * math.sqrt(parts / TABLE_SHARE) / schema.public_units


def decide(schema: SeriesSchema, settings: S, noise_multiplier: float) -> S:
    """Return the settings with groups, tables and stretches decided where they were left open."""
    noise, parts = cut_noise(schema, noise_multiplier), len(schema.channels) * schema.length
    grouped, groups = list(settings.grouped or ()), 1
    if settings.grouped is None:
        # Numbers shift scores, along a line and beside it: a line goes on where series are few, and groups do not. All
        # others then shift them too, so that what goes with a number and with a group counts once.
        numbers = any(each.bounded and not each.from_length for each in schema.attributes.values())
        wanted = [] if numbers else list(schema.attributes)
        for name in sorted(wanted, key=lambda name: name not in schema.with_role("target")):
            size = groups_of(schema.attributes[name])
            if noise * groups * size <= _MOST_NOISE_OF_GROUPS and groups * size * parts**2 <= _MOST_NUMBERS:
                grouped.append(name)
                groups *= size
    else:
        groups = math.prod(groups_of(schema.attributes[name]) for name in grouped)
    levels, shifting = settings.level_groups, len(grouped) < len(schema.attributes)
    if levels is not None and levels > 1 and shifting:
        remedy = "list all attributes in grouped, or set level_groups=1"
        raise SettingError("hide what other attributes than grouped ones shift", field="level_groups", remedy=remedy)
    if levels is None:
        enough = not shifting and noise * groups * _LEVELS <= _MOST_NOISE_OF_GROUPS
        enough = enough and schema.public_units >= _UNITS_A_VALUE * groups * _LEVELS * parts
        levels = _LEVELS if enough and groups * _LEVELS * parts**2 <= _MOST_NUMBERS else 1
    common = settings.common_share
    if common is None:
        common = _COMMON_SHARE if groups * levels > 1 else 0.0
    if common and groups * levels == 1:
        remedy = "leave it out, or set grouped or level_groups"
        raise SettingError("is shared by no groups: there is one", field="common_share", remedy=remedy)
    own = settings.own_tables
    if own is None:
        own = groups * levels > 1 and noise * groups * levels <= _MOST_NOISE_OF_GROUPS
    calm = settings.calm
    if calm is None:
        spread = noise_multiplier / math.sqrt(CALM_SHARE) / schema.public_units
        calm = schema.ends_at is None and schema.length >= _LEAST_STEPS and spread < _MOST_NOISE_OF_CALM / schema.length
    exact = settings.exact_tables
    if exact is None:  # with early ends, a step's table covers only some series, and the model's shares cover all
        exact = schema.ends_at is None and noise < _MOST_NOISE_OF_EXACT
    steepest = settings.steepest
    if steepest is None:
        steepest = settings.candidates != 1 and _tells_tail(schema, noise_multiplier)
    shared, gappy = settings.shared_gaps, gappy_channels(schema)
    if shared and gappy < 2:
        remedy = "leave it out, or declare that two channels may be missing"
        raise SettingError("needs two channels with gaps", field="shared_gaps", remedy=remedy)
    if shared is None:
        shared = gappy > 1 and _tells_a_step(schema, shared_gap_noise(schema, noise_multiplier))
    joint = settings.joint_attributes
    if joint is None:
        combinations = math.prod(groups_of(each) for each in schema.attributes.values())
        joint = len(schema.attributes) > 1 and shifting and combinations <= _MOST_COMBINATIONS
    return settings.model_copy(
        update={
            "joint_attributes": joint,
            "grouped": tuple(name for name in schema.attributes if name in grouped),
            "level_groups": levels,
            "common_share": common,
            "own_tables": own,
            "exact_tables": exact,
            "calm": calm,
            "steepest": steepest,
            "shared_gaps": shared,
            "cut_noise": float(f"{noise:.4g}"),
        }
    )


def _tells_tail(schema: SeriesSchema, noise_multiplier: float) -> bool:
    """Return whether a histogram of series tells, at two deviations of noise, that the model's last sixteenth is empty.

    That is the most that can be wrong with a tail cut there. Where noise hides even that, one more histogram would only
    add its noise to the others.
    """
    number = len(schema.channels) * len(NAMES) + sum(schema.may_have_gaps(name) for name in schema.channels)
    noise = noise_multiplier * math.sqrt(number / LOOK_SHARE) / schema.public_units
    tail = 1 / SIXTEENTHS
    bins = sum(level >= 1 - tail for level in QUANTILES)
    return 2 * noise * math.sqrt(bins) <= tail


def prior_spectrum(length: int, *, memory: float) -> Floats:
    """Return the cosine spectrum ``(length,)`` of an AR(1) process whose correlation time is a share of the length."""
    from scipy.fft import dct

    kept, steps = math.exp(-1 / (memory * length)), np.arange(length)
    waves = dct(np.eye(length), axis=0, norm="ortho")
    found: Floats = np.diag(waves @ kept ** np.abs(np.subtract.outer(steps, steps)) @ waves.T).copy()
    return found


def mean_noise(schema: SeriesSchema, settings: SeriesStatisticsSettings, noise_multiplier: float) -> float:
    """Return the noise of a channel's mean score over all steps of N series, as of one group: in its deviations.

    ``noise_multiplier`` is σ of the products' release.

    A series adds v vᵀ, where v holds a constant c, c again for its value of each attribute that shifts scores, and the
    cosines times r w / b: w = (s / s₀)^(-1/4) by the expected spectrum s, and b² = radius² · C Σ s w². Both halves of
    the sum are averaged, so that an entry has noise σ / √2. The first cosine has w = 1, and is √length times a series'
    mean. The mean then has noise σ b / (√2 c r √length N). Within a value that one of k series has, it is k times that.
    """
    spectrum = prior_spectrum(schema.length, memory=settings.memory)
    bound = settings.radius * math.sqrt(len(schema.channels) * float(np.sqrt(spectrum * spectrum[0]).sum()))
    shifting = sum(name not in (settings.grouped or ()) for name in schema.attributes)
    constant, rest = math.sqrt(CONSTANT_SHARE / (1 + shifting)), math.sqrt(1 - CONSTANT_SHARE)
    return noise_multiplier * bound / (constant * rest * math.sqrt(2 * schema.length) * schema.public_units)


def _means_within(schema: SeriesSchema, settings: SeriesStatisticsSettings, noise_multiplier: float) -> list[str]:
    """Return a plan's line on channels' means within a value of each attribute that is a list; none without one."""
    grouped, common = settings.grouped or (), settings.common_share or 0.0
    groups = math.prod(groups_of(schema.attributes[name]) for name in grouped) * (settings.level_groups or 1)
    noise = mean_noise(schema, settings, noise_multiplier) / math.sqrt(common + (1 - common) / groups)
    found = [
        f"{printable(name)} ±{noise * groups_of(each):.2g}"
        for name, each in schema.attributes.items()
        if name not in grouped and each.listed
    ]
    if not found:
        return []
    return [
        "Within a value a channel's mean is known to so many of its deviations, if values are equally frequent: "
        f"{', '.join(found)}"
    ]


def gappy_channels(schema: SeriesSchema) -> int:
    """Return the number of channels that may have gaps."""
    return sum(schema.may_have_gaps(name) for name in schema.channels)


def gap_noise(schema: SeriesSchema, noise_multiplier: float) -> float:
    """Return the noise of the share of steps at which a channel has no value.

    Of each pair of steps, that is half of the count with a gap at one, and all of that with one at both.
    """
    return noise_multiplier * math.sqrt(1.5 * gappy_channels(schema) / GAP_SHARE) / schema.public_units


def shared_gap_noise(schema: SeriesSchema, noise_multiplier: float) -> float:
    """Return the noise of the share of steps at which two channels have none, mean over pairs of channels.

    A series' shares of all pairs have length 1 at most: so has their mean, times the root of their number.
    """
    return noise_multiplier / math.sqrt(CALM_SHARE) / schema.public_units


def _tells_a_step(schema: SeriesSchema, noise: float) -> bool:
    """Return whether one missing step a series stands out, at two deviations of a share of steps.

    No schema says how many steps are missing. Fewer than one a series leave nothing to draw in most of them.
    """
    return 2 * noise * schema.length <= 1


def looks(settings: SeriesStatisticsSettings) -> str:
    """Return the purpose of the release that counts what series look like, by what it counts."""
    return STEEPEST_LOOKS if settings.steepest else LOOKS


def shares(schema: SeriesSchema, settings: SeriesStatisticsSettings) -> dict[str, float]:
    """Return each release's share of the budget, by its purpose, in order; they add up to 1."""
    found = {TABLES: TABLE_SHARE}
    if any(schema.may_have_gaps(name) for name in schema.channels):
        found[GAPS] = GAP_SHARE
    if settings.shared_gaps:
        found[SHARED_GAPS] = CALM_SHARE
    if settings.joint_attributes:
        found[ATTRIBUTES] = ATTRIBUTE_SHARE
    if settings.own_tables:
        found[OWN_TABLES] = OWN_TABLE_SHARE
    found[PRODUCTS] = 0.0
    if settings.calm:
        found[CALM] = CALM_SHARE
    if settings.candidates != 1:
        found[looks(settings)] = LOOK_SHARE
    found[PRODUCTS] = 1 - sum(found.values())
    return found


def accesses(schema: SeriesSchema, settings: SeriesStatisticsSettings, noise_multiplier: float) -> tuple[Access, ...]:
    """Return the releases; together they have the noise of one Gaussian mechanism of this multiplier.

    Raises:
        SettingError: The settings are of a version whose plans did not pay for gaps that are still to be bought.
    """
    missing = sum(schema.may_have_gaps(name) for name in schema.channels)
    if settings.noise_width != noise_numbers(schema, settings, missing=missing):
        message = "does not go with gaps that are still to be bought"
        raise SettingError(message, field="noise_width", remedy="leave it out, and make the plan again")
    found = []
    for purpose, share in shares(schema, settings).items():
        noise = max(1e-6, noise_multiplier / math.sqrt(share))
        if purpose in (GAPS, ATTRIBUTES):
            tables = gap_tables(schema) if purpose == GAPS else math.comb(len(schema.attributes), 2)
            records = schema.most_records
            event = DiscreteGaussianEvent(
                scale=max(0.01, noise * records * math.sqrt(tables)), tables=tables, records=records
            )
            found.append(Access(purpose=purpose, event=event))
        else:
            found.append(Access(purpose=purpose, event=GaussianEvent(noise_multiplier=noise), whole=True))
    return tuple(found)


def noise_numbers(schema: SeriesSchema, settings: SeriesStatisticsSettings, *, missing: int) -> int:
    """Return the numbers of noise of a series of which so many channels may have missing steps."""
    return copula_noise(len(schema.channels), schema.length, missing=missing, candidates=settings.candidates or 1)


def looked_at(parts: int, candidates: int) -> int:
    """Return the number of series of which candidates are drawn to learn which to keep."""
    return min(LOOKED_AT, max(_FEWEST_LOOKED_AT, VALUES_LOOKED_AT // (parts * candidates)))


def gap_tables(schema: SeriesSchema) -> int:
    """Return the number of tables of neighbouring steps, over all channels that may have gaps."""
    return (schema.length - 1) * sum(schema.may_have_gaps(name) for name in schema.channels)


def channels_counted(access: Access, length: int) -> int:
    """Return the number of channels whose pairs of neighbouring steps an access pays for."""
    if not isinstance(access.event, DiscreteGaussianEvent):
        raise TypeError("gaps are counted with discrete Gaussian noise")
    return access.event.tables // max(1, length - 1)


def tree_weights(leaves: int) -> Ints:
    """Return the weights ``(1 + depth,)`` of the root and the levels of a tree, coarse to fine, as whole numbers."""
    depth = max(1, math.ceil(math.log2(max(2, leaves))))
    levels = 2.0 ** (-_FALL * np.arange(depth))
    found: Ints = np.rint(WEIGHT * np.append(_ROOT_WEIGHT, levels)).astype(np.int64)
    return found


def work(schema: SeriesSchema, settings: SeriesStatisticsSettings) -> Work:
    """Return the cost of the releases and of the fit."""
    parts, records = len(schema.channels) * schema.length, schema.public_units * schema.unit.max_records
    sizes = [groups_of(one) for one in schema.attributes.values()]
    grouped = settings.grouped if settings.grouped is not None else tuple(schema.attributes)
    of = dict(zip(schema.attributes, sizes, strict=True))
    groups = math.prod(of[name] for name in grouped) * (settings.level_groups or 1)
    if settings.grouped is None:
        groups = max(1, min(groups, _MOST_NUMBERS // parts**2))
    width = 1 + sum(sizes) + parts
    tables = parts * (settings.bins * 2 + (groups * OWN_LEAVES if settings.own_tables else 0))
    noise = _FLOPS_A_NUMBER * (tables + groups * width**2)
    flops = (
        records * (2.0 * groups * width**2 + _FLOPS_A_VALUE * parts) + noise + _FLOPS_A_CUBE * (1 + groups) * width**3
    )
    if settings.candidates != 1:
        candidates = settings.candidates or CANDIDATES
        flops += _FLOPS_A_VALUE * looked_at(parts, candidates) * candidates * parts
    numbers = 3 * records * parts + 6 * groups * width**2 + 8 * groups * parts * settings.bins
    return Work(flops=flops, steps=len(shares(schema, settings)), memory_bytes=_BYTES * numbers)


def warnings(schema: SeriesSchema, settings: SeriesStatisticsSettings) -> tuple[str, ...]:
    """Return warnings if units are too few for realistic correlations of channels and steps, or for gaps."""
    noise = settings.cut_noise
    if noise is None:
        return ()
    found = []
    if noise > _MOST_NOISE_OF_CHANNELS:
        what = "channels and steps" if len(schema.channels) > 1 else "steps"
        values = len(schema.channels) * schema.length
        if noise > _HARDLY_AGREES:
            said = f"expect little more than averages, and {what} that hardly agree"
        else:
            said = f"expect {what} that agree less than real ones do"
        found.append(
            f"{schema.public_units} units are few for series of {values} values: the share of series above a value is "
            f"known to ±{noise:.2g}, so {said}; give more units or epsilon, or longer steps"
        )
    gaps = gap_noise(schema, _multiplier(schema, noise))
    if gappy_channels(schema) and not _tells_a_step(schema, gaps):
        found.append(
            f"noise hides gaps: {_hidden(schema, gaps)}, and the schema does not say how many there are; give more "
            "units or epsilon, or gaps: drop"
        )
    return tuple(found)


def _multiplier(schema: SeriesSchema, noise: float) -> float:
    """Return the noise multiplier of a plan from the noise of a cut, which it keeps."""
    return noise / cut_noise(schema, 1.0)


def _hidden(schema: SeriesSchema, noise: float) -> str:
    steps = schema.public_units * schema.unit.max_records * schema.length
    return (
        f"up to {min(steps, math.ceil(2 * noise * steps)):,} missing steps of a channel, of {steps:,}, are within two "
        "deviations of noise"
    )


def explain(schema: SeriesSchema, settings: SeriesStatisticsSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a plan's lines about its shares and groups."""
    parts = "; ".join(f"{purpose} {share:.0%}" for purpose, share in shares(schema, settings).items())
    lines = [f"Shares of the budget: {parts}"]
    if settings.cut_noise is not None:
        lines.append(f"At each step the share of series above a value is known to ±{settings.cut_noise:.2g}")
    groups = [*(settings.grouped or ()), *([f"{settings.level_groups} levels"] if settings.level_groups != 1 else [])]
    if groups:
        tables = "with tables of their own" if settings.own_tables else "with means and covariances of their own"
        lines.append(f"Groups: {' x '.join(groups)}, {tables}")
    for access in touches:
        if access.purpose == PRODUCTS and isinstance(access.event, GaussianEvent):
            lines += _means_within(schema, settings, access.event.noise_multiplier)
    if gappy_channels(schema) and settings.cut_noise is not None:
        lines.append(f"Gaps: {_hidden(schema, gap_noise(schema, _multiplier(schema, settings.cut_noise)))}")
    if gappy_channels(schema) > 1:
        lines.append(
            "Gaps of two channels stand together as often as a noisy mean says"
            if settings.shared_gaps
            else "Gaps fall independently by channel: of real ones, some may stand together"
        )
    return tuple(lines)
