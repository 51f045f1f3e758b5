"""Every command and every group explains itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import typer.main

from doublure.cli.main import VERBS, app
from doublure.cli.verb import EXAMPLES, example_for


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


def test_every_command_and_nothing_else_has_an_example():
    groups = {words[:1] for words in COMMANDS if len(words) > 1}
    assert set(EXAMPLES) == set(COMMANDS) - groups
    for group in groups:
        assert example_for(group) in {EXAMPLES[words] for words in COMMANDS if words[:1] == group and len(words) > 1}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "doublure")
def test_an_example_is_shown_and_parses(words, doublure, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = doublure(*words, "--help").out
    for line in example_for(words).splitlines():
        assert f"  {line}\n" in shown
        assert len(line) < 80 - 2
    assert "NO_COLOR=1" in shown
    for typed in example_for(words).replace("\\\n", " ").splitlines():
        name, *given = shlex.split(typed)
        assert name == "doublure"
        command, path = typer.main.get_command(app), []
        while hasattr(command, "commands"):
            path.append(given[0])
            command = command.commands[given.pop(0)]
        assert tuple(path)[: len(words)] == words
        command.make_context(" ".join(path), given)  # which refuses a flag that is not there, or is missing


def test_no_line_of_any_help_is_wider_than_a_terminal(doublure, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in COMMANDS:
        for line in doublure(*words, "--help").out.splitlines():
            assert len(line) <= 80, (words, line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_words_are_completed(shell, doublure, monkeypatch):
    import subprocess
    import sys

    monkeypatch.setenv("_DOUBLURE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "doublure plan --method sta")
    monkeypatch.setenv("COMP_CWORD", "3")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "doublure plan --method sta")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    code = "import sys; sys.argv = ['doublure']; from doublure.cli import run; run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert re.findall(r"\bstatistics\b", done.stdout), done
    assert "guided" not in done.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "doublure")
def test_no_seed_is_said_to_repeat_a_fit(words, doublure):
    said = " ".join(doublure(*words, "--help").out.split())
    repeats, fixes = "Repeats what is drawn here." in said, "a fit's noise is fresh each time." in said
    assert not (repeats and fixes)
    assert fixes == (words in {("fit",), ("federate", "simulate"), ("audit",)})
    assert "the result repeatable" not in said
