"""What every command's ``--help`` has in common: an example, and the flags that all of them take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from doublure.cli.examples import EXAMPLES
from doublure.cli.options import with_names

_EVERYWHERE = (
    "Every command takes -q (says nothing but errors) and --json. NO_COLOR=1 in the",
    "environment turns colours off; doublure --install-completion completes words.",
)


def _epilog(context: Any, formatter: Any) -> None:
    words = tuple(context.command_path.split()[1:])
    formatter.write("\nExample:\n" + "".join(f"  {line}\n" for line in EXAMPLES[words].splitlines()))
    formatter.write("\n" + "".join(f"{line}\n" for line in _EVERYWHERE))


class Verb(TyperCommand):
    """A command whose help ends with an example, and whose flags list the names that they take."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self._name_lists()
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example."""
        _epilog(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete a word; some shells show the help of a flag."""
        self._name_lists()
        return super().shell_complete(ctx, incomplete)

    def _name_lists(self) -> None:
        flags: list[Any] = self.params
        for flag in flags:
            flag.help = flag.help and with_names(flag.help)


class Group(TyperGroup):
    """A group of commands whose help ends with an example."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example."""
        _epilog(ctx, formatter)


class Verbs(typer.Typer):
    """Commands of this kind, made as typer makes them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=Group, rich_markup_mode=None, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command."""
        return super().command(name, cls=Verb, **settings)
