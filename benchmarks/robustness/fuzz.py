"""Fuzz every parser: damaged and hostile files end in one line that names no private value, or in a result.

Hypothesis edits files that are good (bits flipped, parts cut, doubled, exchanged, filled with noise or with words that
mean something), and asks each parser to read what comes of it. Anything but a result or one of doublure's own errors is
a finding, and so is an error that shows the sentinel, a value that stands in every cell of the private files.

    python benchmarks/robustness/fuzz.py --seconds 3600            # an hour for all parsers together
    python benchmarks/robustness/fuzz.py --seconds 60 --only csv parquet
    python benchmarks/robustness/fuzz.py --table

Each batch is a line of ``benchmarks/out/fuzz.jsonl``: parser, how long, how many files, what was found.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import doublure as db
from doublure.data.opening import open_data
from doublure.errors import DoublureError
from doublure.ledger import Ledger
from doublure.planning import Plan
from doublure.releasing import verify
from doublure.schema import Schema, codebook

OUT = Path(__file__).resolve().parents[1] / "out" / "fuzz.jsonl"
SENTINEL = "Qv9Sentinel"
BATCH = 50
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
WORDS = (
    b"\0", b"\xff\xfe", b'"', b"'", b",", b"\n", b"\r\n", b"1e999", b"-", b"NaN", b"=cmd|' /C calc'!A0", b"../../x",
    b"{", b"]", b"null", b"true", b"&a [*a]", b"!!python/object", b"9" * 400, b"\xe2\x80\xae", b"PK\x03\x04",
    b"\x89PNG\r\n\x1a\n", b"PAR1",
)  # fmt: skip


@dataclass(frozen=True)
class Parser:
    """What is fuzzed: a good file, and who reads it.

    Attributes:
        name: The file's name.
        good: What is in it.
        read: Reads it from a folder that holds it.
    """

    name: str
    good: bytes
    read: Callable[[Path], object]


@dataclass
class Found:
    """What a batch found."""

    files: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


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


def parsers(world: Path) -> Mapping[str, Parser]:
    """Return every parser; runs and bundles are made in a folder first."""
    csv = frame().to_csv(index=False).encode()
    ledger = db.Ledger.create(world / "l", dataset="people", epsilon=9.0, delta=1e-3)
    tiny = {"steps": 2, "lot_size": 8, "width": 8, "critic_width": 8, "noise_width": 4, "checkpoints": 1}
    plan = db.plan(Schema.parse(TABLE), method="dpgan", epsilon=1.0, delta=1e-5, accountant="rdp", **tiny)
    db.fit(frame(), plan, ledger=ledger, out=world / "run", seed=0)
    db.release(db.load(world / "run"), world / "bundle", n=5)
    plan.save(world / "plan.json")
    found = {
        "csv": Parser("d.csv", csv, loaded(TABLE, "d.csv")),
        "parquet": Parser("d.parquet", parquet(), loaded(TABLE, "d.parquet")),
        "npz": Parser("d.npz", npz(), loaded(IMAGES, "d.npz")),
        "series": Parser("d.csv", readings(), loaded(SERIES, "d.csv")),
        "schema": Parser("s.yaml", TABLE.encode(), lambda folder: Schema.load(folder / "s.yaml")),
        "codebook": Parser("c.csv", CODEBOOK.encode(), lambda folder: codebook.read_codebook(folder / "c.csv")),
        "plan": Parser("p.json", (world / "plan.json").read_bytes(), lambda folder: Plan.load(folder / "p.json")),
        "ledger": Parser("l", (world / "l").read_bytes(), lambda folder: Ledger.open(folder / "l").verify()),
    }
    for name in ("run.json", "plan.json", "schema.yaml", "guarantee.json", "generator.safetensors"):
        found[f"run: {name}"] = Parser(name, (world / "run" / name).read_bytes(), _beside(world / "run", name, db.load))
    for name in ("card.json", "data.csv"):
        whole = (world / "bundle" / name).read_bytes()
        found[f"bundle: {name}"] = Parser(name, whole, _beside(world / "bundle", name, verify))
    return found


def _beside(good: Path, name: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return what reads a folder whose other files are good."""

    def reads(folder: Path) -> object:
        for path in good.rglob("*"):
            target = folder / path.relative_to(good)
            if path.is_dir():
                target.mkdir(exist_ok=True)
            elif path.name != name and not target.exists():
                shutil.copy(path, target)
        return read(folder)

    return reads


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """Return a good file after one to six edits."""
    content = bytearray(good)
    for _ in range(draw(st.integers(1, 6))):
        first = draw(st.integers(0, max(0, len(content) - 1)))
        last = min(len(content), first + draw(st.integers(0, 64)))
        match draw(st.integers(0, 6)):
            case 0 if content:
                content[first] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del content[first:last]
            case 2:
                content[first:first] = content[first:last] * draw(st.integers(1, 20))
            case 3:
                content[first:last] = draw(st.sampled_from(WORDS))
            case 4:
                content[first:last] = draw(st.binary(max_size=40))
            case 5:
                del content[first:]
            case _:
                other = draw(st.integers(0, max(0, len(content) - 1)))
                content[first:first] = content[other : other + 64]
    return bytes(content)


def batch(parser: Parser, folder: Path, number: int, examples: int = BATCH) -> Found:
    """Read so many damaged files."""
    found = Found()

    @seed(number)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(damaged(parser.good))
    def one(content: bytes) -> None:
        found.files += 1
        with tempfile.TemporaryDirectory(dir=folder) as own:
            (Path(own) / parser.name).write_bytes(content)
            _read(parser, Path(own), found)

    one()
    return found


def _read(parser: Parser, folder: Path, found: Found) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            parser.read(folder)
    except DoublureError as error:
        found.refused += 1
        if SENTINEL in str(error) or "\n" in str(error):
            found.faults.append(f"{type(error).__name__} shows what is private")
    except Exception as error:
        found.faults.append(f"{type(error).__name__}: {str(error)[:200]}")


def run(seconds: float, only: list[str] | None, first: int) -> None:
    """Fuzz all parsers in turn until the time is over, and keep what was found."""
    OUT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder)
        chosen = {name: parser for name, parser in parsers(world).items() if not only or name in only}
        number, ends = first, time.monotonic() + seconds
        while time.monotonic() < ends:
            for name, parser in chosen.items():
                began = time.monotonic()
                found = batch(parser, world, number)
                row: dict[str, Any] = {"parser": name, "seed": number, "seconds": round(time.monotonic() - began, 2)}
                row |= {"files": found.files, "refused": found.refused, "faults": sorted(set(found.faults))}
                with OUT.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                for fault in row["faults"]:
                    print(f"{name}, seed {number}: {fault}", flush=True)
            number += 1


def table() -> None:
    """Print how long each parser was fuzzed, and what was found."""
    rows = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.is_file() else []
    print("| parser | seconds | files | refused | faults |\n|---|--:|--:|--:|--:|")
    for name in dict.fromkeys(row["parser"] for row in rows):
        own = [row for row in rows if row["parser"] == name]
        sums = {key: sum(row[key] for row in own) for key in ("seconds", "files", "refused")}
        faults = sum(len(row["faults"]) for row in own)
        print(f"| {name} | {sums['seconds']:.0f} | {sums['files']} | {sums['refused']} | {faults} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seed", type=int, default=0, help="of the first batch")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        run(arguments.seconds, arguments.only, arguments.seed)
    table()


if __name__ == "__main__":
    main()
