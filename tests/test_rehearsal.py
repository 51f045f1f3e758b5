"""A plan whose choices do not go together is refused before it is charged: it is tried on no record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import doublure as db
from doublure.access import Access
from doublure.errors import SettingError
from doublure.methods import registry as methods
from doublure.methods.dpgan.method import Dpgan
from doublure.methods.statistics.series import copula_fit
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.counts import Axis, Counts
from doublure.private.records import PrivateRecords
from doublure.run import rehearsal
from doublure.run.rehearsal import RehearsalMechanism, rehearse

HEAD = "doublure: 1\nunits: 3000\n"
TABLE = HEAD + "kind: table\ncolumns:\n  a: {type: category, values: [x, y], missing: false, roles: [condition]}\n"
TABLE += "  b: {type: integer, bounds: {learn: 0.1}, missing: {learn: 0.1}}\n"
SERIES = HEAD + "kind: series\nseries: {length: 4, gaps: missing}\nchannels:\n"
SERIES += "  kw: {type: real, bounds: [0, 9], precision: 1, missing: true}\n"
SERIES += "attributes:\n  w: {type: boolean, missing: false}\n  s: {type: ordinal, values: [1, 2, 3], missing: false}\n"
RELATED = HEAD + "kind: relational\nunit: {name: patient}\ntables:\n"
RELATED += "  root: {key: nr, columns: {nr: {type: id}, a: {type: boolean, missing: false}}}\n"
RELATED += "  stays: {parent: root, foreign_key: nr, max_children: 3, columns: {nr: {type: id}, "
RELATED += "d: {type: integer, bounds: [0, 9], missing: false}}}\n"
IMAGES = HEAD + "kind: images\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1]}\n"
KINDS = {"table": TABLE, "series": SERIES, "relational": RELATED, "images": IMAGES}
TINY = {"features": 64, "fit_steps": 2, "view_width": 20}
TRAINED = [("statistics", kind) for kind in KINDS] + [
    (name, kind) for name in ("guided", "dpgan", "bayesgan") for kind in sorted(methods.method(name).kinds)
]
BUILT = [(name, kind) for name in ("gan", "noisecritic") for kind in sorted(methods.method(name).kinds)]


def planned(method: str = "statistics", kind: str = "table", **more: Any) -> db.Plan:
    schema = db.Schema.parse(KINDS[kind])
    asked = {"delta": 1e-5, "accountant": "rdp"} | more
    if method in ("gan", "noisecritic"):
        return db.plan(schema, method=method)
    if kind == "images" and method in ("statistics", "guided"):
        asked |= {name: value for name, value in TINY.items() if method == "guided" or name != "view_width"}
    return db.plan(schema, method=method, **({"epsilon": 3.0} | asked))


@pytest.fixture
def ledger(tmp_path):
    return db.Ledger.create(tmp_path / "ledger", dataset="drawn", epsilon=10.0, delta=0.1)


@pytest.fixture
def fitted(ledger, tmp_path):
    """Fit a plan to data whose header is read, and no record: there is none."""
    return lambda plan: db.fit(tmp_path / "kw.npz", plan, ledger=ledger, out=tmp_path / "run", progress=False)


def refused_at_no_cost(ledger: db.Ledger, tmp_path: Any, fit: Any, match: str) -> None:
    with pytest.raises(SettingError, match=match):
        fit()
    assert (ledger.spent.epsilon, [entry.kind for entry in ledger.entries if entry.kind == "reserve"]) == (0, [])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("method", "kind"), TRAINED)
def test_every_method_with_a_claim_trains_on_nobody_what_it_built(method, kind, monkeypatch):
    trained = []
    true = rehearsal._trained
    monkeypatch.setattr(rehearsal, "_trained", lambda *given: trained.append(true(*given)) or trained[0])
    rehearse(planned(method, kind))
    assert len(trained) == 1


@pytest.mark.parametrize(("method", "kind"), BUILT)
def test_what_is_charged_nothing_is_built_alone(method, kind, monkeypatch):
    built = []
    chosen = type(methods.method(method))
    true = chosen.build
    monkeypatch.setattr(chosen, "build", lambda *given: built.append(true(*given)) or built[0])
    monkeypatch.setattr(chosen, "train", lambda *given: pytest.fail("it trained"))
    rehearse(planned(method, kind))
    assert len(built) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("The size of tensor a (8) must match"), "cannot be fitted as planned .RuntimeError: The size of"),
        (MemoryError(), "memory does not hold"),
        (ModuleNotFoundError("No module named 'missing'"), "No module named 'missing'"),
        (IndexError("index 8 is out of bounds"), "cannot be fitted as planned .IndexError: index 8 is out of bounds"),
    ],
)
@pytest.mark.parametrize("where", ["build", "train"])
def test_what_fails_in_a_fit_is_refused_before_it_is_charged(ledger, tmp_path, monkeypatch, where, error, said):
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Dpgan, where, fails)
    data = {"kw": np.ones((50, 4)), "w": np.ones(50, dtype=bool), "s": np.ones(50, dtype=int)}
    refused_at_no_cost(
        ledger, tmp_path, lambda: db.fit(data, planned("dpgan", "series"), ledger=ledger, out=tmp_path / "run"),
        f"{said}.*nothing was charged",
    )  # fmt: skip


def test_a_generator_of_another_shape_than_was_built_is_refused(ledger, tmp_path, monkeypatch):
    true = Dpgan.train

    def wider(method: Any, job: Any) -> Any:
        generator = true(method, job)
        generator.register_buffer("more", torch.zeros(1))
        return generator

    monkeypatch.setattr(Dpgan, "train", wider)
    data = {"kw": np.ones((50, 4)), "w": np.ones(50, dtype=bool), "s": np.ones(50, dtype=int)}
    refused_at_no_cost(
        ledger, tmp_path, lambda: db.fit(data, planned("dpgan", "series"), ledger=ledger, out=tmp_path / "run"),
        "of another shape than it builds; nothing was charged",
    )  # fmt: skip


def test_shares_of_groups_with_levels_would_be_refused(monkeypatch):
    """The fault that rehearsals were made for, planted: shares of groups times levels for groups of attributes."""
    plan = planned("statistics", "series", epsilon=10.0)
    assert (plan.settings.grouped, plan.settings.level_groups) == (("w", "s"), 4)
    rehearse(plan)
    monkeypatch.setattr(
        copula_fit, "shares_by_attributes",
        lambda shape, found: (found.shares.reshape(-1, shape.levels).sum(1), found.shares_within),
    )  # fmt: skip
    with pytest.raises(SettingError, match=r"size of tensor.*nothing was charged"):
        rehearse(plan)


def test_a_rehearsal_that_would_take_long_builds_alone(monkeypatch):
    monkeypatch.setattr(rehearsal, "_SECONDS", 0.0)
    monkeypatch.setattr(rehearsal, "_SHARE", 0.0)
    monkeypatch.setattr(Dpgan, "train", lambda *_: pytest.fail("it trained"))
    rehearse(planned("dpgan", "series"))


def test_a_fit_is_rehearsed_before_its_ledger_is_charged(ledger, tmp_path, monkeypatch):
    spent = []
    monkeypatch.setattr("doublure.run.fitting.rehearse", lambda plan, device: spent.append(ledger.remaining.epsilon))
    data = {"kw": np.ones((50, 4)), "w": np.ones(50, dtype=bool), "s": np.ones(50, dtype=int)}
    db.fit(data, planned("statistics", "series"), ledger=ledger, out=tmp_path / "run", progress=False)
    assert (spent, ledger.remaining.epsilon) == ([10.0], 7.0)


@pytest.mark.parametrize("units", [np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)])
def test_whoever_has_a_record_is_refused(units):
    """Its noise is made up and seeded: it must never meet a record."""
    access = Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0, tables=1, records=1))
    query = Counts(tables=[(Axis.of_codes(0, 2),)], max_records=1)
    records = PrivateRecords(np.zeros((len(units), 1), dtype=np.int64), units, len(units), lambda rows: (rows, None))
    if len(units):
        with pytest.raises(TypeError, match="no records"):
            RehearsalMechanism([access]).release(query, access, records)
    else:
        first, second = (RehearsalMechanism([access]).release(query, access, records) for _ in range(2))
        assert (first == second).all()  # a plan is refused always or never


def test_records_that_lie_elsewhere_are_refused():
    access = Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0, tables=1, records=1))
    with pytest.raises(TypeError, match="no records"):
        RehearsalMechanism([access]).release(Counts(tables=[(Axis.of_codes(0, 2),)], max_records=1), access, object())
