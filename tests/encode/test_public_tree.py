"""A column type from elsewhere states its own public tree; a wrong one is refused, and moves no sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import planting
import pytest

from doublure.encode.columns import integer_domain
from doublure.encode.table_values import TableValues
from doublure.errors import SchemaError, SettingError
from doublure.methods.statistics.tables.cut_cells import CutCells
from doublure.methods.statistics.tables.leaves import ColumnLeaves
from doublure.private.queries.axes import Intervals
from doublure.private.queries.counts import Counts
from doublure.run import conditions
from doublure.schema import Schema, columns
from doublure.schema.allowed import Allowed
from doublure.schema.columns import CategoryColumn, IntegerDomain
from doublure.schema.columns.column import Column
from doublure.schema.fact_states import Fact

CODES = tuple(f"{chapter}{code:02}" for chapter in "ABC" for code in range(50))
TEXT = "doublure: 1\nkind: table\nunits: 100\ncolumns:\n  code: {type: chaptered, missing: false}\n"


@dataclass(frozen=True, kw_only=True)
class Chapters(IntegerDomain):
    """Fifty codes to a chapter, ten to a block."""

    divisible = True

    def starts(self) -> Any:
        return np.arange(self.first, self.last + 1, 50)

    def parts(self, first: int, last: int) -> Any:
        return np.arange(first, last + 1, 10 if last - first >= 10 else 1)


class ChapteredColumn(CategoryColumn):
    type: Literal["chaptered"] = "chaptered"
    values: Fact[tuple[str, ...]] = CODES

    def asked(self, value: object) -> Allowed:
        """``B*`` is all of a chapter."""
        if isinstance(value, str) and value.endswith("*"):
            return self.between_places(value.rstrip("*"))
        return super().asked(value)

    def between_places(self, chapter: str) -> Allowed:
        places = [place for place, text in enumerate(self.labels) if text.startswith(chapter)]
        return Allowed(values=tuple(map(float, places)))

    def integer_domain(self) -> IntegerDomain:
        return Chapters(first=0, last=len(self.domain) - 1, nullable=self.may_be_missing)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for name, empty in (("_REGISTERED", {}), ("_WITH_REGISTERED", [])):
        monkeypatch.setattr(columns.registry, name, empty)
    columns.register(ChapteredColumn)


@pytest.fixture
def encoder() -> TableValues:
    return TableValues(Schema.parse(TEXT).resolve({}))


def leaves_of(encoder: TableValues) -> ColumnLeaves:
    (domain,) = encoder.domains
    return ColumnLeaves.of(domain, 0, domain.initial_partition())


def look_in_the_first_chapter(encoder: TableValues) -> None:
    leaves = leaves_of(encoder)
    CutCells.of_full(leaves, np.array([900.0, 0.0, 0.0]), 10.0)


def test_records_are_looked_for_down_the_columns_own_tree(encoder):
    leaves = leaves_of(encoder)
    assert leaves.starts.tolist() == [0, 50, 100]
    opened = CutCells.of_full(leaves, np.array([0.0, 900.0, 0.0]), 10.0)
    assert opened.starts.tolist() == [50, 60, 70, 80, 90]
    assert integer_domain(encoder.schema, "code").split_cell(60, 69).tolist() == [*range(60, 70)]
    _, names = encoder.axis(0, np.array([0.0, 2.0, 3.0]), np.array([0, 1, 0]), 2)
    assert names[1] == "A02"
    assert names[0].startswith("A00 | A01 | A03 | A04")


def test_a_sample_is_asked_for_in_the_columns_own_words(encoder):
    ((given, share),) = conditions.read({"code": "B*"}, encoder.schema, encoder).groups
    assert (share, given.by_rejection["code"].values) == (1.0, tuple(map(float, range(50, 100))))
    frame = pd.DataFrame({"code": pd.Categorical(["A01", "B00", "B49", "C00"], categories=CODES)})
    assert given.fitting(frame).code.tolist() == ["B00", "B49"]
    assert encoder.spans(given.by_rejection) == {0: ((50, 99),)}
    with pytest.raises(SettingError, match="code: has no such value"):
        conditions.read({"code": "D00"}, encoder.schema, encoder)


WRONG = {
    "unsorted": [0, 100, 50],
    "overlapping": [0, 50, 50, 100],
    "before the first": [-1, 0, 50],
    "not from the first": [10, 50],
    "beyond the last": [0, 50, 150],
    "no integers": [0.0, 50.0],
    "halves": [0, 50.5],
    "not a number": [0, float("nan")],
    "none": [],
    "texts": ["a"],
    "a table": [[0, 50]],
    "too large": [0, 2**70],
}


CHECK = "not integers or found[0] != first or found[-1] > last or not (found[1:] > found[:-1]).all()"


@pytest.mark.parametrize("method", ["starts", "parts"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_tree_is_refused_in_one_line(encoder, monkeypatch, method, wrong):
    monkeypatch.setattr(Chapters, method, lambda *_: np.array(wrong) if wrong != [] else np.array(wrong, dtype=int))
    with pytest.raises(SchemaError, match=f"Chapters.{method}.* do not divide .*; return the first integer") as caught:
        look_in_the_first_chapter(encoder)
    assert "\n" not in str(caught.value)


CLAUSES = {
    "not integers or found[0] != first": ("no integers", "halves", "before the first", "not from the first"),
    "found[-1] > last": ("beyond the last",),
    "not (found[1:] > found[:-1]).all()": ("unsorted", "overlapping"),
}


@pytest.mark.parametrize("clause", CLAUSES)
def test_each_clause_of_the_check_is_needed(encoder, monkeypatch, clause):
    planting.plant(monkeypatch, columns.integer_domain, "_checked", (CHECK, CHECK.replace(clause, "False")))
    for name in CLAUSES[clause]:
        monkeypatch.setattr(Chapters, "starts", lambda _, wrong=WRONG[name]: np.array(wrong))
        assert len(encoder.domains[0].initial_partition()) == len(WRONG[name])


@pytest.mark.parametrize("ends", [(3, 2), (0.0, 5), (0, True), (None, 5)])
def test_ends_that_are_no_integers_in_order_are_refused(ends):
    with pytest.raises(SchemaError, match=r"ends that are no integers in order; give first and last as integers"):
        IntegerDomain(first=ends[0], last=ends[1], nullable=False)


class Held:
    """Records in memory."""

    most_records = 1

    def __init__(self, records: Any) -> None:
        self.records, self.parts = records, records.shape[1]

    def chunks(self, rows: int) -> Any:
        yield self.records


def count(leaves: ColumnLeaves, records: Any) -> Any:
    query = Counts(tables=[(leaves.axis(np.arange(leaves.size)),)], max_records=1)
    query.refuse_unfit(Held(records))
    answer = query.answer(Held(records), sample_rate=1.0)
    return answer.total, answer.sensitivity.l2


COUNTED = {"before the first", "not from the first", "beyond the last", "no integers", "halves", "too large"}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_tree_that_is_not_noticed_moves_no_count_by_more_than_one(encoder, monkeypatch, wrong):
    """The check of the tree is planted out: the query refuses it, or counts each record once all the same."""
    planting.plant(
        monkeypatch,
        columns.integer_domain,
        "_checked",
        (CHECK, "False"),
        ("found.astype(np.int64)", "found"),
    )
    monkeypatch.setattr(Chapters, "starts", lambda _: np.array(WRONG[wrong]))
    records = encoder.compact(pd.DataFrame({"code": pd.Categorical(CODES, categories=CODES)}))
    try:
        total, sensitivity = count(leaves_of(encoder), records)
        one_less, _ = count(leaves_of(encoder), records[1:])
    except (SettingError, ValueError, TypeError, IndexError, OverflowError):
        assert wrong not in COUNTED
        return
    assert wrong in COUNTED
    assert total.sum() == len(records)
    assert sensitivity == 1.0
    assert np.abs(total - one_less).sum() == 1


def test_the_query_alone_refuses_intervals_out_of_order():
    for starts in ([0, 100, 50], [0, 50, 50]):
        axis = Intervals(part=0, starts=np.array(starts, dtype=float), cells=np.arange(len(starts)), size=len(starts))
        with pytest.raises(SettingError, match="must be in ascending order"):
            axis.refuse_unfit(1)


def test_every_column_says_its_integers():
    """An abstract method: a type that says none cannot be made."""
    assert "integer_domain" in Column.__abstractmethods__
