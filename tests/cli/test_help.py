"""Every command and every group explains itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer.main

from doublure.cli.main import VERBS, app


def words_of(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the words of a command and of all below it, whichever click it was made with."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from words_of(below, (*words, name))


COMMANDS = tuple(words_of(typer.main.get_command(app)))


def test_every_verb_is_walked():
    assert {words[0] for words in COMMANDS if words} == set(VERBS)
    assert ("budget", "show") in COMMANDS


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "doublure")
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(words, flag, doublure):
    said = doublure(*words, flag)
    assert (said.code, said.err) == (0, "")
    assert said.out.split()[: 2 + len(words)] == ["Usage:", "doublure", *words]
    assert flag in said.out
