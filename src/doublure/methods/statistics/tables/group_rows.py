"""Rows as a critic sees them beside a mixture: of every node which group it is in, as one-hot blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.schema import Schema
from doublure.training.job import Job

_AT_ONCE = 4096


@dataclass(frozen=True)
class GroupRows:
    """What networks ask an encoder: how wide rows are. Conditions are columns like others.

    Attributes:
        schema: Every fact known.
        width: Of the one-hot blocks together.
        condition_width: None is asked for.
    """

    schema: Schema
    width: int
    condition_width: int = 0

    @property
    def body_shape(self) -> tuple[int, ...]:
        """``(width,)``."""
        return (self.width,)


def of_groups(job: Job, tables: NoisyTables) -> Job:
    """Return the job with records in groups, which follow from what was released."""
    encoder, one_hot = group_rows(job.encoder.schema, tables)
    records = job.records.mapped(one_hot, encoder.width, rows=_AT_ONCE)
    return replace(job, records=records, encoder=encoder)  # type: ignore[arg-type]


def group_rows(schema: Schema, tables: NoisyTables) -> tuple[GroupRows, Callable[[Tensor], Tensor]]:
    """Return how wide rows in groups are, and what makes them ``(B, width)`` of compact records ``(B, P)``."""
    sizes = [node.size for node in tables.nodes] + ([tables.target.size] if tables.target else [])

    def one_hot(bodies: Tensor) -> Tensor:
        blocks = [functional.one_hot(_groups(node, bodies), node.size) for node in tables.nodes]
        if tables.target is not None:
            values = bodies[:, tables.target_part].long().clamp(0, tables.target.size - 1)
            blocks.append(functional.one_hot(values, tables.target.size))
        return torch.cat(blocks, dim=1).float()

    return GroupRows(schema, sum(sizes)), one_hot


def _groups(node: Node, bodies: Tensor) -> Tensor:
    """Return the coarse group ``(B,)`` of each row ``(B, P)``, from that row alone."""
    if node.patterns is not None:
        own = node.patterns
        pattern = torch.zeros(len(bodies), dtype=torch.long)
        for bit, (part, mark) in enumerate(zip(own.parts, own.marks, strict=True)):
            pattern += (bodies[:, part] >= mark).long() << bit
        return torch.from_numpy(node.coarse[own.nearest])[pattern]
    axis = node.leaves.axis(node.coarse)
    place = torch.searchsorted(torch.from_numpy(axis.starts), bodies[:, axis.part].double().contiguous(), right=True)
    return torch.from_numpy(axis.cells)[(place - 1).clamp(min=0)]
