"""A made-up table with a plain pattern, a set of real digits, and jobs on them, without ledger, folder or plan."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from paying import paid
from torch import Tensor, nn

from doublure.data.images import open_images
from doublure.data.tables.opening import open_table
from doublure.encode.choice import encoder_for
from doublure.errors import SettingError
from doublure.methods import registry as table
from doublure.methods.method import settings_of
from doublure.methods.statistics.settings import ImageStatisticsSettings
from doublure.private.critic_steps import CriticSteps
from doublure.schema import ResolvedSchema, Schema
from doublure.training.job import Job, encoded_records

UNITS = 400
DIGITS = ", ".join(map(str, range(10)))
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


COUNTED: dict[str, Any] = {"components": 6, "fit_steps": 40, "groups": 4}


class Memory:
    """Keeps states in memory."""

    def __init__(self, kept: dict[str, Tensor] | None = None) -> None:
        self.kept, self.steps = kept, []

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        self.steps.append(step)
        self.kept = tensors
        self.saved()

    def saved(self) -> None:
        """Steps of training may be forgotten; a job's mechanism takes this place."""

    def load(self) -> dict[str, Tensor] | None:
        return self.kept


class AttackData:
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
        found, schema = table.method(name), Schema.parse(text)
        tiny = COUNTED if name in ("statistics", "guided") else TINY
        return found.resolve_defaults(schema, settings_of(found, "table", tiny | settings))

    def job(
        self, name: str = "gan", text: str = SCHEMA, *, frame: pd.DataFrame | None = None, sigma: float = 0.1,
        memory: Memory | None = None, seed: int = 1, taken: int = 0, authorise: Any = None, check_stop: Any = None,
        log: Any = None, schema: ResolvedSchema | None = None, **settings: Any,
    ) -> Job:  # fmt: skip
        """Return what a method trains from."""
        found, memory = table.method(name), memory or Memory()
        own = self.settled(name, text, **settings)
        resolved = schema or ResolvedSchema.parse(text)
        encoder = encoder_for(resolved, own.encoding)
        loaded = open_table(self.frame() if frame is None else frame).load(Schema.parse(text))
        return Job(
            encoder=encoder,
            records=encoded_records(encoder, encoder.compact(loaded.frame), loaded.unit, loaded.n_units),
            settings=own,
            **paid(found.accesses(resolved, own, sigma), own, authorise, taken, memory=memory),
            sample_rate=found.sample_rate(resolved, own) or 1.0,
            units=UNITS,
            check_stop=check_stop or (lambda: None),
            checkpoints=memory,
            seed=seed,
            log=log or (lambda line: None),
        )

    def distance(self, generator: nn.Module, job: Job) -> float:
        """Return the total variation distance between a column's shares in a class and the generator's, on average."""
        body, condition = job.encoder.split(job.encoder.encode(self.frame()))
        width = getattr(job.settings, "noise_width", 1)
        noise = torch.randn(500, width, generator=torch.Generator().manual_seed(9))
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


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[CriticSteps]:
    """Every critic's steps that are made."""
    made, init = [], CriticSteps.__init__

    def watched(step: CriticSteps, *arguments: Any, **named: Any) -> None:
        init(step, *arguments, **named)
        made.append(step)

    monkeypatch.setattr(CriticSteps, "__init__", watched)
    return made


@pytest.fixture(scope="session")
def world() -> AttackData:
    torch.set_num_threads(1)
    return AttackData()


class Digits:
    """Real digits of 8 x 8 pixels that scikit-learn brings along, and jobs on them."""

    UNITS = 1797
    SHAPE = (1, 8, 8)
    TEXT = f"doublure: 1\nkind: images\nunits: {UNITS}\nimages: {{shape: [8, 8, 1]}}\nlabel: {{values: [{DIGITS}]}}\n"
    UNLABELLED = TEXT.partition("label:")[0]
    TINY: ClassVar[dict[str, Any]] = {
        "features": 128, "fit_steps": 3, "batch": 40, "latent": 4, "hidden": 16, "channels": [8, 6],
        "labeller_steps": 4, "view_images": 100, "view_width": 20, "tries": 2, "labels_compared": False,
    }  # fmt: skip
    Memory = Memory

    def __init__(self) -> None:
        from sklearn.datasets import load_digits

        bunch = load_digits()
        self.pixels = (bunch.images * 255 / 16).round().astype(np.uint8)[..., None]
        self.labels = bunch.target

    def settings(self, name: str = "guided", text: str = TEXT, **changes: Any) -> Any:
        """Return a method's settings on the digits."""
        given = self.TINY | changes
        if name == "statistics":
            given = {key: value for key, value in given.items() if key in ImageStatisticsSettings.model_fields}
        schema, method = Schema.parse(text), table.method(name)
        return method.resolve_defaults(schema, settings_of(method, "images", given))

    def job(
        self, name: str = "guided", text: str = TEXT, *, sigma: float = 0.01, memory: Memory | None = None,
        rows: slice = slice(None), seed: int = 1, taken: int = 0, authorise: Any = None, check_stop: Any = None,
        log: Any = None, **changes: Any,
    ) -> Job:  # fmt: skip
        """Return what a method trains from."""
        own, memory = self.settings(name, text, **changes), memory or Memory()
        schema = Schema.parse(text)
        encoder = encoder_for(schema.resolve({}), own.encoding)
        given = {"images": self.pixels, "writer": np.arange(self.UNITS) // 2}
        loaded = open_images(given | ({"labels": self.labels} if "label" in text else {})).load(schema)
        compact, unit, n_units = encoder.compact(loaded.content), loaded.unit, loaded.n_units
        if rows != slice(None):
            compact = compact[rows]
            unit, n_units = np.arange(len(compact)), len(compact)
        return Job(
            encoder=encoder,
            records=encoded_records(encoder, compact, unit, n_units),
            settings=own,
            **paid(table.method(name).accesses(schema, own, sigma), own, authorise, taken, memory=memory),
            units=self.UNITS,
            check_stop=check_stop or (lambda: None),
            checkpoints=memory,
            seed=seed,
            log=log or (lambda line: None),
        )

    def noisy_job(
        self, *, memory: Memory | None = None, taken: int = 0, authorise: Any = None, check_stop: Any = None,
        labels_given: Any = None, **settings: Any,
    ) -> Job:  # fmt: skip
        """Return what ``noisecritic`` trains from."""
        method, schema, memory = table.method("noisecritic"), Schema.parse(self.TEXT), memory or Memory()
        own = method.resolve_defaults(schema, settings_of(method, "images", settings))
        encoder = encoder_for(schema.resolve({}), own.encoding)
        labels = self.labels if labels_given is None else labels_given
        loaded = open_images({"images": self.pixels, "labels": labels}).load(schema)
        return Job(
            encoder=encoder,
            records=encoded_records(encoder, encoder.compact(loaded.content), loaded.unit, loaded.n_units),
            settings=own,
            **paid(method.accesses(schema, own, 0.0), own, authorise, taken, memory=memory),
            sample_rate=method.sample_rate(schema, own),
            units=self.UNITS,
            check_stop=check_stop or (lambda: None),
            checkpoints=memory,
            seed=1,
        )

    def tensors(self, rows: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """Return the digits and their labels as tensors."""
        images = torch.from_numpy(self.pixels[rows]).permute(0, 3, 1, 2).float() / 127.5 - 1
        return images, torch.from_numpy(self.labels[rows])


@pytest.fixture(scope="session")
def digits() -> Digits:
    torch.set_num_threads(1)
    return Digits()
