"""Forms of the first cells of a table: how columns are stored, and what they may be beside that.

A draft and a check propose the same, from here. No value, bound, category or count leaves this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from doublure.data.tables.opening import TableSource
from doublure.drafting.metadata.labels import own_labels
from doublure.drafting.proposals import Proposal, proposal_for
from doublure.drafting.storage_types import Storage, dtypes_of_objects, first_cells, storage_types
from doublure.schema.columns import type_named
from doublure.schema.columns.dtypes import Dtype, nullable

_TYPES = {"text": "category"}


def drafted_type(storage: Storage) -> str:
    """Return the column type that a draft makes of a storage type."""
    return _TYPES.get(storage, storage)


def stored_forms(table: TableSource) -> tuple[dict[str, Storage], dict[str, Dtype], dict[str, Proposal]]:
    """Return the form of columns' cells, the storage types of a typed container, and what they may be beside that."""
    stored, first = storage_types(table), first_cells(table)
    dtypes = {**dtypes_of_objects(first), **table.dtypes} if table.dtypes else {}
    found: dict[str, Proposal] = {}
    for name, storage in stored.items():
        proposal = proposal_for(name, storage, first[name])
        if proposal is not None and proposal.column is not None:
            proposal = replace(proposal, column=with_dtype(proposal.column, dtypes.get(name)))
        if proposal is not None:
            found[name] = proposal
    labelled = {} if table.labelled is None else own_labels(table.labelled)
    for name, entry in labelled.items():
        if name in stored:
            column = {"type": drafted_type(stored[name]), **entry.facts}
            said = {"description": entry.description} if entry.description else {}
            why = "its file's labels hold of any such table, and list every code"
            found[name] = Proposal(why=why, column={**column, **said}, keys={})
    return stored, dtypes, found


def with_dtype(column: Mapping[str, Any], dtype: Dtype | None) -> Mapping[str, Any]:
    """Return what is said of a column, with how its container stores it, where it would come out otherwise."""
    model = type_named(column["type"])
    if dtype is None or dtype not in model.dtypes or dtype == model.own_dtype or "written" in column:
        return column
    for each in dict.fromkeys((dtype, nullable(dtype))):
        with_it = {**column, "dtype": each}
        try:
            model.model_validate(with_it)
        except ValidationError:  # a codebook may say what its container does not hold
            continue
        return with_it
    return column
