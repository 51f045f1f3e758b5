"""What of a golden fit holds on every machine: words, keys and public figures; of sampled rows how they are spread.

Digests and what hangs on the last bits of a sum is left to the recorder.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from golden import KEPT
from golden.recording import HIDDEN

ROWS = 300
"""Of a sample."""
EVALUATED = "people-statistics"
"""The case whose report's keys the suite compares."""
_DIGEST = re.compile(r"\b[0-9a-f]{16,64}\b")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
_NEAR, _NEAR_IN_WORDS = 1e-6, 2e-2
_DEVIATIONS = 4.0
"""By which two samples may differ: the last bits of a sum, which differ by machine, decide which rows are drawn."""
_OF_LIBRARIES = ("UserWarning", "FutureWarning", "DeprecationWarning", "RuntimeWarning")
_LEFT_OUT = ("run/log.jsonl", "run/generator.safetensors", "run/tables.safetensors", "run/run.json")


def keep(name: str, found: dict[str, str]) -> None:
    """Write a case's kept file."""
    KEPT.mkdir(exist_ok=True)
    text = json.dumps(portable(found), indent=0, ensure_ascii=False)
    (KEPT / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def kept(name: str) -> dict[str, Any]:
    """Read it."""
    found: dict[str, Any] = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    return found


def portable(found: dict[str, str]) -> dict[str, Any]:
    """Return what is compared of a record."""
    return {name: part for file, text in found.items() for name, part in _parts(file, text)}


def _parts(file: str, text: str) -> Iterator[tuple[str, Any]]:
    if file in _LEFT_OUT or file.endswith(".html"):
        return
    if file == "report.json":
        yield file, sorted(set(_paths(json.loads(text))))
    elif file.startswith("sample-") and file.endswith(".csv"):
        yield file, _spread(text)
    elif file.startswith("bundle/tables/") and file.endswith(".csv"):
        head, *rows = text.splitlines()
        yield file, [head, f"{len(rows)} rows"]
    elif file.startswith("bundle/data") or (file.startswith("bundle/") and file.endswith((".csv", ".parquet"))):
        yield file, text.partition("\n")[0] if file.endswith(".csv") else "there"
    elif file.endswith("images.txt"):
        yield file, text.rpartition(" ")[0]
    elif file.endswith(".types.json"):
        types = json.loads(text)
        yield file, {name: "text" if own in ("str", "object") else own for name, own in types.items()}  # by pandas
    elif file.endswith(".json"):
        yield file, _masked(json.loads(text))
    elif file.endswith(".jsonl"):
        yield file, [_masked(json.loads(line)) for line in text.splitlines()]
    else:
        yield file, _masked([line for line in text.splitlines() if not line.startswith(_OF_LIBRARIES)])


def _paths(plain: Any, before: str = "") -> Iterator[str]:
    """Yield each key and the keys above it; of a list, those of any entry."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield f"{before}.{key}"
            yield from _paths(value, f"{before}.{key}")
    elif isinstance(plain, list):
        for value in plain:
            yield from _paths(value, f"{before}[]")


def _spread(text: str) -> dict[str, Any]:
    """Return of each column what share is missing, and where its numbers lie or how frequent its texts are."""
    frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    found: dict[str, Any] = {}
    for name, cells in frame.items():
        there = cells[cells != ""]
        numbers = pd.to_numeric(there, errors="coerce")
        moments = pd.to_datetime(there, errors="coerce", utc=True, format="ISO8601")
        own: dict[str, Any] = {"rows": len(cells), "missing": round(1 - len(there) / max(1, len(cells)), 3)}
        if len(there) and numbers.notna().all():
            own |= {"ends": [float(numbers.min()), float(numbers.max())]}
            own |= {"mean": float(numbers.mean()), "scale": float(numbers.max() - numbers.min())}
        elif len(there) and moments.notna().all():
            seconds = moments.astype("datetime64[ns, UTC]").astype(np.int64) / 1e9
            own |= {"mean": float(seconds.mean()), "scale": float(seconds.max() - seconds.min())}
        elif there.nunique() <= 20:
            own |= {
                "shares": {str(value): round(share, 3) for value, share in there.value_counts(normalize=True).items()}
            }
        found[str(name)] = own
    return found


def _masked(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _masked(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_masked(value) for value in plain]
    return _DIGEST.sub(HIDDEN, plain) if isinstance(plain, str) else plain


def differences(kept: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield where two portable records differ by more than machines do."""
    if isinstance(kept, dict) and isinstance(found, dict):
        if _is_spread(kept) and _is_spread(found):
            yield from _apart(kept, found, place)
            return
        if list(kept) != list(found):
            yield f"{place}: keys {_unlike(kept, found)}"
        for key in kept:
            if key in found:
                yield from differences(kept[key], found[key], f"{place}/{key}")
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{place}: {_unlike(map(repr, kept), map(repr, found))}"
        for number, pair in enumerate(zip(kept, found, strict=False)):
            yield from differences(*pair, f"{place}[{number}]")
    elif isinstance(kept, float) or isinstance(found, float):
        if not _is_near(kept, found, _NEAR):
            yield f"{place}: {kept!r} became {found!r}"
    elif isinstance(kept, str) and isinstance(found, str):
        numbers = [_NUMBER.findall(text) for text in (kept, found)]
        words = [_NUMBER.sub("0", text) for text in (kept, found)]
        alike = words[0] == words[1] and all(
            _is_near(*(float(number.replace(",", "")) for number in pair), _NEAR_IN_WORDS)
            for pair in zip(*numbers, strict=True)
        )
        if not alike:
            yield f"{place}: {kept!r} became {found!r}"
    elif kept != found:
        yield f"{place}: {kept!r} became {found!r}"


def _is_spread(plain: dict[str, Any]) -> bool:
    return "missing" in plain and set(plain) <= {"rows", "missing", "ends", "mean", "scale", "shares"}


def _apart(kept: dict[str, Any], found: dict[str, Any], place: str) -> Iterator[str]:
    """Compare how a column is spread, as far as two samples of so many rows tell."""
    if list(kept) != list(found) or kept["rows"] != found["rows"]:
        yield f"{place}: {_unlike(kept, found)}"
        return
    rows, scale = kept["rows"], max(kept.get("scale", 0.0), found.get("scale", 0.0), 1e-9)
    there = max(1.0, rows * (1 - max(kept["missing"], found["missing"])))
    moved = [_share_moved(kept["missing"], found["missing"], rows)]
    if "mean" in kept:  # no spread of numbers in a range is above half of it, and an even one is 1 / √12
        moved += [abs(kept["mean"] - found["mean"]) / scale / math.sqrt(2 / 12 / there)]
    shares = kept.get("shares", {}), found.get("shares", {})
    moved += [_share_moved(*(own.get(value, 0.0) for own in shares), there) for value in {*shares[0], *shares[1]}]
    if not max(moved) <= _DEVIATIONS:
        yield f"{place}: {kept!r} became {found!r}"


def _share_moved(kept: float, found: float, rows: float) -> float:
    """Return by how many deviations two samples' shares differ; with half a row each way, since no share is certain."""
    mean = ((kept + found) / 2 * rows + 0.5) / (rows + 1)
    return abs(kept - found) / math.sqrt(2 * mean * (1 - mean) / rows)


def _is_near(one: Any, other: Any, near: float) -> bool:
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (one, other))
    return numbers and (math.isclose(one, other, rel_tol=near, abs_tol=near) or (math.isnan(one) and math.isnan(other)))


def _unlike(kept: Any, found: Any) -> str:
    before, after = list(kept), list(found)
    gone, new = [key for key in before if key not in after], [key for key in after if key not in before]
    return f"lost {gone}, new {new}" if gone or new else "stand in another order"
