"""``guided`` on tables: a mixture fitted to noisy tables, refined by a private critic.

The stages are the releases of ``statistics`` (:mod:`doublure.methods.statistics.tables.method`), and a critic of whole
rows in the groups of counted pairs (:mod:`doublure.methods.guided.refining`), which can detect dependence beyond pairs.
The probabilities of the mixture's components are trained against it, with the distance from the noisy tables in the
loss; the tree is then drawn within the refined mixture.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from doublure.access import Access
from doublure.methods.guided.critic_stage import critic_of_tables
from doublure.methods.guided.settings import TableGuidedSettings
from doublure.methods.statistics.of_kind import counted_events
from doublure.methods.statistics.tables.method import TableStatistics
from doublure.schema import Schema
from doublure.training.architectures import Critic, kept_critic
from doublure.training.job import Job, State
from doublure.training.owned import Adversary, OwnerTasks, RecordView, unplanned
from doublure.training.settings import Work

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator


class TableGuided(TableStatistics[TableGuidedSettings]):
    """``guided`` on tables; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: TableGuidedSettings) -> TableGuidedSettings:
        return super().resolve_defaults(schema, settings).with_lot(schema)

    @override
    def accesses(self, schema: Schema, settings: TableGuidedSettings, noise_multiplier: float) -> tuple[Access, ...]:
        statistics = super().accesses(schema, settings, settings.statistics_noise(noise_multiplier))
        return settings.with_critic(statistics, schema, noise_multiplier)

    @override
    def asks_owners(self, schema: Schema, settings: TableGuidedSettings) -> bool:
        return not settings.critic_share or schema.max_silos == 1

    @override
    def at_owner(self, encoder: Encoder, settings: TableGuidedSettings) -> OwnerTasks:
        if not settings.critic_share:
            return OwnerTasks()
        from doublure.methods.statistics.tables.group_rows import GroupView
        from doublure.networks.mixture import MixtureGenerator, MixtureRows

        def adversary(view: RecordView | None) -> Adversary:
            if not isinstance(view, GroupView):
                raise unplanned("view")
            mixture = MixtureRows(MixtureGenerator(view.sizes, condition_width=0, components=view.components))
            own = critic_of_tables(settings, mixture.noise_width)
            return Adversary(
                settings=own, shapes=view.shapes(encoder.schema), generator=lambda: mixture, noise_width=own.noise_width
            )

        return OwnerTasks(
            views={GroupView.name: lambda message: GroupView.from_message(message, encoder.width)}, adversary=adversary
        )

    @override
    def white_box(self, encoder: Encoder, settings: TableGuidedSettings, kept: State) -> Critic | None:
        from doublure.methods.statistics.tables.group_rows import GroupView

        stage = {name.removeprefix("critic/"): own for name, own in kept.items() if name.startswith("critic/")}
        if not stage:
            return None
        view = GroupView.of_state(stage, encoder.width)
        own = critic_of_tables(settings, 1)  # a critic does not depend on the generator's noise width
        return kept_critic(stage, own, view.shapes(encoder.schema), view.one_hot)

    @override
    def needs_torch(self, settings: TableGuidedSettings) -> bool:
        return bool(settings.critic_share)

    @override
    def work(self, schema: Schema, settings: TableGuidedSettings) -> Work:
        work = replace(super().work(schema, settings), records_bytes=0)
        if not settings.critic_share:
            return work
        critic = critic_of_tables(settings, 1 + len(schema.columns)).work(schema)
        memory = max(work.memory_bytes, critic.memory_bytes)
        return replace(
            work, flops=work.flops + critic.flops, steps=work.steps + settings.critic_steps, memory_bytes=memory
        )

    @override
    def train(self, job: Job, settings: TableGuidedSettings) -> AnyGenerator:
        from doublure.methods.guided.refining import refine, with_gradient
        from doublure.methods.statistics.tables.fitting import build_generator, release_and_fit
        from doublure.methods.statistics.tables.group_rows import with_group_view
        from doublure.networks.mixture import MixtureGenerator, MixtureRows

        counted = len(counted_events(job))
        fit = release_and_fit(job.stage("statistics", after=0), settings)
        if settings.critic_share:
            rows = MixtureRows(MixtureGenerator.of(fit.sizes, fit.probabilities, fit.weights))
            refine(
                with_group_view(job.stage("critic", after=counted), fit.tables, len(fit.weights)),
                critic_of_tables(settings, rows.noise_width),
                job.accesses[-1],
                rows,
                weight=settings.anchor,
                distance=lambda moving: with_gradient(moving.mixture.probabilities(), fit.distance),
            )
            fit = replace(fit, probabilities=rows.mixture.probabilities().detach().numpy())
        return build_generator(job, fit)
