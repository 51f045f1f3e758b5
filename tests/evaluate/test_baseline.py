import numpy as np

from doublure.measures.tables.baseline import independent_columns
from doublure.measures.tables.coding import Coder


def test_columns_are_drawn_from_the_real_ones_and_know_nothing_of_one_another(schema, drawn):
    coder = Coder(schema=schema)
    train = coder.read(drawn(4000, 1), "t")
    found = independent_columns(train, 5000, np.random.default_rng(0))
    assert len(found) == 5000
    number, label = (coder.names.index(name) for name in ("number", "label"))
    for place in (number, label):
        assert set(found.codes[:, place]) <= set(train.codes[:, place])
        shares = [(table.codes[:, place] == train.codes[0, place]).mean() for table in (train, found)]
        assert abs(shares[0] - shares[1]) < 0.03
    assert np.corrcoef(train.codes[:, number], train.codes[:, label])[0, 1] > 0.5
    assert abs(np.corrcoef(found.codes[:, number], found.codes[:, label])[0, 1]) < 0.06


def test_a_cells_number_and_code_stay_together(schema, drawn):
    coder = Coder(schema=schema)
    train = coder.read(drawn(300, 1), "t")
    found = independent_columns(train, 200, np.random.default_rng(0))
    for name in train.numbers:
        place = coder.names.index(name)
        known = set(zip(train.codes[:, place].tolist(), map(str, train.numbers[name]), strict=True))
        assert set(zip(found.codes[:, place].tolist(), map(str, found.numbers[name]), strict=True)) <= known


def test_the_generator_decides_the_draw(schema, drawn):
    train = Coder(schema=schema).read(drawn(300, 1), "t")
    draws = [independent_columns(train, 50, np.random.default_rng(seed)).codes for seed in (0, 0, 1)]
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()
