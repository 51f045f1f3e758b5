"""``doublure release``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doublure.cli.options import PLACE, Config, Json, Sampling, Seed, settings
from doublure.cli.terminal import TerminalProgress, VerbResult
from doublure.errors import SettingError

if TYPE_CHECKING:
    from doublure.releasing.issuing import Bundle
    from doublure.run.synthesizer import Synthesizer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("release")(release)


def release(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[str, typer.Option("-o", "--out", metavar=PLACE, help="The bundle's folder.")],
    rows: Annotated[
        int | None,
        typer.Option(
            "-n", "--rows", min=1, help="How many rows, images, series (each of several rows) or units, at least 1."
        ),
    ] = None,
    generator: Annotated[
        bool, typer.Option("--generator", help="Publish the generator itself, for others to sample from.")
    ] = False,
    ledger: Annotated[
        str | None, typer.Option(metavar=PLACE, help="The ledger, if it has moved since the fit.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv and parquet if left out, npz for images; also xlsx, jsonl, feather, dta, sav.",
        ),
    ] = None,
    spreadsheet_safe: Annotated[bool, typer.Option("--spreadsheet-safe", help="Defuse formulas in text.")] = False,
    into: Annotated[
        str | None,
        typer.Option(
            metavar=PLACE,
            help="Put the rows into a table, too: duckdb:///file.db?table=people, postgresql://user@host/database/people.",
        ),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="Publish the noisy tables that the fit bought, with their standard errors.")
    ] = False,
    zip_: Annotated[bool, typer.Option("--zip", help="Write the bundle as one ZIP file, too, to send.")] = False,
    title: Annotated[str | None, typer.Option(help="The card's title.")] = None,
    description: Annotated[str | None, typer.Option(help="What the data are, in a sentence or a few.")] = None,
    licence: Annotated[str | None, typer.Option(help="Under which the release may be used.")] = None,
    citation: Annotated[str | None, typer.Option(help="How to cite it.")] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask.")] = None,
    link: Annotated[list[str] | None, typer.Option(help="The address of a page that says more; repeatable.")] = None,
    sign: Annotated[
        Path | None, typer.Option(help="Sign the card with this private key, which doublure keys new makes.")
    ] = None,
    sampling: Sampling = None,
    seed: Seed = None,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Write a bundle, or the generator, to publish."""
    from doublure.releasing.bundle import release as write
    from doublure.releasing.plain_words import opening
    from doublure.run.loading import load
    from doublure.schema.kinds import KINDS

    if generator:
        given = {
            "rows": rows,
            "format": formats,
            "into": into,
            "spreadsheet-safe": spreadsheet_safe or None,
            "seed": seed,
        }
        _refuse_records([name for name, value in given.items() if value is not None])
    elif rows is None:
        remedy = "say how many rows to release, or give --generator"
        raise SettingError("is needed", field="-n", remedy=remedy)
    said: dict[str, Any] = {"title": title, "description": description, "licence": licence, "citation": citation}
    said |= {"contact": contact, "links": link or (), "sign": sign}
    syn = load(run).sampling_with(**settings(sampling))
    archive = _archive(out) if zip_ else None
    if generator or rows is None:
        return _published(syn, out, ledger, said, archive)
    wanted = [form.strip() for word in formats or () for form in word.split(",") if form.strip()]
    with _table(into, syn.schema.kind, wanted) as rows_too, TerminalProgress() as progress:
        bundle = write(
            syn,
            out,
            n=rows,
            seed=seed,
            ledger=ledger,
            formats=None if formats is None else wanted,
            spreadsheet_safe=spreadsheet_safe,
            tables=tables,
            progress=progress,
            **said,
        )
        if rows_too is not None:
            shutil.copy(Path(out, _ROWS), rows_too)
    card, packed = bundle.card, _packed(bundle, archive)
    records = KINDS[syn.schema.kind].records
    sentence = card["guarantee"]["sentence"]
    counted = " and noisy tables of counts" if tables else ""
    text = f"{opening(card['guarantee'], syn.schema)}\nWrote {out} with {rows:,} synthetic {records}{counted}."
    if syn.guarantee.kind == "none":
        text = f"*** {sentence} ***\nWrote {out} with {rows} {records} that nothing protects."
    if into is not None:
        text += f" They are in {into}, too."
    text = "\n".join([text, *(f"Note: {note}." for note in [*syn.notes, *_unsaid(card)]), *packed, *_receipt(bundle)])
    return VerbResult(data=_data(out, bundle, archive), text=text)


def _unsaid(card: Mapping[str, Any]) -> list[str]:
    """Return what readers of a card will miss: whom to ask, and what they may do."""
    missing = [word for word in ("contact", "licence") if not card.get(word)]
    flags = " and ".join(f"--{word}" for word in missing)
    return [f"the card names no {' and no '.join(missing)}; write another release with {flags}"] if missing else []


_ROWS = "data.parquet"


@contextmanager
def _table(into: str | None, kind: str, forms: Sequence[str]) -> Iterator[Path | None]:
    """Yield a path for the rows, which then become a table of a database; None without one.

    Raises:
        SettingError: The release has no rows of one table as Parquet, which keeps types, or there is such a table.
    """
    if into is None:
        yield None
        return
    from doublure.data.databases.streaming import table_output
    from doublure.releasing.writing import WRITERS

    writer = WRITERS[kind]
    if writer.split is not None or "parquet" not in (forms or writer.forms):
        remedy = "release one table, with --format parquet among others, or leave it out"
        raise SettingError("takes the rows of a Parquet file, which is not released", field="into", remedy=remedy)
    with table_output(into, forced=False) as path:
        yield path


def _archive(out: str) -> Path:
    """Return the path of the bundle's ZIP file, beside its folder.

    Raises:
        SettingError: The bundle goes into an object store.
        InputError: Something is there already.
    """
    from doublure.support.files import check_output
    from doublure.support.objects import is_address

    if is_address(out):
        raise SettingError("needs a folder of this machine", field="--zip", remedy="leave it out, or give another -o")
    path = Path(out).absolute()
    path = path.with_name(f"{path.name}.zip")
    check_output(path)
    return path


def _packed(bundle: Bundle, archive: Path | None) -> list[str]:
    """Write the ZIP file, if one is wanted, and return the line that says so."""
    if archive is None:
        return []
    from doublure.releasing.archive import pack

    return [f"Wrote {pack(bundle.path, archive)}: the same files as one, to send."]


def _data(out: str, bundle: Bundle, archive: Path | None) -> dict[str, Any]:
    found = {
        "bundle": str(out),
        "card": bundle.card,
        "fingerprint": bundle.fingerprint,
        "signed_by": bundle.signed_by,
    }
    return found if archive is None else {**found, "archive": str(archive)}


def _receipt(bundle: Bundle) -> list[str]:
    """Return the lines that the publisher sends to recipients through another channel than the bundle."""
    from doublure.releasing.signing import spelt

    lines = [f"Fingerprint of card.json (SHA-256), to be published apart from the bundle: {spelt(bundle.fingerprint)}"]
    return lines if bundle.signed_by is None else [*lines, f"Signed by the key {spelt(bundle.signed_by)}"]


def _refuse_records(given: list[str]) -> None:
    """Refuse flags about records where a generator is released, which has none."""
    if given:
        raise SettingError(
            "says how records are written", field=f"--{given[0]}", remedy="leave it out with --generator"
        )


def _published(
    syn: Synthesizer, out: str, ledger: str | None, said: dict[str, Any], archive: Path | None
) -> VerbResult:
    from doublure.releasing.generator import publish
    from doublure.releasing.plain_words import opening

    bundle = publish(syn, out, ledger=ledger, **said)
    opened = opening(bundle.card["guarantee"], syn.schema)
    text = f"{opened}\nWrote {out}: a generator, to sample from with doublure sample."
    notes = [f"Note: {note}." for note in _unsaid(bundle.card)]
    told = [text, *notes, *_packed(bundle, archive), *_receipt(bundle)]
    return VerbResult(data=_data(out, bundle, archive), text="\n".join(told))
