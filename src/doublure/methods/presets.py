"""Presets: settings that take a method closer to its paper, by the paper's name.

A preset takes its method, sets what the paper states and defaults leave, and says so, with what does better here. All
other settings keep their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from doublure.errors import SettingError
from doublure.schema.kinds import KINDS, ByKind
from doublure.support.guessing import Registry


@dataclass(frozen=True)
class PaperPreset:
    """A method with settings of its paper.

    Attributes:
        paper: Its authors and year.
        method: The method that it is a setting of.
        settings: What it sets, for each kind of data that the paper is about.
        better: What to take in its place, in a sentence.
        called: The paper's own name of it, where that is no method's.
    """

    paper: str
    method: str
    settings: Mapping[str, Mapping[str, Any]]
    better: str
    called: str = ""


PRESETS: Registry[PaperPreset] = Registry(
    "preset",
    {
        "frigerio2019": PaperPreset(
            paper="Frigerio et al. 2019",
            method="dpgan",
            # section 5: scaled numbers; section 6: an LSTM draws series, and every critic is fully connected
            settings=ByKind(
                "preset",
                table={"loss": "wgan-gp", "numerics": "scaled"},
                series={"loss": "wgan-gp", "generator_type": "lstm", "critic_type": "mlp"},
            ),
            better="Method statistics did better by most measures",
        ),
        "triastcyn2018": PaperPreset(
            paper="Triastcyn & Faltings 2018",
            method="noisecritic",
            settings=ByKind("preset", images={"recipe": "paper-2018"}),
            better="It claims no ε; method auto makes images with one",
        ),
        "triastcyn2019": PaperPreset(
            paper="Triastcyn & Faltings 2019",
            method="noisecritic",
            settings=ByKind("preset", images={"recipe": "paper"}),
            better="It claims no ε; method auto makes images with one",
        ),
        "chen2021": PaperPreset(
            paper="Chen et al. 2021",
            method="latentgan",
            # section III-B: a DP-GAN learns latents; what G_p leaves out is not drawn
            settings=ByKind("preset", images={"teacher": "critic", "detail": 0}, table={"teacher": "critic"}),
            better="The setting teacher=mixture did better on digits",
            called="dpmi",
        ),
        "triastcyn2022": PaperPreset(
            paper="Triastcyn & Faltings 2022",
            method="bayesgan",
            settings=ByKind("preset", images={"recipe": "paper"}),
            better="Method auto makes images with an ε that holds for every record",
        ),
    },
)
"""Presets by name."""


def with_preset(name: str, kind: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a preset's method, and its settings for a kind of data with those that were given.

    Raises:
        SettingError: There is none of this name, or it is about other data.

    Example:
        >>> with_preset("frigerio2019", "table", {"steps": 100})
        ('dpgan', {'loss': 'wgan-gp', 'numerics': 'scaled', 'steps': 100})
    """
    preset = PRESETS[name]
    if kind not in preset.settings:
        others = about(kind)
        remedy = f"leave it out, or use {', '.join(others)}" if others else "leave it out"
        own = " and ".join(KINDS[each].records for each in preset.settings)
        raise SettingError(f"{name} makes {own}", field="preset", remedy=remedy)
    return preset.method, {**preset.settings[kind], **settings}


class ChoiceReason(str):
    """A plan's sentence on why a method or its settings were chosen, which is no warning."""

    __slots__ = ()


def about(kind: str) -> list[str]:
    """Return the presets for a kind of data."""
    return [name for name, each in PRESETS.items() if kind in each.settings]


def sentence(name: str, kind: str) -> ChoiceReason:
    """Return a plan's sentence about a preset: what it sets for a kind of data, and what does better.

    Example:
        >>> print(sentence("chen2021", "table"))
        preset chen2021: method latentgan with teacher=critic, after Chen et al. 2021; else defaults. The setting ...
    """
    preset = PRESETS[name]
    own = f"{preset.method} with {written(preset.settings[kind])}, after {preset.paper}; else defaults"
    return ChoiceReason(f"preset {name}: method {own}. {preset.better}")


def written(settings: Mapping[str, Any]) -> str:
    """Return settings as ``--set`` takes them.

    Example:
        >>> written({"loss": "wgan-gp", "detail": 0})
        'loss=wgan-gp, detail=0'
    """
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def meant_by(method: str) -> str | None:
    """Return the preset that an unknown method's name means; None if there is none.

    Example:
        >>> meant_by("DPMI"), meant_by("chen2021"), meant_by("magic")
        ('chen2021', 'chen2021', None)
    """
    wanted = method.lower()
    return next((name for name, preset in PRESETS.items() if wanted in (name, preset.called or name)), None)
