"""Records that lie with several ranks keep the rules that records in one place keep (rules 2, 3, 6, 8 and 11).

Ranks are threads here, over the production code of all of them; ``tests/end_to_end/test_ranks.py`` has processes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from keyed import Keyed
from rank_links import on_ranks
from safetensors.numpy import load_file

from doublure import planning as plans
from doublure.data.tables import opening as tables
from doublure.errors import DoublureError
from doublure.ledger import Ledger, disk
from doublure.private import ranks as private_ranks
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedDraws, OsKeyedNoise
from doublure.private.ranks import RankPartitions, rank_of_units
from doublure.private.remote import RemotePartitions
from doublure.private.sampling import PoissonSampler
from doublure.run import fitting
from doublure.run import ranks as run_ranks
from doublure.run.ranks import FollowerRun, lead_ranks
from doublure.schema import Schema

UNITS = 27  # one more is in most of the keyed lots
REFUSED = (AssertionError, DoublureError, ValueError)


@dataclass
class Told:
    """What rank 0 of a run did: exact sums, how far they may move, what was given out, and what everybody can see."""

    sums: list[np.ndarray] = field(default_factory=list)
    allowed: list[float] = field(default_factory=list)
    outputs: list[np.ndarray] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)
    public: dict[str, object] = field(default_factory=dict)


@pytest.fixture(scope="module")
def plan_of():
    """Return plans, each calibrated once."""
    made: dict[str, object] = {}

    def plan(lab, schema, method="dpgan", **settings):
        key = repr((schema, method, settings))
        if key not in made:
            own = lab.TINY if method == "dpgan" else {"components": 4, "fit_steps": 5, "groups": 2}
            made[key] = plans.plan(
                Schema.parse(schema), method=method, epsilon=8.0, delta=1e-3, accountant="rdp", **(own | settings)
            )
        return made[key]

    return plan


def fitted(patch, frame, plan, folder, *, size=2, like=None, keyed=True, seed=1):
    """Fit on ranks, watched; with ``like`` its outputs are given out in place of this run's own."""
    folder.mkdir()
    told = Told()
    honest, normal, fsync = Mechanism._noised, OsKeyedNoise.normal, disk._fsync

    def noised(mechanism, answer, access):
        noisy, ran = honest(mechanism, answer, access)
        told.sums.append(np.asarray(answer.total, dtype=np.float64))
        told.allowed.append(answer.sensitivity.l2)
        told.outputs.append(noisy if like is None else like.outputs[len(told.outputs)])
        return told.outputs[-1], ran

    with patch.context() as inner:
        if keyed:
            Keyed().install(inner)
            normal = OsKeyedNoise.normal
        inner.setattr(Mechanism, "_noised", noised)
        inner.setattr(OsKeyedNoise, "normal", lambda *given: told.acts.append("noise") or normal(*given))
        inner.setattr(disk, "_fsync", lambda fd: fsync(fd) or told.acts.append("durable"))
        ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=100.0, delta=0.5)
        told.acts.clear()

        def first(link):
            with lead_ranks(link) as ranks:
                fitting.fit(frame, plan, ledger=ledger, out=folder / "run", seed=seed, ranks=ranks)

        on_ranks(first, lambda link: FollowerRun(link).follow(frame), size=size)
    weights = load_file(folder / "run" / "generator.safetensors")
    told.public = {name: (folder / "run" / name).read_bytes() for name in ("executed.json", "schema.yaml")}
    told.public["generator"] = {name: array.tobytes() for name, array in weights.items()}
    told.public["ledger"] = [record.kind for record in ledger.entries]
    return told


def check_a_unit_moves_no_sum_further(lab, patch, folder, plan, *, size=2, records=1, odd=("extreme", "duplicate")):
    """Rule 2: whoever it is with, and however units are dealt, which every session does anew."""
    base = lab.people(units=UNITS, records=records)
    kept = fitted(patch, base, plan, folder / "base", size=size)
    most = 0.0
    for name in odd:
        more = lab.with_unit(base, lab.ODD_RECORDS[name], records, place=len(base))
        found = fitted(patch, more, plan, folder / name.replace(" ", "-"), size=size, like=kept)
        assert found.public == kept.public
        assert found.allowed == kept.allowed
        for one, other, allowed in zip(kept.sums, found.sums, kept.allowed, strict=True):
            assert one.shape == other.shape
            moved = float(np.linalg.norm(one - other))
            assert moved <= allowed * (1 + 1e-5)
            most = max(most, moved / allowed)
    return most


@pytest.mark.parametrize("size", [2, 3])
def test_a_unit_moves_no_gradient_further(lab, monkeypatch, plan_of, tmp_path, size):
    found = check_a_unit_moves_no_sum_further(lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC), size=size)
    assert found > 0.9  # and one moves nearly as far as is paid for


def test_nor_with_all_of_its_records(lab, monkeypatch, plan_of, tmp_path):
    plan = plan_of(lab, lab.SEVERAL)
    assert check_a_unit_moves_no_sum_further(lab, monkeypatch, tmp_path, plan, records=3) > 0.9


def test_nor_any_count(lab, monkeypatch, plan_of, tmp_path):
    plan = plan_of(lab, lab.SEVERAL, "statistics")
    assert check_a_unit_moves_no_sum_further(lab, monkeypatch, tmp_path, plan, records=3) == pytest.approx(1)


MUTANTS = {
    "a unit with both ranks": (
        private_ranks.FollowerContext, "assigned", ("ranks == self._follower.rank", "ranks >= 0"),
    ),
    "rank 0 counted twice": (
        RemotePartitions, "answers", ("yield exchange.own", "yield from (exchange.own, exchange.own)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_ranks_that_let_a_unit_move_more_are_caught(lab, monkeypatch, plan_of, tmp_path, mutant):
    key = next(key for key in range(99) if rank_of_units(key, UNITS + 1, 2)[-1] == 0)  # one unit more is with rank 0
    monkeypatch.setattr(private_ranks, "secrets", SimpleNamespace(randbits=lambda bits: key))
    lab.plant(*MUTANTS[mutant])
    plan = plan_of(lab, lab.SEVERAL, "statistics")
    with pytest.raises(REFUSED):
        check_a_unit_moves_no_sum_further(lab, monkeypatch, tmp_path, plan, records=3, odd=("duplicate",))


def check_noise_steps_and_shapes_are_public(lab, patch, folder, plan):
    """Rules 3 and 6: two units or ten times as many leave the same trace, one draw a step, each paid for before."""
    kept = fitted(patch, lab.people(), plan, folder / "kept")
    noisy = [place for place, act in enumerate(kept.acts) if act == "noise"]
    assert len(noisy) == plan.steps
    for step, place in enumerate(noisy):
        assert kept.acts[:place].count("durable") >= 2 + step
    for units in (2, 240):
        found = fitted(patch, lab.people(units=units), plan, folder / str(units), like=kept)
        assert found.acts == kept.acts
        assert found.public == kept.public
        assert found.allowed == kept.allowed
        assert [each.shape for each in found.sums] == [each.shape for each in kept.sums]


def test_noise_steps_and_shapes_are_public(lab, monkeypatch, plan_of, tmp_path):
    check_noise_steps_and_shapes_are_public(lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC))


PAID = "self._authorise(access, 0 if access.path is not None else self._before[access] + taken + 1)"
OWN = "self._own.ask(query, sample_rate=sample_rate)"


@pytest.mark.parametrize(
    "planted",
    [
        (Mechanism, "_pay", (PAID, "None")),
        (RankPartitions, "exchange", (OWN, OWN.replace("=sample_rate", "=sample_rate / 2"))),
    ],
    ids=["nothing is paid", "rank 0 at a lower rate"],
)  # fmt: skip
def test_traces_that_follow_from_the_records_are_caught(lab, monkeypatch, plan_of, tmp_path, planted):
    lab.plant(*planted)
    with pytest.raises(REFUSED):
        check_noise_steps_and_shapes_are_public(lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC))


def check_nothing_is_drawn_twice(lab, patch, folder, plan):
    """Rule 8: equal seeds and records; each rank's coins and pairing, and each session's noise, are its own."""
    coins, pairs = [], []
    lot, normal = PoissonSampler.lot, OsKeyedDraws.normal

    def tossed(sampler):
        found = lot(sampler)
        coins.append((threading.get_ident(), sampler._population, found.tobytes()))
        return found

    def paired(draws, rows, width):
        found = normal(draws, rows, width)
        pairs.append(found[:1].numpy().tobytes())
        return found

    frame = lab.people(units=400)
    patch.setattr(PoissonSampler, "lot", tossed)
    patch.setattr(OsKeyedDraws, "normal", paired)
    one, other = (fitted(patch, frame, plan, folder / name, keyed=False, seed=1) for name in ("one", "other"))
    assert all(mine.tobytes() != theirs.tobytes() for mine, theirs in zip(one.outputs, other.outputs, strict=True))
    assert len(coins) == 4 * plan.steps
    assert len({drawn for _, _, drawn in coins}) == len(coins)
    assert len(set(pairs)) == len(pairs)
    noise = [noisy - exact for told in (one, other) for noisy, exact in zip(told.outputs, told.sums, strict=True)]
    assert len({each.tobytes() for each in noise}) == len(noise)


def test_nothing_is_drawn_twice(lab, monkeypatch, plan_of, tmp_path):
    check_nothing_is_drawn_twice(lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC, lot_size=12))


@pytest.mark.parametrize("module", ["noise", "sampling"])
def test_a_common_seed_is_caught(lab, monkeypatch, plan_of, tmp_path, module):
    common = lambda: np.random.Generator(np.random.Philox(key=5))  # noqa: E731
    monkeypatch.setattr(f"doublure.private.{module}.freshly_keyed", common)
    with pytest.raises(AssertionError):
        check_nothing_is_drawn_twice(lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC, lot_size=12))


def check_no_rank_opens_what_is_not_charged(lab, patch, folder, plan, late=lambda opened: None):
    """Rule 11: the charge is on disk before any rank reads; only rank 0 opens the ledger and the folder."""
    acts, fsync, chunks, frame = [], disk._fsync, tables._FrameSource.chunks, lab.people()
    opened = threading.Event()

    def synced(fd):
        fsync(fd)
        acts.append(("durable", threading.current_thread() is threading.main_thread()))

    def read(source, columns):
        acts.append(("opened", threading.current_thread() is threading.main_thread()))
        opened.set()
        return chunks(source, columns)

    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=100.0, delta=0.5)
    open_data = fitting.open_data
    patch.setattr(disk, "_fsync", synced)
    patch.setattr(tables._FrameSource, "chunks", read)
    patch.setattr(fitting, "open_data", lambda *given: late(opened) or open_data(*given))

    def first(link):
        with lead_ranks(link) as ranks:
            fitting.fit(frame, plan, ledger=ledger, out=folder / "run", seed=1, ranks=ranks)

    on_ranks(first, lambda link: FollowerRun(link).follow(frame), size=3)
    assert acts.index(("durable", True)) < min(acts.index(("opened", True)), acts.index(("opened", False)))
    assert acts.count(("opened", False)) == 2
    assert ("durable", False) not in acts
    assert ledger.spent.epsilon == plan.epsilon


def test_no_rank_opens_what_is_not_charged(lab, monkeypatch, plan_of, tmp_path):
    check_no_rank_opens_what_is_not_charged(lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC))


def test_ranks_that_begin_before_the_charge_are_caught(lab, monkeypatch, plan_of, tmp_path):
    tells = "self._leader.broadcast(_BEGIN, {'plan': plan.to_json(), 'seed': seed})"
    once = f"getattr(self, 'begun', None) or {tells}\nself.begun = True"
    lab.plant(run_ranks.LeaderRun, "begin", (tells, once))
    lab.plant(
        fitting,
        "fit",
        ("ranks.refuse_unfit(plan, parted=placement is not RecordPlacement.HELD)", "ranks.begin(plan, seed)"),
    )
    with pytest.raises(AssertionError):
        check_no_rank_opens_what_is_not_charged(
            lab, monkeypatch, tmp_path, plan_of(lab, lab.PUBLIC), late=lambda opened: opened.wait(20) and None
        )


def test_ranks_show_nothing_of_themselves():
    assert repr(object.__new__(RankPartitions)) == "RankPartitions(private)"
    assert private_ranks.KEY_BITS >= 128
