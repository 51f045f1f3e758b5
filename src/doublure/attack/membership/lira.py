"""LiRA: membership inference from a classifier's confidence with and without the target (Carlini et al. 2022).

The papers' classifier is trained on synthetic records. Synthesizers are fitted many times with each target and without
it, and a classifier is trained on the sample of each. The classifiers' confidence in the target gives two normal
distributions. The score is the likelihood ratio of the two for the real synthesizer's classifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from doublure.attack.attack_data import AttackData, RealRecords
from doublure.attack.membership.results import membership_result
from doublure.attack.results import AttackResult, ThreatModel, skip_attack
from doublure.data.records import joined, taken
from doublure.schema.images import LABEL, ImageSchema
from doublure.support.arrays import Floats

THREAT_MODEL = ThreatModel(
    attack="lira",
    name="Confidence of a downstream classifier",
    family="membership",
    holds=("the released records", "the method and its settings", "real records, among them the targets"),
    does="Fits synthesizers to random halves of all real records and trains the papers’ classifier on each. Compares "
    "the attacked classifier’s confidence in a target with that of classifiers with and without the target.",
    success="The likelihood ratio is higher for members.",
    shows="What a model reveals that was trained on synthetic records alone.",
    cannot="What more fits would show: a target’s two distributions rest on half of the fits each.",
    reference="Carlini et al. 2022 (LiRA), on the classifier of Triastcyn & Faltings 2019, §5.1",
)

_TINY = 1e-7
_FEWEST = 4


def attack(data: AttackData) -> AttackResult:
    """Attack membership by likelihood ratios of a classifier's confidence."""
    if data.refit is None:
        return skip_attack(THREAT_MODEL, data.claim, "the run cannot be refitted")
    if data.labelled_images is None:
        return skip_attack(THREAT_MODEL, data.claim, "the papers’ classifier needs labelled images")
    if data.shadows < _FEWEST:
        return skip_attack(THREAT_MODEL, data.claim, f"fewer than {_FEWEST} fits were allowed")
    rng = data.random(5)
    targets = [data.seen, data.unseen]
    others = data.reference.content
    known: list[list[Floats]] = [[], []]
    inside: list[list[np.ndarray[Any, Any]]] = [[], []]
    data.progress.stage("fit shadows", data.shadows)
    for number in range(data.shadows):
        drawn = [side.draw_half(rng) for side in targets]
        parts = [taken(side.content, np.flatnonzero(rows)) for side, rows in zip(targets, drawn, strict=True)]
        shadow = data.refit(joined([*parts, others]), data.seed + 101 + number)
        training = shadow.sample(len(data.released), data.seed)
        for place, sure in enumerate(_sure(data, training, targets)):
            known[place].append(sure)
            inside[place].append(drawn[place])
        data.progress.at(number + 1)
    seen = _sure(data, data.released, targets)
    scores = (_ratios(seen[place], np.stack(known[place]), np.stack(inside[place])) for place in range(len(targets)))
    return membership_result(THREAT_MODEL, data, *scores, notes=(f"{data.shadows} fits; one spread for all targets.",))


def _sure(data: AttackData, training: Any, targets: list[RealRecords]) -> list[Floats]:
    """Return for each side ``(N,)`` the log odds that a classifier gives each record's true class."""
    from doublure.measures.images.classifiers import predict_each
    from doublure.measures.images.feature_extractors import encode_labels

    schema = ImageSchema.of(data.schema)
    sides, labels = [side.content for side in targets], schema.columns[LABEL].domain
    chances = predict_each("cnn", training, encode_labels(schema, training), sides, len(labels), data.seed)
    return [_log_odds(each, encode_labels(schema, side)) for each, side in zip(chances, sides, strict=True)]


def _log_odds(chances: Floats, codes: np.ndarray[Any, Any]) -> Floats:
    own = np.clip(chances[np.arange(len(codes)), codes], _TINY, 1 - _TINY)
    return np.asarray(np.log(own) - np.log1p(-own))


def _ratios(seen: Floats, known: Floats, inside: np.ndarray[Any, Any]) -> Floats:
    """Return ``(N,)`` log likelihood ratios.

    Args:
        seen: ``(N,)`` log odds from the real synthesizer's classifier.
        known: ``(K, N)`` log odds from the shadows' classifiers.
        inside: ``(K, N)`` whether each shadow was fitted on the record.
    """
    means, spreads = [], []
    for rows in (inside, ~inside):
        count = np.maximum(rows.sum(axis=0), 1)
        mean = np.where(rows, known, 0.0).sum(axis=0) / count
        overall = float(np.where(rows, known, 0.0).sum() / max(1, rows.sum()))
        mean = np.where(rows.any(axis=0), mean, overall)
        means.append(mean)
        spreads.append(float(np.sqrt(np.where(rows, np.square(known - mean), 0.0).sum() / max(1, rows.sum()))) + _TINY)
    logs = [
        -np.square((seen - mean) / spread) / 2 - np.log(spread) for mean, spread in zip(means, spreads, strict=True)
    ]
    return np.asarray(logs[0] - logs[1], dtype=np.float64)
