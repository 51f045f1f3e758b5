"""Released contingency tables: noisy counts with their standard error.

A method that has bought tables may hand them out (:attr:`doublure.training.job.Job.hand_out`). They are answers of the
mechanism already, so publishing them costs nothing more. A run keeps them, and a bundle holds them on request. They
must hold noisy and public numbers only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.support import files
from doublure.support.tensors import damaged_file, read_arrays, sha256_of, to_safetensors


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """One table of counts, as the mechanism released it: not clipped at zero, not made consistent.

    Attributes:
        columns: The column counted along each axis.
        cells: For each axis the names of its cells; public or bought.
        counts: int64, in the shape of the axes; the rounded mean where a table was counted several times.
        standard_error: Standard error of each count, in records: the noise's deviation and that of rounding.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    counts: npt.NDArray[np.int64]
    standard_error: float

    def __post_init__(self) -> None:
        shape = tuple(len(names) for names in self.cells)
        if len(self.columns) != len(shape) or self.counts.shape != shape or self.counts.dtype != np.int64:
            raise SettingError(
                "are not whole numbers of the shape of the cells", field="counts", remedy="name each cell"
            )


# -- their file: an array of all counts, and what they count in its metadata -------------------------------------------


def write_tables(path: Path, tables: Sequence[NoisyTable]) -> str:
    """Write tables atomically, and return the file's SHA-256."""
    axes: dict[tuple[str, ...], int] = {}
    described = [
        {
            "columns": table.columns,
            "cells": [axes.setdefault(names, len(axes)) for names in table.cells],
            "standard_error": table.standard_error,
        }
        for table in tables
    ]
    counts = np.concatenate([table.counts.ravel() for table in tables])
    metadata = {"tables": json.dumps(described, ensure_ascii=False), "axes": json.dumps(list(axes), ensure_ascii=False)}
    content = to_safetensors({"counts": counts}, metadata)
    files.write_atomic(path, lambda file: file.write(content))
    return hashlib.sha256(content).hexdigest()


def read_noisy_tables(path: Path, sha256: object) -> tuple[NoisyTable, ...]:
    """Read tables.

    Args:
        path: The file.
        sha256: The hash that the run records.

    Raises:
        RunFolderError: The file is missing or damaged, or has another hash.
    """
    if sha256_of(path) != sha256:
        raise damaged_file(path)
    metadata, arrays = read_arrays(path)
    try:
        described, axes = json.loads(metadata["tables"]), [tuple(names) for names in json.loads(metadata["axes"])]
        cells = [tuple(axes[axis] for axis in entry["cells"]) for entry in described]
        shapes = [tuple(len(names) for names in own) for own in cells]
        parts = np.split(arrays["counts"], np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return tuple(
            NoisyTable(
                columns=tuple(entry["columns"]),
                cells=own,
                counts=part.reshape(shape),
                standard_error=float(entry["standard_error"]),
            )
            for entry, own, part, shape in zip(described, cells, parts, shapes, strict=True)
        )
    except (KeyError, IndexError, TypeError, ValueError):
        raise damaged_file(path) from None
