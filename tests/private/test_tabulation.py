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
