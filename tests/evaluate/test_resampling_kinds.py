"""The resamples of series, images and related tables say what computing again from resampled records would say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.images import Images
from doublure.data.series import Series
from doublure.measures.images.evaluation import _coded, _pixels
from doublure.measures.images.texture import texture
from doublure.measures.relational import evaluate_related
from doublure.measures.relational.relations import ComparedUnits, relation
from doublure.measures.relational.units import UnitCoder, draw_independent, read_units
from doublure.measures.resampling import Resamples
from doublure.measures.series.figures import channel_figures, distances
from doublure.measures.series.influence import resample_distances
from doublure.measures.series.statistics import series_statistics
from doublure.schema import Schema

AGAIN = 50


class Told(Resamples):
    """Keeps what each record is said to move."""

    def __init__(self):
        super().__init__(seed=1)
        self.said = {}

    def add(self, key, whose, value, influence):
        super().add(key, whose, value, influence)
        if whose == "value":
            self.said[key] = influence


class Untold(Resamples):
    """Resamples nothing."""

    def keep(self, key, whose, resampled):
        pass

    def shifts(self, rows, influence):
        return 0.0


def holds(figure, influence, rows, n):
    """Compare figures of ``AGAIN`` resamples with what the influences make of them."""
    rng = np.random.default_rng(3)
    drawn = [rng.integers(0, n, n) for _ in range(AGAIN)]
    found = {key: [] for key in influence}
    for some in drawn:
        for key, value in figure(some).items():
            if key in found:
                found[key].append(value)
    for key, exact in found.items():
        each = influence[key][rows]
        said = np.array([each[some].mean() - each.mean() for some in drawn])
        assert np.corrcoef(exact, said)[0, 1] > 0.7, key
        assert said.std() == pytest.approx(np.std(exact), rel=0.35), key


SERIES = """
doublure: 1
kind: series
units: 200
series: {length: 12, gaps: missing}
channels: {a: {type: real, bounds: [-5, 9], missing: true}, b: {type: real, bounds: [-5, 9], missing: true}}
"""


def waves(n, seed, shift, rough):
    rng = np.random.default_rng(seed)
    turns = 2 * np.pi * np.arange(12) / 12 + shift
    values = np.stack([np.sin(turns), 1 + np.cos(turns)], axis=1) + rough * rng.standard_normal((n, 12, 2)).cumsum(
        axis=1
    )
    values = values + rng.normal(shift, 1, (n, 1, 1))
    values[rng.random(values.shape) < 0.1] = np.nan
    return Series(values=values, channels=("a", "b"), attributes=pd.DataFrame(index=range(n)))


@pytest.mark.parametrize("rows", ["train", "value"])
def test_series(rows):
    schema = Schema.parse(SERIES)
    sets = {"real": waves(400, 1, 0.0, 0.3), "value": waves(300, 2, 0.8, 0.8)}
    sets |= {"baseline": sets["value"], "test": sets["value"]}
    statistics = {name: series_statistics(schema, each) for name, each in sets.items()}
    told = Told()
    scores = distances(schema, statistics, channel_figures(schema, statistics))
    resample_distances(scores, statistics, told)
    asked = {"profile", "apart", "autocorrelation", "spectrum", "values", "level", "peaks", "ramps", "steepest"}
    gaps = {"missing", "shared_gaps"}
    assert set(told.said) == asked | gaps
    place = {"train": "real", "value": "value"}[rows]

    def again(some):
        changed = statistics | {place: series_statistics(schema, sets[place].take(some))}
        found = distances(schema, changed, channel_figures(schema, changed))
        return {score.key: score.value for score in found}

    told_of = asked if rows == "train" else asked | gaps
    holds(again, {key: told.said[key] for key in told_of}, rows, len(sets[place]))


IMAGES = """
doublure: 1
kind: images
units: 100
images: {shape: [6, 6, 1]}
label: {values: [a, b]}
"""


def pictures(n, seed, light):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    pixels = np.clip(rng.normal(90 + light + 40 * labels[:, None, None, None], 30 + light, (n, 6, 6, 1)), 0, 255)
    return Images(images=pixels.astype(np.uint8), labels=pd.Series(np.array(["a", "b"])[labels]))


@pytest.mark.parametrize("rows", ["train", "value"])
def test_images(rows):
    schema = Schema.parse(IMAGES).resolve({})
    sets = {"train": pictures(150, 1, 0), "value": pictures(120, 2, 20)}

    def evaluated(real, made, told):
        sets = _coded(schema, {"value": made, "baseline": made, "real": real, "test": real})
        return (*_pixels(sets, told), *texture({"value": made, "baseline": made, "real": real}, told))

    told = Told()
    evaluated(sets["train"], sets["value"], told)
    asked = {"pixel_mean", "pixel_spread"} | ({"checkerboard", "block_spread"} if rows == "value" else set())

    def again(some):
        changed = sets | {rows: sets[rows].take(some)}
        return {score.key: score.value for score in evaluated(changed["train"], changed["value"], Untold())}

    holds(again, {key: told.said[key] for key in asked}, rows, len(sets[rows]))


RELATED = """
doublure: 1
kind: relational
unit: {name: patient}
units: 100
tables:
  patients:
    key: nr
    columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 4
    order: day
    columns:
      nr: {type: id}
      day: {type: integer, bounds: [0, 99], missing: false}
      ward: {type: category, values: [heart, lung, bone], missing: false}
"""


def patients(n, seed, tie):
    rng = np.random.default_rng(seed)
    sex, many = rng.integers(0, 2, n), rng.binomial(4, 0.5 if tie > 0.5 else 0.35, n)
    owner = np.repeat(np.arange(n), many)
    ward = np.where(rng.random(len(owner)) < tie, sex[owner], rng.integers(0, 3, len(owner)))
    names = np.array(["heart", "lung", "bone"])[ward]
    stays = pd.DataFrame({"nr": owner, "day": rng.integers(0, 100, len(owner)), "ward": names})
    return {"patients": pd.DataFrame({"nr": range(n), "sex": np.array(["f", "m"])[sex]}), "stays": stays}


@pytest.mark.parametrize("rows", ["train", "value"])
def test_related_tables(rows):
    schema = Schema.parse(RELATED).resolve({})
    coders = UnitCoder.of(schema)
    sets = {"train": read_units(schema, patients(400, 1, 0.8)), "value": read_units(schema, patients(300, 2, 0.2))}
    floor = draw_independent(sets["train"], 300, np.random.default_rng(0))

    def hung(given, told):
        coded = {name: coders.read(each, "units") for name, each in given.items()}
        sides = ComparedUnits(
            train=coded["train"], synthetic=coded["value"], baseline=coders.read(floor, "units"), test=coded["value"]
        )
        return relation(coders, sides, "stays", 0, told)

    told = Told()
    found = hung(sets, told)
    asked = {f"{key} stays" for key in ("children", "parent_child", "transitions")}
    assert set(told.said) == asked
    intervals = {score.key: score.interval for score in found.scores}
    assert intervals.pop("counts") is intervals.pop("gaps") is None
    assert None not in intervals.values()

    def again(some):
        changed = sets | {rows: sets[rows].take(some)}
        return {f"{score.key} stays": score.value for score in hung(changed, Untold()).scores}

    holds(again, told.said, rows, len(sets[rows]))


def test_the_target_and_the_tables_of_related_units_are_resampled():
    text = RELATED.replace("[f, m], missing: false", "[f, m], missing: false, roles: [target]")
    schema = Schema.parse(text).resolve({})
    resamples = Resamples(seed=1)
    found = evaluate_related(
        schema, patients(80, 3, 0.8), patients(80, 1, 0.8), patients(60, 2, 0.8), resamples=resamples
    )
    keys = {score.key for score in found.scores}
    assert {key for key in keys if resamples.of(key) is not None} == keys - {
        "discriminative",
        "gaps stays",
        "counts stays",
    }
