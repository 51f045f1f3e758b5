"""Real records of an evaluation or an audit, read and checked.

A measure on the wrong records flatters a run. So fitted data is no holdout, and released data is no real data.

====================================  ===========  ================================================================
given                                 result       criterion
====================================  ===========  ================================================================
a released file, wherever it lies     refused       its hash: a card beside it, or a release in the run's ledger
the holdout is the fitted data        refused       equal records in any order
most of the holdout is                refused       more than half are fitted records, beyond those that are equal by
                                                    chance
both may be swapped                   warned of     the declared or bought number of units: the holdout has about
                                                    as many, the real records far more or fewer
real records are drawn by the run     warned of     the same, of real records among drawn ones: it may be its own
                                                    data, or a run that copies
a table is like the run's own rows    warned of     a permutation test: real rows differ by the noise and by the
                                                    model's limits
====================================  ===========  ================================================================
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.images.records import columns_beside
from doublure.data.opening import Given, open_data
from doublure.data.records import Loaded
from doublure.data.relational import RelatedRows
from doublure.data.series import Series
from doublure.data.tables.arrow_streams import PROTOCOL
from doublure.data.tables.many_files import files_of
from doublure.errors import DataError, InputError, SettingError, counted
from doublure.ledger import Ledger
from doublure.measures.tables.unlisted import with_unlisted
from doublure.run.synthesizer import Synthesizer
from doublure.schema.columns import CategoryColumn, Column, label
from doublure.schema.fact_states import Learn
from doublure.schema.relational import RelationalSchema
from doublure.support import files
from doublure.support.frames import with_columns
from doublure.support.guessing import free_word
from doublure.support.objects import ObjectPath, Place, find_place
from doublure.support.tensors import sha256_of

OWN = (
    "Most of these real records are drawn by the run itself, record for record. Either --real is its own synthetic "
    "data (give the data it was fitted on), or the run copies its data (make an audit)."
)

LIKE_DRAWN = (
    "real: is no further from this run's own rows than they are from one another. Is it a file that was released? Then "
    "give the data that the run was fitted on. A good release at a large ε can look so, too."
)

SWAPPED = (
    "real: holds {real} and the holdout {kept:,}, where about {units:,} were fitted. Are the two swapped? Then give as "
    "real the data that the run was fitted on, and as holdout what it never saw."
)

_NEAR, _FAR = math.log(1.15), math.log(1.5)
"""Ratios of numbers of units: one that noise or a few lost records explain, and one that a set aside does."""
_CARD = "card.json"
_MOST_SHARED = 0.5
"""Smallest share at which a record kept aside is more likely a fitted one than not."""


def read_both(syn: Synthesizer, schema: Any, real: Given, holdout: Given | None) -> tuple[Loaded, Loaded | None]:
    """Read the fitted records, and the records kept aside, if there are any.

    Args:
        syn: The run.
        schema: Its schema, or one that also accepts records a measure counts and a fit refuses.
        real: The data it was fitted on.
        holdout: Real records it has never seen.

    Raises:
        DataError: The data does not fit the schema.
        SettingError: Either is a released file; or the holdout is the fitted data, in any order, or most of it is.
    """
    for field, given in (("real", real), ("holdout", holdout)):
        _refuse_released(syn, field, given)
    if holdout is not None and _same_file(real, holdout):
        raise _not_kept_aside()
    train = open_data(real, schema.kind, schema.written).load(schema)
    kept = None if holdout is None else open_data(holdout, schema.kind, schema.written).load(schema, at_least=1)
    if kept is not None and seen_before(hash_records(train.content), hash_records(kept.content)):
        raise _not_kept_aside()
    return train, kept


def perhaps_swapped(syn: Synthesizer, train: Loaded, kept: Loaded | None) -> str | None:
    """Return the reason to suspect that fitted records and those kept aside were swapped, if there is one."""
    if kept is None:
        return None
    units = syn.schema.public_units
    real, aside = max(1, train.n_units), max(1, kept.n_units)
    if abs(math.log(aside / units)) > _NEAR or abs(math.log(real / units)) < _FAR:
        return None
    return SWAPPED.format(real=counted(real, syn.schema.unit.name), kept=aside, units=units)


def keep_unlisted(schema: Any, given: Given, content: Any) -> Any:
    """Return loaded records in which values outside a synthesizer's lists stand as they are written.

    Args:
        schema: The synthesizer's, every fact known.
        given: The data.
        content: The same data, read by the schema: there, such values are ``other``, or a chapter.
    """
    tables = getattr(schema, "tables", {"": schema})
    opened = {
        table: {name: _by_no_list(column) for name, column in own.columns.items() if column.opened(()) is not None}
        for table, own in tables.items()
    }
    if not isinstance(content, (pd.DataFrame, RelatedRows)) or not any(opened.values()):
        return content
    changed = {
        table: own.model_copy(update={"columns": {**own.columns, **opened[table]}, "constraints": ()})
        for table, own in tables.items()
    }
    plain = _unresolved(schema, changed) if isinstance(content, RelatedRows) else changed[""]
    written: Any = open_data(given, plain.kind, plain.written).load(plain, at_least=1).content

    def kept(table: str, frame: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
        names = [name for name in opened[table] if name in frame]
        columns = tables[table].columns
        return with_columns(frame, {name: with_unlisted(frame[name], raw[name], columns[name]) for name in names})

    if isinstance(content, pd.DataFrame):
        return kept("", content, written)
    frames = {table: kept(table, frame, written.frames[table]) for table, frame in content.frames.items()}
    return dataclasses.replace(content, frames=frames)


def _by_no_list(column: Column) -> Column:
    """Return a column that reads any text as a value."""
    # Not the column's own nature: a list of which nothing is known, so that no value is outside it.
    other = column.fallback or free_word([*column.missing_tokens, *map(label, column.domain)])
    return CategoryColumn(values=Learn(learn=1.0), other=other, missing=column.missing)


def _unresolved(schema: Any, tables: Mapping[str, Any]) -> RelationalSchema:
    """Return related tables with other facts, some of which are not known."""
    kept = {name: getattr(schema, name) for name in RelationalSchema.model_fields}
    unlinked = {name: table.model_copy(update={"links": None}) for name, table in tables.items()}
    return RelationalSchema.model_construct(**{**kept, "tables": unlinked, "constraints": ()})


def read_again(given: Any) -> Any:
    """Return data that can be read more than once: a stream of Arrow as the table that it holds."""
    if isinstance(given, pd.DataFrame) or not hasattr(given, PROTOCOL):
        return given
    import pyarrow as pa

    return pa.table(given)


def hash_records(content: Any) -> np.ndarray[Any, np.dtype[np.generic]]:
    """Return a hash for each record ``(N,)``; equal records have equal ones."""
    if isinstance(content, pd.DataFrame):
        plain = pd.DataFrame({name: _plain(content[name]) for name in content})
        return pd.util.hash_pandas_object(plain, index=False).to_numpy()
    if isinstance(content, RelatedRows):
        return content.fingerprints()
    body = content.values if isinstance(content, Series) else content.images
    beside = content.attributes if isinstance(content, Series) else columns_beside(content)
    told = pd.util.hash_pandas_object(beside, index=False).tolist() if len(beside.columns) else [0] * len(body)
    return np.array([hash((one.tobytes(), other)) for one, other in zip(body, told, strict=True)])


def _plain(column: pd.Series[Any]) -> Any:
    """Return a column's values in one type for the comparison of loaded and drawn cells."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype="float64", na_value=np.nan)
    return column.to_numpy(dtype=object)


def seen_before(known: np.ndarray[Any, Any], asked: np.ndarray[Any, Any]) -> bool:
    """Return whether most of some records are known ones.

    Where few records are possible, some are equal by chance: the rate among the given records is about that of known
    ones among one another.

    Args:
        known: The marks of known records.
        asked: Those of the records that should be others.
    """
    if len(known) == len(asked) and np.array_equal(np.sort(known), np.sort(asked)):
        return True
    _, place, counts = np.unique(known, return_inverse=True, return_counts=True)
    return bool(np.isin(asked, known).mean() - (counts[place] > 1).mean() > _MOST_SHARED)


def _refuse_released(syn: Synthesizer, field: str, given: Given | None) -> None:
    """Refuse synthetic data in place of real data: a file that a card beside it or the run's ledger names."""
    if not isinstance(given, (str, os.PathLike, ObjectPath)):
        return
    asked = find_place(given)
    inside = _list_files(asked)
    cards = {place / _CARD for place in (asked, *(each.parent for each in inside))}
    released = {digest for card in cards for digest in _on(card)} | set(_recorded(syn))
    if released and any(each.is_file() and sha256_of(each) in released for each in inside):
        remedy = "give the data that the run was fitted on" if field == "real" else "give real records kept aside"
        raise SettingError("is synthetic data: a file that was released", field=field, remedy=remedy)


def _list_files(path: Place) -> list[Place]:
    """Return the files of a path or a pattern; of a folder its direct files, of one in a store all."""
    if isinstance(path, Path) and path.is_dir():
        return [*sorted(path.iterdir())]
    with suppress(DataError):  # the reader reports it
        return files_of(path) or [path]
    return []


def _on(card: Place) -> Iterator[str]:
    """Return the hashes of the files that a card lists; empty if it is none."""
    with suppress(InputError, KeyError, TypeError):
        if card.is_file():
            for entry in files.read_json(card, "card")["files"]:
                yield entry["sha256"]


def _recorded(syn: Synthesizer) -> Iterator[str]:
    """Return the hashes of the files released from a run, where its ledger is still in its place."""
    kept = syn.run.get("ledger")
    with suppress(InputError, KeyError, TypeError):
        if kept is not None:
            for record in Ledger.open(str(kept["path"])).entries:
                if record.kind == "release":
                    yield from record.body["files"].values()


def _same_file(real: Given, holdout: Given) -> bool:
    paths = [Path(given) for given in (real, holdout) if isinstance(given, (str, os.PathLike))]
    return len(paths) == 2 and all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _not_kept_aside() -> SettingError:
    return SettingError(
        "is the data that was fitted",
        field="holdout",
        remedy="give records that were kept aside, or leave it out",
    )
