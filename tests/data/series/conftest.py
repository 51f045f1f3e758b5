"""A schema of days of four readings, and readings to cut them from."""

from __future__ import annotations

import pandas as pd
import pytest

from doublure.data.series import open_series
from doublure.errors import DataError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
unit: {name: day, id: none}
units: 12
series: {source: meter, time: when, length: 4, step: 6h, gaps: missing}
channels: {litres: {type: real, bounds: [0, 99], missing: true}}
"""


def with_rules(**changes: str) -> Schema:
    """Return the schema with other rules for windows; ``channel`` and ``unit`` replace those lines."""
    text = TEXT
    if "channel" in changes:
        text = text.replace("{type: real, bounds: [0, 99], missing: true}", changes.pop("channel"))
    if "unit" in changes:
        text = text.replace("{name: day, id: none}", changes.pop("unit"))
    if "attributes" in changes:
        text += f"attributes: {changes.pop('attributes')}\n"
    rules = {"source": "meter", "time": "when", "length": "4", "step": "6h", "gaps": "missing"} | changes
    kept = ", ".join(f"{key}: {value}" for key, value in rules.items() if value)
    return Schema.parse(text.replace("source: meter, time: when, length: 4, step: 6h, gaps: missing", kept))


class AttackData:
    """What the tests of this folder share."""

    schema = staticmethod(with_rules)

    @staticmethod
    def readings(first: str = "2024-03-04", days: int = 2, meters: tuple[str, ...] = ("m1", "m2")) -> pd.DataFrame:
        """Return whole days of readings: meter number, then day, then step, as digits."""
        moments = pd.date_range(first, periods=4 * days, freq="6h")
        frames = [
            pd.DataFrame(
                {
                    "meter": meter,
                    "when": moments.strftime("%Y-%m-%dT%H:%M:%S"),
                    "litres": [100.0 * number + 10 * (place // 4) + place % 4 for place in range(len(moments))],
                }
            )
            for number, meter in enumerate(meters)
        ]
        return pd.concat(frames, ignore_index=True)

    @staticmethod
    def loaded(data, schema, **more):
        source = open_series(data)
        source.check(schema)
        return source.load(schema, **more)

    @classmethod
    def values(cls, data, schema):
        """Return the first channel, a list a series."""
        return cls.loaded(data, schema, at_least=1).content.values[:, :, 0].tolist()

    @classmethod
    def refusal(cls, data, schema):
        with pytest.raises(DataError) as caught:
            cls.loaded(data, schema)
        assert "\n" not in str(caught.value)
        assert caught.value.field
        assert caught.value.remedy
        return str(caught.value)


@pytest.fixture(scope="session")
def world() -> AttackData:
    return AttackData()
