"""Sampling: exactly n rows, what was asked for, the same again with a seed, a chunk at a time."""

from __future__ import annotations

import copy
import datetime
import itertools

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.run import drawing, synthesizer
from doublure.schema.columns import label
from doublure.schema.kinds import KINDS


@pytest.fixture(scope="module")
def syn(small):
    return db.load(small.run)


@pytest.mark.parametrize("n", [0, 1, 7, 1000, np.int64(5)])
def test_exactly_as_many_as_asked(syn, small, n):
    rows = syn.sample(n)
    assert len(rows) == n
    assert list(rows.columns) == list(small.declared.columns)
    assert rows.index.equals(pd.RangeIndex(n))


def test_rows_keep_the_schema(syn):
    rows = syn.sample(2000, seed=2)
    assert rows["age"].between(17, 90).all()
    assert rows["age"].dtype.kind == "i"
    assert rows["hours"].dropna().between(0, 99.9).all()
    assert rows["hours"].isna().any()
    assert (rows["hours"].dropna() * 10 % 1).round(6).isin([0.0, 1.0]).all()
    assert set(rows["job"].dropna()) <= {"cook", "nurse", "=cmd", "Other"}
    assert rows["member"].dtype == bool
    assert rows["day"].between("2020-01-01", "2023-12-31").all()
    assert not rows.drop(columns=["hours", "job"]).isna().any().any()


def test_no_row_holds_no_surprise(syn):
    empty, some = syn.sample(0), syn.sample(3)
    assert (empty.dtypes == some.dtypes).all()


def test_a_seed_makes_rows_repeatable_and_none_makes_them_new(syn):
    assert syn.sample(50, seed=7).equals(syn.sample(50, seed=7))
    assert not syn.sample(50, seed=7).equals(syn.sample(50, seed=8))
    assert not syn.sample(50).equals(syn.sample(50))


def test_sampling_touches_no_global_randomness(syn):
    import torch

    before, numbers = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    syn.sample(10, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert (np.random.get_state()[1] == numbers).all()  # noqa: NPY002


@pytest.mark.parametrize("value", [-1, 2**63, 1.5, "7", True])
def test_what_is_no_seed_is_refused(syn, value):
    with pytest.raises(SettingError) as caught:
        syn.sample(1, seed=value)
    assert caught.value.field == "seed"


@pytest.mark.parametrize("n", [-1, 2.5, "10", True])
def test_what_is_no_number_of_rows_is_refused(syn, n):
    with pytest.raises(SettingError) as caught:
        syn.sample(n)
    assert caught.value.field == "n"


# -- given -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"sex": "Female"}, {"sex": "Female"}),
        ({"sex": "Female", "income": "high"}, {"sex": "Female", "income": "high"}),
        ({"job": "cook"}, {"job": "cook"}),
        ({"job": "=cmd", "sex": "Male"}, {"job": "=cmd", "sex": "Male"}),
        ({"code": "01"}, {"code": "01"}),
        ({"member": True}, {"member": "true"}),
        ({"member": "True"}, {"member": "true"}),
        ({"member": False}, {"member": "false"}),
        *(({"member": word}, {"member": "true"}) for word in ("yes", "Y", "t", "1", 1)),
        *(({"member": word}, {"member": "false"}) for word in ("no", "N", "f", "0", 0)),
        ({"age": 40}, {"age": "40"}),
        ({"age": "40"}, {"age": "40"}),
        ({"age": np.int64(40)}, {"age": "40"}),
        ({"gain": 0, "sex": "Female"}, {"gain": "0", "sex": "Female"}),
        ({"hours": "12.3"}, {"hours": "12.3"}),
        ({"day": "2021-02-03"}, {"day": "2021-02-03 00:00:00"}),
        ({"day": datetime.date(2021, 2, 3)}, {"day": "2021-02-03 00:00:00"}),
        ({"day": pd.Timestamp("2021-02-03")}, {"day": "2021-02-03 00:00:00"}),
    ],
    ids=str,
)
def test_every_row_has_what_was_asked_for(syn, given, wanted):
    rows = syn.sample(30, given=given, seed=3)
    assert len(rows) == 30
    for name, value in wanted.items():
        assert {label(cell) for cell in rows[name]} == {value}
    assert rows["row"].tolist() == list(range(1, 31))


def test_a_condition_is_set_and_not_rejected(syn, monkeypatch):
    sizes = []
    draw = db.Synthesizer._draw
    monkeypatch.setattr(
        db.Synthesizer, "_draw", lambda self, size, *rest: sizes.append(size) or draw(self, size, *rest)
    )
    syn.sample(25, given={"sex": "Female", "income": "high"})
    assert sizes == [25]


def test_conditions_follow_their_shares(syn):
    rows = syn.sample(20_000, seed=1)
    assert rows["sex"].value_counts(normalize=True)["Female"] == pytest.approx(0.3, abs=0.02)
    assert rows["income"].value_counts(normalize=True)["high"] == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"colour": "red"}, "not a column"),
        ({"sex": "Other"}, "no such value"),
        ({"job": "clown"}, "no such value"),
        ({"sex": None}, "never missing"),
        ({"job": []}, "empty list"),
        ({"job": ("cook", "clown")}, "no such value"),
        ({"job": "cook,clown"}, "no such value"),
        ({"member": "maybe"}, "give true or false"),
        ({"age": 16}, "outside"),
        ({"age": 91}, "outside"),
        ({"age": 40.5}, "between two"),
        ({"age": "forty"}, "not a number"),
        ({"age": float("nan")}, "not a number"),
        ({"age": True}, "not a number"),
        ({"age": None}, "never missing"),
        ({"age": ""}, "never missing"),
        ({"age": (40, 30)}, "ends before it begins"),
        ({"age": (300, None)}, "has a range outside the column's bounds"),
        ({"sex": "Femail"}, "has no such value; did you mean Female? use one of: "),
        ({"age": "91..99"}, "outside"),
        ({"age": "30..many"}, "not a number"),
        ({"sex": {"Female": 0.5}}, "add up to 1"),
        ({"sex": {"Female": 0.5, "Other": 0.5}}, "no such value"),
        ({"hours": 12.34}, "between two"),
        ({"height": 1.8}, "without precision"),
        ({"day": "2019-12-31"}, "outside"),
        ({"day": "2021-02-03T04:05:06"}, "between two"),
        ({"day": "2021-02-03T00:00:00+01:00"}, "offset"),
        ({"day": "someday"}, "no date"),
        ({"row": 1}, "is an id"),
    ],
    ids=str,
)
def test_what_no_row_can_have_is_refused_at_once(syn, monkeypatch, given, hint):
    monkeypatch.setattr(db.Synthesizer, "_draw", lambda *_: pytest.fail("rows were drawn"))
    with pytest.raises(SettingError) as caught:
        syn.sample_chunks(1, given=given)
    assert hint in str(caught.value)
    assert caught.value.field == f"given {next(iter(given))}"


def test_what_is_too_rare_is_refused_after_a_while(syn, monkeypatch):
    monkeypatch.setattr(drawing, "DECIDED_AFTER", 3000)
    drawn = []
    draw = db.Synthesizer._draw

    def never(self, size, *rest):
        drawn.append(size)
        frame = draw(self, size, *rest)
        return frame[frame["age"] != 40]

    monkeypatch.setattr(db.Synthesizer, "_draw", never)
    with pytest.raises(SettingError) as caught:
        list(syn.sample_chunks(5, given={"age": 40}, chunk_rows=1000))
    assert "no synthetic row in 3,000 has" in str(caught.value)
    assert drawn == [1000, 1000, 1000]


def test_units_that_never_have_a_row_are_refused_after_a_while(syn, monkeypatch):
    """Each draw was six times the one before, up to a hundred million units."""
    monkeypatch.setattr(drawing, "DECIDED_AFTER", 3000)
    monkeypatch.setattr(synthesizer, "DECIDED_AFTER", 3000)

    class Units:
        n_rows = 0

        def __init__(self, size):
            assert size <= 3010  # of 5,000 rows, 8 million units were asked for at once
            self.size = size

        def __len__(self):
            return self.size

    monkeypatch.setattr(drawing.ConditionalSampler, "records", lambda _, size, rng: Units(size))
    with pytest.raises(SettingError, match=r"not one of \d,\d+ synthetic units has a row"):
        syn.sample(2000)


def test_rejection_ends_where_too_many_rows_would_be_needed(syn, monkeypatch):
    """A hit now and then does not begin the count anew."""
    monkeypatch.setattr(drawing, "DECIDED_AFTER", 3000)
    monkeypatch.setattr(drawing, "MOST_DRAWN", 50_000)
    drawn = []
    draw = db.Synthesizer._draw

    def rarely(self, size, *rest):
        drawn.append(size)
        frame = draw(self, size, *rest)
        frame["age"] = 41
        frame.loc[0, "age"] = 40  # one row in a thousand
        return frame

    monkeypatch.setattr(db.Synthesizer, "_draw", rarely)
    with pytest.raises(SettingError) as caught:
        list(syn.sample_chunks(100, given={"age": 40}, chunk_rows=1000))
    assert len(drawn) == 3
    assert "about one synthetic row in 1,000 has this combination, too few to find 100" in caught.value.message
    assert "ask for fewer rows (50 can be found)" in caught.value.remedy
    assert caught.value.field == "given age"
    assert sum(len(part) for part in syn.sample_chunks(50, given={"age": 40}, chunk_rows=1000)) == 50


# -- a chunk at a time -------------------------------------------------------------------------------------------------


def test_chunks_add_up_and_ids_are_numbered_across_them(syn):
    chunks = list(syn.sample_chunks(250, seed=1, chunk_rows=100))
    assert [len(chunk) for chunk in chunks] == [100, 100, 50]
    assert pd.concat(chunks)["row"].tolist() == list(range(1, 251))
    assert all((chunk.dtypes == chunks[0].dtypes).all() for chunk in chunks)


def test_chunks_with_a_condition_add_up_too(syn):
    chunks = list(syn.sample_chunks(60, given={"job": "cook"}, seed=1, chunk_rows=50))
    assert sum(map(len, chunks)) == 60
    assert max(map(len, chunks)) <= 50
    assert pd.concat(chunks)["row"].tolist() == list(range(1, 61))


def test_a_million_rows_are_drawn_one_chunk_at_a_time(syn, monkeypatch):
    """No more than a chunk is ever drawn, and the next one only when it is asked for."""
    asked = []
    draw = db.Synthesizer._draw

    def counted(self, size, *rest):
        asked.append(size)
        return draw(self, min(size, 10), *rest)

    monkeypatch.setattr(db.Synthesizer, "_draw", counted)
    stream = syn.sample_chunks(1_000_000, seed=1)
    assert asked == []
    for number, _ in enumerate(itertools.islice(stream, 3)):
        assert asked == [KINDS["table"].chunk] * (number + 1)
    assert KINDS["table"].chunk <= 100_000


def test_whole_and_in_chunks_are_the_same_rows(syn):
    whole = syn.sample(KINDS["table"].chunk + 5, seed=5)
    assert pd.concat(syn.sample_chunks(KINDS["table"].chunk + 5, seed=5), ignore_index=True).equals(whole)


def test_no_chunk_is_no_size(syn):
    with pytest.raises(SettingError):
        syn.sample_chunks(5, chunk_rows=0)


def test_it_shows_no_weights_and_cannot_be_changed(syn):
    assert "tensor" not in repr(syn).lower()
    assert repr(syn).startswith("Synthesizer(method='dpgan', 11 columns, guarantee='(ε=2, ")
    assert len(repr(syn)) < 500
    with pytest.raises(AttributeError):
        syn.guarantee = copy.copy(syn.guarantee)


def test_weights_that_are_not_finite_are_an_error_in_one_line(syn):
    import torch

    broken = copy.deepcopy(syn.generator)
    with torch.no_grad():
        next(broken.parameters()).fill_(float("nan"))
    with pytest.raises(db.errors.InputError, match="not finite"):
        db.Synthesizer(schema=syn.schema, plan=syn.plan, guarantee=syn.guarantee, generator=broken).sample(5)
