"""The public surface is pinned, works after every submodule has been imported, and costs nothing to import."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import doublure as db

NAMES = {
    "Schema", "draft", "plan", "Plan", "fit", "load", "Synthesizer", "Ledger", "Guarantee", "release", "verify",
    "check", "audit", "synthesize", "evaluate", "attack", "datasets", "errors", "private",
}  # fmt: skip
MODULES = {"evaluate", "attack", "datasets", "errors", "private"}
FUNCTIONS = {"draft", "check", "plan", "fit", "load", "release", "verify", "audit", "synthesize"}
HEAVY = ("torch", "dp_accounting", "opendp", "sklearn", "scipy", "pandas", "pyarrow", "matplotlib")


def test_the_names_are_these():
    assert set(db.__all__) == NAMES
    assert set(db.__dir__()) >= NAMES


def _import_everything():
    for module in pkgutil.walk_packages(db.__path__, "doublure."):
        if module.name == "doublure.__main__":
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if (missing.name, module.name.rpartition(".")[0]) != ("flwr", "doublure.federated"):  # an extra
                raise


def test_the_names_mean_the_same_after_every_submodule_is_imported(small, tmp_path):
    _import_everything()
    for name in NAMES:
        found = getattr(db, name)
        wanted = inspect.ismodule if name in MODULES else callable if name in FUNCTIONS else inspect.isclass
        assert wanted(found), name
    schema = db.Schema.parse(small.declared_text)
    plan = db.plan(schema, method="gan", **small.tiny)
    assert isinstance(plan, db.Plan)
    assert isinstance(plan.guarantee, db.Guarantee)
    ledger = db.Ledger.create(tmp_path / "people.ledger", dataset="people", epsilon=1.0, delta=1e-5)
    syn = db.fit(small.frame(), plan, ledger=ledger)
    assert isinstance(syn, db.Synthesizer)
    syn.save(tmp_path / "run")
    card = db.release(db.load(tmp_path / "run"), tmp_path / "bundle", n=20).card
    assert card["method"] == "gan"
    assert db.datasets.names()
    assert issubclass(db.errors.BudgetRefused, db.errors.DoublureError)
    assert callable(db.evaluate.report)
    assert db.private.accounting.epsilon(1.1, 0.01, 10, 1e-5, "rdp") > 0


def test_a_name_that_is_not_there_is_an_attribute_error():
    assert not hasattr(db, "anonymise")


def _loaded_after(code: str) -> set[str]:
    """Run code in a fresh interpreter and return the top-level modules it has loaded."""
    tell = (
        "import json, sys; sys.stderr.write('\\n' + json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}\n{tell}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_importing_loads_nothing_heavy():
    loaded = _loaded_after("import doublure; assert doublure.__version__")
    assert "doublure" in loaded
    assert not loaded & set(HEAVY)


def test_help_loads_nothing_heavy():
    loaded = _loaded_after("from doublure.cli.main import app\napp(args=['--help'], standalone_mode=False)")
    assert "typer" in loaded
    assert not loaded & set(HEAVY)


def test_planning_without_privacy_needs_no_torch(small):
    text = repr(small.declared_text)
    loaded = _loaded_after(f"import doublure as db\ndb.plan(db.Schema.parse({text}), method='gan')")
    assert not loaded & {"torch", "opendp", "sklearn", "dp_accounting"}


def test_the_package_is_typed():
    assert (Path(db.__file__).parent / "py.typed").is_file()


def _functions():
    """Yield public functions and methods with their names: what a tool that reads type hints is given."""
    for name in dir(db):
        thing = getattr(db, name)
        members = vars(thing) if inspect.isclass(thing) else {}
        if inspect.ismodule(thing):
            listed = getattr(thing, "__all__", [each for each in vars(thing) if not each.startswith("_")])
            members = {each: getattr(thing, each) for each in listed if hasattr(thing, each)}
        for own, member in ({"": thing} | dict(members)).items():
            bare = getattr(member, "__func__", getattr(member, "fget", member))
            ours = inspect.isfunction(bare) and bare.__module__.startswith("doublure")
            if ours and not own.startswith("_"):
                yield f"{name}.{own}".rstrip("."), bare


def test_type_hints_of_public_functions_are_known_when_they_run():
    """The failure was a NameError: a type was imported for type checkers alone."""
    names = [name for name, function in _functions() if "return" in typing.get_type_hints(function)]
    assert set(names) >= FUNCTIONS | {"Synthesizer.sample", "Plan.explain", "evaluate.report", "datasets.load"}
