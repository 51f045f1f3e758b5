"""Lists of images: tables that name picture files, and what stands beside images and is in no draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from doublure.data.images.files import ENDINGS
from doublure.data.images.lists import FILE_NAMES, ListSource
from doublure.data.images.sources import LABEL_NAMES, ImageSource
from doublure.drafting.storage_types import SHARE, Storage, storage_types
from doublure.drafting.whose import unit_yaml
from doublure.errors import printable
from doublure.schema.unit import is_id_name
from doublure.support import yaml12 as yaml_text

_FEWEST = round(1 / (1 - SHARE))
"""Cells of which one that is no picture's name does not decide."""
_LEFT_OUT = """\
# Beside the images stand columns that are left out: no synthetic image has them. Take in what is to be kept.
"""
_FACTS: Mapping[Storage, Mapping[str, Any]] = {
    "integer": {"type": "integer", "bounds": ["LOW", "HIGH"]},
    "real": {"type": "real", "bounds": ["LOW", "HIGH"]},
    "boolean": {"type": "boolean"},
}
_LISTED: Mapping[str, Any] = {"type": "category", "values": ["VALUE", "VALUE"]}


def names_pictures(first: Mapping[str, pd.Series[Any]]) -> str | None:
    """Return the first column whose cells are names of picture files, by the form of first cells; None without one.

    Args:
        first: The first cells of columns. Private.
    """
    for name, cells in first.items():
        texts = [cell.strip().lower() for cell in cells.dropna() if isinstance(cell, str)]
        named = sum(text.endswith(ENDINGS) for text in texts)
        if len(texts) >= _FEWEST and named >= SHARE * len(texts):
            return name
    return None


def list_of_pictures(name: str) -> str:
    """Return what a draft of a table says where a column names picture files.

    Example:
        >>> list_of_pictures("file")
        'file names picture files, so this looks like a list of images: draft it with --kind images.'
    """
    called = name.partition("_")[0].lower() in FILE_NAMES
    how = "draft it with --kind images" if called else f"call the column {FILE_NAMES[0]}, and draft with --kind images"
    return f"{printable(name)} names picture files, so this looks like a list of images: {how}."


def label_wanted(source: ImageSource) -> list[str]:
    """Return what an owner decides where nothing is called a label, and something beside images may be one."""
    others = [name for name in source.beside if not is_id_name(name)]
    if source.labelled or not others:
        return []
    named = f"label: {{attributes: [{yaml_text.inline(others[0])}], values: [VALUES]}}"
    how = f"add {named}" if source.attributes else f"call it {LABEL_NAMES[1]}"
    return [
        f"Nothing is called {LABEL_NAMES[1]}, and images follow their label alone. Is one of "
        f"{', '.join(map(printable, others))} what images show? Then {how}."
    ]


def left_beside(source: ImageSource) -> str:
    """Return comments with the lines that take in what stands beside images; empty where nothing does."""
    if not source.beside:
        return ""
    stored = storage_types(source.table) if isinstance(source, ListSource) else {}
    whose = [name for name in source.beside if is_id_name(name)]
    lines = [f"# {unit_yaml(name, 'max_records: NUMBER')}  # if it says whose an image is\n" for name in whose]
    others = [name for name in source.beside if name not in whose]
    lines += ["# attributes:\n"] if others else []
    for name in others:
        facts = {**_FACTS.get(stored.get(name, ""), _LISTED), "missing": False}
        lines.append(f"#   {yaml_text.inline(name)}: {yaml_text.inline(facts)}\n")
    return _LEFT_OUT + "".join(lines)
