"""The settings of ``latentgan``: the public generator, the inversion, and the model of latents."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator
from typing_extensions import override

from doublure.encode.choice import EncodingChoice
from doublure.encode.columns import Numerics, estimated_width
from doublure.errors import SchemaError, SettingError
from doublure.methods.guided.settings import refuse_tiny_share
from doublure.networks.sizes import detail_noise, generator_work, perceptron_weights
from doublure.private.accounting import GaussianEvent
from doublure.public.part import PublicPart
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.schema.schema import domain_of
from doublure.training.classifier_settings import CheckingSettings
from doublure.training.gan_settings import PerceptronSettings
from doublure.training.image_gan_settings import classes_of
from doublure.training.private_gan_settings import Norm, PrivateSettings, share_event
from doublure.training.settings import Work

FIRST_SHARE = 0.2
"""Share of a mixture's budget, in 1/σ², for the sums that locate the cuts."""
INVERSION_RATE, INVERSION_SEED = 0.1, 0
"""Learning rate of the first step, and public seed of the starts, which are the same for every record."""
_BYTES = 4
_PASSES = 12
_INVERTED, _SUMMED = 256, 2_000  # records at a time: networks.inversion, private.queries.sums
_GUESSED_CLASSES = 10
_STEPS_PROPOSED, _STEPS_ALONE, _RESTARTS_ALONE = 20, 200, 2
_MOST_CLASSES = 256
_DETAIL = 1.2
_LABELLER = 0.5


class LatentSettings(PerceptronSettings, PrivateSettings, PublicPart):
    """Settings of ``latentgan`` on any kind of data.

    Attributes:
        teacher: The training of the generator of latents: ``mixture``: two noisy sums of moments
            (:mod:`doublure.methods.latentgan.moments`); ``critic``, the paper's, by noisy steps.
        noise_width: l, numbers of noise for a latent; 0: half of d. A mixture takes d + 1.
        splits: m, for ``mixture``: each class is cut into 2^m cells; 0: no cuts, and one release.
        inversion_steps: Steps of gradient descent for each record and restart. None: 20 if an encoder proposes the
            start, else 200.
        inversion_restarts: Starts for each record. None: 1 if an encoder proposes it, else 2.
    """

    at_a_time: ClassVar[int]
    """Records in a batch of inversion, sized for a processor's cache; a stop signal waits for one batch."""

    constants: ClassVar[dict[str, Any]] = {
        "first_share": FIRST_SHARE, "inversion_rate": INVERSION_RATE, "inversion_seed": INVERSION_SEED,
        # settings of a former teacher by random features
        "features": 4096, "bandwidths": [1.0, 0.5, 0.25], "feature_seed": 0, "fit_steps": 2000, "batch": 1000,
        "embedding_lr": 2e-3,
    }  # fmt: skip
    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.05, "smallest_lot": 64, "largest_lot": 4096, "steps": 1000}
    penalties: ClassVar[dict[str, float]] = PerceptronSettings.penalties | {"logistic": 0.0}

    teacher: Literal["mixture", "critic"] = "mixture"
    noise_width: int = Field(default=0, ge=0, le=4097)
    inversion_steps: int | None = Field(default=None, ge=0, le=100_000)
    inversion_restarts: int | None = Field(default=None, ge=1, le=100)
    splits: int = Field(default=3, ge=0, le=8)
    max_grad_norm: Norm = 1.0

    # -- defaults ------------------------------------------------------------------------------------------------

    @override
    def resolve_defaults(self, schema: Schema, **sizes: Any) -> Self:
        """Decide settings from the public generator and the public number of units.

        Raises:
            SettingError: There is no public generator, it makes other records, l is not below d, or a mixture was
                given l.
        """
        facts = self.facts
        self._refuse_questions(schema)
        facts.refuse_unfit(schema)
        proposed = facts.encoder_sha256 is not None
        width = self.noise_width or max(1, facts.latent // 2)
        if self.teacher == "mixture":
            width = facts.latent + 1
            if self.noise_width not in (0, width):
                remedy = "leave it out, or set teacher=critic"
                raise SettingError(f"is {width} for a mixture of these latents", field="noise_width", remedy=remedy)
            _classes(schema)
        elif width >= facts.latent > 1:
            remedy = f"give at most {facts.latent - 1}"
            raise SettingError("must be below the public generator's latents", field="noise_width", remedy=remedy)
        steps, restarts = self.inversion_steps, self.inversion_restarts
        if steps == 0 and not proposed:
            raise SettingError("needs an encoder", field="inversion_steps", remedy="take steps, or fit an encoder")
        update = {
            "noise_width": width,
            "inversion_steps": (_STEPS_PROPOSED if proposed else _STEPS_ALONE) if steps is None else steps,
            "inversion_restarts": (1 if proposed else _RESTARTS_ALONE) if restarts is None else restarts,
        }
        return super().resolve_defaults(schema, **sizes).model_copy(update=update)

    def _refuse_questions(self, schema: Schema) -> None:
        """Refuse to buy a fact that would change the form of the public generator's records."""
        for question in schema.questions:
            if question.fact not in ("units", "shares"):
                remedy = "declare it: the public generator was made for known columns"
                raise SchemaError("cannot be learned here", field=question.path, remedy=remedy)

    # -- accesses ------------------------------------------------------------------------------------------------

    @property
    def later_share(self) -> float:
        """Share of the stages after the latents, in 1/σ²."""
        return 0.0

    @property
    @override
    def summary(self) -> str:
        learned = "a private critic (Chen 2021)" if self.teacher == "critic" else "noisy moments (DPMI)"
        checked = ", then a private labeller that checks" if self.later_share else ""
        return f"latents of a public generator, learned by {learned}{checked}"

    @property
    def latent_steps(self) -> int:
        """Noisy steps, or releases, that train the generator of latents."""
        if self.teacher == "critic":
            return self.steps or 1
        return 2 if self.splits else 1

    @property
    def latent_accesses(self) -> int:
        """Number of accesses for these steps or releases."""
        return 1 if self.teacher == "critic" else self.latent_steps

    def latent_events(self, schema: Schema, noise_multiplier: float) -> tuple[GaussianEvent, ...]:
        """Return the events of the training of the generator of latents."""
        share = 1 - self.later_share
        if self.teacher == "critic":
            return (self._critic_event(schema, noise_multiplier, share),)
        if self.splits:
            parts = (FIRST_SHARE * share, (1 - FIRST_SHARE) * share)
            return tuple(share_event(noise_multiplier, part, 1, 1) for part in parts)
        return (share_event(noise_multiplier, share, 1, 1),)

    def _critic_event(self, schema: Schema, noise_multiplier: float, share: float) -> GaussianEvent:
        rate, steps = min(1.0, (self.lot_size or 1) / schema.public_units), self.steps or 1
        if share == 1:
            return GaussianEvent(noise_multiplier=noise_multiplier, sample_rate=rate, steps=steps)
        return share_event(noise_multiplier, share, rate, steps)

    @override
    def work(self, schema: Schema) -> Work:
        records, latent = schema.public_units * schema.unit.max_records, self.latent
        each, drawn, size, classes = self._public_work(schema)
        held = records * (3 * size + 2 * (latent + classes)) + 3 * _BYTES * _INVERTED * drawn
        tries = (self.inversion_steps or 0) * (self.inversion_restarts or 1)
        flops = 2.0 * records * each * (3 * tries + 2)
        generator = perceptron_weights(self.noise_width + classes, self.width, self.depth, latent)
        critic = perceptron_weights(latent + classes, self.critic_width, self.critic_depth, 1)
        lot = (self.lot_size or 1) * schema.unit.max_records
        if self.teacher == "critic":
            flops += 2.0 * (self.steps or 1) * lot * (_PASSES * critic + generator)
            flops += 6.0 * (self.steps or 1) / self.n_critic * self.generator_batch * (critic + generator)
            held += _BYTES * lot * self.critic_width * 8
        else:
            cells = max(1, classes) * 2**self.splits
            flops += 4.0 * records * latent**2 + 50.0 * cells * latent**3
            held += (latent**2 + latent) * _BYTES * (3 * _SUMMED + 10 * cells)
        return Work(flops=flops, steps=self.latent_steps, memory_bytes=held, drawn_bytes=3 * records * size)

    @abstractmethod
    def _public_work(self, schema: Schema) -> tuple[int, int, int, int]:
        """Return the public generator's multiplications and kept numbers a record, a record's bytes, and conditions."""


def _classes(schema: Schema) -> int:
    """Return the number of combinations of condition values; refuse so many that each would have too few records."""
    found = math.prod(len(domain_of(schema, name)) for name in schema.with_role("condition"))
    if found > _MOST_CLASSES:
        remedy = "take the role condition from a column, or use teacher=critic"
        raise SettingError(f"has {found} combinations of condition values", field="teacher mixture", remedy=remedy)
    return found


class TableLatentSettings(LatentSettings):
    """The settings of ``latentgan`` on tables.

    Attributes:
        numerics: The public generator's.
        bins: The public generator's.
    """

    data: ClassVar[str] = "table"
    at_a_time: ClassVar[int] = 256

    numerics: Numerics = "bins"
    bins: int = Field(default=32, ge=2, le=1000)

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(numerics=self.numerics, bins=self.bins)

    @override
    def resolve_defaults(self, schema: Schema, **sizes: Any) -> Self:
        """Decide settings, with the public generator's encoding of rows.

        Raises:
            SettingError: Another encoding was given.
        """
        own = super().resolve_defaults(schema, **sizes)
        networks: Any = own.public_networks
        made = {"numerics": networks.numerics, "bins": networks.bins}
        for name in self.model_fields_set & made.keys():
            if getattr(self, name) != made[name]:
                remedy = f"leave it out, or give a public generator made with {name}={getattr(self, name)}"
                raise SettingError(f"is {made[name]} in the public generator", field=name, remedy=remedy)
        return own.model_copy(update=made)

    @override
    def _public_work(self, schema: Schema) -> tuple[int, int, int, int]:
        networks: Any = self.public_networks
        row = estimated_width(schema, networks.numerics, networks.bins)
        work = perceptron_weights(self.latent, networks.width, networks.depth, row)
        held = 2 * row + networks.width * networks.depth
        return work, held, _BYTES * (len(schema.columns) + 2), _GUESSED_CLASSES


class ImageLatentSettings(LatentSettings, CheckingSettings):
    """The settings of ``latentgan`` on images.

    Attributes:
        labeller_share: Share, in 1/σ², of a private labeller that checks images: 0 leaves it out, else at least 0.01.
            None: 0.5 if there is a label. It is the paper's labelling classifier, inside the budget.
        detail: Largest factor of the public generator's detail in images (:mod:`doublure.networks.detail`), reduced
            until they are no more speckled than the public ones; 0 leaves it out. None: 1.2 if the public generator has
            any.
        sampled_detail: The factor in sampling, if it was changed after the fit; None: ``detail``.
    """

    data: ClassVar[str] = "images"
    at_a_time: ClassVar[int] = 32

    labeller_share: float | None = Field(default=None, ge=0, le=0.98)
    detail: float | None = Field(default=None, ge=0, le=4)
    sampled_detail: float | None = Field(default=None, ge=0, le=4)
    label_margin: float = Field(default=4.0, ge=0, le=100)

    _none_or_some = field_validator("labeller_share")(refuse_tiny_share)

    @property
    @override
    def sampling_only_fields(self) -> frozenset[str]:
        found = ("label_margin",) if self.labeller_share else ()
        return frozenset((*found, "detail") if self.detail else found)

    @override
    def sampling_with(self, changed: Mapping[str, Any]) -> Self:
        """Return the settings with changes to some that only sampling reads.

        The fit's own ``detail`` decides which networks there are, and stays; ``sampled_detail`` takes the new one.
        """
        found = super().sampling_with(changed)
        if "detail" not in changed:
            return found
        return found.model_copy(update={"detail": self.detail, "sampled_detail": found.detail})

    @property
    def strength(self) -> float:
        """Factor of the detail in sampling, before it is reduced."""
        own = self.detail if self.sampled_detail is None else self.sampled_detail
        return own or 0.0

    @property
    @override
    def later_share(self) -> float:
        return self.labeller_share or 0.0

    @property
    @override
    def sample_noise(self) -> int:
        return self.image_noise * (self.tries if self.labeller_share else 1)

    @property
    def image_noise(self) -> int:
        """Numbers of noise for an image: for its latent, and for its detail."""
        return self.noise_width + (detail_noise(self.facts.makes["shape"]) if self.detail else 0)

    @override
    def resolve_defaults(self, schema: Schema, **sizes: Any) -> Self:
        labelled = bool(schema.with_role("condition"))
        if self.labeller_share and not labelled:
            remedy = "declare a label with the role condition, or set labeller_share=0"
            raise SchemaError("lacks the role condition, which a labeller needs", field=LABEL, remedy=remedy)
        usual = _LABELLER if labelled else 0.0
        share = usual if self.labeller_share is None else self.labeller_share
        own = super().resolve_defaults(schema, **sizes)
        has_detail = own.facts.detail_sha256 is not None
        if own.detail and not has_detail:
            remedy = "leave it out, or fit an autoencoder with doublure public fit"
            raise SettingError("the public generator has none", field="detail", remedy=remedy)
        default = _DETAIL if has_detail else 0.0
        detail = default if own.detail is None else own.detail
        return own.model_copy(update={"labeller_share": share, "detail": detail})

    def labeller_event(self, noise_multiplier: float) -> GaussianEvent:
        """Return the event of all steps of the labeller."""
        return share_event(noise_multiplier, self.later_share, 1, self.labeller_steps)

    @override
    def work(self, schema: Schema) -> Work:
        found = super().work(schema)
        if not self.labeller_share:
            return found
        more, held = self.labeller_work(schema, self._public_work(schema)[0])
        return replace(
            found,
            flops=found.flops + more,
            steps=found.steps + self.labeller_steps,
            memory_bytes=found.memory_bytes + held,
        )

    @override
    def _public_work(self, schema: Schema) -> tuple[int, int, int, int]:
        networks: Any = self.public_networks
        height, width, colours = ImageSchema.of(schema).shape
        work, drawn = generator_work((colours, height, width), self.latent, networks.channels)
        return work, drawn, height * width * colours + _BYTES, classes_of(schema)
