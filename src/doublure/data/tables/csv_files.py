"""CSV as bytes: which compression, which delimiter, which header, and the records block by block.

The header is read apart from the records: with what the schema declares, it is the file's form, and no record decides
on it. Records are read one by one (:mod:`doublure.data.tables.csv_records`), values as text only, each distinct one
once; what they mean is the schema's business (:mod:`doublure.data.tables.cells`).
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from doublure.data.tables import csv_records
from doublure.data.tables.csv_records import MISENCODED, RAGGED, TOO_LONG, UNCLOSED, Dialect, Unread
from doublure.data.tables.header import header_names
from doublure.data.tables.utf_16 import MARKS, in_utf_8
from doublure.errors import DataError, Fault, FaultyRecords
from doublure.schema.written import Written
from doublure.support.objects import Place

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_HEADER = 5_000_000
_HEADER_BLOCK = 65_536
_QUOTE_OR_END = re.compile(rb'"|\n')
_REMEDIES = {
    UNCLOSED: "declare multiline: true if quoted cells hold line ends",
    MISENCODED: "write the encoding into the schema, such as encoding: latin-1 (draft it with --encoding latin-1)",
    RAGGED: "quote cells that hold the delimiter, and take out lines that are no records, such as totals",
    TOO_LONG: "shorten them",
}
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class CsvHeader(NamedTuple):
    """The header of a CSV file.

    Attributes:
        names: Of the columns.
        size: Its length in bytes, line end included.
        dialect: The form of the records.
        above: How many lines stand above it.
    """

    names: list[str]
    size: int
    dialect: Dialect
    above: int = 0


def read_header(path: Place, written: Written | None = None) -> CsvHeader:
    """Return what a file's header says.

    A delimiter that is not given is the one of ``, ; tab |`` that stands most often in the header, outside quotes.

    Args:
        path: The file.
        written: How its text is to be read, if not as usual: also the lines above it, and new names.

    Raises:
        DataError: The file is no CSV, or its first line no header.
    """
    form = written or Written(columns={})
    encoding, delimiter, multiline = form.encoding, form.delimiter, form.multiline
    header, size = _first_record(path, encoding, multiline=multiline, skip=form.skip_rows)
    if "\0" in header:
        raise DataError("holds NUL bytes and is no CSV text", field=path.name, remedy="export it again as UTF-8 CSV")
    if not header.strip():
        raise DataError(
            "has no header line", field=path.name, remedy="begin the file with the column names, or declare skip_rows"
        )
    bare = _QUOTED.sub("", header)
    if '"' in bare and not multiline:
        remedy = "close it, or declare multiline: true if quoted names hold line ends"
        raise DataError("the header has an unclosed quote", field=path.name, remedy=remedy)
    if "\r" in bare:
        remedy = "export it again with lines that end with LF or CRLF"
        raise DataError("the header has a carriage return by itself", field=path.name, remedy=remedy)
    delimiter = delimiter or max(_DELIMITERS, key=bare.count)
    try:
        stored = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter))
    except csv.Error:
        raise unreadable(path) from None
    names = header_names(stored, path.name, written)
    own = "utf-8" if encoding in (None, "utf-8-sig") else str(encoding)  # a mark at the head of a record is content
    return CsvHeader(
        names, size, Dialect(delimiter=delimiter, fields=len(names), encoding=own, multiline=multiline), form.skip_rows
    )


def header_form(path: Place, header: CsvHeader) -> dict[str, str]:
    """Return what a header tells of how its file is written, by the keys of a schema, as far as it is not the usual."""
    try:
        with opened(path) as file:
            line = file.read(header.size)
    except _damage():
        raise unreadable(path) from None
    line = line.split(b"\n", header.above)[-1]
    found = {} if header.dialect.delimiter == "," else {"delimiter": header.dialect.delimiter}
    found |= {"encoding": "utf-8-sig"} if line.startswith(codecs.BOM_UTF8) else {}
    found |= {"line_end": "crlf"} if line.endswith(b"\r\n") else {}
    bare = line.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    names = bare.split(header.dialect.delimiter.encode())
    return found | ({"quoting": "text"} if all(name[:1] == name[-1:] == b'"' for name in names) else {})


def declared_header(path: Place, written: Written) -> CsvHeader:
    """Return the header of a file that begins with a record: the schema's columns, in its order.

    Args:
        path: The file.
        written: Of its text the columns, and a delimiter that is a comma if left out, as no record decides on it.

    Raises:
        DataError: The file is damaged.
    """
    names, mark = list(written.columns), len(codecs.BOM_UTF8)
    try:
        with opened(path) as file:
            start = b""
            while start.count(b"\n") < written.skip_rows + 1 and (more := file.read(_HEADER_BLOCK)):
                start += more
    except _damage():
        raise unreadable(path) from None
    own = "utf-8" if written.encoding in (None, "utf-8-sig") else str(written.encoding)
    dialect = Dialect(delimiter=written.delimiter or ",", fields=len(names), encoding=own, multiline=written.multiline)
    above = _after_lines(start, written.skip_rows)
    marked = own == "utf-8" and not above and start.startswith(codecs.BOM_UTF8)
    return CsvHeader(names, mark if marked else above, dialect, written.skip_rows)


def _first_record(path: Place, encoding: str | None, *, multiline: bool, skip: int = 0) -> tuple[str, int]:
    """Return the first record below some lines as text, and the bytes of both with the line end."""
    try:
        with opened(path) as file:
            start, begin, end = b"", 0, -1
            while end < 0 and len(start) < _LONGEST_HEADER and (more := file.read(_HEADER_BLOCK + len(start))):
                start += more
                begin = _after_lines(start, skip)
                end = _end_of_record(start, begin) if multiline else start.find(b"\n", begin)
    except _damage():
        raise unreadable(path) from None
    if encoding is not None and _utf_16(path) is not None:
        raise DataError("is UTF-16 text", field=path.name, remedy="leave encoding out of the schema")
    size = len(start) if end < 0 else end + 1
    record = start[begin:size].removesuffix(b"\n").removesuffix(b"\r")
    try:
        return record.decode(encoding or "utf-8-sig"), size
    except UnicodeDecodeError:
        raise _misencoded(path, encoding) from None


def _after_lines(start: bytes, count: int) -> int:
    """Return the place behind some lines; the end where there are fewer."""
    place = 0
    for _ in range(count):
        place = start.find(b"\n", place) + 1 or len(start)
    return place


def _end_of_record(start: bytes, place: int) -> int:
    """Return the first line end outside quotes from a place on; -1 where there is none yet."""
    while (found := _QUOTE_OR_END.search(start, place)) is not None:
        if found.group() == b"\n":
            return found.start()
        closing = start.find(b'"', found.end())
        if closing < 0:
            return -1
        place = closing + 1
    return -1


def read_batches(
    path: Place,
    header: CsvHeader,
    wanted: list[str],
    chunk_rows: int,
    plain: Collection[str] = (),
    *,
    refuse: bool = False,
) -> Iterator[dict[str, pa.Array]]:
    """Yield columns of text, at most ``chunk_rows`` of each: each distinct text once, or as it stands.

    Args:
        path: The file.
        header: Its header.
        wanted: Which columns to read.
        chunk_rows: The most records at once.
        plain: Of which columns text is not compared, such as numbers, of which few are equal.
        refuse: Whether a record that cannot be read is refused; its cells are ``UNREAD`` otherwise.

    Raises:
        FaultyRecords: Records cannot be read; it names all of them.
        DataError: The file is damaged.
    """
    import pyarrow as pa

    numbers = [str(number) for number in range(len(header.names))]  # names may be hostile or twice there
    first = dict(zip(reversed(header.names), reversed(numbers), strict=True))
    distinct = pa.dictionary(pa.int32(), pa.string())
    types = {first[name]: pa.string() if name in plain else distinct for name in wanted}
    try:
        with opened(path) as file:
            file.read(header.size)
            for block in csv_records.blocks(file, header.dialect):
                batch, unread = _parsed(block, header.dialect, numbers, types)
                if unread and refuse:
                    found = [(path.name, each) for each in unread_in(path, header)]
                    raise refused(path.name, found, header.dialect.encoding)
                columns = {name: batch.column(first[name]).combine_chunks() for name in wanted}
                for start in range(0, batch.num_rows, chunk_rows):
                    yield {name: column.slice(start, chunk_rows) for name, column in columns.items()}
    except (pa.ArrowException, *_damage()):
        raise unreadable(path) from None


def _parsed(
    block: bytes | None, dialect: Dialect, numbers: list[str], types: Mapping[str, pa.DataType]
) -> tuple[pa.Table, bool]:
    """Return a block's columns, and whether some of its records cannot be read.

    Arrow is given the block as it stands first. Where it finds as many rows as there are lines, each row is a line: an
    open quote joins lines, and an empty line is none.
    """
    plain = csv_records.as_it_stands(block, dialect)
    if plain is not None:
        table = _table(plain, dialect, numbers, types)
        if table is not None and csv_records.are_lines(table.num_rows, plain, dialect):
            return table, False
    clean = csv_records.cleaned(block, dialect)
    table = _table(clean.content, dialect, numbers, types)
    if table is None:
        clean = csv_records.without_ragged(clean, dialect)
        table = _table(clean.content, dialect, numbers, types)
    if table is None:
        raise ValueError
    return table, bool(clean.unread)


def _table(content: bytes, dialect: Dialect, numbers: list[str], types: Mapping[str, pa.DataType]) -> pa.Table | None:
    """Return what Arrow reads; None if it cannot read each row."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    content = csv_records.for_arrow(content)
    if not content.strip(b"\r\n"):
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(column_names=numbers, block_size=len(content) + 1),
            parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types, include_columns=list(types), strings_can_be_null=False, check_utf8=False
            ),
        )
    except pa.ArrowInvalid:  # more or fewer fields, or an open quote
        return None


def unread_in(path: Place, header: CsvHeader) -> list[Unread]:
    """Return the records that cannot be read. Private.

    Raises:
        DataError: The file is damaged.
    """
    try:
        with opened(path) as file:
            first_line = 1 + file.read(header.size).count(b"\n")
            return list(csv_records.unread_in(file, header.dialect, first_line))
    except _damage():
        raise unreadable(path) from None


def spans_lines(path: Place, header: CsvHeader) -> bool:
    """Whether a name or, among the first records, a quoted cell holds a line end: for the eyes of the owner alone.

    Args:
        path: The file.
        header: Read as one whose quoted cells may hold line ends.
    """
    with suppress(DataError, *_damage()), opened(path) as file:  # quotes that are not closed, say
        head = file.read(header.size)
        block = next(csv_records.blocks(file, header.dialect), b"")
        return head.count(b"\n") > 1 + header.above or csv_records.spans_lines(block, header.dialect)
    return False


def refused(
    name: str,
    unread: Sequence[tuple[str, Unread]],
    encoding: str = "utf-8",
    remedies: Mapping[str, str] = MappingProxyType({}),
) -> FaultyRecords:
    """Return the refusal of records that cannot be read, of one file or of several.

    Args:
        name: Of the whole table.
        unread: Each with its file's name. Private.
        encoding: Of the files.
        remedies: Rule of a container's own -> remedy.
    """
    rules = sorted({each.rule for _, each in unread})
    shown, usual = "UTF-8" if encoding == "utf-8" else encoding, {**_REMEDIES, **remedies}
    if encoding != "utf-8":
        usual = usual | {MISENCODED: "correct the schema's encoding"}
    said = " or ".join(f"bytes that are not {shown} text" if rule == MISENCODED else rule for rule in rules)
    said_remedies = [remedy for rule, remedy in usual.items() if rule in rules]
    return FaultyRecords(
        f"has records with {said}",
        field=name,
        remedy="; ".join([*said_remedies, "or declare misfit: coerce, which leaves such records out"]),
        faults=[Fault(each.line, file, each.rule) for file, each in unread],
    )


@contextmanager
def opened(path: Place) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed by its ending; UTF-16 that begins with its mark comes as UTF-8."""
    codec = _utf_16(path)
    with _decompressed(path) as file:
        yield file if codec is None else in_utf_8(file, codec)


def _utf_16(path: Place) -> str | None:
    """Return the codec of a file that begins with the mark of UTF-16: of its form, no record."""
    with _decompressed(path) as file:
        return MARKS.get(file.read(2))


@contextmanager
def guarded(path: Place, form: str) -> Iterator[None]:
    """Refuse a damaged file in one line.

    Raises:
        DataError: Naming the file, and the form that it should have.
    """
    try:
        yield
    except _damage():
        raise unreadable(path, form) from None


@contextmanager
def _decompressed(path: Place) -> Iterator[IO[bytes]]:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        import zipfile

        with path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
            members = [info for info in archive.infolist() if not info.filename.endswith("/")]
            if len(members) != 1:
                remedy = "leave one CSV file in it, or unpack it"
                raise DataError("is an archive of several files, or of none", field=path.name, remedy=remedy)
            with archive.open(members[0]) as file:
                yield file
    else:
        with path.open("rb") as raw, _opener(suffix)(raw) as file:
            yield file


def _opener(suffix: str) -> Any:
    import bz2
    import gzip
    import lzma

    if suffix == ".zst":
        import pyarrow as pa

        return lambda raw: pa.input_stream(raw, compression="zstd")
    return {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, nullcontext)


def _damage() -> tuple[type[Exception], ...]:
    """Return what readers raise on files that are cut off, encrypted, or something else than their ending says."""
    import lzma
    import zipfile
    import zlib

    return (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        lzma.LZMAError,
        zipfile.BadZipFile,
        zlib.error,
    )


def unreadable(path: Place, form: str = "CSV") -> DataError:
    """Return the refusal of a file that is damaged, encrypted or of another form."""
    return DataError(
        f"cannot be read as {form}", field=path.name, remedy="check that the file is whole and not encrypted"
    )


def _misencoded(path: Place, encoding: str | None) -> DataError:
    if encoding is not None:
        return DataError(f"is not {encoding} text", field=path.name, remedy="correct the schema's encoding")
    return DataError("is not UTF-8 text", field=path.name, remedy=f"{_REMEDIES[MISENCODED]}, or export it as UTF-8")
