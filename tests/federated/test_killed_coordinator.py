"""A coordinator and its owners that are all killed with -9 go on: nothing is drawn, or charged anywhere, twice."""

from __future__ import annotations

import os

import pytest
from killed import draws, killed, noted_noise
from owners import Federation, dealt, plan_of, with_owners
from parted import LEARNED, check_equal, people

from doublure.errors import LostRun
from doublure.federated.clients import Clients
from doublure.federated.simulate import fit_remotely

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FACTS = 8
OWNERS = 2


def fitted(made, resume=False):
    """Fit with processes that know nothing but what is on disk."""
    for number in made.files:
        made.post.owners[number] = made.owner(number)
    asked = Clients(made.post, made.plan)
    return fit_remotely(asked, made.plan, ledger=made.ledger.path, out=made.folder / "run", seed=1, resume=resume)


def federation(folder, files):
    folder.mkdir()
    return Federation(folder, plan_of(with_owners(LEARNED)), files)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return dealt(people(), tmp_path_factory.mktemp("owners") / "clients", OWNERS)


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        noted_noise(patch, folder / "notes")
        syn = fitted(federation(folder / "fit", files))
    return syn, len(draws(folder / "notes"))


@pytest.mark.parametrize(
    ("point", "number"), [("asked", FACTS), ("kept", 3), ("asked", FACTS + 3), ("kept", FACTS + 4)]
)
def test_a_kill_outside_a_draw_costs_nothing(monkeypatch, tmp_path, files, whole, point, number):
    noted_noise(monkeypatch, tmp_path / "notes")
    made = federation(tmp_path / "fit", files)
    assert killed(lambda: fitted(made), point, number)
    before = draws(tmp_path / "notes")
    check_equal(whole[0], fitted(made, resume=True))
    every = draws(tmp_path / "notes")
    assert every[: len(before)] == before
    assert len(set(every)) == len(every) == whole[1]
    for book in (made.ledger, *map(made.book, made.files)):
        assert book.spent.epsilon == made.plan.epsilon
        assert [run["status"] for run in book.show()["runs"]] == ["done"]


def test_a_kill_within_a_draw_costs_the_draw_and_none_is_made_again(monkeypatch, tmp_path, files):
    noted_noise(monkeypatch, tmp_path / "notes")
    made = federation(tmp_path / "fit", files)
    assert killed(lambda: fitted(made), "paid", FACTS + 2, made.ledger.path)
    before = draws(tmp_path / "notes")
    with pytest.raises(LostRun, match="between paying for"):
        fitted(made, resume=True)
    assert draws(tmp_path / "notes") == before
