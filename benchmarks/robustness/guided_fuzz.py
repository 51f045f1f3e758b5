"""Fuzz one parser by what it reaches: inputs that come to new lines of doublure are kept, and edited further.

libFuzzer through atheris, which is no dependency: ``pip install atheris`` where there is a wheel of it. What is read
and what counts as a fault are those of ``fuzz.py``, and each run is a line of the same ``benchmarks/out/fuzz.jsonl``.

    python benchmarks/robustness/guided_fuzz.py csv --seconds 3600
    python benchmarks/robustness/guided_fuzz.py "run: plan.json" --seconds 600

A fault ends the run, and its input is kept in ``benchmarks/out``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def child(name: str, seconds: int, world: Path) -> None:
    """Fuzz; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["doublure"]):
        import fuzz
        import targets

    parser = targets.parsers(world)[name]
    corpus, own = world / "corpus", world / "own"
    corpus.mkdir()
    (corpus / "good").write_bytes(parser.good)
    words = ["".join(f"\\x{byte:02x}" for byte in word) for word in fuzz.WORDS if len(word) < 64]
    (world / "words").write_text("".join(f'"{word}"\n' for word in words))

    def one(content: bytes) -> None:
        with tempfile.TemporaryDirectory(dir=own) as folder:
            parser.write(Path(folder), content)
            found = fuzz.Found()
            fuzz.read(parser, Path(folder), found)
        if found.refused:
            with (world / "refused").open("ab") as file:
                file.write(b".")
        if found.faults:
            raise RuntimeError(found.faults[0])

    own.mkdir()
    (world / "refused").touch()
    limits = [f"-max_total_time={seconds}", f"-max_len={4 * len(parser.good)}", "-rss_limit_mb=4096", "-timeout=60"]
    told = [f"-dict={world / 'words'}", f"-artifact_prefix={fuzz.OUT.parent}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *told, str(corpus)], one)
    atheris.Fuzz()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parser", help="one of those that fuzz.py knows")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.parser, arguments.seconds, arguments.child)
        return
    out = Path(__file__).resolve().parents[1] / "out" / "fuzz.jsonl"
    out.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as world:
        command = [sys.executable, __file__, arguments.parser, "--seconds", str(arguments.seconds), "--child", world]
        began = time.monotonic()
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        counted = Path(world) / "refused"
        refused = counted.stat().st_size if counted.is_file() else 0
    tried = re.search(r"stat::number_of_executed_units: (\d+)", ended.stdout)
    faults = re.findall(r"^RuntimeError: (.*)$", ended.stdout, re.MULTILINE)
    if ended.returncode and not faults:
        faults = [f"ended with {ended.returncode}: {ended.stdout.strip()[-300:]}"]
    row = {"parser": f"{arguments.parser} (guided)", "seconds": round(time.monotonic() - began, 2), "refused": refused}
    row |= {"files": int(tried[1]) if tried else 0, "faults": sorted(set(faults))}
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row))


if __name__ == "__main__":
    main()
