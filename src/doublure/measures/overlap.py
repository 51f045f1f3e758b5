"""Overlap between public training data and the private data, for internal use.

The claim of ``latentgan`` assumes that the public data holds no private records. Its users have to know and vouch for
that; this check finds overlooked ones. It reads private records without noise, so its figures stay internal, and no fit
runs it: a fit that refused shared records would reveal that there are some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.images import ImageSource
from doublure.data.opening import Given, open_data
from doublure.encode.choice import EncodingChoice, encoder_for
from doublure.errors import DataError, SchemaError, SettingError
from doublure.measures.divergence import nearest
from doublure.schema import Schema
from doublure.schema.images import LabelColumn
from doublure.schema.kinds import ByKind
from doublure.schema.schema import Unit
from doublure.support import seeding
from doublure.support.extras import require_torch

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.encode.encoder import Encoder

_SEEN = 4_000
_ANY = LabelColumn(type="category", values=("any", "other"), other="other")
_NEAR = 0.1


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Records that public and private data share. Internal: do not publish.

    Attributes:
        private: Number of private records.
        same: Private records equal to a public one in every number; labels, conditions and ids aside.
        sampled: Private records whose nearest public record was searched.
        near: Of those, records closer to it than a tenth of the usual distance.
    """

    private: int
    same: int
    sampled: int
    near: int

    @property
    def lines(self) -> tuple[str, ...]:
        """The figures in words."""
        return (
            "Internal: computed on private records. Do not publish.",
            f"{self.same} of {self.private} private records are among the public ones as they are, labels, conditions "
            "and ids aside",
            f"{self.near} of {self.sampled} tested are much closer to a public record than is usual",
        )


def overlap(public: Given, private: Given, schema: Schema | str | Path, *, seed: int = 0) -> Overlap:
    """Look for private records among public ones.

    Args:
        public: Public data.
        private: Private data.
        schema: The schema of both, with every fact declared but the number of units; labels and conditions are ignored.
        seed: Draws the sample for distances.

    Raises:
        InputError: Data and schema do not fit, or the schema leaves a fact open.
    """
    require_torch("overlap")
    plain = _undescribed(schema if isinstance(schema, Schema) else Schema.load(schema))
    draw = np.random.default_rng(seeding.choose_seed(seed))
    (theirs, public_marks), (ours, marks) = _read(public, plain, "public"), _read(private, plain, "private")
    known = set(public_marks)
    same = np.array([mark in known for mark in marks], dtype=bool)
    few = draw.permutation(len(ours))[:_SEEN]
    beside = theirs[draw.permutation(len(theirs))[: _SEEN * 10]]
    far = nearest(beside.numpy(), ours[few].numpy(), 1)[0][:, 0]
    others = far[~same[few]]  # equal records would distort the usual distance
    usual = np.quantile(others, 0.5, method="lower") if len(others) else np.inf
    return Overlap(private=len(ours), same=int(same.sum()), sampled=len(few), near=int((far < _NEAR * usual).sum()))


def _undescribed(schema: Schema) -> Schema:
    """Return a schema of the same bodies, without labels, conditions, units and counts."""
    if schema.kind not in _COMPARED:
        raise SettingError(f"is not compared for kind {schema.kind}", field="overlap", remedy="give images or a table")
    return schema.model_copy(update={"units": 1, "unit": Unit()} | _COMPARED[schema.kind][0](schema))


def _conditions(schema: Schema) -> dict[str, Any]:
    given = schema.with_role("condition")
    columns = {name: column for name, column in schema.columns.items() if name not in given and column.modelled}
    if not columns:
        remedy = "take the role condition from a column"
        raise SchemaError("holds conditions and ids alone, which are not compared", field="columns", remedy=remedy)
    return {"columns": columns, "constraints": ()}


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _read(data: Given, schema: Schema, whose: str) -> tuple[Tensor, list[bytes]]:
    """Return records as network inputs ``(N, D)`` with numbers unbinned, and a digest of each one's own values."""
    try:
        return _seen(data, schema)
    except DataError as error:
        where = f"{whose} data" if error.field is None else f"{whose} data, {error.field}"
        raise DataError(error.message, field=where, remedy=error.remedy) from None


def _seen(data: Given, schema: Schema) -> tuple[Tensor, list[bytes]]:
    source = open_data(data, schema.kind, schema.written)
    if isinstance(source, ImageSource):  # a folder per class has labels of any kind
        schema = schema.model_copy(update={"label": _ANY if source.labelled else None})
    resolved = schema.resolve({})
    source.check(resolved)
    content = source.load(resolved).content
    bodies = _bodies(encoder_for(resolved, EncodingChoice(numerics="scaled")), content)
    return bodies, _COMPARED[schema.kind][1](content, bodies)


def _of_rows(content: Any, bodies: Tensor) -> list[bytes]:
    rows = content.itertuples(index=False, name=None)
    return [_digest(repr([str(cell) for cell in row]).encode()) for row in rows]


def _bodies(encoder: Encoder, content: Any) -> Tensor:
    return encoder.split(encoder.encode(content))[0].flatten(1)


_COMPARED: ByKind[tuple[Callable[[Schema], dict[str, Any]], Callable[[Any, Tensor], list[bytes]]]] = ByKind(
    "overlap",
    table=(_conditions, _of_rows),
    images=(lambda _: {"label": None}, lambda _, bodies: [_digest(row.numpy().tobytes()) for row in bodies]),
)
"""By kind: the parts of the schema left out, and a function from records and network inputs to a digest of each."""
