"""The noisy tables that a run has bought, in one file: an array of all counts, and what they count in its metadata."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from doublure.support import files
from doublure.support.tensors import damaged, packed, read_arrays, sha256_of
from doublure.training.noisy_tables import NoisyTable


def write_tables(path: Path, tables: Sequence[NoisyTable]) -> str:
    """Write tables, whole or not at all, and return the file's SHA-256."""
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
    content = packed({"counts": counts}, metadata)
    files.write_atomic(path, lambda file: file.write(content))
    return hashlib.sha256(content).hexdigest()


def read_noisy_tables(path: Path, sha256: object) -> tuple[NoisyTable, ...]:
    """Read tables.

    Args:
        path: The file.
        sha256: What the run says that it is.

    Raises:
        RunFolderError: It is missing, damaged, or another one.
    """
    if sha256_of(path) != sha256:
        raise damaged(path)
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
        raise damaged(path) from None
