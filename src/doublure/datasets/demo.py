"""Files of the demo, as the README's commands read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from doublure.errors import InputError
from doublure.support.files import write_atomic

FILES = ("adult.csv", "kept.csv", "adult.codebook.csv", "adult.schema.yaml")
"""Training rows, holdout rows, the codebook, and a schema made from it."""


def demo_files(folder: str | Path = ".") -> tuple[Path, ...]:
    """Write bundled census data, its codebook and its schema into a folder; files that are equal already stay.

    ``adult.csv`` has the 24,421 training rows of :func:`doublure.datasets.demo_split`, and ``kept.csv`` its 8,140
    holdout rows. No network is needed.

    Args:
        folder: The folder to write to; it is made if it is not there.

    Returns:
        The paths of the files that were not there, in the order of :data:`FILES`; none where all are there already.

    Raises:
        InputError: A file of one of these names holds something else; nothing is written then.
        DataError: The installation is damaged.

    Example:
        >>> from doublure import datasets
        >>> datasets.demo_files("here")  # doctest: +SKIP
        (PosixPath('here/adult.csv'), PosixPath('here/kept.csv'), ...)
    """
    place = Path(folder)
    wanted = {place / name: content for name, content in _contents()}
    for path, content in wanted.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            remedy = "go on with it, choose another folder, or move it away"
            raise InputError("is there already and is not the demo's", field=path, remedy=remedy)
    missing = tuple(path for path in wanted if not path.exists())
    if missing:
        place.mkdir(parents=True, exist_ok=True)
    for path in missing:
        content = wanted[path]
        write_atomic(path, lambda file, content=content: file.write(content))  # type: ignore[misc]
    return missing


def _contents() -> Iterator[tuple[str, bytes]]:
    from doublure import datasets

    for name, frame in zip(FILES, datasets.demo_split(), strict=False):
        yield name, frame.to_csv(index=False, lineterminator="\n").encode()
    yield FILES[2], datasets.adult_codebook_path().read_bytes()
    yield FILES[3], datasets.adult_schema_path().read_bytes()
