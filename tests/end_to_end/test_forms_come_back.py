"""From a draft to a sample: each form that a file has comes back, once its owner has confirmed what was proposed."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.drafting.draft import Draft, drafted
from doublure.releasing.writing import write_sample
from doublure.schema import Schema

N = 200
BOUNDS = {
    "integer": [0, 200_000],
    "real": [0, 5_000],
    "date": ["2020-01-01", "2024-12-31"],
    "datetime": ["2020-01-01", "2024-12-31"],
    "month": ["2020-01", "2024-12"],
    "year": [1990, 2024],
}
RNG = np.random.default_rng(5)
DAYS = pd.Timestamp("2021-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D")
MOMENTS = pd.Timestamp("2021-01-01") + pd.to_timedelta(RNG.integers(0, 900 * 1440, N), unit="m")
AMOUNTS = RNG.uniform(0, 4_000, N).round(2)
TEXTS = pd.DataFrame(
    {
        "smoker": np.where(RNG.random(N) < 0.3, "Y", "N"),
        "consent": np.where(RNG.random(N) < 0.7, "yes", "no"),
        "price": [f"${amount:,.2f}" for amount in AMOUNTS],
        "share": [f"{amount / 40:.1f} %" for amount in AMOUNTS],
        "people": [f"{round(amount * 40):,}" for amount in AMOUNTS],
        "issued": DAYS.strftime("%Y%m%d"),
        "paid": np.where(RNG.random(N) < 0.2, "99991231", DAYS.strftime("%Y%m%d")),
        "seen": DAYS.strftime("%d.%m.%Y"),
        "admitted": MOMENTS.strftime("%Y-%m-%d %H:%M"),
        "us": [f"{each.month}/{each.day}/{each.year} {each.hour}:{each.minute:02}" for each in MOMENTS],
        "billed": DAYS.strftime("%m/%Y"),
        "period": DAYS.strftime("%Y%m"),
        "year": DAYS.strftime("%Y"),
        "account": [str(10**18 + 7 * number) for number in range(N)],
    }
)
FORMS = {
    "smoker": "[YN]",
    "consent": "yes|no",
    "price": r"\$(\d,\d{3}|\d{1,3})\.\d{2}",
    "share": r"\d{1,3}\.\d %",
    "people": r"\d{1,3}(,\d{3})?",
    "issued": r"202\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
    "paid": r"99991231|202\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
    "seen": r"\d\d\.\d\d\.202\d",
    "admitted": r"202\d-\d\d-\d\d \d\d:\d\d",
    "us": r"[1-9]\d?/[1-9]\d?/202\d \d\d?:\d\d",
    "billed": r"(0[1-9]|1[0-2])/202\d",
    "period": r"202\d(0[1-9]|1[0-2])",
    "year": r"20\d\d|19\d\d",
    "account": r"\d+",
}


def confirmed(made: Draft) -> Schema:
    """Return a draft's schema as its owner leaves it: each proposal taken, and public bounds filled in."""
    plain = made.schema.to_plain() | made.suggested
    plain |= {key: value for each in made.proposals.values() for key, value in each.keys.items()}
    for name, column in plain["columns"].items():
        proposal = made.proposals.get(name)
        own: dict[str, Any] = dict(column if proposal is None else proposal.column or column)
        own |= {"bounds": BOUNDS[own["type"]]} if own["type"] in BOUNDS else {}
        if own["type"] != "id":
            own["missing"] = ["99991231"] if own.get("missing") == ["TEXT"] else False
        if own["type"] == "category":
            own["values"] = ["a", "b"]
        plain["columns"][name] = own
    return Schema.from_plain(plain | {"units": N, "unit": {"name": "record", "id": "none"}})


def fitted(data: object, schema: Schema, folder: Path) -> db.Synthesizer:
    ledger = db.Ledger.create(folder / "a.ledger", dataset="a", epsilon=10, delta=1e-5)
    plan = db.plan(schema, epsilon=10, delta=1e-5, accountant="rdp")
    return db.fit(data, plan, ledger=ledger, out=folder / "run", seed=1)  # type: ignore[arg-type]


def test_every_form_of_a_csv_file_comes_back_once_it_is_confirmed(tmp_path: Path) -> None:
    TEXTS.to_csv(tmp_path / "real.csv", index=False)
    schema = confirmed(drafted(tmp_path / "real.csv"))
    syn = fitted(tmp_path / "real.csv", schema, tmp_path)
    db.release(syn, tmp_path / "bundle", n=N, seed=1)
    found = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype="str", keep_default_na=False)
    assert list(found) == list(TEXTS)
    for name, form in FORMS.items():
        assert TEXTS[name].str.fullmatch(form).all(), name
        assert found[name].str.fullmatch(form).all(), name
    for name in ("issued", "period"):
        pd.to_datetime(found[name] + "01" * (name == "period"), format="%Y%m%d")  # each is a day that there is
    assert pd.read_csv(tmp_path / "real.csv").dtypes.equals(pd.read_csv(tmp_path / "bundle" / "data.csv").dtypes)
    assert db.verify(tmp_path / "bundle")["files"]
    gap = abs((found["smoker"] == "Y").mean() - (TEXTS["smoker"] == "Y").mean())
    assert gap < 0.1
    assert abs((found["paid"] == "99991231").mean() - 0.2) < 0.1


def test_a_decimal_comma_semicolons_and_cp1252_come_back(tmp_path: Path) -> None:
    german = pd.DataFrame(
        {
            "Größe": [f"{amount:.1f}".replace(".", ",") for amount in AMOUNTS],
            "Betrag": [f"{amount:,.2f} €".translate(str.maketrans(",.", ".,")) for amount in AMOUNTS],
            "Tag": DAYS.strftime("%d.%m.%Y"),
            "Raucher": np.where(RNG.random(N) < 0.3, "ja", "nein"),
        }
    )
    path = tmp_path / "real.csv"
    german.to_csv(path, index=False, sep=";", encoding="cp1252", lineterminator="\r\n")
    made = drafted(path, encoding="cp1252")
    assert made.schema.text_form == {"encoding": "cp1252", "delimiter": ";", "line_end": "crlf"}
    syn = fitted(path, confirmed(made), tmp_path)
    db.release(syn, tmp_path / "bundle", n=N, seed=1)
    raw = (tmp_path / "bundle" / "data.csv").read_bytes()
    assert raw.startswith("Größe;Betrag;Tag;Raucher\r\n".encode("cp1252"))
    options: dict[str, Any] = {"sep": ";", "encoding": "cp1252", "decimal": ","}
    found, real = (pd.read_csv(each, **options) for each in (tmp_path / "bundle" / "data.csv", path))
    assert found.dtypes.equals(real.dtypes)
    assert found["Größe"].dtype == np.float64
    assert found["Betrag"].str.fullmatch(r"(\d\.\d{3}|\d{1,3}),\d{2} €").all()
    assert found["Tag"].str.fullmatch(r"\d\d\.\d\d\.20\d\d").all()
    assert set(found["Raucher"]) == {"ja", "nein"}
    assert db.verify(tmp_path / "bundle")["files"]


def test_the_storage_types_of_parquet_come_back(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    frame = pd.DataFrame(
        {
            "ward": pd.Categorical(RNG.choice(["a", "b"], N)),
            "name": pd.Series(RNG.choice(["a", "b"], N), dtype="str"),
            "count": RNG.integers(0, 100, N).astype("int32"),
            "ratio": RNG.random(N).astype("float32"),
            "at": MOMENTS.astype("datetime64[ns]"),
            "day": DAYS.astype("datetime64[ms]"),
            "issued": DAYS.strftime("%Y%m%d").astype(int),
            "icu": RNG.random(N) < 0.3,
        }
    )
    frame.to_parquet(tmp_path / "real.parquet", index=False)
    schema = confirmed(drafted(tmp_path / "real.parquet"))
    syn = fitted(tmp_path / "real.parquet", schema, tmp_path)
    pd.testing.assert_series_equal(syn.sample(20, seed=1).dtypes.astype(str), frame.dtypes.astype(str))
    db.release(syn, tmp_path / "bundle", n=N, seed=1)
    found, real = (pq.read_schema(tmp_path / each) for each in ("bundle/data.parquet", "real.parquet"))
    assert [str(each.type) for each in found] == [str(each.type) for each in real]
    assert db.verify(tmp_path / "bundle")["files"]


def test_frames_of_texts_come_back_as_texts(tmp_path: Path) -> None:
    names = ["smoker", "price", "seen", "billed", "admitted"]
    schema = confirmed(drafted(TEXTS[names]))
    found = fitted(TEXTS[names], schema, tmp_path).sample(50, seed=1)
    assert (found.dtypes == TEXTS[names].dtypes).all()
    for name in names:
        assert found[name].str.fullmatch(FORMS[name]).all(), name


@pytest.mark.parametrize("quoting", ["all", None])
def test_a_file_without_a_header_is_read_and_written_as_one(tmp_path: Path, quoting: str | None) -> None:
    lines = [f'"{number % 3}","a, {number % 2}"' for number in range(60)]
    (tmp_path / "real.csv").write_text("\n".join(lines) + "\n")
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunits: 60\nheader: false\n"
        + (f"quoting: {quoting}\n" if quoting else "")
        + "columns:\n"
        "  one: {type: integer, bounds: [0, 2], missing: false}\n"
        "  two: {type: category, values: ['a, 0', 'a, 1'], missing: false}\n"
    )
    syn = fitted(tmp_path / "real.csv", schema, tmp_path)
    db.release(syn, tmp_path / "bundle", n=60, seed=1)
    first = (tmp_path / "bundle" / "data.csv").read_text().splitlines()
    number = r'"\d"' if quoting == "all" else r"\d"
    assert len(first) == 60
    assert all(re.fullmatch(rf'{number},"a, \d"', line) for line in first)
    assert db.verify(tmp_path / "bundle")["files"]


def test_a_file_for_spreadsheets_keeps_its_numbers(tmp_path: Path) -> None:
    """An amount below zero begins like a formula and is none; a word such as + might be one."""
    frame = pd.DataFrame({"a": [f"{n - 30},5 €" for n in range(60)], "b": ["+" if n % 3 else "-" for n in range(60)]})
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunits: 60\ndelimiter: ;\ncolumns:\n"
        "  a: {type: real, bounds: [-50, 50], precision: 1, format: '0,0 €', missing: false}\n"
        "  b: {type: boolean, written: {true: '+', false: '-'}, missing: false}\n"
    )
    syn = fitted(frame, schema, tmp_path)
    db.release(syn, tmp_path / "bundle", n=60, seed=1, spreadsheet_safe=True)
    found = pd.read_csv(tmp_path / "bundle" / "data.csv", sep=";")
    assert found["a"].str.fullmatch(r"-?\d+,\d €").all()
    assert found["a"].str.startswith("-").any()
    assert set(found["b"]) == {"'+", "'-"}
    assert db.verify(tmp_path / "bundle")["files"]


READERS: dict[str, Any] = {
    ".csv": pd.read_csv,
    ".parquet": pd.read_parquet,
    ".jsonl": partial(pd.read_json, lines=True, precise_float=True),
    ".feather": pd.read_feather,
    ".xlsx": partial(pd.read_excel, engine="calamine"),
    ".dta": pd.read_stata,
    ".sav": pd.read_spss,
}


def digits(cell: float) -> int:
    return len(repr(float(cell)).strip("-").partition("e")[0].replace(".", "").strip("0"))


def test_reals_without_precision_have_no_digits_of_their_storage(tmp_path: Path) -> None:
    """3.1999999999999997 stood where a real file has 3.2, in every written format."""
    draw = np.random.default_rng(2)
    frame = pd.DataFrame({"a": draw.integers(0, 99, 300) / 10, "b": draw.normal(0, 1e-9, 300)})
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunits: 300\ndefaults: {missing: false}\ncolumns:\n"
        "  a: {type: real, bounds: [0, 10]}\n"
        "  b: {type: real, bounds: [-1e-8, 1e-8]}\n"
        "  c: {type: real, bounds: [0, 10], missing: [-7, -8]}\n"
    )
    syn = fitted(frame.assign(c=frame["a"].where(frame["a"] > 3, -7)), schema, tmp_path)
    for ending, read in READERS.items():
        write_sample(syn, tmp_path / f"s{ending}", 300, seed=1)
        found = read(tmp_path / f"s{ending}")
        assert max(map(digits, [*found["a"], *found["b"], *found["c"].dropna()])) <= 12, ending
    assert max(map(digits, syn.sample(300, seed=1)["c"].dropna())) <= 12


def test_a_column_of_free_text_stays_one_of_texts(tmp_path: Path) -> None:
    """A script that reads the real file and takes words of a remark runs on the synthetic one."""
    draw = np.random.default_rng(2)
    real = pd.DataFrame({"a": draw.integers(0, 9, 80), "note": [f"seen {n} times again" for n in range(80)]})
    real.to_csv(tmp_path / "real.csv", index=False)
    made = drafted(tmp_path / "real.csv")
    plain = made.schema.to_plain() | {"units": 80}
    assert made.proposals["note"].column is not None
    plain["columns"]["note"] = dict(made.proposals["note"].column)
    plain["columns"]["a"] |= {"bounds": [0, 9], "missing": False}
    syn = fitted(tmp_path / "real.csv", Schema.from_plain(plain), tmp_path)
    write_sample(syn, tmp_path / "s.csv", 80, seed=1)
    assert pd.read_csv(tmp_path / "s.csv")["note"].str.split().str.len().gt(0).all()
