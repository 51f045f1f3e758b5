"""Total variation of sets of columns, and the k-marginal score, against a count by hand."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from doublure.measures.tables import influence
from doublure.measures.tables import marginals as marginals_module
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.fidelity import Tables
from doublure.measures.tables.marginals import marginals, variations
from doublure.measures.tables.quantiles import JOINT_BINS, QuantileBins


def by_hand(left, right, places):
    one, other = (pd.DataFrame(codes[:, places]).value_counts(normalize=True) for codes in (left, right))
    return one.sub(other, fill_value=0).abs().sum() / 2


@pytest.fixture(scope="module")
def tables(schema, real, holdout, drawn, shuffle_columns):
    coder = Coder(schema=schema)
    named = {"train": real, "synthetic": drawn(700, 9), "baseline": shuffle_columns(real), "holdout": holdout}
    return coder, Tables(**{name: coder.read(frame, name) for name, frame in named.items()})


@pytest.mark.parametrize("cells", [1, 1 << 22])
def test_a_variation_is_that_of_all_cells(cells, monkeypatch):
    monkeypatch.setattr(influence, "_MOST_CELLS", cells)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, (500, 3)), rng.integers(0, 3, (300, 3))
    sets = [(0,), (1, 2), (0, 1, 2)]
    found = variations(left, {"value": right}, (4, 4, 4), sets)["value"]
    assert found == pytest.approx([by_hand(left, right, list(places)) for places in sets])


def test_the_k_marginal_score_is_nists(tables):
    coder, all_of = tables
    found = marginals(coder, all_of, np.random.default_rng(0))
    joint = QuantileBins.of(coder, all_of.train, JOINT_BINS)
    train, synthetic = joint.read(all_of.train), joint.read(all_of.synthetic)
    triples = list(combinations(range(len(coder.names)), 3))
    assert found.triples == len(triples)
    sums = [2 * by_hand(train, synthetic, list(places)) for places in triples]
    (score,) = (score for score in found.scores if score.key == "k_marginal")
    assert score.value == pytest.approx((2 - np.mean(sums)) * 500)
    assert score.goal == "high"


def test_equal_rows_are_at_no_distance(tables):
    coder, all_of = tables
    same = Tables(train=all_of.train, synthetic=all_of.train, baseline=all_of.baseline, holdout=all_of.holdout)
    found = marginals(coder, same, np.random.default_rng(0))
    assert [score.value for score in found.scores] == [0, 0, 1000]
    assert found.relations.association.value == 0
    assert found.relations.association.baseline > 0.8


def test_of_many_triples_a_sample_is_looked_at(tables, monkeypatch):
    monkeypatch.setattr(marginals_module, "MOST_TRIPLES", 7)
    coder, all_of = tables
    one, again = (marginals(coder, all_of, np.random.default_rng(3)) for _ in range(2))
    assert one.triples == 7
    assert one == again
