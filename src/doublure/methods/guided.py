"""``guided``: private statistics teach a generator, a private critic refines it, a private labeller labels.

One plan splits ε over the three; a share of zero leaves a stage out (:mod:`doublure.methods.guided_settings`). What is
done on images is in :mod:`doublure.methods.image_guided`.
"""

from __future__ import annotations

from typing import ClassVar

from doublure.guarantee import Kind
from doublure.methods.base import MethodSettings
from doublure.methods.guided_settings import GuidedSettings
from doublure.methods.image_guided import ImageGuidedSettings
from doublure.methods.statistics import Statistics
from doublure.schema import Schema


class Guided(Statistics):
    """Statistics, then a critic, then a labeller; see the module."""

    name: ClassVar[str] = "guided"
    kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[dict[str, type[MethodSettings]]] = {"images": ImageGuidedSettings}

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Every record is looked at; with a critic there is no one rate, and each access says its own."""
        return None if isinstance(settings, GuidedSettings) and settings.critic_share else 1.0


METHOD = Guided()
