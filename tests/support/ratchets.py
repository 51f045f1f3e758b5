"""Figures of the code that only fall, and rules for its names and sentences that no file breaks.

``tests/ratchets.json`` holds a ceiling for each figure, a line a figure. ``tests/test_ratchets.py`` fails where one is
passed, or a rule is broken; ``python tests/support/ratchets.py --lower`` lowers the ceilings that can be lowered.
``python tests/support/ratchets.py`` lists what is counted, file by file.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "doublure"
CEILINGS = ROOT / "tests" / "ratchets.json"

OWN = ("schema/columns.py", "schema/columns/")
"""Where a column may know its type."""
ASKED = frozenset({"numeric", "discrete", "nature", "steers"})
"""Attributes that say a column's type in other words."""
FACTS = frozenset(
    {
        "missing", "missing_tokens", "may_be_missing", "roles", "bounds", "ends", "grid", "unit", "step", "precision",
        "scale", "edges", "spikes", "repeated", "zero_inflated", "zero_apart", "timezone", "values", "domain", "other",
        "shares", "read",
    }
    | ASKED
)  # fmt: skip
"""What some columns have and others lack."""
NATURES = frozenset({"integer", "real", "category", "ordinal", "boolean", "date", "datetime", "id"})
_COLUMN = re.compile(r"\w*(?:Column|Channel|Attribute)$")
_COLUMNS = re.compile(r"column|channel|attribute", re.IGNORECASE)
_QUESTION = re.compile(r"(?:What|Which|How|Who|Whoever|Whom|Whose)\b")
_ANYBODY = re.compile(r"\b(?:whoever|nobody|somebody)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z`(*:])")
_ONE_WORD = re.compile(r"[A-Z]+[a-z0-9]*")
MOST_WORDS = 20
"""Most words of the sentence that a module's docstring begins with."""

Tree = ast.Module
Count = Callable[[str, Tree, str], int]


def files(source: Path) -> Iterator[tuple[str, Tree, str]]:
    """Yield each source file of a folder: its name from there on, its syntax tree, its text."""
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(source).as_posix(), ast.parse(text), text


@lru_cache(1)
def nodes(tree: Tree) -> list[ast.AST]:
    """Return all nodes of a file, which are looked at by one count after another."""
    return list(ast.walk(tree))


# -- questions ---------------------------------------------------------------------------------------------------------


def asks(node: ast.AST) -> bool:
    """Say whether a node asks what type a column has, in any of the ways that there are."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) >= 2:
        if node.func.id in ("isinstance", "issubclass"):
            return any(_COLUMN.fullmatch(name) for name in _names(node.args[1]))
        if node.func.id in ("getattr", "hasattr"):
            said = node.args[1]
            of_column = any(_COLUMNS.search(name) for name in _names(node.args[0]))
            return of_column or (isinstance(said, ast.Constant) and said.value in FACTS)
    if isinstance(node, ast.Attribute):
        return node.attr in ASKED and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        by_name = any(isinstance(side, ast.Attribute) and side.attr == "type" for side in sides)
        return by_name and any(_texts(side) & NATURES for side in sides)
    if isinstance(node, ast.MatchClass):
        return any(_COLUMN.fullmatch(name) for name in _names(node.cls))
    return False


def _names(node: ast.AST) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _texts(node: ast.AST) -> set[object]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def questions(name: str, tree: Tree, text: str) -> int:
    """Count questions for a column's type outside the columns themselves."""
    if name.startswith(OWN):
        return 0
    lists = {id(side) for node in nodes(tree) if isinstance(node, ast.Compare) for side in _searched(node)}
    return sum(asks(node) for node in nodes(tree) if id(node) not in lists)


def _searched(node: ast.Compare) -> Iterator[ast.expr]:
    """Yield what something is looked for in: ``released.discrete`` is a list of names there, and no question."""
    for how, side in zip(node.ops, node.comparators, strict=True):
        if isinstance(how, (ast.In, ast.NotIn)):
            yield side


def ignores(name: str, tree: Tree, text: str) -> int:
    """Count where mypy is told not to mind that some columns lack an attribute."""
    return len(re.findall(r"# type: ignore\[[^\]]*union-attr", text))


# -- size --------------------------------------------------------------------------------------------------------------

_NO_CODE = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def code_lines(name: str, tree: Tree, text: str) -> int:
    """Count lines of code: none blank, of a comment, a docstring (``@override`` stands for one) or an import."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            lines.difference_update(_lines_of(node))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for said in _texts_alone(node):
                lines.difference_update(_lines_of(said))
            lines.difference_update(
                each.lineno for each in getattr(node, "decorator_list", ()) if ast.unparse(each) == "override"
            )
    return len(lines)


def _texts_alone(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt]:
    """Yield docstrings, those of a constant among them."""
    for each in node.body:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            yield each


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def folder_of(name: str) -> str:
    """Return the folder that a file counts for."""
    return name.partition("/")[0] if "/" in name else "top"


# -- names and sentences -----------------------------------------------------------------------------------------------


def _docstrings(tree: Tree) -> Iterator[tuple[ast.AST, str]]:
    for node in nodes(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            said = ast.get_docstring(node)
            if said:
                yield node, said


def asking_docstrings(name: str, tree: Tree, text: str) -> int:
    """Count docstrings that begin with What, Which, How or Who."""
    return sum(_QUESTION.match(said) is not None for _, said in _docstrings(tree))


def docstrings_of_nobody(name: str, tree: Tree, text: str) -> int:
    """Count docstrings that speak of whoever, nobody or somebody."""
    return sum(_ANYBODY.search(said) is not None for _, said in _docstrings(tree))


def asking_texts(name: str, tree: Tree, text: str) -> int:
    """Count docstrings of constants that begin with What, Which, How or Who, or speak of whoever."""
    return sum(bool(_QUESTION.match(said) or _ANYBODY.search(said)) for said in _constants_texts(tree))


def _constants_texts(tree: Tree) -> Iterator[str]:
    for node in nodes(tree):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for place, each in enumerate(node.body):
                if place and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    yield str(each.value.value)


def comments_of_nobody(name: str, tree: Tree, text: str) -> int:
    """Count comments that speak of whoever, nobody or somebody."""
    if not _ANYBODY.search(text):
        return 0
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and bool(_ANYBODY.search(token.string)) for token in tokens)


def first_paragraph(tree: Tree) -> str:
    """Return the first paragraph of a module's docstring."""
    return (ast.get_docstring(tree) or "").partition("\n\n")[0]


def long_module_docstrings(name: str, tree: Tree, text: str) -> int:
    """Count modules whose docstring begins with more than one sentence, or with one that has no full stop."""
    first = first_paragraph(tree)
    return int(_SENTENCE.search(first) is not None or not first.endswith("."))


def wordy_module_docstrings(name: str, tree: Tree, text: str) -> int:
    """Count modules whose docstring begins with more than twenty words."""
    return int(len(first_paragraph(tree).split()) > MOST_WORDS)


def one_word_classes(name: str, tree: Tree, text: str) -> int:
    """Count classes whose name is a single word: ``Third``, not ``ScoreComponent``."""
    names = (each.strip("_") for each in class_names(tree))
    return sum(_ONE_WORD.fullmatch(each) is not None for each in names)


def functions_of(name: str, tree: Tree, text: str) -> int:
    """Count functions of a module that are named ``x_of``, where a verb, ``from_y`` or a method would say more."""
    return sum(isinstance(node, ast.FunctionDef) and node.name.endswith("_of") for node in tree.body)


def class_names(tree: Tree) -> Iterator[str]:
    """Yield the names of a file's classes."""
    return (node.name for node in nodes(tree) if isinstance(node, ast.ClassDef))


# -- figures -----------------------------------------------------------------------------------------------------------

COUNTED: Mapping[str, Count] = {
    "questions for a column's type": questions,
    "union-attr ignores": ignores,
    "class names of one word": one_word_classes,
    "functions named x_of": functions_of,
}
"""Figures with a ceiling."""

BANNED: Mapping[str, Count] = {
    "docstrings that begin with What, Which, How or Who": asking_docstrings,
    "docstrings with whoever, nobody or somebody": docstrings_of_nobody,
    "constants' docstrings that ask or speak of whoever": asking_texts,
    "comments with whoever, nobody or somebody": comments_of_nobody,
    "module docstrings that begin with several sentences": long_module_docstrings,
    "module docstrings that begin with more than 20 words": wordy_module_docstrings,
}
"""Figures that are 0, as is that of class names used twice."""


@cache
def counts(source: Path) -> tuple[dict[str, int], list[str]]:
    """Return every figure of a folder, and where a rule for names and sentences is broken, a line each."""
    found: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    lines: Counter[str] = Counter()
    broken, places = list[str](), dict[str, list[str]]()
    for name, tree, text in files(source):
        found.update({what: count(name, tree, text) for what, count in COUNTED.items()})
        own = code_lines(name, tree, text)
        lines.update({"code lines": own, f"code lines of {folder_of(name)}": own, "files": 1})
        counted = ((what, count(name, tree, text)) for what, count in BANNED.items())
        broken += [f"{name}: {number} {what}" for what, number in counted if number]
        for each in class_names(tree):
            places.setdefault(each, []).append(name)
    broken += [f"class {each}: {', '.join(files)}" for each, files in sorted(places.items()) if len(files) > 1]
    return {**{what: found[what] for what in COUNTED}, **dict(sorted(lines.items()))}, broken


def ceilings() -> dict[str, int]:
    """Return the kept ceilings."""
    kept: dict[str, int] = json.loads(CEILINGS.read_text(encoding="utf-8"))
    return kept


def lowered(kept: Mapping[str, int], found: Mapping[str, int]) -> dict[str, int]:
    """Return ceilings without those of what is gone, with those of what is new, and none above what it was."""
    return {what: min(now, kept.get(what, now)) for what, now in found.items()}


def write(kept: Mapping[str, int]) -> None:
    """Keep ceilings, a line each."""
    CEILINGS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _show() -> None:
    for line in counts(SOURCE)[1]:
        print(line)
    for name, tree, text in files(SOURCE):
        own = {what: count(name, tree, text) for what, count in COUNTED.items()}
        if any(own.values()):
            print(name, *(f"{count} {what}" for what, count in own.items() if count), sep="; ")


def main(words: list[str]) -> None:
    """List what is counted, or lower the ceilings."""
    found, _ = counts(SOURCE)
    kept = ceilings() if CEILINGS.exists() else {}
    if words == ["--lower"]:
        write(lowered(kept, found))
    else:
        _show()
    for what, now in found.items():
        print(f"{what}: {now} (ceiling {kept.get(what, 'none')})")


if __name__ == "__main__":
    main(sys.argv[1:])
