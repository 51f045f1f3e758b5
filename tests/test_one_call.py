"""``db.synthesize``: one call, charged once, refused the second time unless a cap allows it."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.errors import BudgetRefused


@pytest.fixture
def made(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = db.Schema.parse(small.declared_text)
    return lambda **more: db.synthesize(small.frame(), schema, epsilon=1.0, delta=1e-5, n=20, **more)


def test_a_new_ledger_allows_this_fit_and_no_other(made):
    rows = made(ledger="people.ledger", out="run", seed=1)
    book = db.Ledger.open("people.ledger")
    assert len(rows) == 20
    assert (book.dataset, book.cap.epsilon, book.remaining.epsilon) == ("people", 1.0, 0.0)
    assert rows.equals(db.load("run").sample(20, seed=1))
    with pytest.raises(BudgetRefused):
        made(ledger="people.ledger")


def test_a_ledger_that_is_there_keeps_its_cap(made):
    book = db.Ledger.create("people.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    made(ledger="people.ledger")
    assert (book.cap.epsilon, book.spent.epsilon) == (3.0, 1.0)


def test_nothing_is_made_where_the_plan_is_refused(made, tmp_path):
    with pytest.raises(db.errors.SettingError):
        made(ledger="people.ledger", no_such_setting=1)
    assert not (tmp_path / "people.ledger").exists()
