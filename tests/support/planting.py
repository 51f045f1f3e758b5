"""Plant a mutant: one edit of one production function, anchored to its syntax tree.

A function is found by its qualified name in the tree of its module, and a node within it by its own syntax: an
expression, a keyword argument, or one or more statements side by side. Layout and comments make no difference, and an
anchor never matches half a name. The module is compiled with the edit, and the function runs what came out: wherever it
was imported to, with its defaults and its closure.

An anchor that does not stand in the function exactly once fails the test. That is no kill: the code moved on, and the
mutant has to follow it.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest

NO_KILL = "no kill"
_MUTANT = "<mutant of {}>"
_Nodes = list[ast.expr] | list[ast.keyword] | list[ast.stmt]
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def plant(patch: pytest.MonkeyPatch, owner: object, name: str, *edits: tuple[str, str]) -> None:
    """Edit one production function until the patch is undone.

    Args:
        patch: What undoes it.
        owner: The module or the class that holds the function.
        name: Its name there.
        edits: For each, what stands in the function's body exactly once, and what takes its place.
    """
    function = function_of(owner, name)
    code = mutated(function, *edits)
    if code.co_freevars != function.__code__.co_freevars:
        _no_kill(f"the edit gives {code.co_qualname} another closure")
    patch.setattr(function, "__code__", code)


def mutated(function: FunctionType, *edits: tuple[str, str]) -> CodeType:
    """Return the code of a function with its edits."""
    name = function.__qualname__
    if function.__code__.co_filename == _MUTANT.format(name):
        _no_kill(f"{name} is a mutant already: give all edits of a function together")
    whole = _parsed(inspect.getsource(sys.modules[function.__module__]))
    there = list(_named(whole, name))
    if len(there) != 1:
        _no_kill(f"{name} stands {len(there)} times in {function.__module__}, not once")
    kept = [each for each in whole.body if _is_future(each) or each.lineno <= there[0].lineno <= (each.end_lineno or 0)]
    tree = copy.deepcopy(ast.Module(kept, []))  # others take time alone
    found = list(_named(tree, name))
    for old, new in edits:
        _edit(found[0], old, new)
    module = compile(ast.fix_missing_locations(tree), _MUTANT.format(name), "exec", dont_inherit=True)
    return next(code for code in _codes(module) if code.co_qualname == name)


@lru_cache(32)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _edit(function: _Definition, old: str, new: str) -> None:
    """Replace what stands in a function, read as the smallest kind of syntax that is found there."""
    read = 0
    for kind, reader in _READERS.items():
        try:
            pattern, replacement = reader(old), reader(new)
        except SyntaxError:
            continue
        read += 1
        places = list(_places(function, kind, pattern))
        if len(places) > 1:
            _no_kill(f"the anchor {old!r} stands {len(places)} times in {function.name}, not once")
        if places:
            _replace(*places[0], len(pattern), replacement)
            return
    if not read:
        _no_kill(f"{old!r} and {new!r} are not both expressions, keyword arguments or statements")
    _no_kill(f"the anchor {old!r} stands nowhere in {function.name}")


def _no_kill(why: str) -> NoReturn:
    pytest.fail(f"{NO_KILL}: {why}", pytrace=False)  # out of reach of `except Exception`


def function_of(owner: object, name: str) -> FunctionType:
    found: Any = inspect.getattr_static(owner, name, None)
    for wrapped in ("__func__", "fget", "func"):
        found = getattr(found, wrapped, found)
    found = inspect.unwrap(found) if callable(found) else found
    if not isinstance(found, FunctionType):
        _no_kill(f"{name} is no function of {getattr(owner, '__name__', owner)}")
    return found


def _named(tree: ast.AST, name: str) -> Iterator[_Definition]:
    """Yield the definitions of a qualified name."""
    first, _, rest = name.removeprefix("<locals>.").partition(".")
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, _Definition):
            yield from _named(node, name)
        elif node.name == first:
            yield from _named(node, rest) if rest else (node,)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


# -- one spelling of syntax --------------------------------------------------------------------------------------------


def _expression(text: str) -> list[ast.expr]:
    return [ast.parse(text.strip(), mode="eval").body]


def _keywords(text: str) -> list[ast.keyword]:
    (call,) = _expression(f"f({text})")
    if not isinstance(call, ast.Call) or call.args:
        raise SyntaxError
    return call.keywords


def _statements(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except IndentationError:
        return ast.parse(inspect.cleandoc(text)).body  # lines after the first stand as in the function


_READERS: dict[type[ast.AST], Callable[[str], _Nodes]] = {
    ast.expr: _expression,
    ast.keyword: _keywords,
    ast.stmt: _statements,
}


def _places(function: _Definition, kind: type[ast.AST], pattern: _Nodes) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield where a pattern stands in a function's body: node, field, and index where the field is a list."""
    wanted, size = _spelt(pattern), len(pattern)
    inside = [(node, *field) for each in function.body for node in ast.walk(each) for field in ast.iter_fields(node)]
    for node, field, value in [(function, "body", function.body), *inside]:
        if isinstance(value, list):
            for index in range(len(value) - size + 1):
                part = value[index : index + size]
                if all(isinstance(each, kind) for each in part) and _spelt(part) == wanted:
                    yield node, field, index
        elif isinstance(value, kind) and _spelt([value]) == wanted:
            yield node, field, None


def _spelt(nodes: Sequence[ast.AST]) -> list[str]:
    return [ast.unparse(node) for node in nodes]


def _replace(node: ast.AST, field: str, index: int | None, size: int, replacement: _Nodes) -> None:
    if index is None:
        setattr(node, field, replacement[0])
    else:
        getattr(node, field)[index : index + size] = replacement
