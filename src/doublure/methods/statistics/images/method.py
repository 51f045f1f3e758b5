"""``statistics`` on images: a generator trained on, or computed from, one noisy mean of fixed features.

No network sees a private image and no public data is needed: the features are wavelets and cosines. The whole release
is some thousand numbers for each label, with the noise of one Gaussian mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from doublure.access import Access
from doublure.errors import printable
from doublure.methods.method import Released
from doublure.methods.statistics.images import attributes
from doublure.methods.statistics.images.defaults import choose_defaults
from doublure.methods.statistics.images.detail import counted_detail, error_by_forecast, in_words, waves_by_forecast
from doublure.methods.statistics.of_kind import StatisticsStrategy
from doublure.methods.statistics.settings import ImageStatisticsSettings
from doublure.networks.sizes import (
    ALL_WAVES,
    DEEP,
    LAST,
    cosine_numbers,
    cosine_pairs,
    fourier_work,
    gaussian_work,
    paths,
    pixels,
    places,
    scattering_work,
    shrinking,
    upsampling_work,
)
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.training.image_gan_settings import classes_of, require_condition
from doublure.training.job import Job
from doublure.training.owned import OwnerTasks
from doublure.training.settings import Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator

S = TypeVar("S", bound=ImageStatisticsSettings)

_AVERAGES = "average the images' features for each label"
_BYTES = 4
_OF_ROOT = 25.0  # operations, times the cube of a side, of a symmetric matrix's root
_FEW_IMAGES = 1_000
_NAMED = 5
_UNREADABLE = "labels can hardly be read off the images"
_MOST_HIDDEN = 0.5
"""Share of what sets labels apart that may be hidden: beyond it images show more of noise than of their label."""


class ImageStatistics(StatisticsStrategy[S]):
    """``statistics`` on images; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        require_condition(schema, attributes=True)
        attributes.refuse_too_many(ImageSchema.of(schema))
        height, width, colours = ImageSchema.of(schema).shape
        return settings.enlarged_for((colours, height, width))

    @override
    def asks_owners(self, schema: Schema, settings: S) -> bool:
        return True

    @override
    def at_owner(self, encoder: Encoder, settings: S) -> OwnerTasks:
        from doublure.encode.image import of_images
        from doublure.methods.statistics.images.mean_embedding import FeatureSum, build_features

        return OwnerTasks(
            summands={
                FeatureSum.name: lambda _: FeatureSum(build_features(encoder, settings), of_images(encoder).labels)
            }
        )

    @override
    def decide_noise(self, schema: Schema, settings: S, noise_multiplier: Callable[[], float]) -> S:
        noise = noise_multiplier() / math.sqrt(1 - attributes.share(ImageSchema.of(schema)))
        return self.resolve_defaults(schema, choose_defaults(schema, settings, noise))

    @override
    def explained(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> tuple[str, ...]:
        images, said = ImageSchema.of(schema).images, []
        if images.pictures is None:
            said.append(
                "Pictures: images.pictures is not declared; declare aligned if everything stands in the same place in "
                "all images, scenes if not, and drawings of digits, letters or sketches, which may stand askew"
            )
        if settings.model == "gaussian":
            said.append(
                "Model: images are drawn by a Gaussian for each label: shades and textures in their places, without "
                "outlines; if things always stand in the same place, as in portraits, model=network draws outlines, "
                "and method latentgan, which takes public pictures of the like, shows more (docs/latent.md)"
            )
        elif images.pictures != "drawings" and not images.aligned:
            said.append(
                "Scenes: things in changing places, such as CIFAR-10's, come out as patches of colour; method "
                "latentgan, which takes public pictures of the like, shows more (docs/latent.md)"
            )
        said += _detail(schema, settings, touches)
        said += [f"Warning: {hidden}" for hidden in _hidden_labels(schema, settings, touches)]
        return (*said, *attributes.explained(ImageSchema.of(schema), touches))

    @override
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        images = ImageSchema.of(schema)
        event = GaussianEvent(noise_multiplier=noise_multiplier / math.sqrt(1 - attributes.share(images)))
        features = Access(purpose=_AVERAGES, event=event, whole=True)
        return (features, *attributes.accesses(images, noise_multiplier))

    @override
    def work(self, schema: Schema, settings: S) -> Work:
        height, width, colours = ImageSchema.of(schema).shape
        shape, records = (colours, height, width), schema.public_units * schema.unit.max_records
        classes = max(1, classes_of(schema))
        steps = sum(getattr(access.event, "steps", 1) for access in self.accesses(schema, settings, 1.0))
        if settings.model == "gaussian":
            size = ImageSchema.of(schema).pixel_bytes
            return _gaussian_work(shape, settings.counted_waves, records, classes, steps, size)
        drawn, kept = drawing_work(schema, settings)
        (waves, matrices), deep = scattering_work(shape, 1), settings.second_order_features
        inputs = colours * places(shape) * (paths(1) + 2)
        frequencies, held = inputs * settings.first_order_features // 2, 6 * inputs
        frequencies += colours * pixels(shape) * settings.fine_detail_features // 2
        if deep:
            more, further = scattering_work(shape, 2)
            deeper = colours * places(shape) * paths(2)
            waves, matrices = waves + more, matrices + further
            frequencies, held = frequencies + deeper * deep // 2, held + 24 * deeper
        seen = waves + frequencies + fourier_work(settings.features)
        # Forwards, and backwards through fixed features once; through a generator also to its weights.
        flops = 2.0 * records * seen + settings.fit_steps * settings.batch * (6.0 * drawn + 4.0 * seen)
        numbers = settings.batch * (4 * settings.features + 3 * kept + held) + matrices
        numbers += 2 * frequencies + 4 * classes * settings.features
        held = 3 * records * (ImageSchema.of(schema).pixel_bytes + 4)
        return Work(
            flops=flops,
            steps=steps,
            free_steps=settings.fit_steps,
            memory_bytes=_BYTES * numbers + held,
            drawn_bytes=held,
        )

    @override
    def noise_limits(
        self, schema: Schema, settings: S, touches: tuple[Access, ...], released: Released
    ) -> tuple[str, ...]:
        pairs = attributes.noisy_pairs(ImageSchema.of(schema), touches)
        if settings.model == "gaussian":  # of which the released answers say more
            return pairs
        return (*_hidden_labels(schema, settings, touches), *pairs)

    @override
    def fitted_limits(self, schema: Schema, settings: S, generator: AnyGenerator) -> tuple[str, ...]:
        if settings.model != "gaussian" or classes_of(schema) < 2:
            return ()
        from doublure.networks.gaussian_images import find_gaussian

        found = find_gaussian(generator)
        if found is None:
            return ()
        height, width, colours = ImageSchema.of(schema).shape
        hidden = 1 - found.known_of_labels * counted_detail((colours, height, width), settings.counted_waves)
        return () if hidden <= _MOST_HIDDEN else (f"{_UNREADABLE}: {_hides(hidden, 'noisy answers')}",)

    @override
    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        del settings
        each = schema.public_units // max(1, classes_of(schema))
        if each < _FEW_IMAGES:
            return (f"some {each} images a label are few for noisy mean features; expect shapes at best",)
        if not (few := _few_by_shares(schema)):
            return ()
        named = ", ".join(f"{printable(name)} some {count}" for name, count in few[:_NAMED])
        more = f" and {len(few) - _NAMED} more" if len(few) > _NAMED else ""
        return (
            f"by their shares labels have few images for noisy mean features: {named}{more}; expect shapes at best, or "
            "join them with others",
        )

    @override
    def limits(self, schema: Schema, settings: S) -> tuple[str, ...]:
        said, (height, width, colours) = attributes.limits(ImageSchema.of(schema)), ImageSchema.of(schema).shape
        shape, factor = (colours, height, width), shrinking((colours, height, width))
        if settings.model == "gaussian":
            if cosine_numbers(shape, settings.counted_waves) == colours * height * width:
                return said
            shown = in_words(shape, settings.counted_waves)
            return (
                f"images of {height} x {width} pixels show what {shown} show: they are drawn so and enlarged",
                *said,
            )
        if factor == 1:
            return said
        shown = f"{height // factor} x {width // factor} pixels"
        return (f"images of {height} x {width} pixels show what {shown} show: they are drawn so and enlarged", *said)

    @override
    def build(self, encoder: Encoder, settings: S, seed: int) -> nn.Module:
        from doublure.methods.statistics.images.mean_embedding import build_generator

        return attributes.with_conditions(build_generator(encoder, settings, seed), encoder)

    @override
    def train(self, job: Job, settings: S) -> nn.Module:
        from doublure.methods.statistics.images.mean_embedding import fit_images
        from doublure.training.noisy_sums import NoisySums

        fit = fit_images(job, settings, NoisySums(job, job.accesses[:1]))
        return attributes.with_conditions(fit.generator, job.encoder, fit.shares, attributes.joint(job, job.encoder))


def _noise_of_means(schema: Schema, touches: tuple[Access, ...]) -> float | None:
    """Return the standard deviation of the noise in a coordinate of a label's mean; None where nothing is priced."""
    event = next((access.event for access in touches if access.purpose == _AVERAGES), None)
    if not isinstance(event, GaussianEvent):
        return None
    return event.noise_multiplier * max(1, classes_of(schema)) / schema.public_units


def _detail(schema: Schema, settings: ImageStatisticsSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a plan's line on the detail that a Gaussian counts, beside what another would cost; nothing for others."""
    noise = _noise_of_means(schema, touches)
    if settings.model != "gaussian" or noise is None:
        return ()
    (height, width, colours), own = ImageSchema.of(schema).shape, settings.counted_waves
    shape = (colours, height, width)
    best = waves_by_forecast(shape, noise)
    other = ALL_WAVES if best == own else best
    hidden, would = (f"{error_by_forecast(shape, waves, noise):.0%}" for waves in (own, other))
    beside = "" if would == hidden else f"; of {in_words(shape, other)} it would hide {would}"
    return (
        f"Detail: each label's mean image is counted in {in_words(shape, own)}; by the forecast noise and missing "
        f"detail hide {hidden} of what sets labels apart{beside}",
    )


def _hidden_labels(schema: Schema, settings: ImageStatisticsSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a limit where the forecast says that noise is more than all that sets labels apart.

    Of a Gaussian it is the forecast of :mod:`doublure.methods.statistics.images.detail`. A network is fitted to mean
    features, whose length is 1 at most: the difference of two labels' is hidden where the noise is as long.
    """
    noise, labels = _noise_of_means(schema, touches), classes_of(schema)
    if noise is None or labels < 2:
        return ()
    height, width, colours = ImageSchema.of(schema).shape
    remedy = "join labels, give more epsilon, or more images"
    if settings.model == "gaussian":
        hidden = error_by_forecast((colours, height, width), settings.counted_waves, noise)
        if hidden <= _MOST_HIDDEN:
            return ()
        return (f"{_UNREADABLE}: {_hides(hidden, 'forecast')}; {remedy}",)
    times = noise * math.sqrt(settings.features)
    if times <= 1:
        return ()
    return (f"{_UNREADABLE}: the noise of a label's mean is {times:.2g} times as long as the longest mean; {remedy}",)


def _hides(hidden: float, source: str) -> str:
    return f"by the {source} noise and missing detail hide {hidden:.0%} of what sets them apart"


def _few_by_shares(schema: Schema) -> list[tuple[str, int]]:
    """Return the labels of few images by declared shares, the fewest first."""
    label = ImageSchema.of(schema).label
    shares = None if label is None else label.shares
    if not isinstance(shares, Mapping):
        return []
    counts = {name: round(share * schema.public_units) for name, share in shares.items()}
    return sorted(((name, count) for name, count in counts.items() if count < _FEW_IMAGES), key=lambda one: one[1])


def _gaussian_work(
    shape: tuple[int, int, int], waves: tuple[int, int], records: int, labels: int, steps: int, size: int
) -> Work:
    """Return the cost of the sums of moments and of the matrix roots computed from them."""
    seen, _, side = gaussian_work(shape, waves)
    blocks, held = 2 * shape[0] * labels, 3 * records * (size + 4)
    numbers = 2 * blocks * side**2 + 4 * labels * (cosine_pairs(shape, waves) + cosine_numbers(shape, waves))
    return Work(
        flops=2.0 * records * seen + _OF_ROOT * blocks * side**3,
        steps=steps,
        memory_bytes=_BYTES * numbers + held,
        drawn_bytes=held,
    )


def drawing_work(schema: Schema, settings: ImageStatisticsSettings) -> tuple[int, int]:
    """Return the generator's multiplications for one image, and the numbers kept for its gradient."""
    height, width, colours = ImageSchema.of(schema).shape
    shape = (colours, height, width)
    if settings.model == "gaussian":
        return gaussian_work(shape, settings.counted_waves)[1], cosine_numbers(shape, settings.counted_waves)
    inputs = settings.latent + max(1, classes_of(schema))
    kernel = LAST if settings.doubling == "bilinear" else DEEP
    return upsampling_work(shape, inputs, settings.hidden, settings.channels, settings.enlargement or 1, kernel)
