"""Encode attributes of series and images as one-hot blocks behind their bodies, and decode them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.series import Series
from doublure.data.series.in_memory import calendar_shares
from doublure.encode.attribute_groups import encoding_of, group_middles
from doublure.encode.encoder import Encoder
from doublure.encode.numeric import Floats
from doublure.errors import SettingError
from doublure.schema.columns import Column
from doublure.schema.rules.rule_set import RuleSet
from doublure.schema.series import SeriesSchema


class Attributes:
    """The attributes of a set of series or images.

    Args:
        columns: Every fact of them known.

    Attributes:
        sizes: Attribute -> how many values it has, or groups of numbers, in order.
        width: K, all of them together.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = columns
        self._encodings = {name: encoding_of(column) for name, column in columns.items()}
        self.sizes = {name: each.parts[0].size for name, each in self._encodings.items()}
        self.width = sum(self.sizes.values())

    @property
    def numbers(self) -> tuple[Floats | None, ...]:
        """The middles of each attribute's groups of numbers; None where its values are no numbers."""
        return tuple(group_middles(column) for column in self._columns.values())

    def codes(self, cells: pd.DataFrame) -> Floats:
        """Return ``(N, attributes)`` codes."""
        found = [each.compact(cells[name])[0] for name, each in self._encodings.items()]
        return np.stack(found, axis=1) if found else np.zeros((len(cells), 0))

    def one_hot(self, codes: Tensor) -> Tensor:
        """Return ``(B, K)`` from codes ``(B, attributes)``."""
        blocks = [codes.new_zeros(len(codes), 0)]
        for number, size in enumerate(self.sizes.values()):
            block = torch.zeros(len(codes), size, device=codes.device)
            blocks.append(block.scatter_(1, codes[:, number : number + 1].long(), 1.0))
        return torch.cat(blocks, dim=1)

    def restored(self, condition: Tensor | None, n: int, rng: np.random.Generator | None) -> pd.DataFrame:
        """Return attributes of the schema's own types from one-hot blocks ``(n, K)``.

        Args:
            condition: The blocks; None where there are none.
            n: How many records.
            rng: Draws a number within its group; without it the middle is taken.
        """
        found = {}
        if condition is not None:
            blocks = torch.split(condition, list(self.sizes.values()), dim=1)
            for (name, each), block in zip(self._encodings.items(), blocks, strict=True):
                found[name] = each.restore([block.argmax(dim=1).numpy().astype(np.float64)], rng)
        return pd.DataFrame(found, index=pd.RangeIndex(n))


class SeriesRows(Encoder):
    """Base of the series encoders: their conditions are the attributes."""

    schema: SeriesSchema
    body_shape: tuple[int, int]

    def __init__(self, schema: SeriesSchema, planes: int) -> None:
        """Lay out a row.

        Args:
            schema: Every fact known.
            planes: How many rows of numbers the body has, each as long as a series.
        """
        self.schema = schema
        self._attributes = Attributes(schema.attributes)
        self.condition_width, self.condition_sizes = self._attributes.width, self._attributes.sizes
        self.body_shape = (planes, schema.length)
        self._flat = planes * schema.length
        self.width = self._flat + self.condition_width

    @property
    def condition_numbers(self) -> tuple[Floats | None, ...]:
        """The middles of each attribute's groups of numbers; None where its values are no numbers."""
        return self._attributes.numbers

    def made(self, values: Floats, condition: Tensor | None, rng: np.random.Generator | None) -> Series:
        """Return series of values ``(N, length, channels)``, which end where their attributes say."""
        attributes = self._attributes.restored(condition, len(values), rng)
        found = Series(
            values=values,
            channels=tuple(self.schema.channels),
            attributes=attributes,
            states=self.schema.states,
            ends_at=self.schema.ends_at,
        )
        values[~found.inside] = np.nan
        if self.schema.constraints:
            self._keep_rules(values, rng or np.random.default_rng(0))
        return found

    def _keep_rules(self, values: Floats, rng: np.random.Generator) -> None:
        """Let steps ``(N, length, channels)`` keep declared rules in place, those whose channels have values."""
        place = {name: number for number, name in enumerate(self.schema.channels)}
        flat = values.reshape(-1, values.shape[2])
        patterns, of = np.unique(np.isnan(flat), axis=0, return_inverse=True)
        for number, gone in enumerate(patterns):
            held = [rule for rule in self.schema.constraints if not any(gone[place[name]] for name in rule.names)]
            rows = np.flatnonzero(of.reshape(-1) == number)
            rules = RuleSet(held, self.schema.columns)
            numbers = {name: flat[rows, place[name]] for name in rules.names}
            rules.fix(numbers, rng)
            for name in rules.names:
                flat[rows, place[name]] = numbers[name]

    @override
    def condition_shares(self, name: str) -> Floats:
        column = self.schema.attributes[name]
        if column.fact("shares") is not None or column.from_time is None:
            return super().condition_shares(name)
        return calendar_shares(self.schema, name)

    @override
    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the codes of the attributes that are asked for.

        Raises:
            SettingError: Something else than a value of an attribute is asked for.
        """
        channel = next((name for name in given if name not in self.condition_sizes), None)
        if channel is not None:
            remedy = f"ask for {' or '.join(self.condition_sizes)}" if self.condition_sizes else "leave it out"
            raise SettingError("is no attribute of the series", field=f"given {channel}", remedy=remedy)
        return super().condition_codes(given)
