"""YAML 1.2 reader: ``no`` is a word, ``12:30`` is text, and keys are unique."""

from __future__ import annotations

import gc
import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import yaml

from doublure.errors import InputError, SchemaError, printable

_LARGEST_FILE = 50_000_000
_DEEPEST = 50
_MOST_VALUES = _LARGEST_FILE // 2
"""Values that aliases may stand for, as many as the largest file can have: a letter and a comma each."""
_PLAIN_NAME = re.compile(r"[\w .-]{1,60}")
_DAMAGED = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)

# libyaml parses a hundred thousand values in seconds rather than minutes; some builds of PyYAML come without it.
_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FastDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(_FastLoader):  # type: ignore[misc]  # one of two classes, chosen at run time
    """The core schema of YAML 1.2: null, true/false, integers, floats; everything else is text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own shape

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # Text needs no construction; PyYAML's generic path takes seconds for a million words.
        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        return super().construct_object(node, deep=deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable) or key in seen:
                # A damaged line may end up as a key, with the values that stood on it.
                named = f"the key {key}" if isinstance(key, str) and _PLAIN_NAME.fullmatch(key) else "a key"
                problem = f"{named} stands twice, or is no plain text"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_TEXT = "tag:yaml.org,2002:str"
_CORE_SCHEMA = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", [*"tTfF"]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", [*"-+0123456789"]),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", [*"-+0123456789."]),
)
for _tag, _pattern, _first in _CORE_SCHEMA:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)
_Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))


class _Dumper(_FastDumper):  # type: ignore[misc]  # one of two classes, chosen at run time
    """Block mappings with flow lists; quotes text that YAML 1.1 or 1.2 would read as something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Keep a text on its line: PyYAML would fold one with line breaks, or write invisible characters as such."""
    style = None if text.isprintable() else '"'
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


for _tag, _pattern, _first in (*_CORE_SCHEMA, ("bool", r"^[yYnN]$", [*"yYnN"])):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)
_Dumper.add_representer(
    list, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)
)
_Dumper.add_representer(str, _represent_text)


def load(path: Path, what: str) -> Any:
    """Read one YAML file.

    Raises:
        InputError: The file is missing, too large, not text, or not YAML.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SchemaError("is larger than 50 MB", field=path.name, remedy=f"give a {what} file")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy=f"give the path of a {what}") from None
    except (OSError, UnicodeDecodeError):
        raise InputError("cannot be read as UTF-8 text", field=path, remedy=f"give a {what} file") from None
    return parse(text, path.name)


def parse(text: str, name: str) -> Any:
    """Parse YAML text; ``name`` is named in errors.

    Raises:
        SchemaError: The text is not YAML, or nested more than 50 deep.
    """
    try:
        with _no_collection():
            _check_extent(text)
            return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except _DAMAGED as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = printable(getattr(error, "problem", None) or "not well formed")
        raise SchemaError(f"is not valid YAML{where}: {problem}", field=name, remedy="fix that line") from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector, which would walk a million live nodes again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _check_extent(text: str) -> None:
    """Refuse deep nesting, by which PyYAML descends, and aliases of aliases that stand for millions of values."""
    open_ones: list[tuple[str | None, int]] = []
    anchored: dict[str, int] = {}
    values = 0
    for event in yaml.parse(text, Loader=_FastLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_ones.append((event.anchor, values))
            if len(open_ones) > _DEEPEST:
                raise _too_much(f"nested more than {_DEEPEST} deep", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_ones.pop()
            values += 1
            if anchor is not None:
                anchored[anchor] = values - before
        elif isinstance(event, yaml.AliasEvent):
            values += anchored.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
        if values > _MOST_VALUES:
            raise _too_much("its aliases stand for too many values", event)


def _too_much(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=cast("yaml.Mark", event.start_mark))


def dump(data: object) -> str:
    """Return YAML text that :func:`parse` reads back to the same data."""
    return _dumped(data, width=110, default_flow_style=False)


def inline(data: object) -> str:
    """Return YAML text on one line, for a column of a schema."""
    return _dumped(data, width=10**9, default_flow_style=True).removesuffix("\n").removesuffix("\n...")


def _dumped(data: object, **form: Any) -> str:
    with _no_collection():
        return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **form))
