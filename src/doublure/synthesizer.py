"""A fitted understudy: sampling from it is post-processing and costs nothing."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from doublure.errors import SettingError
from doublure.guarantee import Guarantee
from doublure.planning import Plan
from doublure.schema import ResolvedSchema
from doublure.schema.columns import label

if TYPE_CHECKING:
    import torch

CHUNK_ROWS = 50_000
_MOST_TRIES = 400


@dataclass(kw_only=True)
class Synthesizer:
    """A generator and everything that may be said about it.

    Attributes:
        schema: Every fact known, bought ones included.
        plan: How it was made.
        guarantee: What may be claimed.
        run: Public facts of the run: when, which ledger entry, which seed.
    """

    schema: ResolvedSchema
    plan: Plan
    guarantee: Guarantee
    generator: torch.nn.Module = field(repr=False)
    run: dict[str, Any] = field(default_factory=dict, repr=False)

    def sample(self, n: int, given: Mapping[str, object] | None = None, seed: int | None = None) -> pd.DataFrame:
        """Return exactly ``n`` artificial rows.

        Args:
            n: How many, at least 0.
            given: Column -> value that every row must have.
            seed: Makes the rows repeatable; without one they are new each time.

        Raises:
            SettingError: A column or value is not in the schema, or the combination is too rare to sample.
        """
        frames = list(self.sample_chunks(n, given=given, seed=seed))
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]

    def sample_chunks(
        self, n: int, given: Mapping[str, object] | None = None, seed: int | None = None, chunk_rows: int = CHUNK_ROWS
    ) -> Iterator[pd.DataFrame]:
        """Yield ``n`` rows a chunk at a time, at bounded memory; at least one chunk, which may be empty."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise SettingError("must be a whole number of at least 0", field="n", remedy="say how many rows to make")
        fixed, wanted = self._split(given or {})
        entropy = secrets.randbits(63) if seed is None else seed
        done = number = tries = 0
        while done < n or number == 0:
            size = min(chunk_rows, n - done) if not wanted else chunk_rows
            frame = self._draw(size, fixed, np.random.default_rng([entropy, number]))
            for name, value in wanted.items():
                frame = frame[_labels(frame[name]) == value]
            frame = frame.iloc[: n - done].reset_index(drop=True)
            tries = 0 if len(frame) else tries + 1
            if tries > _MOST_TRIES:
                raise SettingError(
                    f"no artificial row in {tries * chunk_rows} has this combination",
                    field="given " + ", ".join(wanted),
                    remedy="ask for fewer conditions, or give the column the role condition and fit again",
                )
            number += 1
            if len(frame) or n == 0:
                yield self._numbered(frame, done)
                done += len(frame)

    def save(self, path: str | Path) -> None:
        """Write a run folder that :func:`doublure.load` reads."""
        from doublure.run_folder import RunFolder

        RunFolder.export(Path(path), self)

    # -- inside --------------------------------------------------------------------------------------------------

    @property
    def _encoder(self) -> Any:
        from doublure.methods.base import encoder_for

        if not hasattr(self, "_cached_encoder"):
            self._cached_encoder = encoder_for(self.schema, self.plan.settings)
        return self._cached_encoder

    def _split(self, given: Mapping[str, object]) -> tuple[dict[str, int], dict[str, str]]:
        """Return what the generator can be asked for, and what must be waited for."""
        conditions = set(self.schema.with_role("condition"))
        for name in given:
            if name in self.schema.columns and self.schema.columns[name].type == "id":
                raise SettingError("is an id, which is numbered anew", field=f"given {name}", remedy="leave it out")
        fixed = self._encoder.condition_codes({name: value for name, value in given.items() if name in conditions})
        wanted = {name: value for name, value in given.items() if name not in conditions}
        for name, value in wanted.items():
            column = self.schema.columns.get(name)
            if column is None or column.discrete:
                self._encoder.condition_codes({name: value})
        return fixed, {name: label(_as_cell(value)) for name, value in wanted.items()}

    def _draw(self, size: int, fixed: Mapping[str, int], rng: np.random.Generator) -> pd.DataFrame:
        import torch

        encoder = self._encoder
        source = torch.Generator().manual_seed(int(rng.integers(2**62)))
        width = getattr(self.plan.settings, "noise_width", 1)
        condition = encoder.draw_conditions(size, rng, fixed) if encoder.condition_width else None
        self.generator.eval()
        with torch.inference_mode():
            rows = self.generator(torch.randn(size, width, generator=source), condition)
            rows = rows if condition is None else torch.cat([rows, condition], dim=1)
        frame: pd.DataFrame = encoder.decode(rows, rng)
        return frame

    def _numbered(self, frame: pd.DataFrame, done: int) -> pd.DataFrame:
        for name, column in self.schema.columns.items():
            if column.type == "id":
                frame[name] = np.arange(done + 1, done + len(frame) + 1, dtype=np.int64)
        return frame


def _as_cell(value: object) -> object:
    """Read a number that a command line gave as text."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _labels(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    return column.astype(object).map(label).to_numpy()
