"""``--method auto``: choice of a method from public facts, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from doublure.methods.guided.settings import ImageGuidedSettings
from doublure.methods.presets import ChoiceReason
from doublure.methods.registry import AUTO as AUTO
from doublure.private.accounting import Event, GaussianEvent, calibrate
from doublure.schema import Schema
from doublure.schema.kinds import ByKind
from doublure.training.image_gan_settings import label_counts

FELL_BACK = ChoiceReason(
    "accountant rdp composes this plan, as pld cannot; it takes a little more noise for the same epsilon"
)
"""The reason of accountant ``auto``, where it is not ``pld``."""
_WHEREVER = "at every ε measured"
_DELTA = 1e-5
"""The δ at which the noise of a labeller is forecast: the choice follows from ε alone."""


def method_for(schema: Schema, epsilon: float) -> str:
    """Return the method for a schema and an ε."""
    return _choice(schema, epsilon)[0]


def sentence(schema: Schema, epsilon: float) -> ChoiceReason:
    """Return a plan's sentence about the choice."""
    name, reason = _choice(schema, epsilon)
    return ChoiceReason(f"method auto is {name} here: {reason}")


def is_reason(said: str) -> bool:
    """Whether one of a plan's sentences gives the reason of ``auto`` or tells of a preset, which is no warning."""
    return isinstance(said, ChoiceReason)


def _choice(schema: Schema, epsilon: float) -> tuple[str, str]:
    """Return the method and the reason in words; both follow from the schema and ε alone."""
    return CHOICES[schema.kind](schema, epsilon)


def _of_images(schema: Schema, epsilon: float) -> tuple[str, str]:
    if not schema.with_role("condition"):
        return "statistics", "images are fitted to noisy mean features; without a label there is nothing to check"
    known, least = min(label_counts(schema)) / _noise(epsilon), ImageGuidedSettings().least_known
    if known < least:
        return (
            "statistics",
            "images are fitted to noisy mean features; a private labeller would learn more noise than images, as the "
            f"rarest label has {known:,.0f} images to a unit of noise, below {least:,.0f}",
        )
    return (
        "guided",
        "images are fitted to noisy mean features, and a private labeller checks them if a noisy count says that this "
        "teaches more",
    )


@cache
def _noise(epsilon: float) -> float:
    """Return σ of all releases together."""

    def together(noise: float) -> list[Event]:
        return [GaussianEvent(noise_multiplier=noise)]

    return calibrate(together, epsilon=epsilon, delta=_DELTA, accountant="rdp")


CHOICES: ByKind[Callable[[Schema, float], tuple[str, str]]] = ByKind(
    "method that auto would take",
    table=lambda *_: ("statistics", f"a model of noisy tables made the best rows {_WHEREVER}"),
    images=_of_images,
    series=lambda *_: (
        "statistics",
        f"noisy tables and products of all steps and channels made the best series {_WHEREVER}",
    ),
    relational=lambda *_: ("statistics", "no other method takes related tables"),
    visits=lambda *_: ("statistics", "no other method makes rows that belong together"),
)
"""On tables and series one method came first in every measurement. On images one did, but
where a labeller would learn noise; whether it is asked says a priced answer (:mod:`doublure.training.label_check`)."""
