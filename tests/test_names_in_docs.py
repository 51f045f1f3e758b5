"""Whatever is asked for by name stands in the page that describes it, and in the help of the flag that takes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

import doublure as db
from doublure.attack.registry import GROUPS
from doublure.cli.main import app
from doublure.cli.options import LISTS, with_names
from doublure.drafting.metadata.codebook import KEYS, further
from doublure.drafting.metadata.registry import FORMS, OWN
from doublure.measures.images.classifiers import CLASSIFIERS
from doublure.measures.images.feature_extractors import NAMES as EXTRACTORS
from doublure.methods.registry import METHODS
from doublure.schema import messages
from doublure.schema.columns import TYPES
from doublure.schema.kinds import KINDS

ROOT = Path(__file__).resolve().parents[1]
HEADING, ROW, CODE = r"^## `%s`", r"^\| `%s` \|", r"`(?:[\w-]+:? )*\"?%s\"?[`,]"
PAGES = {
    "a method": (METHODS, "docs/methods.md", HEADING),
    "a method, in short": (METHODS, "README.md", ROW),
    "a column type": (TYPES, "docs/schema.md", ROW),
    "a key of the codebook": ((*KEYS, *further()), "docs/schema.md", CODE),
    "a form of metadata": (FORMS.keys() - {OWN}, "docs/schema.md", CODE),
    "a feature extractor": (EXTRACTORS, "docs/images.md", CODE),
    "a classifier of images": (CLASSIFIERS, "docs/images.md", CODE),
}
HELP = {
    ("plan", "--method"): ("auto", *METHODS),
    ("fit", "--method"): ("auto", *METHODS),
    ("audit", "--attack"): GROUPS,
    ("audit", "--kind"): KINDS,
    ("schema draft", "--kind"): KINDS,
    ("schema draft", "--from"): FORMS,
    ("label curve", "--classifier"): CLASSIFIERS,
    ("evaluate", "--features"): (*EXTRACTORS, "inception-v3"),
}


@pytest.mark.parametrize("what", PAGES)
def test_every_name_is_described(what):
    names, page, form = PAGES[what]
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in names if not re.search(form % re.escape(name), text, flags=re.MULTILINE)] == []


def test_no_method_is_described_that_there_is_not():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    described = [
        name for line in re.findall(r"^## (`.*)$", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    ]
    assert set(described) == set(METHODS)


@pytest.mark.parametrize(("verb", "flag"), HELP)
def test_help_lists_what_a_flag_takes(verb, flag):
    command = typer.main.get_command(app)
    for word in verb.split():
        command = command.commands[word]
    with typer.Context(command, info_name=f"doublure {verb}") as context:
        command.get_help(context)
    (said,) = [parameter.help for parameter in command.params if flag in parameter.opts]
    assert [name for name in HELP[verb, flag] if not re.search(rf"\b{re.escape(name)}\b", said)] == []


def test_what_stands_for_a_list_is_replaced():
    assert [one for one in LISTS if with_names(f"{{{one}}}").startswith("{")] == []
    assert with_names("{max_silos}") == "{max_silos}"


def test_a_wrong_kind_is_told_all_kinds():
    assert [name for name in KINDS if name not in messages._FORMS["kind"]] == []
    with pytest.raises(db.errors.SchemaError, match="must be table, images, series or relational"):
        db.Schema.parse("{doublure: 1, kind: [], units: 5}")
