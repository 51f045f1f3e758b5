"""What a fit leaves behind, as texts: equal before and after a change that is to change nothing."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from doublure.errors import DoublureError
from golden.cases import DIGITS, PUBLIC, Case, pictures

HIDDEN = "…"
"""Stands for what no two runs have alike."""
_NEVER_ALIKE = frozenset(
    {
        "created", "utc", "tool", "nonce", "doublure_version", "version", "hash", "prev_hash", "head_sha256", "id",
        "session", "reservation", "card.html", "card.json", "seconds_estimate", "review_by",
    }
)  # fmt: skip
_MOMENT = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\+00:00|Z)")
_DIGEST, _DAY = re.compile(r"\b[0-9a-f]{12,64}\b"), re.compile(r"\b20\d\d-\d\d-\d\d(?:T[\d:+Z]+)?")
_REVIEW = re.compile(r"(?<=^- Review by: )\S+$", re.MULTILINE)
_TIME = re.compile(r"\S+ (?:second|minute|hour|day)s?(?= of one core)")
SAMPLED = 1000


def record(case: Case, folder: Path, *, rows: int = SAMPLED, evaluated: bool = True) -> dict[str, str]:
    """Fit, sample, release and evaluate, and return all that came of it.

    Args:
        case: What.
        folder: An empty one, which the process is in: what is named by its path is named alike.
        rows: Synthetic records of the sample.
        evaluated: Whether a report is made where the case has one.
    """
    settings = dict(case.settings)
    if case.public:
        settings["public"] = public_generator("public")
    schema = db.Schema.parse(case.schema)
    found = {"schema.yaml": schema.to_yaml() + f"# {schema.sha256}\n"}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        plan = db.plan(schema, method=case.method, **settings)
        found["plan.json"] = _json(_of_file(plan.save, folder / "plan.json"))
        found["explained.txt"] = _TIME.sub(HIDDEN, plan.explain())
        ledger = db.Ledger.create(folder / "ledger", dataset="golden", epsilon=1e4, delta=0.5)
        syn = db.fit(case.data(1), plan, ledger=ledger, out=folder / "run", seed=1)
        found |= {f"run/{path.name}": _text(path) for path in sorted((folder / "run").iterdir()) if path.is_file()}
        found["bought.txt"] = "".join(f"{line}\n" for line in (*syn.bought, *syn.notes))
        for number, given in enumerate((None, *case.given)):
            own = rows if given is None else rows // 10
            found |= {f"sample-{number}/{name}": text for name, text in _sample(syn, own, given).items()}
        tables = any((folder / "run").glob("tables.*"))
        db.release(syn, folder / "bundle", n=50, seed=3, ledger=ledger, tables=tables)
        bundle = sorted(path for path in (folder / "bundle").rglob("*") if path.is_file())
        found |= {f"bundle/{path.relative_to(folder / 'bundle').as_posix()}": _text(path) for path in bundle}
        if case.evaluated and evaluated:
            report = db.evaluate.report(syn, case.data(1), case.data(2), rows=200, seed=4, progress=False)
            found["report.json"] = _json(json.loads(report.to_json()))
            report.save(folder / "report.html")
            found["report.html"] = _text(folder / "report.html")
    found["ledger.jsonl"] = _ledger(ledger)
    found["warnings.txt"] = "".join(dict.fromkeys(f"{each.category.__name__}: {each.message}\n" for each in warned))
    return {name: text.replace(str(folder), HIDDEN) for name, text in found.items()}


def refusal(act: Any) -> str:
    """Return what an act is refused with, or that it is not."""
    try:
        act()
    except DoublureError as error:
        return f"{type(error).__name__}: {error}"
    return "not refused"


def digest(data: bytes) -> str:
    """Return a hash in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def public_generator(folder: str) -> str:
    """Fit a public generator of images, and return its folder."""
    from doublure import public

    names = {"data": "bars", "people": "nobody", "licence": "CC0"}
    sizes: dict[str, Any] = {
        "noise_width": 6, "channels": [12, 8], "encoder_channels": [8, 12], "encoder_features": 24,
        "critic_channels": [8, 12], "features": 12, "steps": 20, "proposer_steps": 5, "objective": "autoencoder",
    }  # fmt: skip
    data = {"images": pictures(9)["images"]}
    public.fit(data, db.Schema.parse(PUBLIC), provenance=names, out=folder, seed=1, **sizes)
    return folder


def _of_file(save: Any, path: Path) -> Any:
    save(path)
    return json.loads(path.read_text())


def _sample(syn: db.Synthesizer, n: int, given: Mapping[str, Any] | None) -> dict[str, str]:
    try:
        made = syn.sample(n, given=given, seed=2)
    except DoublureError as error:
        return {"refused.txt": str(error)}
    return {name: text for part, frame in _frames(made) for name, text in _cells(part, frame)}


def _frames(made: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(made, pd.DataFrame):
        yield "rows", made
    elif isinstance(made, Mapping):
        yield from made.items()
    elif hasattr(made, "frame"):
        yield "rows", made.frame()
    else:
        yield "images", np.asarray(made.images)
        yield "labels", pd.DataFrame({"label": made.labels})


def _cells(name: str, made: Any) -> Iterator[tuple[str, str]]:
    if isinstance(made, pd.DataFrame):
        types = {column: f"{cells.dtype}" for column, cells in made.items()}
        for column, cells in made.items():
            if isinstance(cells.dtype, pd.CategoricalDtype):
                types[column] += f" {list(cells.cat.categories)} ordered={cells.cat.ordered}"
        yield f"{name}.types.json", _json(types)
        yield f"{name}.csv", made.to_csv(index=False)
    else:
        yield f"{name}.txt", f"{made.dtype} {made.shape} {digest(made.tobytes())}\n"


def _text(path: Path) -> str:
    if path.suffix == ".json":
        return _json(json.loads(path.read_text()))
    if path.suffix == ".csv":
        return path.read_text(encoding="utf-8")
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_csv(index=False)
    if path.suffix == ".html":
        return _DAY.sub(HIDDEN, _DIGEST.sub(HIDDEN, path.read_text(encoding="utf-8")))
    if path.suffix in (".yaml", ".jsonl", ".md", ".txt"):
        return _REVIEW.sub(HIDDEN, _MOMENT.sub(HIDDEN, path.read_text()))
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return "".join(
                f"{name} {arrays[name].dtype} {arrays[name].shape} {digest(arrays[name].tobytes())}\n"
                for name in arrays.files
            )
    return f"{digest(path.read_bytes())}\n"


def _json(plain: Any) -> str:
    return json.dumps(_alike(plain), indent=1, ensure_ascii=False, default=str) + "\n"


def _alike(plain: Any, key: str = "") -> Any:
    if key in _NEVER_ALIKE:
        return HIDDEN
    if isinstance(plain, Mapping):
        found = {name: _alike(value, str(name)) for name, value in plain.items()}
        return found | {"sha256": HIDDEN} if found.get("path") in ("card.html", "card.json") else found
    if isinstance(plain, (list, tuple)):
        return [_alike(value) for value in plain]
    return _MOMENT.sub(HIDDEN, plain) if isinstance(plain, str) else plain


def _ledger(ledger: db.Ledger) -> str:
    return "".join(json.dumps(_alike(json.loads(line)), ensure_ascii=False) + "\n" for line in _lines(ledger.path))


def _lines(path: Path) -> list[str]:
    return Path(path).read_text().splitlines()


__all__ = ["DIGITS", "HIDDEN", "SAMPLED", "digest", "record", "refusal"]
