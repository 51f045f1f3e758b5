"""The settings of ``statistics``, for each kind of data."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.encode.choice import EncodingChoice
from doublure.networks.sizes import ALL_WAVES, LARGEST_SIDE, WARP_WIDTH, cosine_numbers, shrinking
from doublure.public.rows import PublicRowsPart
from doublure.training.image_gan_settings import Channels
from doublure.training.settings import LearningRate, MethodSettings

_FEWEST_COMPONENTS = 16
_FEWEST_FEATURES = 2
MOST_GROUPS = 128
"""Most combinations of attributes' values in a fit; of more, it uses a sample."""
_ROUNDED = "the operating system's own stream, exact rounded normals"
_OF_CHAINS = {"groups", "levels", "prior", "fit_steps"}
_OF_COPULA = {
    "radius", "memory", "grouped", "level_groups", "common_share", "own_tables", "exact_tables", "calm", "candidates",
    "steepest", "shared_gaps", "cut_noise",
}  # fmt: skip
LEARNED_BY_NETWORKS = frozenset({
    "features", "bandwidths", "second_order", "fine_detail", "fit_steps", "batch", "generator_lr",
    "generator_average", "latent", "hidden",
})  # fmt: skip
"""Settings of images that a Gaussian does not have; before the model is chosen, only the user can have set them."""
_DRAWN_BY_NETWORKS = LEARNED_BY_NETWORKS | {"channels", "enlargement", "doubling"}
_ENLARGED_CHANNELS = (64, 32)
"""Channels of a larger first map with one doubling, which draws straighter faces (docs/evidence/methods.md)."""
FEATURE_SEED = 0
"""Public seed of the features of images."""
TABLE_SHARE, OWN_TABLE_SHARE, GAP_SHARE, CALM_SHARE, LOOK_SHARE = 0.4, 0.27, 0.05, 0.01, 0.1
"""Shares of a copula's budget for trees of each step's values, trees within groups, pairs of present and missing steps,
the contrast of calm and busy stretches, and what series look like as a whole; the rest is for products. Their choice:
docs/evidence/methods.md."""
ATTRIBUTE_SHARE = GAP_SHARE
"""Share of a copula's budget for pairs of attributes, which are counted as pairs of steps are."""
CONSTANT_SHARE = 0.15
"""Share of a series' squared length for the constant and the attributes' values."""
SINGLE_SHARE = 0.1
"""Share of a chain's budget for each step's fine bins and the levels (docs/evidence/methods.md)."""
PERSISTENCE = 0.9
"""Correlation of a value's quantile within its group from one step of a chain to the next."""
_Share: TypeAlias = Annotated[float, Field(ge=0.001, le=0.9)]
_Waves: TypeAlias = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]
_Bandwidth: TypeAlias = Annotated[float, Field(ge=1e-3, le=1e3)]


class StatisticsSettings(MethodSettings):
    """Settings of the released statistics and of the generator's fit."""

    @property
    def statistics_share(self) -> float:
        """The statistics' share of the budget, in 1/σ²."""
        return 1.0

    @property
    @override
    def checkpoint_every(self) -> int:
        return 1


class TableStatisticsSettings(PublicRowsPart, StatisticsSettings):
    """The settings of ``statistics`` on tables; those of public rows beside.

    Attributes:
        within: The column within whose values all others are counted, and that is drawn last; None: the target, or else
            a condition, if it has few declared values, and a target of more where a forecast prefers it; an empty text:
            none.
        groups: Approximate number of a column's groups in pairs; fewer if noise requires it. None: 16, more if units
            are many relative to the noise of a pair.
        focus: Public columns and pairs (``"age & income"``) that matter most. They are counted more often, at the cost
            of others, and a pair is counted at any score.
        target_share: Share of the budget for a count of the target's values alone. None: 0.05, or 0.2 if the target is
            in focus; 0 if its shares are declared or bought.
        pairs: ``"within"``: all pairs are counted, within the values of the column that is drawn last, if cells are few
            enough. ``"beside"``: chosen pairs are, and each column within it. None: what a forecast prefers.
        scored: Number of pairs whose dependence is scored; None: all; in a wide table, as many pairs of near columns as
            noise allows.
        paired: Most pairs to count; None: up to eight a column, fewer if they would be noise.
        seen: Units over the noise of all releases together; filled in by the plan, which forecasts time by it.
        components: Components of the mixture that is fitted to the pairs.
        starts: Number of fits, from different random starts, that share the components; each fits different noise. A
            fit has at least 16 components, if there are so many.
        fit_steps: Most steps of the fit; it ends when the tables are matched as closely as their noise allows.
        prior: Weight of each component's difference from the columns' own shares.
        numerics: Numbers are always counted by value.
        round_values: Whether it is counted how many values of wide columns are round.
        times_of_day: Whether, with them, it is counted how many moments are in each hour of the day.
        identities: Number of candidates for identities between numbers (a + b = c, a = b k) whose rows are counted; one
            that holds is kept by every row. Those that names and bounds propose come first, then those that noisy
            answers allow. None: as many as names and bounds propose and noise can decide; 0: none.
        structure: ``"tree"``: pairs that depend on one another are counted too, and rows are drawn along a tree of
            them. ``"columns"``: each column is counted and drawn by itself. None: what a forecast of error prefers.
    """

    data: ClassVar[str] = "table"
    unsaid: ClassVar[dict[str, Any]] = {
        **PublicRowsPart.unsaid, "round_values": False, "times_of_day": False, "structure": "tree", "target_share": 0.0,
        "pairs": None, "identities": 0,
    }  # fmt: skip

    within: str | None = None
    focus: tuple[str, ...] = ()
    target_share: float | None = Field(default=None, ge=0, le=0.9)
    groups: int | None = Field(default=None, ge=2, le=200)
    pairs: Literal["within", "beside"] | None = None
    scored: int | None = Field(default=None, ge=1)
    paired: int | None = Field(default=None, ge=1)
    seen: float | None = Field(default=None, gt=0)
    components: int = Field(default=256, ge=1, le=10_000)
    starts: int = Field(default=4, ge=1, le=64)
    fit_steps: int = Field(default=1500, ge=1, le=1_000_000)
    prior: float = Field(default=0.3, ge=0, le=1e6)
    numerics: Literal["steps"] = "steps"
    round_values: bool = True
    times_of_day: bool = True
    identities: int | None = Field(default=None, ge=0, le=1000)
    structure: Literal["tree", "columns"] | None = None

    @property
    def fits(self) -> list[int]:
        """Number of components of each fit."""
        count = min(self.starts, max(1, self.components // _FEWEST_COMPONENTS))
        return [self.components // count + (place < self.components % count) for place in range(count)]

    @property
    def noise_source(self) -> str:
        """The exact noise's source."""
        return "exact discrete Gaussian"

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(numerics=self.numerics)


class RelationalStatisticsSettings(TableStatisticsSettings):
    """The settings of ``statistics`` on related tables: those of each stage's table, and the stages' shares.

    Attributes:
        root_share: Share of the budget for the root's row and the number of rows of each child table.
        any_share: Share of the rest for child tables' rows at any place, where they have an order.
        first_share: Share of what is left for first rows; next rows get the remainder. Child tables get equal shares.
        anywhere: Whether rows at any place are counted, and whether a next row is as the one before; what is given in a
            stage is then taken from units drawn by earlier ones. Without it all of it is counted, as in 0.2.0.
    """

    data: ClassVar[str] = "relational"
    unsaid: ClassVar[dict[str, Any]] = {
        **TableStatisticsSettings.unsaid, "anywhere": False, "any_share": 0.2, "target_share": None,
    }  # fmt: skip

    public: Literal[""] = ""
    within: Literal[""] = ""
    focus: tuple[()] = ()
    target_share: None = None
    pairs: None = None
    identities: Literal[0] = 0
    structure: Literal["tree"] = "tree"
    groups: int = Field(default=16, ge=2, le=200)
    root_share: _Share = 0.25
    first_share: _Share = 0.5
    anywhere: bool = True
    any_share: _Share = 0.2

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice()


class VisitsStatisticsSettings(RelationalStatisticsSettings):
    """The settings of ``statistics`` on a table in which a unit has several rows: those of related tables.

    Most of the budget goes to rows at any place, which say how the columns of one row go together.
    """

    data: ClassVar[str] = "visits"

    root_share: _Share = 0.15
    any_share: _Share = 0.5


class ImageStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on images.

    Settings that are not given are chosen by :mod:`doublure.methods.statistics.images.defaults` once the noise is
    known; the values here remain where it chooses none.

    Attributes:
        model: The model of images: a ``network`` that draws them, fitted to the mean of random features; or a
            ``gaussian`` for each label, from products of neighbouring cosine coefficients, to which only ``warp``
            below applies. A Gaussian needs no training, and draws textures and colours in their places, without
            outlines.
        waves: Of a Gaussian: the cosine waves of brightness and of colour along each side that are counted; what is
            finer is left out. None: those of the smallest forecast error
            (:mod:`doublure.methods.statistics.images.detail`); all 32 in plans of earlier versions.
        features: D, numbers released for each label.
        bandwidths: Bandwidths of the features' Gaussian kernels; two images are at most some 2 apart.
        second_order: Share of the features on second-order scattering, for textures; training takes some three times
            as long.
        fine_detail: Share of the features on the pixels themselves, for the place of each line; it hardly takes time.
        fit_steps: Steps of the generator.
        batch: GeneratedCandidates images in a step.
        generator_lr: Learning rate at the start (Adam); it falls along a cosine.
        generator_average: Weight of the past in the moving average of the generator's weights that is released.
        latent: Numbers of noise for an image, beside six for the warp; a Gaussian has one for each of its cosine
            coefficients, and one for contrast.
        warp: Strength of random rotation, scaling and shifts in training and sampling; 1 is up to 12 degrees and an
            eighth of the size, 0 nothing.
        hidden: Units of the generator's first layer.
        channels: Channels of its small map and of each map after a doubling; 64 and 32 by default where images are
            enlarged.
        enlargement: Whole factor of a fixed bicubic interpolation after the generator. None: the factor by which
            features average images down; a plan of an earlier version has none, and does not enlarge.
        doubling: Doubling of maps, by ``transposed`` convolutions, or by ``bilinear`` interpolation and a convolution,
            which leaves no grid. None: ``bilinear`` if images are enlarged (and ``transposed`` in earlier plans).
    """

    data: ClassVar[str] = "images"
    constants: ClassVar[dict[str, Any]] = {"feature_seed": FEATURE_SEED, "noise_source": "os-keyed"}
    unsaid: ClassVar[dict[str, Any]] = {"waves": None}

    model: Literal["network", "gaussian"] = "network"
    waves: tuple[_Waves, _Waves] | None = None
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
        """Number of features on first-order scattering."""
        return self.features - self.second_order_features - self.fine_detail_features

    @property
    def second_order_features(self) -> int:
        """Number of features on second-order scattering."""
        return 2 * round(self.second_order * self.features / 2)

    @property
    def fine_detail_features(self) -> int:
        """Number of features on pixels."""
        return 2 * round(self.fine_detail * self.features / 2)

    @property
    def counted_waves(self) -> tuple[int, int]:
        """The waves of a Gaussian, all where nothing chose them."""
        return self.waves or ALL_WAVES

    @property
    def image_noise(self) -> int:
        """Z, all numbers of noise for one image."""
        return self.latent + WARP_WIDTH

    def enlarged_for(self, shape: tuple[int, int, int]) -> Self:
        """Return the settings with the generator's resolution chosen from the public size of images.

        Args:
            shape: ``(C, H, W)``.
        """
        if self.model == "gaussian":
            return self.model_copy(update={"latent": cosine_numbers(shape, self.counted_waves) + 1, "enlargement": 1})
        enlargement = shrinking(shape) if self.enlargement is None else self.enlargement
        update: dict[str, Any] = {"enlargement": enlargement, "doubling": self.doubling or "transposed"}
        if enlargement > 1:
            update["doubling"] = self.doubling or "bilinear"
            update["channels"] = self.channels if "channels" in self.model_fields_set else _ENLARGED_CHANNELS
        return self.model_copy(update=update)

    @property
    @override
    def quicker(self) -> tuple[str, Self] | None:
        if self.model == "gaussian":
            return None
        return "model=gaussian", self.model_copy(update={"model": "gaussian", "waves": None})

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
        model: ``copula``: normal scores of all steps and channels together; ``chains``: Markov chains over steps, one a
            channel. None: chains if every channel has at most eight values, which normal scores represent badly.
        bins: Most cells of a channel.
        curve: Cells of channels that begin at zero have equal width in this power of the share of the bounds.
        radius: Copula. Norm to which a series' normal scores are clipped, as a share of that of independent scores.
        memory: Expected correlation time of steps, as a share of a series' length.
        grouped: Attributes whose values form groups with moments of their own; None: those with enough units.
        level_groups: Groups by a series' mean score within each of these; None: 4 if units suffice.
        common_share: Share of a series' squared length for the sum over all groups, beside that of its own group; None:
            a half where there are groups. Then the common part has at most √2 times the noise of one group, however
            many there are.
        own_tables: Whether groups have tables of their own; None: if units suffice.
        exact_tables: Whether each step's table is reproduced exactly; None: if its noise is small.
        calm: Whether calm and busy stretches are modelled; None: if their noise is small enough.
        candidates: Series drawn for each that is kept, so that levels, spreads, peaks and runs are as frequent as noisy
            histograms say; 1: these are not released. None: 8.
        steepest: Whether these histograms hold the largest change of each series, too; None: if they tell its tail.
        shared_gaps: Whether channels share gaps as a noisy mean of each two says; None: if it tells one step a series.
        joint_attributes: Whether attributes are counted in pairs and drawn jointly; None: if some form no groups, and
            there are at most 100,000 combinations of values.
        cut_noise: Noise of the share of series on one side of a cut, at one step; filled in by the plan.
        groups: Chains. Most groups of a step's values, beside zero and missing.
        levels: Most groups of the series' levels.
        prior: Weight of a step's difference from all steps, and of an attribute value's from all values.
        fit_steps: Steps of each chain's fit.
        noise_width: Numbers of noise for a series, from its length.
        numerics: Channels are always counted in public bins.
    """

    data: ClassVar[str] = "series"
    constants: ClassVar[dict[str, Any]] = {
        "table_share": TABLE_SHARE, "own_table_share": OWN_TABLE_SHARE, "gap_share": GAP_SHARE,
        "calm_share": CALM_SHARE, "constant_share": CONSTANT_SHARE, "single_share": SINGLE_SHARE,
        "persistence": PERSISTENCE,
    }  # fmt: skip
    unsaid: ClassVar[dict[str, Any]] = {
        "common_share": 0.0,
        "candidates": 1,
        "joint_attributes": False,
        "steepest": False,
        "shared_gaps": False,
    }

    model: Literal["copula", "chains"] | None = None
    bins: int = Field(default=256, ge=2, le=1000)
    curve: float = Field(default=1 / 3, gt=0, le=1)
    radius: float = Field(default=0.45, ge=0.01, le=10)
    memory: float = Field(default=0.25, ge=0.001, le=10)
    grouped: tuple[str, ...] | None = None
    level_groups: int | None = Field(default=None, ge=1, le=16)
    common_share: float | None = Field(default=None, ge=0, lt=1)
    own_tables: bool | None = None
    exact_tables: bool | None = None
    calm: bool | None = None
    joint_attributes: bool | None = None
    candidates: int | None = Field(default=None, ge=1, le=64)
    steepest: bool | None = None
    shared_gaps: bool | None = None
    cut_noise: float | None = Field(default=None, ge=0)
    groups: int = Field(default=18, ge=2, le=100)
    levels: int = Field(default=8, ge=1, le=64)
    prior: float = Field(default=1.0, ge=0, le=1e6)
    fit_steps: int = Field(default=300, ge=1, le=1_000_000)
    noise_width: int = Field(default=0, ge=0)
    numerics: Literal["bins"] = "bins"

    @property
    def noise_source(self) -> str:
        """The exact noise's sources."""
        return "exact discrete Gaussian" if self.model == "chains" else f"{_ROUNDED}; exact discrete Gaussian"

    @property
    @override
    def encoding(self) -> EncodingChoice:
        return EncodingChoice(numerics=self.numerics, bins=self.bins, curve=self.curve, places=self.model != "chains")

    @override
    def shown(self) -> dict[str, Any]:
        other = _OF_CHAINS if self.model == "copula" else _OF_COPULA
        return {name: value for name, value in self.model_dump().items() if name not in other}
