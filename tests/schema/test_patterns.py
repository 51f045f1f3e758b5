"""Patterns of ids: their texts, in order or shuffled, and the way back."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.columns.patterns import RowNumbering, TextPattern


def test_texts_count_through_digits_letters_and_hex() -> None:
    pattern = TextPattern("A{1 digit}-{2 letters}{1 hex}/")
    assert pattern.size == 10 * 26 * 26 * 16
    assert pattern.texts([0, 1, 16, pattern.size - 1]) == ["A0-AA0/", "A0-AA1/", "A0-AB0/", "A9-ZZf/"]


@pytest.mark.parametrize("text", ["{1 digit}", "{3 digits}", "{2 letters}x", "{4 hex}"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_every_row_has_a_text_of_its_own_and_is_found_again(text: str, shuffled: bool) -> None:
    numbering = RowNumbering(TextPattern(text), shuffled)
    rows = np.arange(1, numbering.room + 1)
    texts = numbering.texts(rows)
    assert len(set(texts)) == numbering.room
    assert numbering.numbers(texts).tolist() == rows.tolist()
    assert (texts == sorted(texts)) is not shuffled


def test_shuffled_neighbours_have_nothing_in_common() -> None:
    places = TextPattern("{6 digits}").places(RowNumbering(TextPattern("{6 digits}"), True).texts(np.arange(1, 5_001)))
    steps = np.diff(places)
    assert len(np.unique(steps)) > 4_900
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.05  # 3.5 standard deviations of independent ones
    assert abs(places.mean() / 1e6 - 0.5) < 0.02  # 4.9 standard deviations of a uniform one


@pytest.mark.parametrize("text", ["P-00", "P1", "p-1", "", "P-1\n", "P-٣"])
def test_a_text_of_another_form_is_no_place(text: str) -> None:
    with pytest.raises(ValueError):
        TextPattern("P-{1 digit}").places([text])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("pattern: abc", "has no places"),
        ('pattern: "{6 numbers}"', "has no places, or one of another form"),
        ('pattern: "{6 digits} {"', "or one of another form"),
        ('pattern: "{99 digits}"', "more than 2.62 texts"),
        ('pattern: "{19 digits}"', "more than 2.62 texts"),
        ('pattern: " {6 digits}"', "has spaces around"),
        ("pattern: 7", "must be a text with places"),
        ("order: random", "order: random needs a pattern"),
        ('pattern: "{6 digits}", order: sorted', "must be random"),
    ],
)
def test_faulty_patterns_are_refused_with_the_remedy(keys: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as caught:
        Schema.parse(f"doublure: 1\nkind: table\ncolumns: {{a: {{type: id, {keys}}}, b: {{type: boolean}}}}")
    assert caught.value.field is not None
    assert caught.value.field.startswith("columns.a")
    assert caught.value.remedy


def test_a_schema_without_patterns_is_what_it_was() -> None:
    plain = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: id}, b: {type: boolean}}")
    assert plain.to_plain()["columns"]["a"] == {"type": "id"}
