import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, wasserstein_distance

from doublure.measures.tables import fidelity
from doublure.measures.tables.baseline import independent_columns
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.counts import count
from doublure.measures.tables.fidelity import Tables, compare, cramers_v, variation, wasserstein
from doublure.schema import Schema


def compared(schema, synthetic, train, holdout):
    coder = Coder(schema=schema)
    rng = np.random.default_rng(0)
    read = {name: coder.read(frame, name) for name, frame in (("s", synthetic), ("t", train), ("h", holdout))}
    tables = Tables(
        train=read["t"],
        synthetic=read["s"],
        baseline=independent_columns(read["t"], len(synthetic), rng),
        holdout=read["h"],
    )
    return compare(coder, tables, rng)[0]


def by_key(found):
    return {score.key: score for score in found.scores}


@pytest.mark.parametrize("sizes", [(50, 50), (30, 77), (1, 5)])
def test_wasserstein_agrees_with_scipy(sizes):
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=sizes[0]).round(1), rng.exponential(size=sizes[1]).round(1)
    assert wasserstein(left, right) == pytest.approx(wasserstein_distance(left, right))


def test_wasserstein_of_nothing_is_unknown():
    assert wasserstein(np.array([]), np.array([1.0])) is None


def test_cramers_v_agrees_with_the_chi_square_of_scipy():
    rng = np.random.default_rng(5)
    left = rng.integers(0, 4, 400)
    right = np.where(rng.random(400) < 0.5, left, rng.integers(0, 4, 400))
    counts = count(np.stack([left, right], axis=1).astype(np.int32), (5, 6), [(0, 1)])
    table = np.zeros((4, 4))
    np.add.at(table, (left, right), 1)
    chi2 = chi2_contingency(table, correction=False).statistic
    n, size = 400, 4
    phi2 = max(0, chi2 / n - (size - 1) ** 2 / (n - 1))
    least = size - (size - 1) ** 2 / (n - 1) - 1
    expected = np.sqrt(phi2 / least)
    assert cramers_v(counts.two[0, 1], counts.shares(0), counts.shares(1), n) == pytest.approx(expected)


def test_cramers_v_is_unbiased_for_independent_columns():
    rng = np.random.default_rng(6)
    found = []
    for _ in range(30):
        counts = count(rng.integers(0, 20, (300, 2)).astype(np.int32), (20, 20), [(0, 1)])
        found.append(cramers_v(counts.two[0, 1], counts.shares(0), counts.shares(1), 300))
    # Uncorrected it would be about 0.25.
    assert np.mean(found) < 0.06


def test_cramers_v_of_a_constant_column_is_zero():
    counts = count(np.array([[0, 0], [0, 1]], dtype=np.int32), (2, 2), [(0, 1)])
    assert cramers_v(counts.two[0, 1], counts.shares(0), counts.shares(1), 2) == 0


def test_variation_is_half_the_absolute_difference():
    assert variation(np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.3, 0.5])) == pytest.approx(0.5)


def test_the_real_rows_themselves_are_at_distance_zero(schema, real, holdout):
    found = compared(schema, real, real, holdout)
    assert all(score.value == pytest.approx(0, abs=1e-12) for score in found.scores)
    assert all(score.real > 0 for score in found.scores)
    assert found.association.real == found.association.synthetic


def test_independent_columns_lose_associations_and_keep_columns(schema, drawn, shuffle_columns):
    train = drawn(4000, 7)
    scores = by_key(compared(schema, shuffle_columns(train), train, drawn(4000, 8)))
    assert scores["columns"].value == pytest.approx(0, abs=1e-12)
    assert scores["association"].value > 2 * scores["association"].real
    assert scores["association"].value == pytest.approx(scores["association"].baseline, rel=0.2)


def test_pair_distance_of_independent_columns_is_what_the_relation_is_worth():
    schema = Schema.parse(
        """{doublure: 1, kind: table, units: 9, columns: {a: {type: boolean, missing: false},
        b: {type: boolean, missing: false}}}"""
    ).resolve({})
    train = pd.DataFrame({"a": [True, False] * 500, "b": [True, False] * 500})
    apart = pd.DataFrame({"a": [True, True, False, False] * 250, "b": [True, False] * 500})
    scores = by_key(compared(schema, apart, train, train))
    assert scores["pairs"].value == pytest.approx(0.5)
    assert scores["pairs"].baseline == pytest.approx(0.5, abs=0.05)
    assert scores["association"].value == pytest.approx(1, abs=0.01)
    assert scores["pairs"].way == pytest.approx(0, abs=0.1)


def test_a_shifted_column_is_found_and_measured(schema, real, holdout):
    shifted = real.assign(number=np.minimum(real["number"] + 10, 99), size="S")
    found = compared(schema, shifted, real, holdout)
    columns = {column.name: column for column in found.columns}
    moved = np.mean(np.minimum(real["number"] + 10, 99) - real["number"]) / 99
    assert columns["number"].wasserstein.value == pytest.approx(moved)
    assert columns["size"].variation.value == pytest.approx(1 - (real["size"] == "S").mean())
    assert found.columns[0].name == "size"
    assert columns["gain"].variation.value == pytest.approx(0, abs=1e-12)
    assert "size" in found.pairs[0].names or "number" in found.pairs[0].names
    assert columns["size"].wasserstein is None


def test_pairs_agree_with_a_cross_table(schema, real, holdout):
    found = compared(schema, holdout, real, holdout)
    pair = next(pair for pair in found.pairs if "gain" in pair.names)
    coder = Coder(schema=schema)
    places = [coder.names.index(name) for name in pair.names]

    def table(frame):
        codes = coder.read(frame, "t").codes[:, places]
        cells = np.zeros([coder.sizes[place] for place in places])
        np.add.at(cells, tuple(codes.T), 1)
        return cells / len(frame)

    assert pair.variation.value == pytest.approx(np.abs(table(holdout) - table(real)).sum() / 2)
    assert pair.variation.value == pair.variation.real


def test_of_many_columns_the_pairs_are_sampled(schema, real, holdout, monkeypatch):
    monkeypatch.setattr(fidelity, "MOST_PAIRED", 4)
    found = compared(schema, real, real, holdout)
    assert found.n_pairs == 6
    assert found.sampled_columns == 4
    assert len(found.association.columns) == 4
    assert len(found.columns) == 9
