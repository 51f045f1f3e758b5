"""A message survives the way bit for bit, and bytes that are none are refused, whatever they claim."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planting import plant

from doublure.support import messages
from doublure.support.messages import MalformedMessage, Message, prefix_part, require_word, select_part

SAID = Message(
    {"ask": "counts", "é\ud800": [1, None, True, 0.1, "x"], "deep": {"a": {}}},
    {
        "0.cells": np.arange(6).reshape(2, 3), "0.starts": np.array([0.5, np.inf, np.nan]), "one": np.array(2.5, "<f4"),
        "none": np.zeros((0, 3), dtype=np.int8), "across": np.arange(6, dtype="<i4").reshape(2, 3).T,
    },
)  # fmt: skip


def content(head, rest=b"", length=None):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + rest


def of_array(kind, shape, rest=b""):
    return content({"words": {}, "arrays": {"a": [kind, shape]}}, rest)


def test_a_message_survives_the_way():
    found = Message.from_bytes(SAID.to_bytes())
    assert found.words == SAID.words
    assert [*found.arrays] == [*SAID.arrays]
    for name, array in SAID.arrays.items():
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found.arrays[name], array, equal_nan=True)
        assert found.arrays[name].flags.writeable
        assert found.arrays[name].flags.aligned
    assert found.sha256 == SAID.sha256
    assert Message.from_bytes(Message().to_bytes()).words == {}


@pytest.mark.parametrize("kind", ["U1", "O", "?", "u1", ">i8", "M8[s]", "c16", "i4,f8"])
def test_nothing_but_plain_numbers_is_sent(kind):
    with pytest.raises(TypeError, match="only numbers"):
        Message({}, {"a": np.zeros(2, dtype=kind)}).to_bytes()


EIGHT = np.arange(1, dtype=np.int64).tobytes()
HOSTILE = {
    "nothing": b"",
    "less than a length": b"\x01\x00",
    "a head beyond the end": content({"words": {}, "arrays": {}}, length=10**6),
    "a head of 2^64": b"\xff" * 8 + b"{}",
    "no JSON": content(b"{"),
    "no text": content(b"\xff\xfe"),
    "no object": content([1]),
    "no words": content({"arrays": {}}),
    "words that are a list": content({"words": [], "arrays": {}}),
    "no arrays": content({"words": {}}),
    "arrays that are a list": content({"words": {}, "arrays": [["<i8", [1]]]}, EIGHT),
    "an array without a shape": content({"words": {}, "arrays": {"a": ["<i8"]}}, EIGHT),
    "very deep": content(b"[" * 10**5),
    "a number of many digits": content(b'{"words": {"a": ' + b"1" * 10**5 + b'}, "arrays": {}}'),
    "pickle": of_array("|O", [1], EIGHT),
    "text": of_array("<U2", [1], EIGHT),
    "fields": of_array("<i4,<f4", [1], EIGHT),
    "another order of bytes": of_array(">i8", [1], EIGHT),
    "a type that is a list": of_array([["a", "<i8"]], [1], EIGHT),
    "too short": of_array("<i8", [2], EIGHT),
    "too long": of_array("<i8", [1], EIGHT + b"\0"),
    "no array and a rest": content({"words": {}, "arrays": {}}, b"\0"),
    "below zero": of_array("<i8", [-1], EIGHT),
    "below zero twice": of_array("<i8", [-1, -1], EIGHT),
    "no whole number": of_array("<i8", [1.0], EIGHT),
    "true": of_array("<i8", [True], EIGHT),
    "a shape that is a number": of_array("<i8", 1, EIGHT),
    "a shape that is a text": of_array("<i8", "", EIGHT),
    "2^80 numbers": of_array("<i8", [2**40, 2**40], EIGHT),
    "2^64 numbers, which go round": of_array("<i8", [2**32, 2**32], EIGHT),
    "many axes": of_array("<i8", [1] * 33, EIGHT),
    "very many axes": of_array("<i8", [2**62] * 10**4, EIGHT),
}  # fmt: skip


def check_refused(hostile):
    with pytest.raises(MalformedMessage, match="not in the form"):
        Message.from_bytes(hostile)


@pytest.mark.parametrize("name", HOSTILE)
def test_bytes_that_are_no_message_are_refused(name):
    check_refused(HOSTILE[name])


def test_a_head_has_a_longest_length(monkeypatch):
    monkeypatch.setattr(messages, "_MOST_WORDS", 40)
    Message.from_bytes(Message({"a": 1}).to_bytes())
    check_refused(Message({"abcdefghij": 1}).to_bytes())


@given(st.integers(0, len(SAID.to_bytes()) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_is_another_message(place, flip):
    changed = bytearray(SAID.to_bytes())
    changed[place] ^= flip
    try:
        found = Message.from_bytes(bytes(changed))
    except MalformedMessage:
        return
    assert sum(array.nbytes for array in found.arrays.values()) <= len(changed)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(some):
    check_refused(some)


def test_what_a_message_claims_to_hold_takes_no_memory():
    tracemalloc.start()
    try:
        for shape in ([2**40], [10**9], [2**20, 2**20]):
            check_refused(of_array("<f8", shape, EIGHT))
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


MUTANTS = {
    "any type": ("kind not in NUMBERS", "kind is None"),
    "sizes below zero": ("type(size) is int and size >= 0", "type(size) is int"),
    "a rest is passed over": ("start != len(content)", "start > len(content)"),
    "any head": ("not _LENGTH <= start <= min(len(content), _LENGTH + _MOST_WORDS)", "False"),
    "any number of axes": ("len(shape) > _MOST_AXES", "False"),
    "words of any form": ("not isinstance(words, dict)", "False"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_reader_that_trusts_is_caught(monkeypatch, mutant):
    plant(monkeypatch, messages, "_read", MUTANTS[mutant])
    monkeypatch.setattr(messages, "_MOST_WORDS", 10**5)
    hostile = {**HOSTILE, "a long head": content({"words": {"a": "x" * 10**5}, "arrays": {}})}
    let_through = []
    for name, some in hostile.items():
        try:
            check_refused(some)
        except (pytest.fail.Exception, MemoryError, np.exceptions.AxisError):
            let_through.append(name)
    assert let_through


def test_the_hash_is_of_all_that_is_said():
    told = {
        Message(words, arrays).sha256
        for words in ({"a": 1}, {"a": 2}, {"b": 1})
        for arrays in (
            {}, {"x": np.arange(4)}, {"y": np.arange(4)}, {"x": np.arange(4).reshape(2, 2)}, {"x": np.arange(4.0)},
            {"x": np.arange(4)[::-1]},
        )
    }  # fmt: skip
    assert len(told) == 18
    assert Message({"a": 1, "b": 2}).sha256 == Message({"b": 2, "a": 1}).sha256


def test_parts_are_taken_by_name():
    arrays = prefix_part({"cells": np.arange(2)}, 0) | prefix_part({"cells": np.arange(3)}, "10")
    assert [*select_part(arrays, "10")] == ["cells"]
    assert select_part(arrays, "10")["cells"].size == 3
    assert select_part(arrays, "1") == {}


@pytest.mark.parametrize("found", [None, True, 1.0, "1"])
def test_a_word_has_exactly_its_type(found):
    with pytest.raises(MalformedMessage, match="question: is not in the form"):
        require_word({"access": found}, "access", int)
    assert require_word({"access": 1}, "access", int) == 1
