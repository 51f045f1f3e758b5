"""A studio of one folder, and one request to one of its screens."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from doublure.errors import DoublureError, InputError, counted
from doublure.schema import Schema
from doublure.studio import project as projects
from doublure.studio.folder import ProjectFolder
from doublure.studio.project import Project
from doublure.studio.script import commands_file
from doublure.support.files import write_atomic

_PRIVATE = 0o600
_MOST_UNDONE = 100
_NOTHING: Mapping[str, bytes] = MappingProxyType({})


class Stale(InputError):
    """A form was made of an older version of the project, in another tab or before an undo."""

    code = "stale"


class FieldError(NamedTuple):
    """An error beside a field.

    Attributes:
        field: The name of the form's field; empty for the whole form.
        message: One line with the remedy.
    """

    field: str
    message: str


class Misfits(InputError):
    """All errors of a form at once."""

    code = "misfits"

    def __init__(self, found: tuple[FieldError, ...]) -> None:
        self.found = found
        super().__init__(f"fix {counted(len(found), 'entry')}", remedy="see beside each")


@dataclass
class FormErrors:
    """Collects the errors of a form, so that all are told at once.

    Example:
        >>> from doublure.studio.visit import FormErrors
        >>> found = FormErrors()
        >>> with found.at("epsilon"):
        ...     raise db.errors.SettingError("must be above 0", field="epsilon")
        >>> found.errors
        [FieldError(field='epsilon', message='must be above 0')]
    """

    errors: list[FieldError] = field(default_factory=list)

    @contextmanager
    def at(self, name: str, *others: str) -> Iterator[None]:
        """Keep the error of a field: the first, or another whose name the error says."""
        try:
            yield
        except DoublureError as error:
            self.errors += as_fields(error, error.field if error.field and error.field in others else name)

    def stop(self) -> None:
        """Raise what was found, if anything was.

        Raises:
            Misfits: All of it.
        """
        if self.errors:
            raise Misfits(tuple(self.errors))


def as_fields(error: DoublureError, name: str = "", *, whole: bool = False) -> tuple[FieldError, ...]:
    """Return an error as those of fields.

    Args:
        error: The error.
        name: The form's field; empty for the whole form.
        whole: Whether what the error names is told beside the field, too: a row of a file is no field of a form.
    """
    if isinstance(error, Misfits):
        return error.found
    said = str(error) if whole or not name else "; ".join(filter(None, (error.message, error.remedy)))
    return (FieldError(name, said),)


class Studio:
    """The studio of one folder: its project, its files, and what can be undone.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: ProjectFolder) -> None:
        self.folder = folder
        self.status = ""
        """What the next page says first, such as that something was saved."""
        self.found: tuple[int, Any] | None = None
        """What the owner looked at last, and of which version: private, and kept in memory alone."""
        self.own_jobs: set[str] = set()
        """Names of the commands that this studio itself has started."""
        self.taking = threading.Lock()
        """Held while a file that was dropped in takes its name."""
        self._lock = threading.Lock()
        self._before: list[_UndoableChange] = []
        self._read: tuple[tuple[int, int], Project] | None = None
        self._made: tuple[Project, Schema] | None = None

    @property
    def root(self) -> Path:
        """The folder's path."""
        return self.folder.root

    @property
    def project(self) -> Project:
        """The project as it lies on the disk; an empty one before the first change."""
        path = self.folder.path(projects.FILE)
        try:
            seen = path.stat()
        except FileNotFoundError:
            return Project()
        key = _file_state(seen)
        if self._read is None or self._read[0] != key:
            self._read = (key, self._confined(Project.load(path)))
        return self._read[1]

    def schema(self, project: Project | None = None) -> Schema:
        """Return a project's schema, made once for each version.

        Raises:
            SchemaError: It contradicts itself.
        """
        project = project or self.project
        if project.own_schema:
            return project.described(self.folder)
        if self._made is None or self._made[0] is not project:
            self._made = (project, project.described(self.folder))
        return self._made[1]

    def change(
        self,
        version: int,
        by: Callable[[Project], Project],
        said: str,
        *,
        undoes: str = "",
        replaced: Mapping[str, bytes] = _NOTHING,
    ) -> Project:
        """Change the project, and write it with the schema and the commands.

        Args:
            version: The version that the form was made of.
            by: The change.
            said: What the next page says of it.
            undoes: What taking it back would take back; as ``said`` has it if left out.
            replaced: Files in the folder that it replaced, as they were: taking it back brings them back.

        Raises:
            Stale: The project was changed since.
            InputError: The change contradicts itself, or the folder cannot be written.
        """
        with self._lock:
            before = self._of(version)
            self._write(by(before), before)
            words = undoes or _undone(said)
            self._before = [*self._before[-_MOST_UNDONE:], _UndoableChange(before, words, replaced)]
        self.status = said
        return self.project

    def undo(self, version: int) -> Project:
        """Take back the last change.

        Raises:
            Stale: The project was changed since.
            InputError: There is nothing to take back.
        """
        with self._lock:
            before = self._of(version)
            if not self._before:
                raise InputError("there is nothing to undo", remedy="go on")
            last = self._before[-1]
            self._write(last.project, before)
            for name, content in last.replaced.items():
                write_private(self.folder.path(name), content)
            self._before.pop()
        self.status = f"Undone: {last.words}."
        return self.project

    @property
    def undoes(self) -> str:
        """The change that would be taken back next."""
        return self._before[-1].words if self._before else ""

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._before)

    def _refuse_edited(self, path: Path, known: set[str | None]) -> None:
        """Refuse to write over a schema that was edited outside the studio."""
        if path.exists() and _sha256(path.read_bytes()) not in known:
            remedy = "take it under Data as the schema that is there, or move it away"
            raise InputError("was edited outside the studio, and would be written over", field=path.name, remedy=remedy)

    def _of(self, version: int) -> Project:
        found = self.project
        if found.version != version:
            remedy = "look at it as it is now, and enter it again"
            raise Stale("the project was changed in another tab, so this entry was not saved", remedy=remedy)
        return found

    def _confined(self, project: Project) -> Project:
        """Refuse a project that leads outside: one written elsewhere, or whose links were changed since."""
        project.refuse_outside(self.folder)
        return project

    def _write(self, new: Project, before: Project) -> None:
        new = self._confined(new).changed(version=before.version + 1)
        files: dict[str, str] = {}
        schema_file, schema = new.schema_file, None
        if new.columns and schema_file is not None and not new.own_schema:
            schema = new.described(self.folder)  # refuses what contradicts itself before anything is written
            content = new.schema_text()
            self._refuse_edited(self.folder.path(schema_file), {before.written, new.written})
            new = new.changed(written=_sha256(content.encode()))
            files[schema_file] = content
        files |= {"commands.sh": commands_file(new), projects.FILE: new.to_yaml()}
        for name, text in files.items():
            write_private(self.root / name, text.encode())
        new = new.as_loaded()
        self._read = (_file_state((self.root / projects.FILE).stat()), new)
        self._made = self._made if schema is None else (new, schema)


def _file_state(seen: os.stat_result) -> tuple[int, int]:
    """Return what tells that a file was written again."""
    return seen.st_mtime_ns, seen.st_size


def _undone(said: str) -> str:
    """Return what undoing takes back, by what was said of the change."""
    words = said.partition(". ")[0].removesuffix(".")
    named = words.removeprefix("Saved: ")
    return named if named != words else words[:1].lower() + words[1:]


class _UndoableChange(NamedTuple):
    """A project before a change, what undoing that takes back, and files as they were."""

    project: Project
    words: str
    replaced: Mapping[str, bytes]


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read."""
    write_atomic(path, lambda file: file.write(content), mode=_PRIVATE)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Visit:
    """One request to a screen.

    Attributes:
        studio: The studio.
        query: What stands behind the ``?`` of the address.
        form: What was entered; empty where a page is only shown.
        lists: Fields that may be given several times.
        uploads: Files that were dropped in: field -> (name, file), open while the form is taken.
        errors: Errors beside fields, where what was entered was refused.
    """

    studio: Studio
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uploads: Mapping[str, tuple[str, BinaryIO]] = field(default_factory=dict)
    errors: tuple[FieldError, ...] = ()

    @property
    def project(self) -> Project:
        """The project."""
        return self.studio.project

    @property
    def version(self) -> int:
        """The version that the form was made of; -1 where it does not say."""
        given = self.form.get("version", "")
        return int(given) if given.isascii() and given.isdigit() and len(given) < 20 else -1

    def text(self, name: str, otherwise: str = "") -> str:
        """Return what was entered into a field, without spaces around."""
        return self.form.get(name, otherwise).strip()

    def number(self, name: str) -> float:
        """Return the number that was entered into a field.

        Raises:
            InputError: It is none.
        """
        try:
            found = float(self.text(name).replace(",", ""))
        except ValueError:
            found = float("nan")
        if found != found or found in (float("inf"), float("-inf")):
            raise InputError("is not a number", field=name, remedy="write one such as 0.5 or 1e-6")
        return found

    def change(
        self,
        by: Callable[[Project], Project],
        said: str,
        *,
        undoes: str = "",
        replaced: Mapping[str, bytes] = _NOTHING,
    ) -> Project:
        """Change the project; see :meth:`Studio.change`."""
        return self.studio.change(self.version, by, said, undoes=undoes, replaced=replaced)

    def shown(self, name: str, saved: Any = "") -> str:
        """Return what a field shows: what was just entered and refused, else what is saved."""
        return self.form[name] if name in self.form and self.errors else "" if saved is None else str(saved)

    def error(self, name: str) -> str | None:
        """Return the error beside a field."""
        return next((each.message for each in self.errors if each.field == name), None)
