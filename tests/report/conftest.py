import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from doublure.evaluate import Report, evaluate_table
from doublure.results import SynthesizerFacts
from doublure.schema import Schema

HOSTILE = '<script>alert("x")</script>'
BIDI = "safe\u202egnp.exe"
MATHS = r"$\frac{1}{0$"
LONG = "a name that goes on and on " * 10


class Page(HTMLParser):
    """What a browser would see: tags, attributes, ids and visible text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.ids, self.text = [], [], [], ""
        self.feed(str(html))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text += data

    def handle_endtag(self, tag):
        if tag in ("dt", "dd", "td", "th", "p", "li", "text"):
            self.text += " "

    def attribute(self, tag, name):
        return [value for found, key, value in self.attributes if (found, key) == (tag, name)]


@pytest.fixture(scope="session")
def parse():
    return Page


@pytest.fixture(scope="session")
def hostile_report():
    """An evaluation of a table whose names and values attack the page."""
    schema = Schema.from_plain(
        {
            "doublure": 1,
            "kind": "table",
            "units": 300,
            "unit": {"name": HOSTILE},
            "columns": {
                HOSTILE: {"type": "integer", "bounds": [0, 9], "missing": True},
                LONG.strip(): {"type": "real", "bounds": [0, 1], "missing": False},
                "wide": {"type": "integer", "bounds": [0, 10**6], "zero_inflated": True, "missing": False},
                "day": {"type": "date", "bounds": ["2020-01-01", "2021-01-01"], "missing": False},
                MATHS: {"type": "category", "values": [HOSTILE, BIDI, MATHS, LONG, "日本", "'"], "missing": False},
                "target": {"type": "category", "values": [HOSTILE, BIDI], "missing": False, "roles": ["target"]},
            },
        }
    ).resolve({})

    def draw(seed, n=400):
        rng = np.random.default_rng(seed)
        return pd.DataFrame(
            {
                HOSTILE: np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 10, n)),
                LONG.strip(): rng.random(n),
                "wide": np.where(rng.random(n) < 0.5, 0, (10 ** rng.uniform(0, 6, n)).astype(int)),
                "day": np.datetime64("2020-01-01", "s") + rng.integers(0, 360, n) * np.timedelta64(86_400, "s"),
                MATHS: rng.choice([HOSTILE, BIDI, MATHS, LONG, "日本", "'"], n),
                "target": rng.choice([HOSTILE, BIDI], n),
            }
        )

    about = SynthesizerFacts(
        method="dpgan",
        guarantee_kind="none",
        guarantee="No privacy guarantee. Do not publish.",
        unit=HOSTILE,
        schema_sha256=schema.sha256,
        created="2026-01-02T03:04:05+00:00",
    )
    return Report(about=about, table=evaluate_table(schema, draw(1), draw(2), draw(3)))


@pytest.fixture(scope="session")
def card():
    return json.loads(
        """{"version": 1, "doublure_version": "0.1.0", "created": "2026-01-02", "title": "Adult: synthetic rows",
        "contact": "steward@example.org", "method": "guided", "watermark": "Synthetic data",
        "guarantee": {"kind": "dp", "epsilon": 1.0, "delta": 1e-5, "epsilon_mu": null, "delta_mu": null, "mu": null,
          "gamma": null, "unit": "person", "max_records": 1, "relation": "add/remove", "accountant": "PLD",
          "sample_rate": 0.01, "noise_multiplier": 1.7, "steps": 1200, "noise_source": "operating system",
          "assumptions": ["the declared schema is public"], "excluded": ["timing side channels"],
          "sentence": "(\u03b5=1, \u03b4=1e-05)-differentially private for one person"},
        "touches": [{"purpose": "critic", "event": {"type": "gaussian", "noise_multiplier": 1.7, "steps": 1200},
          "epsilon": 0.9, "delta": 1e-5}],
        "schema_sha256": "c4c4", "public_sources": ["a codebook"],
        "ledger": {"dataset": "adult", "sequence": 7, "head_sha256": "abab"},
        "files": [{"path": "data.parquet", "sha256": "1212", "rows": 30000}],
        "limits": ["Three-way relations are weak."], "review_by": "2027-01-02"}"""
    )
