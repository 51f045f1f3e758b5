"""What is fuzzed: every file that doublure reads, in a good form, and who reads it."""

from __future__ import annotations

import gzip
import io
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

import doublure as db
from doublure import public
from doublure.auditing.white_box import WhiteBoxAccess
from doublure.cli.configuration import with_config
from doublure.data.opening import open_data
from doublure.drafting.metadata.registry import read_metadata
from doublure.ledger import Ledger
from doublure.planning import Plan
from doublure.public import Provenance, PublicFolder
from doublure.releasing import labelling as annotating
from doublure.releasing.bundle import verify
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.schema import Schema

SENTINEL = "Qv9Sentinel"
TABLE = f"""
doublure: 1
kind: table
units: 20
columns:
  name: {{type: category, values: [{SENTINEL}, other], missing: false}}
  age: {{type: integer, bounds: [0, 99], missing: false}}
  score: {{type: real, bounds: [0, 1], missing: true}}
  income: {{type: category, values: [low, high], missing: false, roles: [condition]}}
"""
IMAGES = """
doublure: 1
kind: images
units: 6
images: {shape: [4, 4, 1]}
label: {values: [0, 1]}
"""
SERIES = """
doublure: 1
kind: series
unit: {name: meter, id: meter, max_records: 3}
units: 2
series: {time: t, length: 4, step: 1h, timezone: UTC, gaps: missing}
channels: {litres: {type: real, bounds: [0, 10], missing: true}}
"""
CODEBOOK = "column,type,values,lower,upper,missing\nage,integer,,0,99,false\nincome,category,low|high,,,false\n"
METADATA = {
    "redcap": "field_name,form_name,field_type,field_label,select_choices_or_calculations,"
    "text_validation_type_or_show_slider_number,text_validation_min,text_validation_max,required_field\n"
    'id,a,text,Nr,,,,,\nsex,a,radio,Sex,"1, m | 2, f",,,,y\nborn,a,text,Born,,date_dmy,01-02-1990,01-02-2020,\n',
    "frictionless": '{"resources": [{"name": "a", "schema": {"primaryKey": "nr", "missingValues": ["", "NA"], '
    '"fields": [{"name": "nr", "type": "integer"}, {"name": "d", "type": "date", "format": "%d.%m.%Y"}, {"name": "x", '
    '"type": "number", "decimalChar": ",", "constraints": {"minimum": 0, "maximum": 9}}]}}]}',
    "csvw": '{"@context": "http://www.w3.org/ns/csvw", "url": "a.csv", "dialect": {"delimiter": ";"}, "tableSchema": '
    '{"primaryKey": "nr", "columns": [{"titles": ["nr"], "name": "nr"}, {"name": "x", "required": true, "datatype": '
    '{"base": "decimal", "minimum": 0, "maximum": 9}}, {"name": "s", "datatype": {"base": "string", "format": '
    '"a|b"}}]}}',
    "sdv": '{"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "primary_key": "nr", "columns": {"nr": {"sdtype": "id"}, "d": '
    '{"sdtype": "datetime", "datetime_format": "%d.%m.%Y"}, "x": {"sdtype": "categorical"}}}',
}
"""Form of metadata -> a description of a table."""
PICTURES = f"""
doublure: 1
kind: images
units: 2
images: {{shape: [4, 4, 1]}}
label: {{values: [{SENTINEL}, other]}}
"""
PROVENANCE = "data: letters that were published\npeople: writers of the last century\nlicence: CC0\n"
CONFIG = "method: dpgan\nepsilon: 3.0\ndelta: 1e-5\nset: {steps: 500, lot_size: 4096}\n"
TINY = {"steps": 2, "lot_size": 8, "width": 8, "critic_width": 8, "noise_width": 4, "checkpoints": 1}


@dataclass(frozen=True)
class Parser:
    """What is fuzzed: a good file, and who reads it.

    Attributes:
        name: The file's name, with the folders that it lies in.
        good: What is in it.
        read: Reads it from a folder that holds it.
    """

    name: str
    good: bytes
    read: Callable[[Path], object]

    def write(self, folder: Path, content: bytes) -> None:
        """Put a file in the good one's place."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def frame() -> pd.DataFrame:
    """Return private rows, the sentinel among them."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "name": rng.choice([SENTINEL, "other"], 20),
            "age": rng.integers(0, 99, 20),
            "score": rng.random(20).round(3),
            "income": rng.choice(["low", "high"], 20),
        }
    )


def readings() -> bytes:
    """Return private readings as CSV."""
    times = pd.date_range("2024-01-01", periods=24, freq="1h", tz="UTC").strftime("%Y-%m-%dT%H:%M:%S%z")
    rows = [pd.DataFrame({"meter": f"{SENTINEL}{number}", "t": times, "litres": 0.5}) for number in (1, 2)]
    return pd.concat(rows).to_csv(index=False).encode()


def npz() -> bytes:
    """Return private images as NPZ."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=np.arange(96, dtype=np.uint8).reshape(6, 4, 4), labels=np.array([0, 1] * 3))
    return buffer.getvalue()


def parquet() -> bytes:
    """Return private rows as Parquet."""
    buffer = io.BytesIO()
    frame().to_parquet(buffer)
    return buffer.getvalue()


def loaded(text: str, name: str) -> Callable[[Path], object]:
    """Return what loads a data file under a schema."""
    schema = Schema.parse(text)

    def read(folder: Path) -> object:
        source = open_data(folder / name, schema.kind)
        source.check(schema)
        return source.load(schema)

    return read


def idx(numbers: np.ndarray) -> bytes:
    """Return bytes as IDX."""
    return struct.pack(f">BBBB{numbers.ndim}I", 0, 0, 8, numbers.ndim, *numbers.shape) + numbers.tobytes()


def zipped(content: bytes) -> bytes:
    """Return a file in an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d.csv", content)
    return buffer.getvalue()


def picture(form: str) -> bytes:
    """Return a small picture."""
    buffer = io.BytesIO()
    Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4)).save(buffer, form)
    return buffer.getvalue()


def series_npz() -> bytes:
    """Return private series as NPZ."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, litres=np.linspace(0, 9, 24).reshape(6, 4), meter=np.array([SENTINEL] * 3 + ["b"] * 3))
    return buffer.getvalue()


def parsers(world: Path) -> Mapping[str, Parser]:
    """Return every parser; runs, bundles, tasks and public generators are made in a folder first."""
    csv = frame().to_csv(index=False).encode()
    ledger = db.Ledger.create(world / "l", dataset="people", epsilon=9.0, delta=1e-3)
    plan = db.plan(Schema.parse(TABLE), method="dpgan", epsilon=1.0, delta=1e-5, accountant="rdp", **TINY)
    db.fit(frame(), plan, ledger=ledger, out=world / "run", seed=0)
    db.release(db.load(world / "run"), world / "bundle", n=5)
    plan.save(world / "plan.json")
    return {
        "csv": Parser("d.csv", csv, loaded(TABLE, "d.csv")),
        "csv.gz": Parser("d.csv.gz", gzip.compress(csv), loaded(TABLE, "d.csv.gz")),
        "csv.zip": Parser("d.csv.zip", zipped(csv), loaded(TABLE, "d.csv.zip")),
        "parquet": Parser("d.parquet", parquet(), loaded(TABLE, "d.parquet")),
        "npz": Parser("d.npz", npz(), loaded(IMAGES, "d.npz")),
        "series": Parser("d.csv", readings(), loaded(SERIES, "d.csv")),
        "series npz": Parser("d.npz", series_npz(), loaded(SERIES, "d.npz")),
        "schema": Parser("s.yaml", TABLE.encode(), lambda folder: Schema.load(folder / "s.yaml")),
        "codebook": Parser("c.csv", CODEBOOK.encode(), lambda folder: read_metadata(folder / "c.csv").schema()),
        **{
            form: Parser("m", said.encode(), lambda folder, form=form: read_metadata(folder / "m", form).schema())
            for form, said in METADATA.items()
        },
        "plan": Parser("p.json", (world / "plan.json").read_bytes(), lambda folder: Plan.load(folder / "p.json")),
        "ledger": Parser("l", (world / "l").read_bytes(), lambda folder: Ledger.open(folder / "l").verify()),
        "provenance": Parser("p.yaml", PROVENANCE.encode(), lambda folder: Provenance.read(folder / "p.yaml")),
        "config": Parser(
            "c.yaml", CONFIG.encode(), lambda folder: with_config(["fit", "--config", str(folder / "c.yaml")])
        ),
        **_beside("run", world / "run", _names(world / "run"), _attacked),
        **_beside("bundle", world / "bundle", _names(world / "bundle"), verify),
        **_of_images(world),
    }


def _of_images(world: Path) -> Mapping[str, Parser]:
    """Return the parsers of pictures, of labelling tasks and of public generators."""
    data, made, task = world / "images", world / "public", world / "task"
    for name, form in ((f"{SENTINEL}/1.png", "PNG"), ("other/2.jpg", "JPEG")):
        (data / name).parent.mkdir(parents=True)
        (data / name).write_bytes(picture(form))
    pixels = np.arange(96, dtype=np.uint8).reshape(6, 4, 4)
    pair = world / "idx"
    pair.mkdir()
    for name, numbers in (("images-idx3", pixels), ("labels-idx1", np.arange(6, dtype=np.uint8) % 2)):
        (pair / f"train-{name}-ubyte").write_bytes(idx(numbers))
    networks = {"noise_width": 2, "channels": [4], "encoder_channels": [4], "encoder_features": 4, "steps": 2}
    unlabelled = Schema.parse(IMAGES.partition("label")[0])
    (world / "p.yaml").write_text(PROVENANCE)
    public.fit(
        {"images": pixels}, unlabelled, provenance=world / "p.yaml", out=made, seed=1, objective="autoencoder",
        **networks,
    )  # fmt: skip
    pinned = public.load(made)
    plan = db.plan(Schema.parse(IMAGES), method="gan", steps=2, lot_size=2, noise_width=2, channels=[4], features=4)
    book = db.Ledger.create(world / "images.l", dataset="images", epsilon=1.0, delta=1e-3)
    private = {"images": pixels, "labels": np.array([0, 1] * 3)}
    annotating.hand_out(db.fit(private, plan, ledger=book, seed=1), task, 3, seed=1)
    (task / "labels.csv").write_text("file,label\n000001.png,0\n000002.png,1\n000003.png,\n")
    names = [*_names(task), "images/000001.png"]
    return {
        **_beside("images", data, [f"{SENTINEL}/1.png", "other/2.jpg"], _opened(PICTURES, "")),
        **_beside("idx", pair, _names(pair), _opened(IMAGES, "train-images-idx3-ubyte")),
        **_beside("task", task, names, annotating.read_back),
        **_beside(
            "public", made, _names(made), lambda folder: (public.load(folder), PublicFolder(folder).weights(pinned))
        ),
    }


def _names(folder: Path) -> list[str]:
    """Return the files of a folder, and of its internal one."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.parent.name != "images"
    )


def _opened(text: str, name: str) -> Callable[[Path], object]:
    return lambda folder: loaded(text, name)(folder)


def _attacked(folder: Path) -> object:
    """Read a run as who attacks it does: the synthesizer, and the state that its training kept."""
    kept = RunFolder.open(folder)
    rows = open_data(frame(), "table").load(Schema.parse(TABLE).resolve({})).content
    critic = WhiteBoxAccess(read_synthesizer(kept), kept.load()).critic
    return kept.kept_step, critic and critic(rows)


def _beside(whole: str, good: Path, names: list[str], read: Callable[[Path], object]) -> dict[str, Parser]:
    """Return a parser for each of a folder's files, the others of which are good."""

    def of(name: str) -> Parser:
        def reads(folder: Path) -> object:
            for path in good.rglob("*"):
                target = folder / path.relative_to(good)
                if path.is_dir():
                    target.mkdir(exist_ok=True)
                elif path != good / name and not target.exists():
                    shutil.copy(path, target)
            return read(folder)

        return Parser(name, (good / name).read_bytes(), reads)

    return {f"{whole}: {name}": of(name) for name in names}
