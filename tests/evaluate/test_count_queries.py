"""Random counts: equal rows answer alike, and an error is what counting by hand gives."""

import numpy as np
import pytest

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.count_queries import QUERIES, count_queries
from doublure.measures.tables.fidelity import Tables


@pytest.fixture(scope="module")
def coded(schema, real, holdout, drawn, shuffle_columns):
    coder = Coder(schema=schema)
    named = {"train": real, "synthetic": drawn(700, 9), "baseline": shuffle_columns(real), "holdout": holdout}
    return coder, {name: coder.read(frame, name) for name, frame in named.items()}


def test_equal_rows_answer_alike_and_others_do_not(coded):
    coder, named = coded
    found = count_queries(coder, Tables(**(named | {"synthetic": named["train"]})), np.random.default_rng(0))
    assert found.asked == QUERIES
    assert [score.value for score in found.scores] == [0, 0]
    assert all(score.baseline > 0 and score.real > 0 for score in found.scores)


def test_rows_without_what_was_asked_for_are_off_by_all_of_it(coded):
    """A table of one row repeated: each count is 0 or all rows, and every error is known."""
    coder, named = coded
    one = named["train"].take(np.zeros(50, dtype=np.int64))
    found = count_queries(coder, Tables(**(named | {"synthetic": one})), np.random.default_rng(0))
    absolute, relative = found.scores
    assert absolute.value > 3 * absolute.real
    assert relative.value == 1  # most queries miss the row, and then the whole count is missing


def test_the_same_queries_are_asked_of_whatever_table(coded):
    coder, named = coded
    found = [
        count_queries(coder, Tables(**(named | {"synthetic": named[name]})), np.random.default_rng(5))
        for name in ("synthetic", "holdout")
    ]
    for one, other in zip(*(each.scores for each in found), strict=True):
        assert (one.baseline, one.real) == (other.baseline, other.real)
    assert [score.value for score in found[1].scores] == [score.real for score in found[1].scores]
