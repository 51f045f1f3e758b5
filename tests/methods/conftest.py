"""A made-up table with a plain pattern, and jobs on it, without ledger, folder or plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from doublure.data.tables import open_table
from doublure.errors import SettingError
from doublure.methods import table
from doublure.methods.base import Job, encoder_for
from doublure.methods.dpgan import DpganSettings
from doublure.methods.gan import GanSettings
from doublure.private.records import PrivateRecords
from doublure.schema import ResolvedSchema, Schema

UNITS = 400
SCHEMA = """
doublure: 1
kind: table
units: 400
columns:
  sun: {type: category, values: [none, some, much], missing: false}
  rain: {type: integer, bounds: [0, 3], missing: false}
  place: {type: category, values: [hill, coast], missing: false, roles: [condition], shares: {hill: 0.7, coast: 0.3}}
"""
TINY: dict[str, Any] = {
    "lot_size": 100, "steps": 6, "width": 16, "critic_width": 16, "depth": 1, "critic_depth": 1, "noise_width": 4,
    "generator_batch": 64,
}  # fmt: skip


class Memory:
    """Keeps states in memory."""

    def __init__(self, kept: dict[str, Tensor] | None = None) -> None:
        self.kept, self.steps = kept, []

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        self.steps.append(step)
        self.kept = tensors

    def load(self) -> dict[str, Tensor] | None:
        return self.kept


class World:
    """The table, and how far a generator is from it."""

    SCHEMA, UNITS, TINY = SCHEMA, UNITS, TINY
    Memory = Memory

    @staticmethod
    def frame() -> pd.DataFrame:
        """Hills have little sun, coasts have much; it rains where there is no sun."""
        draw = np.random.default_rng(0)
        place = draw.choice(["hill", "coast"], UNITS, p=[0.7, 0.3])
        suns = ["none", "some", "much"]
        hill, coast = (draw.choice(suns, UNITS, p=shares) for shares in ([0.8, 0.1, 0.1], [0.1, 0.1, 0.8]))
        sun = np.where(place == "hill", hill, coast)
        return pd.DataFrame(
            {"sun": sun, "rain": np.where(sun == "none", draw.choice([2, 3], UNITS), 0), "place": place}
        )

    @staticmethod
    def settled(name: str, text: str = SCHEMA, **settings: Any) -> Any:
        """Return a method's settings on the table."""
        own = {"gan": GanSettings, "dpgan": DpganSettings}[name].read(TINY | settings)
        return table.method(name).settle(Schema.parse(text), own)

    def job(
        self, name: str = "gan", text: str = SCHEMA, *, frame: pd.DataFrame | None = None, sigma: float = 0.1,
        memory: Memory | None = None, seed: int = 1, taken: int = 0, authorise: Any = None, log: Any = None,
        schema: ResolvedSchema | None = None, **settings: Any,
    ) -> Job:  # fmt: skip
        """Return what a method trains from."""
        found = table.method(name)
        own = self.settled(name, text, **settings)
        resolved = schema or ResolvedSchema.parse(text)
        encoder = encoder_for(resolved, own)
        loaded = open_table(self.frame() if frame is None else frame).load(Schema.parse(text))
        return Job(
            encoder=encoder,
            records=PrivateRecords(
                encoder.compact(loaded.frame), loaded.unit, loaded.n_units, lambda r: encoder.split(encoder.expand(r))
            ),
            settings=own,
            noise_multiplier=sigma if found.guarantee == "dp" else None,
            sample_rate=found.sample_rate(resolved, own),
            units=UNITS,
            authorise=authorise or (lambda step: None),
            checkpoints=memory or Memory(),
            taken=taken,
            seed=seed,
            log=log or (lambda line: None),
        )

    def distance(self, generator: nn.Module, job: Job) -> float:
        """Return the total variation distance between a column's shares in a class and the generator's, on average."""
        body, condition = job.encoder.split(job.encoder.encode(self.frame()))
        noise = torch.randn(500, job.settings.noise_width, generator=torch.Generator().manual_seed(9))
        apart = []
        for code in range(2):
            wanted = torch.eye(2)[torch.full((500,), code)]
            with torch.no_grad():
                made = generator(noise, wanted).mean(0)
            apart.append((body[condition[:, code] == 1].mean(0) - made).abs().sum() / 2 / len(job.encoder.body_blocks))
        return float(torch.stack(apart).mean())

    @staticmethod
    def refusal(read: Any, given: dict[str, Any]) -> SettingError:
        """Return the error that settings are refused with, one line with a remedy."""
        with pytest.raises(SettingError) as caught:
            read(given)
        assert "\n" not in str(caught.value)
        assert caught.value.remedy
        return caught.value


@pytest.fixture(scope="session")
def world() -> World:
    torch.set_num_threads(1)
    return World()
