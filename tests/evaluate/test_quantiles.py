"""Bins that follow the real rows show what lies inside a wide public bin."""

import numpy as np
import pandas as pd
import pytest

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.quantiles import QuantileBins, quantile_shares
from doublure.schema import Schema

FAR = "{doublure: 1, kind: table, units: 9, columns: {x: {type: integer, bounds: [-1000000, 1000000], missing: true}}}"


@pytest.fixture(scope="module")
def coder():
    return Coder(schema=Schema.parse(FAR).resolve({}))


def read(coder, values):
    return coder.read(pd.DataFrame({"x": pd.array(values, dtype="Int64")}), "t")


def test_real_rows_fill_the_bins_evenly(coder):
    train = read(coder, list(range(1000)))
    bins = QuantileBins.of(coder, train, 10)
    counts = bins.count(train).one[0]
    assert counts.tolist() == pytest.approx([100] * 10 + [0], abs=1)
    # Of the public bins they fill one, and the first value stands alone in another:
    assert len(np.unique(train.codes)) == 2


def test_a_value_that_many_share_has_a_bin_of_its_own(coder):
    train = read(coder, [0] * 300 + list(range(1, 700)) + [None])
    bins = QuantileBins.of(coder, train, 10)
    own = np.unique(bins.read(read(coder, [0])))
    assert bins.count(train).one[0][own].tolist() == [300]
    assert np.unique(bins.read(read(coder, [-1, -5]))).tolist() == [own[0] - 1]
    assert bins.read(read(coder, [None])).tolist() == [[bins.sizes[0] - 1]]


def test_what_is_drawn_adds_up_and_shows_what_is_hidden(coder):
    train, synthetic = read(coder, [0] * 300 + list(range(1, 701))), read(coder, list(range(-300, 701))[:1000])
    bins = QuantileBins.of(coder, train, 10)
    (found,) = quantile_shares(bins, bins.count(train), bins.count(synthetic))
    assert sum(found.real) == pytest.approx(1)
    assert sum(found.synthetic) == pytest.approx(1)
    below, zero = found.bins[:2]
    assert (below[0], zero) == (None, (0.0, 0.0))
    assert found.real[:2] == (0.0, 0.3)
    assert found.synthetic[:2] == (0.3, 0.001)
    assert found.variation == pytest.approx(0.3, abs=0.01)
    gaps = np.abs(np.subtract(found.real, found.synthetic)).sum() / 2
    assert found.variation == pytest.approx(gaps)


def test_a_column_without_a_number_has_no_cuts(coder):
    bins = QuantileBins.of(coder, read(coder, [None, None]), 10)
    assert bins.sizes == (2,)
    assert bins.read(read(coder, [None, 5])).tolist() == [[1], [0]]
