"""The same without the studio: each step as commands and as Python, from the decisions alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from doublure.methods.method import customary_delta
from doublure.studio.project import PLAN, Project


class Same(NamedTuple):
    """The same without the studio.

    Attributes:
        commands: On the command line, in the project's folder.
        python: In Python, in the project's folder.
    """

    commands: str
    python: str


def data(project: Project) -> Same | None:
    """Return how the schema was drafted."""
    source, out = project.source, project.schema_file
    if source is None or out is None:
        return None
    table = [] if source.table is None else ["--table", source.table]
    book = []
    if project.codebook is not None:
        own = project.form == "codebook"
        book = ["--codebook", project.codebook] if own else ["--from", project.form, project.codebook]
    commands = command("schema", "draft", source.place, *table, *book, "-o", out)
    given = [repr(source.place)] + ([] if project.codebook is None else [repr(project.codebook)])
    if project.codebook is not None and project.form != "codebook":
        given.append(f"form={project.form!r}")
    python = f"schema = db.draft({', '.join(given)})"
    if source.table is not None:
        python = (
            "from doublure.data.databases.header import empty_table\n\n"
            f"header = empty_table({source.place!r}, {source.table!r})\n"
            f"schema = db.draft({', '.join(['header', *given[1:]])})"
        )
    return Same(commands, f"import doublure as db\n\n{python}")


def schema(project: Project) -> Same | None:
    """Return how the schema is checked."""
    source, out = project.source, project.schema_file
    if source is None or out is None:
        return None
    table = [] if source.table is None else ["--table", source.table]
    python = f"import doublure as db\n\nschema = db.Schema.load({out!r})\nprint(schema.undeclared)"
    return Same(command("schema", "check", out, "--data", source.place, *table), python)


def budget(project: Project) -> Same | None:
    """Return how the ledger is made and the run planned."""
    if project.schema_file is None or project.ledger is None or project.delta is None:
        return None
    cap = project.answers.get("budget", {})
    lines = []
    python = ["import doublure as db", ""]
    if "cap_epsilon" in cap:
        dataset, total, chance = cap["dataset"], cap["cap_epsilon"], cap["cap_delta"]
        init = command(
            "budget", "init", project.ledger, "--dataset", dataset, "--epsilon", f"{total:g}", "--delta", f"{chance:g}"
        )
        lines.append(f"[ -e {shlex.quote(project.ledger)} ] || {init}")
        python.append(
            f"ledger = db.Ledger.open_or_create({project.ledger!r}, dataset={dataset!r}, "
            f"epsilon={total!r}, delta={chance!r})"
        )
    else:
        python.append(f"ledger = db.Ledger.open({project.ledger!r})")
    chosen = [] if project.method == "auto" else ["--method", project.method]
    figures = ["--epsilon", f"{project.epsilon!r}", "--delta", f"{project.delta!r}"]
    lines.append(command("plan", project.schema_file, *chosen, *figures, "-o", PLAN))
    method = "" if project.method == "auto" else f", method={project.method!r}"
    python.append(
        f"plan = db.plan({project.schema_file!r}, epsilon={project.epsilon!r}, delta={project.delta!r}{method})"
    )
    python.append(f"plan.save({PLAN!r})")
    return Same("\n".join(lines), "\n".join(python))


COMMANDS: Mapping[str, Callable[[Project], Same | None]] = {"schema": schema, "budget": budget}
"""The steps whose commands are saved, in order: from the schema on, all that can be run again."""


def commands_file(project: Project) -> str:
    """Return the saved commands: run in the folder, they do without the studio what was decided in it."""
    lines = ["#!/bin/sh", "# Written by doublure studio: what was decided there, run again without it.", "set -e"]
    lines.append('cd "$(dirname "$0")"')
    drafted = data(project)
    if drafted is not None and not project.own_schema:
        lines += ["# The schema began with:", *(f"#   {line}" for line in drafted.commands.splitlines())]
    for of in COMMANDS.values():
        said = of(project)
        lines += [] if said is None else said.commands.splitlines()
    return "\n".join(lines) + "\n"


def command(*words: object) -> str:
    """Return a command, with each word quoted for a shell.

    Example:
        >>> from doublure.studio.script import command
        >>> command("plan", "my schema.yaml", "-o", "plan.json")
        "doublure plan 'my schema.yaml' -o plan.json"
    """
    return shlex.join(["doublure", *map(str, words)])


def usual_delta(units: Any) -> float:
    """Return the δ that a form begins with: the customary one of a public number of units."""
    return float(f"{customary_delta(units):.0e}")
