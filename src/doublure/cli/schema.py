"""``doublure schema draft|check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doublure.cli.options import Config, Json
from doublure.cli.terminal import Outcome


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(no_args_is_help=True, help="Describe what is public about a table.", rich_markup_mode=None)
    group.command("draft")(draft)
    group.command("check")(check)
    app.add_typer(group, name="schema")


def draft(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the schema.")],
    codebook: Annotated[Path | None, typer.Option(help="A codebook CSV: column,type,values,lower,upper,missing,…")] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Draft a schema: names and storage types from the data, the rest from a codebook."""
    from doublure.schema.draft import draft_text

    text, schema = draft_text(data, codebook)
    from doublure.files import write_atomic

    write_atomic(out, lambda file: file.write(text.encode()))
    left = schema.undeclared
    done = f"Wrote {out}: {len(schema.columns)} columns, {len(left)} facts still undeclared."
    advice = f"\nNext: doublure schema check {out}" if left else ""
    return Outcome(data={"path": str(out), "columns": len(schema.columns), "undeclared": list(left)}, text=done + advice)


def check(
    schema: Annotated[Path, typer.Argument(help="A schema file.")],
    data: Annotated[Path | None, typer.Option(help="Compare with this table's header.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Say field by field what is missing, as YAML to paste."""
    from doublure.schema import Schema
    from doublure.schema.draft import check as compare

    found = compare(Schema.load(schema), data)
    return Outcome(data=found.to_json(), text=found.text())
