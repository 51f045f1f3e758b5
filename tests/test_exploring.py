"""Counts of a received bundle against a count of its own files."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import doublure as db
from doublure.errors import GateFailed, SettingError
from doublure.releasing.bundle import preview
from doublure.releasing.cells import DescribedColumn
from doublure.releasing.exploring import ReceivedTable
from doublure.releasing.reading import DescribedTable


@pytest.fixture(scope="module")
def received(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exploring")
    plan = db.plan(small.declared, method="statistics", epsilon=2.0, delta=1e-4)
    syn = db.fit(small.frame(), plan, ledger=small.book(folder), out=folder / "run", seed=1, progress=False)
    db.release(syn, folder / "bundle", n=400, seed=2, progress=False)
    return folder / "bundle"


@pytest.fixture(scope="module")
def frame(received):
    return pd.read_parquet(received / "data.parquet")


@pytest.fixture(scope="module")
def table(received):
    (table,) = ReceivedTable.of_bundle(received)
    return table


def test_counts_are_those_of_the_file(table, frame):
    assert table.count().rows == table.count().of == 400
    assert table.count({"sex": "Female"}).rows == (frame.sex == "Female").sum()
    assert table.count({"job": ["cook", "nurse"]}).rows == frame.job.isin(["cook", "nurse"]).sum()
    assert table.count({"age": (30, 40)}).rows == frame.age.between(30, 40).sum()
    assert table.count({"age": (30, None), "sex": "Male"}).rows == ((frame.age >= 30) & (frame.sex == "Male")).sum()
    assert table.count({"hours": None}).rows == frame.hours.isna().sum()
    days = pd.to_datetime(frame.day)
    assert table.count({"day": ("2021-01-01", "2021-12-31")}).rows == (days.dt.year == 2021).sum()


def test_a_margin_is_that_of_the_card_in_rows_of_the_bundle(table, received):
    import json

    margins = json.loads((received / "card.json").read_text())["margins"]
    scale = 400 / margins["units"]
    one = table.count({"sex": "Female"})
    assert one.margin == pytest.approx(margins["columns"]["sex"] * scale)
    assert table.count({"job": ["cook", "nurse"]}).margin == pytest.approx(
        margins["columns"]["job"] * scale * math.sqrt(2)
    )
    several = table.count({"sex": "Female", "member": "true"})
    assert several.margin is None
    assert several.at_least == pytest.approx(max(margins["columns"][name] for name in ("sex", "member")) * scale)
    assert "± " in one.sentence
    assert "off by more than" in several.sentence
    assert "no margin" in table.count().sentence


@pytest.mark.parametrize(
    ("type_", "bounds", "first", "last"),
    [
        ("integer", [17, 90], "15 to 19", "90 to 94"),
        ("integer", [0, 5], "0", "5"),
        ("integer", [0, 1_000_000], "0 to 99999", "1000000 to 1099999"),
        ("real", [0.0, 20.0], "0 to 2", "18 to 20"),
        ("real", [-1.0, 1.0], "-1 to -0.8", "0.8 to 1"),
        ("real", [0.0, 1e7], "0 to 1,000,000", "9,000,000 to 10,000,000"),
    ],
)
def test_bins_of_numbers_begin_at_round_ones(tmp_path, type_, bounds, first, last):
    entry = {"name": "x", "type": type_, "values": None, "bounds": bounds, "precision": 2, "missing": False}
    told = DescribedTable(name="data", columns=(DescribedColumn.from_entry(entry, "x"),))
    (tmp_path / "data.csv").write_text(f"x\n{bounds[0]}\n{bounds[1]}\n")
    found = ReceivedTable(tmp_path / "data.csv", told, {}).distribution("x")
    assert (found[0].label, found[-1].label) == (first, last)
    assert found[0].rows == found[-1].rows == 1
    assert 5 <= len(found) <= 20


def test_a_value_that_is_called_missing_is_counted_apart(tmp_path):
    entry = {"name": "x", "type": "category", "values": ["(missing)", "a"], "bounds": None, "precision": None,
             "missing": True}  # fmt: skip
    told = DescribedTable(name="data", columns=(DescribedColumn.from_entry(entry, "x"),))
    (tmp_path / "data.csv").write_text('x\n(missing)\n(missing)\n(missing)\n""\n""\na\n')
    found = ReceivedTable(tmp_path / "data.csv", told, {}).distribution("x")
    assert [(each.label, each.rows) for each in found] == [("(missing)", 3), ("(missing)", 2), ("a", 1)]


def test_distributions_add_up_to_the_rows(table, frame):
    for name in ("sex", "age", "day", "hours", "code", "row"):
        counts = table.distribution(name)
        assert sum(each.rows for each in counts) == 400, name
        assert sum(each.share for each in counts) == pytest.approx(1)
        assert len(counts) <= 21
    assert {each.label: each.rows for each in table.distribution("sex")} == frame.sex.value_counts().to_dict()
    women = table.distribution("income", {"sex": "Female"})
    assert sum(each.rows for each in women) == (frame.sex == "Female").sum()
    assert table.distribution("age", {"job": "nobody"})[0].share == 0


def test_rows_are_those_that_fit(table, frame):
    found = table.rows({"sex": "Female"}, most=3)
    assert [row["age"] for row in found] == [str(age) for age in frame.age[frame.sex == "Female"][:3]]


def test_wrong_questions_are_one_line(table):
    for where, said in ({"sec": "Female"}, "did you mean sex"), ({"age": "old"}, "cannot be asked"):
        with pytest.raises(SettingError, match=said):
            table.count(where)
    for where in ({"sex": ("a", "b")}, {"age": (None, None)}, {"day": ("x", None)}):
        with pytest.raises(SettingError, match="cannot be asked"):
            table.count(where)


def test_a_dictionary_that_names_another_file_reads_none(received, tmp_path):
    import json
    import shutil

    forged = shutil.copytree(received, tmp_path / "forged")
    (forged / "dictionary.json").write_text("[]")
    with pytest.raises((GateFailed, Exception)) as caught:
        ReceivedTable.of_bundle(forged)
    assert "\n" not in str(caught.value)
    words = json.loads((received / "dictionary.json").read_text())
    words["related"] = {"../run/internal/x": {"columns": []}}
    (forged / "dictionary.json").write_text(json.dumps(words))
    card = json.loads((received / "card.json").read_text())
    card["files"].append({"path": "../run/internal/x.csv", "sha256": "", "rows": 1})
    (forged / "card.json").write_text(json.dumps(card))
    assert ReceivedTable.of_bundle(forged) == []


def test_the_card_as_it_will_be_is_that_of_the_release_and_costs_nothing(received):
    run = received.parent / "run"
    syn, ledger = db.load(run), received.parent / "people.ledger"
    before = ledger.read_bytes()
    shown = preview(syn, n=400, title="Synthetic <people>", licence="CC BY 4.0", contact="a@b.org")
    assert ledger.read_bytes() == before
    assert "Synthetic &lt;people&gt;" in shown
    assert syn.guarantee.sentence[:20] in shown
    assert "known once it is written" in shown
    assert "CC BY 4.0" in shown
    assert ">400<" in shown


def test_examples_stand_on_the_page_and_never_in_the_figures(received, small, tmp_path):
    run = received.parent / "run"
    real = small.csv(tmp_path)
    report = db.evaluate.report(db.load(run), real, examples=4, progress=False)
    assert report.examples is not None
    known = set(small.frame().height.round(9).astype(str).str[:8])
    place = report.examples.columns.index("height")
    assert all(row[place][:8] in known for row in report.examples.real)
    assert len(report.examples.real) == len(report.examples.synthetic) == 4
    page = report.to_html()
    assert "Real rows beside synthetic ones" in page
    assert report.examples.real[0][place] in page
    assert "examples" not in report.to_json()
    assert report.examples.real[0][place] not in repr(report) + str(report) + report.to_json()
