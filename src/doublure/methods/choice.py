"""``--method auto``: which method, from public facts only, and why."""

from __future__ import annotations

from doublure.schema import Schema

AUTO = "auto"

_WHEREVER = "at every ε measured"


def method_for(schema: Schema) -> str:
    """Return the method for a schema."""
    return _choice(schema)[0]


def sentence(schema: Schema) -> str:
    """Return what a plan says about the choice."""
    name, reason = _choice(schema)
    return f"method auto is {name} here: {reason}"


def _choice(schema: Schema) -> tuple[str, str]:
    """Return the method and the reason in words; both follow from the schema alone.

    At every ε that was measured the same method came first (docs/results.md), so that ε does not enter. Nor does the
    number of units: no measurement says yet where it should, and a plan warns where noise hides nearly everything.
    """
    if schema.kind == "series":
        return "statistics", f"noisy tables of neighbouring steps have taught the best series {_WHEREVER}"
    if schema.kind != "images":
        return "statistics", f"noisy tables have taught the best rows {_WHEREVER}"
    if schema.with_role("condition"):
        return (
            "guided",
            f"noisy mean features teach the images and a private labeller checks them, the best {_WHEREVER}",
        )
    return "statistics", "noisy mean features teach the images; without a label there is nothing to check"
