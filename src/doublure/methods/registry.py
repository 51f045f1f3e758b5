"""Name -> method. Imports no torch, and a method's module only when that method is asked for.

A method of this package is a folder beside this file and a line in ``_SUMMARIES``; one that is defined elsewhere is
registered (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from doublure.support.guessing import Registry

if TYPE_CHECKING:
    from doublure.methods.method import Method

AUTO = "auto"
"""Asks :mod:`doublure.methods.choice` for one."""

_SUMMARIES = {
    "statistics": "a generator fitted to noisy statistics: counts of tables and series, mean features of images",
    "guided": "statistics, then a private critic that refines, and on images a private labeller that checks",
    "dpgan": "a GAN whose critic learns from clipped, noised gradients (Frigerio 2019)",
    "latentgan": "latents of a public generator, learned by noisy moments or a private critic (Chen 2021, DPMI)",
    "noisecritic": "a GAN whose critic has a noise layer (Triastcyn 2018, 2019): an empirical estimate, no guarantee",
    "bayesgan": "dpgan's noisy critic under the Bayesian accountant, with its worst case (Triastcyn & Faltings 2022)",
    "gan": "a GAN without privacy: a baseline, never to be published",
}

_OF_KIND: dict[tuple[str, str], str] = {
    ("statistics", "table"): "a generator fitted to noisy statistics: counts of columns, alone and together",
    ("statistics", "relational"): "a generator fitted to noisy statistics: counts of columns, within tables and across",
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
"""Each name, and what returns its method."""


def register(added: Method[Any, Any], summary: str) -> None:
    """Let plans name a method that is defined elsewhere. It holds for this process: a run folder needs it again.

    Args:
        added: The method; another one of its name that was registered before is replaced.
        summary: What it does, in a line.

    Raises:
        SettingError: A method of this package has its name.
    """
    METHODS.register(added.name, lambda: added)
    _SUMMARIES[added.name] = summary


def summary(name: str, kind: str) -> str:
    """Return what a method does with data of one kind, in a line."""
    return _OF_KIND.get((name, kind), _SUMMARIES[name])


def method(name: str) -> Method[Any, Any]:
    """Return the method of this name.

    Raises:
        SettingError: There is none.
    """
    return METHODS[name]()
