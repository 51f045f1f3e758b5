"""Summary of an account for `doublure budget show`: plain values and one sentence."""

from __future__ import annotations

from typing import Any

from doublure.access import COVERED
from doublure.errors import counted, printable
from doublure.ledger.account import Account, ReservedRun
from doublure.ledger.amounts import Amount, Budget
from doublure.ledger.request import KINDS
from doublure.ledger.shapes import NO_NOISE, NONCE


def summary(account: Account) -> dict[str, Any]:
    """Return the account as plain JSON values.

    Returns:
        `dataset`; `cap`, `remaining` {epsilon, delta}; `spent` {epsilon, delta, kinds}, where `kinds` holds one total
        {runs, epsilon, delta} per kind, None where the kind has no ε; `runs` [{sequence, utc, run_id, method, kind,
        epsilon, delta, apart, status, steps, planned_steps}] with each one's current charge and the noisy steps it may
        have drawn, where `apart` lists {purpose, epsilon, delta} of an empirical run's accesses that have a price of
        their own, such as a vote on labels: they are part of no total; `apart` [{purpose, times, epsilon, delta}], the
        same added up over all runs that drew noise; `releases` [{sequence, utc, run_id, kind,
        head_sha256, files}]; `covers_all_releases`; `note`.
    """
    runs = list(account.runs.values())
    return {
        "dataset": account.dataset,
        "cap": _figures(account.cap.rounded_down()),
        "spent": _figures(account.spent.rounded_up()) | {"kinds": {kind: _total(kind, runs) for kind in KINDS}},
        "remaining": _figures((account.cap - account.spent).rounded_down()),
        "runs": [_run(run) for run in runs],
        "apart": _together([each for run in runs if run.status != NO_NOISE for each in _apart(run)]),
        "releases": [
            {
                "sequence": record.sequence,
                "utc": record.utc,
                "run_id": account.runs[record.body["id"]].run_id,
                "kind": record.body["kind"],
                "head_sha256": record.sha256,
                "files": {name: sha256 for name, sha256 in record.body["files"].items() if name != NONCE},
            }
            for record in account.releases
        ],
        "covers_all_releases": account.uncovered() == 0,
        "note": coverage(account),
    }


def coverage(account: Account) -> str:
    """Return one sentence on the releases that the total covers."""
    dataset, total, uncovered = printable(account.dataset), account.spent.rounded_up(), account.uncovered()
    if uncovered:
        bundles = f"{counted(uncovered, 'bundle')} {'was' if uncovered == 1 else 'were'}"
        return (
            f"The total {total} no longer covers all releases of {dataset}: {bundles} released under a kind that has "
            "no ε (empirical or none)."
        )
    return (
        f"The total {total} covers all fits recorded of {dataset}, released or not, by basic composition; Bayesian "
        "runs count with their worst case."
    )


def _run(run: ReservedRun) -> dict[str, Any]:
    charge = _figures(run.charge.rounded_up()) if run.kind in COVERED else {"epsilon": None, "delta": None}
    return {
        "sequence": run.sequence,
        "utc": run.utc,
        "run_id": run.run_id,
        "method": run.plan["method"],
        "kind": run.kind,
        **charge,
        "apart": _apart(run),
        "status": run.status,
        "steps": run.authorised if run.taken is None else run.taken,
        "planned_steps": run.plan["steps"],
    }


def _apart(run: ReservedRun) -> list[dict[str, Any]]:
    """Return the accesses of an empirical run that have a price of their own."""
    if run.kind != "empirical":
        return []
    priced = [touch for touch in run.plan["touches"] if touch.get("epsilon") is not None]
    return [{key: touch.get(key) for key in ("purpose", "epsilon", "delta")} for touch in priced]


def _together(apart: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the costs of accesses that are in no total, added up by purpose."""
    found = []
    for purpose in dict.fromkeys(each["purpose"] for each in apart):
        own = [each for each in apart if each["purpose"] == purpose]
        sums = {key: sum(each[key] for each in own) for key in ("epsilon", "delta")}
        found.append({"purpose": purpose, "times": len(own), **sums})
    return found


def _total(kind: str, runs: list[ReservedRun]) -> dict[str, Any]:
    mine = [run for run in runs if run.kind == kind]
    if kind not in COVERED:
        return {"runs": len(mine), "epsilon": None, "delta": None}
    return {"runs": len(mine)} | _figures(sum((run.charge for run in mine), Amount()).rounded_up())


def _figures(budget: Budget) -> dict[str, Any]:
    return {"epsilon": budget.epsilon, "delta": budget.delta}
