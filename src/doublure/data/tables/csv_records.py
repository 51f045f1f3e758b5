"""Records of CSV as bytes, each read by itself: what stands in one changes no other, and refuses no file.

A record is a line. It ends with LF or CRLF; every other carriage return is content, and an empty line is no record.
Where quoted cells may hold line ends (``multiline``), a record ends with the first line end outside quotes, and quoting
is part of the file's form. Within a record, a quote opens a field only as its first character; in quotes, two quotes
are one; behind the closing quote, and in any other field, a quote is content.

A record cannot be read that has bytes of another encoding, an unclosed quote, more or fewer fields than the header, or
more bytes than :data:`LONGEST_RECORD`. Its cells all are :data:`UNREAD` then.

Blocks of records go to Arrow, which reads many times as fast, joins lines by an unclosed quote, and refuses the whole
block for a record with other fields. Where it finds fewer rows than lines, a record goes there as it stands only if it
is plainly quoted: each quote that opens one follows a delimiter, and all are closed. Any other is parsed alone
(:func:`fields_of`) and written anew, all its fields in quotes.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from doublure.errors import DataError

UNREAD = "\0"
"""A cell of a record that cannot be read: a misfit in a column of any type (:mod:`doublure.data.tables.cells`)."""
BLOCK_BYTES = 16_000_000
LONGEST_RECORD = 16_000_000
"""So many bytes of a record are held; the rest of a longer one is passed over, so that memory is bounded."""

MISENCODED = "bytes of another encoding"
UNCLOSED = "an unclosed quote"
RAGGED = "more or fewer fields than the header"
TOO_LONG = "more than 16 million bytes"

_BOM = b"\xef\xbb\xbf"
_QUOTE, _LF, _CR = b'"\n\r'
_ASCII = "".join(map(chr, range(128)))

Places: TypeAlias = "np.ndarray[Any, np.dtype[np.intp]]"
Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


class Unread(NamedTuple):
    """A record that cannot be read. Private.

    Attributes:
        record: Its place among the file's records, from 1.
        line: The line of the file that it begins on, from 1.
        rule: What it has.
    """

    record: int
    line: int
    rule: str


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The form of a CSV file's records: public.

    Attributes:
        delimiter: Between fields.
        fields: Their number in a record.
        encoding: Of the bytes.
        multiline: Whether quoted cells may hold line ends.
    """

    delimiter: str
    fields: int
    encoding: str = "utf-8"
    multiline: bool = False


class Cleaned(NamedTuple):
    """Some records, fit for Arrow.

    Attributes:
        content: UTF-8: the records and the empty lines that came, in their order.
        unread: Place among these, from 0 -> why it cannot be read.
    """

    content: bytes
    unread: Mapping[int, str]


class _Bounds(NamedTuple):
    """Where records and empty lines begin and end, their line ends left out: ``(N,)`` each."""

    starts: Places
    stops: Places


# -- blocks ----------------------------------------------------------------------------------------------------------


def blocks(file: IO[bytes], dialect: Dialect) -> Iterator[bytes | None]:
    """Yield whole records, some at a time, as they stand; None for one that is too long.

    Raises:
        DataError: Quoted cells may hold line ends, and a quote is not closed.
    """
    return _records_in_blocks(file, dialect) if dialect.multiline else _lines_in_blocks(file)


def _size() -> int:
    return min(BLOCK_BYTES, LONGEST_RECORD)


def _lines_in_blocks(file: IO[bytes]) -> Iterator[bytes | None]:
    held, size = list[bytes](), 0
    while more := file.read(_size()):
        first, last = more.find(b"\n"), more.rfind(b"\n") + 1
        if first < 0:
            size += len(more)
            held = [*held, more] if size <= LONGEST_RECORD else []
            continue
        begin = 0
        if size + first > LONGEST_RECORD:
            yield None
            held, begin = [], first + 1
        if last > begin or held:
            yield b"".join([*held, more[begin:last]])
        held, size = [more[last:]], len(more) - last
    if size:
        yield b"".join(held) if size <= LONGEST_RECORD else None


def _records_in_blocks(file: IO[bytes], dialect: Dialect) -> Iterator[bytes]:
    held = b""
    while more := file.read(_size()):
        held += more
        ends = _ends(held, dialect)
        if len(ends):
            end = int(ends[-1]) + 1
            yield held[:end]
            held = held[end:]
        elif len(held) > LONGEST_RECORD:
            raise _open_quote()
    if held:
        if fields_of(held.decode("latin-1"), dialect.delimiter) is None:
            raise _open_quote()
        yield held


def _open_quote() -> DataError:
    remedy = "close it; or leave multiline out, if no cell holds a line end: records are then read line by line"
    return DataError(f"a quote is not closed, or a record has {TOO_LONG}", field="multiline", remedy=remedy)


# -- records ---------------------------------------------------------------------------------------------------------


def as_it_stands(block: bytes | None, dialect: Dialect) -> bytes | None:
    """Return a block in UTF-8 that Arrow may be tried with; None where what it makes of it cannot be told by counting.

    Arrow ends a record at a carriage return by itself.
    """
    if block is None or dialect.multiline:
        return None
    content, _, unread = _decoded(block, dialect)
    return content if not unread and not _has_lone_returns(content) else None


def are_lines(rows: int, content: bytes, dialect: Dialect) -> bool:
    """Whether as many rows as Arrow found in a block are one a line, none of them open at its end.

    A row takes one line or, by an open quote, several; so as many as there are lines take one each. Only the last one
    can still be open.
    """
    if rows != content.count(b"\n") + (not content.endswith(b"\n")):
        return False
    last = content[content.rfind(b"\n", 0, -1) + 1 :]
    return fields_of(last.decode(), dialect.delimiter) is not None


def cleaned(block: bytes | None, dialect: Dialect) -> Cleaned:
    """Return a block's records so that Arrow reads each as it is read alone; fields are not counted in all of them.

    Args:
        block: As :func:`blocks` yields it.
        dialect: How it is written.
    """
    if block is None:
        return Cleaned(_unread_row(dialect), {0: TOO_LONG})
    content, bounds, unread = _decoded(block, dialect)
    odd = {*unread}
    if b'"' in content or _has_lone_returns(content):
        bounds = bounds or _bounds(content, dialect)
        odd |= {*_suspects(content, bounds, dialect).tolist()}
    if not odd or bounds is None:
        return Cleaned(content, {})
    rows = dict.fromkeys(odd, _unread_row(dialect))
    for place in odd - unread.keys():
        text = content[int(bounds.starts[place]) : int(bounds.stops[place])].decode()
        fields = fields_of(text, dialect.delimiter)
        if fields is None or len(fields) != dialect.fields:
            unread[place] = UNCLOSED if fields is None else RAGGED
        else:
            rows[place] = dialect.delimiter.join(f'"{_doubled(field)}"' for field in fields).encode()
    return Cleaned(_replaced(content, bounds, rows), unread)


def without_ragged(block: Cleaned, dialect: Dialect) -> Cleaned:
    """Return a block of which the records with another number of fields than the header count as unread, too."""
    content = block.content
    bounds, view = _bounds(content, dialect), np.frombuffer(content, np.uint8)
    delimiters = np.flatnonzero(view == ord(dialect.delimiter))
    quotes = np.flatnonzero(view == _QUOTE)
    between = delimiters[np.searchsorted(quotes, delimiters) % 2 == 0]
    counts = np.diff(np.searchsorted(between, np.append(bounds.starts, len(content))))
    wrong = np.flatnonzero((counts != dialect.fields - 1) & (bounds.stops > bounds.starts)).tolist()
    rows = dict.fromkeys(wrong, _unread_row(dialect))
    return Cleaned(_replaced(content, bounds, rows), {**dict.fromkeys(wrong, RAGGED), **block.unread})


def unread_in(file: IO[bytes], dialect: Dialect, first_line: int) -> Iterator[Unread]:
    """Yield the records of a file that cannot be read. Private.

    Args:
        file: Behind its header.
        dialect: How it is written.
        first_line: The line that its first record begins on, from 1.
    """
    record, line = 0, first_line
    for block in blocks(file, dialect):
        read = without_ragged(cleaned(block, dialect), dialect)
        bounds = _bounds(read.content, dialect)
        there = np.cumsum(bounds.stops > bounds.starts)
        begins = _bounds(block or b"", dialect).starts
        for place, rule in sorted(read.unread.items()):
            before = place if not dialect.multiline else (block or b"").count(b"\n", 0, int(begins[place]))
            yield Unread(record + int(there[place]), line + before, rule)
        record += int(there[-1]) if len(there) else 0
        line += 1 if block is None else block.count(b"\n")


def spans_lines(block: bytes | None, dialect: Dialect) -> bool:
    """Whether a record of a block has a line end in quotes, and as many fields as the header."""
    read = without_ragged(cleaned(block, dialect), dialect)
    bounds = _bounds(read.content, dialect)
    ends = np.flatnonzero(np.frombuffer(read.content, np.uint8) == _LF)
    within = ends[~np.isin(ends + 1, bounds.starts) & (ends < bounds.stops.max(initial=0))]
    return len(within) > 0


def fields_of(record: str, delimiter: str) -> list[str] | None:
    """Return a record's fields; None where a quote is not closed.

    Example:
        >>> fields_of('a,"b, c",d"e', ","), fields_of('a,"b', ",")
        (['a', 'b, c', 'd"e'], None)
    """
    pattern, found, place = _field(delimiter), list[str](), 0
    while True:
        field = pattern.match(record, place)
        if field is None or (field["quoted"] is not None and not field["closed"]):
            return None
        found.append((field["quoted"] or "").replace('""', '"') + field["rest"])
        place = field.end() + 1
        if field.end() == len(record):
            return found


@lru_cache
def _field(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf'(?:"(?P<quoted>(?:[^"]|"")*+)(?P<closed>"?))?(?P<rest>[^{re.escape(delimiter)}]*+)')


# -- inside ----------------------------------------------------------------------------------------------------------


def _has_lone_returns(content: bytes) -> bool:
    return b"\r" in content and content.count(b"\r") != content.count(b"\r\n")


def _decoded(block: bytes, dialect: Dialect) -> tuple[bytes, _Bounds | None, dict[int, str]]:
    """Return a block in UTF-8, its bounds where they are known, and which records are of another encoding.

    Records are decoded one by one, unless all of them together read as each does: in UTF-8, and in encodings that have
    a table of 256 characters.
    """
    try:
        if dialect.encoding == "utf-8":
            if not block.isascii():
                block.decode()
            return block, None, {}
        if _of_structure(dialect.encoding):
            return block.decode(dialect.encoding).encode(), None, {}
    except UnicodeDecodeError:
        pass
    bounds, pieces, unread = _bounds(block, dialect), list[bytes](), dict[int, str]()
    for place, (start, stop) in enumerate(zip(bounds.starts.tolist(), bounds.stops.tolist(), strict=True)):
        try:
            pieces.append(_alone(block[start:stop], dialect))
        except ValueError:
            pieces.append(b"")
            unread[place] = MISENCODED
    end = b"\r\n"  # not LF: a record may end with a carriage return of its own
    stops = np.cumsum([len(piece) + len(end) for piece in pieces], dtype=np.intp) - len(end)
    starts = stops - np.array([len(piece) for piece in pieces], dtype=np.intp)
    return b"".join(piece + end for piece in pieces), _Bounds(starts, stops), unread


def _alone(record: bytes, dialect: Dialect) -> bytes:
    """Return one record in UTF-8; ValueError for what is none."""
    text = record.decode(dialect.encoding)
    if "\n" in text and not dialect.multiline:  # of an encoding that writes line ends otherwise
        raise ValueError
    return text.encode()


@lru_cache
def _of_structure(encoding: str) -> bool:
    """Whether bytes of ASCII are ASCII wherever they stand, and texts read as their parts: UTF-8 and tables of 256."""
    if encoding in ("utf-8", "ascii", "iso8859-1"):
        return True
    try:
        module = importlib.import_module(f"encodings.{encoding.replace('-', '_')}")
    except ImportError:
        return False
    table = getattr(module, "decoding_table", "")
    return len(table) == 256 and table.startswith(_ASCII) and "\n" not in table[128:]


def _bounds(content: bytes, dialect: Dialect) -> _Bounds:
    """Return where records and empty lines begin and end."""
    return _between(np.frombuffer(content, np.uint8), _ends(content, dialect))


def _ends(content: bytes, dialect: Dialect) -> Places:
    """Return the places of the line ends that end a record or an empty line."""
    view = np.frombuffer(content, np.uint8)
    ends: Places = np.flatnonzero(view == _LF)
    if not dialect.multiline or b'"' not in content:
        return ends
    quotes = np.flatnonzero(view == _QUOTE)
    ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    bounds = _between(view, ends)
    before = np.searchsorted(quotes, bounds.starts)
    ill = _misplaced(view, quotes, before, bounds, dialect.delimiter)
    if not len(ill):
        return ends
    first = int(ill[0])  # what stands before it is divided rightly
    matches = _record(dialect.delimiter).finditer(content, int(bounds.starts[first]))
    more = [match.end() - 1 for match in matches if match[1] is not None]
    return np.concatenate([ends[:first], np.array(more, dtype=np.intp)])


def _between(view: Bytes, ends: Places) -> _Bounds:
    """Return the bounds of what line ends divide; a carriage return before one belongs to it."""
    starts = np.concatenate([[0], ends + 1]).astype(np.intp)
    stops = np.concatenate([ends, [len(view)]]).astype(np.intp)
    if starts[-1] == len(view):
        starts, stops = starts[:-1], stops[:-1]
    full = stops > starts
    stops[full] -= view[stops[full] - 1] == _CR
    return _Bounds(starts, stops)


@lru_cache
def _record(delimiter: str) -> re.Pattern[bytes]:
    """Return the form of a record that may span lines, its line end a group; an open quote runs to the end."""
    mark = re.escape(delimiter.encode())
    field = rb'(?:"(?:[^"]++|"")*+(?:"|\Z))?+[^' + mark + rb"\n]*+"
    return re.compile(field + rb"(?:" + mark + field + rb")*+(?:(\n)|\Z)")


def _suspects(content: bytes, bounds: _Bounds, dialect: Dialect) -> Places:
    """Return the places of records that Arrow may read otherwise than :func:`fields_of`, or join with others."""
    view = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(view == _QUOTE)
    before = np.searchsorted(quotes, bounds.starts)
    open_ended = np.flatnonzero(np.diff(np.append(before, len(quotes))) % 2)
    found = [_misplaced(view, quotes, before, bounds, dialect.delimiter), open_ended]
    if b"\r" in content:
        returns = np.flatnonzero(view[:-1] == _CR)
        found.append(_holding(bounds, returns[view[returns + 1] != _LF]))
    if dialect.multiline and not _of_structure(dialect.encoding):
        ends = np.flatnonzero(view[:-1] == _LF)
        outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
        found.append(_holding(bounds, outside[~np.isin(outside + 1, bounds.starts)]))
    return np.unique(np.concatenate(found))


def _holding(bounds: _Bounds, places: Places) -> Places:
    """Return the records that hold some places of a block."""
    found: Places = np.searchsorted(bounds.starts, places, side="right") - 1
    return found


def _misplaced(view: Bytes, quotes: Places, before: Places, bounds: _Bounds, delimiter: str) -> Places:
    """Return the records in which an odd quote, counted from each one's head, neither begins a field nor follows one.

    In all others, what stands behind an odd number of quotes is in quotes, by induction: an odd quote opens a field, or
    is the second of two, which are one in quotes; an even one closes it, or is the first of two.

    Args:
        view: The block.
        quotes: Where its quotes are.
        before: ``(N,)`` how many of them stand before each record.
        bounds: Of the records.
        delimiter: Between fields.
    """
    if not (before % 2).any():  # an odd quote of the block is an odd one of its record
        opening = quotes[::2]
        beside = view[opening - 1]
        if len(opening) and opening[0] == 0:
            beside[0] = _LF
        if ((beside == ord(delimiter)) | (beside == _QUOTE) | (beside == _LF)).all():
            return np.empty(0, dtype=np.intp)
    record = np.repeat(np.arange(len(before)), np.diff(np.append(before, len(quotes))))
    odd = (np.arange(len(quotes)) - before[record]) % 2 == 0
    beside = view[np.maximum(quotes - 1, 0)]
    begins = (quotes == bounds.starts[record]) | (beside == ord(delimiter)) | (beside == _QUOTE)
    found: Places = np.unique(record[odd & ~begins])
    return found


def _replaced(content: bytes, bounds: _Bounds, rows: Mapping[int, bytes]) -> bytes:
    """Return a block of which some records are others."""
    pieces, done = list[bytes](), 0
    for place in sorted(rows):
        pieces += [content[done : int(bounds.starts[place])], rows[place]]
        done = int(bounds.stops[place])
    return b"".join([*pieces, content[done:]]) if pieces else content


def _unread_row(dialect: Dialect) -> bytes:
    return dialect.delimiter.join([UNREAD] * dialect.fields).encode()


def _doubled(field: str) -> str:
    return field.replace('"', '""')


def for_arrow(content: bytes) -> bytes:
    """Return a block as Arrow is to be given it: of a byte order mark, which is content here, Arrow would take none."""
    return b"\n" + content if content.startswith(_BOM) else content
