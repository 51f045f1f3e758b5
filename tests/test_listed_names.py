"""What dir() lists of public objects: what belongs to their subject, and no leftover of pydantic."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.evaluate import Report
from doublure.intervals import Result
from doublure.schema.columns import IntegerColumn

LEFTOVERS = {"parse_obj", "construct", "copy", "dict", "json", "from_orm", "schema_json", "update_forward_refs",
             "validate", "model_dump", "model_validate", "model_config", "model_fields", "model_copy", "_abc_impl",
             "__pydantic_fields__", "model_post_init"}  # fmt: skip


def listed(found):
    return {name for name in dir(found) if not name.startswith("__")}


FIND = {
    "schema": lambda small: small.declared,
    "plan": lambda small: small.plan,
    "settings": lambda small: small.plan.settings,
    "guarantee": lambda small: small.plan.guarantee,
    "column": lambda small: small.declared.columns["age"],
    "synthesizer": lambda small: db.load(small.run),
}


@pytest.mark.parametrize("name", FIND)
def test_no_leftover_is_listed_of_an_object(small, name):
    assert not set(dir(FIND[name](small))) & LEFTOVERS


@pytest.mark.parametrize("found", [db.Schema, db.Guarantee, db.Plan, db.Synthesizer, db.Ledger, Report, IntegerColumn])
def test_no_leftover_is_listed_of_a_class(found):
    assert not set(dir(found)) & LEFTOVERS


def test_what_is_the_objects_own_is_listed(small):
    assert {"columns", "units", "target", "load", "save", "sha256", "to_yaml"} <= listed(small.declared)
    assert {"sentence", "epsilon", "watermark", "to_json"} <= listed(small.plan.guarantee)
    assert {"type", "bounds", "missing", "unit"} <= listed(small.declared.columns["age"])
    assert {"scores", "plot", "show", "save"} <= listed(Report)


def test_a_name_of_pydantics_that_means_something_of_ours_is_listed():
    class Mine(Result):
        def copy(self):
            """Mean something else."""

    assert "copy" in dir(Mine)
    assert "copy" in dir(Mine())
    assert "json" not in dir(Mine)


def test_everything_still_works(small):
    assert small.declared.model_copy() == small.declared
    assert "model_copy" not in dir(small.declared)


def test_the_package_lists_its_public_names_alone():
    assert dir(db) == sorted([*db.__all__, "__version__"])
