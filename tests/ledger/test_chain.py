"""The file itself: any change to it is found, and only what a crash can leave is accepted."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

from doublure.errors import LedgerError, SettingError
from doublure.ledger import Ledger
from doublure.ledger.chain import RecordChain, canonical_json, read, seal

HASH = "0f" * 32
WRITTEN = Path(__file__).parents[1] / "vectors" / "ledger-format-1.jsonl"


@pytest.fixture
def lines(ledger, path, make_plan) -> list[bytes]:
    """A file with every kind of record and one abandoned line."""
    reservation = ledger.reserve(make_plan(), run_id="first")
    with path.open("ab") as file:
        file.write(b'{"body":{"from_s')
    reservation.noise_drawn("bounds")
    reservation.advance(10)
    reservation = ledger.resume(reservation.id, reservation.session)
    reservation.close("done", steps=10, artefact_sha256=HASH)
    ledger.record_release("first", {"data.csv": HASH}, "dp")
    ledger.reserve(make_plan(kind="none"))
    return path.read_bytes().splitlines(keepends=True)


def opens(path, data: bytes) -> bool:
    path.write_bytes(data)
    try:
        Ledger.open(path).verify()
    except LedgerError:
        return False
    return True


def test_every_kind_of_record_is_there(path, lines):
    assert opens(path, b"".join(lines))
    kinds = [record.kind for record in Ledger.open(path).entries]
    assert kinds == ["open", "reserve", "noise", "advance", "resume", "close", "release", "reserve"]
    assert len(lines) == len(kinds) + 1


def test_each_record_holds_the_hash_of_the_one_before(path, lines):
    previous = "0" * 64
    for number, line in enumerate((line for line in lines if not line.endswith(b"#torn\n")), start=1):
        fields = json.loads(line)
        claimed = fields.pop("hash")
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert (fields["seq"], fields["prev_hash"]) == (number, previous)
        assert hashlib.sha256(text.encode()).hexdigest() == claimed
        previous = claimed


@pytest.mark.parametrize("flip", [1, 0x20, 0x80])
def test_a_change_of_any_one_byte_is_found(lines, flip):
    data = b"".join(lines)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= flip
        with pytest.raises(LedgerError):
            read(bytes(changed))
    assert len(read(data).records) == len(lines) - 1


def test_the_loss_of_any_one_byte_is_found(lines):
    data = b"".join(lines)
    # Without its last byte, a newline, the last record is still whole and counts.
    for place in range(len(data) - 1):
        with pytest.raises(LedgerError):
            read(data[:place] + data[place + 1 :])
    assert len(read(data[:-1]).records) == len(lines) - 1


def test_lines_moved_removed_repeated_or_added_are_found(path, lines):
    for i in range(len(lines)):
        if i < len(lines) - 1:  # a chain cannot see its last record go: that is what release cards are for
            assert not opens(path, b"".join(lines[:i] + lines[i + 1 :])), f"line {i} removed"
        assert not opens(path, b"".join([*lines[: i + 1], lines[i], *lines[i + 1 :]])), f"line {i} repeated"
        for extra in (b"\n", b"{}\n", b"# a remark\n", b'{"body":{"to#torn\n', b"\x00\n", b"[1]\n"):
            assert not opens(path, b"".join([*lines[:i], extra, *lines[i:]])), f"{extra!r} before line {i}"
        for j in range(i):
            moved = list(lines)
            moved[i], moved[j] = moved[j], moved[i]
            assert not opens(path, b"".join(moved)), f"lines {i} and {j} exchanged"


def test_other_line_ends_and_spaces_are_found(path, lines):
    assert not opens(path, b"".join(lines).replace(b"\n", b"\r\n"))
    assert not opens(path, b"\xef\xbb\xbf" + b"".join(lines))
    assert not opens(path, b"".join(lines).replace(b'"kind":"close"', b'"kind": "close"'))


def test_a_record_marked_as_torn_by_hand_is_found(path, lines):
    assert not opens(path, b"".join(lines[:-1]) + lines[-1].rstrip(b"\n") + b"#torn\n")
    assert not opens(path, b"".join(lines[:-1]) + lines[-1].rstrip(b"\n") + b"#torn")


def forged(lines: list[bytes], kind: str, change: dict[str, object]) -> bytes:
    """The records again with valid hashes, the last of a kind changed."""
    records = read(b"".join(lines)).records
    last = max(record.sequence for record in records if record.kind == kind)
    chain, data = RecordChain(), b""
    for record in records:
        body = dict(record.body) | (change if record.sequence == last else {})
        record, line = seal(chain, kind=record.kind, body=body, utc=record.utc, tool=record.tool)
        data += line
        chain = RecordChain(records=(*chain.records, record), good=len(data))
    return data


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("open", {"epsilon": 0.1}),
        ("open", {"epsilon": "3"}),
        ("open", {"format": 2}),
        ("reserve", {"charge": {"epsilon": 0.1, "delta": 0.0}}),
        ("reserve", {"run_id": "first"}),
        ("noise", {"note": "more keys"}),
        ("advance", {"through_step": 101}),
        ("advance", {"through_step": 0}),
        ("advance", {"id": "unknown"}),
        ("resume", {"from_session": "other"}),
        ("close", {"status": "no-noise-drawn"}),
        ("close", {"steps": 11}),
        ("release", {"kind": "empirical"}),
        ("release", {"kind": ["dp"]}),
    ],
)
def test_valid_hashes_do_not_excuse_a_broken_rule(path, lines, kind, change):
    assert opens(path, forged(lines, kind, {}))
    assert not opens(path, forged(lines, kind, change))


def test_one_record_with_a_new_hash_of_its_own_is_found(path, lines):
    for place, line in enumerate(lines[:-1]):
        if line.endswith(b"#torn\n"):
            continue
        fields = json.loads(line) | {"utc": "2000-01-01T00:00:00Z"}
        del fields["hash"]
        fields["hash"] = hashlib.sha256(canonical_json(fields)).hexdigest()
        assert not opens(path, b"".join([*lines[:place], canonical_json(fields) + b"\n", *lines[place + 1 :]]))


def test_an_unknown_kind_and_a_second_cap_are_refused(path, lines):
    data = b"".join(lines)
    for kind, body in (("refund", {}), ("open", {"format": 1, "dataset": "adult", "epsilon": 99.0, "delta": 0.1})):
        _, line = seal(read(data), kind=kind, body=body, utc="", tool="")
        assert not opens(path, data + line)


@pytest.mark.parametrize("torn", [b'{"body":{"from_session":"', b'{"body":{"f', b'{"body":{"artefact_s#to', b"#torn"])
def test_a_torn_last_line_that_allowed_nothing_costs_nothing_and_is_closed(path, lines, make_plan, torn):
    path.write_bytes(b"".join(lines) + torn)
    ledger = Ledger.open(path)
    assert (ledger.spent.epsilon, ledger.verify().torn) == (0.5, 2)
    ledger.reserve(make_plan())
    assert path.read_bytes().startswith(b"".join(lines) + torn)
    assert ledger.entries[-1].after_torn
    assert (Ledger.open(path).spent.epsilon, Ledger.open(path).verify().torn) == (1.0, 2)


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_reader_follows_a_torn_line_that_another_closes(path, lines, make_plan, cut):
    path.write_bytes(b"".join(lines)[:-cut])
    reader = Ledger.open(path)
    Ledger.open(path).reserve(make_plan())
    assert reader.entries == Ledger.open(path).entries
    reader.reserve(make_plan())
    assert Ledger.open(path).spent.epsilon == 1.5


def test_the_abandoned_bytes_are_pinned(path, lines):
    place = next(i for i, line in enumerate(lines) if line.endswith(b"#torn\n"))
    other = [*lines[:place], b'{"body":{"horn#torn\n', *lines[place + 1 :]]
    assert not opens(path, b"".join(other))
    assert not opens(path, b"".join([*lines[:place], *lines[place + 1 :]]))


def test_only_a_line_without_its_newline_is_torn(path, lines):
    assert opens(path, b"".join(lines) + b'{"body":{"f')
    assert not opens(path, b"".join(lines) + b'{"body":{"f\n')


def test_a_whole_record_without_its_newline_counts(path, lines, make_plan):
    path.write_bytes(b"".join(lines)[:-1])
    ledger = Ledger.open(path)
    assert len(ledger.entries) == len(lines) - 1
    ledger.reserve(make_plan())
    assert not ledger.entries[-1].after_torn
    assert path.read_bytes().startswith(b"".join(lines))
    assert ledger.verify().runs == 3


def test_garbage_is_refused_or_leaves_the_records_before_it(path, lines):
    """A line that a power cut tore off may be left out: the last, and nothing else."""
    whole = Ledger.open(path).entries
    chance = random.Random(4)
    data = b"".join(lines)
    refused = 0
    for _ in range(300):
        start = chance.randrange(len(data))
        middle = chance.randbytes(chance.randrange(30)) or b"[" * 5000
        path.write_bytes(data[:start] + middle + data[start + chance.randrange(50) :])
        try:
            found = Ledger.open(path).entries
        except LedgerError:
            refused += 1
        else:
            assert found == whole[: len(found)]
    assert refused > 200


@pytest.mark.parametrize("text", ['{"seq":1e999}', '{"seq":NaN}', '{"seq":' + "9" * 5000 + "}", '{"a":1,"a":1}'])
def test_numbers_no_ledger_writes_are_refused(path, text):
    assert not opens(path, text.encode() + b"\n")


def test_canonical_json_is_one_text():
    assert canonical_json({"b": [1, 0.1], "a": "ε"}) == b'{"a":"\\u03b5","b":[1,0.1]}'


def test_a_ledger_written_by_an_earlier_version_is_read(path):
    path.write_bytes(WRITTEN.read_bytes())
    ledger = Ledger.open(path)
    report = ledger.verify()
    assert (report.dataset, report.sequence, report.runs, report.releases, report.torn) == ("adult", 10, 3, 1, 1)
    assert report.head_sha256 == "d39515737bf20ba8c60e61ed10e9666968598d5247f07bcbacf8edd8f1bb0b37"
    assert (ledger.spent.epsilon, ledger.spent.delta, ledger.cap.epsilon, ledger.cap.delta) == (0.5, 1e-6, 3.0, 1e-4)
    keys = ("run_id", "kind", "epsilon", "status", "steps")
    assert [tuple(run[key] for key in keys) for run in ledger.show()["runs"]] == [
        ("first", "dp", 0.5, "done", 10), ("second", "bayesian-dp", 0.0, "no-noise-drawn", 0),
        ("third", "none", None, "open", 0),
    ]  # fmt: skip


def test_the_same_records_are_written_byte_for_byte():
    data, chain = b"", RecordChain()
    for record in read(WRITTEN.read_bytes()).records:
        torn = record.torn.removesuffix(b"#torn\n")
        data += torn
        chain = RecordChain(records=chain.records, good=chain.good, torn=torn)
        sealed, line = seal(chain, kind=record.kind, body=record.body, utc=record.utc, tool=record.tool)
        assert sealed == record
        data += line
        chain = RecordChain(records=(*chain.records, record), good=len(data))
    assert data == WRITTEN.read_bytes()


def test_where_a_chain_ends_is_known_without_reading_it_again(path, lines):
    data = b"".join(lines)
    for stop in (len(data), len(data) - 1, len(data) - 10):
        for begin in range(1, len(lines) - 1):
            if not lines[begin - 1].endswith(b"#torn\n"):
                base = read(b"".join(lines[:begin]))
                assert base.clean
                assert read(data[:stop], base=base) == read(data[:stop])
    assert (read(data).clean, read(data[:-1]).clean, read(data[:-10]).clean) == (True, False, False)
    assert (read(data[:-1]).open_line, read(data[:-1]).good) == (True, len(data) - 1)
    assert (read(data[:-10]).open_line, read(data[:-10]).good) == (False, len(data) - len(lines[-1]))
    assert (RecordChain().clean, RecordChain().head) == (True, (0, "0" * 64))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seq", True),
        ("seq", 1.0),
        ("kind", 7),
        ("utc", None),
        ("tool", ["t"]),
        ("body", []),
        ("other", 1),
        ("hash", None),
    ],
)
def test_a_record_has_the_values_of_a_record(key, value):
    fields = {"body": {}, "kind": "open", "prev_hash": "0" * 64, "seq": 1, "tool": "t", "utc": "u"} | {key: value}
    fields.pop("hash", None)
    fields |= {"hash": hashlib.sha256(canonical_json(fields)).hexdigest()} if key != "hash" else {}
    with pytest.raises(LedgerError, match="damaged"):
        read(canonical_json(fields) + b"\n")
    good = fields | {"seq": 1, "kind": "open", "utc": "u", "tool": "t", "body": {}}
    good = {name: each for name, each in good.items() if name not in ("hash", "other")}
    good["hash"] = hashlib.sha256(canonical_json(good)).hexdigest()
    assert len(read(canonical_json(good) + b"\n").records) == 1


def test_a_record_after_an_abandoned_line_says_so(path, lines):
    place = next(i for i, line in enumerate(lines) if line.endswith(b"#torn\n"))
    before = b"".join(lines[: place + 1])
    for change in ({"after_torn": False}, {"after_torn": 1}, {"torn_sha256": HASH}):
        fields = json.loads(lines[place + 1]) | change
        del fields["hash"]
        fields["hash"] = hashlib.sha256(canonical_json(fields)).hexdigest()
        with pytest.raises(LedgerError, match="abandoned line"):
            read(before + canonical_json(fields) + b"\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, {"a": object()}, {(1, 2): 3}])
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(SettingError, match="not plain JSON"):
        canonical_json(value)


def test_a_file_that_begins_with_an_empty_line_is_damaged():
    for data in (b"\n", b"\n\n", b"\nx#torn", b"\nx#torn\n"):
        with pytest.raises(LedgerError, match="what follows record 0"):
            read(data)
    assert read(b"") == RecordChain()
    assert read(b"{") == RecordChain(torn=b"{")
    assert read(b"x#torn\n") == RecordChain(torn=b"x#torn\n")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_whole_record_with_a_number_that_no_ledger_writes_is_refused(number):
    fields = {"body": {"epsilon": 1.5}, "hash": HASH, "kind": "open", "prev_hash": "0" * 64, "seq": 1, "tool": "t"}
    line = canonical_json(fields | {"utc": "u"}).replace(b"1.5", number.encode())
    with pytest.raises(LedgerError, match="record 1 was edited"):
        read(line + b"\n")
