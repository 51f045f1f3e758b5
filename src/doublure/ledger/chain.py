"""The hash-chained file: one canonical JSON record per line, each with the hash of the one before.

A line is torn when a crash or a full disk cut it short. The file only grows, so the next append closes the torn line
with `#torn` and a newline, and its record says `after_torn: true` and pins the abandoned bytes by their hash. An append
may be cut at any byte, several times in a row, and the file stays readable. No data is opened and no noise drawn before
the fsync of its record has returned. A line may also have been cut later, so it counts for all that it can have said
(`torn.py`).

A last record that lacks only its newline counts. No process was told of it, so counting it can only charge too much.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from doublure.errors import LedgerError, SettingError

GENESIS = "0" * 64
_TORN = b"#torn"
_KEYS = frozenset({"body", "hash", "kind", "prev_hash", "seq", "tool", "utc"})
_KEYS_AFTER_TORN = _KEYS | {"after_torn", "torn_sha256"}
_REMEDY = "restore the newest intact copy, at least as new as the last release card; never edit a ledger"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One line of the ledger.

    Attributes:
        sequence: Its place, from 1; records are ordered by it and never by the clock.
        kind: open, reserve, noise, advance, resume, close or release.
        utc: The clock's time, for display only.
        tool: The version of doublure that wrote it.
        body: Its content; keys depend on the kind (see `account.py`).
        previous: SHA-256 of the record before.
        sha256: SHA-256 of this one, over its canonical JSON without the key `hash`.
        torn: The abandoned bytes before it.
    """

    sequence: int
    kind: str
    utc: str
    tool: str
    body: Mapping[str, Any]
    previous: str
    sha256: str
    torn: bytes = b""

    @property
    def after_torn(self) -> bool:
        """Whether an abandoned line precedes it."""
        return bool(self.torn)


@dataclass(frozen=True, kw_only=True)
class RecordChain:
    """A verified file.

    Attributes:
        records: All records, oldest first.
        good: Bytes up to the end of the last good record.
        open_line: Whether that record still lacks its newline.
        torn: The bytes after it that are no record.
    """

    records: tuple[Record, ...] = ()
    good: int = 0
    open_line: bool = False
    torn: bytes = b""

    @property
    def clean(self) -> bool:
        """Whether the file ends with a whole record and its newline."""
        return not self.open_line and not self.torn

    @property
    def head(self) -> tuple[int, str]:
        """Sequence and SHA-256 of the last record; (0, 64 zeros) for none."""
        return (self.records[-1].sequence, self.records[-1].sha256) if self.records else (0, GENESIS)


def canonical_json(value: object) -> bytes:
    """Return the canonical JSON of a value: sorted keys, no spaces, ASCII, no NaN or Infinity.

    Raises:
        SettingError: The value cannot be written as JSON.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise SettingError(
            "what the ledger is to record is not plain JSON", field="plan", remedy="use finite numbers, text and lists"
        ) from None
    return text.encode("ascii")


def seal(chain: RecordChain, *, kind: str, body: Mapping[str, Any], utc: str, tool: str) -> tuple[Record, bytes]:
    """Return the next record and the bytes that append it, closing a torn or open line first.

    Raises:
        SettingError: The body is not plain JSON.
    """
    sequence, previous = chain.head
    # Through JSON and back, so that what is hashed is what will be read: lists for tuples, text for keys.
    plain = json.loads(canonical_json(body))
    start = b"\n" if chain.open_line else _TORN + b"\n" if chain.torn else b""
    fields: dict[str, Any] = {
        "body": plain,
        "kind": kind,
        "prev_hash": previous,
        "seq": sequence + 1,
        "tool": tool,
        "utc": utc,
    }
    if chain.torn:
        fields |= {"after_torn": True, "torn_sha256": hashlib.sha256(chain.torn + start).hexdigest()}
    fields["hash"] = hashlib.sha256(canonical_json(fields)).hexdigest()
    return _record(fields, chain.torn and chain.torn + start), start + canonical_json(fields) + b"\n"


def read(data: bytes, *, base: RecordChain | None = None, name: str = "ledger") -> RecordChain:
    """Verify a file and return its records.

    Args:
        data: The whole file.
        base: A clean chain that `data` is known to begin with; only what follows it is read.
        name: The file's name, for messages.

    Returns:
        The chain, with its last bytes if they are no record.

    Raises:
        LedgerError: A line was edited, moved, removed or added.
    """
    base = base or RecordChain()
    records, good = list(base.records), base.good
    sequence, previous = base.head
    position = good
    while position < len(data):
        newline = data.find(b"\n", position)
        stop = newline if newline >= 0 else len(data)
        line = data[position:stop]
        fields = _parsed(line)
        if fields is not None:
            record = _verified(fields, line, sequence + 1, previous, torn=data[good:position], name=name)
            records.append(record)
            sequence, previous = record.sequence, record.sha256
            good = min(stop + 1, len(data))
        elif _begins_with_object(line) or (newline >= 0 and not line.endswith(_TORN)):
            _damaged(name, f"what follows record {sequence} is not a record")
        position = stop + 1
    return RecordChain(
        records=tuple(records),
        good=good,
        open_line=good > 0 and data[good - 1 : good] != b"\n",
        torn=data[good:],
    )


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _begins_with_object(line: bytes) -> bool:
    # A torn line ends before its object does. A whole object with something behind it was changed by hand.
    try:
        value, _ = json.JSONDecoder().raw_decode(line.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


def _verified(fields: dict[str, Any], line: bytes, sequence: int, previous: str, *, torn: bytes, name: str) -> Record:
    if fields.keys() != (_KEYS_AFTER_TORN if torn else _KEYS):
        _damaged(name, f"record {sequence} is missing or does not have the keys of a record")
    rest = {key: value for key, value in fields.items() if key != "hash"}
    try:
        intact = canonical_json(fields) == line and hashlib.sha256(canonical_json(rest)).hexdigest() == fields["hash"]
    except SettingError:
        intact = False
    if not intact:
        _damaged(name, f"record {sequence} was edited: its hash does not match")
    if (fields["seq"], fields["prev_hash"]) != (sequence, previous) or type(fields["seq"]) is not int:
        _damaged(name, f"record {sequence} is missing or out of order")
    if torn and (fields["after_torn"] is not True or hashlib.sha256(torn).hexdigest() != fields["torn_sha256"]):
        _damaged(name, f"the abandoned line before record {sequence} was edited")
    texts = (fields["kind"], fields["utc"], fields["tool"])
    if not all(isinstance(text, str) for text in texts) or not isinstance(fields["body"], dict):
        _damaged(name, f"record {sequence} does not have the values of a record")
    return _record(fields, torn)


def _record(fields: Mapping[str, Any], torn: bytes) -> Record:
    return Record(
        sequence=fields["seq"],
        kind=fields["kind"],
        utc=fields["utc"],
        tool=fields["tool"],
        body=fields["body"],
        previous=fields["prev_hash"],
        sha256=fields["hash"],
        torn=torn,
    )


def _damaged(name: str, what: str) -> NoReturn:
    raise LedgerError(f"damaged: {what}", field=name, remedy=_REMEDY)
