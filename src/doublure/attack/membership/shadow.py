"""The attacker who rehearses (Shokri et al. 2017; Groundhog: Stadler, Oprisanu, Troncoso 2022).

Knowing how the synthesizer was made, and other real records, the attacker makes synthesizers of known records, the
shadows, learns from them what it looks like when a record was in, and then looks at the real one.
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import Records, World
from doublure.attack.membership.results import judged
from doublure.attack.results import AttackResult, Story, skipped
from doublure.encode.columns import Floats
from doublure.measures.divergence import nearest
from doublure.measures.embedding import Points, points_of
from doublure.support.seeding import of_32_bits

STORY = Story(
    attack="shadow",
    name="Shadow models",
    family="membership",
    holds=("the released records", "the method and its settings", "other real records of the same kind", "the targets"),
    does="Fits shadow synthesizers to random halves of the other records. Trains a random forest to predict whether a "
    "record was in, from distances and from counts of queries that fit the record.",
    success="The forest gives members higher scores than other real records.",
    shows="Whatever the shadows show that also holds for the real run.",
    cannot="What only appears at the real run’s size, if there are fewer other records than were fitted.",
    reference="Shokri et al. 2017; Stadler et al. 2022; queries as in Houssiau et al. 2022 (TAPAS)",
)

_QUERIES = 30
_WIDEST = 4
_NEAR = 0.05
_NEIGHBOURS = (1, 5, 20)
_TREES = 200


def attack(world: World) -> AttackResult:
    """Attack membership by a classifier trained on shadow synthesizers."""
    if world.refit is None:
        return skipped(STORY, world.claim, "the run cannot be refitted")
    from sklearn.ensemble import RandomForestClassifier

    rng, own = world.random(4), world.reference
    queries = _queries(own.points, rng)
    units = np.unique(own.unit)
    world.progress.stage("fit shadows", world.shadows)
    lessons, answers = [], []
    for number in range(world.shadows):
        inside = np.isin(own.unit, rng.permutation(units)[: len(units) // 2])
        shadow = world.refit(own.take(np.flatnonzero(inside)).content, world.seed + 1 + number)
        drawn = points_of(world.schema, shadow.sample(len(world.released), world.seed), "a shadow's records")
        lessons.append(features(own, drawn, queries))
        answers.append(inside)
        world.progress.at(number + 1)
    forest = RandomForestClassifier(_TREES, min_samples_leaf=5, random_state=of_32_bits(world.seed))
    forest.fit(np.concatenate(lessons), np.concatenate(answers))
    scores = (
        forest.predict_proba(features(side, world.artificial, queries))[:, 1] for side in (world.seen, world.unseen)
    )
    size = f"{len(own) // 2:,} records a shadow"
    return judged(STORY, world, *scores, notes=(f"{world.shadows} shadows, {size}, {_QUERIES} queries.",))


def features(records: Records, released: Points, queries: list[tuple[str, ...]]) -> Floats:
    """Return ``(N, F)`` what a record looks like beside a release: distances, and answers to queries that fit it.

    Args:
        records: The records.
        released: The release.
        queries: Each asks how much of the release agrees with a record in all of some blocks: equal where these are
            values, within a twentieth of the range where they are numbers.
    """
    k = min(_NEIGHBOURS[-1], len(released))
    far = nearest(released.values, records.points.values, k)[0]
    found = [far[:, min(place, k) - 1] for place in _NEIGHBOURS]
    for names in queries:
        # To agree in all blocks is to differ nowhere by more than a bound: corners differ by more, or not at all.
        found.append(np.log1p(_agreeing(records.points.of(*names), released.of(*names), _NEAR)))
    return np.stack(found, axis=1)


def _agreeing(records: Floats, released: Floats, bound: float) -> Floats:
    """Return ``(N,)`` how many released records differ by at most the bound in every number."""
    from sklearn.neighbors import KDTree

    tree = KDTree(released, metric="chebyshev")
    return np.asarray(tree.query_radius(records, bound, count_only=True), dtype=np.float64)


def _queries(points: Points, rng: np.random.Generator) -> list[tuple[str, ...]]:
    names = np.array(list(points.blocks))
    widest = min(_WIDEST, len(names))
    drawn = {tuple(sorted(rng.choice(names, rng.integers(1, widest + 1), replace=False))) for _ in range(_QUERIES)}
    return sorted(drawn)
