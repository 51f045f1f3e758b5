"""Default settings of ``statistics`` on images, from public facts.

Two facts decide. The first is the word for pictures in the schema (``images.pictures``). It limits the random warp:
drawings (digits, letters) stay recognisable when tilted, others hardly do. It also says whether everything stands in
the same place, so that a network can learn outlines. The second is the precision of a label's mean: its images over the
noise of all releases, :func:`precision`, from ε, δ, units and labels.

=================  ==========================================================  ========================================
                   drawings                                                    aligned, scenes, photographs, undeclared
=================  ==========================================================  ========================================
always             ``warp=1 sampled_warp=2 sampled_spread=1``; below 30,000    ``warp=0.5 sampled_warp=0.5
                   images ``sampled_warp=1``                                   sampled_spread=1``
with labels                                                                    scenes: ``model=gaussian warp=0
                                                                               sampled_warp=0`` in place of all this
below 1,000        ``fit_steps=2000`` times the precision over 1,000, at       the same
                   least 250; ``batch=400`` or less, by the noise
1,000 and more                                                                 ``fit_steps=4000``
4,000 and more                                                                 ``fit_steps=3000 sampled_spread=1.5``;
                                                                               grey: ``features=16384
                                                                               second_order=0.25 fine_detail=0.5``
4,000, a labeller  ``labeller_share=0.6 labeller_steps=150 view_width=1000``   the same
=================  ==========================================================  ========================================

Images above 32 pixels that are no drawings get ``fit_steps=2000`` from 1,000 on. Images of any type below 16 pixels get
``fine_detail=0.5 warp=0.3 sampled_warp=0.3 sampled_spread=1 fit_steps=500`` in place of all this but the labeller's:
strokes reach their borders, and with so few pixels wavelets do not tell light on dark from dark on light. A labeller
standardises features on ``view_images``: 10,000 from 4,000 on, 4,000 below, and no more than units.

**The simplest model that wins is the default.** A Gaussian for each label needs no training. It teaches classifiers
more than a network wherever things stand in changing places. Where they stand in the same place, a network draws their
outlines and teaches more: of 4,000 images of clothes at ε = 1, 72 % against 56 %.

**Steps and batches follow the noise.** The squared length of the noise in a label's mean is D over the squared
precision, and a generator need not come closer than that. Its distance falls as one over the steps, so steps in
proportion to the precision are cautious. A batch has so many images of a label, 2 n² / D, that its own mean has half
that noise. A fit ends before, once its distance is within its error.

A setting given by the user is kept, and so are the usual values of those that were chosen together with it. The choice
is described in docs/evidence/journal/images.md ("How the settings of guided were chosen").
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from doublure.methods.statistics.images.detail import waves_by_forecast
from doublure.methods.statistics.settings import LEARNED_BY_NETWORKS, ImageStatisticsSettings
from doublure.networks.sizes import LARGEST_SIDE
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.training.classifier_settings import MOST_COMPARED, images_compared
from doublure.training.image_gan_settings import classes_of

S = TypeVar("S", bound=ImageStatisticsSettings)

KNOWN = 1_000
WELL_KNOWN = 4_000
"""Thresholds of :func:`precision`. MNIST has 350 at ε = 0.2, 1,600 at ε = 1 and 11,000 at ε = 10 (δ = 1e-5)."""

SMALL = 16
"""Pixels of the longer side, below which wavelets resolve too little."""

_OF_SMALL: Mapping[str, Any] = {
    "fine_detail": 0.5, "warp": 0.3, "sampled_warp": 0.3, "sampled_spread": 1.0, "fit_steps": 500,
}  # fmt: skip
_LONGER_LOOK: Mapping[str, Any] = {"labeller_share": 0.6, "labeller_steps": 150, "view_width": 1000}
_SHARPER_SIGHT: Mapping[str, Any] = {"features": 16_384, "second_order": 0.25, "fine_detail": 0.5}
_STEPS, _FEWEST_STEPS = 2_000, 250
_BATCH, _SMALLEST_BATCH = 400, 100
_VIEWED, _FEWEST_VIEWED = {True: 10_000, False: 4_000}, 1_000
_OF_GAUSSIANS: Mapping[str, Any] = {"model": "gaussian", "warp": 0.0, "sampled_warp": 0.0, "sampled_spread": 1.0}
_TOGETHER = (frozenset({*_LONGER_LOOK, "view_images"}), frozenset(_SHARPER_SIGHT))
"""Settings that were chosen together: if one is given, the others keep their usual values."""


def precision(schema: Schema, noise_multiplier: float) -> float:
    """Return the mean number of images of a label over the noise's standard deviation."""
    return schema.public_units / max(1, classes_of(schema)) / noise_multiplier


def choose_defaults(schema: Schema, settings: S, noise_multiplier: float) -> S:
    """Return the settings with those chosen that were not given; see the module's table.

    Args:
        schema: The public facts.
        settings: Settings of ``statistics``, or of a method that begins with its releases.
        noise_multiplier: σ of all releases together.
    """
    rule, known = ImageSchema.of(schema).images, precision(schema, noise_multiplier)
    if _by_gaussians(schema, settings):
        chosen = dict(_OF_GAUSSIANS)
    elif max(ImageSchema.of(schema).shape[:2]) < SMALL:
        chosen = dict(_OF_SMALL)
    else:
        chosen = _of_drawings(schema) if rule.pictures == "drawings" else _of_photographs(schema, known)
        if known < KNOWN:
            chosen |= _by_noise(schema, settings, known)
    if known >= WELL_KNOWN:
        chosen |= _LONGER_LOOK
    viewed = _VIEWED[known >= WELL_KNOWN]
    chosen |= {"view_images": min(viewed, max(_FEWEST_VIEWED, schema.public_units))}
    given = settings.model_fields_set
    kept = given.union(*(names for names in _TOGETHER if names & given))
    update = {name: value for name, value in chosen.items() if name in type(settings).model_fields.keys() - kept}
    made = settings.read({**dict(settings), **update})
    if made.model != "gaussian" or made.waves is not None:
        return made
    noise = 1 / precision(schema, noise_multiplier / math.sqrt(made.statistics_share))
    height, width, colours = ImageSchema.of(schema).shape
    return made.model_copy(update={"waves": waves_by_forecast((colours, height, width), noise)})


def _by_gaussians(schema: Schema, settings: ImageStatisticsSettings) -> bool:
    """Whether the default model is a Gaussian, with labels and if no setting says otherwise."""
    given = settings.model_fields_set
    if "model" in given:
        return settings.model == "gaussian"
    return labelled_scenes(schema) and not given & {*LEARNED_BY_NETWORKS, "critic_share"}


def labelled_scenes(schema: Schema) -> bool:
    """Whether a schema describes images with labels that a Gaussian draws by default."""
    rule, (height, width, _) = ImageSchema.of(schema).images, ImageSchema.of(schema).shape
    large = max(height, width) >= SMALL
    return large and rule.pictures != "drawings" and not rule.aligned and classes_of(schema) > 0


def _by_noise(schema: Schema, settings: ImageStatisticsSettings, known: float) -> dict[str, Any]:
    """Return steps and batch of a fit whose target is mostly noise; see the module."""
    batch = round(max(1, classes_of(schema)) * 2 * known**2 / settings.features)
    return {
        "fit_steps": max(_FEWEST_STEPS, round(_STEPS * known / KNOWN)),
        "batch": min(_BATCH, max(_SMALLEST_BATCH, batch)),
    }


def _of_drawings(schema: Schema) -> dict[str, Any]:
    return {"warp": 1.0, "sampled_warp": 2.0 if enough_to_widen(schema) else 1.0, "sampled_spread": 1.0}


def enough_to_widen(schema: Schema) -> bool:
    """Whether there are as many images as show what a wider warp and a labeller teach."""
    return images_compared(schema) == MOST_COMPARED


def _of_photographs(schema: Schema, known: float) -> dict[str, Any]:
    height, width, colours = ImageSchema.of(schema).shape
    chosen: dict[str, Any] = {"warp": 0.5, "sampled_warp": 0.5, "sampled_spread": 1.0}
    if known >= WELL_KNOWN:
        chosen |= {"fit_steps": 3_000, "sampled_spread": 1.5}
        chosen |= _SHARPER_SIGHT if colours == 1 else {}
    elif known >= KNOWN:
        chosen |= {"fit_steps": 4_000}
    return chosen | ({"fit_steps": 2_000} if max(height, width) > LARGEST_SIDE else {})
