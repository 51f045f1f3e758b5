"""What a release promises, audited before it goes out: neighbours, transcripts, plans and owners. Once a release.

    python benchmarks/robustness/audit_release.py --minutes 60                 # of the processor; resumable
    python benchmarks/robustness/audit_release.py replay recompose --minutes 5 --seeds 100
    python benchmarks/robustness/audit_release.py --table

===========  ===========================================================================================================
part         what is looked for
===========  ===========================================================================================================
replay       random neighbours of every kind of data, held and in partitions, fitted by ``doublure.fit``. The second is
             handed every noisy answer of the first: exact answers may move by what is priced in L1 and L2, and no
             visible file may differ (``audit_neighbours.py``, ``audit_replay.py``)
transcript   the likelihood ratio of all releases of a fit, in both worlds exactly: Clopper and Pearson's bound on ε at
             95 % beside the claim, the mean ratios beside what μ makes of them, the noise's variance beside the priced
             one (``audit_transcripts.py``)
recompose    random plans, whose events dp_accounting composes alone: no ε above the claim (``audit_plans.py``)
owners       an owner that sends any length, through the production mechanism: it is refused, or the noise is still
             there (``audit_owners.py``)
===========  ===========================================================================================================

Each cell is a row of ``benchmarks/measured/audit.jsonl``; one that is there for this version is not measured again. It
ends with 1 where a row of this version accuses a claim. A part that could not accuse would be none: the tests plant a
fault for each that it has to find.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import audit_neighbours
import audit_owners
import audit_plans
import audit_transcripts
import torch
from audit_fits import OUT  # which puts the folder of the other benchmarks on the path
from audit_replay import Neighbours, compared
from audit_transcripts import Line

import doublure as db
from results import Case, add, finished, known

NAME = "audit"
PAIRS, FITS = 10, 100
_COMMAND = "python benchmarks/robustness/audit_release.py"


# -- the parts ---------------------------------------------------------------------------------------------------------


def replayed(seeds: int) -> Iterator[Case]:
    """Yield some neighbours of each kind a seed."""
    for seed in range(seeds):
        for kind in audit_neighbours.KINDS:
            yield {"part": "replay", "case": kind, "seed": seed, "pairs": PAIRS}, _replay(kind, seed)


def _replay(kind: str, seed: int) -> Callable[[], dict[str, Any]]:
    def run() -> dict[str, Any]:
        found, odd = [], []
        for number in range(PAIRS):
            with tempfile.TemporaryDirectory() as folder:
                draw = audit_neighbours.Drawn([seed, number])
                pair = audit_neighbours.KINDS[kind](draw, Path(folder))
                found.append(compared(pair))
            if found[-1].accused:
                odd.append(f"{pair.about}: {', '.join(found[-1].differing) or 'moves further'}")
        return {
            "fitted": sum(each.fitted for each in found),
            "moved": sum(each.l2 > 0 for each in found),
            "releases": sum(each.releases for each in found),
            "ratio_l1": max(each.l1 for each in found), "ratio_l2": max(each.l2 for each in found),
            "epsilon": audit_neighbours.EPSILON, "delta": audit_neighbours.DELTA, "odd": odd, "accused": bool(odd),
        }  # fmt: skip

    return run


class Transcripts:
    """The lines that were made so far, kept from one run to the next.

    Args:
        path: Of the file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, name: str) -> list[Line]:
        """Return a case's lines, of this version; one that was cut short is none."""
        found = []
        for text in self._path.read_text().splitlines() if self._path.is_file() else ():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if (line.pop("case"), line.pop("version")) == (name, db.__version__):
                found.append(Line(**line))
        return found

    def make(self, name: str, pair: Neighbours, wanted: int, until: float) -> list[Line]:
        """Make lines in turns without and with the unit, to so many a world or so much time; return all."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.of(name)
        while len(lines) < 2 * wanted and time.process_time() < until:
            lines.append(audit_transcripts.line_of(pair, there=bool(len(lines) % 2)))
            with self._path.open("a") as file:
                file.write(json.dumps({"case": name, "version": db.__version__, **asdict(lines[-1])}) + "\n")
        return lines[: 2 * wanted]


def transcripts(fits: int, kept: Transcripts, until: float) -> Iterator[Case]:
    """Yield each case's transcripts, if there are enough of them."""
    for name, make in audit_transcripts.CASES.items():
        key = {"part": "transcript", "case": name, "seed": None, "fits": fits}
        if not known(NAME, _of_this_version(key)):
            pair = make()
            lines = kept.make(name, pair, fits, until)
            if len(lines) == 2 * fits:
                yield key, lambda lines=lines, pair=pair: audit_transcripts.found(lines, pair.plan)


def recomposed(seeds: int) -> Iterator[Case]:
    """Yield one plan a seed."""
    for seed in range(seeds):
        yield {"part": "recompose", "case": "plan", "seed": seed}, lambda seed=seed: audit_plans.checked(seed)


def owners() -> Iterator[Case]:
    """Yield one attack after the other."""
    for name, attack in audit_owners.ATTACKS.items():
        yield {"part": "owners", "case": name, "seed": None}, attack


PARTS = ("replay", "transcript", "recompose", "owners")


# -- running them ------------------------------------------------------------------------------------------------------


def _of_this_version(key: dict[str, Any]) -> dict[str, Any]:
    return {**key, "version": db.__version__}


def cells_of(part: str, *, seeds: int, fits: int, until: float) -> Iterator[Case]:
    """Yield the cells of a part."""
    if part == "replay":
        return replayed(seeds)
    if part == "transcript":
        return transcripts(fits, Transcripts(OUT / f"{NAME}_transcripts.jsonl"), until)
    return recomposed(seeds) if part == "recompose" else owners()


def run(parts: Sequence[str], *, minutes: float, seeds: int, fits: int) -> None:
    """Measure what is not known yet; each part has an even share of the time that is left."""
    ends = time.process_time() + 60 * minutes
    for place, part in enumerate(parts):
        now = time.process_time()
        until = now + (ends - now) / (len(parts) - place)
        for key, make in cells_of(part, seeds=seeds, fits=fits, until=until):
            if known(NAME, own := _of_this_version(dict(key))):
                continue
            if time.process_time() >= until and part != "transcript":  # whose lines are made already
                break
            more = f" --fits {fits}" if part == "transcript" else f" --seeds {seeds}"
            row = {**own, **make(), "command": f"{_COMMAND} {part}{'' if part == 'owners' else more}"}
            add(NAME, row)
            print(_said(row), flush=True)


def rows(parts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of this version."""
    return [row for row in finished(NAME) if row["part"] in parts and row["version"] == db.__version__]


def _said(row: dict[str, Any]) -> str:
    left_out = ("part", "case", "seed", "version", "command", "date")
    figures = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}
    told = ", ".join(f"{key} {value}" for key, value in figures.items() if key not in left_out)
    return f"{row['part']}, {row['case']}{'' if row['seed'] is None else ' ' + str(row['seed'])}: {told}"


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return what was found, a line a part and case, as a table."""
    lines = ["| part | case | cells | worst | allowed | accused |", "| --- | --- | --: | --: | --: | --: |"]
    by_case = itertools.groupby(sorted(found, key=_place), key=_place)
    for (part, case), group in by_case:
        of_it = list(group)
        worst, allowed = max((_worst(row) for row in of_it), key=lambda pair: pair[0] / pair[1])
        accused = sum(row["accused"] for row in of_it)
        lines.append(f"| {part} | {case} | {len(of_it)} | {worst:.4g} | {allowed:.4g} | {accused} |")
    return "\n".join(lines)


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return row["part"], row["case"]


def _worst(row: dict[str, Any]) -> tuple[float, float]:
    """Return what counts of a row, and what it may be."""
    if row["part"] == "transcript":
        return row["epsilon_shown"], row["epsilon"]
    if row["part"] == "recompose":
        return row["recomposed"], row["epsilon"]
    return (row["shown"], row["allowed"]) if row["part"] == "owners" else (max(row["ratio_l1"], row["ratio_l2"]), 1.0)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all if left out")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the processor, at most")
    parser.add_argument("--seeds", type=int, default=30, help="cells of replay, a kind, and of recompose")
    parser.add_argument("--fits", type=int, default=FITS, help="of transcript, a world")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    if unknown := {*parts} - {*PARTS}:
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are: {', '.join(PARTS)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # odd records warn
    if not arguments.table:
        run(parts, minutes=arguments.minutes, seeds=arguments.seeds, fits=arguments.fits)
    found = rows(parts)
    print(table(found))
    if any(row["accused"] for row in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
