"""Plans of every stage that asks owners for sums or steps, and a few units, dealt to silos or to devices."""

from __future__ import annotations

import numpy as np
import pandas as pd
from owners import with_owners

import doublure as db

UNITS = 24
PICTURES = f"""
doublure: 1
kind: images
units: {UNITS}
federated: {{max_silos: 1}}
images: {{shape: [8, 8, 1], pictures: drawings}}
label: {{values: [0, 1], roles: [target, condition]}}
"""
ROWS = f"""
doublure: 1
kind: table
units: {UNITS}
columns:
  a: {{type: real, bounds: [0, 1], missing: false}}
  b: {{type: category, values: [x, y, z], missing: true}}
  c: {{type: category, values: [low, high], missing: false, roles: [target]}}
"""
SMALL = {"features": 64, "batch": 20, "channels": [6, 4], "hidden": 8, "fit_steps": 5}
STEPS = {"critic_steps": 3, "critic_lot": 8}
CRITIC = {"steps": 3, "lot_size": 8, "generator_batch": 16, "checkpoints": 2, "distances": UNITS, "noise_width": 4}
CASES = {
    "statistics on images": ("statistics", PICTURES, SMALL),
    "guided on images": (
        "guided", PICTURES,
        SMALL | STEPS | {"critic_share": 0.3, "labeller_share": 0.3, "labeller_steps": 3, "view_images": 100,
                         "view_width": 6, "critic_channels": [4]},
    ),
    "guided on tables": (
        "guided", with_owners(ROWS), STEPS | {"critic_share": 0.5, "components": 4, "fit_steps": 5, "critic_width": 8},
    ),
    "bayesgan on images": (
        "bayesgan", PICTURES,
        CRITIC
        | {"max_grad_norm": 50.0, "critic_channels": [4], "channels": [6, 4], "features": 8, "labeller_steps": 3,
           "view_images": 100, "view_width": 6},
    ),
    "bayesgan on tables": ("bayesgan", with_owners(ROWS), CRITIC | {"width": 8, "critic_width": 8, "loss": "logistic"}),
    "dpgan on images": (
        "dpgan", PICTURES,
        {key: value for key, value in CRITIC.items() if key != "distances"}
        | {"critic_channels": [4], "channels": [6, 4], "features": 8},
    ),
}  # fmt: skip
SILOS = [[*range(9)], [*range(9, UNITS)]]
DEVICES = [[unit] for unit in range(UNITS)]


def everything(schema):
    draw = np.random.default_rng(0)
    if "images" in schema:
        return {"images": draw.integers(0, 256, (UNITS, 8, 8, 1), dtype=np.uint8), "labels": draw.integers(0, 2, UNITS)}
    return pd.DataFrame(
        {
            "a": draw.random(UNITS), "b": draw.choice(["x", "y", "z", ""], UNITS),
            "c": draw.choice(["low", "high"], UNITS),
        }
    )  # fmt: skip


def planned(case, **more):
    method, schema, settings = CASES[case]
    return db.plan(db.Schema.parse(schema), method=method, epsilon=8.0, delta=1e-4, **(settings | more))


def declared(plan, groups):
    """Return how many units owners declare, where they have to."""
    return [len(group) for group in groups] if plan.guarantee.kind == "bayesian-dp" else None


def dealt(folder, records, groups):
    folder.mkdir(parents=True)
    files = []
    for number, group in enumerate(groups, start=1):
        if isinstance(records, dict):
            files.append(folder / f"owner-{number:03d}.npz")
            np.savez(files[-1], **{name: of[group] for name, of in records.items()})
        else:
            files.append(folder / f"owner-{number:03d}.csv")
            records.iloc[group].to_csv(files[-1], index=False)
    return files
