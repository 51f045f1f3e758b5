"""The settings of ``statistics``, for each kind of data."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.encode.choice import EncodingChoice
from doublure.networks.sizes import WARP_WIDTH, cosine_numbers, shrinking
from doublure.training.image_gan_settings import Channels
from doublure.training.settings import LearningRate, MethodSettings

_FEWEST_COMPONENTS = 16
_FEWEST_FEATURES = 2
MOST_GROUPS = 128
"""The most combinations of attributes' values that a fit follows; of more, it follows a sample."""
_ROUNDED = "the operating system's own stream, exact rounded normals"
_OF_CHAINS = {"groups", "levels", "prior", "fit_steps"}
_OF_COPULA = {
    "radius", "memory", "grouped", "level_groups", "own_tables", "exact_tables", "calm", "cut_noise",
}  # fmt: skip
LEARNED_BY_NETWORKS = frozenset({
    "features", "bandwidths", "second_order", "fine_detail", "fit_steps", "batch", "generator_lr",
    "generator_average", "latent", "hidden",
})  # fmt: skip
"""Settings of images that a Gaussian has none of, and that nobody but the user sets before it is chosen."""
_DRAWN_BY_NETWORKS = LEARNED_BY_NETWORKS | {"channels", "enlargement", "doubling"}
_ENLARGED_CHANNELS = (64, 32)
"""A larger small map and one doubling: faces then stand straighter (docs/images.md)."""
FEATURE_SEED = 0
"""Public; fixes the features of images."""
TABLE_SHARE, OWN_TABLE_SHARE, GAP_SHARE, CALM_SHARE = 0.4, 0.27, 0.05, 0.01
"""Of a copula's budget: for trees of each step's values, trees within groups, pairs of steps with and without a value,
and how calm and busy stretches differ; the rest is for products. How they were chosen: docs/methods.md."""
CONSTANT_SHARE = 0.15
"""Of a series' squared length, what tells that it is there, and under which attributes."""
SINGLE_SHARE = 0.1
"""Of a chain's budget, for each step's fine bins and the levels (docs/journal/tables.md)."""
PERSISTENCE = 0.9
"""The correlation from one step of a chain to the next of where a value stands within its group."""
_Share: TypeAlias = Annotated[float, Field(ge=0.001, le=0.9)]
_Bandwidth: TypeAlias = Annotated[float, Field(ge=1e-3, le=1e3)]


class StatisticsSettings(MethodSettings):
    """Which statistics are released, and how a generator learns from them."""

    @property
    @override
    def checkpoint_every(self) -> int:
        return 1


class TableStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on tables.

    Attributes:
        within: The column within whose values every other is counted, and that is drawn last; None: the target, or else
            a condition, if it has few declared values; an empty text: none.
        groups: Into how many groups a column is joined for pairs, about; fewer where noise asks for it. None: 16, more
            where units are many beside the noise of a pair.
        focus: Columns and pairs (``"age & income"``) that matter most, public. They are counted more often than others,
            at the cost of those, and a pair is counted whatever its score.
        scored: How many pairs are scored by how far they are from independence; None: all, of a wide table those of
            columns that stand near one another, as many as their noise lets say something.
        paired: How many pairs are counted at most; None: up to eight a column, fewer where they would be noise.
        seen: Units over the noise of all releases together; filled in by the plan, which forecasts time by it.
        components: Of the mixture that is fitted to the pairs.
        starts: Into how many fits, each from a random start of its own, the components are divided: what one takes of
            the noise for a pattern the others do not. A fit has 16 components at least, if there are so many.
        fit_steps: Steps of the fit at most; it ends when the tables are matched as closely as their noise allows.
        prior: How strongly the fit holds each component to the columns' own shares.
        numerics: Numbers are always counted as they are.
    """

    data: ClassVar[str] = "table"

    within: str | None = None
    focus: tuple[str, ...] = ()
    groups: int | None = Field(default=None, ge=2, le=200)
    scored: int | None = Field(default=None, ge=1)
    paired: int | None = Field(default=None, ge=1)
    seen: float | None = Field(default=None, gt=0)
    components: int = Field(default=256, ge=1, le=10_000)
    starts: int = Field(default=4, ge=1, le=64)
    fit_steps: int = Field(default=1500, ge=1, le=1_000_000)
    prior: float = Field(default=0.3, ge=0, le=1e6)
    numerics: Literal["steps"] = "steps"

    @property
    def fits(self) -> list[int]:
        """How many components each fit has."""
        count = min(self.starts, max(1, self.components // _FEWEST_COMPONENTS))
        return [self.components // count + (place < self.components % count) for place in range(count)]

    @property
    def noise_source(self) -> str:
        """The noise is exact."""
        return "opendp discrete Gaussian"

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(numerics=self.numerics)


class RelationalStatisticsSettings(TableStatisticsSettings):
    """The settings of ``statistics`` on related tables: those of each stage's table, and what each may spend.

    Attributes:
        root_share: The share of the budget for the root's row and how many rows each child table has.
        first_share: What child tables' first rows get of the rest; next rows get what is left. Several child tables
            share alike.
    """

    data: ClassVar[str] = "relational"

    within: Literal[""] = ""
    focus: tuple[()] = ()
    groups: int = Field(default=16, ge=2, le=200)
    root_share: _Share = 0.25
    first_share: _Share = 0.5

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice()


class ImageStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on images.

    Those that are not given are chosen by :mod:`doublure.methods.statistics.images.defaults` once the noise is known;
    the values here are what is left where it chooses none.

    Attributes:
        model: What is learned of images: a ``network`` that draws them, fitted to the mean of random features; or a
            ``gaussian`` for each label, from the products of neighbouring cosine coefficients, which no setting below
            but ``warp`` concerns. It needs no training, and shows where textures and colours are,
            and no outlines.
        features: D, numbers released for each label.
        bandwidths: Of the Gaussian kernels whose features these are; two images are at most some 2 apart.
        second_order: The share of them that sees second-order scattering, and with it textures; learning takes some
            three times as long.
        fine_detail: The share that sees the pixels themselves, and with them where each line stands; it hardly takes
            time.
        fit_steps: Steps of the generator.
        batch: Generated images in a step.
        generator_lr: Learning rate at the start (Adam); it falls along a cosine.
        generator_average: Weight of the past in the moving average of the generator's weights that is released.
        latent: Numbers of noise an image, beside six that say how it is warped; a Gaussian has one for each of its
            cosine coefficients, and one for contrast.
        warp: How strongly images are turned, stretched and shifted at random, while the generator learns and when it is
            sampled; 1 is up to 12 degrees and an eighth of the size, 0 nothing.
        hidden: Units of the generator's first layer.
        channels: Of its small map, and of each map after a doubling; where images are enlarged, 64 and 32 unless said.
        enlargement: By which whole factor a fixed bicubic interpolation enlarges what the generator draws. None: by as
            much as features see images averaged down; a plan of an earlier version has none, and is not enlarged.
        doubling: How maps are doubled: by ``transposed`` convolutions, or ``bilinear`` interpolation and a convolution,
            which leaves no grid. None: ``bilinear`` where images are enlarged (and ``transposed`` in earlier plans).
    """

    data: ClassVar[str] = "images"
    constants: ClassVar[dict[str, Any]] = {"feature_seed": FEATURE_SEED, "noise_source": "os-keyed"}

    model: Literal["network", "gaussian"] = "network"
    features: int = Field(default=4096, ge=2, le=1_000_000, multiple_of=2)
    bandwidths: tuple[_Bandwidth, ...] = Field(default=(0.5, 0.25), min_length=1, max_length=16)
    second_order: float = Field(default=0.0, ge=0, lt=1)
    fine_detail: float = Field(default=0.0, ge=0, lt=1)
    fit_steps: int = Field(default=2000, ge=1, le=10_000_000)
    batch: int = Field(default=400, ge=2)
    generator_lr: LearningRate = 2e-3
    generator_average: float = Field(default=0.99, ge=0, lt=1)
    latent: int = Field(default=16, ge=1, le=4096)
    warp: float = Field(default=1.0, ge=0, le=4)
    hidden: int = Field(default=256, ge=1, le=65_536)
    channels: tuple[Channels, ...] = Field(default=(64, 32, 16), min_length=1, max_length=6)
    enlargement: int | None = Field(default=None, ge=1, le=32)
    doubling: Literal["transposed", "bilinear"] | None = None

    @model_validator(mode="after")
    def _some_features_of_each(self) -> Self:
        for name, number in (("second_order", self.second_order_features), ("fine_detail", self.fine_detail_features)):
            if getattr(self, name) and number < _FEWEST_FEATURES:
                raise ValueError(f"{name} gets no features of its own; set features higher")
        if self.first_order_features < _FEWEST_FEATURES:
            raise ValueError("second_order and fine_detail leave no features of the first order; set one of them lower")
        return self

    @property
    def first_order_features(self) -> int:
        """How many features see first-order scattering."""
        return self.features - self.second_order_features - self.fine_detail_features

    @property
    def second_order_features(self) -> int:
        """How many features see second-order scattering."""
        return 2 * round(self.second_order * self.features / 2)

    @property
    def fine_detail_features(self) -> int:
        """How many features see the pixels."""
        return 2 * round(self.fine_detail * self.features / 2)

    @property
    def image_noise(self) -> int:
        """Z, all numbers of noise that one image is made of."""
        return self.latent + WARP_WIDTH

    def enlarged_for(self, shape: tuple[int, int, int]) -> Self:
        """Return the settings with what the generator draws itself decided from the public size of images.

        Args:
            shape: ``(C, H, W)``.
        """
        if self.model == "gaussian":
            return self.model_copy(update={"latent": cosine_numbers(shape) + 1, "enlargement": 1})
        enlargement = shrinking(shape) if self.enlargement is None else self.enlargement
        update: dict[str, Any] = {"enlargement": enlargement, "doubling": self.doubling or "transposed"}
        if enlargement > 1:
            update["doubling"] = self.doubling or "bilinear"
            update["channels"] = self.channels if "channels" in self.model_fields_set else _ENLARGED_CHANNELS
        return self.model_copy(update=update)

    @property
    def noise_width(self) -> int:
        """Numbers of noise that a sample takes for an image."""
        return self.image_noise

    @override
    def shown(self) -> dict[str, Any]:
        other = _DRAWN_BY_NETWORKS if self.model == "gaussian" else frozenset[str]()
        return {name: value for name, value in super().shown().items() if name not in other}


class SeriesStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on time series.

    Attributes:
        model: ``copula``: normal scores of all steps and channels together; ``chains``: from step to step, channel by
            channel. None: chains where every channel has eight values at most, which no normal score tells apart well.
        bins: The most cells a channel is cut into.
        curve: Cells of channels that begin at zero are of equal width in this power of the share of the bounds.
        radius: Copula. The length that a series' normal scores are clipped to, as a share of what independent ones
            have.
        memory: After which share of a series' length steps are expected to have forgotten one another e-fold.
        grouped: Attributes within whose values everything is asked; None: those for which there are units enough.
        level_groups: Groups by a series' mean score, within each of these; None: 4 where there are units enough.
        own_tables: Whether groups have tables of their own; None: where there are units enough.
        exact_tables: Whether each step's table is given back exactly; None: where its noise is small.
        calm: Whether stretches are calm or busy; None: where that can be seen through its noise.
        cut_noise: The noise of a step's share of series on one side of a cut; filled in by the plan.
        groups: Chains. Into how many groups a step's values are joined, at most; zero and missing are beside them.
        levels: Into how many groups the series' levels are joined, at most.
        prior: How strongly a step is held to all steps, and a value of an attribute to all values.
        fit_steps: Steps of each chain's fit.
        noise_width: Numbers that a series is made of, from its length.
        numerics: Channels are always counted in public bins.
    """

    data: ClassVar[str] = "series"
    constants: ClassVar[dict[str, Any]] = {
        "table_share": TABLE_SHARE, "own_table_share": OWN_TABLE_SHARE, "gap_share": GAP_SHARE,
        "calm_share": CALM_SHARE, "constant_share": CONSTANT_SHARE, "single_share": SINGLE_SHARE,
        "persistence": PERSISTENCE,
    }  # fmt: skip

    model: Literal["copula", "chains"] | None = None
    bins: int = Field(default=256, ge=2, le=1000)
    curve: float = Field(default=1 / 3, gt=0, le=1)
    radius: float = Field(default=0.45, ge=0.01, le=10)
    memory: float = Field(default=0.25, ge=0.001, le=10)
    grouped: tuple[str, ...] | None = None
    level_groups: int | None = Field(default=None, ge=1, le=16)
    own_tables: bool | None = None
    exact_tables: bool | None = None
    calm: bool | None = None
    cut_noise: float | None = Field(default=None, ge=0)
    groups: int = Field(default=18, ge=2, le=100)
    levels: int = Field(default=8, ge=1, le=64)
    prior: float = Field(default=1.0, ge=0, le=1e6)
    fit_steps: int = Field(default=300, ge=1, le=1_000_000)
    noise_width: int = Field(default=0, ge=0)
    numerics: Literal["bins"] = "bins"

    @property
    def noise_source(self) -> str:
        """The noise is exact."""
        return "opendp discrete Gaussian" if self.model == "chains" else f"{_ROUNDED}; opendp discrete Gaussian"

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(numerics=self.numerics, bins=self.bins, curve=self.curve, places=self.model != "chains")

    @override
    def shown(self) -> dict[str, Any]:
        other = _OF_CHAINS if self.model == "copula" else _OF_COPULA
        return {name: value for name, value in self.model_dump().items() if name not in other}
