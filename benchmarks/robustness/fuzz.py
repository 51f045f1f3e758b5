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
import json
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from targets import SENTINEL, Parser, parsers

from doublure.errors import DoublureError

OUT = Path(__file__).resolve().parents[1] / "out" / "fuzz.jsonl"
BATCH = 50
WORDS = (
    b"\0", b"\xff\xfe", b'"', b"'", b",", b"\n", b"\r\n", b"1e999", b"-", b"NaN", b"=cmd|' /C calc'!A0", b"../../x",
    b"{", b"]", b"null", b"true", b"&a [*a]", b"!!python/object", b"9" * 400, b"\xe2\x80\xae", b"PK\x03\x04",
    b"\x89PNG\r\n\x1a\n", b"PAR1",
)  # fmt: skip


@dataclass
class Found:
    """What a batch found."""

    files: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


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
            parser.write(Path(own), content)
            read(parser, Path(own), found)

    one()
    return found


def read(parser: Parser, folder: Path, found: Found) -> None:
    """Read one file, and note what came of it."""
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
