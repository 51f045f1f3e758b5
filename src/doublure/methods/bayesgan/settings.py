"""The settings of ``bayesgan``, for the Bayesian accountant and for each kind of data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field
from typing_extensions import override

from doublure.errors import SchemaError, SettingError
from doublure.methods.dpgan.settings import DpganSettings, ImageDpganSettings
from doublure.methods.method import refuse_loose_delta
from doublure.schema import Schema
from doublure.schema.images import LABEL
from doublure.training.classifier_settings import LabellerSettings
from doublure.training.gan_settings import TableAdversarialSettings
from doublure.training.private_gan_settings import Norm, PrivateSettings, Sigma
from doublure.training.settings import LearningRate, RecipeSettings

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

OWN = "doublure"
EPOCHS = "epochs"

_Order: TypeAlias = Annotated[int, Field(ge=1, le=4096)]
_FULL_BATCH_POWER = 0.1
_ORDERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)

_PAPER: dict[str, Any] = {
    "loss": "wgan", "weight_clip": 0.01, "n_critic": 5, "lot_size": 64, EPOCHS: 400,
    "critic_lr": 1e-4, "generator_lr": 1e-4, "activation": "selu", "generator_average": 0.0,
    "channels": (256, 128, 64),  # 4,096 numbers behind the linear layer, of images of 28 x 28
    "clipping": "batch", "max_grad_norm": 0.5, "distances": 8, "conditional": False,
}  # fmt: skip


class BayesianSettings(PrivateSettings, RecipeSettings):
    """Settings of the Bayesian accountant: noise, lots and steps are fixed, and their cost is measured in the run.

    Attributes:
        recipe: The set of defaults for settings that are not given: ours, or the paper's (docs/evidence/methods.md has
            what the paper leaves open, and the values used instead).
        paired: Whether ``wgan`` clips each real record together with a generated one, as the other losses must.
        noise_multiplier: σ, the noise's standard deviation over the sensitivity (C, or 2 C if ``clipping`` is
            ``batch``). None: from the ceiling on ε_μ and ``expected_distance``.
        expected_distance: Expected length of gradient distances, as a share of the sensitivity: a guess from public
            knowledge, by which σ is chosen. With 1 the ceiling holds for any data; with less it may be exceeded.
        clipping: ``record``: each unit's gradient is clipped, which a useful worst case requires; ``batch``: the lot's
            mean is, as in the code published with the paper.
        distances: m, gradient distances sampled in each step.
        bound: The confidence bound on the mean estimated from them: the paper's ``student-t``, a heuristic, or
            ``bernstein``, which holds for any distribution and is seldom below the worst case.
        orders: The λ at which costs are kept; ε_μ is the best over all of them.
        gamma_share: The share of δ_μ for the failure of all steps' confidence bounds together.
        paper_literal: Use equation 5 literally, which is looser.
        worst_case_delta: δ of the worst case, below 1/units. None: a power of ten of at most a tenth of that.
        generator_clip: Bound on the norm of the generator's gradient; None for none. Never needed for privacy.
        generator_noise: Standard deviation of noise on it; never needed for privacy.
    """

    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {OWN: {}}
    beside: ClassVar[frozenset[str]] = frozenset({EPOCHS})

    recipe: str = OWN
    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan"
    paired: bool = False
    expected_distance: float = Field(default=1.0, gt=0, le=1)
    clipping: Literal["record", "batch"] = "record"
    distances: int = Field(default=64, ge=3, le=100_000)
    bound: Literal["student-t", "bernstein"] = "student-t"
    orders: tuple[_Order, ...] = Field(default=_ORDERS, min_length=1, max_length=100)
    gamma_share: float = Field(default=0.1, gt=0, lt=1)
    paper_literal: bool = False
    worst_case_delta: float | None = Field(default=None, gt=0, lt=1)
    generator_clip: float | None = Field(default=None, gt=0)
    generator_noise: float = Field(default=0.0, ge=0)

    @property
    @override
    def offset(self) -> bool:
        return not self.real_alone

    @property
    def real_alone(self) -> bool:
        """Whether real records are clipped and noised without a generated partner, as weight clipping bounds D."""
        return self.loss == "wgan" and not self.paired

    @property
    def special(self) -> dict[str, bool]:
        """Overrides for the settings of a critic's step."""
        return {"paired": not self.real_alone, "per_batch": self.clipping == "batch"}

    @property
    def full_batches(self) -> int:
        """Noisy steps on all records beside the critic's."""
        return 0

    @property
    def full_batch_share(self) -> float:
        """Share of the budget for these steps."""
        return 0.0

    @property
    def full_batch_noise(self) -> float | None:
        """σ of these steps."""
        return None

    @property
    def samples_full_batches(self) -> bool:
        """Whether distances are sampled at these steps too, as at the critic's."""
        return False

    @property
    def sampled_steps(self) -> int:
        """Steps whose distances are sampled."""
        return (self.steps or 1) + (self.full_batches if self.samples_full_batches else 0)

    @property
    def powers(self) -> tuple[int, int]:
        """The powers of the mean of moments at the critic's and at full-batch steps (``Distances.power``).

        If only one of the two is sampled, its power is T, as in the paper. If both are, the few full-batch steps take a
        tenth of the whole: at a lower power the longest distances dominate a step's mean less, and a critic's step
        then has a power that is a ninth higher.
        """
        critic = self.steps or 1
        if not self.samples_full_batches:
            return critic, self.full_batches
        return math.ceil(critic / (1 - _FULL_BATCH_POWER)), math.ceil(self.full_batches / _FULL_BATCH_POWER)

    def with_noise(self, critic: float, full_batch: float | None) -> Self:
        """Return the settings with both σ decided."""
        del full_batch
        return self.model_copy(update={"noise_multiplier": critic})

    @override
    def resolve_defaults(self, schema: Schema, **sizes: Any) -> Self:
        own = super().resolve_defaults(schema, **sizes)
        update: dict[str, Any] = {}
        epochs = self.recipes[self.recipe].get(EPOCHS)
        if self.steps is None and epochs:
            update["steps"] = math.ceil(epochs * schema.public_units / (own.lot_size or 1))
        if self.worst_case_delta is not None:
            refuse_loose_delta(self.worst_case_delta, schema.public_units, field="worst_case_delta")
        else:
            update["worst_case_delta"] = 10.0 ** math.floor(math.log10(0.1 / max(2, schema.public_units)))
        return type(self).model_validate(own.model_dump() | update)


class TableBayesganSettings(TableAdversarialSettings, BayesianSettings):
    """The settings of ``bayesgan`` on tables, where conditions are columns and no annotator is needed."""

    sizes: ClassVar[dict[str, Any]] = DpganSettings.sizes


class ImageBayesganSettings(ImageDpganSettings, BayesianSettings, LabellerSettings):
    """The settings of ``bayesgan`` on images.

    Attributes:
        conditional: Whether the GAN is given labels.
        annotator: Whether a private labeller labels sampled images. None: if there are labels.
        annotator_price: The annotator's cost in ε_μ: its worst case, or by distances sampled at its steps. A gradient
            must then be shorter than ``labeller_clip`` to cost less; none is longer than √2.
        labeller_share: The annotator's share of the budget under Bayesian DP.
        labeller_noise: σ of each of its steps. None: from that share of the ceiling.
    """

    # Standard deviations of the noise on the mean of .01 (MNIST) and .02 (Fashion-MNIST), over 2 C = 1.
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        OWN: {},
        "paper": _PAPER | {"noise_multiplier": 0.01},
        "paper-fashion": _PAPER | {"noise_multiplier": 0.02},
    }

    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan"
    max_grad_norm: Norm = 0.1
    critic_lr: LearningRate = 5e-4
    generator_lr: LearningRate = 5e-4
    generator_batch: int = Field(default=128, ge=1)
    tries: int = Field(default=16, ge=1, le=100)
    accounting: Literal["worst-case"] = "worst-case"
    conditional: bool = False
    annotator: bool | None = None
    annotator_price: Literal["worst-case", "sampled"] = "worst-case"
    labeller_share: float = Field(default=0.5, gt=0, lt=1)
    labeller_noise: Sigma | None = None

    @property
    @override
    def full_batches(self) -> int:
        return self.labeller_steps if self.annotator else 0

    @property
    @override
    def samples_full_batches(self) -> bool:
        return bool(self.annotator) and self.annotator_price == "sampled"

    @property
    @override
    def full_batch_share(self) -> float:
        return self.labeller_share

    @property
    @override
    def full_batch_noise(self) -> float | None:
        return self.labeller_noise

    @override
    def with_noise(self, critic: float, full_batch: float | None) -> Self:
        return self.model_copy(update={"noise_multiplier": critic, "labeller_noise": full_batch})

    @property
    @override
    def sample_noise(self) -> int:
        return self.noise_width * (self.tries if self.annotator else 1)

    @override
    def condition_width(self, encoder: Encoder) -> int:
        return encoder.condition_width if self.conditional else 0

    @override
    def resolve_defaults(self, schema: Schema, **sizes: Any) -> Self:
        own = super().resolve_defaults(schema, **sizes)
        labelled = bool(schema.with_role("condition"))
        if labelled and not own.conditional and own.annotator is False:
            remedy = "leave annotator in, or set conditional=true"
            raise SettingError("leaves images without labels", field="annotator", remedy=remedy)
        if own.annotator and not labelled:
            remedy = "declare a label with the role condition, or leave annotator out"
            raise SchemaError("lacks the role condition, which an annotator needs", field=LABEL, remedy=remedy)
        if own.annotator_price == "sampled" and not (labelled and own.annotator is not False):
            raise SettingError(
                "needs an annotator", field="annotator_price", remedy="leave it out, or set annotator=true"
            )
        return own.model_copy(update={"annotator": labelled if own.annotator is None else own.annotator})
