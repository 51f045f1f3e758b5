"""Command lines of the benchmarks: verbs, and options whose defaults say what they take."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any


def command_line(
    about: str | None, verbs: Iterable[str] = (), *, line: Sequence[str] | None = None, **options: object
) -> argparse.Namespace:
    """Read the command line.

    Args:
        about: The program.
        verbs: What it can do; none if it does one thing.
        line: What stands for the command line.
        options: A default says what an option takes: one value, several of a list, a flag of ``False``. A type is an
            option without a default; :func:`choice`, :func:`some` and :func:`told` say more, and so does a mapping of
            arguments of :meth:`argparse.ArgumentParser.add_argument`.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if verbs:
        parser.add_argument("verb", choices=list(verbs))
    for name, said in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **_arguments(said))
    return parser.parse_args(line)


def choice(choices: Iterable[str], default: str) -> dict[str, Any]:
    """Return an option that takes one of some words."""
    return {"choices": list(choices), "default": default}


def some(choices: Iterable[str], default: Sequence[str] | None = None) -> dict[str, Any]:
    """Return an option that takes several of some words: all of them, if none is given."""
    known = list(choices)
    return {"nargs": "+", "choices": known, "default": known if default is None else list(default)}


def told(said: object, what: str) -> dict[str, Any]:
    """Return an option with a line of help."""
    return {**_arguments(said), "help": what}


def _arguments(said: object) -> dict[str, Any]:
    if isinstance(said, dict):
        return said
    if said is False:
        return {"action": "store_true"}
    if isinstance(said, list):
        return {"nargs": "+", "type": type(said[0]), "default": said} if said else {"nargs": "*", "default": []}
    return {"type": said} if isinstance(said, type) else {"type": type(said), "default": said}
