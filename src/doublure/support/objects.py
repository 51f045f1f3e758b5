"""Files in object stores and on web servers: found, read at one version, and written.

fsspec reads them and not ``pyarrow.fs``, because the latter tells no version of an object, and has neither ``https://``
nor ``hf://``. Credentials come from each library's own places: the environment, its files, the machine's role.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from typing_extensions import Buffer, override

from doublure.errors import DataError, DoublureError, InputError, MissingExtra, printable

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Place: TypeAlias = "Path | ObjectPath"
"""A file or folder on a disk, or in a store."""

STORES: Mapping[str, str] = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "https": "aiohttp",
    "hf": "huggingface_hub",
}
"""Scheme -> the library of the extra ``stores`` that reads it."""
WRITTEN = ("s3", "gs", "abfs", "abfss")
"""Schemes that are written to, too."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/", re.ASCII | re.IGNORECASE)
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "Content-MD5", "Digest", "Last-Modified", "LastModified", "mtime")
"""Names that stores have for the version of an object, the surest first."""
_BLOCK = 2**23
"""Bytes asked for at once: over a network a request costs about what a megabyte does."""
_FRESH = {"use_listings_cache": False}
_PATTERN = frozenset("*?[")


class ObjectStat(NamedTuple):
    """The size of an object, in bytes, as :meth:`pathlib.Path.stat` has it; 1 where a server does not say."""

    st_size: int


@dataclass(frozen=True)
class ObjectPath:
    """The address of an object, of a folder of objects, or of a pattern; what readers use of a ``Path``.

    Attributes:
        url: Without a slash at its end.
        version: The version that is read; None: any.
    """

    url: str
    version: str | None = None

    @classmethod
    def parse(cls, url: str) -> ObjectPath:
        """Read an address.

        Raises:
            InputError: Its scheme is not known, or it holds a password.
            MissingExtra: The scheme's library is not installed.
        """
        scheme = url.partition("://")[0].lower()
        if scheme not in STORES:
            known = ", ".join(f"{each}://" for each in (*STORES, "duckdb", "postgresql"))
            remedy = f"known are {known}; or copy the data to a disk"
            if scheme == "http":
                remedy = "use https://, as records are not sent in the clear"
            raise InputError("is no scheme that is read", field=f"{printable(scheme)}://", remedy=remedy)
        user, mark, _ = urlsplit(url).netloc.rpartition("@")
        if ":" in user or (mark and scheme == "https"):
            remedy = "leave them out: set them in the environment, as the store's own tools read them"
            raise InputError("holds credentials, which logs would keep", field=f"{scheme}://", remedy=remedy)
        if any(importlib.util.find_spec(name) is None for name in ("fsspec", STORES[scheme])):
            raise MissingExtra(f"needs {STORES[scheme]}", field=f"{scheme}://", remedy="pip install 'doublure[stores]'")
        return cls(url.rstrip("/"))

    # -- names -------------------------------------------------------------------------------------------------------

    @property
    def scheme(self) -> str:
        """The scheme of its address."""
        return self.url.partition("://")[0].lower()

    @property
    def _pure(self) -> PurePosixPath:
        parts = urlsplit(self.url)
        return PurePosixPath(unquote(parts.path if self.scheme == "https" else self.url.partition("://")[2]))

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self._pure.name

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return self._pure.suffix

    @property
    def suffixes(self) -> list[str]:
        """All endings of its name."""
        return self._pure.suffixes

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its address, by which objects are ordered as paths are."""
        return tuple(self.url.split("/"))

    def __str__(self) -> str:
        """Return the address without its query, which may be a credential."""
        return self.url.partition("?")[0] if self.scheme == "https" else self.url

    @property
    def parent(self) -> ObjectPath:
        """The folder that it lies in."""
        return ObjectPath(self.url.rpartition("/")[0])

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(f"{self.url}/{name}")

    # -- looking -----------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether an object or a folder is there."""
        with self._guarded():
            files, key = self._files()
            return bool(files.exists(key))

    def is_file(self) -> bool:
        """Whether an object is there."""
        with self._guarded():
            files, key = self._files()
            return bool(files.isfile(key))

    def is_dir(self) -> bool:
        """Whether objects are in it, as in a folder; a web server has none."""
        if self.scheme == "https":
            return False
        with self._guarded():
            files, key = self._files()
            return bool(files.isdir(key))

    def stat(self) -> ObjectStat:
        """Return its size."""
        found = self._info().get("size")
        return ObjectStat(1 if found is None else int(found))

    def inside(self) -> dict[str, ObjectPath]:
        """Return the objects of a folder and of those in it, by their paths below it."""
        with self._guarded():
            files, key = self._files()
            below = [str(name)[len(key) :].strip("/") for name in files.find(key) if not str(name).endswith("/")]
        return {name: self / name for name in sorted(below) if name}

    def matching(self) -> list[ObjectPath] | None:
        """Return the objects of a pattern; None where it is none."""
        if self.scheme == "https" or not _PATTERN & set(self.url):
            return None
        with self._guarded():
            files, key = self._files()
            begin = self.url[: -len(key)]
            return [ObjectPath(f"{begin}{name}") for name in sorted(files.glob(key)) if files.isfile(name)]

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return its content as text."""
        with self.open() as file:
            return file.read().decode(encoding)

    def pinned(self) -> ObjectPath:
        """Return the path at the version that is there now.

        Raises:
            DataError: The server tells none, so that a change could not be seen.
        """
        return replace(self, version=self._version())

    # -- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def open(self, mode: str = "rb") -> Iterator[io.BufferedReader]:
        """Open the object for reading bytes.

        Raises:
            DataError: It cannot be read, or is of another version than the pinned one, before or afterwards.
        """
        self._refuse_changed()
        with self._guarded():
            files, key = self._files()
            raw = files.open(key, mode, block_size=_BLOCK, cache_type="readahead")
        with raw:
            try:
                yield io.BufferedReader(_GuardedFile(raw, self))
            except Exception:
                self._refuse_changed()  # which may be why
                raise
        self._refuse_changed()

    def _refuse_changed(self) -> None:
        if self.version is not None and self._version() != self.version:
            remedy = "fit again, from objects that nothing writes to meanwhile"
            raise DataError("was changed after its header was read", field=self.name, remedy=remedy)

    def _version(self) -> str:
        info = self._info()
        for name in _VERSIONS:
            if info.get(name) is not None:
                return f"{name} {info[name]} {info.get('size')}"
        remedy = "copy it to a disk, and give its path"
        raise DataError("has no version by which a change would be seen", field=self.name, remedy=remedy)

    def _info(self) -> dict[str, Any]:
        with self._guarded():
            files, key = self._files()
            files.invalidate_cache()
            return dict(files.info(key))

    def _files(self) -> tuple[AbstractFileSystem, str]:
        from fsspec.core import url_to_fs

        found, key = url_to_fs(self.url, **_FRESH)
        return found, key

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Replace what libraries say, which may quote credentials."""
        try:
            yield
        except DoublureError:
            raise
        except Exception as error:
            # fsspec takes whatever a web server's answer was for a file that is not there.
            cause = error.__cause__ if self.scheme == "https" and error.__cause__ is not None else error
            if isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == HTTPStatus.NOT_FOUND:
                remedy = "give the address of a file, a folder or a pattern"
                raise DataError("there is no such object", field=self, remedy=remedy) from None
            remedy = "check the address, the network, and the store's credentials in the environment"
            raise DataError(f"cannot be reached or read ({type(cause).__name__})", field=self, remedy=remedy) from None

    # -- writing -----------------------------------------------------------------------------------------------------

    def refuse_unwritable(self, *, forced: bool) -> None:
        """Refuse an address that is not written to, or holds something.

        Args:
            forced: Whether an object may be replaced; a folder never is.

        Raises:
            InputError: It is such an address.
        """
        if self.scheme not in WRITTEN:
            remedy = f"write to a disk, or to {', '.join(f'{known}://' for known in WRITTEN)}"
            raise InputError("is only read", field=f"{self.scheme}://", remedy=remedy)
        if self.is_dir() or (self.exists() and not forced):
            raise InputError("already exists", field=self, remedy="choose another -o, or give --force for a file")

    def put(self, local: Path) -> None:
        """Write a file, or the files of a folder; what was written is removed where one of them cannot be.

        Raises:
            InputError: It cannot be written.
        """
        folder = local.is_dir()
        found = sorted(path for path in local.rglob("*") if path.is_file()) if folder else [local]
        files, key = self._files()
        done: list[str] = []
        try:
            for path in found:
                done.append(f"{key}/{path.relative_to(local).as_posix()}" if folder else key)
                files.put_file(str(path), done[-1])
        except BaseException as error:
            for name in done:
                with suppress(Exception):
                    files.rm_file(name)
            if not isinstance(error, Exception):
                raise
            remedy = "check the address, the network, and the right to write"
            raise InputError(f"cannot be written ({type(error).__name__})", field=self, remedy=remedy) from None


class _GuardedFile(io.RawIOBase):
    """A file of fsspec whose errors say nothing of a store's own."""

    def __init__(self, raw: Any, path: ObjectPath) -> None:
        self._raw, self._path = raw, path

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        with self._path._guarded():
            found = self._raw.read(len(view))
        view[: len(found)] = found
        return len(found)

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return int(self._raw.seek(offset, whence))

    @override
    def tell(self) -> int:
        return int(self._raw.tell())


@contextmanager
def for_arrow(path: Place) -> Iterator[Path | IO[bytes]]:
    """Yield what Arrow opens: a path, or an open object."""
    if isinstance(path, Path):
        yield path
    else:
        with path.open("rb") as file:
            yield file


def is_address(given: object) -> bool:
    """Whether something is an address and no path; a path that has lost a slash of one counts."""
    return isinstance(given, (str, os.PathLike)) and _SCHEME.match(os.fspath(given)) is not None


def find_place(given: str | os.PathLike[str] | ObjectPath) -> Place:
    """Return the path or the object that is named.

    Raises:
        InputError: It is an address of another scheme, or one as a ``Path``, which has lost a slash.
        MissingExtra: The scheme's library is not installed.
    """
    if isinstance(given, ObjectPath):
        return given
    if not is_address(given):
        return Path(given)
    text = os.fspath(given)
    if "://" not in text:
        raise InputError("is an address, of which a Path keeps one slash", field=text, remedy="give it as text")
    return ObjectPath.parse(text)


def find_path(given: str | os.PathLike[str], refusal: str, remedy: str) -> Path:
    """Return a path on a disk.

    Args:
        given: A path or an address.
        refusal: Of an address.
        remedy: Of an address.

    Raises:
        InputError: It is an address.
    """
    found = find_place(given)
    if isinstance(found, ObjectPath):
        raise InputError(refusal, field=found, remedy=remedy)
    return found
