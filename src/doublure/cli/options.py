"""The options that several verbs share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from doublure.errors import SettingError

PLACE = "PATH"
"""The name in the help of an argument that takes a path or an address; it is text, as a ``Path`` loses a slash."""
LISTS = {
    "methods": "methods.registry:METHODS",
    "presets": "methods.presets:PRESETS",
    "groups": "attack.registry:GROUPS",
    "kinds": "schema.kinds:KINDS",
    "forms": "drafting.metadata.registry:FORMS",
    "classifiers": "measures.images.classifiers:CLASSIFIERS",
}
"""Placeholders such as {methods} in the help of a flag -> the table of names, which is imported for the help alone."""


def with_names(said: str) -> str:
    """Return the help of a flag, with the names that it lists."""
    for one, place in LISTS.items():
        if (mark := f"{{{one}}}") in said:
            *others, last = resolve_name(f"doublure.{place}")
            said = said.replace(mark, f"{', '.join(others)} or {last}")
    return said


def _methods(incomplete: str) -> list[str]:
    from doublure.methods.registry import METHODS

    return [name for name in METHODS.names if name.startswith(incomplete)]


Again = Annotated[
    bool, typer.Option("--again", help="Pay once more for a plan that the ledger was charged for already.")
]
InDatabase = Annotated[
    str | None,
    typer.Option(
        "--table",
        help="In a database, the table or view of records; for a draft of several: a,b.",
    ),
]
OfRows = Annotated[
    str | None, typer.Option("--query", help="Or a query, each of whose rows is made of one row; see docs/sources.md.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read flags from a YAML file.")]
Device = Annotated[str, typer.Option(help="Where to compute, such as cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads.")]
FitThreads = Annotated[int | None, typer.Option(min=1, help="CPU threads; one where no torch is needed, if left out.")]
Method = Annotated[
    str | None,
    typer.Option(
        autocompletion=_methods,
        help="Which method trains: {methods}; auto, if left out, chooses by schema and ε. See docs/methods.md.",
    ),
]
Epsilon = Annotated[
    float | None, typer.Option(help="The total ε, learned facts included; for bayesgan the ceiling on ε_μ.")
]
Delta = Annotated[float | None, typer.Option(help="The total δ; for bayesgan δ_μ.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method; may be repeated.")
]
Sampling = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A setting that only sampling asks, such as sampled_spread; may be repeated."
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--given",
        metavar="COLUMN=CELLS",
        help="Every row has one of these cells: age=40, age=30..40, age=65.., job=cook,nurse, or job= for missing; "
        "may be repeated.",
    ),
]
Shares = Annotated[
    list[str] | None,
    typer.Option(
        "--shares",
        metavar="COLUMN=CELLS:SHARE,…",
        help="How many of the rows have which cells: sex=f:0.5,m:0.5 or age=18..64:0.8,65..:0.2; may be repeated.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Repeats what is drawn here.")]
FitSeed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Fixes initial weights and public draws; a fit's noise is fresh each time."),
]


_FLAGS = {
    "schema": "the schema file as an argument",
    "method": "--method",
    "epsilon": "--epsilon",
    "delta": "--delta",
}


def pairs(given: list[str] | None, flag: str) -> dict[str, str]:
    """Read ``KEY=VALUE`` words.

    Raises:
        SettingError: A word has no ``=`` or a key stands twice.
    """
    found: dict[str, str] = {}
    for word in given or []:
        key, mark, value = word.partition("=")
        if not mark or not key:
            raise SettingError("is not KEY=VALUE", field=f"{flag} {word}", remedy=f"write {flag} key=value")
        if key in found:
            raise SettingError("is given twice", field=f"{flag} {key}", remedy="give it once")
        found[key] = value
    return found


def shares(given: list[str] | None) -> dict[str, dict[str, float]]:
    """Read ``COLUMN=CELLS:SHARE,CELLS:SHARE`` words; a comma within cells belongs to them.

    Raises:
        SettingError: A word has another form.
    """
    found: dict[str, dict[str, float]] = {}
    for name, text in pairs(given, "--shares").items():
        own: dict[str, float] = {}
        rest = f"{text},"
        while rest:
            entry = re.match(r"(.*?):\s*([0-9.]+(?:e-?[0-9]+)?)\s*,", rest)
            if entry is None or entry[1].strip() in own or entry[2].count(".") > 1:
                remedy = "write --shares column=a:0.5,b:0.5, every value once"
                raise SettingError("is not COLUMN=CELLS:SHARE,…", field=f"--shares {name}", remedy=remedy)
            own[entry[1].strip()] = float(entry[2])
            rest = rest[entry.end() :]
        found[name] = own
    return found


def settings(given: list[str] | None, of: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Read settings, numbers and words as YAML reads them.

    Args:
        given: The words.
        of: The function that takes them, besides its own arguments.

    Raises:
        SettingError: A word is not KEY=VALUE, or names what has a flag of its own.
    """
    from doublure.support import yaml12 as yaml_text

    found = pairs(given, "--set")
    own = {} if of is None else inspect.signature(of).parameters
    for key in found:
        if key in own and own[key].kind is not inspect.Parameter.VAR_KEYWORD:
            remedy = "leave it out; what has a place or a flag of its own is no setting"
            raise SettingError("is no setting", field=f"--set {key}", remedy=remedy)
        if key in _FLAGS:
            remedy = f"write {_FLAGS[key]}, or leave it out where there is none"
            raise SettingError("is no setting", field=f"--set {key}", remedy=remedy)
    return {key: yaml_text.parse(value, f"--set {key}") for key, value in found.items()}
