"""The methods that a plan of a schema may name, and why others are refused: from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

from doublure.access import COVERED
from doublure.errors import DoublureError, SettingError
from doublure.methods import choice, registry
from doublure.methods.method import settings_of
from doublure.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MethodOffer:
    """A method, as it is offered for a schema.

    Attributes:
        name: The name in plans.
        summary: What it is for, in a line.
        refused: Why no plan with an ε can name it; empty where one can.
    """

    name: str
    summary: str
    refused: str = ""


def method_offers(schema: Schema, epsilon: float) -> tuple[MethodOffer, ...]:
    """Return every method, ``auto`` first, with why it is refused; no data is read.

    Args:
        schema: The public facts, every one decided.
        epsilon: The ε for which ``auto`` says what it would take.

    Example:
        >>> from doublure.planning.offers import method_offers
        >>> [each.name for each in method_offers(schema, 1.0) if not each.refused]
        ['auto', 'statistics', 'guided', 'dpgan', 'bayesgan']
    """
    offers = [MethodOffer(name=choice.AUTO, summary=choice.sentence(schema, epsilon))]
    for name in registry.METHODS.names:
        if name != choice.AUTO:
            offers.append(
                MethodOffer(name=name, summary=registry.summary(name, schema.kind), refused=_refused(name, schema))
            )
    return tuple(offers)


def _refused(name: str, schema: Schema) -> str:
    """Return why a method is refused; empty where it is not."""
    method = registry.method(name)
    try:
        settings = settings_of(method, schema.kind, {})
        if method.guarantee not in COVERED:
            raise SettingError("gives no guarantee, so it takes no epsilon", field=name)
        method.resolve_defaults(schema, settings)
    except DoublureError as error:
        return error.message if error.field in (f"method {name}", name) else f"{error.field} {error.message}".strip()
    return ""
