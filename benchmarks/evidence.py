"""Compute the pages' figures again from the kept rows, and list the figures that no entry covers.

    python benchmarks/evidence.py [PAGE ...]    # what no longer follows from its rows; figures without an entry

``docs/evidence.yaml`` holds the map. ``rows`` names selections of kept rows: the file, and what its fields are; null is
a field that a row lacks. A cell is told place by place: ``*`` is anything but null, ``…text`` ends so, ``text…`` begins
so, ``…`` alone leaves the rest open. ``pages`` holds, for each page, sentences as they stand there with an expression
in place of each figure:

    - says: "MNIST, generated (Table 1) | 98.3 % | {critic.students.cnn.all:.1%}"

An expression names rows, then a field, then an aggregate: ``mean``, ``least``, ``most``, ``range``, ``middle``,
``count``, ``all`` for the mean with its range, ``each`` for one figure a row. Python's arithmetic may stand around it.
A form is ``.1p`` (in per cent; ``.1%`` puts the sign before a range), ``.3`` (without the nought before the point), or
Python's. ``each`` repeats an entry, with ``<name>`` filled in. ``quoted`` are words of others, with their place;
``held`` are words whose digits a test holds; ``given`` are settings, or what a word means. Words that say "no row is
kept" need no entry.
"""

from __future__ import annotations

import argparse
import bisect
import functools
import itertools
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from scipy.stats import binomtest

from results import finished, mean_and_half, rank_correlation

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / "docs" / "evidence.yaml"
UNKEPT = "no row is kept"
NAMED = ("row", "paper", "paper ≈", "target", "elsewhere", "best of others", "σ", "δ", "ε", "γ")
"""Headers of columns that hold settings, or others' figures, whose place the line's name or the page's text gives."""
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)?\.\d+|\d{1,3}(?:,\d{3})+|\d+"
_UNIT = r"(?:%|points?\b|seconds\b|minutes\b|hours\b|(?:CPU |core )?(?:s|min)\b|[KMG]i?B\b)"
_FIGURE = re.compile(rf"(?<![\w.^/])(?:{_NUMBER})(?![\w^]|\.\d)")
_BEFORE_A_UNIT = re.compile(rf"(?:\)?(?:[;,] | \(|–| and | to |, and | ± )(?:{_NUMBER}))*\)? ?{_UNIT}")
_NO_FIGURE = re.compile(
    r"`[^`]*`|\]\([^)]*\)|<[^>]*>|\{[{%].*?[%}]\}|arXiv[: ]\S+"
    r"|(?:§|Theorem |Python |CC BY |version |Apache-)[\d.]*\d|[σγδλCqdkT] = [\d.]+"
)
_BLOCK = re.compile(r"^```.*?^```|^<!-- results:.*?<!-- /results -->", re.DOTALL | re.MULTILINE)


class Value(float):
    """A figure that is written as the pages write it."""

    def __format__(self, form: str) -> str:
        """Return ``.1%`` and ``.1p`` in per cent, ``.3`` without the nought, and Python's forms as they are."""
        if form.endswith(("%", "p")):
            return format(float(self) * 100, form[:-1] + "f")
        if re.fullmatch(r"\+?\.\d", form):
            return re.sub(r"^([-+]?)0\.", r"\1.", format(float(self), form + "f")).replace("-", "−")
        return format(float(self), form)


class Spread(NamedTuple):
    """A mean and its range."""

    least: Value
    mean: Value
    most: Value

    def __format__(self, form: str) -> str:
        """Return the mean, and the range where it has one that this form shows."""
        low, high = format(self.least, form), format(self.most, form)
        mean = format(self.mean, form) + (" %" if form.endswith("%") else "")
        return mean + (f" ({low}–{high})" if low != high else "")


class Each(tuple[Value, ...]):
    """One figure a row, in the order of the rows."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        """Return them with commas between."""
        return ", ".join(format(value, form) for value in self)


class Rows:
    """Kept rows, or what a field holds in each: a field within is an attribute or a key."""

    def __init__(self, values: Sequence[Any]) -> None:
        """Hold the values of a selection."""
        self._values = values

    def __getattr__(self, name: str) -> Any:
        """Return an aggregate of numbers, or a field within."""
        return _AGGREGATES[name](self._values) if name in _AGGREGATES else self[name]

    def __getitem__(self, key: Any) -> Rows:
        """Return a field of each row that has it: of a mapping by name, of a list by place."""
        found = [value[key] for value in self._values if isinstance(value, list) or key in value]
        if not found:
            raise KeyError(f"no row has {key}")
        return Rows(found)

    def above(self, bound: float) -> int:
        """Return how many lie above a bound."""
        return sum(value > bound for value in self._values)

    def __sub__(self, other: Rows) -> Rows:
        """Return differences, row by row."""
        return Rows([a - b for a, b in zip(self._values, other._values, strict=True)])

    def __add__(self, other: Rows) -> Rows:
        """Return the values of both."""
        return Rows([*self._values, *other._values])


_AGGREGATES: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "raw": list,
    "count": len,
    "sum": lambda values: Value(sum(values)),
    "least": lambda values: Value(min(values)),
    "most": lambda values: Value(max(values)),
    "range": lambda values: Value(max(values) - min(values)),
    "mean": lambda values: Value(statistics.mean(values)),
    "middle": lambda values: Value(statistics.median(values)),
    "all": lambda values: Spread(Value(min(values)), Value(statistics.mean(values)), Value(max(values))),
    "each": lambda values: Each(Value(value) for value in values),
}


def proportion(shares: Rows, of: int) -> Spread:
    """Return a share over rows of so many trials each, and its exact 95 % interval (Clopper and Pearson 1934)."""
    trials = of * shares.count
    found = binomtest(round(of * shares.sum), trials).proportion_ci(method="exact")
    return Spread(Value(found.low), shares.mean, Value(found.high))


def student(differences: Rows) -> Spread:
    """Return a mean and Student's 95 % interval."""
    mean, half = mean_and_half(differences.raw)
    return Spread(Value(mean - half), Value(mean), Value(mean + half))


def ranks(first: Rows, second: Rows) -> Spread:
    """Return a rank correlation, and where 95 of 100 resamples put it."""
    return _ranks(tuple(first.raw), tuple(second.raw))


@functools.cache
def _ranks(first: tuple[float, ...], second: tuple[float, ...]) -> Spread:
    return Spread(*map(Value, rank_correlation(first, second)))


_FUNCTIONS = {each.__name__: each for each in (proportion, student, ranks, abs, len, sum, max, min, round, zip)}


class Entry(NamedTuple):
    """Words of a page, and where in them figures stand that were computed (or quoted)."""

    words: str
    figures: tuple[tuple[int, int], ...]


def matches(value: Any, wanted: Any) -> bool:
    """Return whether a field of a row is as wanted."""
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return False
        if wanted and wanted[-1] == "…":
            wanted, value = wanted[:-1], value[: len(wanted) - 1]
        return len(value) == len(wanted) and all(map(matches, value, wanted))
    if not isinstance(wanted, str) or not isinstance(value, str):
        same = value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
        return bool(same or (wanted == "*" and value is not None))
    if wanted.startswith("…") or wanted.endswith("…"):
        return value.endswith(wanted[1:]) if wanted.startswith("…") else value.startswith(wanted[:-1])
    return wanted in ("*", value)


def select(name: str, wanted: Mapping[str, Any]) -> Rows:
    """Return the kept rows of a selection.

    Raises:
        ValueError: There is none, or a field is to be lacking that no row of the file has.
    """
    fields, kept = {key: value for key, value in wanted.items() if key != "file"}, _kept(wanted["file"])
    if strange := [key for key in fields if not any(key in row for row in kept)]:
        raise ValueError(f"{name}: no row in {wanted['file']}.jsonl has a field {strange[0]}")
    rows = [
        row for row in kept if all((k in row or v is None) and matches(row.get(k), v) for k, v in fields.items())
    ]  # fmt: skip
    if not rows:
        raise ValueError(f"{name}: no row is kept in {wanted['file']}.jsonl for {json.dumps(fields)}")
    return Rows(rows)


@functools.cache
def _kept(name: str) -> list[dict[str, Any]]:
    return finished(name)


def plain(text: str) -> str:
    """Return text without bold, each paragraph on one line."""
    text = _BLOCK.sub("", text).replace("**", "")
    return re.sub(r"(?<!\n)\n(?![\n|>·]|- |\d+\. )", " ", text)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with each ``<name>`` in it filled in; alone, it keeps its type."""
    if isinstance(template, str):
        alone = re.fullmatch(r"<(\w+)>", template)
        if alone and alone[1] in values:
            return values[alone[1]]
        return re.sub(r"<(\w+)>", lambda found: str(values.get(found[1], found[0])), template)
    if isinstance(template, list):
        return [filled(each, values) for each in template]
    if isinstance(template, dict):
        return {key: filled(value, values) for key, value in template.items()}
    return template


def repeated(each: Mapping[str, list[Any]] | Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield what an entry is filled with: every combination of lists, or the mappings of a list."""
    if isinstance(each, Mapping):
        for values in itertools.product(*each.values()):
            yield dict(zip(each, values, strict=True))
    else:
        yield from each


def rendered(template: str, names: Mapping[str, Any]) -> Entry:
    """Return an entry's words with its figures computed."""
    words, spans, end = "", [], 0
    for found in re.finditer(r"\{([^{}]+?)(?::([^{}:]*))?\}", template):
        words += template[end : found.start()]
        value = eval(found[1], {"__builtins__": _FUNCTIONS}, names)
        text = format(Value(value) if type(value) is float else value, found[2] or "")
        spans.append((len(words), len(words) + len(text)))
        words, end = words + text, found.end()
    return Entry(words + template[end:], tuple(spans))


def entries(page: Mapping[str, Any], rows: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the entries of a page.

    Raises:
        ValueError: A selection has no row, or an entry computes nothing and quotes nobody.
    """
    for entry in page["entries"]:
        for values in repeated(entry.get("each", [{}])):
            own = filled({key: value for key, value in entry.items() if key != "each"}, values)
            kind = next(iter(own))
            if kind in ("quoted", "held", "given"):
                words = plain(own[kind])
                if kind != "given" and not own.get("from"):
                    raise ValueError(f"{words!r}: name the paper and the table, or the test")
                if kind == "held":
                    _check_held(words, own["from"])
                yield Entry(words, ((0, len(words)),))
            else:
                chosen = rows | own.get("rows", {})
                found = rendered(plain(own["says"]), _Named(chosen))
                if not found.figures:
                    raise ValueError(f"{found.words!r}: computes nothing")
                yield found


class _Named(dict[str, Any]):
    """Selections by name, made when they are asked for."""

    def __missing__(self, name: str) -> Any:
        raise KeyError(name)

    def __getitem__(self, name: str) -> Any:
        return select(name, super().__getitem__(name))


def _check_held(words: str, test: str) -> None:
    """Refuse words whose figures do not all stand in their test."""
    held = (ROOT / test).read_text(encoding="utf-8")
    missing = [found[0] for found in _FIGURE.finditer(words) if found[0] not in held]
    if missing:
        raise ValueError(f"{words!r}: {test} does not hold {', '.join(missing)}")


def misses(text: str, found: Sequence[Entry]) -> list[str]:
    """Return the words that do not stand in a page exactly once."""
    return [entry.words for entry in found if text.count(entry.words) != 1]


def figures(text: str) -> Iterator[tuple[int, int]]:
    """Yield where figures stand: decimals, percentages and numbers with a unit, but for names of settings."""
    blank = _NO_FIGURE.sub(lambda found: " " * len(found[0]), text)
    blank = re.sub(r"^\|.*$", functools.partial(_without_names, text), blank, flags=re.MULTILINE)
    for found in _FIGURE.finditer(blank):
        setting = blank.endswith(("= ", "at "), 0, found.start())
        counts = "." in found[0] or (not setting and _BEFORE_A_UNIT.match(blank, found.end()))
        if counts and UNKEPT not in _clause(text, found.start()):
            yield found.span()


def _without_names(text: str, line: re.Match[str]) -> str:
    """Return a line of a table with blanks in columns of names and of others' figures."""
    start = text.rfind("\n\n", 0, line.start()) + 2
    heads = [cell.strip().lower() for cell in text[start : text.find("\n", start)].split("|")]
    cells = re.split(r"(?<!\\)\|", line[0])
    kept = [
        " " * len(cell) if place < len(heads) and heads[place] in NAMED else cell for place, cell in enumerate(cells)
    ]
    return "|".join(kept)


def _clause(text: str, place: int) -> str:
    """Return the words around a place, from one mark to the next; of a line with a cell that says it, those."""
    start = text.rfind("\n", 0, place) + 1
    line = text[start : (text + "\n").find("\n", place)]
    if f"| {UNKEPT} |" in line:
        return UNKEPT
    ends = [0, *(found.end() for found in re.finditer(r"[.;:] |\|", line)), len(line)]
    after = bisect.bisect_right(ends, place - start)
    return line[ends[after - 1] : ends[after]]


def open_figures(text: str, found: Sequence[Entry]) -> list[tuple[int, int]]:
    """Return where figures stand that no entry covers."""
    covered = []
    for entry in found:
        at = text.find(entry.words)
        if at >= 0:
            covered += [(at + start, at + end) for start, end in entry.figures]
    return [
        (start, end) for start, end in figures(text) if not any(low <= start and end <= high for low, high in covered)
    ]


def load() -> dict[str, Any]:
    """Return the map."""
    return dict(yaml.safe_load(MAP.read_text(encoding="utf-8")))


def page(name: str) -> str:
    """Return a page's text, as it is searched."""
    return plain((ROOT / name).read_text(encoding="utf-8"))


def main() -> None:
    """Say what does not hold, and what has no entry."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*")
    wanted = parser.parse_args().pages
    found = load()
    wrong = 0
    for name, own in found["pages"].items():
        if wanted and name not in wanted:
            continue
        text, of_page = page(name), list(entries(own, found["rows"]))
        for words in misses(text, of_page):
            wrong += 1
            print(f"{name}: stands there {text.count(words)} times: {words}")
        left = open_figures(text, of_page)
        print(f"{name}: {sum(len(each.figures) for each in of_page)} figures follow; {len(left)} have no entry")
        for start, end in left if wanted else ():
            print(f"    {text[max(0, start - 40) : start]}[{text[start:end]}]{text[end : end + 30]}".replace("\n", " "))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
