"""A forger rewrites a bundle with doublure itself, hashes and page included: who finds it, and who cannot.

Each forgery changes one file and then puts everything right that a forger can: hashes in ``card.json``, the page, a
signature by a key of their own. ``ANYBODY`` finds it without ledger and key. ``ELSEWHERE`` says that it agrees with its
card, whoever wrote that: then the ledger finds it, and so does the publisher's key. Neither ever passes one.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import planting
import pyarrow.parquet as pq
import pytest
from tiers import crossed

import doublure as db
from doublure.data.images import Images
from doublure.data.series import Series
from doublure.errors import GateFailed, SettingError
from doublure.guarantee import Guarantee
from doublure.releasing import cells, checking, drawings, reading, signing, verifying
from doublure.releasing.catalogue_names import NAMES
from doublure.releasing.catalogues.registry import write_catalogues
from doublure.releasing.checking import DICTIONARY, PAGE, check_contents
from doublure.releasing.generator import publish
from doublure.releasing.issuing import file_entry, write_page
from doublure.releasing.reading import ContentMismatch
from doublure.releasing.writing import WRITERS
from doublure.support import files

ANYBODY, ELSEWHERE = "anybody", "the ledger and the key alone"
ROWS = 40
PEOPLE = """
doublure: 1
kind: table
unit: {id: row}
units: 200
columns:
  row: {type: id}
  age: {type: integer, bounds: [0, 99], missing: true}
  pay: {type: real, bounds: [0, 10], precision: 1, missing: false}
  job: {type: category, values: [cook, "=cmd"], missing: ["?"]}
  on: {type: boolean, missing: false}
  day: {type: date, bounds: [2020-01-01, 2020-12-31], missing: true}
  at: {type: datetime, bounds: [2020-01-01T00:00:00, 2020-12-31T00:00:00], step: 60, timezone: Europe/Berlin,
       missing: false}
"""
RELATED = """
doublure: 1
kind: relational
unit: {name: person}
units: 100
tables:
  people: {key: nr, columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}}
  stays:
    parent: people
    foreign_key: nr
    max_children: 3
    columns: {nr: {type: id}, stay: {type: id}, ward: {type: category, values: [a, b], missing: false}}
"""
SERIES = """
doublure: 1
kind: series
units: 60
unit: {name: day, id: null}
series: {length: 6}
channels:
  litres: {type: real, bounds: [0, 10], precision: 1, missing: false}
  level: {type: real, bounds: [0, 1], missing: false}
  state: {type: category, values: [up, down], missing: false}
attributes: {month: {type: ordinal, values: [1, 2], missing: false}}
"""
IMAGES = """
doublure: 1
kind: images
units: 60
images: {shape: [6, 6, 1]}
label: {values: [a, b]}
"""


def people(n=200):
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "row": range(n),
            "age": draw.integers(0, 99, n),
            "pay": np.round(draw.random(n) * 10, 1),
            "job": draw.choice(["cook", "=cmd", "?"], n),
            "on": draw.random(n) < 0.5,
            "day": "2020-02-03",
            "at": "2020-05-05 10:00:00",
        }
    )


def related():
    draw = np.random.default_rng(0)
    stays = {"nr": np.repeat(range(100), 2), "stay": range(200), "ward": draw.choice(["a", "b"], 200)}
    return {
        "people": pd.DataFrame({"nr": range(100), "sex": draw.choice(["f", "m"], 100)}),
        "stays": pd.DataFrame(stays),
    }


def series():
    draw = np.random.default_rng(0)
    numbers = [np.round(draw.random((60, 6)) * 10, 1), draw.random((60, 6)), (draw.random((60, 6)) < 0.5).astype(float)]
    return Series(
        values=np.stack(numbers, axis=2),
        channels=("litres", "level", "state"),
        attributes=pd.DataFrame({"month": draw.choice([1, 2], 60)}),
        states={"state": ("up", "down")},
    )


def images():
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, 255, (60, 6, 6, 1)).astype(np.uint8)
    return Images(images=pixels, labels=pd.Series(draw.choice(["a", "b"], 60)))


TINY = {"steps": 2, "lot_size": 10, "noise_width": 4, "generator_batch": 8}
PRIVATE: dict[str, tuple[str, Callable[[], Any], dict[str, Any]]] = {
    "table": (PEOPLE, people, {"method": "statistics", "components": 2, "starts": 1}),
    "relational": (RELATED, related, {"method": "statistics"}),
    "series": (SERIES, series, {"method": "statistics"}),
    "images": (IMAGES, images, {"method": "dpgan", **TINY}),
}


@dataclass(frozen=True)
class World:
    """A fitted run, a signed bundle of it and a signed generator, and who knows them; only read, or copied."""

    folder: Path
    syn: db.Synthesizer

    @property
    def ledger(self):
        return self.folder / "ledger"

    @property
    def public(self):
        return self.folder / "keys" / "steward.key.pub"

    @property
    def forger(self):
        return self.folder / "keys" / "forger.key"


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    @cache
    def world(kind):
        text, data, how = PRIVATE[kind]
        folder = tmp_path_factory.mktemp(kind)
        planned = db.plan(db.Schema.parse(text), epsilon=2.0, delta=1e-4, accountant="rdp", **how)
        book = db.Ledger.create(folder / "ledger", dataset=kind, epsilon=2.0, delta=1e-3)
        syn = db.fit(data(), planned, ledger=book, out=folder / "run", progress=False)
        (folder / "keys").mkdir()
        for name in ("steward", "forger"):
            signing.new_keys(folder / "keys" / f"{name}.key")
        key = folder / "keys" / "steward.key"
        db.release(syn, folder / "bundle", n=ROWS, seed=1, tables=bool(syn.tables), sign=key, progress=False)
        publish(syn, folder / "generator", sign=key)
        return World(folder, syn)

    return world


# -- what a forger does ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forged:
    """A copy of a bundle in a forger's hands."""

    world: World
    path: Path

    @property
    def card(self):
        return json.loads((self.path / "card.json").read_text())

    def state(self, card):
        files.write_json(self.path / "card.json", card)

    def claim(self, **said):
        self.state(self.card | said)

    def put_right(self, *, page=True, catalogues=True):
        """Make hashes, descriptions and page consistent, and sign with the forger's own key."""
        if catalogues and (self.path / DICTIONARY).exists():
            with contextlib.suppress(Exception):  # then nobody can write them
                write_catalogues(self.path, self.rehashed(), json.loads((self.path / DICTIONARY).read_text()))
        self.hash_again()
        if page:
            with contextlib.suppress(ContentMismatch, SettingError):  # then nobody can draw it
                card = self.card
                about = {"watermark": card["watermark"], "guarantee": card["guarantee"]["sentence"]}
                write_page(self.path, card, check_contents(self.path, card, about)[0])
        self.hash_again()
        key = signing.signing_key(self.world.forger, self.path)
        signing.sign(self.path, (self.path / "card.json").read_bytes(), key)

    def rehashed(self):
        present = [file for file in self.card["files"] if (self.path / file["path"]).exists()]
        return self.card | {"files": [file_entry(self.path, file["path"], file["rows"]) for file in present]}

    def hash_again(self):
        self.state(self.rehashed())

    def write(self, records, *forms):
        """Write records in some of the forms, as doublure writes them; return how many each file has."""
        schema, found = self.world.syn.schema, {}
        writer, about = WRITERS[schema.kind], self.world.syn.guarantee.about
        for form in forms or writer.forms:
            if writer.split is None:
                found[f"data.{form}"] = len(records)
                writer.write([records], self.path / f"data.{form}", schema, len(records), False, about)
            else:
                found |= writer.split([records], self.path, schema, form, False, about)
        return found

    def drawn(self, n=ROWS, seed=1):
        chunks = list(self.world.syn.sample_chunks(n, seed=seed))
        assert len(chunks) == 1
        return chunks[0]


def other_rows(forged):
    found = forged.write(forged.drawn(seed=2))
    forged.claim(files=[file | {"rows": found.get(file["path"], file["rows"])} for file in forged.card["files"]])


def in_one_form(form):
    return lambda forged: forged.write(forged.drawn(seed=2), form)


def edited(column, value, row=3):
    def forge(forged):
        frame = forged.drawn()
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
        forged.write(frame)

    return forge


def rows(change):
    """Change how many rows there are, and say so on the card or not."""

    def forge(forged):
        forged.write(forged.drawn(ROWS + change))

    return forge


def text_of(path, change):
    """Change a file's text."""

    def forge(forged):
        before = (forged.path / path).read_text()
        (forged.path / path).write_text(change(before))
        assert (forged.path / path).read_text() != before

    forge.catalogues = path in NAMES
    return forge


def spelt(column, how):
    """Write the cells of a column of ``data.csv`` otherwise, so that they are the same numbers."""

    def change(text):
        head, *lines = (line.split(",") for line in text.splitlines())
        place = head.index(column)
        for line in lines:
            line[place] = how(line[place]) if line[place] else ""
        return "\n".join(",".join(line) for line in [head, *lines]) + "\n"

    return text_of("data.csv", change)


def told_of_itself(path):
    """Let a Parquet file say more in its metadata."""

    def forge(forged):
        table = pq.read_table(forged.path / path)
        said = table.schema.metadata | {b"comment": b"Smith, Jones"}
        pq.write_table(table.replace_schema_metadata(said), forged.path / path)

    return forge


def claim_at_a_tiny_delta(forged):
    """A small ε, at a δ of which the second accountant cannot say what it costs."""
    claim = {**forged.card["guarantee"], "epsilon": 0.01, "delta": 1e-12, "sentence": None}
    better = Guarantee.from_json(claim)
    forged.claim(guarantee=better.to_json())
    for path in forged.path.rglob("*.parquet"):
        table = pq.read_table(path)
        said = table.schema.metadata | {key.encode(): value.encode() for key, value in better.about.items()}
        pq.write_table(table.replace_schema_metadata(said), path)


def another_name_of_a_noisy_table(forged):
    old, new = "tables/one-way.parquet", "tables/open-me.html"
    (forged.path / old).rename(forged.path / new)
    forged.claim(files=[entry | {"path": new} if entry["path"] == old else entry for entry in forged.card["files"]])
    text_of("dictionary.json", lambda text: text.replace(old, new))(forged)


def rows_on_the_card(forged):
    files = [file | {"rows": file["rows"] and file["rows"] + 1} for file in forged.card["files"]]
    forged.claim(files=files)


def real_table(*forms):
    def forge(forged):
        for form in ("csv", "parquet"):
            if form not in forms:
                (forged.path / f"data.{form}").unlink()
        forged.claim(files=[file | {"rows": file["rows"] and 200} for file in forged.card["files"]])
        people().to_csv(forged.path / "data.csv", index=False)

    return forge


def csv_line(line):
    def forge(forged):
        with next(forged.path.glob("*.csv")).open("ab") as file:
            file.write(line)

    return forge


def dictionary(change):
    def forge(forged):
        path = forged.path / "dictionary.json"
        described = json.loads(path.read_text())
        change(described)
        files.write_json(path, described)

    return forge


def column(name, **facts):
    def change(described):
        (entry,) = (entry for entry in described["columns"] if entry["name"] == name)
        entry.update(facts)

    return dictionary(change)


def page(change):
    def forge(forged):
        path = forged.path / PAGE
        before = path.read_text()
        path.write_text(change(before))
        assert path.read_text() != before

    forge.page = True
    return forge


def no_page(forged):
    (forged.path / PAGE).unlink()


no_page.page = True


def catalogue(path, change):
    """Change a description for catalogues, written as doublure writes it."""

    def forge(forged):
        told = json.loads((forged.path / path).read_text())
        change(told)
        files.write_json(forged.path / path, told)

    forge.catalogues = True
    return forge


def fewer_fields(told):
    told["resources"][0]["schema"]["fields"].pop()


def wider(told):
    told["resources"][0]["schema"]["fields"][1]["constraints"]["maximum"] = 4711


def another_catalogue(forged):
    """Of another version, which this doublure cannot write again."""
    forged.claim(doublure_version="9.9.9")
    text_of("croissant.json", lambda text: text.replace("ε=2,", "ε=0.01,"))(forged)


another_catalogue.catalogues = True


def without(*names):
    def forge(forged):
        for name in names:
            (forged.path / name).unlink()
        forged.claim(files=[entry for entry in forged.card["files"] if entry["path"] not in names])

    forge.catalogues = True
    return forge


def noisy_count(forged):
    path = forged.path / "tables" / "one-way.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("count")
    counts = table["count"].to_numpy().copy()
    counts[0] += 50
    pq.write_table(table.set_column(place, "count", [counts]), path)


def fewer_noisy_counts(forged):
    path = forged.path / "tables" / "one-way.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)


def better_claim(forged):
    better = Guarantee.from_json({**forged.card["guarantee"], "epsilon": 0.01, "sentence": None}).to_json()
    forged.claim(guarantee=better)


def slightly_better_claim(forged):
    """Three per cent below the cost, in every place: files carry the claim too."""
    claim = forged.card["guarantee"]
    cost = db.verify(forged.world.folder / "bundle")["recomputed_epsilon"]
    better = Guarantee.from_json({**claim, "epsilon": 0.97 * cost, "sentence": None})
    forged.claim(guarantee=better.to_json())


def one_more_file(forged):
    people().to_csv(forged.path / "real.csv", index=False)
    forged.claim(files=[*forged.card["files"], file_entry(forged.path, "real.csv", 200)])


def another_version(forged):
    """Of a page that this doublure cannot draw: its ε is made smaller."""
    forged.claim(doublure_version="9.9.9")
    page(lambda text: text.replace("(ε=2,", "(ε=0.01,"))(forged)


another_version.page = True


def former_card(forged):
    """A card as 0.2.0 wrote it, whose page is not drawn again."""
    forged.claim(ledger={**forged.card["ledger"], "sequence": 5})
    page(lambda text: text.replace("(ε=2,", "(ε=0.01,"))(forged)


former_card.page = True


def related_rows(change):
    def forge(forged):
        forged.write(forged.drawn())
        for path in (forged.path / "stays.csv", forged.path / "stays.parquet"):
            frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
            change(frame)
            if path.suffix == ".csv":
                frame.to_csv(path, index=False)
            else:
                metadata = pq.read_schema(path).metadata
                frame.to_parquet(path)
                pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)

    return forge


def foreign_key(value):
    def change(frame):
        frame.loc[len(frame) - 1, "nr"] = value

    return related_rows(change)


def all_of_one(frame):
    frame["nr"] = 1


def one_form_of_stays(forged):
    path = forged.path / "stays.csv"
    frame = pd.read_csv(path)
    frame["ward"] = frame["ward"].map({"a": "b", "b": "a"})
    frame.to_csv(path, index=False)


def step(value, place=0):
    def forge(forged):
        drawn = forged.drawn()
        values = drawn.values.copy()
        values[2, 3, place] = value
        forged.write(replace(drawn, values=values))

    return forge


def series_number(forged):
    for path in (forged.path / "data.csv", forged.path / "data.parquet"):
        if path.suffix == ".csv":
            frame = pd.read_csv(path)
            frame.loc[frame["series"] == 5, "series"] = 4711
            frame.to_csv(path, index=False)
        else:
            path.unlink()
    (forged.path / "data.npz").unlink()


def one_array(name, change):
    def forge(forged):
        path = forged.path / "data.npz"
        arrays = dict(np.load(path))
        arrays[name] = change(arrays.get(name))
        np.savez(path, **arrays)

    return forge


_PNG = re.compile(r"base64,([A-Za-z0-9+/=]+)")


def in_a_chunk(found):
    content = base64.b64decode(found[1])
    told = content[:33] + drawings._chunk(b"tEXt", b"Comment\0Smith, Jones") + content[33:]
    return "base64," + base64.b64encode(told).decode()


def behind(found):
    content = base64.b64decode(found[1])
    told = content[:33] + drawings._chunk(b"IDAT", content[41:-16] + b"Smith, Jones") + content[-12:]
    return "base64," + base64.b64encode(told).decode()


def other_weights(forged):
    """Of a fit of other data: a network of the same shape, with the same plan in its file."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = forged.path / "generator.safetensors"
    with safe_open(path, "np") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    changed = next(name for name, array in arrays.items() if array.dtype.kind == "f" and array.size)
    arrays[changed] = arrays[changed] + 1
    save_file(arrays, path, metadata)


def another_plan(forged):
    touches = forged.card["touches"]
    forged.claim(touches=[touches[0] | {"purpose": "nothing"}, *touches[1:]])


def schema_text(old, new):
    def forge(forged):
        path = forged.path / "schema.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return forge


FORGERIES: dict[str, dict[str, tuple[Callable[[Forged], None], str]]] = {
    "table": {
        "data.*: other rows of the generator": (other_rows, ELSEWHERE),
        "data.csv: other rows": (in_one_form("csv"), ANYBODY),
        "data.parquet: other rows": (in_one_form("parquet"), ANYBODY),
        "data.*: a row more": (rows(1), ANYBODY),
        "data.*: a row less": (rows(-1), ANYBODY),
        "data.csv: the real table": (real_table("csv", "parquet"), ANYBODY),
        "data.csv: the real table, and nothing beside it": (real_table("csv"), ANYBODY),
        "data.csv: a line with a cell more": (csv_line(b"41,1,1.0,cook,True,2020-02-02,,x\n"), ANYBODY),
        "data.csv: bytes that are no text": (csv_line(b"\xff"), ANYBODY),
        "data.*: a number outside its bounds": (edited("age", 120), ANYBODY),
        "data.*: too many decimals": (edited("pay", 1.25), ANYBODY),
        "data.*: a value that is not listed": (edited("job", "mayor of X"), ANYBODY),
        "data.*: an id of the private side": (edited("row", 4711), ANYBODY),
        "data.*: missing where none is": (edited("pay", np.nan), ANYBODY),
        "data.*: a day outside its bounds": (edited("day", pd.Timestamp("2021-06-06")), ANYBODY),
        "tables: a count": (noisy_count, ELSEWHERE),
        "tables: a count less": (fewer_noisy_counts, ANYBODY),
        "dictionary.json: wider bounds": (column("age", bounds=[0, 150]), ELSEWHERE),
        "dictionary.json: narrower bounds": (column("age", bounds=[0, 2]), ANYBODY),
        "dictionary.json: another mark": (dictionary(lambda told: told.update(watermark="Real data")), ANYBODY),
        "dictionary.json: a kind that nobody knows": (dictionary(lambda told: told.update(kind="bags")), ANYBODY),
        "dictionary.json: what a column means": (column("age", description="height"), ANYBODY),
        "dictionary.json: nothing of the kind": (dictionary(lambda told: told.pop("columns")), ANYBODY),
        "card.html: a smaller ε": (page(lambda text: text.replace("(ε=2,", "(ε=0.01,")), ANYBODY),
        "card.html: a script": (page(lambda text: text + "<script>document.title='x'</script>"), ANYBODY),
        "card.html: deleted": (no_page, ANYBODY),
        "card.html: of another version": (another_version, ANYBODY),
        "card.html: of a former card": (former_card, ANYBODY),
        "data.csv: numbers with more digits": (spelt("pay", lambda cell: cell + "0" * 30 + "4711"), ANYBODY),
        "data.csv: numbers with underscores": (spelt("pay", lambda cell: cell + "0_0"), ANYBODY),
        "data.csv: numbers in other digits": (
            spelt("age", lambda cell: cell.translate({48 + digit: 0xFF10 + digit for digit in range(10)})), ANYBODY,
        ),
        "data.csv: numbers among spaces": (spelt("pay", lambda cell: f"  {cell}\t"), ANYBODY),
        "data.csv: days in another form": (spelt("day", lambda cell: cell.replace("-", "")), ANYBODY),
        "data.parquet: a comment": (told_of_itself("data.parquet"), ANYBODY),
        "tables: a comment": (told_of_itself("tables/one-way.parquet"), ANYBODY),
        "tables: another name": (another_name_of_a_noisy_table, ANYBODY),
        "dictionary.json: a key twice": (
            text_of("dictionary.json", lambda text: '{"columns": "real", ' + text[1:]), ANYBODY,
        ),
        "README.md: a smaller ε": (text_of("README.md", lambda text: text.replace("ε=2,", "ε=0.01,")), ANYBODY),
        "README.md: a line more": (text_of("README.md", lambda text: text + "Smith, Jones\n"), ANYBODY),
        "README.md: deleted": (without("README.md"), ELSEWHERE),
        "datapackage.json: a column less": (catalogue("datapackage.json", fewer_fields), ANYBODY),
        "datapackage.json: wider bounds": (catalogue("datapackage.json", wider), ANYBODY),
        "datapackage.json: an address more": (
            catalogue("datapackage.json", lambda told: told.update(homepage="https://example.org")), ANYBODY,
        ),
        "croissant.json: a smaller ε": (
            text_of("croissant.json", lambda text: text.replace("ε=2,", "ε=0.01,")), ANYBODY,
        ),
        "croissant.json: another file": (
            text_of("croissant.json", lambda text: text.replace('"contentUrl": "data.csv"', '"contentUrl": "x.csv"')),
            ANYBODY,
        ),
        "croissant.json: nothing of the kind": (text_of("croissant.json", lambda text: "[]"), ANYBODY),
        "croissant.json: of another version": (another_catalogue, ANYBODY),
        "descriptions: deleted": (without(*NAMES), ELSEWHERE),
        "card.json: a smaller ε at a tiny δ": (claim_at_a_tiny_delta, ANYBODY),
        "card.json: a smaller ε": (better_claim, ANYBODY),
        "card.json: an ε three per cent smaller": (slightly_better_claim, ANYBODY),
        "card.json: a title": (lambda forged: forged.claim(title="Real people"), ELSEWHERE),
        "card.json: no limits": (lambda forged: forged.claim(limits=[]), ELSEWHERE),
        "card.json: rows": (rows_on_the_card, ANYBODY),
        "card.json: a file more": (one_more_file, ANYBODY),
    },
    "relational": {
        "*: other units": (other_rows, ELSEWHERE),
        "stays.csv: other cells": (one_form_of_stays, ANYBODY),
        "people.parquet: other rows": (in_one_form("parquet"), ANYBODY),
        "stays.*: a key that no parent has": (foreign_key(4711), ANYBODY),
        "stays.*: too many rows on one": (related_rows(all_of_one), ANYBODY),
        "card.html: a script": (page(lambda text: text + "<script></script>"), ANYBODY),
        "tables: a count": (noisy_count, ELSEWHERE),
        "card.json: a title": (lambda forged: forged.claim(title="Real people"), ELSEWHERE),
    },
    "series": {
        "data.*: other series": (other_rows, ELSEWHERE),
        "data.csv: other series": (in_one_form("csv"), ANYBODY),
        "data.parquet: other series": (in_one_form("parquet"), ANYBODY),
        "data.npz: other series": (in_one_form("npz"), ANYBODY),
        "data.*: a value outside its bounds": (step(99.0), ANYBODY),
        "data.*: too many decimals": (step(1.25), ANYBODY),
        "data.*: a missing step": (step(np.nan), ANYBODY),
        "data.*: a number of the private side": (series_number, ANYBODY),
        "data.npz: an array more": (one_array("real", lambda _: np.arange(3)), ANYBODY),
        "data.*: a series more": (rows(1), ANYBODY),
        "card.html: a line drawn elsewhere": (page(lambda text: text.replace("<path d=", "<path id=", 1)), ANYBODY),
    },
    "images": {
        "data.npz: other images": (other_rows, ELSEWHERE),
        "data.npz: an image more": (rows(1), ANYBODY),
        "data.npz: a label that is not listed": (
            one_array("labels", lambda labels: np.where(np.arange(len(labels)) == 3, "Smith", labels)), ANYBODY,
        ),
        "data.npz: an array more": (one_array("names", lambda _: np.array(["Smith"])), ANYBODY),
        "data.npz: another guarantee": (one_array("guarantee", lambda _: np.array("Perfectly private.")), ANYBODY),
        "data.npz: larger images": (
            one_array("images", lambda images: np.zeros((ROWS, 8, 8, 1), dtype=np.uint8)), ANYBODY,
        ),
        "card.html: a text in a picture": (page(lambda text: _PNG.sub(in_a_chunk, text, count=1)), ANYBODY),
        "card.html: a text behind a picture's pixels": (page(lambda text: _PNG.sub(behind, text, count=1)), ANYBODY),
        "card.html: another picture": (
            page(lambda text: text.replace("base64,", "base64,iVBORw0KGgo", 1)), ANYBODY,
        ),
    },
}  # fmt: skip
OF_A_GENERATOR: dict[str, tuple[Callable[[Forged], None], str]] = {
    "generator.safetensors: other weights": (other_weights, ELSEWHERE),
    "card.json: another plan": (another_plan, ANYBODY),
    "schema.yaml: another fact": (schema_text("[0, 99]", "[0, 150]"), ANYBODY),
    "schema.yaml: nothing of the kind": (schema_text("kind: table", "kind: bags"), ANYBODY),
    "card.html: a smaller ε": (page(lambda text: text.replace("(ε=2,", "(ε=0.01,")), ANYBODY),
    "card.html: deleted": (no_page, ANYBODY),
    "card.json: a title": (lambda forged: forged.claim(title="Of real people"), ELSEWHERE),
}
CASES = [(kind, "bundle", name) for kind, found in FORGERIES.items() for name in found]
CASES += [("table", "generator", name) for name in OF_A_GENERATOR]


def forge(worlds, tmp_path, kind, what, name):
    """Return a forgery, and who is to find it."""
    act, found_by = (FORGERIES[kind] if what == "bundle" else OF_A_GENERATOR)[name]
    forged = Forged(worlds(kind), Path(shutil.copytree(worlds(kind).folder / what, tmp_path / "forged")))
    act(forged)
    forged.put_right(page=not getattr(act, "page", False), catalogues=not getattr(act, "catalogues", False))
    return forged, found_by


@pytest.mark.parametrize(("kind", "what", "name"), CASES)
def test_a_forgery_is_found_by_whom_it_can_be(worlds, tmp_path, kind, what, name):
    forged, found_by = forge(worlds, tmp_path, kind, what, name)
    for told in ({"ledger": forged.world.ledger}, {"key": forged.world.public}):
        with pytest.raises(GateFailed):
            db.verify(forged.path, **told)
    if found_by == ANYBODY:
        with pytest.raises(GateFailed) as caught:
            db.verify(forged.path)
        assert caught.value.exit_code == 4
    else:
        checked = db.verify(forged.path)
        assert "signed by an unknown key" in checked["origin"]
        assert "who wrote the card is not checked: compare this fingerprint" in checked["origin"]
        (forged.path / "SIGNATURE").unlink()
        assert "signed" not in db.verify(forged.path)["origin"]


@pytest.mark.parametrize(("what", "kind"), crossed(["bundle", "generator"], [*FORGERIES]))
def test_what_was_not_forged_passes_for_everybody(worlds, kind, what):
    world = worlds(kind)
    by_page = {}
    for told in ({}, {"ledger": world.ledger}, {"key": world.public}, {"ledger": world.ledger, "key": world.public}):
        checked = db.verify(world.folder / what, **told)
        by_page[tuple(told)] = checked["page"]
        assert ("not checked" in checked["origin"]) == (not told)
        assert ("by an unknown key" in checked["origin"]) == ("key" not in told)
    recorded = [record.body["files"] for record in db.Ledger.open(world.ledger).entries if record.kind == "release"]
    card = json.loads((world.folder / what / "card.json").read_text())
    hashes = {file["path"]: file["sha256"] for file in card["files"]}
    assert any(hashes.items() <= files.items() for files in recorded)
    assert PAGE in hashes
    assert by_page == {(): "drawn again", ("ledger",): "ledger", ("key",): "signature", ("ledger", "key"): "ledger"}


@pytest.mark.parametrize(("what", "kind"), crossed(["bundle", "generator"], [*FORGERIES]))
def test_a_bit_of_any_file_is_found_by_everybody(worlds, tmp_path, kind, what):
    folder = Path(shutil.copytree(worlds(kind).folder / what, tmp_path / "copy"))
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        with pytest.raises(GateFailed):
            db.verify(folder)
        path.write_bytes(content)
    db.verify(folder)


# -- a card that has two readings, or says more where no hash is -------------------------------------------------------


def on_the_card(change):
    def told(text):
        card = json.loads(text)
        change(card)
        return files.json_bytes(card).decode()

    return told


SECOND_READINGS = {
    "a claim before the claim": lambda text: '{"guarantee": {"epsilon": 0.01}, ' + text[1:],
    "a title before the title": lambda text: text.replace('"title"', '"title": "Real people", "title"', 1),
    "spaces behind": lambda text: text + " \n",
    "another spelling of a number": lambda text: text.replace("2.0,", "2.00000000000000000001,", 1),
    "a page listed twice": on_the_card(lambda card: card["files"].insert(0, card["files"][-1] | {"sha256": "0" * 64})),
    "rows of the page": on_the_card(lambda card: card["files"][-1].update(rows=4711)),
    "more of a file": on_the_card(lambda card: card["files"][-1].update(certified=True)),
    "more of the entry": on_the_card(lambda card: card["ledger"].update(certified=True)),
}


@pytest.mark.parametrize(("what", "name"), crossed(["bundle", "generator"], [*SECOND_READINGS]))
def test_the_true_ledger_passes_no_card_that_was_added_to(worlds, tmp_path, name, what):
    forged = Forged(worlds("table"), Path(shutil.copytree(worlds("table").folder / what, tmp_path / "forged")))
    (forged.path / "SIGNATURE").unlink()
    db.verify(forged.path, ledger=forged.world.ledger)
    text_of("card.json", SECOND_READINGS[name])(forged)
    with pytest.raises(GateFailed):
        db.verify(forged.path, ledger=forged.world.ledger)


def test_the_place_of_an_entry_is_on_no_card_that_the_ledger_knows_a_page_of(worlds, tmp_path):
    forged = Forged(worlds("table"), Path(shutil.copytree(worlds("table").folder / "bundle", tmp_path / "forged")))
    (forged.path / "SIGNATURE").unlink()
    head = forged.card["ledger"]["head_sha256"]
    place = next(one.sequence for one in db.Ledger.open(forged.world.ledger).entries if one.sha256 == head)
    forged.claim(ledger={**forged.card["ledger"], "sequence": place})
    with pytest.raises(GateFailed, match="says something else"):
        db.verify(forged.path, ledger=forged.world.ledger)


def test_a_page_of_another_version_needs_its_hash_and_not_a_ledger_alone(worlds, tmp_path, monkeypatch):
    """As of a record of 0.2.0, which holds the card's claims and no page."""
    forged = Forged(worlds("table"), Path(shutil.copytree(worlds("table").folder / "bundle", tmp_path / "forged")))
    page(lambda text: text.replace("(ε=2,", "(ε=0.01,"))(forged)
    forged.hash_again()
    (forged.path / "SIGNATURE").unlink()
    found = {name: digest for name, digest in files_of(forged).items() if name != PAGE}
    monkeypatch.setattr(verifying, "_check_entry", lambda *told: found)
    monkeypatch.setattr(verifying, "__version__", "9.9.9")
    with pytest.raises(GateFailed, match="cannot draw again") as caught:
        db.verify(forged.path, ledger=forged.world.ledger)
    assert "--ledger" not in str(caught.value)


@pytest.mark.parametrize("said", [{"ledger": -1}, {"margins": {"units": 10**400, "columns": {"age": 1}}}, {"links": 3}])
def test_a_card_that_holds_something_else_is_refused_and_ends_nothing(worlds, tmp_path, said):
    forged = Forged(worlds("table"), Path(shutil.copytree(worlds("table").folder / "bundle", tmp_path / "forged")))
    (forged.path / "SIGNATURE").unlink()
    forged.claim(**said)
    with pytest.raises(GateFailed):
        db.verify(forged.path)


def files_of(forged):
    return {entry["path"]: entry["sha256"] for entry in forged.card["files"]}


# -- planted: each check finds what no other does ---------------------------------------------------------------------

UNCHECKED = {
    "bounds": (cells.DescribedColumn, "fault", ("numbers.max() > self.bounds[1] + slack", "False"),
               "table", "data.*: a number outside its bounds"),
    "decimals": (cells.DescribedColumn, "fault", ("decimals is not None", "False"),
                 "series", "data.*: too many decimals"),
    "lists": (cells.DescribedColumn, "fault", ("set(cells[~missing]) <= set(self.values)", "True"),
              "images", "data.npz: a label that is not listed"),
    "missing": (cells.DescribedColumn, "fault", ("not self.nullable", "False"), "series", "data.*: a missing step"),
    "forms": (checking, "_side_by_side", ("not _agree(first, other)", "False"), "table", "data.csv: other rows"),
    "arrays beside rows": (checking, "_side_by_side", ("not _agree(first, other)", "False"),
                           "series", "data.npz: other series"),
    "cells, one by one": (cells, "same", ("one, other = one[~missing], other[~missing]", "return True"),
                          "relational", "stays.csv: other cells"),
    "rows": (checking, "_check_tables", ("listed[name] != numbered.records", "False"), "table", "data.*: a row more"),
    "images": (checking, "_check_images", ("number != listed['data.npz']", "False"),
               "images", "data.npz: an image more"),
    "ids": (checking._NumberingCheck, "check", ("not np.array_equal(batch[key], counted)", "False"),
            "table", "data.*: an id of the private side"),
    "foreign keys": (checking._NumberingCheck, "_check_foreign", ("keys[-1] > rows", "False"),
                     "relational", "stays.*: a key that no parent has"),
    "children": (checking._NumberingCheck, "_check_foreign", ("many.max() > most", "False"),
                 "relational", "stays.*: too many rows on one"),
    "steps": (checking._NumberingCheck, "_check_steps", ("not (on | begins).all()", "False"),
              "series", "data.*: a number of the private side"),
    "files": (checking, "_check_tables",
              ("set(listed) != {f'{table.name}{form}' for table in tables for form in forms}", "False"),
              "table", "card.json: a file more"),
    "descriptions": (verifying, "_check_catalogues",
                     ("render(name, card, described) == (folder / name).read_bytes()", "True"),
                     "table", "README.md: a smaller ε"),
    "marks of files": (reading, "check_said", ("about is not None", "False"),
                       "images", "data.npz: another guarantee"),
    "arrays": (reading, "read_images",
               ("set(headers) != {'images', *ABOUT, *beside}", "False"),
               "images", "data.npz: an array more"),
    "noisy tables": (checking, "_check_noisy_tables", ("number != rows", "False"), "table", "tables: a count less"),
    "the dictionary's mark": (checking, "_check_dictionary", ("described['watermark'] != card['watermark']", "False"),
                              "table", "dictionary.json: another mark"),
    "a generator's plan": (checking, "_check_generator", ("touches != card.get('touches')", "False"),
                           "generator", "card.json: another plan"),
    "the page": (verifying, "_checked_page", ("draws_the_same(draw_page(folder, card, described), written)", "True"),
                 "table", "card.html: a script"),
    "pages of other versions": (verifying, "_checked_page",
                                ("if not former:\n    raise refusal('is not the page that the card gives', PAGE)",
                                 "if former:\n    return 'drawn again'"),
                                "table", "card.html: of another version"),
    "what follows pixels": (drawings, "_hash_pixels", ("reader.unused_data", "False"),
                            "images", "card.html: a text behind a picture's pixels"),
}  # fmt: skip


@pytest.mark.parametrize("check", UNCHECKED)
def test_a_check_that_is_left_out_lets_its_forgery_pass(worlds, tmp_path, monkeypatch, check):
    owner, name, edit, kind, forgery = UNCHECKED[check]
    planting.plant(monkeypatch, owner, name, edit)
    what, kind = ("generator", "table") if kind == "generator" else ("bundle", kind)
    forged, found_by = forge(worlds, tmp_path, kind, what, forgery)
    assert found_by == ANYBODY
    db.verify(forged.path)
