"""The order in which constraints are kept, and bought answers that are made to agree with them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns import IntegerColumn
from doublure.schema.resolving import agree
from doublure.schema.rules.at_most import AtMost, order_columns
from doublure.schema.rules.equal import Equal

NUMBERS = {name: IntegerColumn(bounds=(0, 9), missing=False) for name in "abcd"}


def test_every_column_comes_after_those_below_it() -> None:
    chains = order_columns(
        [AtMost(at_most=("b", "c")), Equal(equal=("x", "y")), AtMost(at_most=("a", "b", "d"))], NUMBERS
    )
    seen: set[str] = set()
    for name, below in chains:
        assert set(below) <= seen
        seen.add(name)
    assert dict(chains) == {"a": (), "b": ("a",), "c": ("b",), "d": ("b",)}
    assert order_columns([], NUMBERS) == ()


def test_a_circle_is_named() -> None:
    with pytest.raises(ValueError, match="circle"):
        order_columns([AtMost(at_most=pair) for pair in (("a", "b"), ("b", "c"), ("c", "a"))], NUMBERS)


def resolve(columns: str, constraints: str, **answers: Any) -> dict[str, Any]:
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{{columns}}}\nconstraints: [{constraints}]")
    learned = {f"columns.{name}.{fact}": answer for name, facts in answers.items() for fact, answer in facts.items()}
    resolved = schema.resolve(learned)  # an answer that is paid for is never refused
    return {name: getattr(column, "bounds", None) for name, column in resolved.columns.items()}


def test_learned_bounds_are_widened_to_a_declared_zero() -> None:
    column = "a: {type: integer, bounds: {learn: 1}, zero_inflated: true, missing: false}"
    assert resolve(column, "", a={"bounds": (5, 100)}) == {"a": (0, 100)}
    assert resolve(column, "", a={"bounds": (-9, -5)}) == {"a": (-9, 0)}
    assert resolve(column.replace("true", "false"), "", a={"bounds": (5, 100)}) == {"a": (5, 100)}


def test_learned_bounds_stay_countable() -> None:
    assert resolve("a: {type: integer, bounds: {learn: 1}, missing: false}", "", a={"bounds": (0, 10**18)}) == {
        "a": (0, 2**53)
    }
    (_, upper) = resolve(
        "a: {type: real, precision: 2, bounds: {learn: 1}, missing: false}", "", a={"bounds": (0.0, 1e18)}
    )["a"]
    assert upper == pytest.approx(2**53 / 100)


def test_learned_values_are_cut_off_at_the_most_a_schema_holds() -> None:
    column = "{type: category, values: {learn: 1}, other: o, missing: false}"
    schema = Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {column}}}")
    found = tuple(f"v{number}" for number in range(100_001))
    assert schema.resolve({"columns.a.values": found}).columns["a"].domain == (*found[:-1], "o")
    assert schema.resolve({"columns.a.values": ()}).columns["a"].domain == ("o",)


def test_learned_bounds_meet_where_at_most_orders_them() -> None:
    both = (
        "a: {type: integer, bounds: {learn: 1}, missing: false}, b: {type: integer, bounds: {learn: 1}, missing: false}"
    )
    met = resolve(both, "{at_most: [a, b]}", a={"bounds": (100, 200)}, b={"bounds": (0, 50)})
    assert met == {"a": (100, 200), "b": (0, 100)}
    fixed = both.replace("{learn: 1}", "[0, 50]").replace("[0, 50]", "{learn: 1}", 1)
    assert resolve(fixed, "{at_most: [a, b]}", a={"bounds": (100, 200)}) == {"a": (50, 200), "b": (0, 50)}


def test_learned_dates_meet_too() -> None:
    both = "a: {type: date, bounds: {learn: 1}, missing: false}, b: {type: date, bounds: {learn: 1}, missing: false}"
    day = datetime.date
    early, late = (day(2000, 1, 1), day(2001, 1, 1)), (day(2010, 1, 1), day(2011, 1, 1))
    met = resolve(both, "{at_most: [a, b]}", a={"bounds": late}, b={"bounds": early})
    assert met == {"a": late, "b": (day(2000, 1, 1), day(2010, 1, 1))}


bounds = st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@examples(200)
@given(
    st.lists(st.tuples(bounds, st.booleans()), min_size=5, max_size=5),
    st.lists(st.lists(st.sampled_from("abcde"), min_size=2, max_size=4, unique=True).map(sorted), max_size=3),
)
def test_whatever_is_learned_agrees(columns: list[tuple[tuple[int, int], bool]], chains: list[list[str]]) -> None:
    texts, learned = [], {}
    for name, ((lower, upper), bought) in zip("abcde", columns, strict=True):
        texts.append(f"{name}: {{type: integer, bounds: {'{learn: 1}' if bought else [lower, upper]}, missing: false}}")
        if bought:
            learned[f"columns.{name}.bounds"] = (lower, upper)
    constraints = ", ".join(f"{{at_most: {chain}}}" for chain in chains)
    text = f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{{', '.join(texts)}}}\nconstraints: [{constraints}]"
    try:
        schema = Schema.parse(text)
    except SchemaError:  # declared bounds alone contradict one another, which costs nothing
        return
    resolved = schema.resolve(learned)
    for path in learned:
        lower, upper = resolved.columns[path.split(".")[1]].bounds
        assert lower < upper
    assert agree(schema.columns, schema.constraints, learned).keys() == learned.keys()
