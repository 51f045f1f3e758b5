"""The descriptions that every bundle holds for data catalogues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from doublure.releasing.catalogue_names import CROISSANT, DATAPACKAGE, README
from doublure.releasing.catalogues import croissant, datapackage, readme
from doublure.releasing.catalogues.contents import CatalogueEntry
from doublure.releasing.checking import PAGE
from doublure.support import files

FORMATS: Mapping[str, Callable[[CatalogueEntry], bytes]] = {
    DATAPACKAGE: datapackage.render,
    CROISSANT: croissant.render,
    README: readme.render,
}
"""File -> its content. The card and the dictionary alone decide it, so that a bundle can be checked."""


def render(name: str, card: Mapping[str, Any], described: Mapping[str, Any]) -> bytes:
    """Return the content of one description.

    Args:
        name: One of :data:`FORMATS`.
        card: The contents of ``card.json``, now or later.
        described: The data dictionary.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: The card is no card, or the dictionary none.
    """
    return FORMATS[name](CatalogueEntry.from_release(card, described, {*FORMATS, PAGE}))


def write_catalogues(folder: Path, card: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[str, ...]:
    """Write every description into a bundle, and return their names."""
    for name in FORMATS:
        content = render(name, card, described)
        files.write_atomic(folder / name, lambda file, content=content: file.write(content))  # type: ignore[misc]
    return tuple(FORMATS)
