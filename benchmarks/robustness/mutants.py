"""What mutants a file has: one small edit each, found in its syntax tree and written into its text.

A mutant is known by its file, its function, the path of the edited node within the function, and the edit. Layout and
comments change none of that. Left alone are annotations, decorators, strings, ``if TYPE_CHECKING``, ``__repr__``, what
an error says, ``progress``, and ``strict`` of ``zip``, which tells what cannot be.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

MODULE = "<module>"
_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Required: TypeAlias = Mapping[str, frozenset[str]]

_COMPARED: dict[type[ast.cmpop], tuple[str, type[ast.cmpop]]] = {
    ast.Lt: ("< to <=", ast.LtE),
    ast.LtE: ("<= to <", ast.Lt),
    ast.Gt: ("> to >=", ast.GtE),
    ast.GtE: (">= to >", ast.Gt),
    ast.Eq: ("== to !=", ast.NotEq),
    ast.NotEq: ("!= to ==", ast.Eq),
}
_REACHED: dict[type[ast.operator], tuple[str, type[ast.operator]]] = {
    ast.Add: ("+ to -", ast.Sub),
    ast.Sub: ("- to +", ast.Add),
    ast.Mult: ("* to /", ast.Div),
    ast.Div: ("/ to *", ast.Mult),
}
_EXTREMES = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "amax": "amin", "amin": "amax",
}  # fmt: skip
_SAID = frozenset({"field", "remedy", "description", "title", "help"})
_NEVER_ENTERED = frozenset({"annotation", "returns", "decorator_list", "type_params", "pattern"})
_LEAVES = (ast.Raise, ast.Continue, ast.Break)
_ERRORS = ("Error", "Exception", "Warning", "Refused", "Failed", "Passed", "Interrupted", "NotAsPriced", "BeyondPld")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One edit of one file.

    Attributes:
        file: Which file.
        function: The qualified name of the function or class that it stands in, or ``<module>``.
        place: The path of the edited node from there.
        operator: What is done to it.
        code: A hash of the function without layout, comments and docstrings.
        first: The first byte that goes.
        last: The first byte that stays.
        text: What takes their place.
        before: The lines concerned, as they are.
        after: As they become.
    """

    file: str
    function: str
    place: str
    operator: str
    code: str
    first: int
    last: int
    text: str
    before: str
    after: str

    @property
    def id(self) -> str:
        """What it is known by."""
        return f"{self.file}::{self.function}::{self.place}::{self.operator}"

    def written(self, source: str) -> str:
        """Return the file's text with the edit."""
        content = source.encode()
        return (content[: self.first] + self.text.encode() + content[self.last :]).decode()


@dataclass(frozen=True)
class _Edit:
    place: str
    operator: str
    node: ast.expr | ast.stmt
    text: str
    tail: int | None = None
    """How many of the node's last bytes go, all by default."""


def required(trees: Iterable[ast.AST]) -> dict[str, frozenset[str]]:
    """Return, for each name that is defined in a package, the arguments that have no default wherever it is defined."""
    found: dict[str, frozenset[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                own = {each.target.id for each in fields if isinstance(each.target, ast.Name) and each.value is None}
                made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
                own |= {name for each in made for name in _without_default(each.args)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = set(_without_default(node.args))
            else:
                continue
            found[node.name] = found.get(node.name, frozenset()) | own
    return found


def _without_default(arguments: ast.arguments) -> Iterator[str]:
    plain = [*arguments.posonlyargs, *arguments.args]
    yield from (each.arg for each in plain[: len(plain) - len(arguments.defaults)])
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    yield from (each.arg for each, default in pairs if default is None)


def mutants(file: str, source: str, needed: _Required) -> list[Mutant]:
    """Return all mutants of a file, in its order.

    Args:
        file: What the file is called.
        source: Its text.
        needed: The arguments without a default, by the name of what is called; all others may be dropped.
    """
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, seen = [], Counter[str]()
    for name, scope in _scopes(ast.parse(source), MODULE):
        seen[name] += 1
        function = name if seen[name] == 1 else f"{name}#{seen[name]}"  # a property and its setter share a name
        code = hashlib.sha256(_own_text(scope).encode()).hexdigest()[:12]
        for edit in _Finder(needed, name).edits(scope):
            found.append(_mutant(file, function, code, edit, source, starts))
    return found


def _mutant(file: str, function: str, code: str, edit: _Edit, source: str, starts: list[int]) -> Mutant:
    node, content = edit.node, source.encode()
    if node.end_lineno is None or node.end_col_offset is None:
        raise ValueError("a node without an end")
    last = starts[node.end_lineno - 1] + node.end_col_offset
    first = starts[node.lineno - 1] + node.col_offset if edit.tail is None else last - edit.tail
    top, bottom = starts[node.lineno - 1], starts[node.end_lineno]
    after = content[top:first] + edit.text.encode() + content[last:bottom]
    return Mutant(
        file=file, function=function, place=edit.place, operator=edit.operator, code=code, first=first, last=last,
        text=edit.text, before=_one_line(content[top:bottom]), after=_one_line(after),
    )  # fmt: skip


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def _scopes(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield a module, and each function and class within it, by qualified name."""
    yield name, node
    prefix = "" if name == MODULE else f"{name}."
    for each in _definitions(node):
        if each.name != "__repr__":
            yield from _scopes(each, prefix + each.name)


def _definitions(node: ast.AST) -> Iterator[_Definition]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, _Definition):
            yield each
        elif not _for_types_only(each):
            yield from _definitions(each)


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node.test)
        if isinstance(each, ast.Name | ast.Attribute)
    }


def _is_text(node: ast.AST) -> bool:
    """Whether it is a docstring, wherever it stands."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class _Bare(ast.NodeTransformer):
    """Takes out docstrings, and what is within definitions below the first."""

    def __init__(self) -> None:
        self._entered = False

    def visit(self, node: ast.AST) -> Any:
        """Return what stays of a node."""
        if _is_text(node):
            return None
        if isinstance(node, _Definition | ast.Module):
            if self._entered:
                return ast.Expr(ast.Name(getattr(node, "name", MODULE)))
            self._entered = True
        return self.generic_visit(node)


def _own_text(scope: ast.AST) -> str:
    copy = ast.parse(ast.unparse(scope))
    bare = _Bare().visit(copy if isinstance(scope, ast.Module) else copy.body[0])
    return ast.unparse(ast.fix_missing_locations(bare))


class _Finder:
    """Finds the edits of one function, class or module."""

    def __init__(self, needed: _Required, scope: str) -> None:
        self._needed = needed
        self._scope = scope

    def edits(self, scope: ast.AST) -> Iterator[_Edit]:
        """Return the edits of what stands in a scope, and in none below it."""
        yield from self._below(scope, "")

    def _below(self, node: ast.AST, place: str) -> Iterator[_Edit]:
        for field, value in ast.iter_fields(node):
            if field in _NEVER_ENTERED:
                continue
            if isinstance(value, list):
                each = [item for item in value if not (isinstance(item, ast.AST) and _is_text(item))]
                for index, item in enumerate(each):
                    if isinstance(item, ast.AST):
                        yield from self._at(item, f"{place}.{field}[{index}]".lstrip("."))
            elif isinstance(value, ast.AST):
                yield from self._at(value, f"{place}.{field}".lstrip("."))

    def _at(self, node: ast.AST, place: str) -> Iterator[_Edit]:
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # what cannot be
        if isinstance(node, _Definition | ast.JoinedStr | ast.Import | ast.ImportFrom) or _for_types_only(node):
            return
        if isinstance(node, ast.stmt):
            yield from self._of_statement(node, place)
        elif isinstance(node, ast.expr):
            yield from self._of_expression(node, place)
        elif isinstance(node, ast.comprehension):
            for index, test in enumerate(node.ifs):
                yield _Edit(f"{place}.ifs[{index}]", "condition to True", test, "True")
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and isinstance(node.body[0], _LEAVES):
            yield from self._at(node.test, f"{place}.test")  # without its condition it is gone, as if dropped
        elif self._is_entered(node):
            yield from self._below(node, place)

    @staticmethod
    def _is_entered(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return not _says(node)
        if isinstance(node, ast.Expr):
            return not (isinstance(node.value, ast.Call) and _says(node.value))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            return node.value.id != "Literal"
        return not isinstance(node, ast.Raise)  # what an error says

    def _of_statement(self, node: ast.stmt, place: str) -> Iterator[_Edit]:
        match node:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Expr(value=ast.Call() as call) if _says(call):
                return
            case ast.Expr() | ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
                yield _Edit(place, "statement dropped", node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]) | ast.AnnAssign(target=ast.Attribute()):
                yield _Edit(place, "statement dropped", node, "pass")
            case ast.AugAssign():
                if isinstance(node.target, ast.Attribute | ast.Subscript):
                    yield _Edit(place, "statement dropped", node, "pass")
                if type(node.op) in _REACHED and not _texts(node.value):
                    operator, other = _REACHED[type(node.op)]
                    text = ast.unparse(ast.AugAssign(target=node.target, op=other(), value=node.value))
                    yield _Edit(place, operator, node, text)
            case ast.If():
                for truth in ("True", "False"):
                    yield _Edit(f"{place}.test", f"condition to {truth}", node.test, truth)
            case ast.While():
                yield _Edit(f"{place}.test", "condition to False", node.test, "False")

    def _of_expression(self, node: ast.expr, place: str) -> Iterator[_Edit]:
        match node:
            case ast.Compare():
                for index, operation in enumerate(node.ops):
                    if type(operation) in _COMPARED:
                        operator, other = _COMPARED[type(operation)]
                        operations = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                        new = ast.Compare(left=node.left, ops=operations, comparators=node.comparators)
                        yield _Edit(f"{place}.ops[{index}]", operator, node, _bracketed(new))
            case ast.BinOp() if type(node.op) in _REACHED and not _texts(node.left, node.right):
                operator, opposite = _REACHED[type(node.op)]
                new_sum = ast.BinOp(left=node.left, op=opposite(), right=node.right)
                yield _Edit(place, operator, node, _bracketed(new_sum))
            case ast.BoolOp():
                swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                operator = "and to or" if isinstance(node.op, ast.And) else "or to and"
                yield _Edit(place, operator, node, _bracketed(ast.BoolOp(op=swapped, values=node.values)))
            case ast.UnaryOp(op=ast.Not()):
                yield _Edit(place, "not dropped", node, _bracketed(node.operand))
            case ast.UnaryOp(op=ast.USub()):
                yield _Edit(place, "sign dropped", node, _bracketed(node.operand))
            case ast.IfExp():
                for truth in ("True", "False"):
                    yield _Edit(f"{place}.test", f"condition to {truth}", node.test, truth)
            case ast.Constant():
                yield from _of_constant(node, place)
            case ast.Name(id=name, ctx=ast.Load()) if name in _EXTREMES:
                yield _Edit(place, f"{name} to {_EXTREMES[name]}", node, _EXTREMES[name])
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in _EXTREMES:
                yield _Edit(place, f"{name} to {_EXTREMES[name]}", node, _EXTREMES[name], tail=len(name))
            case ast.Call() if not _says(node):
                yield from self._of_call(node, place)

    def _of_call(self, node: ast.Call, place: str) -> Iterator[_Edit]:
        name = _name(node.func)
        needed = self._needed.get(self._scope.partition(".")[0] if name == "cls" else name, frozenset())
        for index, keyword in enumerate(node.keywords):
            if keyword.arg is None or keyword.arg in needed or keyword.arg in _SAID or keyword.arg == "strict":
                continue
            rest = [*node.keywords[:index], *node.keywords[index + 1 :]]
            text = _bracketed(ast.Call(func=node.func, args=node.args, keywords=rest))
            yield _Edit(place, f"{keyword.arg}= dropped", node, text)


def _of_constant(node: ast.Constant, place: str) -> Iterator[_Edit]:
    value = node.value
    if isinstance(value, bool):
        yield _Edit(place, f"{value} to {not value}", node, str(not value))
    elif isinstance(value, int):
        yield _Edit(place, "n to n + 1", node, f"({value + 1})")
        if value != 0:
            yield _Edit(place, "n to 0", node, "(0)")
    elif isinstance(value, float):
        yield _Edit(place, "x to 2 x", node, f"({value * 2 or 1.0!r})")


def _says(call: ast.Call) -> bool:
    """Whether a call makes an error or tells how far a run is."""
    if _name(call.func).endswith(_ERRORS):
        return True
    return isinstance(call.func, ast.Attribute) and _name(call.func.value) in ("progress", "_progress", "logger")


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts(*nodes: ast.expr) -> bool:
    return any(
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for node in nodes
    )


def _bracketed(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
