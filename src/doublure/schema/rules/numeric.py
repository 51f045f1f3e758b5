"""All rules of a schema on the numbers of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.rules.rule import DerivedColumn, NumericRule, Rule


@dataclass(frozen=True, kw_only=True)
class NumericRules:
    """All rules of a schema, every fact of their columns known.

    Attributes:
        derived: Columns that follow from others, each after its source.
        kept: Rules that the rest must keep.
    """

    derived: tuple[DerivedColumn, ...]
    kept: tuple[NumericRule, ...]

    @classmethod
    def from_rules(cls, rules: Sequence[Rule], columns: Mapping[str, Column]) -> NumericRules:
        """Return some rules on numbers.

        Raises:
            ValueError: A rule has cells that a column does not have; ``message; remedy``.
        """
        derived = {each.name: each for rule in rules for each in rule.derivations(columns)}
        kept = [each for rule in rules for each in rule.numeric(columns, rules)]
        return cls(derived=_in_turn(derived), kept=tuple(sorted(kept, key=lambda rule: rule.joint)))

    @property
    def components(self) -> tuple[frozenset[str], ...]:
        """Columns that rules hold together: no rule joins two of these."""
        found: list[frozenset[str]] = []
        for names in [*({each.name, each.source} for each in self.derived), *(set(rule.names) for rule in self.kept)]:
            joined = frozenset(names).union(*(part for part in found if part & names))
            found = [*(part for part in found if not part & names), joined]
        return tuple(found)


def _in_turn(derived: Mapping[str, DerivedColumn]) -> tuple[DerivedColumn, ...]:
    """Return derived columns, each after its source.

    Raises:
        ValueError: They go round in a circle.
    """
    try:
        turns = TopologicalSorter({name: {each.source} for name, each in derived.items()}).static_order()
        return tuple(derived[name] for name in turns if name in derived)
    except CycleError as error:
        name = printable(error.args[1][0])
        raise ValueError(f"determines goes round in a circle through {name}; take one away") from None
