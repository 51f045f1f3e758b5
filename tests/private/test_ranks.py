"""Several ranks are one mechanism: the sums of one process, noise once, and an end where one is not with the others."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from critic_steps import Critic, people
from keyed import Keyed
from rank_links import on_ranks
from replay_noise import ReplayNoise

from doublure.access import Access
from doublure.auditing.trainer import audit_trainer
from doublure.errors import DataError, InputError, NotAsPriced, RankLost, SettingError
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.private.clipping import ConstantSchedule
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.axes import Axis
from doublure.private.queries.counts import Counts
from doublure.private.queries.dependence import Dependence
from doublure.private.queries.lot_gradients import CriticSettings
from doublure.private.queries.query import query_digest
from doublure.private.queries.sums import BoundedSums
from doublure.private.ranks import FollowerContext, LeaderContext, LocalContext, rank_of_units
from doublure.private.records import PrivateRecords
from doublure.support.ranks import Follower, Leader, RunEnded

ROWS = np.random.default_rng(3).integers(0, [3, 40], size=(500, 2)).astype(np.float64)
TABLES = [(Axis.of_codes(0, 3),), (Axis.of_codes(0, 3), Axis.of_codes(1, 40))]
COUNTS = Counts(tables=TABLES, max_records=2)
EXPECTED = [np.full([axis.size for axis in table], 10, dtype=np.int64) for table in TABLES]
QUERIES = {"counts": COUNTS, "scores": Dependence(tables=TABLES, expected=EXPECTED, max_records=2)}
COUNT = Access(purpose="count", event=DiscreteGaussianEvent(scale=10.0, tables=2, records=2))
TRAIN = Access(purpose="train the critic", event=GaussianEvent(noise_multiplier=1.5, sample_rate=0.4, steps=4))
SUM = Access(purpose="sum up", event=GaussianEvent(noise_multiplier=1.5, sample_rate=1.0, steps=2))


def held(rows=ROWS, unit=None):
    unit = np.arange(len(rows)) // 2 if unit is None else unit
    return PrivateRecords(torch.from_numpy(rows), unit, len(set(unit)), lambda some: (some.float(), None))


def together(program, *, records=None, size=2, authorised=None, noise=None, accesses=(COUNT,), other=None):
    """Run one program on all ranks; return what it gives rank 0."""
    records = held() if records is None else records
    for_tests = noise is not None

    def run(ranks, authorise, act):
        mechanism = ranks.mechanism(
            accesses, noise=noise or OsKeyedNoise(), authorise=authorise, allow_test_noise=for_tests
        )
        return act(mechanism, ranks.assigned(records, records.fingerprint), ranks)

    asked = [] if authorised is None else authorised
    pays = lambda access, step: asked.append(step)  # noqa: E731
    if size == 1:
        return run(LocalContext(), pays, program)

    def first(link):
        leader = Leader(link)
        try:
            return run(LeaderContext(leader, size), pays, program)
        finally:
            leader.end()

    def another(link):
        follower = Follower(link)

        def nobody(access, step):
            raise AssertionError("only rank 0 pays")

        try:
            run(FollowerContext(follower), nobody, other or program)
        except RunEnded:
            pass
        except (InputError, NotAsPriced) as error:
            follower.fail(error)

    return on_ranks(first, another, size=size)


# -- units are dealt whole -------------------------------------------------------------------------------------------


def test_a_unit_is_with_one_rank_by_the_key_and_its_number_alone():
    dealt = rank_of_units(7, 10_000, 3)
    assert np.bincount(dealt).tolist() == pytest.approx([3333] * 3, rel=0.06)
    assert rank_of_units(7, 9_999, 3).tolist() == dealt[:-1].tolist()  # one unit more moves nobody else
    assert (rank_of_units(8, 10_000, 3) != dealt).mean() == pytest.approx(2 / 3, rel=0.06)
    assert rank_of_units(7, 0, 3).tolist() == []


def test_ranks_hold_all_units_once_each_with_all_of_its_records():
    unit = np.random.default_rng(1).integers(0, 60, 500)
    records = held(ROWS, np.unique(unit, return_inverse=True)[1])
    ranks = rank_of_units(3, records.n_units, 4)
    parts = [records.of_units(ranks == rank) for rank in range(4)]
    assert sum(part.n_units for part in parts) == records.n_units
    assert max(part.most_records for part in parts) == records.most_records
    rows = [tuple(row) for part in parts for chunk in part.chunks(999) for row in chunk.tolist()]
    assert sorted(rows) == sorted(map(tuple, ROWS.tolist()))
    for part, rank in zip(parts, range(4), strict=True):
        sizes = np.diff(part._first).tolist()
        assert sizes == np.diff(records._first)[ranks == rank].tolist()


def test_the_key_is_fresh_in_every_session():
    dealt = []
    for _ in range(2):
        together(lambda mechanism, own, ranks: dealt.append(own.fingerprint), other=lambda *_: None)
    assert dealt[0] != dealt[1]


def test_ranks_that_read_other_records_are_refused():
    def first(link):
        return LeaderContext(Leader(link), 2).assigned(held(), held().fingerprint)

    def other(link):
        FollowerContext(Follower(link)).assigned(held(ROWS[::-1].copy()), held(ROWS[::-1].copy()).fingerprint)

    with pytest.raises(DataError, match="not the same on all ranks"):
        on_ranks(first, other)
    with pytest.raises(DataError, match="too many"):
        on_ranks(lambda link: LeaderContext(Leader(link), 2).assigned(held(), ""), lambda link: None)


# -- sums of one process ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_counts_are_those_of_one_process_to_the_last_bit(monkeypatch, name, size):
    found = []
    for ranks in (1, size):
        keyed = Keyed()
        with monkeypatch.context() as patch:
            keyed.install(patch)
            found.append(together(lambda m, own, _: m.release(QUERIES[name], COUNT, own), size=ranks))
    assert found[0].tolist() == found[1].tolist()
    assert np.abs(found[0]).sum() > 0


def test_grid_sums_are_those_of_one_process_to_the_last_bit():
    query = BoundedSums(
        factors=lambda body, _: ((body[:, :1] == torch.arange(3)).float(), torch.sin(body * 1.7)),
        shape=(3, 2), max_records=2,
    )  # fmt: skip
    exact = [query.answer(held(), sample_rate=1.0).total.tolist()]
    for size in (1, 2, 3):
        noise = ReplayNoise([np.random.default_rng(1).normal(size=6)])

        def program(mechanism, own, ranks):
            return mechanism.release(query, SUM, own)

        noisy = together(program, size=size, noise=noise, accesses=(SUM,))
        exact.append(noisy.tolist())
        assert noise.asked == [(6, pytest.approx(3.0))]
    assert exact[1] == exact[2] == exact[3]
    assert np.abs(np.array(exact[0]) * query.unit).max() > 10


def critic_settings(**changes):
    given = {
        "loss": CriticLoss(kind="wgan", gradient_penalty=1.0), "schedule": ConstantSchedule(max_grad_norm=0.5),
        "expected_units": 4.0, "n_critic": 1,
    }  # fmt: skip
    return CriticSettings(**(given | changes))


def trained(mechanism, own, settings=None, steps=4):
    """Return a critic's noisy gradients, which move it."""
    critic, found = Critic(), []
    step = CriticSteps(mechanism, TRAIN, own, settings or critic_settings())
    draw = torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
    for _ in range(steps):
        gradient = step.gradient(critic, lambda size, _: step._query._draws.normal(size, 3) @ draw)
        found.append(gradient.numpy().copy())
        with torch.no_grad():
            first = 0
            for parameter in critic.parameters():
                parameter -= 0.1 * gradient[first : first + parameter.numel()].view_as(parameter)
                first += parameter.numel()
    return np.stack(found)


@pytest.mark.parametrize("several", [False, True])
def test_gradients_are_those_of_one_process_given_equal_coins_pairing_and_noise(monkeypatch, several):
    unit = np.arange(40) // 2 if several else np.arange(40)
    body = people(40)
    found = []
    for size in (1, 2, 3):
        keyed = Keyed()
        with monkeypatch.context() as patch:
            keyed.install(patch)
            records = PrivateRecords(body, unit, int(unit.max()) + 1, lambda rows: (rows, None))
            found.append(together(lambda m, own, _: trained(m, own), records=records, size=size, accesses=(TRAIN,)))
        assert len(keyed.drawn) == 4
    scale = np.abs(found[0]).max()
    for other in found[1:]:
        assert np.abs(other - found[0]).max() <= 1e-6 * scale
    assert not np.array_equal(found[0][0], found[0][1])


# -- one coordinator -------------------------------------------------------------------------------------------------


def test_rank_0_pays_once_all_have_answered_and_adds_noise_once(monkeypatch):
    acts, honest = [], OsKeyedNoise.normal
    monkeypatch.setattr(OsKeyedNoise, "normal", lambda own, size, std: acts.append("noise") or honest(own, size, std))
    from doublure.private.queries.lot_gradients import CriticGradients

    answered = CriticGradients.answer
    monkeypatch.setattr(CriticGradients, "answer", lambda own, *a, **k: acts.append("answer") or answered(own, *a, **k))

    class Paid(list):
        def append(self, step):
            acts.append(f"paid {step}")

    together(lambda m, own, _: trained(m, own), authorised=Paid(), size=3, accesses=(TRAIN,), records=of_people())
    assert acts == [act for step in range(1, 5) for act in (*["answer"] * 3, f"paid {step}", "noise")]


def of_people(units=40):
    return PrivateRecords(people(units), np.arange(units), units, lambda rows: (rows, None))


def test_ranks_go_on_with_the_same_noisy_sums():
    seen = []

    def program(mechanism, own, ranks):
        seen.append(trained(mechanism, own).tobytes())

    together(program, size=3, accesses=(TRAIN,), records=of_people())
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_each_rank_draws_its_own_coins_and_pairs():
    """Equal records on both ranks, and equal seeds: other lots, other partners (rule 8)."""
    from doublure.private.sampling import PoissonSampler

    lots, partners = [], []
    honest = PoissonSampler.lot

    def program(mechanism, own, ranks):
        settings = critic_settings()
        step = CriticSteps(mechanism, TRAIN, of_people(4096), settings)
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002

        def partner(size, condition):
            drawn = step._query._draws.normal(size, 3)
            partners.append(drawn[:8].numpy().tobytes())
            return drawn

        step.gradient(Critic(), partner)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PoissonSampler, "lot", lambda own: lots.append(honest(own)) or lots[-1])
        together(program, accesses=(TRAIN,))
    assert len(lots) == len(partners) == 2
    assert lots[0].tobytes() != lots[1].tobytes()
    assert partners[0] != partners[1]


def test_no_rank_learns_a_fact_but_rank_0():
    fact = Access(purpose="count", event=DiscreteGaussianEvent(scale=10.0, tables=2, records=2), path="columns.a")

    def program(mechanism, own, ranks):
        return mechanism.release(COUNTS, fact, held())

    assert together(program, accesses=(fact,), other=lambda *_: None).shape == (123,)


# -- ranks that are not with the others ------------------------------------------------------------------------------


def test_a_rank_that_asks_something_else_ends_the_run():
    other_tables = Counts(tables=TABLES[::-1], max_records=2)
    acts = []
    with pytest.raises(NotAsPriced, match="not asked alike"):
        together(
            lambda m, own, _: m.release(COUNTS, COUNT, own),
            other=lambda m, own, _: m.release(other_tables, COUNT, own), authorised=acts,
        )  # fmt: skip
    assert acts == []  # nothing is paid for, and nothing given out


def test_a_rank_at_another_step_ends_the_run_before_it_is_paid_for():
    acts = []
    with pytest.raises(NotAsPriced, match="not asked alike"):
        together(
            lambda m, own, _: m.release(COUNTS, COUNT, own),
            other=lambda m, own, _: m.release(COUNTS, SUM, own), authorised=acts, accesses=(COUNT, SUM),
        )  # fmt: skip
    assert acts == []


def test_records_that_fit_one_rank_and_not_another_are_refused_before_the_release_is_paid_for():
    acts = []
    with pytest.raises(InputError, match=r"rank 1: .*more records than planned"):
        together(
            lambda m, own, _: m.release(COUNTS, COUNT, own),
            other=lambda m, own, _: m.release(COUNTS, COUNT, held(ROWS, np.arange(500) // 3)), authorised=acts,
        )  # fmt: skip
    assert acts == []


def test_a_lot_that_is_clipped_together_is_no_sum_of_ranks():
    acts = []
    with pytest.raises(SettingError, match="clipped together"):
        together(
            lambda m, own, _: trained(m, own, critic_settings(per_batch=True)), records=of_people(),
            accesses=(TRAIN,), authorised=acts,
        )  # fmt: skip
    assert acts == []


@pytest.mark.parametrize("word", ["fits", "answer"])
def test_a_rank_that_dies_ends_the_run_and_nothing_is_given_out(word):
    """What was authorised counts with the ledger; that no noise was drawn is known, so that no draw is lost."""
    acts, draws, left = [], [], []
    honest = OsKeyedNoise.normal

    def program(mechanism, own, ranks):
        try:
            return trained(mechanism, own)
        finally:
            left.append(mechanism.taken(TRAIN))

    def dying(mechanism, own, ranks):
        steps = iter([False, True])
        ranks._follower._link.dies_before = lambda content: f'"word": "{word}"'.encode() in content and next(steps)
        return trained(mechanism, own)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OsKeyedNoise, "normal", lambda own, size, std: draws.append(1) or honest(own, size, std))
        with pytest.raises(RankLost, match="rank 1 is gone"):
            together(program, other=dying, accesses=(TRAIN,), authorised=acts, records=of_people())
    assert acts == [1]  # its second release was not paid for
    assert len(draws) == 1
    assert left == [1]


def test_what_a_query_says_is_told_apart():
    told = {query_digest(each) for each in (*QUERIES.values(), Counts(tables=TABLES[::-1], max_records=2))}
    told |= {query_digest(Counts(tables=TABLES, max_records=1)), query_digest(Counts(tables=TABLES[:1], max_records=2))}
    assert len(told) == 5
    assert query_digest(COUNTS) == query_digest(Counts(tables=[*TABLES], max_records=2))


# -- the audit of the trainer, through two ranks ---------------------------------------------------------------------


def audited(runs=250):
    def first(link):
        leader = Leader(link)
        try:
            return audit_trainer(runs=runs, iterations=1, ranks=LeaderContext(leader, 2))
        finally:
            leader.end()

    def other(link):
        with contextlib.suppress(RunEnded):
            audit_trainer(runs=runs, iterations=1, ranks=FollowerContext(Follower(link)))

    return on_ranks(first, other)


def test_the_audit_of_the_trainer_finds_nothing_through_two_ranks():
    found = audited()
    assert not found.violated
    assert found.gaussian_lower_bound > 0.5  # and it looks hard enough to find something


def test_the_audit_finds_a_unit_that_is_with_both_ranks(monkeypatch):
    monkeypatch.setattr("doublure.private.records.PrivateRecords.of_units", lambda own, chosen: own)
    assert audited().violated
