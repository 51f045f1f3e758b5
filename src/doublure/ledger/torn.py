"""Charges and permissions of a line that was cut short.

A crash, a full disk or an edit may leave the last line without its end. The file does not show whether noise was drawn
for it, so it counts for all that it can have said. Its first bytes show the kind of record, because a record's text is
canonical: keys are sorted, and the body comes first.

=============================================  ========================================================================
cut short                                      what it counts for
=============================================  ========================================================================
a reservation, its charge whole                the charge, in full, for good
a mark or an authorisation, all of it whole    what it marks, or the steps that it authorises
the same, of which only the run is whole       everything: all noisy steps of that run, and a fact
a resumption, a close, a release, a first one  nothing: without it the run stays where it was, at its full charge
anything else, a reservation's charge too      cannot be read: nothing more is recorded until its owner has fixed it
=============================================  ========================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from doublure.ledger.amounts import Amount, is_figure

# Of kinds whose loss leaves a run at its full charge; none of their first keys begins as the others' do.
_HARMLESS = ("artefact_sha256", "dataset", "files", "from_session")
_TELLING = ("charge", "id")
_BEGINNING = re.compile(rb'\{(?:"after_torn":true,)?"body":\{"([a-z0-9_]*)("?)')
_CHARGE = re.compile(rb'\{(?:"after_torn":true,)?"body":\{"charge":(null|\{[^{}]*\})')
_RUN = re.compile(rb'\{(?:"after_torn":true,)?"body":\{"id":"([^"\\]*)","')
_WHOLE = re.compile(rb'"(what|through_step)":("(?:[^"\\]|\\.)*"|[0-9]+)\}')
SOMETHING = "something, by a line that was cut short"


@dataclass(frozen=True, kw_only=True)
class TornLine:
    """The effects that a line cut short may have had.

    Attributes:
        charge: The charge that it may have made.
        run: The id of the run that it is about.
        what: The mark that it sets.
        through_step: The step that it authorises, None for all of them.
    """

    charge: Amount = field(default_factory=Amount)
    run: str | None = None
    what: str | None = None
    through_step: int | None = 0


def torn_lines(torn: bytes) -> Iterator[bytes]:
    """Yield the lines among abandoned bytes, without the mark that closed them; an append may be cut several times."""
    for line in torn.split(b"\n"):
        if whole := line.partition(b"#torn")[0]:
            yield whole


def parse_torn_line(line: bytes) -> TornLine | None:
    """Return the effects of a line, None if they cannot be read."""
    found = _BEGINNING.match(line)
    if found is None:
        return None
    key, closed = found[1].decode(), bool(found[2])
    if not any(name == key if closed else name.startswith(key) for name in _TELLING):
        known = any(name == key if closed else name.startswith(key) for name in _HARMLESS)
        return TornLine() if known else None
    return _reserved(line) if key == "charge" and closed else _allowed(line)


def _reserved(line: bytes) -> TornLine | None:
    found = _CHARGE.match(line)
    if found is None:
        return None
    charge = _value(found[1])
    if charge is None:  # of a kind that has no (ε, δ)
        return TornLine()
    epsilon, delta = charge.get("epsilon"), charge.get("delta")
    return TornLine(charge=Amount.of(epsilon, delta)) if is_figure(epsilon) and is_figure(delta) else None


def _allowed(line: bytes) -> TornLine | None:
    found = _RUN.match(line)
    if found is None:
        return None
    run, whole = found[1].decode(errors="replace"), _WHOLE.search(line, found.end())
    if whole is None:
        return TornLine(run=run, what=SOMETHING, through_step=None)
    value = _value(whole[2])
    return TornLine(run=run, what=value) if whole[1] == b"what" else TornLine(run=run, through_step=value)


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}
