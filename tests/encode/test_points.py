"""Two numbers that are one place: a place on a curve and back, each row by itself, within a public region."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planting import plant

import doublure as db
from doublure.data.tables.rules import keep
from doublure.drafting.draft import drafted
from doublure.encode import points
from doublure.encode.points import CurveDomain, PointEncoding
from doublure.encode.table import TableEncoder
from doublure.encode.table_values import TableValues
from doublure.errors import SchemaError
from doublure.schema import ResolvedSchema
from doublure.schema.missing_states import hole_states, tag_holes

TEXT = """
doublure: 1
kind: table
units: 3000
columns:
  lat: {type: real, bounds: [47, 55], precision: 3, missing: MISSING}
  lon: {type: real, bounds: [5, 15], precision: 3, missing: MISSING}
  kind: {type: category, values: [taxi, bike], missing: false}
constraints:
  - {point: [lon, lat]REGION}
"""
TOWNS = np.array([[9.99, 53.55], [13.4, 52.52], [11.57, 48.14], [6.96, 50.94]])
BOX = ", region: [[[9, 52], [14, 52], [14, 54], [9, 54]]]"


def schema_of(missing: str = "false", region: str = "") -> ResolvedSchema:
    return ResolvedSchema.of(db.Schema.parse(TEXT.replace("MISSING", missing).replace("REGION", region)).resolve({}))


def frame_of(places: Any) -> pd.DataFrame:
    found = np.asarray(places, dtype=np.float64)
    kinds = pd.Categorical(np.where(np.arange(len(found)) % 2, "bike", "taxi"), ["taxi", "bike"])
    return pd.DataFrame({"lat": found[:, 1], "lon": found[:, 0], "kind": kinds})


def towns(number: int, seed: int = 1) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return frame_of((TOWNS[draw.integers(0, 4, number)] + draw.normal(0, 0.05, (number, 2))).round(3))


def near_towns(rows: pd.DataFrame, within: float = 0.4) -> float:
    """Return the share of rows near a town, in degrees."""
    away = np.hypot(*(rows[["lon", "lat"]].to_numpy()[:, None] - TOWNS[None]).transpose(2, 0, 1))
    return float((away.min(axis=1) < within).mean())


# -- the curve ---------------------------------------------------------------------------------------------------------


def test_a_place_comes_back_to_its_last_decimal() -> None:
    encoder = TableValues(schema_of())
    assert encoder.columns == ["lon", "kind"]
    draw = np.random.default_rng(2)
    given = frame_of(np.round(draw.uniform([5, 47], [15, 55], (4_000, 2)), 3))
    given.loc[:1, ["lon", "lat"]] = [[5, 47], [15, 55]]
    again = encoder.decode(encoder.compact(given))
    assert np.abs(again[["lat", "lon"]] - given[["lat", "lon"]]).to_numpy().max() < 1e-9


def test_a_square_of_the_tree_is_a_square_of_the_map() -> None:
    encoder = TableValues(schema_of())
    (domain,) = (each for each in encoder.domains if isinstance(each, CurveDomain))
    starts = domain.initial_partition()
    assert len(starts) == 1024
    assert (np.diff(starts) == domain.square).all()
    draw = np.random.default_rng(3)
    inner = np.column_stack([starts[500] + draw.integers(0, domain.square, 900), np.zeros(900)])
    found = encoder.decode(inner)
    assert np.ptp(found["lon"]) <= 10.001 / 32
    assert np.ptp(found["lat"]) <= 8.001 / 32
    parts = domain.split_cell(int(starts[500]), int(starts[501]) - 1)
    assert len(parts) == 16
    assert len(domain.split_cell(0, 63)) == 64
    assert domain.split_cell(3, int(starts[2]) + 7)[0] == 3


def test_a_point_that_misses_a_number_is_missing() -> None:
    encoder = TableValues(schema_of("true"))
    given = frame_of([[9, 50], [np.nan, 50], [9, np.nan], [np.nan, np.nan]])
    found = encoder.decode(encoder.compact(given))[["lon", "lat"]].isna().to_numpy()
    assert found.tolist() == [[False, False], [True, True], [True, True], [True, True]]


def test_kinds_of_missing_points_are_kept() -> None:
    encoder = TableValues(schema_of("[-7, -8]"))
    column = encoder.schema.columns["lon"]
    numbers = np.array([9.5, tag_holes(1), tag_holes(2), tag_holes(0), 9.5])
    given = frame_of([[9.5, 50]] * 5).assign(lon=numbers, lat=np.array([50.0, 50.0, tag_holes(2), 50.0, tag_holes(1)]))
    found = encoder.decode(encoder.compact(given))
    assert hole_states(column.kept_numbers(found["lon"])).tolist() == [0, 1, 2, 0, 1]
    assert hole_states(column.kept_numbers(found["lat"])).tolist() == [0, 1, 2, 0, 1]
    assert found["lon"].isna().tolist() == found["lat"].isna().tolist() == [False, True, True, True, True]


def test_a_row_is_coded_by_itself() -> None:
    encoder, given = TableValues(schema_of("true", BOX)), towns(300)
    given.loc[5, "lon"] = np.nan
    whole = encoder.compact(given)
    for rows in ([7], [5, 7], [*range(299, -1, -1)]):
        assert np.array_equal(encoder.compact(given.iloc[rows].reset_index(drop=True)), whole[rows])


def test_rows_that_are_coded_by_others_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own, others = (
        "known = np.nan_to_num(values, nan=self._both[at].known_grid[0])",
        "known = np.nan_to_num(values - values[0] + 9, nan=9.0)",
    )
    plant(monkeypatch, PointEncoding, "coded", (own, others))
    with pytest.raises(AssertionError):
        test_a_row_is_coded_by_itself()


def test_networks_see_both_numbers() -> None:
    assert TableEncoder(schema_of()).columns == ["lat", "lon", "kind"]


# -- a region ----------------------------------------------------------------------------------------------------------


def test_squares_without_a_part_of_the_region_are_left_out() -> None:
    whole, within = (TableValues(schema_of("false", text)) for text in ("", BOX))
    assert 0.1 < within.domains[0].size / whole.domains[0].size < 0.2  # 5 × 2 degrees of 10 × 8, and the border's
    given = frame_of([[13, 53], [6, 48], [14.9, 54.9]])
    found = within.decode(within.compact(given))
    assert np.abs(found.loc[0, ["lon", "lat"]].to_numpy(dtype=float) - [13, 53]).max() < 1e-9
    beyond = found.loc[1:, ["lon", "lat"]].to_numpy(dtype=float)
    assert (np.abs(beyond - np.clip(beyond, [9, 52], [14, 54])) < 0.32).all()  # in a square of the region


def test_every_sampled_place_lies_within_whatever_the_method() -> None:
    schema = schema_of("true", BOX)
    draw = np.random.default_rng(4)
    given = frame_of(np.round(draw.uniform([5, 47], [15, 55], (900, 2)), 3))
    given.loc[3, ["lon", "lat"]] = np.nan
    found = keep(given, schema, np.random.default_rng(5))
    known = found.dropna()
    assert len(known) == 899
    assert known["lon"].between(9, 14).all()
    assert known["lat"].between(52, 54).all()
    inner = given["lon"].between(9, 14) & given["lat"].between(52, 54)
    assert found[inner].equals(given[inner])


def test_a_ring_in_another_is_a_hole() -> None:
    outer, hole = ((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (0.0, 9.0)), ((3.0, 3.0), (6.0, 3.0), (6.0, 6.0), (3.0, 6.0))
    x, y = np.array([1.0, 4.0, 8.0, 10.0]), np.array([1.0, 4.0, 2.0, 5.0])
    assert points.inside((outer, hole), x, y).tolist() == [True, False, True, False]


def test_a_region_is_read_from_a_file_beside_the_schema(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(TEXT.replace("MISSING", "false").replace("REGION", ", region: land.csv"))
    lines = "ring,lat,lon\na,52,9\na,52,14\na,54,14\nb,48,6\nb,48,7\nb,49,7\n"
    (tmp_path / "land.csv").write_text(lines)
    schema = db.Schema.load(tmp_path / "s.yaml")
    assert schema.constraints[0].region == (((9, 52), (14, 52), (14, 54)), ((6, 48), (7, 48), (7, 49)))
    assert db.Schema.parse(schema.to_yaml()).sha256 == schema.sha256
    assert schema.explained_rules == ("lon and lat must be a place in the region",)
    for text, words in (
        ("lat,lon\n52,9\n52,14\n", "a ring of fewer than 3 corners"),
        ("lat,lon\n52,9\n52,east\n53,10\n", "a corner that is no two numbers"),
        ("y,x\n52,9\n52,14\n53,10\n", "no columns lon and lat"),
    ):
        (tmp_path / "land.csv").write_text(text)
        with pytest.raises(SchemaError, match=words):
            db.Schema.load(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[lon, lat]", "[lon, kind]", "no two numbers"),
        ("bounds: [5, 15]", "bounds: {learn: 0.1}", "needs declared facts"),
        ("precision: 3, missing: false}\n  kind", "precision: 3, missing: true}\n  kind", "declare missing alike"),
        ("- {point", "- {at_most: [lon, lat]}\n  - {point", "point and another rule name lat"),
        ("bounds: [5, 15]", "bounds: [0, 15], spikes: [0]", "have spikes or roles"),
        ("[lon, lat]", "[lon, lat], region: [[[50, 9], [51, 9], [51, 10]]]", "a region without a place within"),
        ("[lon, lat]", "[lon, lat], region: land.csv", "only a schema's own file can"),
    ],
)
def test_points_that_cannot_be_are_refused(old: str, new: str, words: str) -> None:
    text = TEXT.replace("MISSING", "false").replace("REGION", "")
    with pytest.raises(SchemaError, match=words):
        db.Schema.parse(text.replace(old, new))


# -- a fit -------------------------------------------------------------------------------------------------------------


def test_synthetic_places_lie_in_towns(tmp_path: Path) -> None:
    text = TEXT.replace("MISSING", "false")
    shares = {}
    for name, rule in (("apart", ""), ("point", "constraints:\n  - {point: [lon, lat]}\n")):
        schema = db.Schema.parse(text.split("constraints:")[0] + rule)
        ledger = db.Ledger.create(tmp_path / f"{name}.ledger", dataset="trips", epsilon=2.0, delta=1e-6)
        plan = db.plan(schema, method="statistics", epsilon=2.0, delta=1e-6, accountant="rdp")
        syn = db.fit(towns(3_000), plan, ledger=ledger, out=tmp_path / name, seed=1, progress=False)
        shares[name] = near_towns(syn.sample(3_000, seed=1))
        if name == "point":
            asked = syn.sample(200, seed=1, given={"lat": (52, 54)})
            assert asked["lat"].between(52, 54).all()
            bundle = db.release(syn, tmp_path / "bundle", n=200, seed=1, tables=True, progress=False)
            assert db.verify(bundle.path)["files"]
            cells = pd.concat(map(pd.read_parquet, sorted((bundle.path / "tables").iterdir())))
            assert (
                cells.filter(like="cell").astype(str).apply(lambda own: own.str.contains(r"\.\..* × ")).any(axis=None)
            )
    assert shares["point"] > 0.93
    assert shares["apart"] < shares["point"] - 0.05


def test_trips_in_four_cities_stay_in_them_at_epsilon_one(tmp_path: Path) -> None:
    """Apart, a fifth of such rows lies in no city; here rows farther from one than any real row are few."""
    draw, n = np.random.default_rng(15), 8_000
    which = draw.choice(4, n, p=[0.2, 0.4, 0.25, 0.15])
    places = TOWNS[which] + draw.normal(0, 1, (n, 2)) * [0.05, 0.03]
    rows = pd.DataFrame(
        {
            "lat": places[:, 1].round(5), "lon": places[:, 0].round(5),
            "type": draw.choice(["taxi", "bike"], n), "fare": draw.normal(15, 5, n).clip(0).round(2),
        }
    )  # fmt: skip
    schema = db.Schema.parse("""
doublure: 1
kind: table
unit: {name: trip}
units: 8000
defaults: {missing: false}
columns:
  lat: {type: real, bounds: [47.2, 55.1], precision: 5}
  lon: {type: real, bounds: [5.8, 15.1], precision: 5}
  type: {type: category, values: [taxi, bike]}
  fare: {type: real, bounds: [0, 500], precision: 2}
constraints:
  - {point: [lon, lat]}
""")
    plan = db.plan(schema, epsilon=1.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="trips", epsilon=1.0, delta=1e-6)
    syn = db.fit(rows, plan, ledger=ledger, out=tmp_path / "run", seed=1, progress=False)
    found = syn.sample(n, seed=1)
    assert near_towns(rows, 0.3) == 1
    assert near_towns(found, 0.3) > 0.95
    away = np.hypot(*(found[["lon", "lat"]].to_numpy()[:, None] - TOWNS[None]).transpose(2, 0, 1))
    shares = np.bincount(away.argmin(axis=1)) / n
    assert np.abs(shares - np.bincount(which) / n).max() < 0.02


# -- a draft -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (("lat", "lon"), "[lon, lat]"), (("latitude", "longitude"), "[longitude, latitude]"),
        (("start_lat", "start_lng"), "[start_lng, start_lat]"),
        (("lat", "start_lng"), None),
        (("plate", "along"), None),
    ],
)  # fmt: skip
def test_a_draft_proposes_two_coordinates(names: tuple[str, str], pair: str | None) -> None:
    text = drafted(pd.DataFrame({names[0]: [50.5, 51.5], names[1]: [9.5, 8.5]})).to_yaml()
    assert ("point" in text) == (pair is not None)
    assert pair is None or f"# - {{point: {pair}}}" in text
