"""Making bought answers agree with the declared facts, so that no answer is refused after it has been paid for.

Each answer is noisy: learned bounds may miss the zero that a column is declared to have, or leave two columns that an
``at_most`` constraint orders without a common range. Resolving that uses public facts and bought ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doublure.schema.columns import MOST_VALUES, Column
from doublure.schema.fact_states import Learn
from doublure.schema.rules.at_most import order_columns
from doublure.schema.rules.rule import Rule


def agree(
    columns: Mapping[str, Column],
    constraints: Sequence[Rule],
    learned: Mapping[str, Any],
    path_of: Callable[[str], str] = "columns.{}".format,
) -> dict[str, Any]:
    """Return the answers with those conflicts removed.

    =====================================  ===========================================================
    a spike outside the bounds              the bounds are widened to it
    bounds that float64 cannot count       cut off at 2^53 units
    more than 100,000 values               the first ones, which are the most frequent
    ``at_most``, lower bound of the first  the bound of the other that was learned is moved to meet it
    above the upper bound of the second
    =====================================  ===========================================================

    Args:
        columns: The schema's columns, with what is to be learned.
        constraints: The schema's constraints.
        learned: Path of a question -> its answer.
        path_of: Where a column stands in the file.
    """
    answers = dict(learned)
    for name, column in columns.items():
        bounds, values = f"{path_of(name)}.bounds", f"{path_of(name)}.values"
        if bounds in answers:
            answers[bounds] = column.countable(answers[bounds])
        if isinstance(column.fact("values"), Learn) and values in answers:
            answers[values] = tuple(answers[values])[:MOST_VALUES]
    _meet(columns, constraints, answers)
    return answers


def _meet(columns: Mapping[str, Column], constraints: Sequence[Rule], answers: dict[str, Any]) -> None:
    """Raise learned upper bounds, else lower learned lower bounds, until every ordered pair has a common range."""
    chains = order_columns(constraints, columns)
    bounds = {name: answers.get(f"columns.{name}.bounds", columns[name].fact("bounds")) for name, _ in chains}
    under: dict[str, list[str]] = {}
    for name, below in chains:
        under[name] = sorted({low for other in below for low in (other, *under[other])})
        for low in under[name]:
            lowest, highest = bounds[low], bounds[name]
            if not (isinstance(lowest, tuple) and isinstance(highest, tuple)):
                continue
            (floor, top), (bottom, ceiling) = lowest, highest
            if columns[low].number_of(floor) <= columns[name].number_of(ceiling):
                continue
            if f"columns.{name}.bounds" in answers:
                bounds[name] = answers[f"columns.{name}.bounds"] = (bottom, floor)
            elif f"columns.{low}.bounds" in answers:
                bounds[low] = answers[f"columns.{low}.bounds"] = (ceiling, top)
