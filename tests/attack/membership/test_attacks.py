"""Each attacker finds the members of a release that repeats them, and none in one that knows nothing of them."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.attack import registry as table
from doublure.attack.membership import lira
from doublure.attack.membership.results import membership_result
from doublure.attack.membership.scores import DOMIAS, GAN_LEAKS, share_within
from doublure.errors import DataError, SettingError
from doublure.measures.divergence import nearest

BLACK_BOX = ("gan-leaks", "gan-leaks-calibrated", "monte-carlo", "domias")


@pytest.fixture(scope="module")
def found(make_world):
    return {
        honest: {entry.threat_model.attack: entry for entry in table.run(make_world(honest=honest), BLACK_BOX)}
        for honest in (True, False)
    }


@pytest.mark.parametrize("name", BLACK_BOX)
def test_members_of_a_copy_are_found(found, name):
    entry = found[False][name]
    assert "ε" not in entry.measure
    if (
        name == "domias"
    ):  # Scott's width smooths over single copies: fit for a generator that overfits, not one that copies
        assert entry.interval[0] > 0.53
        return
    assert entry.value > 0.8
    assert entry.lower_bound > 0.5
    assert entry.alarm
    assert "MORE THAN IS CLAIMED" in entry.sentence
    assert entry.threat_model.holds[0] == "the released records"


@pytest.mark.parametrize("name", BLACK_BOX)
def test_nobody_is_found_where_nothing_was_learned(found, name):
    entry = found[True][name]
    low, high = entry.interval
    assert low < 0.55
    assert high > 0.45
    assert not entry.alarm
    assert entry.lower_bound < 0.5


def test_what_is_common_is_taken_off_a_density(make_world):
    """A release of the attacker's own records is as dense as they are everywhere: it says nothing of a target."""
    world = make_world(honest=True)
    own = world.reference.content
    seen, _ = domias_scores(make_world(honest=True), world.sample(1000, 0))
    copied, _ = domias_scores(make_world(honest=True), own)
    assert np.abs(copied).max() < 0.5 < np.abs(seen).max()


def domias_scores(world, released):
    from dataclasses import replace

    found = DOMIAS.score(replace(world, sample=lambda n, seed: released))
    return found.inside, found.outside


def test_somebody_who_does_not_look_stands_beside(found):
    for honest in (True, False):
        for entry in found[honest].values():
            assert entry.baseline == pytest.approx(0.5, abs=0.08)
            assert not any("differs from the fitted data" in note for note in entry.notes)


def test_a_holdout_of_another_kind_is_noticed(make_world):
    world = make_world(honest=True)
    scores = np.arange(len(world.seen), dtype=float)
    shifted = world.seen.points.values.copy()
    shifted[:, 0] += 1
    from dataclasses import replace

    points = replace(world.seen.points, values=shifted)
    world = replace(world, seen=replace(world.seen, points=points))
    entry = membership_result(GAN_LEAKS.threat_model, world, scores, scores[: len(world.unseen)])
    assert any("differs from the fitted data" in note for note in entry.notes)


def test_a_holdout_of_another_kind_raises_no_alarm(make_world):
    """What tells both sides apart without a look at the release is no leak of the release."""
    from dataclasses import replace

    world = make_world(honest=True)
    scores = np.linspace(1, 2, len(world.seen))
    assert membership_result(GAN_LEAKS.threat_model, world, scores, scores[: len(world.unseen)] - 5).alarm
    shifted = world.seen.points.values.copy()
    shifted[:, 0] += 1
    elsewhere = replace(world, seen=replace(world.seen, points=replace(world.seen.points, values=shifted)))
    entry = membership_result(GAN_LEAKS.threat_model, elsewhere, scores, scores[: len(world.unseen)] - 5)
    assert not entry.alarm
    assert entry.lower_bound > 0.5
    assert any(note.startswith("No alarm") for note in entry.notes)


def test_a_critic_that_knows_its_records_is_found_out(make_world):
    class WhiteBoxAccess:
        def __init__(self, members):
            self.members = set(members["a"])

        def critic(self, content):
            return np.array([float(value in self.members) for value in content["a"]])

    world = make_world(honest=True)
    (skipped,) = table.run(world, ["critic"])
    assert skipped.skipped == "there is no critic that could be asked"
    assert "not made" in skipped.sentence
    world = make_world(honest=True, white_box=WhiteBoxAccess(world.seen.content))
    (entry,) = table.run(world, ["critic"])
    assert entry.value == 1.0
    assert entry.alarm


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_a_critic_that_diverged_is_not_asked(make_world, score):
    class WhiteBoxAccess:
        critic = staticmethod(lambda content: np.full(len(content), score))

    (entry,) = table.run(make_world(honest=True, white_box=WhiteBoxAccess()), ["critic"])
    assert "diverged" in entry.skipped


@pytest.mark.parametrize("of_network", [True, False])
def test_a_search_of_the_noise_finds_what_can_be_said(make_world, of_network):
    """A generator that says one of the members, whichever the noise is nearest to; or that is drawn from often."""
    first = make_world(honest=True, n=60)
    members = first.seen.points.values

    class WhiteBoxAccess:
        critic = None
        searchable = of_network

        def encoded(self, content):
            return world_points(content), None

        def noise(self, n, rng):
            return rng.standard_normal((n, 2))

        def generated(self, noise, conditions):
            angle = (np.arctan2(noise[:, 0], noise[:, 1]) + np.pi) / (2 * np.pi)
            return members[np.minimum((angle * len(members)).astype(int), len(members) - 1)]

    def world_points(content):
        from doublure.measures.embedding import embed_records

        return embed_records(first.schema, content).values

    # A network's words are searched for; where noise only begins a draw, what is drawn are the members.
    world = make_world(honest=of_network, n=60, white_box=WhiteBoxAccess())
    (entry,) = table.run(world, ["gan-leaks-partial"])
    assert entry.value > 0.95


def test_shadows_teach_what_a_copy_looks_like(make_world, copier):
    world = make_world(honest=False, refit=lambda content, seed: copier(content), shadows=4)
    (entry,) = table.run(world, ["shadow"])
    assert entry.value > 0.9
    honest = make_world(honest=True, refit=lambda content, seed: copier(content), shadows=4)
    (entry,) = table.run(honest, ["shadow"])
    assert abs(entry.value - 0.5) < 0.1


def test_likelihood_ratios_prefer_the_nearer_distribution():
    rng = np.random.default_rng(0)
    inside = rng.random((20, 300)) < 0.5
    known = rng.normal(0, 1, (20, 300)) + 2 * inside
    ratios = lira._ratios(np.repeat([2.0, 0.0], 150), known, inside)
    assert (ratios[:150] > 0).mean() > 0.9
    assert (ratios[150:] < 0).mean() > 0.9


def test_lira_says_why_it_was_not_made(make_world):
    (entry,) = table.run(make_world(honest=True), ["lira"])
    assert entry.skipped == "the run cannot be refitted"
    (entry,) = table.run(make_world(honest=True, refit=lambda content, seed: None), ["lira"])
    assert "labelled images" in entry.skipped


def test_distances_are_measured_once_and_are_the_nearest(make_world, monkeypatch):
    from doublure.attack import attack_data as module

    world, asked = make_world(honest=True, n=60), []
    monkeypatch.setattr(module, "nearest", lambda *of: (asked.append(of[:2]), nearest(*of))[1])
    table.run(world, BLACK_BOX)
    assert len(asked) == 4  # both sides, from the synthetic records and from the attacker's own
    few = world.with_targets(25)
    for points, found in ((world.synthetic, few.to_synthetic), (world.reference.points, few.to_reference)):
        for side, far in zip((few.seen, few.unseen), found, strict=True):
            apart = np.linalg.norm(side.points.values[:, None] - points.values[None], axis=2)
            assert far == pytest.approx(apart.min(axis=1), abs=1e-7)


def test_shares_within_a_radius(make_world):
    world = make_world(honest=True)
    assert share_within(world.seen.points, world.seen, 1e9).tolist() == [1.0] * len(world.seen)
    assert share_within(world.seen.points, world.seen, 0.0).max() == pytest.approx(1 / len(world.seen))


def test_a_unit_counts_once(make_world, attack_schema, rows):
    from doublure.attack.attack_data import make_attack_data

    n = 100
    units = np.repeat(np.arange(n), 2)
    seen, unseen = (rows(2 * n, 1), units), (rows(4 * n, 2), np.repeat(np.arange(2 * n), 2))
    world = make_attack_data(attack_schema, make_world(honest=True).claim, seen, unseen, rows)
    (entry,) = table.run(world, ["gan-leaks"])
    assert (entry.roc.inside, entry.roc.outside) == (n, n)
    assert set(world.unseen.unit).isdisjoint(world.reference.unit)
    assert any("mean over its records" in note for note in entry.notes)


def test_names_and_groups():
    assert table.named(["linkage", "gan-leaks"]) == ("gan-leaks", "singling-out", "linkability", "inference")
    assert set(table.named(["all"])) == set(table.ATTACKS)
    assert not set(table.named(["quick"])) & table.REFITS
    for wrong in (["nothing"], []):
        with pytest.raises(SettingError, match="attack"):
            table.named(wrong)


def test_too_few_records_are_refused(make_world):
    with pytest.raises(DataError, match="too few"):
        make_world(honest=True, n=10)
