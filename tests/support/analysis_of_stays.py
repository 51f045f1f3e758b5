"""A script as people write it for their own files: ``python analysis_of_stays.py FOLDER FORM``."""

import json
import sys
from pathlib import Path

import pandas as pd

FORMS = {
    "european": {
        "read": {"sep": ";", "encoding": "cp1252", "decimal": ",", "thousands": "."},
        "day": "%d.%m.%Y",
        "moment": "%d.%m.%Y %H:%M",
        "yes": "ja",
        "cost": lambda text: float(text.removesuffix(" €").replace(".", "").replace(",", ".")),
    },
    "american": {
        "read": {"sep": "\t"},
        "day": "%m/%d/%Y",
        "moment": "%m/%d/%Y %H:%M",
        "yes": "Y",
        "cost": lambda text: float(text.removeprefix("$").replace(",", "")),
    },
    "register": {
        "read": {"encoding": "utf-8-sig"},
        "day": "%Y%m%d",
        "moment": "%Y-%m-%d %H:%M",
        "yes": "1",
        "cost": float,
    },
}


def tables(folder, form):
    """Read both tables: of Parquet with its types, of CSV with the dtypes that the script counts on."""
    if form == "parquet":
        return (pd.read_parquet(folder / f"{name}.parquet") for name in ("patients", "stays"))
    own = FORMS[form]
    patients = pd.read_csv(folder / "patients.csv", dtype={"nr": "int64", "born": str, "smoker": str}, **own["read"])
    stays = pd.read_csv(folder / "stays.csv", dtype={"nr": "int64", "admitted": str, "cost": str}, **own["read"])
    patients["born"] = pd.to_datetime(patients["born"], format=own["day"])
    patients["smoker"] = patients["smoker"] == own["yes"]
    stays["admitted"] = pd.to_datetime(stays["admitted"], format=own["moment"])
    stays["cost"] = stays["cost"].map(own["cost"])
    stays["billed"] = stays["billed"].astype("int64")
    return patients, stays


def analysis(folder, form):
    """Filter, group by, compute with dates, and merge on ids."""
    patients, stays = tables(folder, form)
    assert patients["smoker"].dtype == bool
    assert patients["nr"].is_unique
    merged = stays.merge(patients, on="nr", how="left", validate="many_to_one")
    assert merged["born"].notna().all()
    merged["age"] = (merged["admitted"] - merged["born"]).dt.days // 365
    merged["month"] = merged["admitted"].dt.to_period("M").astype(str)
    adults = merged[(merged["age"] >= 18) & merged["ward"].isin(["surgery", "medicine"])]
    by_ward = adults.groupby("ward", observed=True)["cost"].agg(["mean", "size"])
    by_smoker = adults.groupby("smoker")["bmi"].mean()
    late = adults.loc[adults["admitted"].dt.hour >= 12, "cost"].sum()
    first_two = adults["month"].str[:4].astype(int) - adults["billed"] // 100
    return {
        "columns": [list(patients), list(stays)],
        "dtypes": [patients.dtypes.astype(str).to_dict(), stays.dtypes.astype(str).to_dict()],
        "wards": sorted(by_ward.index),
        "smokers": len(by_smoker),
        "figures": [float(by_ward["mean"].mean()), float(late), float(by_smoker.mean()), float(first_two.mean())],
    }


if __name__ == "__main__":
    print(json.dumps(analysis(Path(sys.argv[1]), sys.argv[2])))
