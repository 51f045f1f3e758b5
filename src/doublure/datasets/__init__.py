"""Public data sets: one that comes with the package, and others that can be downloaded.

The training split of UCI Adult is bundled, so that the demo and the tutorial need no network. Everything else is
downloaded from its publisher when asked for, checked against its published SHA-256 and kept in one folder
(:func:`data_folder`). Each data set has its own licence: :func:`info` names it, and keeping to it is up to you.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from doublure.datasets.demo import demo_files as demo_files
from doublure.datasets.downloading import ArchiveMember, Progress, RemoteFile, matches, obtain
from doublure.errors import DataError, SettingError
from doublure.support.files import write_atomic
from doublure.support.guessing import suggest

Images: TypeAlias = dict[str, np.ndarray[Any, np.dtype[Any]]]

BUNDLED_ADULT_SHA256 = "3acf2421586d674f103bab9cfbcb587ee56bf2455bfa36c0aa4b9ecc2f7afac6"
_BUNDLED = Path(__file__).resolve().parent / "bundled"
_HOLDOUT_EVERY = 4
_AS_NPZ = ("svhn", "celeba")  # nothing but a reader below reads what their publishers offer
# Triastcyn & Faltings 2019 crop CelebA to 128 x 128 around the centre and scale it to 48 x 48.
_CELEBA_CROP, _CELEBA_SIZE = 128, 48


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A public data set.

    Attributes:
        name: Its short name.
        title: Its full name.
        kind: ``"table"``, ``"images"`` or ``"series"``, whose records are readings.
        licence: Its licence, in a few words.
        licence_url: The address of the licence.
        homepage: Its publisher's page.
        citation: How to cite it.
        splits: Its splits and how many records each has.
        files: The files to be downloaded.
        columns: A table's columns.
        bundled: Whether the split ``train`` comes with the package.

    Example:
        >>> adult = db.datasets.info("adult")
        >>> adult.rows, adult.licence, adult.bundled
        (48842, 'CC BY 4.0', True)
    """

    name: str
    title: str
    kind: Literal["table", "images", "series"]
    licence: str
    licence_url: str
    homepage: str
    citation: str
    splits: Mapping[str, int] = field(hash=False)
    files: tuple[RemoteFile, ...]
    columns: tuple[str, ...] = ()
    bundled: bool = False

    @property
    def rows(self) -> int:
        """The number of records in all splits together."""
        return sum(self.splits.values())


@functools.cache
def _registry() -> dict[str, DatasetInfo]:
    import yaml

    entries = yaml.safe_load((_BUNDLED / "datasets.yaml").read_text(encoding="utf-8"))
    registry = {}
    for name, entry in entries.items():
        files = tuple(_remote_file(file) for file in entry.pop("files"))
        registry[name] = DatasetInfo(name=name, files=files, columns=tuple(entry.pop("columns", ())), **entry)
    return registry


def _remote_file(entry: dict[str, Any]) -> RemoteFile:
    members = tuple(ArchiveMember(**member) for member in entry.pop("members", ()))
    return RemoteFile(mirrors=tuple(entry.pop("mirrors", ())), members=members, **entry)


def names() -> list[str]:
    """Return the names of the known data sets.

    Example:
        >>> db.datasets.names()[:3]
        ['adult', 'mushroom', 'mnist']
    """
    return list(_registry())


def info(name: str) -> DatasetInfo:
    """Return the description of a data set.

    Raises:
        SettingError: There is none of that name.

    Example:
        >>> db.datasets.info("mnist").splits
        {'train': 60000, 'test': 10000}
    """
    try:
        return _registry()[name]
    except KeyError:
        raise SettingError("is not a known data set", field=name, remedy=suggest(name, names())) from None


def data_folder() -> Path:
    """Return the folder of downloads: ``$DOUBLURE_DATA``, or the platform's place for caches."""
    named = os.environ.get("DOUBLURE_DATA")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "doublure"
    variable, otherwise = ("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / otherwise) / "doublure"


def fetch(
    name: str | DatasetInfo,
    *,
    folder: str | Path | None = None,
    splits: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Make sure that a data set is on this machine, whole and unaltered; download what is missing.

    A file that is already there is used only if its checksum is the published one, and is replaced otherwise.
    Archives are never unpacked. Of SVHN and CelebA, whose form ``fit`` does not read, each split is then written beside
    them as NPZ, with the arrays of :func:`load`: ``train.npz``.

    Args:
        name: A name out of :func:`names`, or a description of your own.
        folder: Keep data sets here instead of in :func:`data_folder`.
        splits: The splits to fetch; by default all but the optional ones (SVHN's ``extra``).
        progress: Called with a file's name, the bytes received and the bytes expected.

    Returns:
        The folder of this data set: ``folder / name``.

    Raises:
        SettingError: No such data set or split.
        DataError: It could not be downloaded, is not what was published, or there is no room.
        Unwritable: The NPZ file could not be written.

    Example:
        >>> db.datasets.fetch("mushroom")  # doctest: +SKIP
        PosixPath('.../doublure/mushroom')
    """
    entry = name if isinstance(name, DatasetInfo) else info(name)
    place, files = _downloaded(entry, folder, splits, progress)
    if entry.name in _AS_NPZ:
        of = {file.split for file in files}
        for split in entry.splits if splits is None else splits:
            if of & {"all", split}:
                _write_npz(entry, place, split)
    return place


def _downloaded(
    entry: DatasetInfo, folder: str | Path | None, splits: Sequence[str] | None, progress: Progress | None = None
) -> tuple[Path, list[RemoteFile]]:
    """Return a data set's folder, and those of its files that these splits need; they are there."""
    for split in splits or ():
        _check_split(entry, split)
    place = (data_folder() if folder is None else Path(folder)) / entry.name
    wanted = [file for file in entry.files if (not file.optional if splits is None else file.split in ("all", *splits))]
    obtain(wanted, place, dataset=entry.name, progress=progress)
    return place, wanted


def _write_npz(entry: DatasetInfo, place: Path, split: str) -> None:
    with _form_checked(entry):
        found: Any = _READERS[entry.name](entry, place, split, None)
    write_atomic(place / f"{split}.npz", lambda file: np.savez(file, **found))


def load(
    name: str | DatasetInfo, split: str = "train", *, folder: str | Path | None = None, limit: int | None = None
) -> pd.DataFrame | Images:
    """Load a split, downloading it first if need be.

    Args:
        name: A name out of :func:`names`, or a description of your own with one of these names.
        split: One of its splits.
        folder: As for :func:`fetch`.
        limit: At most this many records, the first ones.

    Returns:
        A table as a DataFrame, with every missing value as its publisher writes it (``?``). Series as a DataFrame of
        readings, a row each, with moments that a schema's ``series.time`` can name. Images as
        ``{"x": uint8 (N, H, W, C), "y": int64 (N,)}``. CelebA is cropped to the middle 128 x 128 pixels and scaled to
        48 x 48, as in Triastcyn & Faltings 2019; its ``y`` is ``(N, 40)`` of 0 and 1, and ``names`` has the forty
        attributes. Its training split takes 1.1 GB: give a ``limit`` where that is too much.

    Raises:
        SettingError: No such data set or split, or a limit below 1.
        DataError: As for :func:`fetch`, or a file is not of the form its publisher describes.

    Example:
        >>> db.datasets.load("adult", limit=3).shape
        (3, 15)
    """
    entry = name if isinstance(name, DatasetInfo) else info(name)
    _check_split(entry, split)
    if limit is not None and limit < 1:
        raise SettingError("must be at least 1", field="limit", remedy="leave it out to load every record")
    if entry.name not in _READERS:
        raise SettingError("has no reader", field=entry.name, remedy="fetch it and read its files yourself")
    if entry.name == "adult" and split == "train":
        return load_adult("train").iloc[:limit]
    place, _ = _downloaded(entry, folder, [split])
    with _form_checked(entry):
        return _READERS[entry.name](entry, place, split, limit)


def load_adult(split: Literal["train", "test"] = "train", *, folder: str | Path | None = None) -> pd.DataFrame:
    """Load UCI Adult: the training split from the package, the test split from the network or ``folder``.

    Returns:
        32,561 or 16,281 rows and 15 columns; missing values are ``?``, and the test split's labels have lost the full
        stop that its publisher puts behind them.

    Example:
        >>> len(db.datasets.load_adult())
        32561
    """
    if split == "train":
        return pd.read_csv(bundled_adult(), na_filter=False)
    frame = load("adult", split, folder=folder)
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame)


def bundled_adult() -> Path:
    """Return the path of the bundled training split of UCI Adult: an xz-compressed CSV with a header.

    Raises:
        DataError: The installation is damaged.

    Example:
        >>> db.datasets.bundled_adult().name
        'adult_train.csv.xz'
    """
    path = _BUNDLED / "adult_train.csv.xz"
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != BUNDLED_ADULT_SHA256:
        raise DataError("is missing or damaged", field=path.name, remedy="install doublure again")
    return path


def adult_schema_path() -> Path:
    """Return the path of the schema of UCI Adult, written from its codebook for the public part of the demo.

    Example:
        >>> db.Schema.load(db.datasets.adult_schema_path()).target
        'income'
    """
    return _BUNDLED / "adult.schema.yaml"


def adult_codebook_path() -> Path:
    """Return the path of UCI Adult's codebook, as ``doublure schema draft --codebook`` reads it."""
    return _BUNDLED / "adult.codebook.csv"


def demo_split() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split the bundled rows into training and holdout rows for a demo.

    The rule is public and uses the row number alone: every fourth row is held out. (The rows are in random order: the
    codebook says that train and test were split at random.)

    Returns:
        24,421 training rows and 8,140 holdout rows.

    Example:
        >>> training, holdout = db.datasets.demo_split()
        >>> len(training), len(holdout)
        (24421, 8140)
    """
    frame = load_adult("train")
    aside = frame.index % _HOLDOUT_EVERY == _HOLDOUT_EVERY - 1
    return frame[~aside].reset_index(drop=True), frame[aside].reset_index(drop=True)


def _check_split(entry: DatasetInfo, split: str) -> None:
    if split not in entry.splits:
        raise SettingError(f"{entry.name} has no such split", field=split, remedy=f"choose {' or '.join(entry.splits)}")


@contextmanager
def _form_checked(entry: DatasetInfo) -> Iterator[None]:
    """Turn any error of a reader into one line; only a caller's own description can cause one."""
    try:
        yield
    except (
        OSError,
        EOFError,
        KeyError,
        IndexError,
        ValueError,
        zlib.error,
        zipfile.BadZipFile,
        tarfile.TarError,
    ) as error:
        raise DataError(
            f"a file is not of the form its publisher describes ({type(error).__name__})",
            field=entry.name,
            remedy="correct the description's files",
        ) from None


def _table_member(entry: DatasetInfo, place: Path) -> bytes:
    """Return the single member of the archive, which may lie there without the archive."""
    (file,) = entry.files
    (member,) = file.members
    if matches(place / member.name, member.sha256, member.bytes):
        return (place / member.name).read_bytes()
    with zipfile.ZipFile(place / file.name) as archive, archive.open(member.path) as source:
        content = source.read(member.bytes + 1)
    if hashlib.sha256(content).hexdigest() != member.sha256:
        raise ValueError(member.name)
    return content


def _read_adult_test(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> pd.DataFrame:
    frame = pd.read_csv(
        io.BytesIO(_table_member(entry, place)),
        names=list(entry.columns),
        skiprows=1,  # "|1x3 Cross validator"
        skipinitialspace=True,
        na_filter=False,
    )
    frame["income"] = frame["income"].str.removesuffix(".")
    return frame.iloc[:limit]


def _read_mushroom(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> pd.DataFrame:
    content = io.BytesIO(_table_member(entry, place))
    return pd.read_csv(content, names=list(entry.columns), na_filter=False).iloc[:limit]


def _read_daiad_water(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> pd.DataFrame:
    content = io.BytesIO(_table_member(entry, place))
    frame = pd.read_csv(content, sep=";", names=list(entry.columns), skiprows=1, nrows=limit)
    frame["time"] = pd.to_datetime(frame["time"], format="%d/%m/%Y %H:%M:%S").astype("datetime64[s]")
    return frame


def _read_ettm1(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> pd.DataFrame:
    (file,) = entry.files
    return pd.read_csv(place / file.name, nrows=limit)[list(entry.columns)]


def _read_mnist(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> Images:
    from doublure.data.images.arrays import idx_array

    images, labels = (idx_array(place / file.name) for file in entry.files if file.split == split)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise ValueError(split)
    return {"x": images[:limit, :, :, None].copy(), "y": labels[:limit].astype("int64")}


def _read_svhn(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> Images:
    import scipy.io

    (file,) = (file for file in entry.files if file.split == split)
    content = scipy.io.loadmat(place / file.name)
    images = content["X"].transpose(3, 0, 1, 2)[:limit].copy()
    return {"x": images, "y": content["y"].reshape(-1)[:limit].astype("int64") % 10}  # its publisher writes 10 for 0


def _read_cifar10(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> Images:
    (file,) = entry.files
    wanted = {member.path: member for member in file.members if member.split == split}
    records = {}
    with tarfile.open(place / file.name, mode="r:gz") as archive:
        for header in archive:
            member = wanted.get(header.name)
            source = archive.extractfile(header) if member is not None and header.isfile() else None
            if member is not None and source is not None:
                content = np.frombuffer(source.read(member.bytes), dtype=np.uint8)
                records[member.path] = content.reshape(-1, 1 + 3 * 32 * 32)  # one label, then red, green, blue planes
    whole = np.concatenate([records[path] for path in wanted])[:limit]
    images = whole[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return {"x": images.copy(), "y": whole[:, 0].astype("int64")}


def _read_celeba(entry: DatasetInfo, place: Path, split: str, limit: int | None) -> Images:
    from PIL import Image

    part = {"train": "0", "valid": "1", "test": "2"}[split]
    partition = (line.split() for line in (place / "list_eval_partition.txt").read_text("ascii").splitlines())
    files = [name for name, number in partition if number == part][:limit]
    lines = (place / "list_attr_celeba.txt").read_text("ascii").splitlines()
    attributes = {row[0]: [int(mark == "1") for mark in row[1:]] for row in map(str.split, lines[2:])}
    images = np.empty((len(files), _CELEBA_SIZE, _CELEBA_SIZE, 3), dtype=np.uint8)
    with zipfile.ZipFile(place / "img_align_celeba.zip") as archive:
        for row, name in enumerate(files):
            with archive.open(f"img_align_celeba/{name}") as source, Image.open(source) as image:
                left, top = (image.width - _CELEBA_CROP) // 2, (image.height - _CELEBA_CROP) // 2
                cropped = image.convert("RGB").crop((left, top, left + _CELEBA_CROP, top + _CELEBA_CROP))
                images[row] = np.asarray(cropped.resize((_CELEBA_SIZE, _CELEBA_SIZE), Image.Resampling.BILINEAR))
    marks = np.array([attributes[name] for name in files], dtype=np.int64)
    return {"x": images, "y": marks, "names": np.array(lines[1].split())}


_READERS: dict[str, Callable[[DatasetInfo, Path, str, int | None], pd.DataFrame | Images]] = {
    "adult": _read_adult_test,
    "mushroom": _read_mushroom,
    "mnist": _read_mnist,
    "fashion-mnist": _read_mnist,
    "svhn": _read_svhn,
    "cifar-10": _read_cifar10,
    "celeba": _read_celeba,
    "daiad-water": _read_daiad_water,
    "ettm1": _read_ettm1,
}
