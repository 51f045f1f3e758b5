"""Downloads of published files, checked by size and SHA-256 before they are put in place.

A file that is there already is used only if its size and SHA-256 are the published ones. An interrupted download leaves
no file behind and is never continued. Archives are read in place and never unpacked onto the disk, so no name inside
one can reach outside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from doublure.errors import DataError, SettingError

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a file's name, the bytes received so far and the bytes expected."""

_TIMEOUT_SECONDS = 30.0
_BLOCK_BYTES = 1 << 20
_SPARE_BYTES = 16 << 20


@dataclass(frozen=True, kw_only=True)
class ArchiveMember:
    """A file inside an archive.

    Attributes:
        path: Its name in the archive.
        bytes: Its size.
        sha256: Its checksum, or None where only the archive's is known.
        split: The split that needs it; ``"all"`` for every split.
    """

    path: str
    bytes: int
    sha256: str | None = None
    split: str = "all"

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file that can be downloaded, or that a person has to download.

    Attributes:
        name: Its name on this machine.
        url: Its publisher's address (with ``by_hand``: the page to start from).
        sha256: Its checksum, as published.
        bytes: Its size.
        split: The split of the data set that needs it; ``"all"`` for every split.
        mirrors: Other places, tried in this order after ``url``.
        members: The files in it that are needed, if it is an archive. They may be there instead of the archive.
        by_hand: There is no address that a program may download from.
        optional: Only downloaded when its split is asked for.
    """

    name: str
    url: str
    sha256: str
    bytes: int
    split: str = "all"
    mirrors: tuple[str, ...] = ()
    members: tuple[ArchiveMember, ...] = ()
    by_hand: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        if self.name in {"", ".", ".."} or any(mark in self.name for mark in "/\\:\0"):
            raise SettingError("is not a plain file name", field=self.name, remedy="leave out folders and drives")


class _DownloadFailed(Exception):
    """One address failed; says why, in a few words."""


def matches(path: Path, sha256: str | None, size: int) -> bool:
    """Whether a file is there and is the published one."""
    try:
        if sha256 is None or not path.is_file() or path.stat().st_size != size:
            return False
        with path.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest() == sha256
    except OSError:
        return False


def obtain(files: Sequence[RemoteFile], folder: Path, *, dataset: str, progress: Progress | None = None) -> None:
    """Make sure that files, or their needed members, are in a folder and are the published ones.

    A file that is there and is not the published one is replaced, once the published one has arrived.

    Args:
        files: The files that are needed.
        folder: Their folder; made if missing.
        dataset: The data set, for messages.
        progress: Called after every block received.

    Raises:
        DataError: A file is not there and cannot be downloaded, what arrived is not the published file, or there is no
            room for it.
    """
    missing = [file for file in files if not _is_there(file, folder)]
    by_hand = [file for file in missing if file.by_hand]
    if by_hand:
        raise DataError(
            "the publisher's files have to be downloaded by hand",
            field=dataset,
            remedy=f"follow {by_hand[0].url} and put {', '.join(map(_described, by_hand))} into {folder}",
        )
    if missing:
        _prepare(folder, sum(file.bytes for file in missing), dataset)
    for file in missing:
        _obtain_one(file, folder, dataset, progress)


def _is_there(file: RemoteFile, folder: Path) -> bool:
    if matches(folder / file.name, file.sha256, file.bytes):
        return True
    members = [matches(folder / member.name, member.sha256, member.bytes) for member in file.members]
    return bool(members) and all(members)


def _described(file: RemoteFile) -> str:
    members = " and ".join(member.name for member in file.members if member.sha256)
    instead = f", or {members} from it," if members else ""
    return f"{file.name} ({file.bytes:,} bytes, SHA-256 {file.sha256}){instead}"


def _prepare(folder: Path, needed: int, dataset: str) -> None:
    """Make the folder and see that there is room.

    Raises:
        DataError: There is not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise DataError(
            f"the folder {folder} cannot be made ({error.strerror})",
            field=dataset,
            remedy="name another folder, or set DOUBLURE_DATA to one",
        ) from None
    if free < needed + _SPARE_BYTES:
        raise DataError(
            f"{needed:,} bytes are to be downloaded and {folder} has room for {free:,}",
            field=dataset,
            remedy="free some space, or set DOUBLURE_DATA to a folder on a larger disk",
        )


def _obtain_one(file: RemoteFile, folder: Path, dataset: str, progress: Progress | None) -> None:
    """Try one address after the other.

    Raises:
        DataError: All of them failed.
    """
    place = folder / file.name
    reasons = []
    for url in (file.url, *file.mirrors):
        try:
            _download(url, file, place, progress)
        except _DownloadFailed as failure:
            reasons.append(f"{url}: {failure}")
        except OSError as error:
            raise DataError(
                f"{place} cannot be written ({error.strerror or type(error).__name__})",
                field=dataset,
                remedy="name a folder where you may write, or set DOUBLURE_DATA to one",
            ) from None
        else:
            return
    damaged = "is there with another checksum" if place.exists() else "is not there"
    raise DataError(
        f"{file.name} {damaged} and could not be downloaded ({', '.join(reasons)})",
        field=dataset,
        remedy=f"go online, or put {_described(file)} into {folder}",
    )


def _download(url: str, file: RemoteFile, place: Path, progress: Progress | None) -> None:
    """Download one file.

    Raises:
        _DownloadFailed: The network or the server failed, or the file is not the published one.
        OSError: The disk failed.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=place.parent)
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as sink, contextlib.closing(_blocks(url)) as blocks:
            digest = hashlib.sha256()
            received = 0
            for block in blocks:
                received += len(block)
                if received > file.bytes:
                    raise _DownloadFailed(f"is longer than the published {file.bytes:,} bytes")
                digest.update(block)
                sink.write(block)
                if progress is not None:
                    progress(file.name, received, file.bytes)
            sink.flush()
            os.fsync(sink.fileno())
        if received < file.bytes:
            raise _DownloadFailed(f"ended after {received:,} of {file.bytes:,} bytes")
        if digest.hexdigest() != file.sha256:
            raise _DownloadFailed("has another checksum than the published one")
        part.chmod(0o644)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def _blocks(url: str) -> Generator[bytes, None, None]:
    """Yield the blocks that a server sends.

    Raises:
        _DownloadFailed: The address cannot be opened, or the connection broke.
    """
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise _DownloadFailed("is neither http nor https")
    request = urllib.request.Request(url, headers={"User-Agent": "doublure"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            while block := response.read(_BLOCK_BYTES):
                yield block
    except urllib.error.HTTPError as error:
        error.close()
        raise _DownloadFailed(f"the server answered {error.code}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _DownloadFailed(_reason(error)) from None


def _reason(error: Exception) -> str:
    """Return the reason of a failed connection, in a few words."""
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return f"no answer for {_TIMEOUT_SECONDS:.0f} seconds"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return inner if isinstance(inner, str) else type(inner).__name__
