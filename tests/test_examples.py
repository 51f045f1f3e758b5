"""Every example in a docstring is executed; the package's own one makes the synthesizer that others sample from."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.datasets import DatasetInfo
from doublure.private.bayesian.accountant import BayesianAccountant
from doublure.releasing.issuing import Bundle

SOURCE = Path(db.__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ELSEWHERE = ("private/accounting/", "private/bayesian/", "private/clipping", "private/gradients/")
"""Modules whose examples the tests of the core execute."""
MAKING = ("doublure", "doublure.releasing.bundle.release", "doublure.evaluate.evaluation.report")
"""Examples that the fixture executes, since what they make is shown by others."""
SCHEMA = """
doublure: 1
kind: table
units: 400
columns:
  age: {type: integer, bounds: [17, 90], missing: false}
  sex: {type: category, values: [Female, Male], missing: false, roles: [condition]}
  income: {type: category, values: [low, high], missing: false, roles: [target]}
"""
DOCUMENTED = {
    db: "audit check draft fit load plan release synthesize verify",
    db.Schema: "load parse save to_yaml sha256 undeclared with_role json_schema",
    db.Plan: "load save explain sha256 to_json",
    db.Synthesizer: "sample sample_chunks default_n save",
    db.Ledger: "create open open_or_create cap spent remaining show verify",
    db.Guarantee: "sentence watermark worst_case to_json from_json",
    db.evaluate: "report compare inspect about",
    db.datasets: "names info fetch load load_adult bundled_adult adult_schema_path demo_split demo_files",
    Bundle: "",
    DatasetInfo: "",
    db.evaluate.Report: "",
    db.errors.DoublureError: "",
    BayesianAccountant: "",
    db.private.accounting: "epsilon noise_multiplier",
}
"""Public names and their members."""


def modules() -> Iterator[str]:
    """Yield the modules that have examples, of the package too."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if ">>> " in path.read_text(encoding="utf-8") and not name.startswith(ELSEWHERE):
            yield ".".join(["doublure", *Path(name).with_suffix("").parts]).removesuffix(".__init__")


def run(place: Any, names: dict[str, Any], *, whole: bool = True) -> dict[str, Any]:
    """Execute the examples of a module, or of a thing alone, and return what they leave in its namespace."""
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    module = place if inspect.ismodule(place) else inspect.getmodule(place)
    left = dict(names)
    for test in doctest.DocTestFinder(recurse=whole).find(place, module.__name__, module, extraglobs=names):
        if test.name in MAKING and whole:
            continue
        runner.run(test, out=said.append, clear_globs=False)
        left |= {name: made for name, made in test.globs.items() if vars(module).get(name) is not made}
    assert not runner.failures, "\n".join(said)
    return left


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[dict[str, Any]]:
    """Yield a namespace with a fitted synthesizer, its bundle and its report, in the folder of their files."""
    draw = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("examples")
    for name, rows in (("people.csv", 400), ("kept.csv", 200)):
        age, sex = draw.integers(17, 91, rows), draw.choice(["Female", "Male"], rows)
        income = np.where(draw.random(rows) < age / 120, "high", "low")
        pd.DataFrame({"age": age, "sex": sex, "income": income}).to_csv(folder / name, index=False)
    (folder / "people.schema.yaml").write_text(SCHEMA, encoding="utf-8")
    with contextlib.chdir(folder):
        names = run(db, {"db": db}, whole=False)
        for function in (db.release, db.evaluate.report):
            names = run(function, names)
        yield names


@pytest.mark.parametrize("name", [pytest.param(name, id=name.removeprefix("doublure.")) for name in modules()])
def test_examples_are_as_shown(name, world):
    run(importlib.import_module(name), world)


@pytest.mark.parametrize("name", list(modules()))
def test_every_example_is_found(name):
    """Doctest looks into functions, classes and properties; not into what is cached, or within a function."""
    module = importlib.import_module(name)
    found = sum(len(test.examples) for test in doctest.DocTestFinder().find(module, name, module))
    assert found == inspect.getsource(module).count(">>> ")


def test_every_public_name_has_an_example():
    bare = []
    for owner, names in DOCUMENTED.items():
        members = {name: getattr(owner, name) for name in names.split()}
        if inspect.isclass(owner):  # a property, not what it returns
            members = {owner.__name__: owner} | {name: inspect.getattr_static(owner, name) for name in members}
        bare += [name for name, member in members.items() if ">>> " not in (inspect.getdoc(member) or "")]
    assert bare == []
    assert ">>> " in db.__doc__
    public = {name for name in db.__all__ if not inspect.ismodule(getattr(db, name))}
    assert public <= {getattr(owner, "__name__", "") for owner in DOCUMENTED} | set(DOCUMENTED[db].split())
