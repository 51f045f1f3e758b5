"""Columns of type ``category``."""

from __future__ import annotations

from typing import ClassVar, Literal

from doublure.schema.columns.listed import ListedColumn


class CategoryColumn(ListedColumn):
    """Unordered values."""

    like: ClassVar[str] = "category"

    type: Literal["category"] = "category"
