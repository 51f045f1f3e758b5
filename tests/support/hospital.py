"""The hospital's stays of docs/own-table.md, made up with the faults of a real export."""

from __future__ import annotations

import numpy as np
import pandas as pd


def stays() -> pd.DataFrame:
    """Return stays of 900 patients; some still lie there, some creatinines are unknown or below what is measured."""
    draw = np.random.default_rng(3)
    many = np.minimum(1 + draw.poisson(0.7, 900), 4)
    who = np.repeat(np.arange(900), many)
    n = len(who)
    born = np.datetime64("1930-01-01") + draw.integers(0, 30_000, 900)
    admitted = np.datetime64("2022-01-01T00:00") + draw.integers(0, 700 * 1440, n).astype("timedelta64[m]")
    los = np.round(draw.gamma(1.2, 3.5, n), 1).clip(0, 90)
    discharged = admitted + np.round(los * 1440).astype("timedelta64[m]")
    there = draw.random(n) < 0.05
    creatinine = np.round(np.exp(draw.normal(0, 0.4, n)), 2).astype(str)
    creatinine[draw.random(n) < 0.2] = ""
    creatinine[draw.random(n) < 0.1] = "<0.2"
    stamp = [pd.Series(times).dt.strftime("%Y-%m-%d %H:%M") for times in (admitted, discharged)]
    return pd.DataFrame(
        {
            "MRN": 100_000 + who,
            "name": "Doe, Jo",
            "dob": born[who],
            "sex": draw.choice([1, 2, 9], 900, p=[0.48, 0.5, 0.02])[who],
            "icd10": draw.choice(["A00.1", "A00.2", "I21.0", "I21.1", "C50.1", "C50.9"], n),
            "admitted": stamp[0],
            "discharged": np.where(there, "", stamp[1]),
            "los_days": np.where(there, "", los.astype(str)),
            "creatinine": creatinine,
            "note": "well",
            "icu": np.where(draw.random(n) < 0.15, "Y", "N"),
            "site": "MAIN",
        }
    )
