"""The same without the studio: each step as commands and as Python, from the decisions alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from doublure.errors import InputError
from doublure.methods.method import customary_delta
from doublure.studio.project import BUNDLE, PLAN, RUN, DataSource, Project


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
    table = [] if source.table is None else ["--table", ",".join(source.tables)]
    root = [] if not project.root else ["--root", project.root]
    keys = {key: project.keys[key] for key in READING if key in project.keys}
    keys |= {"kind": project.kind} if project.kind == "series" else {}  # no form tells it
    form = [word for key, said in keys.items() for word in (f"--{key.replace('_', '-')}", said)]
    book = []
    if project.codebook is not None:
        own = project.form == "codebook"
        book = ["--codebook", project.codebook] if own else ["--from", project.form, project.codebook]
    commands = command("schema", "draft", operand(source.place), *table, *book, *root, *form, "-o", _draft_name(out))
    given = [repr(source.place)] + ([] if project.codebook is None else [repr(project.codebook)])
    if project.codebook is not None and project.form != "codebook":
        given.append(f"form={project.form!r}")
    given += [f"root={project.root!r}"] if project.root else []
    given += [f"{key}={said!r}" for key, said in keys.items()]
    python = f"schema = db.draft({', '.join(given)})"
    if source.table is not None:
        python = (
            "from doublure.data.databases.header import empty_table\n\n"
            f"header = {_header(source)}\n"
            f"schema = db.draft({', '.join(['header', *given[1:]])})"
        )
    return Same(commands, f"import doublure as db\n\n{python}\nprint(schema.undeclared)")


READING = ("encoding", "delimiter", "skip_rows")
"""Keys of a schema that say how its text is read, as options of a draft."""


def _draft_name(schema_file: str) -> str:
    """Return the name of a draft beside a schema, which it would be refused to write over."""
    return schema_file.removesuffix(".schema.yaml") + ".draft.yaml"


def _header(source: DataSource) -> str:
    if len(source.tables) < 2:
        return f"empty_table({source.place!r}, {source.table!r})"
    return f"{{name: empty_table({source.place!r}, name) for name in {list(source.tables)!r}}}"


def _in_database(source: DataSource) -> list[str]:
    """Return the words that name the table of a database; related ones are read by their own names."""
    return ["--table", source.tables[0]] if len(source.tables) == 1 else []


def schema(project: Project) -> Same | None:
    """Return how the schema is checked."""
    source, out = project.source, project.schema_file
    if source is None or out is None:
        return None
    table = _in_database(source)
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


# -- the fit and what follows it: words of commands, which the screens run as they show them -----------------------


def fit_words(project: Project) -> list[str]:
    """Return the command of the fit, without ``doublure``.

    Raises:
        InputError: There is no plan yet.
    """
    source, said = project.source, project.answers.get("fit", {})
    if source is None or project.ledger is None:
        raise InputError("is not made yet", field="plan", remedy="choose the data and make the plan under Budget first")
    table = _in_database(source)
    again = ["--again"] if said.get("again") else []
    return ["fit", operand(source.place), *table, "--plan", PLAN, "--ledger", operand(project.ledger),
            "-o", fitted(project), *again]  # fmt: skip


def resume_words(project: Project) -> list[str]:
    """Return the command that goes on with a fit."""
    words = [word for word in fit_words(project) if word != "--again"]
    at = words.index("--plan")
    return [*words[:at], *words[at + 2 :], "--resume"]


def fitted(project: Project) -> str:
    """Return the name of the run folder."""
    return str(project.answers.get("fit", {}).get("run", RUN))


def real_data(project: Project) -> str:
    """Return the file of real rows to compare with; empty where the data are in a database and none is chosen."""
    source = project.source
    own = "" if source is None or source.table is not None else source.place
    return str(project.answers.get("look", {}).get("real") or own)


def evaluate_words(project: Project) -> list[str]:
    """Return the command of the evaluation."""
    said = project.answers.get("look", {})
    holdout = ["--holdout", operand(said["holdout"])] if said.get("holdout") else []
    examples = ["--examples", str(said["examples"])] if said.get("examples") else []
    return ["evaluate", operand(fitted(project)), "--real", operand(real_data(project)), *holdout, *examples]


def audit_words(project: Project) -> list[str]:
    """Return the command of the audit."""
    said = project.answers.get("look", {})
    holdout = ["--holdout", operand(said["holdout"])] if said.get("holdout") else []
    return ["audit", operand(fitted(project)), "--attack", QUICK, "--real", operand(real_data(project)), *holdout]


def release_words(project: Project) -> list[str]:
    """Return the command of the release."""
    said = project.answers.get("release", {})
    told = [word for key in DETAILS if said.get(key) for word in (f"--{key}", said[key])]
    told += [] if project.ledger is None else ["--ledger", operand(project.ledger)]
    if said.get("generator"):
        return ["release", operand(fitted(project)), "--generator", "-o", released(project), "--zip", *told]
    forms = [word for form in said.get("formats", ()) for word in ("--format", form)]
    flags = [f"--{key.replace('_', '-')}" for key in ("tables", "spreadsheet_safe") if said.get(key)]
    rows = str(said.get("rows", ""))
    return ["release", operand(fitted(project)), "-n", rows, "-o", released(project), "--zip", *forms, *flags, *told]


def released(project: Project) -> str:
    """Return the name of the bundle's folder."""
    return str(project.answers.get("release", {}).get("bundle", BUNDLE))


def verify_words(project: Project) -> list[str]:
    """Return the command that checks the bundle against the ledger."""
    ledger = [] if project.ledger is None else ["--ledger", operand(project.ledger)]
    return ["verify", operand(released(project)), *ledger]


def dossier_words(project: Project) -> list[str]:
    """Return the command of the privacy file."""
    said = project.answers.get("decided", {})
    told = [word for key in DECIDED if said.get(key) for word in (f"--{key}", said[key])]
    ledger = [] if project.ledger is None else ["--ledger", operand(project.ledger)]
    return ["dossier", operand(fitted(project)), *ledger, *told, "--force"]


QUICK = "quick"
DECIDED = ("name", "role", "date")
"""The person who decided on cap and ε: in project.yaml and in the privacy file, which is internal."""
DETAILS = ("title", "description", "licence", "citation", "contact")


def fit(project: Project) -> Same | None:
    """Return how the fit is made."""
    source = project.source
    if source is None or project.ledger is None or "fit" not in project.answers:
        return None
    table = f", table={source.tables[0]!r}" if len(source.tables) == 1 else ""
    again = ", again=True" if project.answers["fit"].get("again") else ""
    python = (
        f"import doublure as db\n\nplan = db.Plan.load({PLAN!r})\n"
        f"syn = db.fit({source.place!r}, plan, ledger={project.ledger!r}, out={fitted(project)!r}{table}{again})"
    )
    return Same(command(*fit_words(project)), python)


def look(project: Project) -> Same | None:
    """Return how the run is evaluated, and audited if that was asked for."""
    said = project.answers.get("look")
    if said is None or not real_data(project):
        return None
    holdout = f", holdout={said['holdout']!r}" if said.get("holdout") else ""
    examples = f", examples={said['examples']!r}" if said.get("examples") else ""
    lines, python = [command(*evaluate_words(project))], [
        "import doublure as db", "", f"syn = db.load({fitted(project)!r})",
        f"report = db.evaluate.report(syn, {real_data(project)!r}{holdout}{examples})",
        f"report.save({fitted(project) + '/internal/report.html'!r})",
    ]  # fmt: skip
    if said.get("audit"):
        lines.append(command(*audit_words(project)))
        attacks = f"audit({fitted(project)!r}, [{QUICK!r}], {real_data(project)!r}, {said.get('holdout') or None!r})"
        python += ["", "from doublure.attack.registry import named", "from doublure.auditing import audit", "",
                   f"print({attacks.replace(f'[{QUICK!r}]', f'named([{QUICK!r}])')})"]  # fmt: skip
    return Same("\n".join(lines), "\n".join(python))


def release(project: Project) -> Same | None:
    """Return how the bundle is written and checked."""
    said = project.answers.get("release")
    if said is None or "fit" not in project.answers:
        return None
    told = "".join(f", {key}={said[key]!r}" for key in DETAILS if said.get(key))
    told += "" if project.ledger is None else f", ledger={project.ledger!r}"
    head = f"import doublure as db\n\nsyn = db.load({fitted(project)!r})\n"
    if said.get("generator"):
        head += f"from doublure.releasing.generator import publish\n\npublish(syn, {released(project)!r}{told})"
    else:
        forms = f", formats={list(said['formats'])!r}" if said.get("formats") else ""
        flags = "".join(f", {key}=True" for key in ("tables", "spreadsheet_safe") if said.get(key))
        head += f"bundle = db.release(syn, {released(project)!r}, n={said.get('rows')!r}{forms}{flags}{told})"
    ledger = "" if project.ledger is None else f", ledger={project.ledger!r}"
    python = f"{head}\nprint(db.verify({released(project)!r}{ledger}))"
    return Same("\n".join([command(*release_words(project)), command(*verify_words(project))]), python)


def operand(path: str) -> str:
    """Return a path as a word of a command that no option parser takes for a flag.

    Example:
        >>> from doublure.studio.script import operand
        >>> operand("people.csv"), operand("-rf.csv")
        ('people.csv', './-rf.csv')
    """
    return f"./{path}" if path.startswith("-") else path


COMMANDS: Mapping[str, Callable[[Project], Same | None]] = {
    "schema": schema,
    "budget": budget,
    "fit": fit,
    "look": look,
    "release": release,
}
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
