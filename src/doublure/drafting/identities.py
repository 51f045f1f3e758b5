"""Rules of arithmetic and of levels that may hold between columns, proposed by their names and declared facts alone.

A rule that a schema declares is kept in every row, at no cost: no noise can show as surely that a total is the sum of
its parts, or which county a place is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from doublure.schema.columns import Column
from doublure.schema.rules.determines import Determines
from doublure.schema.rules.difference import ColumnDifference, TwoEnds
from doublure.schema.rules.product import ColumnProduct, NamedFactors
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.sum import Addition, Sum

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TOTALS = {"total", "sum", "gross", "overall"}
"""Words of a column that may be a sum of others."""
_SPAN = {"days", "day", "duration", "length", "los", "nights", "stay", "elapsed", "span", "minutes", "hours", "delay"}
BEGIN = ("start", "begin", "begun", "from", "admitted", "admission", "opened", "departure", "pickup", "checkin", "in")
END = ("end", "ended", "to", "discharged", "discharge", "closed", "arrival", "dropoff", "checkout", "out")
"""Words of the beginning of a span, and of its end."""
_PRICE = {"price", "rate", "fee", "monthly", "unit", "wage", "tariff"}
_TIMES = {"quantity", "qty", "units", "months", "hours", "days", "tenure", "count", "pieces"}
_PAID = {"amount", "cost", "charges", "total", "revenue", "value", "pay", "bill"}
_LADDERS: tuple[tuple[frozenset[str], ...], ...] = tuple(
    tuple(frozenset(step.split()) for step in ladder)
    for ladder in (
        ("block plot parcel", "tract zone neighbourhood neighborhood zip postcode ward place station",
         "district borough", "city town municipality", "county department", "state province region",
         "country nation", "continent"),
        ("trim variant", "model", "make manufacturer brand"),
        ("sku product item", "subcategory subclass", "category class"),
        ("subgrade", "grade"),
        ("occupation job", "industry", "sector"),
        ("school", "district"),
        ("team club", "league", "country"),
        ("species", "genus", "family"),
    )
)  # fmt: skip
"""Words of public levels, the finest first: what has one of the former may lie in one of the latter."""


def identities_for(columns: Mapping[str, Column]) -> Iterator[Rule]:
    """Yield rules that may hold, without their lists: levels first, then sums, differences and products."""
    words = _words(columns)
    yield from _levels(words, columns)
    numbers = _amounts(words, columns)
    yield from _sums(numbers, columns)
    spans = [*_differences(words, numbers, columns)]
    yield from spans
    derived = {name for rule in spans for name in rule.derives}
    yield from _products({name: own for name, own in numbers.items() if name not in derived})


def sums_for(columns: Mapping[str, Column]) -> Iterator[Rule]:
    """Yield sums that may hold."""
    yield from _sums(_amounts(_words(columns), columns), columns)


def _words(columns: Mapping[str, Column]) -> dict[str, frozenset[str]]:
    return {name: words_of(name) for name, column in columns.items() if column.modelled}


def _amounts(words: Mapping[str, frozenset[str]], columns: Mapping[str, Column]) -> dict[str, frozenset[str]]:
    """Return the words of the columns whose numbers can be added up."""
    return {name: own for name, own in words.items() if columns[name].adds_up and columns[name].clock is None}


def words_of(name: str) -> frozenset[str]:
    """Return the words of a column's name, in lower case."""
    whole = re.sub(r"sub[ _.-]", "sub", name, flags=re.IGNORECASE)
    return frozenset(word.lower() for word in _WORD.findall(whole))


def _levels(words: Mapping[str, frozenset[str]], columns: Mapping[str, Column]) -> Iterator[Rule]:
    """Yield each column of a public level with the next coarser one that the table has and that has fewer values."""
    listed = {name: own for name, own in words.items() if columns[name].listed and columns[name].domain}
    for ladder in _LADDERS:
        steps = [[name for name, own in listed.items() if own & step] for step in ladder]
        for place, fine in enumerate(steps):
            above = next((own for own in steps[place + 1 :] if own), [])
            for one in fine:
                for other in above:
                    apart = words[one] - ladder[place], words[other] - frozenset().union(*ladder[place + 1 :])
                    if apart[0] == apart[1] and len(columns[one].domain) > len(columns[other].domain):
                        yield Determines.model_construct(determines=(one, other), map={})


def _sums(numbers: Mapping[str, frozenset[str]], columns: Mapping[str, Column]) -> Iterator[Rule]:
    """Yield each total with the columns of its unit that share another word of its name."""
    for total, own in numbers.items():
        stem = own - TOTALS
        parts = [
            name
            for name, other in numbers.items()
            if stem and stem <= other and name != total and not other & TOTALS
            and columns[name].alike(columns[total]) and columns[name].unit == columns[total].unit
        ]  # fmt: skip
        if own & TOTALS and len(parts) > 1:
            yield Sum.model_construct(sum=Addition(total=total, of=tuple(parts)))


def _differences(
    words: Mapping[str, frozenset[str]], numbers: Mapping[str, frozenset[str]], columns: Mapping[str, Column]
) -> Iterator[Rule]:
    """Yield each span with the two times that its name may lie between."""
    times = [name for name in words if columns[name].clock is not None]
    ends = [pair for pair in _both_ends(times, words) if columns[pair[0]].alike(columns[pair[1]])]
    spans = [name for name, own in numbers.items() if own & _SPAN]
    for of in spans if len(ends) == 1 else ():
        said = {"of": of, "from": ends[0][0], "to": ends[0][1], "unit": _unit(numbers[of])}
        yield ColumnDifference.model_construct(difference=TwoEnds.model_validate(said))


def _products(numbers: Mapping[str, frozenset[str]]) -> Iterator[Rule]:
    """Yield each amount with the one price and the one number of times that its name may be the product of."""
    for of, own in numbers.items():
        prices, times = ([name for name, other in numbers.items() if other & said] for said in (_PRICE, _TIMES))
        factors = [name for name in prices if name != of], [name for name in times if name not in (of, *prices)]
        if own & _PAID and not own & (_PRICE | _TIMES) and all(len(each) == 1 for each in factors):
            named = NamedFactors.model_validate({"of": of, "from": (factors[0][0], factors[1][0])})
            yield ColumnProduct.model_construct(product=named)


def _both_ends(times: Sequence[str], words: Mapping[str, frozenset[str]]) -> list[tuple[str, str]]:
    if len(times) == 2:
        return [(times[0], times[1]) if not words[times[0]] & {*END} else (times[1], times[0])]
    begins, ends = ([name for name in times if words[name] & {*side}] for side in (BEGIN, END))
    return [(one, other) for one in begins for other in ends if one != other]


def _unit(words: frozenset[str]) -> str:
    return next((unit for unit in ("minute", "hour", "week", "year") if words & {unit, f"{unit}s"}), "day")
