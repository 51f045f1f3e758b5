"""A studio on the rows of a clinic, drafted and described."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forked_jobs import forked_jobs, forking
from studios import StudioClient


def clinic(rows: int = 400) -> pd.DataFrame:
    """Return visits of a clinic, whose patients come back."""
    random = np.random.default_rng(3)
    begin = pd.Timestamp("2022-01-01") + pd.to_timedelta(random.integers(0, 700, rows), unit="D")
    return pd.DataFrame(
        {
            "patient_id": 1000 + random.integers(0, rows // 2, rows),
            "sex": random.choice(["f", "m"], rows),
            "age": random.integers(18, 90, rows),
            "ward": random.choice(["A", "B", "C"], rows),
            "admitted": begin.strftime("%Y-%m-%d"),
            "discharged": (begin + pd.to_timedelta(random.integers(0, 9, rows), unit="D")).strftime("%Y-%m-%d"),
            "email": [f"person{number}@example.org" for number in range(rows)],
            "note": ["says <script>alert(1)</script> and more words"] * rows,
        }
    )


CODEBOOK = """column,type,values,lower,upper,missing,description
sex,category,f|m,,,false,sex of the patient
age,integer,,18,120,false,
ward,category,A|B|C,,,false,
admitted,date,,2022-01-01,2024-12-31,false,
discharged,date,,2022-01-01,2024-12-31,false,
note,omit,,,,,
"""


@pytest.fixture(scope="session")
def people():
    """Return rows of people that nothing is known about: sex and age."""
    random = np.random.default_rng(3)
    return pd.DataFrame({"sex": random.choice(["Female", "Male"], 300), "age": random.integers(17, 91, 300)})


@pytest.fixture(scope="session")
def forks():
    """What starts a command that need not import its libraries."""
    with forking() as start:
        yield start


@pytest.fixture(scope="module")
def forked(forks):
    """A module whose commands need not import their libraries."""
    with forked_jobs(forks):
        yield


@pytest.fixture
def forked_here(forks):
    """A test whose commands need not."""
    with forked_jobs(forks):
        yield


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    files = tmp_path_factory.mktemp("clinic")
    clinic().to_csv(files / "visits.csv", index=False)
    (files / "codes.csv").write_text(CODEBOOK)
    return files


@pytest.fixture
def folder(files, tmp_path):
    return Path(shutil.copytree(files, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def studio(folder):
    return StudioClient(folder)


@pytest.fixture(scope="session")
def chosen_once(files, tmp_path_factory):
    studio = StudioClient(Path(shutil.copytree(files, tmp_path_factory.mktemp("chosen"), dirs_exist_ok=True)))
    assert studio.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook").status_code == 200
    answers = {"who": "several", "id": "patient_id", "max_records": "3", "unit_name": "patient", "counted": "public"}
    assert studio.post("/people/keep", units="200", **answers).status_code == 200
    return studio


@pytest.fixture
def chosen(chosen_once, tmp_path):
    """A studio whose data is chosen, and of which is said who is protected."""
    return chosen_once.copied(tmp_path)


@pytest.fixture(scope="session")
def described_once(chosen_once, tmp_path_factory):
    studio = chosen_once.copied(tmp_path_factory.mktemp("described"))
    assert studio.post("/columns/apply", do="propose", names=["email"], whom="ticked").status_code == 200
    assert not studio.studio.schema().undeclared
    return studio


@pytest.fixture
def described(described_once, tmp_path):
    """A studio in which nothing is open."""
    return described_once.copied(tmp_path)
