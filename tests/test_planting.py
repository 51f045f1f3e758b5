"""A mutant is anchored to the syntax tree, and one whose anchor is gone fails: it is never taken for a kill."""

from __future__ import annotations

import functools

import planting
import pytest
from planting import NO_KILL, plant

LIMIT = 3


def allowed(number: int, *, most: int = LIMIT) -> bool:
    """Not more than number > most."""
    # number > most
    if number > most:
        return False
    return bool(
        number
        <= most
    )  # fmt: skip


class Base:
    def name(self) -> str:
        return "base"


class Gate(Base):
    def name(self) -> str:
        return super().name() + " gate"

    @property
    def width(self) -> int:
        return 2 + LIMIT

    @classmethod
    def made(cls) -> str:
        return cls.__name__.upper()

    @staticmethod
    @functools.cache
    def twice(number: int) -> int:
        return number * 2


def outer() -> int:
    def inner() -> int:
        return 1

    def other() -> int:
        return 1

    return inner() + other()


HERE = __import__("sys").modules[__name__]
imported_elsewhere = allowed


def test_an_edit_is_found_however_it_is_written_and_reaches_every_name_of_the_function(monkeypatch):
    with monkeypatch.context() as patch:
        plant(patch, HERE, "allowed", ("number<=most", "number <= most + 9"), ("number > most", "number > most * 4"))
        assert imported_elsewhere(12)
        assert not imported_elsewhere(13)
    assert not imported_elsewhere(4)


def test_statements_stand_for_statements(monkeypatch):
    plant(monkeypatch, HERE, "allowed", ("if number > most:\n    return False", "number -= 1\n    most += 1"))
    assert allowed(5)


def test_methods_properties_and_closures_are_reached(monkeypatch):
    plant(monkeypatch, Gate, "name", ("' gate'", "' door'"))
    plant(monkeypatch, Gate, "width", ("LIMIT", "10 * LIMIT"))
    plant(monkeypatch, Gate, "made", ("cls.__name__.upper", "cls.__name__.lower"))
    plant(monkeypatch, Gate, "twice", ("2", "3"))
    assert (Gate().name(), Gate().width, Gate.made(), Gate.twice(5)) == ("base door", 32, "gate", 15)


def test_keyword_arguments_come_and_go(monkeypatch):
    def arguments(**given: int) -> dict[str, int]:
        return given

    monkeypatch.setattr(HERE, "arguments", arguments, raising=False)
    plant(monkeypatch, HERE, "calling", ("one=1, two=2", "three=3"))
    assert calling() == {"three": 3, "four": 4}


def calling() -> dict[str, int]:
    return arguments(one=1, two=2, four=4)  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (HERE, "allowed", ("number >= most", "False")),
        (HERE, "allowed", ("most", "1")),
        (HERE, "allowed", ("LIMIT", "9")),
        (HERE, "allowed", ("numb", "1")),
        (HERE, "allowed", ("if number > most:", "if False:")),
        (HERE, "gone", ("1", "2")),
        (HERE, "LIMIT", ("3", "4")),
        (HERE, "outer", ("1", "2")),
        (Gate, "made", ("cls.__name__.upper()", "super().name()")),
    ],
    ids=["gone", "twice", "a default", "half a name", "no syntax", "no function", "a number", "in two closures",
         "another closure"],
)  # fmt: skip
def test_an_anchor_that_does_not_fit_fails_and_is_no_kill(monkeypatch, owner, name, edit):
    def checked() -> None:
        try:
            plant(monkeypatch, owner, name, edit)
        except Exception as error:  # a check that takes any error for a kill does not get to see this one
            raise AssertionError from error

    with pytest.raises(pytest.fail.Exception, match=f"^{NO_KILL}: "):
        checked()


def test_a_mutant_is_not_planted_in_a_mutant(monkeypatch):
    plant(monkeypatch, HERE, "allowed", ("number > most", "False"))
    with pytest.raises(pytest.fail.Exception, match=NO_KILL):
        plant(monkeypatch, HERE, "allowed", ("number <= most", "False"))


def test_the_check_of_a_lab_does_not_take_it_for_a_kill():
    assert not issubclass(pytest.fail.Exception, AssertionError)
    assert not issubclass(pytest.fail.Exception, Exception)
    assert planting.NO_KILL
