"""What a line that was cut short counts for, read alone."""

from __future__ import annotations

import pytest

from doublure.ledger.amounts import Amount
from doublure.ledger.torn import SOMETHING, TornLine, parse_torn_line, torn_lines

NOTHING = TornLine()


def test_nothing_costs_and_allows_nothing():
    assert (NOTHING.charge, NOTHING.run, NOTHING.what, NOTHING.through_step) == (Amount(), None, None, 0)


def test_lines_come_without_what_closed_them():
    assert list(torn_lines(b"one#torn\ntwo#torn\n")) == [b"one", b"two"]
    assert list(torn_lines(b"one#torn\n#torn\n\ntwo")) == [b"one", b"two"]
    assert list(torn_lines(b"#torn\n")) == list(torn_lines(b"")) == []


@pytest.mark.parametrize("start", [b'{"body":{', b'{"after_torn":true,"body":{'])
@pytest.mark.parametrize(
    ("rest", "found"),
    [
        (b'"charge":{"delta":1e-06,"epsilon":0.5}', TornLine(charge=Amount.of(0.5, 1e-6))),
        (b'"charge":{"delta":1e-06,"epsilon":0.5},"id":"x', TornLine(charge=Amount.of(0.5, 1e-6))),
        (b'"charge":null', NOTHING),
        (b'"charge":nul', None),
        (b'"charge":{"delta":1e-06,"epsilon":0.5', None),
        (b'"charge":{"epsilon":0.5}', None),
        (b'"charge":{"delta":1e-06}', None),
        (b'"charge":{"delta":1e-06,"epsilon":-0.5}', None),
        (b'"charge":{"delta":-1,"epsilon":0.5}', None),
        (b'"charge":{"delta"}', None),
        (b'"charge"', None),
        (b'"charge', None),
        (b'"c', None),
        (b'"', None),
        (b'"i', None),
        (b'"id"', None),
        (b'"id":"abc"', None),
        (b'"id":"abc","', TornLine(run="abc", what=SOMETHING, through_step=None)),
        (b'"id":"abc","session":"s","what":"bou', TornLine(run="abc", what=SOMETHING, through_step=None)),
        (b'"id":"abc","session":"s","what":"bounds"', TornLine(run="abc", what=SOMETHING, through_step=None)),
        (b'"id":"abc","session":"s","what":"bounds"}', TornLine(run="abc", what="bounds")),
        (b'"id":"abc","session":"s","what":"a \\"b\\" \\u03b5"}', TornLine(run="abc", what='a "b" ε')),
        (b'"id":"abc","session":"s","through_step":12', TornLine(run="abc", what=SOMETHING, through_step=None)),
        (b'"id":"abc","session":"s","through_step":12}', TornLine(run="abc", through_step=12)),
        (b'"id":"\xff","', TornLine(run="\ufffd", what=SOMETHING, through_step=None)),
        (b'"f', NOTHING),
        (b'"from_session"', NOTHING),
        (b'"files":{', NOTHING),
        (b'"artefact_sha256":"0', NOTHING),
        (b'"dataset":"adult"', NOTHING),
        (b'"file"', None),
        (b'"other"', None),
        (b'"other', None),
    ],
)
def test_a_line_counts_for_all_that_it_can_have_said(start, rest, found):
    assert parse_torn_line(start + rest) == found


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"body":{', b'{"body":', b'x{"body":{"f', b'{"after_torn":false,"body":{"f']
)
def test_what_does_not_begin_as_a_record_cannot_be_read(line):
    assert parse_torn_line(line) is None
