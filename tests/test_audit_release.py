"""``benchmarks/robustness/audit_release.py`` in short: what holds is not accused, and each part finds its fault."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest
import torch
from planting import plant
from programs import program

from doublure.access import Access
from doublure.private import owner_partitions
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, PureEvent, composition
from doublure.private.queries.counts import Counts
from doublure.private.queries.query import Answer, Sensitivity
from doublure.private.queries.sums import BoundedSums
from doublure.run.folder import RunFolder

PLENTY = math.inf


@pytest.fixture(scope="module")
def audit():
    torch.set_num_threads(1)
    return program("audit_release")


@pytest.fixture
def rows(monkeypatch, tmp_path):
    """Rows go elsewhere."""
    monkeypatch.setattr("results.MEASURED", tmp_path)

    def read():
        path = tmp_path / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    return read


# -- neighbours --------------------------------------------------------------------------------------------------------

MOVES = {"table": 0, "relational": 1, "series": 1, "images": 7}  # a seed of which the odd unit moves something


def compared(audit, kind, folder):
    pair = audit.audit_neighbours.KINDS[kind](audit.audit_neighbours.Drawn(MOVES[kind]), folder)
    return audit.compared(pair)


@pytest.mark.parametrize("kind", MOVES)
def test_neighbours_move_as_far_as_is_priced_and_show_nothing(audit, tmp_path, kind):
    found = compared(audit, kind, tmp_path)
    assert found.fitted
    assert not found.accused
    assert found.releases > 0
    assert 0.5 < found.l2 < 1 + 1e-6


def twice(answer):
    return lambda query, records, **named: (
        lambda found: type(found)(**{**vars(found), "total": 2 * found.total})
    )(answer(query, records, **named))  # fmt: skip


@pytest.mark.parametrize(("kind", "query"), [("table", Counts), ("images", BoundedSums)])
def test_a_sensitivity_that_is_understated_is_found(audit, monkeypatch, tmp_path, kind, query):
    monkeypatch.setattr(query, "answer", twice(query.answer))
    found = compared(audit, kind, tmp_path)
    assert found.accused
    assert max(found.l1, found.l2) == pytest.approx(2, rel=1e-4)


def test_a_file_that_differs_is_found(audit, monkeypatch, tmp_path):
    counted, write, answer = [0], RunFolder.save_executed, Counts.answer

    def watched(query, records, **named):
        found = answer(query, records, **named)
        counted.append(int(found.total.sum()))
        return found

    def tells(folder, executed):
        write(folder, executed)
        (folder.path / "log.jsonl").write_text(f'{{"counted": {counted[-1]}}}\n')

    monkeypatch.setattr(Counts, "answer", watched)
    monkeypatch.setattr(RunFolder, "save_executed", tells)
    found = compared(audit, "table", tmp_path)
    assert found.accused
    assert found.differing == ("log.jsonl",)


def test_a_neighbour_that_is_asked_otherwise_is_found(audit, monkeypatch, tmp_path):
    """How many records there are may decide no question."""
    stated = BoundedSums.sensitivity.fget
    monkeypatch.setattr(BoundedSums, "refuse_unfit", lambda query, records: seen.append(records.n_units))
    seen = []

    def counted(query):
        found = stated(query)
        return type(found)(l1=found.l1 * seen[-1], l2=found.l2 * seen[-1]) if seen else found

    answer = BoundedSums.answer

    def answered(query, records, **named):
        found = answer(query, records, **named)
        return type(found)(**{**vars(found), "sensitivity": counted(query)})

    monkeypatch.setattr(BoundedSums, "sensitivity", property(counted))
    monkeypatch.setattr(BoundedSums, "answer", answered)
    found = compared(audit, "images", tmp_path)
    assert found.differing


# -- transcripts -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(audit):
    return audit.audit_transcripts.images()


def transcript(audit, pair, lines=12):
    made = [audit.audit_transcripts.line_of(pair, there=bool(number % 2)) for number in range(lines)]
    return audit.audit_transcripts.found(made, pair.plan)


def test_transcripts_reach_what_is_claimed_and_do_not_pass_it(audit, pictures):
    found = transcript(audit, pictures)
    assert not found["accused"]
    assert found["moved_mu"] == pytest.approx(found["claimed_mu"], rel=1e-3)
    assert found["variance"] == pytest.approx(1, abs=6 * found["variance_error"])
    mu, error = found["moved_mu"], found["moved_mu"] / math.sqrt(found["fits"])
    assert found["mean_without"] == pytest.approx(-(mu**2) / 2, abs=6 * error)
    assert found["mean_there"] == pytest.approx(mu**2 / 2, abs=6 * error)


def test_noise_that_is_scaled_is_found(audit, pictures):
    with program("audit_fits").half_the_noise():
        found = transcript(audit, pictures)
    assert found["accused"]
    assert found["variance"] == pytest.approx(0.25, rel=6 * found["variance_error"])


def test_transcripts_that_move_further_than_is_claimed_are_found(audit, monkeypatch, pictures):
    monkeypatch.setattr(BoundedSums, "answer", twice(BoundedSums.answer))
    found = transcript(audit, pictures)
    assert found["accused"]
    assert found["moved_mu"] == pytest.approx(2 * found["claimed_mu"], rel=1e-3)


@pytest.mark.parametrize("louder", [1, 4])
def test_ratios_that_tell_more_than_is_claimed_are_found(audit, pictures, louder):
    """By their number alone: noise and distances are as they should be."""
    draw, most = np.random.default_rng(0), audit.audit_transcripts.claimed_mu(pictures.plan)
    mu = louder * most
    lines = [
        audit.Line(there=there, ratio=draw.normal((mu if there else -mu) * mu / 2, mu), squares=1e6, cells=10**6,
                   moved=most**2)
        for there in (False, True) for _ in range(1000)
    ]  # fmt: skip
    found = audit.audit_transcripts.found(lines, pictures.plan)
    assert found["accused"] == (louder > 1)
    assert (found["epsilon_shown"] > found["epsilon"]) == (louder > 1)
    assert found["epsilon_shown"] > 1


EVENTS = {
    GaussianEvent(noise_multiplier=4.0): (9 - 4) / 32,
    DiscreteGaussianEvent(scale=4.0): (9 - 4) / 32,
    PureEvent(epsilon=0.5): (3 - 2) / 2,
}


@pytest.mark.parametrize("event", EVENTS)
def test_a_ratio_says_how_much_likelier_one_world_is(audit, event):
    """Three was told, where none was counted in one world and one in the other."""
    none, one = (Answer(total=np.array([count]), sensitivity=Sensitivity.of_cells(1, 1), unit=None) for count in (0, 1))
    said = {}
    for there, (here, other) in ((False, (none, one)), (True, (one, none))):
        release = audit.audit_transcripts.Release(
            access=Access(purpose="made up", event=event), answer=here, noisy=np.array([3]), ran=event
        )
        said[there], *_ = audit.audit_transcripts._said(release, other, there=there)
    assert said == {False: EVENTS[event], True: EVENTS[event]}


def test_lines_are_kept_and_made_once(audit, pictures, tmp_path):
    kept = audit.Transcripts(tmp_path / "out" / "lines.jsonl")
    first = kept.make("images", pictures, 1, PLENTY)
    with (tmp_path / "out" / "lines.jsonl").open("a") as file:
        file.write('{"case": "cut sh\n')
    lines = kept.make("images", pictures, 2, PLENTY)
    assert lines[:2] == first
    assert [line.there for line in lines] == [False, True, False, True]
    assert kept.make("images", pictures, 9, 0.0) == lines
    assert kept.of("series") == []


# -- plans -------------------------------------------------------------------------------------------------------------

PLANS = (0, 11, 20)  # by loss distributions, by Rényi curves, of images


@pytest.mark.parametrize("seed", PLANS)
def test_no_plan_costs_more_than_it_claims(audit, seed):
    found = audit.audit_plans.checked(seed)
    assert not found["accused"]
    assert 0.99 < found["ratio"] <= 1


@pytest.mark.parametrize("seed", PLANS)
def test_an_accountant_that_leaves_out_a_part_is_found(audit, monkeypatch, seed):
    plant(
        monkeypatch, composition, "count_events",
        ("replace(event, steps=1, filter_steps=None), event.paid_steps",
         "replace(event, steps=1, filter_steps=None, noise_multiplier=1.05 * event.noise_multiplier), "
         "event.paid_steps"),
        ("replace(event, tables=1), event.tables", "replace(event, tables=1, scale=1.05 * event.scale), event.tables"),
    )  # fmt: skip
    found = audit.audit_plans.checked(seed)
    assert found["accused"]
    assert found["ratio"] > 1.01


# -- owners ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ["a sum of any length", "a sum of any length, taken back"])
def test_owners_do_not_take_the_noise_away(audit, attack):
    assert not audit.audit_owners.ATTACKS[attack]()["accused"]


@pytest.mark.parametrize(
    "attack", ["a value that is not listed", "a byte that is no UTF-8", "a line that is cut short"]
)
def test_a_record_that_does_not_fit_moves_what_is_priced(audit, attack):
    assert not audit.audit_owners.ATTACKS[attack]()["accused"]


def test_owners_who_are_believed_are_found(audit, monkeypatch):
    monkeypatch.setattr(owner_partitions, "validate_answer", lambda *given, **named: None)
    monkeypatch.setattr(audit.audit_owners, "POWERS", (100,))
    for attack in ("a sum of any length", "a sum of any length, taken back"):
        found = audit.audit_owners.ATTACKS[attack]()
        assert found["accused"]
        assert found["shown"] > 100 * found["allowed"]


# -- the command -------------------------------------------------------------------------------------------------------


def test_cells_are_measured_once_and_within_the_time(audit, rows, monkeypatch, capsys):
    figures = {"epsilon": 2.0, "delta": 1e-5, "recomposed": 1.9, "ratio": 0.95, "accused": False}
    monkeypatch.setattr(audit.audit_plans, "checked", lambda seed: figures)
    run = partial(audit.run, ["recompose"], fits=1)
    run(minutes=0.0, seeds=2)
    assert rows() == []
    run(minutes=9.0, seeds=1)
    run(minutes=9.0, seeds=2)
    found = rows()
    assert [row["seed"] for row in found] == [0, 1]
    wanted = {"part", "case", "version", "command", "date", "epsilon", "delta", "ratio", "accused"}
    assert wanted <= found[0].keys()
    assert found[0]["command"] == "python benchmarks/robustness/audit_release.py recompose --seeds 1"
    assert "recompose, plan 1: " in capsys.readouterr().out
    assert audit.table(audit.rows(["recompose"])).splitlines()[-1].startswith("| recompose | plan | 2 | ")
    assert audit.rows(["replay"]) == []
    monkeypatch.setattr(audit.db, "__version__", "9.9.9")
    assert audit.rows(["recompose"]) == []  # a release is measured anew


def test_every_part_has_rows(audit, rows, monkeypatch, tmp_path):
    monkeypatch.setattr(audit, "OUT", tmp_path)
    monkeypatch.setattr(audit, "PAIRS", 1)
    monkeypatch.setattr(audit.audit_neighbours, "KINDS", {"series": audit.audit_neighbours.series})
    monkeypatch.setattr(audit.audit_transcripts, "CASES", {"images": audit.audit_transcripts.images})
    attack = {"shown": 2.0, "allowed": 1.0, "epsilon": 1.0, "delta": 1e-5, "accused": True}
    monkeypatch.setattr(audit.audit_owners, "ATTACKS", {"an attack": lambda: attack})
    audit.run(audit.PARTS, minutes=9.0, seeds=1, fits=5)
    assert [row["part"] for row in rows()] == ["replay", "transcript", "recompose", "owners"]
    assert [row["accused"] for row in rows()] == [False, False, False, True]
    assert len(audit.table(audit.rows(audit.PARTS)).splitlines()) == 2 + 4


@pytest.mark.parametrize("accused", [False, True])
def test_what_is_accused_ends_with_one(audit, rows, monkeypatch, accused):
    row = {"part": "recompose", "case": "plan", "seed": 0, "recomposed": 2.0, "epsilon": 1.0, "accused": accused}
    audit.add(audit.NAME, row | {"version": audit.db.__version__})
    monkeypatch.setattr("sys.argv", ["audit_release.py", "recompose", "--table"])
    if not accused:
        audit.main()
        return
    with pytest.raises(SystemExit) as ended:
        audit.main()
    assert ended.value.code == 1
