"""What ran is written down as it was measured, over all sessions, and anything but what was priced ends the run."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import pytest

from doublure.access import Access
from doublure.errors import NotAsPriced, RunFolderError
from doublure.private import executed as module
from doublure.private.accounting import (
    ApproximateEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    PureEvent,
    event_to_json,
)
from doublure.private.executed import Executed, as_priced, steps_of

TRAINED = GaussianEvent(noise_multiplier=1.1, sample_rate=0.25, steps=4)
COUNTED = DiscreteGaussianEvent(scale=12.5, tables=6, records=3)
FOUND = ApproximateEvent(epsilon=0.5, delta=1e-7)
ANSWERED = PureEvent(epsilon=0.25)
EVENTS = {"train": TRAINED, "count": COUNTED, "find": FOUND, "answer": ANSWERED}
ONE_STEP = replace(TRAINED, steps=1)
DRAWS = {"train": ONE_STEP, "count": COUNTED, "find": FOUND, "answer": ANSWERED}
TRAIN, COUNT, FIND, ANSWER = ACCESSES = [
    Access(purpose=purpose, event=event, path=f"columns.{purpose}" if purpose in ("find", "answer") else None)
    for purpose, event in EVENTS.items()
]


def all_run():
    """Return what is written down of a run in which everything was drawn."""
    made = Executed(ACCESSES)
    for access in ACCESSES:
        for _ in range(steps_of(access)):
            made.note(access, DRAWS[access.purpose], 1.5)
    return made


def told(made, taken=None):
    """Return what a folder holds of it, once it has been read again."""
    return json.loads(json.dumps(made.to_json(taken)))


# -- notes -------------------------------------------------------------------------------------------------------------


def test_nothing_ran_yet():
    nothing = {"event": None, "drawn": 0, "lost": 0, "sensitivity": None}
    assert Executed(ACCESSES[:2]).to_json() == [
        {"purpose": "train", "expected": event_to_json(TRAINED)} | nothing,
        {"purpose": "count", "expected": event_to_json(COUNTED)} | nothing,
    ]
    assert Executed([]).to_json() == []


def test_draws_are_counted_and_the_longest_is_kept():
    made = Executed([TRAIN])
    for longest in (0.5, 2.0, 1.0):
        made.note(TRAIN, ONE_STEP, longest)
    (entry,) = made.to_json({TRAIN: 4})
    assert (entry["drawn"], entry["lost"], entry["sensitivity"]) == (3, 1, 2.0)
    assert entry["event"] == entry["expected"] == event_to_json(TRAINED)  # the lost step is part of what was spent


def test_what_is_written_down_is_what_was_measured():
    """Rounded otherwise than the plan's, so that a copy of the plan's would be noticed."""
    measured = GaussianEvent(noise_multiplier=1.1 * (1 + 1e-12), sample_rate=0.25, steps=1)
    made = Executed([TRAIN, COUNT])
    made.note(TRAIN, measured, 1.0)
    made.note(COUNT, replace(COUNTED, tables=5), 1.0)
    train, count = made.to_json({TRAIN: 4, COUNT: 1})
    assert train["event"] == event_to_json(replace(measured, steps=4))
    assert train["event"] != train["expected"]
    assert count["event"] == event_to_json(replace(COUNTED, tables=5))  # fewer tables, as they were
    assert count["lost"] == 0


@pytest.mark.parametrize("purpose", EVENTS)
def test_a_draw_beyond_the_plan_ends_the_run(purpose):
    access = ACCESSES[list(EVENTS).index(purpose)]
    made = Executed([access])
    for _ in range(steps_of(access)):
        made.note(access, DRAWS[purpose], 1.0)
    before = made.to_json()
    with pytest.raises(NotAsPriced) as refused:
        made.note(access, DRAWS[purpose], 1.0)
    assert refused.value.field == purpose
    assert made.to_json() == before


OTHERS = {
    "train": [
        replace(ONE_STEP, noise_multiplier=1.1 * 0.7), replace(ONE_STEP, noise_multiplier=1.1 * (1 - 1e-6)),
        replace(ONE_STEP, noise_multiplier=2.2), replace(ONE_STEP, sample_rate=0.26),
        replace(ONE_STEP, sampling="without-replacement"), COUNTED, ANSWERED, FOUND,
    ],
    "count": [
        replace(COUNTED, scale=12.4), replace(COUNTED, scale=25.0), replace(COUNTED, tables=7),
        replace(COUNTED, records=4), replace(COUNTED, records=2), ONE_STEP, ANSWERED, FOUND,
    ],
    "find": [
        replace(FOUND, epsilon=0.6), replace(FOUND, epsilon=0.4), replace(FOUND, delta=1.1e-7), ONE_STEP, COUNTED,
        PureEvent(epsilon=0.5),
    ],
    "answer": [
        replace(ANSWERED, epsilon=0.26), replace(ANSWERED, epsilon=0.24), ONE_STEP, COUNTED,
        ApproximateEvent(epsilon=0.25, delta=1e-9),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("purpose", "event"), [(name, event) for name, events in OTHERS.items() for event in events])
def test_another_event_than_was_priced_ends_the_run(purpose, event):
    """More noise than was planned is another event, too: somebody is mistaken about what runs."""
    access = ACCESSES[list(EVENTS).index(purpose)]
    made = Executed([access])
    with pytest.raises(NotAsPriced) as refused:
        made.note(access, event, 1.0)
    assert refused.value.field == purpose
    assert "\n" not in str(refused.value)
    assert made.to_json() == Executed([access]).to_json()


def test_less_than_was_paid_for_is_no_fault():
    made = Executed([COUNT, FIND])
    made.note(COUNT, replace(COUNTED, tables=1), 1.0)
    made.note(FIND, replace(FOUND, delta=1e-8), 1.0)
    made.refuse_unequal(1)
    assert as_priced(told(made))


def test_an_access_that_the_plan_does_not_have_is_no_place_for_a_note():
    with pytest.raises(KeyError):
        Executed([TRAIN]).note(COUNT, COUNTED, 1.0)


# -- whether that was all ----------------------------------------------------------------------------------------------


def test_a_run_is_done_when_all_of_it_was_authorised():
    made = all_run()
    made.refuse_unequal(5)  # four steps and a count; facts are marked elsewhere
    for authorised in (0, 4, 6):
        with pytest.raises(NotAsPriced) as refused:
            made.refuse_unequal(authorised)
        assert refused.value.field == "steps"


def test_lost_steps_count_as_authorised():
    made = Executed([TRAIN])
    made.note(TRAIN, ONE_STEP, 1.0)
    made.refuse_unequal(4)
    with pytest.raises(NotAsPriced):
        made.refuse_unequal(1)
    Executed([TRAIN]).refuse_unequal(4)  # all of them were lost
    Executed([]).refuse_unequal(0)


def test_a_run_in_which_something_else_was_noted_is_never_done(monkeypatch):
    made = Executed([TRAIN])
    with monkeypatch.context() as inner:
        inner.setattr(module, "_covers", lambda priced, ran: True)
        made.note(TRAIN, replace(ONE_STEP, noise_multiplier=0.9), 1.0)
    with pytest.raises(NotAsPriced) as refused:
        made.refuse_unequal(4)
    assert refused.value.field == "train"


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_what_was_written_is_taken_up_as_it_was():
    for made in (all_run(), Executed(ACCESSES), Executed([])):
        for taken in ({}, {access: steps_of(access) for access in made._ran}):
            again = Executed(made._ran)
            again.restore(told(made, taken))
            assert again.to_json(taken) == made.to_json(taken)
            assert again._ran == made._ran


def test_a_lost_step_is_taken_up_as_no_draw():
    made, again = Executed([TRAIN]), Executed([TRAIN])
    made.note(TRAIN, ONE_STEP, 2.0)
    again.restore(told(made, {TRAIN: 3}))
    assert again._ran == made._ran
    assert again._ran[TRAIN].event.steps == again.draws(TRAIN) == 1


def test_a_resumed_run_goes_on_counting():
    first = Executed([TRAIN, COUNT])
    first.note(TRAIN, ONE_STEP, 2.0)
    first.note(TRAIN, ONE_STEP, 0.5)
    resumed = Executed([TRAIN, COUNT])
    resumed.restore(told(first))
    resumed.note(TRAIN, ONE_STEP, 1.0)  # one was lost in between: authorised, and never drawn
    resumed.note(COUNT, COUNTED, 3.0)
    train, count = resumed.to_json({TRAIN: 4, COUNT: 1})
    assert (train["drawn"], train["lost"], train["sensitivity"]) == (3, 1, 2.0)
    assert (count["drawn"], count["lost"], count["sensitivity"]) == (1, 0, 3.0)
    resumed.refuse_unequal(5)
    assert as_priced(told(resumed, {TRAIN: 4, COUNT: 1}))
    assert not as_priced(told(resumed, {COUNT: 1}))  # a step is missing that nobody has paid for
    resumed.note(TRAIN, ONE_STEP, 1.0)
    with pytest.raises(NotAsPriced):
        resumed.note(TRAIN, ONE_STEP, 1.0)


def changed(place, **values):
    def change(written):
        written[place] |= values

    return change


def of_event(place, **values):
    def change(written):
        written[place]["event"] |= values

    return change


DAMAGED = {
    "another access's purpose": changed(0, purpose=COUNT.purpose),
    "another plan": changed(0, expected=event_to_json(replace(TRAINED, steps=5))),
    "no plan": changed(0, expected=None),
    "more draws than steps": changed(0, drawn=5),
    "an event without a draw": changed(0, drawn=0),
    "fewer than no draw": changed(0, drawn=-1),
    "half a draw": changed(0, drawn=1.5),
    "draws in words": changed(0, drawn="two"),
    "endless draws": changed(0, drawn=math.inf),
    "draws in a list": changed(0, drawn=[1]),
    "a length in words": changed(0, sensitivity="long"),
    "no length": changed(0, sensitivity=None),
    "less noise": of_event(0, noise_multiplier=0.77),
    "another rate": of_event(0, sample_rate=0.5),
    "another sampling": of_event(0, sampling="without-replacement"),
    "noise of no size": of_event(0, noise_multiplier=0),
    "more tables": of_event(1, tables=7),
    "two counts": changed(1, drawn=2),
    "an event of another kind": changed(1, event=event_to_json(ANSWERED)),
    "an event of no kind": changed(1, event={"type": "laplace", "epsilon": 0.25}),
    "an event in words": changed(1, event="discrete-gaussian"),
    "an entry too few": lambda written: written.pop(),
    "an entry too many": lambda written: written.append(written[0]),
    "another order": lambda written: written.reverse(),
    "an entry in words": lambda written: written.__setitem__(0, "train"),
    "an empty entry": lambda written: written.__setitem__(0, {}),
    "no entry": lambda written: written.__setitem__(0, None),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_does_not_belong_to_the_plan_is_not_taken_up(damage):
    written = told(all_run())
    DAMAGED[damage](written)
    with pytest.raises(RunFolderError) as refused:
        Executed(ACCESSES).restore(written)
    assert refused.value.field == "executed.json"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("written", [None, {}, "[]", 3, [[]], [None]])
def test_what_is_no_list_of_entries_is_not_taken_up(written):
    with pytest.raises(RunFolderError):
        Executed([TRAIN]).restore(written)


# -- what a card says --------------------------------------------------------------------------------------------------


def test_what_ran_as_priced_is_said_to_be():
    assert as_priced(told(all_run()))
    made = Executed([TRAIN])
    made.note(TRAIN, ONE_STEP, 1.0)
    assert as_priced(told(made, {TRAIN: 4}))  # three steps were lost, and are part of what was spent
    assert not as_priced(told(made))


def test_what_was_paid_for_and_lost_to_the_last_step_is_listed():
    (entry,) = told(Executed([TRAIN]), {TRAIN: 4})
    assert (entry["drawn"], entry["lost"], entry["sensitivity"]) == (0, 4, None)
    assert entry["event"] == entry["expected"] == event_to_json(TRAINED)
    (count,) = written = told(Executed([COUNT]), {COUNT: 1})
    assert (count["drawn"], count["lost"], count["event"]) == (0, 1, event_to_json(COUNTED))
    assert as_priced(written)
    assert not as_priced(told(Executed([TRAIN]), {TRAIN: 3}))


def test_what_never_ran_is_not():
    made = all_run()
    made._ran[ANSWER] = None
    assert not as_priced(told(made))
    assert not as_priced([])


CHANGES = {
    "less noise": of_event(0, noise_multiplier=0.77),
    "more steps": of_event(0, steps=5),
    "fewer steps": of_event(0, steps=3),
    "another rate": of_event(0, sample_rate=0.5),
    "less noise in counts": of_event(1, scale=12.0),
    "more tables": of_event(1, tables=7),
    "larger units": of_event(1, records=4),
    "a larger delta": of_event(2, delta=1e-6),
    "a larger epsilon": of_event(3, epsilon=0.3),
    "other kinds": changed(3, event=event_to_json(FOUND)),
    "no event": changed(0, event=None),
    "no price": changed(0, expected=None),
    "words": changed(0, event="gaussian"),
    "an unknown event": changed(0, event={"type": "laplace"}),
    "an event out of range": of_event(0, noise_multiplier=-1.0),
    "an event with more to it": of_event(0, seed=1),
    "no key": lambda written: written[0].pop("event"),
    "an entry in words": lambda written: written.__setitem__(0, "train"),
    "no entry": lambda written: written.__setitem__(0, None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_anything_else_is_not_as_priced(change):
    written = told(all_run())
    CHANGES[change](written)
    assert not as_priced(written)


@pytest.mark.parametrize("written", [None, 3, [None], [[]], ["train"], [3], {"purpose": "train"}])
def test_what_cannot_be_read_is_not_as_priced(written):
    assert not as_priced(written)


def test_reading_changes_nothing():
    written = told(all_run())
    before = copy.deepcopy(written)
    as_priced(written)
    Executed(ACCESSES).restore(written)
    assert written == before
