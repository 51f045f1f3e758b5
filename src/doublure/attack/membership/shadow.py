"""Shadow models: membership inference by a classifier trained on imitations (Shokri et al. 2017; Stadler et al. 2022).

Knowing the synthesizer's plan, and other real records, the attacker fits shadow synthesizers to known records. From
them the attacker learns the traces of a record in a release, and then examines the real release (Groundhog: Stadler,
Oprisanu, Troncoso 2022).
"""

from __future__ import annotations

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel, skip_attack
from doublure.errors import counted
from doublure.measures.divergence import nearest
from doublure.measures.embedding import Points, embed_records
from doublure.support.arrays import Floats
from doublure.support.seeding import to_32_bits

THREAT_MODEL = ThreatModel(
    attack="shadow",
    name="Shadow models",
    family="membership",
    holds=("the released records", "the method and its settings", "other real records of the same kind", "the targets"),
    does="Fits shadow synthesizers to random halves of the other records. Trains a random forest to predict whether a "
    "record was in, from distances and from counts of queries that fit the record.",
    success="The forest gives members higher scores than other real records.",
    shows="What the shadow models show, as far as it also holds for the real run.",
    cannot="What only appears at the real run’s size, if there are fewer other records than were fitted.",
    reference="Shokri et al. 2017; Stadler et al. 2022; queries as in Houssiau et al. 2022 (TAPAS)",
)

_QUERIES = 30
_WIDEST = 4
_NEAR = 0.05
_NEIGHBOURS = (1, 5, 20)
_TREES = 200


def attack(data: AttackData) -> AttackResult:
    """Attack membership by a classifier trained on shadow synthesizers."""
    if data.refit is None:
        return skip_attack(THREAT_MODEL, data.claim, "the run cannot be refitted")
    from sklearn.ensemble import RandomForestClassifier

    rng, own = data.random(4), data.reference
    queries = _queries(own.points, rng)
    data.progress.stage("fit shadows", data.shadows)
    training_sets, answers = [], []
    for number in range(data.shadows):
        inside = own.draw_half(rng)
        shadow = data.refit(own.take(np.flatnonzero(inside)).content, data.seed + 1 + number)
        drawn = embed_records(data.schema, shadow.sample(len(data.released), data.seed), "a shadow's records")
        training_sets.append(features(own, drawn, queries))
        answers.append(inside)
        data.progress.at(number + 1)
    forest = RandomForestClassifier(_TREES, min_samples_leaf=5, random_state=to_32_bits(data.seed))
    forest.fit(np.concatenate(training_sets), np.concatenate(answers))
    scores = (forest.predict_proba(features(side, data.synthetic, queries))[:, 1] for side in (data.seen, data.unseen))
    size = f"{counted(len(own) // 2, 'record')} a shadow"
    return membership_result(
        THREAT_MODEL, data, *scores, notes=(f"{data.shadows} shadows, {size}, {_QUERIES} queries.",)
    )


def features(records: RealRecords, released: Points, queries: list[tuple[str, ...]]) -> Floats:
    """Return ``(N, F)`` features of records against a release: distances, and answers to queries that match them.

    Args:
        records: The records.
        released: The release.
        queries: Each is a set of blocks; its answer is the share of the release that agrees with the record in all of
            them: equal where these are values, within a twentieth of the range where they are numbers.
    """
    k = min(_NEIGHBOURS[-1], len(released))
    far = nearest(released.values, records.points.values, k)[0]
    found = [far[:, min(place, k) - 1] for place in _NEIGHBOURS]
    for names in queries:
        # Records agree if they differ nowhere by more than a bound: corners differ by more, or not at all.
        found.append(np.log1p(_agreeing(records.points.of(*names), released.of(*names), _NEAR)))
    return np.stack(found, axis=1)


def _agreeing(records: Floats, released: Floats, bound: float) -> Floats:
    """Return ``(N,)`` the number of released records that differ by at most the bound in every number."""
    from sklearn.neighbors import KDTree

    tree = KDTree(released, metric="chebyshev")
    return np.asarray(tree.query_radius(records, bound, count_only=True), dtype=np.float64)


def _queries(points: Points, rng: np.random.Generator) -> list[tuple[str, ...]]:
    names = np.array(list(points.blocks))
    widest = min(_WIDEST, len(names))
    drawn = {tuple(sorted(rng.choice(names, rng.integers(1, widest + 1), replace=False))) for _ in range(_QUERIES)}
    return sorted(drawn)
