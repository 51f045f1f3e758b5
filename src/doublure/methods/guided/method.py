"""``guided``: a generator fitted to private statistics, refined by a private critic, checked by a private labeller.

One plan splits ε over the stages; a share of zero leaves a stage out. On tables there are the first two
(:mod:`doublure.methods.guided.tables`), on images all three (:mod:`doublure.methods.guided.images`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from doublure.guarantee import Kind
from doublure.methods.guided.images import ImageGuided
from doublure.methods.guided.settings import GuidedSettings, ImageGuidedSettings, TableGuidedSettings
from doublure.methods.guided.tables import TableGuided
from doublure.methods.statistics.method import Statistics
from doublure.methods.statistics.of_kind import StatisticsStrategy
from doublure.methods.statistics.settings import StatisticsSettings
from doublure.schema import Schema
from doublure.training.settings import MethodSettings, by_kind


class Guided(Statistics):
    """Statistics, then a critic, then a labeller; see the module."""

    name: ClassVar[str] = "guided"
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(TableGuidedSettings, ImageGuidedSettings)
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)
    of_kind: ClassVar[Mapping[str, StatisticsStrategy[Any]]] = dict(
        zip(settings_type, (TableGuided(), ImageGuided()), strict=True)
    )

    @override
    def sample_rate(self, schema: Schema, settings: StatisticsSettings) -> float | None:
        return None if isinstance(settings, GuidedSettings) and settings.critic_share else 1.0


METHOD = Guided()
