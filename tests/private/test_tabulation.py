"""Private tables: what is counted is exact, what comes out is noised, and what was not planned is not counted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from doublure.errors import LedgerError, SettingError
from doublure.private import statistics, tabulation
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.records import PrivateRecords
from doublure.private.tabulation import Axis, PrivateTables

ALPHA = 1e-6
SIZES = (5, 3, 40)


def codes(rows=700, seed=0):
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.integers(0, size, rows) for size in SIZES])


def records(values, unit=None, n_units=None):
    unit = np.arange(len(values)) if unit is None else np.asarray(unit)
    compact = torch.from_numpy(np.asarray(values, dtype=np.float32).reshape(len(values), np.shape(values)[1]))
    n_units = n_units or (int(unit.max()) + 1 if len(unit) else 0)
    return PrivateRecords(compact, unit.astype(np.int64), n_units, lambda rows: (rows, None))


def tables_of(kept, *events, authorise=lambda release: None, taken=0):
    return PrivateTables(kept, events, authorise=authorise, taken=taken)


def planned(tables=10, scale=4.0, most=1):
    return DiscreteGaussianEvent(scale=scale, tables=tables, records=most)


def whole(part):
    return Axis.of_codes(part, SIZES[part])


@pytest.fixture
def exact(monkeypatch):
    """Patch the noise to nothing; what is asked of it is kept."""
    asked = []
    monkeypatch.setattr(
        statistics, "noisy_histogram", lambda counts, sigma: (asked.append((counts.shape, sigma)), counts)[1]
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
    assert [shape for shape, _ in exact] == [(40,), (5, 3), (3, 40, 5)]


@given(rows=st.integers(0, 60), chunk=st.integers(1, 70), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_chunks_change_nothing(rows, chunk, seed):
    values = codes(rows, seed)
    wanted = [(whole(0), whole(1)), (whole(2),)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "noisy_histogram", lambda counts, sigma: counts)
        patch.setattr(tabulation, "_CHUNK_ROWS", chunk)
        pair, single = tables_of(records(values), planned()).release(wanted)
    assert (pair == np.histogram2d(values[:, 0], values[:, 1], bins=[np.arange(6), np.arange(4)])[0]).all()
    assert (single == np.bincount(values[:, 2], minlength=40)).all()


def test_an_empty_data_set_is_noise_alone(exact):
    kept = records(np.empty((0, 3)))
    (found,) = tables_of(kept, planned()).release([(whole(0), whole(1))])
    assert found.shape == (5, 3)
    assert not found.any()
    assert exact == [((5, 3), 4.0)]


def test_an_axis_joins_codes(exact):
    values = codes()
    odd = Axis(part=2, cells=np.arange(40) % 2, size=2)
    (found,) = tables_of(records(values), planned()).release([(odd, whole(0))])
    for cell in range(2):
        own = values[values[:, 2] % 2 == cell]
        assert (found[cell] == np.bincount(own[:, 0], minlength=5)).all()
    (reserved,) = tables_of(records(values), planned()).release([(Axis(part=1, cells=np.array([3, 0, 0]), size=4),)])
    assert (reserved == [np.isin(values[:, 1], [1, 2]).sum(), 0, 0, (values[:, 1] == 0).sum()]).all()


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
        chunks, noisy = PrivateRecords.chunks, statistics.noisy_histogram

        def opened(kept, rows):
            self.acts.append("count")
            return chunks(kept, rows)

        def drawn(counts, *, sigma):
            self.acts.append("noise")
            return noisy(counts, sigma=sigma)

        monkeypatch.setattr(PrivateRecords, "chunks", opened)
        monkeypatch.setattr(statistics, "noisy_histogram", drawn)

    def authorise(self, release):
        self.acts.append(release)


@pytest.fixture
def watched(monkeypatch):
    return Watched(monkeypatch)


def test_a_release_is_paid_for_before_it_is_counted(watched):
    made = tables_of(records(codes()), planned(), planned(scale=9.0), authorise=watched.authorise)
    assert made.events == ()
    made.release([(whole(0),), (whole(1),)])
    assert watched.acts == [1, "count", "noise", "noise"]
    assert made.events == (planned(),)
    made.release([(whole(0),)])
    assert watched.acts[4:] == [2, "count", "noise"]
    assert made.events == (planned(), planned(scale=9.0))


def test_more_than_was_planned_is_refused_before_anything_is_asked_or_counted(watched):
    two = records(codes(4), unit=[0, 1, 1, 1])
    cases = [
        (tables_of(records(codes()), planned(tables=1), authorise=watched.authorise), 2, "tables"),
        (tables_of(records(codes()), authorise=watched.authorise), 1, "releases"),
        (tables_of(records(codes()), planned(), planned(), authorise=watched.authorise, taken=2), 1, "releases"),
        (tables_of(two, planned(most=2), authorise=watched.authorise), 1, "max_records"),
    ]
    for made, size, field in cases:
        before = made.events
        with pytest.raises(SettingError) as refused:
            made.release([(whole(0),)] * size)
        assert refused.value.field == field
        assert made.events == before
    assert watched.acts == []
    tables_of(two, planned(most=3), authorise=watched.authorise).release([(whole(0),)] * 10)
    assert watched.acts[:2] == [1, "count"]


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
    with pytest.raises(SettingError) as refused:
        made.release([(whole(2),), ()])
    assert refused.value.field == "tables"
    assert watched.acts == []
    assert made.events == ()


def test_what_is_not_paid_for_is_not_counted(watched):
    def refuses(release):
        raise LedgerError("the disk is full")

    made = tables_of(records(codes()), planned(), authorise=refuses)
    with pytest.raises(LedgerError):
        made.release([(whole(0),)])
    assert watched.acts == []
    assert made.events == ()


def test_releases_of_an_earlier_session_are_not_made_again(watched):
    made = tables_of(records(codes()), planned(), planned(scale=9.0), authorise=watched.authorise, taken=1)
    assert made.events == (planned(),)
    made.release([(whole(0),)])
    assert watched.acts[0] == 2
    assert len(made.events) == 2


# -- neighbours --------------------------------------------------------------------------------------------------------


def counted(units, wanted, chunk, most):
    """Return the exact tables of some units' records, and what their noise was asked for."""
    asked = []
    rows = [row for unit in units for row in unit]
    owner = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
    kept = records(np.array(rows, dtype=np.int64).reshape(-1, len(SIZES)), unit=owner, n_units=len(units))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "noisy_histogram", lambda counts, sigma: (asked.append(sigma), counts)[1])
        patch.setattr(tabulation, "_CHUNK_ROWS", chunk)
        made = tables_of(kept, planned(tables=len(wanted), most=most))
        return made.release(wanted), asked, made.events


def require_neighbours(units, place, wanted, chunk, most):
    """Require that one unit moves each table by at most m, all together by m √tables, and nothing else to be seen."""
    one, seen, events = counted(units, wanted, chunk, most)
    other, also_seen, also_events = counted(units[:place] + units[place + 1 :], wanted, chunk, most)
    assert (seen, events) == (also_seen, also_events)
    apart = [np.linalg.norm(mine - theirs) for mine, theirs in zip(one, other, strict=True)]
    assert all(mine.shape == theirs.shape for mine, theirs in zip(one, other, strict=True))
    assert max(apart) <= most
    assert math.hypot(*apart) <= most * math.sqrt(len(wanted))
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


@pytest.mark.parametrize("mutant", ["a share", "counted twice", "noise by the rows", "a record too many"])
def test_a_release_that_one_unit_moves_too_far_is_caught(monkeypatch, mutant):
    units, wanted = [[(1, 2, 3)] * 3, [(0, 0, 0)], [(4, 1, 39)]], [(whole(0), whole(1)), (whole(2),)]
    exactly = PrivateTables._counted
    most = 3
    if mutant == "a share":
        monkeypatch.setattr(
            PrivateTables, "_counted", lambda self, tables: [100 * c // max(1, c.sum()) for c in exactly(self, tables)]
        )
    elif mutant == "counted twice":
        monkeypatch.setattr(PrivateTables, "_counted", lambda self, tables: [2 * c for c in exactly(self, tables)])
    elif mutant == "noise by the rows":
        release = PrivateTables.release

        def informed(self, tables):
            noisy = statistics.noisy_histogram
            rows = sum(len(chunk) for chunk in self._records.chunks(100))
            monkeypatch.setattr(
                tabulation,
                "statistics",
                type("", (), {"noisy_histogram": lambda c, sigma: noisy(c, sigma=sigma * rows)}),
            )
            return release(self, tables)

        monkeypatch.setattr(PrivateTables, "release", informed)
    else:
        monkeypatch.setattr(PrivateRecords, "most_records", 0)
        most = 2
    with pytest.raises(AssertionError):
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
