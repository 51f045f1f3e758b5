"""The places of ledgers: a file, or what an address names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typing_extensions import override

from doublure.errors import LedgerError, printable
from doublure.ledger import disk
from doublure.ledger.place import Append, LedgerPlace
from doublure.support.postgres import SCHEMES, is_postgres


class FilePlace(LedgerPlace):
    """A file on a disk of this machine.

    Args:
        path: Absolute.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.address = path, path.name, str(path)

    @override
    def create(self, line: bytes) -> None:
        disk.create(self.path, line)

    @override
    @contextmanager
    def locked(self, *, to_append: bool, known: bytes) -> Iterator[tuple[Append, bytes]]:
        with disk.lock_file(self.path, to_append=to_append) as (fd, data):
            yield lambda line: disk.append(fd, line, self.path), data

    @override
    def exists(self) -> bool:
        return self.path.exists()

    @property
    @override
    def begun(self) -> bool:
        return self.path.is_file() and not self.path.stat().st_size

    @override
    def refuse_unsafe(self) -> None:
        disk.refuse_network_file_system(self.path)

    @override
    def refuse_missing(self) -> None:
        if not self.path.is_file():
            raise LedgerError("there is no such file", field=self.path, remedy="give the ledger's path")


def find_place(given: str | os.PathLike[str]) -> LedgerPlace:
    """Return the place that a path or an address names.

    Raises:
        LedgerError: The address is of nothing that keeps a ledger.
        SettingError: It holds a password, or asks for no TLS.
        MissingExtra: The driver is not installed.
    """
    if is_postgres(given):
        from doublure.ledger.server import ServerPlace

        return ServerPlace(str(given))
    scheme, mark, _ = os.fspath(given).partition(":/")
    if mark and scheme.isalnum() and len(scheme) > 1:  # a path has lost a slash by now
        remedy = f"give the path of a local file, or {SCHEMES[0]}://host/database/name as text"
        raise LedgerError("keeps no ledger", field=f"{printable(scheme)}://", remedy=remedy)
    return FilePlace(Path(given).absolute())
