"""The folder of a project: paths inside it, and none outside; one studio at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from doublure.data.splits import split_off
from doublure.errors import InputError, escaped, printable
from doublure.support.files import Unwritable

ROOM = ".studio"
"""The studio's own files."""
_LONGEST = 1_000
_INSIDE = "give a name inside the folder that the studio was started in"
_HOLDER = "address"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # of a pipe, an open without it would wait for a writer


class ProjectFolder:
    """A folder whose files can be named, and nothing outside it.

    A name is a relative path with ``/``. Links are followed, and refused where they lead out.

    Args:
        root: The folder.

    Raises:
        InputError: It is no folder.

    Example:
        >>> from doublure.studio.folder import ProjectFolder
        >>> ProjectFolder(".").path("../secret.csv")
        Traceback (most recent call last):
        ...
        doublure.errors.InputError: ../secret.csv: is outside the folder; give a name inside the folder ...
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InputError("is no folder", field=root, remedy="give a folder, or make it first")

    def path(self, name: str) -> Path:
        """Return the path of a name, whether or not something is there.

        Raises:
            InputError: It is empty, has an invisible character, or leads outside.
        """
        if not name or len(name) > _LONGEST or escaped(name) != name or "\\" in name:
            raise InputError("is no usable name of a file", field=name or "file", remedy=_INSIDE)
        try:
            found = (self.root / name).resolve()
            found.exists()
            file = split_off(self.root / name)[0].resolve()  # of book.xlsx#sheet, the workbook is what is read
        except (OSError, RuntimeError):  # longer than the disk takes, or a loop of links
            raise InputError("is no usable name of a file", field=name, remedy=_INSIDE) from None
        inside = found.is_relative_to(self.root) and file.is_relative_to(self.root)
        if Path(name).is_absolute() or ".." in Path(name).parts or not inside:
            raise InputError("is outside the folder", field=name, remedy=_INSIDE)
        return found

    def existing(self, name: str) -> Path:
        """Return the path of a file or folder that is there.

        Raises:
            InputError: As :meth:`path`, or there is none.
        """
        found = self.path(name)
        if not found.exists():
            raise InputError("is not there", field=name, remedy="choose one of the folder's files")
        if not found.is_file() and not found.is_dir():  # a pipe, whose reader waits for ever; a device
            raise InputError("is neither a file nor a folder", field=name, remedy="choose one of the folder's files")
        return found

    def part(self, name: str) -> Path:
        """Return the path of data that is there, or of a part of it: a workbook's sheet is named behind a ``#``.

        Raises:
            InputError: As :meth:`existing`.
        """
        self.path(name)
        _, part = split_off(self.root / name)
        if part is None:
            return self.existing(name)
        whole = self.existing(name.removesuffix(f"#{part}"))
        return whole.with_name(f"{whole.name}#{part}")

    def open(self, name: str) -> BinaryIO:
        """Open a file by descriptors, a folder after another: no link is followed, whenever it was set.

        Raises:
            InputError: As :meth:`existing`, or it is no file, or behind a link.
        """
        self.existing(name)
        *folders, last = Path(name).parts
        try:
            at = os.open(self.root, _FOLDER)
            try:
                for part in folders:
                    below = os.open(part, _FOLDER, dir_fd=at)
                    os.close(at)
                    at = below
                found = os.open(last, _FILE, dir_fd=at)
            finally:
                os.close(at)
            if stat.S_ISREG(os.fstat(found).st_mode):
                return os.fdopen(found, "rb")
            os.close(found)
        except OSError:
            pass
        raise InputError("is no file, or is behind a link", field=name, remedy="choose one of the folder's files")

    def room(self, name: str) -> Path:
        """Return a folder for what the studio writes, made if there is none.

        Raises:
            Unwritable: It cannot be made.
            InputError: There is a link of its name, which may lead elsewhere, or a file.
        """
        path = self.root / name
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise Unwritable(path, error) from None
        if path.is_symlink() or not path.is_dir():
            raise InputError("is a link or a file, where the studio has a folder", field=name, remedy="move it away")
        return path

    @contextmanager
    def held(self, address: str) -> Iterator[None]:
        """Hold the folder for one studio; the system lets go of it when the process ends, however it does.

        Args:
            address: Where this studio is, for another that is started here: without its token.

        Raises:
            InputError: There is one already; the message says where.
        """
        import fcntl

        try:
            handle = os.open(self.room(ROOM) / _HOLDER, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except (OSError, Unwritable):  # what cannot be written cannot be written over either
            yield
            return
        with os.fdopen(handle, "r+", encoding="utf-8", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                where = printable(file.read(_LONGEST))
                remedy = "open that one, or end it first"
                raise InputError(f"has a studio already, at {where}", field=self.root.name, remedy=remedy) from None
            except OSError:  # a disk of a network, without locks
                pass
            file.truncate(0)
            file.write(address)
            file.flush()
            yield

    def name(self, path: Path) -> str:
        """Return the name of a path inside."""
        return path.relative_to(self.root).as_posix()

    def entries(self) -> Iterator[Path]:
        """Yield what lies in the folder itself and may be named, in order of names; hidden entries are left out."""
        for entry in sorted(self.root.iterdir(), key=lambda each: each.name.lower()):
            if entry.name.startswith("."):
                continue
            try:
                self.existing(entry.name)
            except InputError:
                continue
            yield entry
