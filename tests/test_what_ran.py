"""What ran is written down, access by access, and is what was priced: finished, cut off, edited, and with a defect."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from paying import written
from planting import plant
from tiers import exhaustive

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import Interrupted, NotAsPriced, RunFolderError
from doublure.private.accounting import ApproximateEvent, event_to_json
from doublure.private.executed import as_priced, steps_of
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.counts import Counts

COUNTED: dict[str, Any] = {"fit_steps": 3, "components": 4, "groups": 2}
CRITIC: dict[str, Any] = {"critic_share": 0.3, "critic_steps": 6, "critic_lot": 30, "critic_width": 8}
RUNS = {
    "statistics": ("declared", "statistics", COUNTED),
    "dpgan": ("declared", "dpgan", {}),
    "guided": ("declared", "guided", COUNTED | CRITIC),
    "facts and dpgan": ("bought", "dpgan", {}),
}


@pytest.fixture(scope="module")
def plans(small):
    made = {}
    for name, (schema, method, settings) in RUNS.items():
        own = small.tiny if method == "dpgan" else settings
        made[name] = db.plan(
            getattr(small, schema), method=method, epsilon=small.epsilon, delta=small.delta, accountant="rdp", **own
        )
    return made


@pytest.fixture
def book(small, tmp_path):
    return small.book(tmp_path)


@pytest.fixture
def fitted(small, book, tmp_path):
    """Fit a plan into ``run``."""

    def fit(plan, **more):
        return db.fit(small.frame(), plan, ledger=book, out=tmp_path / "run", **more)

    return fit


def read(run: Path) -> list[dict[str, Any]]:
    return json.loads((run / "executed.json").read_text())


def card_of(run: Path, folder: Path) -> dict[str, Any]:
    """Release a few records and return the card."""
    db.release(db.load(run), folder, n=5, formats=["csv"])
    return json.loads((folder / "card.json").read_text())


# -- a run that comes to its end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_a_finished_run_says_what_ran_for_each_access(plans, fitted, tmp_path, name):
    plan = plans[name]
    syn = fitted(plan, seed=1)
    found = read(tmp_path / "run")
    assert syn.executed == db.load(tmp_path / "run").executed == found
    assert len(plan.touches) == {"statistics": 10, "dpgan": 1, "guided": 11, "facts and dpgan": 4}[name]
    for entry, access in zip(found, plan.touches, strict=True):
        assert set(entry) == {"purpose", "event", "expected", "drawn", "lost", "sensitivity"}
        assert entry["purpose"] == access.purpose
        assert entry["expected"] == event_to_json(access.event)
        wanted = written(access.event)
        if isinstance(access.event, ApproximateEvent):  # the threshold is a whole number: δ is what it comes to
            assert 0 < entry["event"]["delta"] <= access.event.delta
            wanted["delta"] = entry["event"]["delta"]
        assert entry["event"] == wanted
        assert (entry["drawn"], entry["lost"]) == (steps_of(access), 0)
    assert as_priced(found)
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is True


def test_how_far_one_unit_moves_an_answer_is_written_down(plans, fitted, tmp_path):
    """The clip of a critic's step; a count in each table."""
    plan = plans["guided"]
    fitted(plan)
    *counted, critic = (entry["sensitivity"] for entry in read(tmp_path / "run"))
    assert counted == [pytest.approx(math.sqrt(access.event.tables)) for access in plan.touches[:-1]]
    assert critic == plan.settings.critic_clip


def test_nothing_that_is_written_down_follows_from_the_records(small, plans, tmp_path):
    found = []
    for number, frame in enumerate((small.frame(), small.frame(200).assign(code="01"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        db.fit(frame, plans["guided"], ledger=small.book(folder), out=folder / "run", seed=number)
        found.append(read(folder / "run"))
    assert found[0] == found[1]


def test_a_run_that_protects_no_one_has_nothing_to_write_down(small, fitted, tmp_path):
    fitted(db.plan(small.declared, method="gan", **small.tiny))
    assert read(tmp_path / "run") == []
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is None


def test_a_run_of_an_earlier_version_is_not_said_to_have_run_as_priced(small, tmp_path):
    run, _ = small.copies(tmp_path)
    (run / "executed.json").unlink()
    assert card_of(run, tmp_path / "bundle")["executed"] is False


# -- cut off and resumed -----------------------------------------------------------------------------------------------


class Ended(BaseException):
    """Stands for the end of the process, of which nothing is kept, as of a defect it is."""


def end_before(patch: pytest.MonkeyPatch, draw: int, error: BaseException) -> None:
    """End the run before this draw of real-valued noise; the process hears of nothing more."""
    count, normal = [0], OsKeyedNoise.normal

    def counted(noise, size, std):
        count[0] += 1
        if count[0] == draw:
            raise error
        return normal(noise, size, std)

    patch.setattr(OsKeyedNoise, "normal", counted)
    patch.setattr("doublure.run.running.FitRun._close", lambda run, status, keeps: True)


def authorised(book) -> int:
    return max(record.body["through_step"] for record in book.entries if record.kind == "advance")


@pytest.mark.parametrize("draw", [1, 4, 6, *(pytest.param(draw, marks=exhaustive) for draw in (2, 3, 5))])
def test_a_run_that_was_cut_off_lists_what_it_lost(small, plans, book, fitted, tmp_path, draw):
    """A step is paid for and kept by itself: wherever the run ends, the one that was being drawn is lost."""
    plan, run, lost = plans["dpgan"], tmp_path / "run", 1
    with pytest.MonkeyPatch.context() as patch:
        end_before(patch, draw, Ended())
        with pytest.raises(Ended):
            fitted(plan, seed=1)
    fitted(plan, resume=True)
    (entry,) = read(run)
    assert authorised(book) == plan.steps == 6
    assert (entry["drawn"], entry["lost"]) == (6 - lost, lost)
    assert entry["event"] == written(plan.training[0].event)
    assert [record.body["steps"] for record in book.entries if record.kind == "close"] == [6]
    assert book.spent.epsilon == small.epsilon
    assert card_of(run, tmp_path / "bundle")["executed"] is True


def test_a_run_that_was_cut_off_again_and_again_lists_all_it_lost(plans, book, fitted, tmp_path):
    for resume, draw in ((False, 1), (True, 3)):
        with pytest.MonkeyPatch.context() as patch:
            end_before(patch, draw, Ended())
            with pytest.raises(Ended):
                fitted(plans["dpgan"], resume=resume)
    fitted(plans["dpgan"], resume=True)
    (entry,) = read(tmp_path / "run")
    assert authorised(book) == 6
    assert (entry["drawn"], entry["lost"]) == (4, 2)
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is True


def test_a_run_that_was_stopped_lists_what_it_lost(plans, book, fitted, tmp_path):
    """Its state is kept on the way out, with what ran until then."""
    with pytest.MonkeyPatch.context() as patch:
        draws, normal = [], OsKeyedNoise.normal
        patch.setattr(OsKeyedNoise, "normal", lambda *asked: (draws.append(asked), normal(*asked))[1])
        patch.setattr(
            "doublure.support.stopping.StopSignal.check",
            lambda self: (_ for _ in ()).throw(Interrupted("stopped")) if len(draws) == 3 else None,
        )
        with pytest.raises(Interrupted):
            fitted(plans["dpgan"])
    fitted(plans["dpgan"], resume=True)
    (entry,) = read(tmp_path / "run")
    assert authorised(book) == 6
    assert (entry["drawn"], entry["lost"]) == (6, 0)
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is True


def test_tables_that_were_stopped_before_their_noise_cost_nothing_and_are_drawn_once(plans, book, fitted, tmp_path):
    plan = plans["statistics"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Counts, "answer", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(Interrupted, match="nothing was spent"):
            fitted(plan)
    assert (book.spent.epsilon, (tmp_path / "run").exists()) == (0, False)
    fitted(plan)
    found = read(tmp_path / "run")
    assert authorised(book) == plan.steps == 10
    assert [(entry["drawn"], entry["lost"]) for entry in found] == [(1, 0)] * 10
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is True


def test_a_run_of_several_stages_lists_what_each_lost(plans, book, fitted, tmp_path):
    """Tables stay as they were drawn; the critic, which keeps each of its steps, loses the one that was cut off."""
    plan = plans["guided"]
    with pytest.MonkeyPatch.context() as patch:
        end_before(patch, 4, Ended())
        with pytest.raises(Ended):
            fitted(plan)
    before = read(tmp_path / "run")
    fitted(plan, resume=True)
    found = read(tmp_path / "run")
    assert found[:10] == before[:10]
    assert authorised(book) == plan.steps == 16
    assert [(entry["drawn"], entry["lost"]) for entry in found] == [*[(1, 0)] * 10, (5, 1)]
    assert [entry["event"] for entry in found] == [written(access.event) for access in plan.touches]
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is True


# -- edited ------------------------------------------------------------------------------------------------------------


def other_event(entries):
    entries[0]["event"]["noise_multiplier"] *= 2
    return entries


def other_plan(entries):
    for which in ("event", "expected"):
        entries[0][which]["noise_multiplier"] *= 2
    return entries


def other_rate(entries):
    entries[0]["event"]["sample_rate"] *= 0.5
    return entries


def other_kind(entries):
    entries[0]["event"] = {"type": "pure", "epsilon": 1.0}
    return entries


def no_purpose(entries):
    return [{key: said for key, said in entry.items() if key != "purpose"} for entry in entries]


def other_field(name, value):
    return lambda entries: [entry | {name: value} for entry in entries]


EDITS = {
    "another noise": other_event,
    "another noise, twice": other_plan,
    "another rate": other_rate,
    "another mechanism": other_kind,
    "no purpose": no_purpose,
    "more draws than were planned": other_field("drawn", 7),
    "no number of draws": other_field("drawn", "2"),
    "an event that is none": other_field("event", {"type": "gaussian"}),
    "a word for an event": other_field("event", "gaussian"),
    "one access fewer": lambda entries: [],
    "one access more": lambda entries: [*entries, entries[0]],
    "numbers": lambda entries: [1],
    "a mapping": lambda entries: {"purpose": entries},
}


@pytest.fixture
def cut_off(plans, fitted, tmp_path):
    """A run whose state is kept at its second step of six."""
    with pytest.MonkeyPatch.context() as patch:
        end_before(patch, 4, Ended())
        with pytest.raises(Ended):
            fitted(plans["dpgan"], seed=1)
    return tmp_path / "run" / "executed.json"


def test_a_run_whose_record_of_what_ran_is_gone_does_not_say_that_all_was_priced(plans, fitted, cut_off, tmp_path):
    cut_off.unlink()
    assert fitted(plans["dpgan"], resume=True).executed is None
    assert not cut_off.exists()
    assert card_of(tmp_path / "run", tmp_path / "bundle")["executed"] is False


def refused(plans, fitted, book, name):
    """The refusal of a run that may not go on: one line, before the ledger or the folder hears of it."""
    before = [record.sha256 for record in book.entries]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OsKeyedNoise, "normal", lambda *_: pytest.fail(f"drawn: {name}"))
        with pytest.raises(RunFolderError) as caught:
            fitted(plans["dpgan"], resume=True)
    assert "\n" not in str(caught.value), name
    assert "executed.json" in str(caught.value), name
    assert caught.value.remedy, name
    assert caught.value.exit_code == 2, name
    assert [record.sha256 for record in book.entries] == before, name


def test_an_edited_record_of_what_ran_is_not_gone_on_from(plans, fitted, book, cut_off):
    whole = cut_off.read_text()
    edited = {name: json.dumps(edit(json.loads(whole))) for name, edit in EDITS.items()}
    short = {f"cut at {length}": whole[:length] for length in (0, 1, 40, -3)}
    for name, text in (edited | short).items():
        assert text != whole, name
        cut_off.write_text(text)
        refused(plans, fitted, book, name)
    cut_off.write_text(whole)
    assert fitted(plans["dpgan"], resume=True).executed[0]["lost"] == 1  # nothing was spoilt by the attempts


@pytest.mark.parametrize("edit", ["another noise", "another rate", "another mechanism", "an event that is none",
                                  "one access fewer", "numbers"])  # fmt: skip
def test_what_was_edited_afterwards_is_not_released(small, tmp_path, edit):
    run, ledger = small.copies(tmp_path)
    assert card_of(run, tmp_path / "before")["executed"] is True
    (run / "executed.json").write_text(json.dumps(EDITS[edit](read(run))))
    written = ledger.read_bytes()
    with pytest.raises(RunFolderError, match=r"^executed\.json: ") as caught:
        card_of(run, tmp_path / "after")
    assert caught.value.remedy
    assert not (tmp_path / "after").exists()
    assert ledger.read_bytes() == written


def test_a_card_knows_of_steps_that_are_missing(small, tmp_path):
    run, _ = small.copies(tmp_path)
    (entry,) = read(run)
    entry["event"]["steps"] -= 1
    (run / "executed.json").write_text(json.dumps([entry]))
    assert card_of(run, tmp_path / "bundle")["executed"] is False


# -- a defect ----------------------------------------------------------------------------------------------------------

# Each makes the noise of one event smaller than was priced.
MUTANTS = {
    "dpgan": ("event.noise_multiplier * moved.l2", "0.7 * event.noise_multiplier * moved.l2"),
    "statistics": ("scale=event.scale", "scale=0.7 * event.scale"),
    "guided": ("event.noise_multiplier * moved.l2", "0.7 * event.noise_multiplier * moved.l2"),
    "facts and dpgan": (
        "whole_noise.laplace(total, epsilon=event.epsilon, moved=round(moved.l1))",
        "whole_noise.laplace(total, epsilon=event.epsilon / 0.7, moved=round(moved.l1))",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_less_noise_than_was_priced_ends_the_run(small, plans, book, fitted, tmp_path, monkeypatch, name):
    plant(monkeypatch, Mechanism, "_noised", MUTANTS[name])
    with pytest.raises(NotAsPriced) as caught:
        fitted(plans[name], seed=1)
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)
    assert "ran, and" in str(caught.value)
    assert caught.value.remedy
    assert (book.spent.epsilon, book.spent.delta) == (small.epsilon, small.delta)
    assert [record.body["status"] for record in book.entries if record.kind == "close"] == ["aborted"]
    run = tmp_path / "run"
    assert json.loads((run / "run.json").read_text())["status"] == "not-as-priced"
    assert not (run / "generator.safetensors").exists()
    with pytest.raises(RunFolderError, match="is not finished"):
        db.load(run)


def plant_at(patch: pytest.MonkeyPatch, draw: int) -> None:
    """Make this draw of real-valued noise smaller than was asked for."""
    count, normal = [0], OsKeyedNoise.normal

    def counted(noise, size, std):
        count[0] += 1
        return normal(noise, size, std * (0.7 if count[0] == draw else 1))

    patch.setattr(OsKeyedNoise, "normal", counted)


def test_less_noise_than_was_priced_never_comes_to_a_synthesizer(small, plans, book, fitted, tmp_path, monkeypatch):
    """Not with the fault fixed, either: what it has learned until then is gone."""
    with monkeypatch.context() as patch:
        plant_at(patch, 4)
        with pytest.raises(NotAsPriced):
            fitted(plans["dpgan"])
    run, before = tmp_path / "run", [record.sha256 for record in book.entries]
    assert list((run / "internal").iterdir()) == []
    for _ in range(2):
        with pytest.raises(RunFolderError, match="ran otherwise than was priced") as caught:
            fitted(plans["dpgan"], resume=True)
        assert caught.value.remedy
    assert [record.sha256 for record in book.entries] == before
    assert not (run / "generator.safetensors").exists()
    assert book.spent.epsilon == small.epsilon


def test_the_command_says_so_in_one_line(small, plans, book, tmp_path, monkeypatch, capsys):
    plan, data = tmp_path / "plan.json", small.csv(tmp_path)
    plans["dpgan"].save(plan)
    plant(monkeypatch, Mechanism, "_noised", MUTANTS["dpgan"])
    words = ["fit", data, "--plan", plan, "--ledger", book.path, "-o", tmp_path / "run", "--json"]
    assert run_guarded(app, [str(word) for word in words]) == 4
    said = json.loads(capsys.readouterr().out)
    assert (said["ok"], said["error"]["code"], said["error"]["field"]) == (False, "not_as_priced", "train the critic")
    assert "report it" in said["error"]["remedy"]
