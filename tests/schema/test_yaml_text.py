"""YAML is read as YAML 1.2 means it, and whatever is written is read back the same by 1.1 and 1.2."""

from __future__ import annotations

import contextlib
import gc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.errors import DoublureError, InputError, SchemaError
from doublure.support import yaml12 as yaml_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("No", "No"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("2020-01-31", "2020-01-31"),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("=", "="),
        ("1e5", 100000.0),
        ("1e-3", 0.001),
        ("1.", 1.0),
        (".5", 0.5),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    read = yaml_text.parse(f"key: {text}", "s.yaml")["key"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: {b: 1, b: 2}",
        "{[a]: 1}",
        "? {a: 1}\n: 2",
        "*unknown",
        "!!python/object/apply:os.system [echo]",
        "!!timestamp nonsense",
        "!!int ''",
        "!!int abc",
        "!!float x",
        "a: 'unclosed",
        "a: \x00",
        "--- a\n--- b",
        "\t- a",
        "9" * 5_000,
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
    ],
)
def test_damaged_or_hostile_yaml_is_one_line(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        yaml_text.parse(text, "s.yaml")
    assert caught.value.field == "s.yaml"
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_line_of_a_doubled_key_is_named() -> None:
    with pytest.raises(SchemaError, match=r"line 3.*age"):
        yaml_text.parse("age: 1\nsex: 2\nage: 3", "s.yaml")


def test_no_key_is_merged_into_another_mapping() -> None:
    assert yaml_text.parse("a: &x {b: 1}\nc: {<<: *x}", "s.yaml")["c"] == {"<<": {"b": 1}}


def test_files_that_are_not_there_or_no_text(tmp_path) -> None:
    with pytest.raises(InputError, match="no such file"):
        yaml_text.load(tmp_path / "none.yaml", "schema")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    with pytest.raises(DoublureError, match="UTF-8"):
        yaml_text.load(tmp_path / "latin.yaml", "schema")
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1")
    assert yaml_text.load(tmp_path / "bom.yaml", "schema") == {"a": 1}


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@examples(150)
@given(plain_values)
def test_what_is_written_is_read_back(value: object) -> None:
    assert yaml_text.parse(yaml_text.dump(value), "s.yaml") == value
    line = yaml_text.inline(value)
    assert "\n" not in line
    assert yaml_text.parse(line, "s.yaml") == value


@pytest.mark.parametrize(
    "word", ["no", "y", "N", "on", "12:30", "1e5", "010", "null", "<<", "=", "", " a", "a\nb", "#"]
)
def test_readers_of_yaml_1_1_see_text_too(word: str) -> None:
    assert yaml.safe_load(yaml_text.inline({word: [word]})) == {word: [word]}


@pytest.mark.parametrize("text", ["[a, b]", "[a"])
def test_the_garbage_collector_is_left_as_it_was(text):
    for begin in (gc.enable, gc.disable):
        begin()
        before = gc.isenabled()
        with contextlib.suppress(SchemaError):
            yaml_text.parse(text, "x")
        after = gc.isenabled()
        gc.enable()
        assert after == before


def test_text_is_text_however_it_is_written():
    text = "{plain: a b, single: '5', double: \"tab\\t\", anchor: &x word, alias: *x, tag: !!str 7}"
    assert yaml_text.parse(text, "x") == {
        "plain": "a b", "single": "5", "double": "tab\t", "anchor": "word", "alias": "word", "tag": "7",
    }  # fmt: skip


def test_a_key_that_stands_twice_is_named() -> None:
    with pytest.raises(SchemaError, match="line 2: the key age stands twice"):
        yaml_text.parse("age: 1\nage: 2", "s.yaml")


def test_a_damaged_line_that_became_a_key_is_not_quoted() -> None:
    damaged = "  job [Sentinel, other], missing: false}\n"
    with pytest.raises(SchemaError, match="line 2: a key stands twice") as refused:
        yaml_text.parse(damaged + damaged, "s.yaml")
    assert "Sentinel" not in str(refused.value)
