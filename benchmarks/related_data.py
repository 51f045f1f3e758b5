"""Related tables that are measured: patients, customers, households, players, and what hangs on each.

``stays``: Diabetes-130 (Strack et al. 2014), 71,518 patients and 101,766 stays. ``orders``: TPC-H as its generator
makes it, at scale factor .1 or 1 (15,000 and 150,000 customers, ten times as many orders; a third of them have none).
``days``: DAIAD's smart water meters, 92 households. ``league``: People.csv and Salaries.csv of Chadwick Baseball
Bureau's databank (CC BY-SA 3.0, commit ef68908c), 20,262 players and 26,428 salaries; put both into ``out/league``.
Bounds and values are those of what was published with each. ``flights``: made up here in the shape of what an
airport's planes fly in a year, 3,322 of them with up to 600 rows each: long units, of which few are alike.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from doublure.schema import Schema
from results import OUT

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
STAYS = """
doublure: 1
kind: relational
unit: {name: patient}
units: 57000
tables:
  patients:
    key: patient
    columns:
      patient: {type: id}
      race: {type: category, values: [Caucasian, AfricanAmerican, Hispanic, Asian, Other], missing: ["?"]}
      gender: {type: category, values: [Female, Male], other: Other, missing: false}
      age: {type: ordinal, values: ["[0-10)", "[10-20)", "[20-30)", "[30-40)", "[40-50)", "[50-60)", "[60-70)",
            "[70-80)", "[80-90)", "[90-100)"], missing: false}
  stays:
    parent: patients
    foreign_key: patient
    max_children: 10
    order: encounter
    columns:
      patient: {type: id}
      encounter: {type: integer, bounds: [0, 500000000], missing: false}
      admission_type: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8], missing: false}
      discharge: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22,
                  23, 24, 25, 27, 28], other: "0", missing: false}
      admission_source: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 17, 20, 22, 25],
                         other: "0", missing: false}
      days: {type: integer, bounds: [1, 14], missing: false}
      payer: {type: category, values: [MC, HM, SP, BC, MD, CP, UN, CM, OG, PO, DM, CH, WC, OT, MP, SI, FR],
              missing: ["?"]}
      lab_procedures: {type: integer, bounds: [0, 150], missing: false}
      procedures: {type: integer, bounds: [0, 6], missing: false}
      medications: {type: integer, bounds: [0, 100], missing: false}
      outpatient: {type: integer, bounds: [0, 100], missing: false}
      emergency: {type: integer, bounds: [0, 100], missing: false}
      inpatient: {type: integer, bounds: [0, 50], missing: false}
      diagnosis: {type: category, values: [circulatory, respiratory, digestive, diabetes, injury, musculoskeletal,
                  genitourinary, neoplasms, other], missing: ["?"]}
      diagnoses: {type: integer, bounds: [1, 16], missing: false}
      A1C: {type: category, values: [Norm, ">7", ">8"], missing: true}
      metformin: {type: category, values: ["No", Steady, Up, Down], missing: false}
      insulin: {type: category, values: ["No", Steady, Up, Down], missing: false}
      change: {type: category, values: ["No", Ch], missing: false}
      diabetesMed: {type: category, values: ["No", "Yes"], missing: false}
      readmitted: {type: category, values: ["NO", ">30", "<30"], missing: false, roles: [target]}
"""
RANGES = (
    ((390, 459), "circulatory"), ((785, 785), "circulatory"), ((460, 519), "respiratory"), ((786, 786), "respiratory"),
    ((520, 579), "digestive"), ((787, 787), "digestive"), ((250, 250), "diabetes"), ((800, 999), "injury"),
    ((710, 739), "musculoskeletal"), ((580, 629), "genitourinary"), ((788, 788), "genitourinary"),
    ((140, 239), "neoplasms"),
)  # fmt: skip
"""The groups of ICD-9 codes of the published paper."""


def _stays() -> dict[str, pd.DataFrame]:
    """Return patients, with what their first stay says of them, and stays."""
    raw = pd.read_csv(SHARED / "diabetes130.csv.gz", dtype=str, keep_default_na=False)
    raw["encounter"] = raw["encounter_id"].astype(np.int64)
    raw = raw.sort_values("encounter", kind="stable").rename(columns={"patient_nbr": "patient"})
    stays = raw.rename(
        columns={
            "admission_type_id": "admission_type", "discharge_disposition_id": "discharge",
            "admission_source_id": "admission_source", "time_in_hospital": "days", "payer_code": "payer",
            "num_lab_procedures": "lab_procedures", "num_procedures": "procedures", "num_medications": "medications",
            "number_outpatient": "outpatient", "number_emergency": "emergency", "number_inpatient": "inpatient",
            "number_diagnoses": "diagnoses", "A1Cresult": "A1C",
        }
    )  # fmt: skip
    stays["A1C"] = stays["A1C"].replace("None", "")
    stays["diagnosis"] = stays["diag_1"].map(_group)
    wanted = Schema.parse(STAYS).tables["stays"].columns
    patients = raw.drop_duplicates("patient")[["patient", "race", "gender", "age"]]
    return {"patients": patients.reset_index(drop=True), "stays": stays[list(wanted)].reset_index(drop=True)}


def _group(code: str) -> str:
    if code == "?":
        return "?"
    number = int(float(code)) if code[0].isdigit() else -1
    return next((name for (low, high), name in RANGES if low <= number <= high), "other")


ORDERS = """
doublure: 1
kind: relational
unit: {name: customer}
units: 12000
tables:
  customers:
    key: customer
    columns:
      customer: {type: id}
      nation: {type: category, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
               22, 23, 24], missing: false}
      segment: {type: category, values: [AUTOMOBILE, BUILDING, FURNITURE, HOUSEHOLD, MACHINERY], missing: false}
      balance: {type: real, bounds: [-999.99, 9999.99], precision: 2, missing: false}
      since: {type: date, bounds: [1992-01-01, 1998-08-02], missing: true}
  orders:
    parent: customers
    foreign_key: customer
    max_children: 50
    order: placed
    columns:
      customer: {type: id}
      placed: {type: date, bounds: [1992-01-01, 1998-08-02], missing: false}
      status: {type: category, values: [F, O, P], missing: false}
      total: {type: real, bounds: [0, 600000], precision: 2, missing: false}
      priority: {type: ordinal, values: [1-URGENT, 2-HIGH, 3-MEDIUM, 4-NOT SPECIFIED, 5-LOW], missing: false}
constraints:
  - {at_most: [customers.since, orders.placed]}
"""
DAYS = """
doublure: 1
kind: relational
unit: {name: household}
units: 74
tables:
  households:
    key: household
    columns:
      household: {type: id}
      starts: {type: category, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], missing: false}
  days:
    parent: households
    foreign_key: household
    max_children: 366
    order: day
    columns:
      household: {type: id}
      day: {type: date, bounds: [2016-03-01, 2017-02-28], missing: false}
      litres: {type: integer, bounds: [0, 10000], missing: false}
      busiest: {type: integer, bounds: [0, 23], missing: false}
"""

LEAGUE = """
doublure: 1
kind: relational
unit: {name: player}
units: 16000
tables:
  People:
    key: playerID
    columns:
      playerID: {type: id}
      birthYear: {type: integer, bounds: [1820, 2005], missing: true}
      birthCountry: {type: category, values: [USA, D.R., Venezuela, P.R., CAN, Cuba, Mexico, Japan], other: Other,
                     missing: true}
      deathYear: {type: integer, bounds: [1870, 2021], missing: true}
      weight: {type: integer, bounds: [100, 350], missing: true}
      height: {type: integer, bounds: [60, 85], missing: true}
      bats: {type: category, values: [L, R, B], missing: true}
      throws: {type: category, values: [L, R, S], missing: true}
      debut: {type: date, bounds: [1871-01-01, 2021-12-31], missing: true}
      finalGame: {type: date, bounds: [1871-01-01, 2021-12-31], missing: true}
  Salaries:
    parent: People
    foreign_key: playerID
    max_children: 25
    order: yearID
    columns:
      playerID: {type: id}
      yearID: {type: integer, bounds: [1985, 2016], missing: false}
      teamID: {type: category, values: [ANA, ARI, ATL, BAL, BOS, CAL, CHA, CHN, CIN, CLE, COL, DET, FLO, HOU, KCA, LAA,
               LAN, MIA, MIL, MIN, ML4, MON, NYA, NYN, OAK, PHI, PIT, SDN, SEA, SFN, SLN, TBA, TEX, TOR, WAS],
               other: Other, missing: false}
      lgID: {type: category, values: [AL, NL], missing: false}
      salary: {type: integer, bounds: [0, 40000000], missing: false}
constraints:
  - {at_most: [People.birthYear, People.deathYear]}
  - {at_most: [People.debut, People.finalGame]}
  - {at_most: [People.birthYear, Salaries.yearID]}
"""


def _league() -> dict[str, pd.DataFrame]:
    """Return players and what they were paid each year; four in five have no salary on record."""
    return {name: pd.read_csv(OUT / "league" / f"{name}.csv") for name in ("People", "Salaries")}


def _orders(factor: float) -> Callable[[], dict[str, pd.DataFrame]]:
    """Return what reads customers, with the day of their first order, and orders, and makes them if they are not there.

    ``tpchgen-cli`` (PyPI) has to be on the path.
    """

    def tables() -> dict[str, pd.DataFrame]:
        folder = OUT / f"tpch-{factor:g}"
        if not (folder / "orders.parquet").is_file():
            command = ["tpchgen-cli", "parquet", "-s", f"{factor:g}", "--tables=customer,orders"]
            subprocess.run([*command, f"--output-dir={folder}"], check=True)
        customers = pd.read_parquet(
            folder / "customer.parquet", columns=["c_custkey", "c_nationkey", "c_mktsegment", "c_acctbal"]
        ).set_axis(["customer", "nation", "segment", "balance"], axis=1)
        orders = pd.read_parquet(
            folder / "orders.parquet",
            columns=["o_custkey", "o_orderdate", "o_orderstatus", "o_totalprice", "o_orderpriority"],
        ).set_axis(["customer", "placed", "status", "total", "priority"], axis=1)
        customers["balance"], orders["total"] = customers["balance"].astype(float), orders["total"].astype(float)
        orders["placed"] = pd.to_datetime(orders["placed"])
        customers["since"] = customers["customer"].map(orders.groupby("customer")["placed"].min())
        return {"customers": customers, "orders": orders}

    return tables


def _days() -> dict[str, pd.DataFrame]:
    """Return households, with the month of their first day, and whole days: litres and the hour of most."""
    with np.load(SHARED / "daiad_water_hourly_derived.npz") as file:
        litres = file["litres"]
    whole = ~np.isnan(litres).any(axis=2)
    household, day = np.nonzero(whole)
    hours = litres[whole]
    days = pd.DataFrame(
        {
            "household": household,
            "day": pd.Timestamp("2016-03-01") + pd.to_timedelta(day, unit="D"),
            "litres": np.clip(np.rint(hours.sum(axis=1)), 0, 10_000).astype(np.int64),
            "busiest": hours.argmax(axis=1),
        }
    )
    starts = days.groupby("household")["day"].min().dt.month
    return {"households": starts.rename("starts").reset_index(), "days": days}


FLIGHTS = f"""
doublure: 1
kind: relational
unit: {{name: plane}}
units: 3322
tables:
  planes:
    key: tail
    columns:
      tail: {{type: id}}
      year: {{type: integer, bounds: [1980, 2015], missing: false}}
      seats: {{type: integer, bounds: [0, 500], missing: false}}
      engine: {{type: category, values: [jet, fan, prop], missing: false}}
  flights:
    parent: planes
    foreign_key: tail
    max_children: 600
    order: day
    columns:
      tail: {{type: id}}
      day: {{type: date, bounds: [2013-01-01, 2013-12-31], missing: false}}
      carrier: {{type: category, values: [{", ".join(f"c{number}" for number in range(16))}], missing: false}}
      origin: {{type: category, values: [o0, o1, o2], missing: false}}
      dest: {{type: category, values: [{", ".join(f"d{number}" for number in range(105))}], missing: false}}
      dep: {{type: integer, bounds: [-100, 700], missing: false}}
      arr: {{type: integer, bounds: [-100, 700], missing: false}}
      air: {{type: integer, bounds: [0, 800], missing: false}}
      distance: {{type: integer, bounds: [0, 3000], missing: false}}
"""


def _flights() -> dict[str, pd.DataFrame]:
    """Return planes, and what each flies in a year."""
    rng, planes = np.random.default_rng(7), 3322
    many = np.minimum(np.round(rng.lognormal(3.9, 1.1, planes)).astype(int), 600)
    tail = np.repeat(np.arange(planes), many)
    carrier, origin = rng.integers(0, 16, planes)[tail], rng.integers(0, 3, planes)[tail]
    dest = (carrier * 7 + rng.geometric(0.15, len(tail))) % 105
    distance = dest * 37 % 2400 + 100
    day = np.concatenate([np.sort(rng.integers(0, 365, each)) for each in many])
    late = np.round(rng.normal(5, 30, len(tail))).clip(-60, 600).astype(int)
    return {
        "planes": pd.DataFrame({
            "tail": np.arange(planes), "year": rng.integers(1990, 2013, planes),
            "seats": rng.choice([20, 55, 150, 200, 300], planes),
            "engine": rng.choice(["jet", "fan", "prop"], planes, p=[0.3, 0.65, 0.05]),
        }),
        "flights": pd.DataFrame({
            "tail": tail, "day": pd.Timestamp("2013-01-01") + pd.to_timedelta(day, unit="D"),
            "carrier": [f"c{each}" for each in carrier],
            "origin": [f"o{each}" for each in (origin + rng.integers(0, 2, len(tail))) % 3],
            "dest": [f"d{each}" for each in dest], "dep": late,
            "arr": (late + np.round(rng.normal(0, 10, len(tail)))).clip(-90, 700).astype(int),
            "air": (distance / 7 + np.round(rng.normal(0, 8, len(tail)))).clip(10, 700).astype(int),
            "distance": distance,
        }),
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Related:
    """One set of two tables.

    Attributes:
        text: Its schema.
        tables: Reads them.
        made: How many synthetic units are measured.
    """

    text: str
    tables: Callable[[], Mapping[str, pd.DataFrame]]
    made: int = 20_000

    @property
    def schema(self) -> Schema:
        """Its schema."""
        return Schema.parse(self.text)


HOURS_IN = (10, 7, 5, 5, 6, 10, 20, 50, 90, 110, 110, 100, 80, 80, 80, 70, 60, 50, 40, 30, 30, 25, 20, 15)
HOURS_OUT = (1, 1, 1, 1, 1, 1, 2, 5, 20, 60, 120, 140, 100, 90, 80, 70, 60, 40, 20, 10, 5, 3, 2, 1)
"""How often patients come and leave in each hour of a day, in a ward that works by day."""
VISITS = """
doublure: 1
kind: table
unit: {name: patient, id: nr, max_records: 8, per_unit: [born, sex], order: admitted}
units: 2800
defaults: {missing: false}
columns:
  nr: {type: id}
  born: {type: date, bounds: [1900-01-01, 2023-12-31]}
  sex: {type: category, values: [f, m]}
  ward: {type: category, values: [heart, lung, skin, bone, eye, ear]}
  admitted: {type: datetime, bounds: ['2022-01-01T00:00:00', '2023-12-31T23:59:59'], step: 60}
  discharged: {type: datetime, bounds: ['2022-01-01T00:00:00', '2024-06-30T23:59:59'], missing: true, step: 60}
  hb: {type: real, bounds: [3.0, 25.0], missing: true, precision: 1}
  cost: {type: real, bounds: [0.0, 1000000.0], precision: 2}
  icu: {type: boolean}
  back: {type: boolean, roles: [target]}
constraints:
- {at_most: [born, admitted, discharged]}
"""


def visits(*, by_day: bool) -> pd.DataFrame:
    """Return 5,000 stays of patients who come back: at any minute of two years, or by day."""
    draw, rows, patients = np.random.default_rng(11), 5000, 3800
    who, day = draw.integers(0, patients, rows), 1440
    start = np.datetime64("2022-01-01", "m")
    begun, nights = draw.integers(0, 730, rows) * day, np.maximum(0, draw.gamma(1.2, 3.5, rows).round(1))
    into, out = (np.array(own) / sum(own) if by_day else np.full(24, 1 / 24) for own in (HOURS_IN, HOURS_OUT))
    admitted = begun + draw.choice(24, rows, p=into) * 60 + draw.integers(0, 60, rows)
    left = admitted + (nights * day).astype(np.int64)
    if by_day:
        left = begun + np.ceil(nights).astype(np.int64) * day + draw.choice(24, rows, p=out) * 60
        left = np.maximum(left + draw.integers(0, 60, rows), admitted + 30)
    first = np.full(patients, 730)
    np.minimum.at(first, who, admitted // day)  # the youngest are born here
    born = np.minimum(
        np.datetime64("1925-01-01") + draw.integers(0, 36_000, patients), start.astype("datetime64[D]") + first
    )
    age = (start.astype("datetime64[D]") - born[who]).astype(int) / 365.25
    made = pd.DataFrame(
        {
            "nr": who,
            "born": born[who].astype(str),
            "sex": draw.choice(["f", "m"], patients)[who],
            "ward": draw.choice(
                ["heart", "lung", "skin", "bone", "eye", "ear"], rows, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]
            ),
            "admitted": (start + admitted).astype(str),
            "discharged": np.where(draw.random(rows) < 0.003, "", (start + left).astype(str)),
            "hb": np.where(draw.random(rows) < 0.2, np.nan, (draw.normal(13.5 - 0.02 * age, 1.5)).round(1)),
            "cost": np.exp(draw.normal(7.3 + 0.12 * nights, 0.9)).round(2),
            "icu": draw.random(rows) < 0.12,
            "back": draw.random(rows) < 1 / (1 + np.exp(2.2 - 0.08 * nights)),
        }
    )
    return made.assign(admitted=made["admitted"].str.replace("T", " "))


RELATED = {
    "stays": Related(text=STAYS, tables=_stays),
    "orders": Related(text=ORDERS, tables=_orders(0.1)),
    "orders, scale factor 1": Related(text=ORDERS.replace("units: 12000", "units: 150000"), tables=_orders(1)),
    "flights": Related(text=FLIGHTS, tables=_flights, made=3322),
    "league": Related(text=LEAGUE, tables=_league),
    "days": Related(text=DAYS, tables=_days, made=1000),
}
