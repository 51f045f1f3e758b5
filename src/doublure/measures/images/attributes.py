"""Distances of attributes beside images, and what is left of their associations with the label and the others.

Numbers are in their public groups. Only pairs count that clearly depend on one another in real images.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from doublure.data.images import Images
from doublure.data.images.records import columns_beside
from doublure.encode.attribute_groups import codes_of, groups_of
from doublure.errors import printable
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.counts import CodeCounts, count
from doublure.measures.tables.fidelity import pair_variation, strength
from doublure.measures.tables.relations import RelatedPair, is_clear
from doublure.measures.tables.verdict import say_pair
from doublure.results import percent
from doublure.schema.images import ImageSchema


def attribute_scores(
    schema: ImageSchema, sets: Mapping[str, Images]
) -> tuple[tuple[Score, ...], tuple[Score, ...], tuple[RelatedPair, ...]]:
    """Return the mean total variation of pairs, that of each attribute, and the pairs that depend on one another.

    Args:
        schema: Label and attributes.
        sets: Images of ``value`` (synthetic), ``real`` and ``test`` (other real ones).

    Returns:
        One score of all pairs, beside that of unrelated columns; a score an attribute; the clear pairs, the one that
        loses most first. Nothing without attributes.
    """
    if not schema.attributes:
        return (), (), ()
    names, sizes = [*schema.columns], [groups_of(column) + 1 for column in schema.columns.values()]
    pairs = list(combinations(range(len(names)), 2))
    counts = {}  # the last code, which no cell has, stands for a missing one: being missing has a code of its own here
    for role, images in sets.items():
        beside = columns_beside(images)
        codes = [codes_of(column, beside[name]).astype(np.int64) for name, column in schema.columns.items()]
        counts[role] = count(np.column_stack(codes), sizes, pairs)
    apart = [_unrelated(counts["real"], pair) for pair in pairs]
    found = {role: [pair_variation(counts["real"], counts[role], pair) for pair in pairs] for role in ("value", "test")}
    means = {"value": found["value"], "baseline": apart, "real": found["test"]}
    meaning = "Total variation of each two, numbers in their groups; mean over pairs. The bar: unrelated columns."
    scores = distance_score(
        "attributes", "Label and attributes", {role: float(np.mean(own)) for role, own in means.items()}, meaning
    )
    marginals = tuple(
        distance_score(
            f"attribute {name}",
            name,
            {
                role: _variation(counts["real"].shares(place), counts[other].shares(place))
                for role, other in (("value", "value"), ("real", "test"))
            },
            "Total variation of the attribute, numbers in their groups.",
        )
        for place, name in enumerate(names)
        if name in schema.attributes
    )
    roles = {"real": "real", "synthetic": "value", "holdout": "test"}
    clear = [
        RelatedPair(
            names=(names[pair[0]], names[pair[1]]),
            **{role: round(strength(counts[own], pair), 4) for role, own in roles.items()},
        )
        for pair in pairs
        if is_clear(counts["real"], pair, len(pairs))
    ]
    return (scores,), marginals, tuple(sorted(clear, key=lambda pair: pair.synthetic - pair.real))


def _variation(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    return float(np.abs(one - other).sum() / 2)


def _unrelated(counts: CodeCounts, pair: tuple[int, int]) -> float:
    """Return the total variation of a pair of columns from the same columns without a relation."""
    cells = counts.two[pair]
    found: np.ndarray[Any, Any] = np.zeros((len(counts.one[pair[0]]), cells.width))
    found.flat[cells.keys] = cells.counts / counts.rows
    return _variation(found, np.outer(found.sum(1), found.sum(0)))


def say_attributes(marginals: tuple[Score, ...], associations: tuple[RelatedPair, ...]) -> tuple[list[str], list[str]]:
    """Return sentences on the attribute and the association that are furthest off, and a warning of those lost."""
    if not marginals:
        return [], []
    worst = max(marginals, key=lambda score: (score.value or 0.0) - (score.real or 0.0))
    lines = [
        f"Worst attribute: {printable(worst.name)}, total variation distance (TVD) {percent(worst.value)} (other real "
        f"images: {percent(worst.real)})."
    ]
    if not associations:
        return [*lines, "No label and attribute clearly depend on one another in the real images."], []
    first = associations[0]
    lines.append(f"Worst association: {say_pair(first.names, first.real, first.synthetic, records='images')}.")
    lost = [" × ".join(map(printable, pair.names)) for pair in associations if pair.lost]
    return lines, [f"At least half of the association is lost: {'; '.join(lost)}."] if lost else []
