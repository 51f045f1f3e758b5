"""Packing a bundle into one ZIP file, and unpacking one whose sender is not trusted.

=================================  =====================================================================================
in an archive                      what happens
=================================  =====================================================================================
a path that leads elsewhere        refused: absolute, with a drive, ``..``, a backslash or a control character
a link, a device, a folder below   refused: a bundle has plain files, and one folder, ``tables``
two entries of one name            refused, also where names differ in case alone: another program may show the other
an encrypted or odd compression    refused
a list of entries above 1 MB       refused, before it is read: a bundle has some twenty
more than half of what is free     refused, before the first byte is written, by the sizes that the archive states
more bytes than an entry states    refused, as it is written; a stated ratio that deflate cannot reach, before
a card or text of 100 MB           refused: such files are read whole
``__MACOSX`` and ``.DS_Store``     left out: a Mac adds them
=================================  =====================================================================================
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from doublure.errors import GateFailed, InputError, RunFolderError, printable
from doublure.releasing.tables import FOLDER
from doublure.support import files

CARD = "card.json"

_AT_ONCE = 2**20
_MOST_RATIO = 1032
"""Bytes that one byte of deflate can hold: a match of 258 bytes takes two bits (RFC 1951)."""
_LARGEST_TEXT = 100_000_000
"""Bytes of a file that is read whole, as of other JSON (:mod:`doublure.support.files`)."""
_READ_WHOLE = (".json", ".html", ".md", ".yaml", ".sig")
_ADDED_BY_MACS = "__MACOSX"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_DEEPEST = 2
_REMEDY = "ask the publisher for the bundle again, and tell them"


def pack(bundle: str | Path, out: str | Path) -> Path:
    """Write a bundle, or a published generator, as a ZIP file. Equal bundles give equal files.

    Args:
        bundle: The folder that :func:`doublure.release` wrote.
        out: The file.

    Returns:
        The file.

    Raises:
        InputError: It is no bundle, or the file cannot be written.
    """
    folder, path = Path(bundle), Path(out)
    if not (folder / CARD).is_file():
        raise RunFolderError("is not a bundle", field=folder, remedy="give the folder that doublure release -o made")
    inside = sorted(each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())
    files.check_output(path)

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for each in inside:
                entry = zipfile.ZipInfo(f"{folder.resolve().name}/{each.relative_to(folder).as_posix()}", _EPOCH)
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                entry.file_size = each.stat().st_size
                with each.open("rb") as source, archive.open(entry, "w") as target:
                    shutil.copyfileobj(source, target, _AT_ONCE)

    files.write_atomic(path, write)
    return path


def unpack(archive: str | Path, out: str | Path) -> Path:
    """Unpack a received bundle: whole, or not at all. What it says is for :func:`doublure.verify` to check.

    Args:
        archive: A ZIP file with the files of one bundle, in a folder or not.
        out: A folder that does not exist yet, or is empty.

    Returns:
        The folder.

    Raises:
        GateFailed: The archive is not one that is opened here; the message names the entry.
        InputError: It is no ZIP file, or the folder cannot be written.
    """
    source, target = Path(archive), Path(out)
    with _opened(source) as opened:
        chosen = _checked(source, opened, target)
        with files.staged_folder(target) as staging:
            for name, entry in chosen.items():
                (staging / name).parent.mkdir(exist_ok=True)
                _write(opened, entry, staging / name)
    return target


@contextmanager
def unpacked(archive: str | Path) -> Iterator[Path]:
    """Yield a received bundle in a private temporary folder, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="doublure-") as room:
        yield unpack(archive, Path(room) / "bundle")


def is_archive(path: str | Path) -> bool:
    """Whether a path names a ZIP file."""
    return Path(path).suffix.lower() == ".zip" and Path(path).is_file()


class _ShortReads(io.FileIO):
    """A file of which no more is read at once than an entry's part, nor than a list of entries may have.

    An entry of 46 bytes becomes an object of a thousand, and an archive's list is read whole.
    """

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = os.fstat(self.fileno()).st_size - self.tell()
        if size > _AT_ONCE:
            raise zipfile.BadZipFile("a list of entries that is too long")
        return super().read(size) or b""


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with _ShortReads(path) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy="give the archive of a bundle") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError):
        raise InputError("is no ZIP file, or a damaged one", field=path, remedy="ask for it again") from None


def _checked(source: Path, archive: zipfile.ZipFile, target: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the entries to write, by their names in the bundle, once all of them may be written.

    Raises:
        GateFailed: One may not.
    """
    listed = [entry for entry in archive.infolist() if not entry.is_dir() and not _is_added(entry.filename)]
    for entry in listed:
        if (fault := _fault(entry)) is not None:
            raise _refusal(fault, entry.filename)
    root = _root(source, [entry.filename for entry in listed])
    chosen = {entry.filename[len(root) :]: entry for entry in listed}
    spellings = Counter(entry.filename.casefold() for entry in listed)
    for name, entry in chosen.items():
        parts = PurePosixPath(name).parts
        if spellings[entry.filename.casefold()] > 1:
            raise _refusal("is in the archive twice", entry.filename)
        if len(parts) > _DEEPEST or (len(parts) == _DEEPEST and parts[0] != FOLDER):
            raise _refusal("lies in a folder that a bundle does not have", entry.filename)
    room = target.absolute().parent
    while not room.exists():
        room = room.parent
    if sum(entry.file_size for entry in listed) > shutil.disk_usage(room).free // 2:
        raise InputError("does not fit: unpacked, it takes more than half of what is free", field=source.name,
                         remedy="free some space or choose another folder")  # fmt: skip
    return chosen


def _fault(entry: zipfile.ZipInfo) -> str | None:
    """Return why an entry is not unpacked, if it is not."""
    name, mode = entry.orig_filename, entry.external_attr >> 16
    path = PurePosixPath(name)
    if "\\" in name or ":" in name or path.is_absolute() or ".." in path.parts or not name.isprintable():
        return "is a path that leads elsewhere"
    if name != path.as_posix() or any(part != part.strip(" .") and part != "." for part in path.parts):
        return "is a path that another program reads otherwise"
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        return "is no plain file"
    if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is encrypted, or compressed in a way that is not read here"
    if entry.file_size > _MOST_RATIO * max(1, entry.compress_size):
        return "states more bytes than it can hold"
    if path.suffix.lower() in _READ_WHOLE and entry.file_size > _LARGEST_TEXT:
        return f"is larger than the {_LARGEST_TEXT // 1_000_000} MB that such a file may have"
    return None


def _root(source: Path, names: list[str]) -> str:
    """Return the folder in which all files of the archive lie, with its slash; empty for none."""
    cards = [name for name in names if PurePosixPath(name).name == CARD and name.count("/") < _DEEPEST]
    if len(cards) != 1:
        what = "holds no bundle: no card.json" if not cards else "holds more than one bundle"
        raise InputError(what, field=source.name, remedy="give the archive of one bundle, as it was received")
    root = cards[0].removesuffix(CARD)
    for name in names:
        if not name.startswith(root):
            raise _refusal("lies beside the bundle", name)
    return root


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    left = entry.file_size
    try:
        with archive.open(entry) as source, path.open("xb") as target:
            while part := source.read(_AT_ONCE):
                left -= len(part)
                if left < 0:
                    raise _refusal("holds more bytes than it states", entry.filename)
                target.write(part)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise _refusal("is damaged", entry.filename) from None


def _is_added(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and (parts[0] == _ADDED_BY_MACS or parts[-1] == ".DS_Store")


def _refusal(what: str, name: str) -> GateFailed:
    return GateFailed(what, field=printable(name), remedy=_REMEDY)


__all__ = ["is_archive", "pack", "unpack", "unpacked"]
