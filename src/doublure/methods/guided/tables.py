"""``guided`` on tables: noisy tables teach a mixture, and a private critic refines it.

First the two releases of ``statistics`` (:mod:`doublure.methods.statistics.tables.method`); then a critic of whole
rows, which can see what no pair of columns shows (:mod:`doublure.methods.guided.refining`). The mixture follows it by
the probabilities of its components, and is held to the noisy tables meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pydantic import Field

from doublure.access import Access
from doublure.methods.dpgan.method import DpganSettings
from doublure.methods.guided.settings import GuidedSettings
from doublure.methods.method import Job, Work
from doublure.methods.statistics.settings import counted_events
from doublure.methods.statistics.tables.method import TableStatisticsSettings
from doublure.schema import Schema

if TYPE_CHECKING:
    from torch import nn


class TableGuidedSettings(GuidedSettings, TableStatisticsSettings):
    """The settings of ``guided`` on tables.

    Attributes:
        critic_width: Hidden units a layer of the critic.
        critic_depth: Hidden layers of the critic.
    """

    critic_width: int = Field(default=128, ge=1, le=8192)
    critic_depth: int = Field(default=1, ge=0, le=10)

    @property
    def noise_source(self) -> str:
        """The tables' noise is exact; the critic's is not."""
        return f"{super().noise_source}; os-keyed for the critic" if self.critic_share else super().noise_source

    def settled(self, schema: Schema) -> Self:
        """Decide within which column to count, and the critic's lot, from declared facts."""
        return super().settled(schema).with_lot(schema)

    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """The tables, and each step of the critic."""
        statistics = TableStatisticsSettings.accesses(self, schema, self.statistics_noise(noise_multiplier))
        return self.with_critic(statistics, schema, noise_multiplier)

    def adversarial(self, noise_width: int) -> DpganSettings:
        """Return the critic's stage as the settings of a private GAN, whose generator is the one taught before.

        Args:
            noise_width: Numbers of noise that this generator takes for a row.
        """
        return DpganSettings(
            loss="logistic",
            gradient_penalty=0.0,
            lot_size=self.critic_lot,
            steps=self.critic_steps,
            max_grad_norm=self.critic_clip,
            critic_lr=self.critic_lr,
            critic_threshold=self.critic_threshold,
            critic_patience=self.critic_patience,
            critic_width=self.critic_width,
            critic_depth=self.critic_depth,
            generator_lr=self.refine_lr,
            generator_average=0.99,
            noise_width=noise_width,
            bins=self.bins,
        )

    def work(self, schema: Schema) -> Work:
        """Return what counting, fitting and refining compute and hold."""
        work = super().work(schema)
        if not self.critic_share:
            return work
        critic = self.adversarial(1 + len(schema.columns)).work(schema)
        memory = max(work.memory_bytes, critic.memory_bytes)
        return replace(work, flops=work.flops + critic.flops, steps=work.steps + self.critic_steps, memory_bytes=memory)

    def train(self, job: Job) -> nn.Module:
        """Make the releases stage by stage."""
        from doublure.methods.guided.refining import refined
        from doublure.methods.statistics.tables.marginals import taught
        from doublure.networks.mixture import MixtureRows

        events = counted_events(job)
        lesson = taught(job.stage("statistics", after=0), self, events)
        if self.critic_share:
            rows = MixtureRows(lesson.generator)
            refined(
                job.stage("critic", after=len(events)),
                self.adversarial(rows.noise_width),
                job.accesses[-1],
                rows,
                weight=self.anchor,
                distance=lambda moving: lesson.loss(moving.mixture),
            )
        return lesson.generator
