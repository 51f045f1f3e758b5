"""``guided``: private statistics teach a generator, a private critic refines it, a private labeller labels.

One plan splits ε over the stages; a share of zero leaves a stage out. On tables there are the first two
(:mod:`doublure.methods.guided.tables`), on images all three (:mod:`doublure.methods.guided.images`).
"""

from __future__ import annotations

from typing import ClassVar

from doublure.guarantee import Kind
from doublure.methods.guided.images import ImageGuidedSettings
from doublure.methods.guided.settings import GuidedSettings
from doublure.methods.guided.tables import TableGuidedSettings
from doublure.methods.method import MethodSettings
from doublure.methods.statistics.method import Statistics
from doublure.schema import Schema


class Guided(Statistics):
    """Statistics, then a critic, then a labeller; see the module."""

    name: ClassVar[str] = "guided"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[dict[str, type[MethodSettings]]] = {
        "table": TableGuidedSettings,
        "images": ImageGuidedSettings,
    }

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Every record is looked at; with a critic there is no one rate, and each access says its own."""
        return None if isinstance(settings, GuidedSettings) and settings.critic_share else 1.0


METHOD = Guided()
