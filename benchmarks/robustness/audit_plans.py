"""Random plans, whose claims are recomposed from ``plan.json`` by Google's dp_accounting and by nothing of doublure.

Kinds, methods, learned facts, records a unit, owners, ε and δ are drawn. Each event of the plan is made a privacy loss
distribution; their composition at the claim's δ gives an ε that may not be above the claim.

A table of counts with discrete Gaussian noise in which a unit has one record is the discrete Gaussian mechanism of
sensitivity 1. A unit with m records moves it by m in L2 at most, wherever its records fall. Its Rényi curve is then
bounded by that of the Gaussian with σ/m (Canonne, Kamath, Steinke 2020), and such plans are composed by Rényi curves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audit_neighbours import Drawn
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as losses
from dp_accounting.rdp import rdp_privacy_accountant as renyi

import doublure as db
from doublure.errors import DoublureError

_GRID = 1e-4
_REPLACE = NeighboringRelation.REPLACE_ONE  # one answer by another: what an (ε, 0) event is at worst
_ORDERS = [1 + x / 20 for x in range(1, 200)] + [*range(11, 256), 512, 1024]
_STEPS = {"steps": 100, "lot_size": 100}


# -- composed anew -----------------------------------------------------------------------------------------------------


def recomposed(plan: Mapping[str, Any], delta: float) -> float:
    """Return the ε of a plan's events together, from what ``plan.json`` holds.

    Args:
        plan: As JSON.
        delta: At which δ.
    """
    events = [touch["event"] for touch in plan["touches"] if touch["event"] is not None]
    several = any(event["type"] == "discrete-gaussian" and event["records"] > 1 for event in events)
    return _by_renyi(events, delta) if several else _by_losses(events, delta)


def _by_losses(events: Sequence[Mapping[str, Any]], delta: float) -> float:
    total = None
    for event in events:
        own = _loss(event)
        total = own if total is None else total.compose(own)
    return 0.0 if total is None else float(total.get_epsilon_for_delta(delta))


def _loss(event: Mapping[str, Any]) -> losses.PrivacyLossDistribution:
    kind, grid = event["type"], {"value_discretization_interval": _GRID}
    if kind == "gaussian" and event["sample_rate"] == 1:
        return losses.from_gaussian_mechanism(event["noise_multiplier"] / math.sqrt(event["steps"]), **grid)
    if kind == "gaussian":
        once = losses.from_gaussian_mechanism(event["noise_multiplier"], sampling_prob=event["sample_rate"], **grid)
        return once.self_compose(event["steps"])
    if kind == "discrete-gaussian":
        once = losses.from_discrete_gaussian_mechanism(event["scale"], use_connect_dots=True, **grid)
        return once.self_compose(event["tables"])
    priced = common.DifferentialPrivacyParameters(event["epsilon"], event.get("delta", 0.0))
    return losses.from_privacy_parameters(priced, **grid)


def _by_renyi(events: Sequence[Mapping[str, Any]], delta: float) -> float:
    """Return ε by Rényi curves; an (ε, δ) event is at worst randomised response, but for its δ."""
    gaussian, answers = renyi.RdpAccountant(_ORDERS), renyi.RdpAccountant(_ORDERS, _REPLACE)
    left = delta
    for event in events:
        if event["type"] == "gaussian":
            once: dp_event.DpEvent = dp_event.GaussianDpEvent(event["noise_multiplier"])
            if event["sample_rate"] < 1:
                once = dp_event.PoissonSampledDpEvent(event["sample_rate"], once)
            gaussian.compose(once, event["steps"])
        elif event["type"] == "discrete-gaussian":
            gaussian.compose(dp_event.GaussianDpEvent(event["scale"] / event["records"]), event["tables"])
        else:
            lies = 2 / (1 + math.exp(event["epsilon"]))  # how often one of two answers is drawn instead of told
            answers.compose(dp_event.RandomizedResponseDpEvent(lies, 2))
            left -= event.get("delta", 0.0)
    together = gaussian._rdp + answers._rdp
    return float(renyi.compute_epsilon(_ORDERS, together, left)[0])


# -- plans -------------------------------------------------------------------------------------------------------------


def drawn_plan(seed: int) -> tuple[str, db.Plan]:
    """Return what was drawn, in words, and the plan; what is refused is drawn again."""
    draw = Drawn(seed)
    while True:
        kind = draw.one(list(_SCHEMAS))
        method, settings = draw.one(_METHODS[kind])
        text = _SCHEMAS[kind](draw)
        epsilon, delta = draw.one([0.5, 1, 2, 3, 4, 8]), draw.one([1e-5, 1e-6, 1e-7])
        try:
            plan = db.plan(db.Schema.parse(text), method=method, epsilon=epsilon, delta=delta, **settings)
        except DoublureError:
            continue
        return f"{method} of {kind}", plan


def checked(seed: int) -> dict[str, Any]:
    """Return what a random plan claims, and what it comes to."""
    about, plan = drawn_plan(seed)
    epsilon, delta = plan.worst_case or (plan.epsilon, plan.delta)
    if epsilon is None or delta is None:
        raise TypeError("a plan without a claim")
    found = recomposed(plan.to_json(), delta)
    return {
        "plan": about, "events": len(plan.touches), "records": plan.schema.most_records, "epsilon": epsilon,
        "delta": delta, "accountant": plan.guarantee.accountant, "recomposed": found, "ratio": found / epsilon,
        "accused": found > epsilon,
    }  # fmt: skip


def _units(draw: Drawn) -> str:
    return draw.one(["5000", "20000", "{learn: 0.05, magnitude: 5000}"])


def _unit(draw: Drawn, name: str, key: str) -> tuple[str, int]:
    most = draw.one([1, 1, 2, 3, 5])
    return (f"{{name: {name}}}" if most == 1 else f"{{name: {name}, id: {key}, max_records: {most}}}"), most


def _table(draw: Drawn) -> str:
    unit, most = _unit(draw, "person", "pid")
    return f"""
doublure: 1
kind: table
unit: {unit}
units: {_units(draw)}
{draw.one(["", "", "federated: {max_silos: 1}", "federated: {max_silos: 2}"])}
columns:
{"  pid: {type: id}" if most > 1 else ""}
  a: {{type: category, values: {draw.learned("[x, y]", 0.1)}, other: o, missing: false}}
  b: {{type: category, values: [u, v], missing: {draw.learned("false", 0.05)}}}
  c: {{type: integer, bounds: {draw.learned("[0, 50]", 0.1)}, missing: false}}
  d: {{type: real, bounds: [0, 1], missing: true}}
"""


def _related(draw: Drawn) -> str:
    return f"""
doublure: 1
kind: relational
unit: {{name: p}}
units: {_units(draw)}
tables:
  p:
    key: nr
    columns:
      nr: {{type: id}}
      s: {{type: category, values: [f, m], missing: false}}
      x: {{type: integer, bounds: {draw.learned("[0, 9]", 0.1)}, missing: false}}
  c:
    parent: p
    foreign_key: nr
    max_children: {draw.one([1, 2, 5])}
    order: t
    columns:
      nr: {{type: id}}
      t: {{type: integer, bounds: [0, 100], missing: false}}
      w: {{type: category, values: {draw.learned("[a, b]", 0.1)}, other: zz, missing: {draw.learned("true", 0.05)}}}
  d:
    parent: p
    foreign_key: nr
    max_children: 2
    columns:
      nr: {{type: id}}
      v: {{type: real, bounds: [0, 9], missing: false}}
"""


def _series(draw: Drawn) -> str:
    unit, most = _unit(draw, "meter", "m")
    return f"""
doublure: 1
kind: series
unit: {unit if most > 1 else "{name: meter, id: null}"}
units: {_units(draw)}
series: {{length: 12, gaps: missing}}
channels:
  x: {{type: real, bounds: {draw.learned("[0, 100]", 0.1)}, precision: 1, missing: true}}
  y: {{type: integer, bounds: [0, 50], missing: false}}
attributes:
  g: {{type: category, values: [a, b], missing: false}}
"""


def _images(draw: Drawn) -> str:
    unit, _ = _unit(draw, "person", "p")
    return f"""
doublure: 1
kind: images
unit: {unit}
units: {_units(draw)}
images: {{shape: [8, 8, 3]}}
label: {{values: [0, 1, 2], shares: {draw.learned("{0: 0.3, 1: 0.3, 2: 0.4}", 0.1)}}}
"""


_SCHEMAS: dict[str, Callable[[Drawn], str]] = {
    "tables": _table, "related tables": _related, "series": _series, "images": _images,
}  # fmt: skip
_METHODS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tables": [
        ("statistics", {}), ("guided", {"critic_share": 0.4, "critic_steps": 100}), ("dpgan", _STEPS),
        ("bayesgan", {"steps": 100}),
    ],
    "related tables": [("statistics", {}), ("statistics", {"root_share": 0.5, "first_share": 0.3})],
    "series": [("statistics", {}), ("statistics", {"model": "chains"}), ("dpgan", {"steps": 100})],
    "images": [
        ("statistics", {"model": "gaussian"}), ("guided", {"model": "gaussian"}), ("bayesgan", {"steps": 100}),
        ("guided", {"critic_share": 0.2, "labeller_share": 0.3, "critic_steps": 50}),
    ],
}  # fmt: skip
