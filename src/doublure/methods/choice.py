"""``--method auto``: choice of a method from public facts, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sized

from doublure.methods.registry import AUTO as AUTO
from doublure.schema import Schema
from doublure.schema.kinds import ByKind

_CHOSEN = "method auto is "
_WHEREVER = "at every ε measured"
_FEW = 200
"""ε times the images of a label, below which a labeller does not pay. Measured with ten labels: at 100 it costs more
than it gains, at 400 it gains more than it costs (docs/journal/images.md)."""


def method_for(schema: Schema, epsilon: float) -> str:
    """Return the method for a schema and an ε."""
    return _choice(schema, epsilon)[0]


def sentence(schema: Schema, epsilon: float) -> str:
    """Return a plan's sentence about the choice."""
    name, reason = _choice(schema, epsilon)
    return f"{_CHOSEN}{name} here: {reason}"


def is_reason(said: str) -> bool:
    """Whether one of a plan's sentences gives the reason of ``auto``, which is no warning."""
    return said.startswith(_CHOSEN)


def _choice(schema: Schema, epsilon: float) -> tuple[str, str]:
    """Return the method and the reason in words; both follow from the schema and ε alone."""
    return CHOICES[schema.kind](schema, epsilon)


def _of_images(schema: Schema, epsilon: float) -> tuple[str, str]:
    if not schema.with_role("condition"):
        return "statistics", "images are fitted to noisy mean features; without a label there is nothing to check"
    if (each := _of_each_label(schema) * epsilon) < _FEW:
        return (
            "statistics",
            f"images are fitted to noisy mean features; ε times the images of a label is {each:.3g}, and below {_FEW} "
            "a private labeller costs more than it gains",
        )
    return (
        "guided",
        "images are fitted to noisy mean features and checked by a private labeller: the best of the methods where ε "
        f"times the images of a label is {_FEW} or more, and here it is {each:,.0f}",
    )


def _of_each_label(schema: Schema) -> float:
    """Return the mean number of images of a label; all images if the labels are to be bought."""
    values = schema.columns["label"].fact("values")
    return schema.public_units / (len(values) if isinstance(values, Sized) else 1)


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
"""On tables and series one method came first in every measurement. On images one did, unless images are few for their
labels and ε."""
