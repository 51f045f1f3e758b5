"""Private tables: what is counted is exact, what comes out is noised, and what was not planned is not counted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import plant
from scipy import stats

from doublure.access import Access
from doublure.errors import LedgerError, NotAsPriced, SettingError
from doublure.private import whole_noise
from doublure.private.accounting import DiscreteGaussianEvent, event_from_json
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import counts as module
from doublure.private.queries.counts import Axis, Counts
from doublure.private.records import PrivateRecords

ALPHA = 1e-6
SIZES = (5, 3, 40)


def codes(rows=700, seed=0):
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.integers(0, size, rows) for size in SIZES])


def records(values, unit=None, n_units=None):
    unit = np.arange(len(values)) if unit is None else np.asarray(unit)
    compact = np.asarray(values, dtype=np.float32).reshape(len(values), np.shape(values)[1])
    n_units = n_units or (int(unit.max()) + 1 if len(unit) else 0)
    return PrivateRecords(compact, unit.astype(np.int64), n_units, lambda rows: (rows, None))


class Tables:
    """Tables of some records, release by release, each an access of its own."""

    def __init__(self, kept, events, *, most, **named):
        self.accesses = [Access(purpose=f"release {place}", event=event) for place, event in enumerate(events)]
        self.mechanism = Mechanism(self.accesses, noise=OsKeyedNoise(), **named)
        self.kept = kept
        self.most = most

    @property
    def taken(self):
        return sum(self.mechanism.taken(access) for access in self.accesses)

    @property
    def spent(self):
        return [access.event for access in self.accesses if self.mechanism.taken(access)]

    @property
    def ran(self):
        events = [entry["event"] for entry in self.mechanism.executed.to_json()]
        return [event_from_json(event) for event in events if event is not None]

    def release(self, tables):
        query = Counts(tables=tables, max_records=self.most)
        access = self.accesses[min(self.taken, len(self.accesses) - 1)]
        return query.split(self.mechanism.release(query, access, self.kept))


def tables_of(kept, *events, most=None, authorise=lambda access, step: None, taken=0):
    most = events[0].records if most is None else most
    return Tables(kept, events, most=most, authorise=authorise, taken=taken)


def planned(tables=10, scale=4.0, most=1):
    return DiscreteGaussianEvent(scale=scale, tables=tables, records=most)


def whole(part):
    return Axis.of_codes(part, SIZES[part])


@pytest.fixture
def exact(monkeypatch):
    """Patch the noise to nothing; what is asked of it is kept."""
    return silenced(monkeypatch)


def silenced(patch):
    asked = []
    patch.setattr(
        whole_noise,
        "gaussian",
        lambda counts, *, scale: (asked.append((counts.shape, scale)), ScaledNoise(counts, scale))[1],
    )
    return asked


# -- counting ----------------------------------------------------------------------------------------------------------


def test_counts_are_those_of_a_crosstab(exact):
    frame = pd.DataFrame(codes(), columns=list("abc")).astype("category")
    single, pair, triple = tables_of(records(codes()), planned()).release(
        [(whole(2),), (whole(0), whole(1)), (whole(1), whole(2), whole(0))]
    )
    assert (single == frame["c"].value_counts(sort=False).to_numpy()).all()
    assert (pair == pd.crosstab(frame["a"], frame["b"], dropna=False).to_numpy()).all()
    expected = frame.groupby(["b", "c", "a"], observed=False).size().to_numpy().reshape(3, 40, 5)
    assert (triple == expected).all()
    assert exact == [((40 + 5 * 3 + 3 * 40 * 5,), 4.0)]


@given(rows=st.integers(0, 60), chunk=st.integers(1, 70), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_chunks_change_nothing(rows, chunk, seed):
    values = codes(rows, seed)
    wanted = [(whole(0), whole(1)), (whole(2),)]
    with pytest.MonkeyPatch.context() as patch:
        silenced(patch)
        patch.setattr(module, "_CHUNK_ROWS", chunk)
        pair, single = tables_of(records(values), planned()).release(wanted)
    assert (pair == np.histogram2d(values[:, 0], values[:, 1], bins=[np.arange(6), np.arange(4)])[0]).all()
    assert (single == np.bincount(values[:, 2], minlength=40)).all()


def test_an_empty_data_set_is_noise_alone(exact):
    kept = records(np.empty((0, 3)))
    (found,) = tables_of(kept, planned()).release([(whole(0), whole(1))])
    assert found.shape == (5, 3)
    assert not found.any()
    assert exact == [((15,), 4.0)]


def test_an_axis_joins_codes(exact):
    values = codes()
    odd = Axis(part=2, cells=np.arange(40) % 2, size=2)
    (found,) = tables_of(records(values), planned()).release([(odd, whole(0))])
    for cell in range(2):
        own = values[values[:, 2] % 2 == cell]
        assert (found[cell] == np.bincount(own[:, 0], minlength=5)).all()
    (reserved,) = tables_of(records(values), planned()).release([(Axis(part=1, cells=np.array([3, 0, 0]), size=4),)])
    assert (reserved == [np.isin(values[:, 1], [1, 2]).sum(), 0, 0, (values[:, 1] == 0).sum()]).all()


def test_an_axis_may_have_one_cell(exact):
    (found,) = tables_of(records(np.zeros((7, 1))), planned()).release([(Axis.of_codes(0, 1),)])
    assert found.tolist() == [7]


def test_a_lot_is_no_place_for_counts_of_everybody():
    with pytest.raises(SettingError) as refused:
        Counts(tables=[(whole(0),)], max_records=1).answer(records(codes()), sample_rate=0.5)
    assert refused.value.field == "sample_rate"


def test_every_record_of_a_unit_counts(exact):
    (found,) = tables_of(records([[0], [2], [2], [1]], unit=[0, 1, 1, 0]), planned(most=2)).release(
        [(Axis.of_codes(0, 3),)]
    )
    assert found.tolist() == [1, 1, 2]


# -- what was planned --------------------------------------------------------------------------------------------------


class Watched:
    """Records that say when they are counted, and an authorisation that says when it is asked for."""

    def __init__(self, monkeypatch):
        self.acts = []
        chunks, noisy = PrivateRecords.chunks, whole_noise.gaussian

        def opened(kept, rows):
            self.acts.append("count")
            return chunks(kept, rows)

        def drawn(counts, *, scale):
            self.acts.append("noise")
            return noisy(counts, scale=scale)

        monkeypatch.setattr(PrivateRecords, "chunks", opened)
        monkeypatch.setattr(whole_noise, "gaussian", drawn)

    def authorise(self, access, step):
        self.acts.append(step)


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


def test_a_release_is_paid_for_once_it_is_counted_and_before_it_is_drawn(watched):
    made = tables_of(records(codes()), planned(tables=2), planned(scale=9.0), authorise=watched.authorise)
    assert made.spent == made.ran == []
    made.release([(whole(0),), (whole(1),)])
    assert watched.acts == ["count", 1, "noise"]
    assert made.spent == made.ran == [planned(tables=2)]
    made.release([(whole(0),)])
    assert watched.acts[3:] == ["count", 2, "noise"]
    assert made.spent == [planned(tables=2), planned(scale=9.0)]
    assert made.ran == [planned(tables=2), planned(tables=1, scale=9.0)]  # fewer, as they were


def test_more_than_was_planned_is_refused_before_anything_is_asked_or_counted(watched):
    two = records(codes(4), unit=[0, 1, 1, 1])
    asked = {"authorise": watched.authorise}
    cases = [
        (tables_of(records(codes()), planned(tables=1), **asked), 2, "release 0"),
        (tables_of(records(codes()), planned(tables=9), most=2, **asked), 3, "release 0"),
        (tables_of(records(codes()), planned(), taken=1, **asked), 1, "steps"),
        (tables_of(records(codes()), planned(), planned(), taken=2, **asked), 1, "steps"),
        (tables_of(two, planned(most=2), **asked), 1, "max_records"),
        (tables_of(two, planned(most=3), most=2, **asked), 1, "max_records"),
    ]
    for made, size, field in cases:
        before = made.spent
        with pytest.raises(SettingError) as refused:
            made.release([(whole(0),)] * size)
        assert refused.value.field == field
        assert made.spent == before
    assert watched.acts == []
    tables_of(two, planned(most=3), **asked).release([(whole(0),)] * 10)
    assert watched.acts[:2] == ["count", 1]


def test_tables_for_other_units_than_planned_end_the_run(watched):
    """They move no further, so that they are counted; but they are another event than the one that was paid for."""
    made = tables_of(records(codes()), planned(tables=9), most=3, authorise=watched.authorise)
    with pytest.raises(NotAsPriced, match="tables=1, records=3"):
        made.release([(whole(0),)])
    assert (made.spent, made.ran) == ([planned(tables=9)], [])


ODD_AXES = {
    "a cell below": (Axis(part=0, cells=np.array([0, -1, 1, 2, 3]), size=4), "cells"),
    "a cell beyond": (Axis(part=0, cells=np.array([0, 1, 2, 3, 4]), size=4), "cells"),
    "no cell": (Axis(part=0, cells=np.empty(0, dtype=np.int64), size=4), "cells"),
    "cells in rows": (Axis(part=0, cells=np.zeros((5, 1), dtype=np.int64), size=4), "cells"),
    "cells between": (Axis(part=0, cells=np.array([0.0, 1.5, 2, 3, 1]), size=4), "cells"),
    "a part below": (Axis.of_codes(-1, 5), "part"),
    "a part beyond": (Axis.of_codes(3, 5), "part"),
}


@pytest.mark.parametrize("odd", ODD_AXES)
@pytest.mark.parametrize("beside", [0, 1])
def test_an_axis_that_cannot_be_counted_is_refused_before_anything_is_paid(watched, odd, beside):
    """A cell that does not exist would count a record elsewhere, or fail after the charge; so would an odd part."""
    axis, field = ODD_AXES[odd]
    made = tables_of(records(codes()), planned(), authorise=watched.authorise)
    with pytest.raises(SettingError) as refused:
        made.release([(whole(2),), (*[whole(1)] * beside, axis)])
    assert refused.value.field == field
    for none in ([(whole(2),), ()], []):
        with pytest.raises(SettingError) as refused:
            made.release(none)
        assert refused.value.field == "tables"
    assert watched.acts == []
    assert made.spent == []


def test_what_is_not_paid_for_is_not_drawn(watched):
    def refuses(access, step):
        raise LedgerError("the disk is full")

    made = tables_of(records(codes()), planned(), authorise=refuses)
    with pytest.raises(LedgerError):
        made.release([(whole(0),)])
    assert watched.acts == ["count"]
    assert made.spent == made.ran == []


def test_releases_of_an_earlier_session_are_not_made_again(watched):
    made = tables_of(records(codes()), planned(), planned(scale=9.0), authorise=watched.authorise, taken=1)
    assert made.spent == [planned()]
    made.release([(whole(0),)])
    assert watched.acts[:2] == ["count", 2]
    assert len(made.spent) == 2


# -- neighbours --------------------------------------------------------------------------------------------------------


def counted(units, wanted, chunk, most):
    """Return the exact tables of some units' records, what their noise was asked for, and what could be seen to run."""
    rows = [row for unit in units for row in unit]
    owner = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    kept = records(np.array(rows, dtype=np.int64).reshape(-1, len(SIZES)), unit=owner, n_units=len(units))
    with pytest.MonkeyPatch.context() as patch:
        asked = silenced(patch)
        patch.setattr(module, "_CHUNK_ROWS", chunk)
        made = tables_of(kept, planned(tables=len(wanted), most=most))
        found = made.release(wanted)
        return found, asked, (made.spent, made.mechanism.executed.to_json())


def require_neighbours(units, place, wanted, chunk, most):
    """Require that one unit moves each table by at most m, all together by m √tables, and nothing else to be seen."""
    one, seen, events = counted(units, wanted, chunk, most)
    other, also_seen, also_events = counted(units[:place] + units[place + 1 :], wanted, chunk, most)
    assert (seen, events) == (also_seen, also_events)
    assert [scale for _, scale in seen] == [planned().scale]
    apart = [np.linalg.norm(mine - theirs) for mine, theirs in zip(one, other, strict=True)]
    assert all(mine.shape == theirs.shape for mine, theirs in zip(one, other, strict=True))
    assert max(apart) <= most
    assert math.hypot(*apart) <= most * math.sqrt(len(wanted))
    stated = Counts(tables=wanted, max_records=most).sensitivity
    assert (stated.l1, stated.l2) == (most * len(wanted), pytest.approx(most * math.sqrt(len(wanted)), rel=1e-12))
    own = len(units[place])
    assert all((mine - theirs).sum() == own and (mine >= theirs).all() for mine, theirs in zip(one, other, strict=True))


@st.composite
def axes(draw):
    part = draw(st.integers(0, len(SIZES) - 1))
    size = draw(st.integers(1, 6))
    cells = draw(st.lists(st.integers(0, size - 1), min_size=SIZES[part], max_size=SIZES[part]))
    return Axis(part=part, cells=np.array(cells), size=size)


RECORDS = st.tuples(*(st.integers(0, size - 1) for size in SIZES))


@given(
    units=st.lists(st.lists(RECORDS, max_size=3), min_size=1, max_size=8),
    which=st.integers(0, 7),
    wanted=st.lists(st.lists(axes(), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4),
    chunk=st.integers(1, 30),
)
@settings(max_examples=80, deadline=None)
def test_neighbours_differ_by_one_unit(units, which, wanted, chunk):
    require_neighbours(units, which % len(units), wanted, chunk, most=3)


COUNTED = "np.bincount(places(table, cells), minlength=len(found[key]))"
TOTAL = "total=np.concatenate(counts)"
DRAWN = "whole_noise.gaussian(total, scale=event.scale)"
MUTANTS = {
    "a share": (Counts, "answer", (TOTAL, "total=np.concatenate([100 * own // max(1, own.sum()) for own in counts])")),
    "counted twice": (Counts, "answer", (COUNTED, f"2 * {COUNTED}")),
    "noise by the rows": (
        Mechanism, "_noised", (DRAWN, "whole_noise.gaussian(total, scale=event.scale * total.sum())"),
    ),
    "a record too many": (Counts, "refuse_unfit", ("require_records(records.most_records, self.max_records)", "pass")),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_release_that_one_unit_moves_too_far_is_caught(monkeypatch, mutant):
    units, wanted = [[(1, 2, 3)] * 3, [(0, 0, 0)], [(4, 1, 39)]], [(whole(0), whole(1)), (whole(2),)]
    most = 2 if mutant == "a record too many" else 3
    if most == 3:
        require_neighbours(units, 0, wanted, 2, most)
    owner, name, edit = MUTANTS[mutant]
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, NotAsPriced)):
        require_neighbours(units, 0, wanted, 2, most)


# -- noise -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.7, 12.0])
def test_the_noise_is_of_the_planned_scale(scale):
    """30,000 cells: the standard deviation is right to 2 %, rejecting what is right once in a million."""
    size = 30_000
    kept = records(np.zeros((3, 1)))
    (found,) = tables_of(kept, planned(scale=scale)).release([(Axis.of_codes(0, size),)])
    noise = found - 3.0 * (np.arange(size) == 0)
    support = np.arange(-200, 201)
    mass = np.exp(-((support / scale) ** 2) / 2)
    variance = (mass * support**2).sum() / mass.sum()
    share = (noise**2).sum() / variance
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], size)
    assert low / size > 0.98**2
    assert low < share < high
    assert abs(noise.mean()) < stats.norm.isf(ALPHA / 2) * math.sqrt(variance / size)


def test_noise_never_comes_twice():
    made = tables_of(records(codes()), *[planned(scale=1000.0)] * 3)
    wanted = [(whole(2),), (whole(2),)]
    drawn = [table.tobytes() for _ in range(3) for table in made.release(wanted)]
    again = tables_of(records(codes()), planned(scale=1000.0)).release(wanted)
    assert len({*drawn, *(table.tobytes() for table in again)}) == 8


def test_counts_are_whole_numbers_and_may_be_negative():
    (found,) = tables_of(records(codes(0)), planned(scale=50.0)).release([(whole(2), whole(1))])
    assert found.dtype == np.int64
    assert (found < 0).any()
    assert (found > 0).any()
