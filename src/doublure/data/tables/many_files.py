"""A table in many files of one form: a folder or a pattern, read in name order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.containers.registry import find_container
from doublure.data.tables.csv_records import Unread
from doublure.data.tables.source import TableSource
from doublure.errors import DataError, Fault, FaultyRecords, printable
from doublure.schema.scalars import Misfit
from doublure.support.objects import ObjectPath, Place

PATTERN = frozenset("*?[")
_DOCUMENTS = frozenset({"readme", "license", "licence", "notice", "changelog", "citation"})
"""Names, without their endings, that files about data have by convention."""
_REMEDY = "give files of one form with one header"


class FilesSource(TableSource):
    """Files whose headers have been checked and whose records have not been read.

    Args:
        name: What was given.
        files: Of each the source, at least one.
    """

    def __init__(self, name: str, files: Sequence[TableSource]) -> None:
        super().__init__(name, files[0].columns)
        self.unnamed, self.read_whole = files[0].unnamed, any(file.read_whole for file in files)
        self._files = files
        self.dtypes, self.text_form = files[0].dtypes, files[0].text_form

    @override
    def check_names(self, names: Iterable[str]) -> None:
        wanted = list(names)
        for file in self._files:
            try:
                file.check_names(wanted)
            except DataError as error:  # the same names may stand in all others
                message = f"{error.message} ({printable(file.name)})"
                raise DataError(message, field=error.field, remedy=error.remedy) from None

    @override
    def named_by_none(self) -> list[int]:
        return self._files[0].named_by_none()

    @override
    def pieces(self) -> list[TableSource]:
        return [piece for file in self._files for piece in file.pieces()]

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        for file in self._files:
            try:
                yield from file.raw(columns, plain, misfit)
            except FaultyRecords as error:  # of this file; of all of them in one error
                found = self.unread()
                faults = [Fault(each.line, name, each.rule) for name, each in found]
                raise FaultyRecords(error.message, field=self.name, remedy=error.remedy or "", faults=faults) from None

    @override
    def unread(self) -> list[tuple[str, Unread]]:
        return [each for file in self._files for each in file.unread()]

    @override
    def spans_lines(self) -> bool:
        return any(file.spans_lines() for file in self._files)


def files_of(given: Place) -> list[Place] | None:
    """Return the files of a folder or a pattern, by name; None where it is neither.

    Of a folder its files and those of folders in it. Left out are hidden ones and those that begin with ``_``, as
    engines write them beside their parts, and a README or licence of another form than the parts.

    Raises:
        DataError: There is none, or they are of two forms.
    """
    found: list[Place]
    if isinstance(given, ObjectPath) and (matched := given.matching()) is not None:
        found = [*matched]
    elif given.is_dir():
        found = _inside(given)
    elif isinstance(given, Path) and PATTERN & set(str(given)) and not given.exists():
        plain = list(takewhile(lambda part: not PATTERN & set(part), given.parts))
        pattern = "/".join(given.parts[len(plain) :])
        found = [path for path in Path(*plain).glob(pattern) if path.is_file()]
    else:
        return None
    found = _without_documents(found)
    if not found:
        raise DataError("holds no file", field=given, remedy="give a folder or a pattern of Parquet or CSV files")
    if len(by_form := _by_form(found)) > 1:
        *others, usual = by_form
        odd = printable(min(others[0], key=lambda path: path.parts).name)
        among = printable(min(usual, key=lambda path: path.parts).name)
        remedy = f"{_REMEDY}; move others out, or give a pattern such as {printable(given.name)}/*{usual[0].suffix}"
        raise DataError(f"has files of several forms, {odd} beside {among}", field=given, remedy=remedy)
    return sorted(found, key=lambda path: path.parts)


def open_files(given: Place, found: Sequence[Place], open_file: Callable[[Place], TableSource]) -> TableSource:
    """Look at the header of each file; no record is read.

    Raises:
        DataError: One cannot be opened.
    """
    return FilesSource(given.name, [open_file(path) for path in found])


def holds_tables(folder: Place) -> bool:
    """Whether a folder looks like a table in parts, from the names of its files alone."""
    found = _without_documents(_inside(folder))
    return len({_form(path) for path in found}) == 1 and all(find_container(path) for path in found)


def _inside(folder: Place) -> list[Place]:
    """Return the files of a folder and of folders in it, without those that engines and editors keep there."""
    found: Mapping[str, Place]
    if isinstance(folder, ObjectPath):
        found = folder.inside()
    else:
        found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return [path for name, path in found.items() if not any(part[0] in "._" for part in name.split("/") if part)]


def _without_documents(paths: list[Place]) -> list[Place]:
    """Return files without those that are about data by their names, if none of the others has their form."""
    about = [path for path in paths if path.name.partition(".")[0].lower() in _DOCUMENTS]
    forms = {_form(path) for path in paths if path not in about}
    return [path for path in paths if path not in about or not forms or _form(path) in forms]


def _by_form(paths: Sequence[Place]) -> list[list[Place]]:
    """Return files by their form, that of most files last."""
    found: dict[str, list[Place]] = {}
    for path in paths:
        found.setdefault(_form(path), []).append(path)
    return sorted(found.values(), key=len)


def _form(path: Place) -> str:
    """Return the form of a file by its ending: of CSV, each ending is one."""
    found = find_container(path)
    return path.suffix.lower() if found is None else found.form_of(path)
