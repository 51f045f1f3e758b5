"""Default settings of ``statistics`` on images, from public facts.

Two facts decide. The first is the type of pictures in the schema (``images.pictures``), which limits the random warp:
drawings (digits, letters) stay recognisable when tilted; photographs, and pictures of undeclared type, hardly do. The
second is the precision of a label's mean: its images over the noise of all releases, :func:`precision`, from ε, δ,
units and labels.

=================  ==========================================================  ========================================
                   drawings                                                    photographs, or undeclared
=================  ==========================================================  ========================================
always             ``warp=1 sampled_warp=2 sampled_spread=1``                  ``warp=0.5 sampled_warp=0.5
                                                                               sampled_spread=1``
1,000 and more                                                                 ``fit_steps=4000``; coloured, with
                                                                               labels: ``model=gaussian warp=0
                                                                               sampled_warp=0`` in place of all this
4,000 and more                                                                 ``fit_steps=3000 sampled_spread=1.5``;
                                                                               grey: ``features=16384
                                                                               second_order=0.25 fine_detail=0.5``
4,000, a labeller  ``labeller_share=0.6 labeller_steps=150 view_width=1000``   the same
=================  ==========================================================  ========================================

Photographs above 32 pixels get ``fit_steps=2000``. Images of any type below 16 pixels get
``fine_detail=0.5 warp=0.3 sampled_warp=0.3 sampled_spread=1 fit_steps=500`` in place of all this but the labeller's:
strokes reach their borders, and with so few pixels wavelets do not tell light on dark from dark on light.

A setting given by the user is kept, and so are the usual values of those that were chosen together with it. The choice
is described in docs/journal/images.md ("How the settings of guided were chosen").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from doublure.methods.statistics.settings import LEARNED_BY_NETWORKS, ImageStatisticsSettings
from doublure.networks.sizes import LARGEST_SIDE
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
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
_OF_DRAWINGS: Mapping[str, Any] = {"warp": 1.0, "sampled_warp": 2.0, "sampled_spread": 1.0}
_LONGER_LOOK: Mapping[str, Any] = {"labeller_share": 0.6, "labeller_steps": 150, "view_width": 1000}
_SHARPER_SIGHT: Mapping[str, Any] = {"features": 16_384, "second_order": 0.25, "fine_detail": 0.5}
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
    if _by_gaussians(schema, settings, known):
        chosen = dict(_OF_GAUSSIANS)
    elif max(ImageSchema.of(schema).shape[:2]) < SMALL:
        chosen = dict(_OF_SMALL)
    else:
        chosen = dict(_OF_DRAWINGS) if rule.pictures == "drawings" else _of_photographs(schema, known)
    if known >= WELL_KNOWN:
        chosen |= _LONGER_LOOK
    given = settings.model_fields_set
    kept = given.union(*(names for names in _TOGETHER if names & given))
    update = {name: value for name, value in chosen.items() if name in type(settings).model_fields.keys() - kept}
    return settings.read({**dict(settings), **update})


def _by_gaussians(schema: Schema, settings: ImageStatisticsSettings, known: float) -> bool:
    """Whether the default model is a Gaussian: for coloured photographs with labels, if no setting says otherwise."""
    given = settings.model_fields_set
    if "model" in given:
        return settings.model == "gaussian"
    height, width, colours = ImageSchema.of(schema).shape
    coloured = ImageSchema.of(schema).images.pictures != "drawings" and colours > 1 and max(height, width) >= SMALL
    return coloured and classes_of(schema) > 0 and known >= KNOWN and not given & {*LEARNED_BY_NETWORKS, "critic_share"}


def _of_photographs(schema: Schema, known: float) -> dict[str, Any]:
    height, width, colours = ImageSchema.of(schema).shape
    chosen: dict[str, Any] = {"warp": 0.5, "sampled_warp": 0.5, "sampled_spread": 1.0}
    if known >= WELL_KNOWN:
        chosen |= {"fit_steps": 3_000, "sampled_spread": 1.5}
        chosen |= _SHARPER_SIGHT if colours == 1 else {}
    elif known >= KNOWN:
        chosen |= {"fit_steps": 4_000}
    return chosen | ({"fit_steps": 2_000} if max(height, width) > LARGEST_SIDE else {})
