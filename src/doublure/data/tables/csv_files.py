"""CSV as bytes: which compression, which delimiter, which header, and the records block by block.

The header is read apart from the records. Values are read as text only, each distinct one once; what they mean is the
schema's business (:mod:`doublure.data.tables.cells`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from doublure.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = {".csv", ".tsv", ".txt"}
COMPRESSIONS = {".gz", ".bz2", ".xz", ".zip", ".zst"}
BLOCK_BYTES = 16_000_000
_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_HEADER = 5_000_000
_HEADER_BLOCK = 65_536
_BREAK = re.compile(rb"\r\n|\n|\r")
_QUOTE_OR_BREAK = re.compile(rb'"|\r\n|\n|\r')
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def read_header(path: Path, encoding: str | None = None, delimiter: str | None = None) -> tuple[list[str], str, int]:
    """Return the column names, the delimiter, and how many lines the header takes.

    A delimiter that is not given is the one of ``, ; tab |`` that stands most often in the header, outside quotes.

    Raises:
        DataError: The file is no CSV, or its first line no header.
    """
    header, lines = _first_record(path, encoding)
    if "\0" in header:
        raise DataError("holds NUL bytes and is no CSV text", field=path.name, remedy="export it again as UTF-8 CSV")
    if not header.strip():
        raise DataError("has no header line", field=path.name, remedy="begin the file with the column names")
    bare = _QUOTED.sub("", header)
    delimiter = delimiter or max(_DELIMITERS, key=bare.count)
    try:
        names = [name.strip() for name in next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter))]
    except csv.Error:
        raise _unreadable(path) from None
    if not all(names):
        raise DataError("the header has an empty column name", field=path.name, remedy="name every column")
    return names, delimiter, lines


def _first_record(path: Path, encoding: str | None) -> tuple[str, int]:
    """Return the first record as text, and its lines: more than one where a quoted name has line breaks."""
    try:
        with _opened(path) as file:
            start, end = b"", None
            while end is None and len(start) < _LONGEST_HEADER and (more := file.read(_HEADER_BLOCK + len(start))):
                start += more
                end = _end_of_record(start)
    except _damage():
        raise _unreadable(path) from None
    record, lines = (start, 1) if end is None else end
    try:
        return record.decode(encoding or "utf-8-sig"), lines
    except UnicodeDecodeError:
        raise _misencoded(path, encoding) from None


def _end_of_record(start: bytes) -> tuple[bytes, int] | None:
    """Return the bytes before the first line break outside quotes, and their lines; None where there is none yet."""
    lines, place = 1, 0
    while (found := _QUOTE_OR_BREAK.search(start, place)) is not None:
        if found.group() != b'"':
            return start[: found.start()], lines
        closing = start.find(b'"', found.end())
        if closing < 0:
            return None
        lines += len(_BREAK.findall(start, found.end(), closing))
        place = closing + 1
    return None


def read_batches(
    path: Path,
    names: list[str],
    wanted: list[str],
    delimiter: str,
    header_lines: int,
    chunk_rows: int,
    plain: Collection[str] = (),
    encoding: str | None = None,
) -> Iterator[dict[str, pa.Array]]:
    """Yield columns of text, at most ``chunk_rows`` of each: each distinct text once, or as it stands.

    Args:
        path: The file.
        names: Its header.
        wanted: Which columns to read.
        delimiter: Between fields.
        header_lines: How many lines the header takes.
        chunk_rows: The most records at once.
        plain: Of which columns text is not compared, such as numbers, of which few are equal.
        encoding: Of the bytes; UTF-8 if left out.

    Raises:
        DataError: A line has another number of fields than the header, or the file is damaged.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    numbers = [str(number) for number in range(len(names))]  # names may be hostile or stand twice; numbers do not
    first = dict(zip(reversed(names), reversed(numbers), strict=True))
    places = [first[name] for name in wanted]
    text = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(numbers, text) | {first[name]: pa.string() for name in plain}
    try:
        with (
            _opened(path) as file,
            arrow_csv.open_csv(
                file,
                read_options=arrow_csv.ReadOptions(
                    column_names=numbers,
                    skip_rows=header_lines,
                    block_size=BLOCK_BYTES,
                    encoding=encoding or "utf8",
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, include_columns=places, strings_can_be_null=False
                ),
            ) as reader,
        ):
            for batch in reader:
                for start in range(0, len(batch), chunk_rows):
                    yield dict(zip(wanted, batch.slice(start, chunk_rows).columns, strict=True))
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error) or "Could not skip" in str(error):  # nothing after the header
            return
        raise (_misencoded(path, encoding) if "UTF8" in str(error) else _ragged(path)) from None
    except UnicodeDecodeError:
        raise _misencoded(path, encoding) from None
    except (pa.ArrowException, *_damage()):
        raise _unreadable(path) from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed by its ending."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        import zipfile

        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.filename.endswith("/")]
            if len(members) != 1:
                remedy = "leave one CSV file in it, or unpack it"
                raise DataError("is an archive of several files, or of none", field=path.name, remedy=remedy)
            with archive.open(members[0]) as file:
                yield file
    else:
        with _opener(suffix)(path) as file:
            yield file


def _opener(suffix: str) -> Any:
    import bz2
    import gzip
    import lzma

    if suffix == ".zst":
        import pyarrow as pa

        return lambda path: pa.input_stream(str(path), compression="zstd")
    return {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, lambda path: path.open("rb"))


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


def _unreadable(path: Path) -> DataError:
    return DataError("cannot be read as CSV", field=path.name, remedy="check that the file is whole and not encrypted")


def _misencoded(path: Path, encoding: str | None) -> DataError:
    if encoding is not None:
        return DataError(f"is not {encoding} text", field=path.name, remedy="correct the schema's encoding")
    remedy = (
        "write its encoding into the schema, such as encoding: latin-1 (draft it with --encoding latin-1), or export "
        "it again as UTF-8 CSV"
    )
    return DataError("is not UTF-8 text", field=path.name, remedy=remedy)


def _ragged(path: Path) -> DataError:
    return DataError(
        "has lines with more or fewer fields than the header, or an unclosed quote",
        field=path.name,
        remedy="export it again with quoting",
    )
