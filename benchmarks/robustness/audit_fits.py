"""Whole fits, audited end to end: how well a reader tells whether one record was there, beside what is claimed.

    python benchmarks/robustness/audit_fits.py --hours 2              # resumable; the cheapest methods first
    python benchmarks/robustness/audit_fits.py --table
    python benchmarks/robustness/audit_fits.py --record               # rows into benchmarks/measured/audit_fits.jsonl
    python benchmarks/robustness/audit_fits.py --planted --method statistics --fits 200   # half the noise

Each fit is ``doublure.fit`` with a ledger and a run folder of its own and the operating system's noise; the worlds and
what readers take of a fit are in ``audit_worlds.py``. The first fifth of the fits trains the reader's rule, where the
likelihood ratio is not known, the next chooses thresholds, and the bounds rest on the others:

- Clopper and Pearson's bounds on both error rates give the least ε at the claim's δ, with no assumption.
- The same bounds give the least μ of Gaussian differential privacy, and its ε at δ. It is tight, and assumes that the
  mechanism's trade-off is nearly Gaussian.
- From the whole curve: whatever is μ-GDP lets no reader's curve pass the Gaussian one, whose area is Φ(μ/√2). DeLong's
  lower end of the area gives the least μ, without any threshold, so that those that chose one count too. The claim's
  own area (f-DP: the accountant's δ at every ε) says how much there was to be seen.

A claim is accused where misses are fewer than its own trade-off allows at the upper bound of the false alarms, or where
the curve's μ passes what its own area allows; each at a confidence of 95 % for itself.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import torch
from audit_worlds import Case, answers_heard, cases
from numpy.typing import NDArray

import doublure as db
from doublure.attack import bounds
from doublure.intervals import delong
from doublure.private import accounting, whole_noise
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.run.folder import RunFolder
from results import MEASURED, OUT, add, finished

Floats: TypeAlias = NDArray[np.float64]
EPSILON, DELTA, SEED, CONFIDENCE = 4.0, 1e-5, 0, 0.95
READERS = ("kept", "generator")
NAME = "audit_fits"
_ASIDE = 0.2
_ROOM = {"dataset": "audit", "epsilon": 100.0, "delta": 0.1}


# -- fitting -----------------------------------------------------------------------------------------------------------


@contextmanager
def half_the_noise() -> Iterator[None]:
    """All noise of half the scale that it says it has."""
    counts, real, whole = whole_noise.gaussian, OsKeyedNoise.normal, OsKeyedNoise.whole

    def of_counts(exact: Any, *, scale: float) -> ScaledNoise:
        return counts(exact, scale=scale / 2)._replace(scale=scale)

    def of_reals(self: OsKeyedNoise, size: int, std: float) -> ScaledNoise:
        return real(self, size, std / 2)._replace(scale=std)

    def of_steps(self: OsKeyedNoise, size: int, std: float, unit: float) -> ScaledNoise:
        drawn = whole(self, size, std / 2, unit)
        return drawn._replace(scale=2 * drawn.scale)

    with ExitStack() as stack:
        stack.enter_context(patch.object(whole_noise, "gaussian", of_counts))
        stack.enter_context(patch.object(OsKeyedNoise, "normal", of_reals))
        stack.enter_context(patch.object(OsKeyedNoise, "whole", of_steps))
        yield


def one(case: Case, plan: db.Plan, canary: bool) -> dict[str, list[float]]:
    """Fit once, and return what each reader takes of it."""
    with tempfile.TemporaryDirectory() as folder:
        book, out = Path(folder) / "ledger", Path(folder) / "run"
        with answers_heard() as answers:
            syn = db.fit(case.data(canary), plan, ledger=db.Ledger.create(book, **_ROOM), out=out, seed=SEED)
        return case.read(syn, {**(RunFolder.open(out).load() or {}), **answers})


class Fits:
    """The fits made so far, a line each.

    Args:
        path: Of the file; it need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, name: str, plan: db.Plan, *, planted: bool) -> list[dict[str, Any]]:
        """Return a case's fits as they were made; those of other settings, and a line that was cut short, are none."""
        key = _key(name, plan, planted=planted)
        return [line for line in self._lines() if key.items() <= line.items()]

    def make(self, name: str, case: Case, plan: db.Plan, wanted: int, *, planted: bool, until: float) -> None:
        """Fit in turns with and without the canary, to so many a world or to so much time of the processor."""
        made = len(self.of(name, plan, planted=planted))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if planted:
                stack.enter_context(half_the_noise())
            for number in range(made, 2 * wanted):
                if time.process_time() >= until:
                    return
                line = {**_key(name, plan, planted=planted), "canary": bool(number % 2)}
                line |= one(case, plan, canary=line["canary"])
                with self.path.open("a") as file:
                    file.write(json.dumps(line) + "\n")

    def _lines(self) -> Iterator[dict[str, Any]]:
        for text in self.path.read_text().splitlines() if self.path.is_file() else ():
            try:
                yield json.loads(text)
            except ValueError:
                continue


def _key(name: str, plan: db.Plan, *, planted: bool) -> dict[str, Any]:
    settings = plan.settings.model_dump(mode="json", exclude={"public"})
    return {"case": name, "epsilon": plan.epsilon, "settings": settings, "units": plan.schema.public_units,
            "planted": planted}  # fmt: skip


# -- bounds ------------------------------------------------------------------------------------------------------------


def judged(inside: Floats, outside: Floats, plan: db.Plan) -> dict[str, Any]:
    """Return what one reader's numbers show, and what the claim allows.

    Args:
        inside: ``(n, F)`` numbers of fits with the canary, in the order in which they were made.
        outside: ``(n, F)`` of fits without.
        plan: What was fitted.
    """
    count, delta = min(len(inside), len(outside)), plan.delta or 0.0
    known = inside.shape[1] == 1  # a likelihood ratio
    trained = 0 if known else int(_ASIDE * count)
    chosen = trained + int(_ASIDE * count)
    rule = np.ones(1) if known else direction(inside[:trained], outside[:trained])
    scores = [world[:count] @ rule for world in (inside, outside)]
    aside, others = ([each[part] for each in scores] for part in (slice(trained, chosen), slice(chosen, None)))

    def mu_of(rates: bounds.ErrorRates) -> float:
        return bounds.gaussian_mu(rates.upper_false_positives, rates.upper_false_negatives)

    def epsilon_of(rates: bounds.ErrorRates) -> float:
        return bounds.epsilon_from_rates(rates.upper_false_positives, rates.upper_false_negatives, delta)

    gaussian, plain = (
        bounds.error_rates(*others, bounds.best_threshold(*aside, shown, CONFIDENCE), CONFIDENCE)
        for shown in (mu_of, epsilon_of)
    )
    member = np.arange(2 * (count - trained)) < count - trained
    area, interval = delong(member, np.concatenate([each[trained:] for each in scores]))
    curve = 0.0 if interval is None else mu_of_area(interval[0])
    allowed = Allowed(plan)
    most = mu_of_area(allowed.area)
    return {
        "fits": count, "judged": len(others[0]),
        "epsilon_shown": epsilon_of(plain),
        "gaussian_epsilon": bounds.gaussian_epsilon(mu_of(gaussian), delta),
        "gaussian_mu": mu_of(gaussian),
        "curve_mu": curve,
        "area": area,
        "allowed_mu": most,
        "accused": curve > most or any(each.upper_false_negatives < allowed.misses(each.upper_false_positives)
                                       for each in (gaussian, plain)),
    }  # fmt: skip


def direction(inside: Floats, outside: Floats) -> Floats:
    """Return Fisher's linear rule ``(F,)``; numbers that never move count for nothing."""
    apart = inside.mean(0) - outside.mean(0)
    spread = np.atleast_2d(np.cov(np.concatenate([inside - inside.mean(0), outside - outside.mean(0)]).T))
    scale = np.sqrt(np.diag(spread))
    moving = scale > 1e-9 * np.abs(np.concatenate([inside, outside])).max(0).clip(1e-9)
    rule = np.zeros(len(apart))
    if moving.any():
        unit = scale[moving]
        alike = spread[np.ix_(moving, moving)] / np.outer(unit, unit) + 1e-6 * np.eye(len(unit))
        rule[moving] = np.linalg.solve(alike, apart[moving] / unit) / unit
    return rule


def mu_of_area(area: float) -> float:
    """Return μ of the Gaussian curve with this area below it: √2 Φ⁻¹(area), at least 0.

    Example:
        >>> round(mu_of_area(0.7602), 2)
        1.0
    """
    from scipy.stats import norm

    return max(0.0, float(np.sqrt(2) * norm.ppf(area)))


class Allowed:
    """What a claim allows any reader: the trade-off function of the plan's events.

    Args:
        plan: Its accesses are composed by the accountant.
    """

    def __init__(self, plan: db.Plan) -> None:
        events = [access.event for access in plan.touches if access.event is not None]
        by = plan.guarantee.accountant
        self._delta_at = functools.cache(lambda epsilon: accounting.delta_of(events, epsilon, accountant=by))

    def misses(self, false_alarms: float) -> float:
        """Return the least share of misses at this share of false alarms."""
        return bounds.trade_off(self._delta_at, false_alarms)

    @property
    def area(self) -> float:
        """The most area that a reader's curve has."""
        places = np.linspace(0, 1, 201)
        return 1 - float(np.trapezoid([self.misses(float(place)) for place in places], places))


# -- what was found ----------------------------------------------------------------------------------------------------


def rows(fits: Fits, chosen: dict[str, Case], *, planted: bool) -> Iterator[dict[str, Any]]:
    """Yield what each reader of each case shows."""
    for name, case in chosen.items():
        plan = case.plan(EPSILON, DELTA)
        lines = fits.of(name, plan, planted=planted)
        for reader in READERS:
            worlds = [np.array([line[reader] for line in lines if line["canary"] is there]) for there in (True, False)]
            if min(map(len, worlds)) >= 20:
                yield {"case": name, "method": case.method, "kind": case.kind, "reader": reader, "planted": planted,
                       "claimed": plan.epsilon, "delta": plan.delta, **judged(*worlds, plan)}  # fmt: skip


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return what was found as a table."""
    head = ("case", "reader", "fits a world", "ε ≥", "Gaussian ε ≥", "Gaussian μ ≥", "μ of the curve ≥", "allowed μ",
            "accused")  # fmt: skip
    body = []
    for row in found:
        figures = ("epsilon_shown", "gaussian_epsilon", "gaussian_mu", "curve_mu", "allowed_mu")
        name = row["case"] + (", half the noise" if row["planted"] else "")
        body.append((name, row["reader"], f"{row['fits']:,}", *(f"{row[key]:.2f}" for key in figures),
                     "YES" if row["accused"] else "no"))  # fmt: skip
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ("---",) * len(head), *body))


def record(found: Sequence[dict[str, Any]]) -> None:
    """Keep what was found, in place of what was kept of the same cases before."""
    own = {(row["case"], row["reader"], row["planted"]) for row in found}
    kept = [row for row in finished(NAME) if (row["case"], row["reader"], row["planted"]) not in own]
    path = MEASURED / f"{NAME}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    for row in found:
        more = " --planted" if row["planted"] else ""
        command = f'python benchmarks/robustness/{NAME}.py --method "{row["case"]}" --fits {row["fits"]}{more}'
        add(NAME, {**row, "confidence": CONFIDENCE, "seed": SEED, "command": command})


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", nargs="+", default=[], help="a method's name, or that of a case")
    parser.add_argument("--fits", type=int, help="a world; as many as the case wants if left out")
    parser.add_argument("--hours", type=float, default=24.0, help="of the processor, at most")
    parser.add_argument("--planted", action="store_true", help="with half of the noise: must be accused")
    parser.add_argument("--table", action="store_true", help="fit nothing")
    parser.add_argument("--record", action="store_true", help="fit nothing; keep the figures of cases that are done")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    known = cases(OUT / "audit_public")
    wanted = {n: c for n, c in known.items() if not arguments.method or {n, c.method} & {*arguments.method}}
    if not wanted:
        raise SystemExit(f"there is no such case; there are: {', '.join(known)}")
    fits, planted, until = Fits(OUT / f"{NAME}.jsonl"), arguments.planted, 3600 * arguments.hours
    for name, case in wanted.items() if not (arguments.table or arguments.record) else ():
        plan = case.plan(EPSILON, DELTA)
        fits.make(name, case, plan, arguments.fits or case.fits, planted=planted, until=until)
        print(table(list(rows(fits, {name: case}, planted=planted))), flush=True)
    found = list(rows(fits, wanted, planted=planted))
    if arguments.record:
        record([row for row in found if row["fits"] >= (arguments.fits or known[row["case"]].fits)])
    print(table(found))


if __name__ == "__main__":
    main()
