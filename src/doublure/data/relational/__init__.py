"""Related tables: what holds them, and how they are opened, read and written."""

from doublure.data.relational.opening import RelatedSource, open_related
from doublure.data.relational.records import RelatedRows, RelatedSet

__all__ = ["RelatedRows", "RelatedSet", "RelatedSource", "open_related"]
