"""The registry of methods by name.

A method of this package is a folder beside this file and a line in ``_SUMMARIES``; a method that is defined elsewhere
is registered (docs/extending.md). Torch is not imported here, and a method's module only when the method is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from doublure.errors import SettingError
from doublure.methods.presets import PRESETS, meant_by
from doublure.support.guessing import Registry, nearest_name

if TYPE_CHECKING:
    from doublure.methods.method import Method

AUTO = "auto"
"""The name under which :mod:`doublure.methods.choice` chooses a method."""

_SUMMARIES = {
    "statistics": "a generator fitted to noisy statistics: counts of tables and series, mean features of images",
    "guided": "statistics, then a private critic that refines, and on images a private labeller that checks",
    "dpgan": "a GAN whose critic learns from clipped, noised gradients (Frigerio 2019)",
    "latentgan": "latents of a public generator, learned by noisy moments or a private critic (Chen 2021, DPMI)",
    "evolution": "public candidates that private images vote for (Private Evolution, Lin 2024; Sim-PE 2025)",
    "noisecritic": "a GAN whose critic has a noise layer (Triastcyn 2018, 2019): an empirical estimate, no guarantee",
    "bayesgan": "dpgan's noisy critic under the Bayesian accountant, with its worst case (Triastcyn & Faltings 2022)",
    "gan": "a GAN without privacy: a baseline, never to be published",
}

_OF_KIND: dict[tuple[str, str], str] = {
    ("statistics", "table"): "a generator fitted to noisy statistics: counts of columns, alone and together",
    ("statistics", "relational"): "a generator fitted to noisy statistics: counts of columns, within tables and across",
    ("statistics", "visits"): "a generator fitted to noisy statistics: counts of columns, within a unit and its rows",
    ("statistics", "series"): "a generator fitted to noisy statistics: counts of values, products of steps",
    ("statistics", "images"): "a generator fitted to noisy statistics: mean features of each class",
    ("guided", "table"): "statistics, then a private critic that refines",
    ("guided", "images"): "statistics, then a private critic that refines and a private labeller that checks",
}


METHODS: Registry[Callable[[], Method[Any, Any]]] = Registry(
    "method",
    {name: partial(resolve_name, f"doublure.methods.{name}.method:METHOD") for name in _SUMMARIES},
    beside=[AUTO],
)
"""Functions that return the methods, by name."""


def register(added: Method[Any, Any], summary: str) -> None:
    """Let plans name a method that is defined elsewhere.

    The registration holds for this process: a process that loads a run folder of the method must register it again.

    Args:
        added: The method; it replaces a method of the same name that was registered before.
        summary: A line about it.

    Raises:
        SettingError: A method of this package has its name, or something that is called is no function.
    """
    from doublure.methods.method import Method

    for name in (name for name in dir(Method) if not name.startswith("__")):
        if callable(getattr(Method, name)) and not callable(getattr(added, name, None)):
            remedy = f"write it as a function, as {Method.__name__} in doublure.methods.method has it"
            raise SettingError("is called, and is no function", field=f"{added.name}.{name}", remedy=remedy)
    METHODS.register(added.name, lambda: added)
    _SUMMARIES[added.name] = summary


def summary(name: str, kind: str) -> str:
    """Return a line about a method on data of one kind."""
    return _OF_KIND.get((name, kind), _SUMMARIES[name])


def method(name: str) -> Method[Any, Any]:
    """Return the method of this name.

    Raises:
        SettingError: No method has this name; the remedy names the papers' presets where no method's name is near.
    """
    if name not in METHODS and nearest_name(name, METHODS.names) is None:
        refused = METHODS.unknown(name)
        meant = meant_by(name)
        preset = f"a paper's system is a preset: {', '.join(PRESETS)}" if meant is None else f"write --preset {meant}"
        remedy = f"{preset}; {refused.remedy}"
        raise SettingError(refused.message, field=refused.field, remedy=remedy)
    return METHODS[name]()
