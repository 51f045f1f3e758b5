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
    data: Annotated[Path, typer.Argument(help="A table (CSV or Parquet) or images.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the schema.")],
    codebook: Annotated[
        Path | None, typer.Option(help="A codebook CSV: column,type,values,lower,upper,missing,…")
    ] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Draft a schema: names and storage types from the data, the rest from a codebook."""
    from doublure.files import refuse_overwriting, write_atomic
    from doublure.schema.draft import drafted

    refuse_overwriting(out, data, codebook)
    made = drafted(data, codebook)
    text, left = made.to_yaml().encode(), made.schema.undeclared
    write_atomic(out, lambda file: file.write(text))
    what = "images" if made.schema.kind == "images" else f"{len(made.schema.columns)} columns"
    done = f"Wrote {out}: {what}, {len(left)} facts still undeclared."
    advice = f"\nNext: doublure schema check {out}" if left else ""
    found = {"path": str(out), "columns": len(made.schema.columns), "undeclared": list(left)}
    return Outcome(data=found, text=done + advice)


def check(
    schema: Annotated[Path, typer.Argument(help="A schema file.")],
    data: Annotated[Path | None, typer.Option(help="Compare with this table's header.")] = None,
    as_json: Json = False,
    config: Config = None,
) -> Outcome:
    """Say field by field what is missing, as YAML to paste."""
    from doublure.schema.checking import check as compare

    found = compare(schema, data)
    return Outcome(data=found.to_plain(), text=found.to_yaml().rstrip("\n"))
