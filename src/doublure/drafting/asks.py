"""Ask for optional entries of a schema that affect quality: a target, conditions and rules.

No plan needs them. They are proposed by names and types alone; a person decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from doublure.drafting.proposals import rules_for
from doublure.errors import printable
from doublure.schema.schema import Schema
from doublure.support import yaml12 as yaml_text


class Ask(NamedTuple):
    """Something to decide.

    Attributes:
        path: Where it would stand.
        message: Why it matters, in a line.
        declare: YAML that says it.
    """

    path: str
    message: str
    declare: str | None


def asks_of(schema: Schema) -> Iterator[Ask]:
    """Yield what a schema of a table leaves open that no plan needs."""
    if not schema.only_columns:
        return
    if schema.target is None:
        told = [name for name, column in schema.columns.items() if column.listed] or list(schema.columns)
        guess = yaml_text.inline(told[-1])
        yield Ask(
            "roles",
            "no column is the target, so no report can say how well models trained on the synthetic rows predict; name "
            f"what is to be predicted, such as {guess}, and add condition where samples are to be asked for its values",
            "roles: [target]",
        )
    together = [frozenset(rule.names) for rule in schema.constraints]
    proposed = 0
    for rule, names in rules_for(schema.columns):
        if not any(set(names) <= known for known in together):
            proposed += 1
            yield Ask("constraints", f"may hold, by the names of {' and '.join(map(printable, names))}", rule)
    if not (schema.constraints or proposed):
        yield Ask(
            "constraints",
            "no rule is declared; what holds in every such table (at_most, equal, implies, determines, sum, "
            "combinations) is kept in every synthetic row, at no cost",
            None,
        )
