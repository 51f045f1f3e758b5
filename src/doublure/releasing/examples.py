"""The first synthetic records of a release, as its card shows them: three rows, three units, three series, a sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.images import writing as images
from doublure.data.images.sheets import examples, png
from doublure.data.relational.records import RelatedRows
from doublure.data.series import Series
from doublure.run.synthesizer import Synthesizer
from doublure.schema.columns import Column, label
from doublure.schema.images import ImageSchema
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.series import SeriesSchema

SHOWN = 3
"""How many records."""

_MOST_CHILDREN = 6
_MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class Examples:
    """What a card's page shows of the first records.

    Attributes:
        rows: Table -> column -> its cells, as text; of a table alone its name is empty.
        series: Of each series its channels' values, NaN where one is missing.
        sheet: A contact sheet, as PNG.
    """

    rows: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    series: tuple[Mapping[str, tuple[float, ...]], ...] = ()
    sheet: bytes | None = None


def examples_of(syn: Synthesizer, drawn: Any) -> Examples:
    """Return what a card shows of the first records that are drawn; nothing of a kind from elsewhere."""
    kind = syn.schema.kind
    return _EXAMPLES[kind](syn, drawn) if kind in _EXAMPLES else Examples()


def _of_table(syn: Synthesizer, drawn: pd.DataFrame) -> Examples:
    return Examples(rows={"": _cells(drawn.head(SHOWN), syn.schema.columns)})


def _of_related(syn: Synthesizer, drawn: RelatedRows) -> Examples:
    """Return the first units, and the first rows that hang on them."""
    schema = RelationalSchema.of(syn.schema)
    few = drawn.take(np.arange(len(drawn)) < SHOWN)
    handed = few.handed_out(dict.fromkeys(schema.tables, 0))
    most = {name: SHOWN if name == schema.root else _MOST_CHILDREN for name in handed}
    return Examples(
        rows={name: _cells(frame.head(most[name]), schema.tables[name].columns) for name, frame in handed.items()}
    )


def _of_series(syn: Synthesizer, drawn: Series) -> Examples:
    schema = SeriesSchema.of(syn.schema)
    values = np.asarray(drawn.values[:SHOWN], dtype=np.float64)
    series = tuple(
        {name: tuple(map(float, one[:, place])) for place, name in enumerate(drawn.channels)} for one in values
    )
    few = pd.DataFrame(drawn.attributes).head(SHOWN)
    return Examples(rows={"": _cells(few, schema.attributes)}, series=series)


def _of_images(syn: Synthesizer, drawn: Any) -> Examples:
    schema = ImageSchema.of(syn.schema)
    sheet = images.sheet_of(examples(drawn, schema), schema, {"watermark": syn.guarantee.watermark})
    return Examples(sheet=png(sheet))


_EXAMPLES = ByKind("examples", table=_of_table, images=_of_images, series=_of_series, relational=_of_related)


def _cells(frame: pd.DataFrame, columns: Mapping[str, Column]) -> dict[str, tuple[str, ...]]:
    known = [str(name) for name in frame.columns if name in columns]
    return {name: tuple(_text(value, columns[name]) for value in frame[name]) for name in known}


def _text(value: Any, column: Column) -> str:
    """Return a cell as a reader knows it: as its file has it, days without a time of day."""
    if pd.isna(value):
        return _MISSING
    if isinstance(value, pd.Timestamp):
        return value.date().isoformat() if column.nature == "date" else value.isoformat(sep=" ")
    precision = getattr(column, "precision", None)
    if isinstance(value, float | np.floating):
        if precision is not None:
            return f"{value:.{max(0, precision)}f}"
        return f"{value:.6g}"
    return label(value)
