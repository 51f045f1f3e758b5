"""Write the reference pages of the documentation from signatures and docstrings, and copy the other pages beside them.

    python scripts/make_reference.py FOLDER      # scripts/docs does that

``FOLDER/reference`` gets pages for the package, each public module, settings, and the command line. Nothing of it is
committed: the docstrings are the source.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import re
import shutil
import textwrap
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

import doublure
from doublure.cli.main import app
from doublure.cli.options import with_names
from doublure.methods import registry
from doublure.methods.presets import PRESETS, written
from doublure.public.settings import TYPES as PUBLIC
from doublure.training.settings import MethodSettings

DOCS = Path(__file__).resolve().parents[1] / "docs"
MODULES = tuple(name for name in doublure.__all__ if inspect.ismodule(getattr(doublure, name)))
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""What a page of evidence begins with on the site: a search finds what one uses, not what was measured."""
SECTIONS = {"Args", "Arguments", "Attributes", "Returns", "Yields", "Raises", "Example", "Examples", "Note", "Source"}
RULE = re.compile(r"^ *={3,}(?: +={3,})+ *$", flags=re.MULTILINE)
_KINDS = {
    "table": "tables", "images": "images", "series": "time series", "relational": "related tables",
    "visits": "rows of a unit",
}  # fmt: skip
_LISTS = {"Args", "Arguments", "Attributes", "Raises"}


def marked(text: str) -> str:
    """Return prose of a docstring as Markdown: roles and double backticks become code."""
    blocks = text.split("\n\n")
    return "\n\n".join(_drawn(block) if RULE.search(block) else _prose(block) for block in blocks)


def _prose(text: str) -> str:
    """Return a block of prose as Markdown."""
    text = re.sub(r":\w+(?::\w+)?:`~?([^`]+)`", lambda role: f"`{role[1]}`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(r"(?<![`\w])\*\*?(args|kwargs|settings|more)\b", r"`\g<0>`", text)


def _drawn(block: str) -> str:
    """Return a table of reStructuredText as it is drawn, and the prose about it."""
    lines = block.splitlines()
    rules = [number for number, line in enumerate(lines) if RULE.fullmatch(line)]
    first, last = rules[0], rules[-1] + 1
    table = textwrap.dedent("\n".join(lines[first:last])).replace("``", "")
    parts = [_prose("\n".join(lines[:first])), f"```text\n{table}\n```", _prose("\n".join(lines[last:]))]
    return "\n\n".join(part for part in parts if part)


def entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of a list and what is said of each."""
    for block in re.split(r"\n(?=\S)", textwrap.dedent("\n".join(lines)).strip()):
        name, _, said = block.partition(":")
        yield name.strip(), " ".join(said.split())


def docstring(thing: Any) -> str:
    """Return a Google docstring as Markdown."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    parts: dict[str, list[str]] = {"": []}
    head = ""
    for line in lines:
        found = re.fullmatch(r"(\w+):", line)
        if found and found[1] in SECTIONS:
            head = found[1]
            parts.setdefault(head, [])
        else:
            parts[head].append(line)
    text = [marked("\n".join(parts.pop("")).strip())]
    for name, body in parts.items():
        if name in _LISTS:
            rows = [f"- **`{each}`**: {marked(said)}" for each, said in entries(body) if each]
            text.append(f"**{name}**\n\n" + "\n".join(rows))
        elif name.startswith("Example"):
            text.append(f"**{name}**\n\n```pycon\n{textwrap.dedent(chr(10).join(body)).strip()}\n```")
        else:
            text.append(f"**{name}**: {marked(' '.join(' '.join(body).split()))}")
    return "\n\n".join(part for part in text if part)


def signature(name: str, thing: Any) -> str:
    """Return a signature, a parameter a line where one line is too short."""
    try:
        own = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    words, before = [], None
    for parameter in own.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            words.append("*")
        before = parameter.kind
        words.append(_parameter(parameter))
    back = "" if own.return_annotation is own.empty else f" -> {_annotation(own.return_annotation)}"
    line = f"{name}({', '.join(words)}){back}"
    return line if len(line) <= 88 else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){back}"


def _annotation(found: Any) -> str:
    """Return a type as it is written, without the folders of its modules."""
    written = found if isinstance(found, str) else inspect.formatannotation(found)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", written)


def _parameter(parameter: inspect.Parameter) -> str:
    """Return a parameter as it is written."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    typed = parameter.annotation is not parameter.empty
    text += f": {_annotation(parameter.annotation)}" if typed else ""
    if parameter.default is parameter.empty:
        return text
    default = repr(parameter.default)
    default = "..." if default.startswith("<") else re.sub(r"PosixPath\((.+?)\)", r"Path(\1)", default)
    return f"{text} = {default}" if typed else f"{text}={default}"


def members(thing: type) -> Iterator[tuple[str, Any]]:
    """Yield a class's own public methods and properties that say what they do."""
    for name, member in vars(thing).items():
        bare = getattr(member, "__func__", getattr(member, "fget", member))
        if not name.startswith(("_", "model_")) and inspect.isroutine(bare) and inspect.getdoc(bare):
            yield name, member


def entry(prefix: str, name: str, thing: Any, level: int) -> str:
    """Return what the reference says of one name."""
    heading = "#" * level
    full = f"{prefix}.{name}"
    text = [f"{heading} `{full}`"]
    if inspect.isclass(thing):
        plain = issubclass(thing, BaseException)
        text += [] if plain else [f"```python\n{signature(name, thing)}\n```"]
        text += [docstring(thing)]
        text += [entry(full, own, member, level + 1) for own, member in members(thing)]
    elif isinstance(thing, property):
        text += [docstring(thing.fget)]
    elif callable(thing) or isinstance(thing, classmethod | staticmethod):
        bare = getattr(thing, "__func__", thing)
        text += [f"```python\n{signature(name, bare)}\n```", docstring(bare)]
    else:
        text += [f"`{thing!r}`" if isinstance(thing, str | int | float | tuple) else ""]
    return "\n\n".join(part for part in text if part)


def names(module: types.ModuleType) -> list[str]:
    """Return the public names of a module: those it lists, or what it defines, and the modules of a package."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    below = [each.name for each in pkgutil.iter_modules(getattr(module, "__path__", []))]
    own = [name for name, thing in vars(module).items() if _home(thing).startswith(module.__name__)]
    return sorted(name for name in {*below, *own} if not name.startswith("_"))


def _home(thing: Any) -> str:
    """Return the module that defines a class or a function."""
    return (getattr(thing, "__module__", None) or "") if inspect.isclass(thing) or inspect.isroutine(thing) else ""


def child(module: types.ModuleType, name: str) -> Any:
    """Return what a name of a module means."""
    return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{module.__name__}.{name}")


def page(title: str, said: str, parts: list[str]) -> str:
    """Return a page."""
    return "\n\n".join([f"# {title}", said, *parts]).strip() + "\n"


def python_pages() -> Iterator[tuple[str, str]]:
    """Yield the file names and texts of the pages about Python."""
    top = [name for name in names(doublure) if name not in MODULES]
    links = "\n".join(f"- [`doublure.{name}`]({name}.md)" for name in MODULES)
    said = f"```python\nimport doublure as db\n```\n\nModules:\n\n{links}"
    yield "python.md", page("Python", said, [entry("db", name, getattr(doublure, name), 2) for name in top])
    for name in MODULES:
        module = getattr(doublure, name)
        parts = []
        for own in names(module):
            thing = child(module, own)
            if inspect.ismodule(thing):
                public = [(each, getattr(thing, each)) for each in names(thing) if hasattr(thing, each)]
                inner = [entry(f"db.{name}.{own}", each, it, 3) for each, it in public if not inspect.ismodule(it)]
                parts += [f"## `db.{name}.{own}`", docstring(thing), *inner]
            else:
                parts.append(entry(f"db.{name}", own, thing, 2))
        yield f"{name}.md", page(f"`doublure.{name}`", docstring(module), parts)


def command(path: str, found: Any, level: int = 2) -> str:
    """Return what the reference says of a command and of those below it."""
    text = [f"{'#' * level} `{path}`", (found.help or "").strip()]
    below = getattr(found, "commands", {})
    if below:
        return "\n\n".join([*text, *(command(f"{path} {name}", each, level + 1) for name, each in below.items())])
    rows = []
    for parameter in found.params:
        if parameter.param_type_name == "option":
            what = ", ".join(f"`{each}`" for each in parameter.opts)
        else:
            what = f"`{(parameter.metavar or parameter.name or '').upper().strip('[]')}`"
        said = " ".join(with_names(getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
        rows.append(f"| {what} | {marked(said)} |")
    if rows:
        text.append("\n".join(["| argument | |", "|---|---|", *rows]))
    return "\n\n".join(text)


def command_page() -> str:
    """Return the page about the command line."""
    root = typer.main.get_command(app)
    codes = "0 done, 2 bad input, 3 budget refused, 4 a check said no, 130 interrupted"
    said = f"Exit codes: {codes}. Every command takes `--json`."
    return page("Command line", said, [command(f"doublure {name}", each) for name, each in root.commands.items()])


def settings_page() -> str:
    """Return the page of every method's settings, by kind of data, as the docstrings of their classes have them."""
    parts = []
    for name in registry.METHODS:
        found = registry.method(name).settings_type
        parts.append(f"## `{name}`")
        parts += _settings_tables(name, [found] if isinstance(found, type) else found.values())
    parts += ["## Presets", _presets_table()]
    parts += ["## `doublure public fit`", *_settings_tables("public fit", PUBLIC.values())]
    said = "Give a setting by `--set NAME=VALUE`, or as an argument of `db.plan`. With `null`, the plan chooses."
    return page("Settings", said, parts)


def _presets_table() -> str:
    """Return a table of what each preset sets; all else keeps the defaults above."""
    rows = [
        f"| `{name}` | {preset.paper} | `{preset.method}` on {_KINDS[kind]} | `{written(own)}` |"
        for name, preset in PRESETS.items()
        for kind, own in preset.settings.items()
    ]
    return "\n".join(["| preset | paper | method | sets |", "|---|---|---|---|", *rows])


def _settings_tables(name: str, types: Iterable[type[MethodSettings]]) -> list[str]:
    """Return headings and tables of a method's settings."""
    return [part for each in types for part in (f"### `{name}` on {_KINDS[each.data]}", _settings_table(each))]


def _settings_table(settings: type[MethodSettings]) -> str:
    """Return a table of a class's settings: name, default and meaning; a class's own words precede its parents'."""
    said: dict[str, str] = {}
    for each in settings.__mro__:
        body = (inspect.cleandoc(each.__doc__ or "")).partition("\nAttributes:\n")[2].split("\n\n")[0]
        for names_, meaning in entries(body.splitlines()) if body else ():
            for name in names_.split(", "):
                said.setdefault(name, meaning)
    lines = []
    for name, field in settings.model_fields.items():
        default = "" if field.is_required() else f"`{json.dumps(field.get_default(call_default_factory=True))}`"
        lines.append(f"| `{name}` | {default} | {marked(said[name]).replace('|', chr(92) + '|')} |")
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *lines])


def write(folder: Path) -> None:
    """Copy the pages and write the reference beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    for page in (folder / "evidence").rglob("*.md"):
        page.write_text(UNSEARCHED + page.read_text(encoding="utf-8"), encoding="utf-8")
    reference = folder / "reference"
    reference.mkdir()
    for name, text in [*python_pages(), ("command-line.md", command_page()), ("settings.md", settings_page())]:
        (reference / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)


if __name__ == "__main__":
    main()
