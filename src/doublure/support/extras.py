"""Optional dependencies: torch, Dask, Faker, readers of files, and drivers of databases."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from doublure.errors import MissingExtra

_TORCH = "torch"
_DASK = ("dask", "distributed")
_STUDIO = ("starlette", "uvicorn", "python_multipart")


@contextmanager
def torch_for(what: str) -> Iterator[None]:
    """Refuse in one line if torch is imported inside and is not installed.

    Args:
        what: The feature that needs it, such as ``method dpgan``.

    Raises:
        MissingExtra: Naming the remedy.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != _TORCH:
            raise
        raise missing_torch(what) from None


def require_torch(what: str) -> None:
    """Refuse to go on without torch, before anything is charged.

    Args:
        what: The feature that needs it, such as ``method dpgan``.

    Raises:
        MissingExtra: Naming the remedy.
    """
    with torch_for(what):
        import torch  # noqa: F401


def missing_torch(what: str) -> MissingExtra:
    """Return the refusal of a feature that needs torch."""
    return MissingExtra("needs torch", field=what, remedy="pip install 'doublure[torch]'")


def require_dask(what: str) -> None:
    """Refuse to go on without Dask, before anything is charged.

    Args:
        what: The feature that needs it, such as ``engine dask``.

    Raises:
        MissingExtra: Naming the remedy.
    """
    if any(importlib.util.find_spec(name) is None for name in _DASK):
        raise MissingExtra("needs Dask", field=what, remedy="pip install 'doublure[dask]'")


def require_sql(what: str) -> None:
    """Refuse to go on without the driver of PostgreSQL, before anything is charged.

    Args:
        what: The feature that needs it.

    Raises:
        MissingExtra: Naming the remedy.
    """
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtra("needs psycopg", field=what, remedy="pip install 'doublure[sql]'")


def require_studio(what: str) -> None:
    """Refuse to go on without the libraries of the studio.

    Args:
        what: The feature that needs them.

    Raises:
        MissingExtra: Naming the remedy.
    """
    if any(importlib.util.find_spec(name) is None for name in _STUDIO):
        remedy = "pip install 'doublure[studio]'"
        raise MissingExtra("needs Starlette, uvicorn and python-multipart", field=what, remedy=remedy)


def has_faker() -> bool:
    """Return whether Faker is installed."""
    return importlib.util.find_spec("faker") is not None


def require_faker(what: str) -> None:
    """Refuse to go on without Faker, before anything is charged.

    Args:
        what: The column that needs it.

    Raises:
        MissingExtra: Naming the remedy.
    """
    if not has_faker():
        raise MissingExtra("needs the library Faker", field=what, remedy="pip install 'doublure[fake]'")


def require_files(library: str, what: str) -> None:
    """Refuse a file whose library is not installed, before anything is charged.

    Args:
        library: Of the extra ``files``, as Python imports it.
        what: The file.

    Raises:
        MissingExtra: Naming the remedy.
    """
    if importlib.util.find_spec(library) is None:
        raise MissingExtra(f"needs {library}", field=what, remedy="pip install 'doublure[files]'")
