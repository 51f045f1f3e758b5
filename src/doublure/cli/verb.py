"""Shared ``--help`` of all commands: an example, and the flags that every command takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from doublure.cli.options import with_names
from doublure.errors import SettingError
from doublure.support.guessing import suggest

_EVERYWHERE = (
    "Every command takes -q (says nothing but errors) and --json. NO_COLOR=1 in the",
    "environment turns colours off; doublure --install-completion completes words.",
)
EXAMPLES: Mapping[tuple[str, ...], str] = {
    (): "doublure demo --files\ndoublure schema check adult.schema.yaml --data adult.csv",
    ("demo",): "doublure demo --files",
    ("studio",): "doublure studio",
    ("schema", "draft"): "doublure schema draft adult.csv --codebook adult.codebook.csv -o draft.yaml",
    ("schema", "check"): "doublure schema check adult.schema.yaml --data adult.csv --values misfits.csv",
    ("schema", "codebook"): "doublure schema codebook adult.schema.yaml -o adult.codebook.csv",
    ("budget", "init"): "doublure budget init adult.ledger --dataset adult --epsilon 3 --delta 1e-5",
    ("budget", "show"): "doublure budget show adult.ledger",
    ("budget", "verify"): "doublure budget verify adult.ledger",
    ("plan",): "doublure plan adult.schema.yaml --epsilon 1 --delta 1e-6 -o plan.json",
    ("fit",): "doublure fit adult.csv --plan plan.json --ledger adult.ledger -o run",
    ("federate", "simulate"): (
        "doublure federate simulate --plan plan.json --clients clients \\\n  --ledger all.ledger -o run"
    ),
    ("federate", "init"): "doublure federate init app --plan plan.json --host link.example.org",
    ("federate", "logs"): "doublure federate logs app --follow",
    ("sample",): 'doublure sample run -n 99 --given age=30.. --given "income=>50K" -o rows.csv',
    ("label", "out"): "doublure label out run -n 300 -o task",
    ("label", "read"): "doublure label read task -o labelled.npz",
    ("label", "curve"): "doublure label curve task --real digits.npz",
    ("label", "public"): (
        "doublure label public run letters.npz --schema letters.schema.yaml \\\n"
        "  --provenance letters.provenance.yaml -n 300 -o labelled.npz"
    ),
    ("public", "fit"): (
        "doublure public fit letters.npz --schema letters.schema.yaml \\\n"
        "  --provenance letters.provenance.yaml -o generator"
    ),
    ("public", "adopt"): (
        "doublure public adopt weights.safetensors --schema letters.schema.yaml \\\n"
        "  --provenance letters.provenance.yaml -o generator"
    ),
    ("public", "show"): "doublure public show generator",
    ("public", "overlap"): "doublure public overlap letters.npz --private digits.npz \\\n  --schema digits.schema.yaml",
    ("evaluate",): "doublure evaluate run --real adult.csv --holdout kept.csv",
    ("compare",): "doublure compare run other-run --real adult.csv -o which.html",
    ("inspect",): "doublure inspect run --against right-run",
    ("release",): 'doublure release run -n 5000 --title "Synthetic census records" -o bundle',
    ("verify",): "doublure verify bundle --ledger adult.ledger",
    ("keys", "new"): "doublure keys new -o steward.key",
    ("datasets", "list"): "doublure datasets list",
    ("datasets", "fetch"): "doublure datasets fetch mushroom -o data",
    ("audit",): "doublure audit run --attack quick --real adult.csv --holdout kept.csv",
    ("dossier",): "doublure dossier run -o dossier.html",
    ("doctor",): "doublure doctor",
}
_SHOWN = {
    "schema": "draft", "budget": "init", "federate": "simulate", "label": "out", "public": "show", "keys": "new",
    "datasets": "list",
}  # fmt: skip
"""The verb whose example stands for its group."""
_ELSEWHERE = {
    "ledger": "budget", "init": "budget init", "draft": "schema draft", "check": "schema check", "train": "fit",
    "generate": "sample", "synthesize": "sample", "report": "evaluate", "publish": "release", "validate": "verify",
    "attack": "audit", "serve": "studio",
}  # fmt: skip
"""The commands by their names in other tools."""


def example_for(words: tuple[str, ...]) -> str:
    """Return the example of a command, given its words after ``doublure``."""
    return EXAMPLES.get(words) or EXAMPLES[*words, _SHOWN[words[0]]]


def _epilog(context: Any, formatter: Any) -> None:
    words = tuple(context.command_path.split()[1:])
    formatter.write("\nExample:\n" + "".join(f"  {line}\n" for line in example_for(words).splitlines()))
    formatter.write("\n" + "".join(f"{line}\n" for line in _EVERYWHERE))


class VerbCommand(TyperCommand):
    """A command whose help ends with an example, and whose flags list the names that they take."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self._name_lists()
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example."""
        _epilog(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete a word; some shells show a flag's help beside it."""
        self._name_lists()
        return super().shell_complete(ctx, incomplete)

    def _name_lists(self) -> None:
        flags: list[Any] = self.params
        for flag in flags:
            flag.help = flag.help and with_names(flag.help)


class VerbGroup(TyperGroup):
    """A group of commands whose help ends with an example."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example."""
        _epilog(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the first word, and the words after it.

        Raises:
            SettingError: There is none of that name; the remedy is the one that was meant.
        """
        word = args[0]
        if not (ctx.resilient_parsing or word.startswith("-") or self.get_command(ctx, word)):
            meant = _ELSEWHERE.get(word) if ctx.parent is None else None
            near = f"did you mean doublure {meant}?" if meant else suggest(word, self.list_commands(ctx))
            remedy = f"{near}{'' if near.endswith('?') else ';'} see {ctx.command_path} --help"
            raise SettingError(f"{ctx.command_path} has no command {word!r}", remedy=remedy)
        return super().resolve_command(ctx, args)


class VerbApp(typer.Typer):
    """A typer application whose commands and groups have this help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=VerbGroup, rich_markup_mode=None, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command."""
        return super().command(name, cls=VerbCommand, **settings)
