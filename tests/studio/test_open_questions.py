"""What a codebook leaves open, in the studio: each question is decided by a click."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote_plus

import pandas as pd
import pytest
from studios import StudioClient, said_again

CODEBOOK = """Variable,Meaning,Type,Allowed values,May be empty
zip,where they live,code,10115|10117|20095,no
payer,who pays,category,statutory|private,no
born,date of birth; 1900-01-01 = unknown,date,1900-01-01 to 2024-01-01,no
admitted,first day,date,2022-01-01 to 2023-12-31,no
discharged,last day,date,,yes
"""


@pytest.fixture
def asked(tmp_path: Path) -> StudioClient:
    cells = {"zip": "10115", "payer": "Statutory", "born": "1951-02-03", "admitted": "2022-01-01"}
    pd.DataFrame({name: [cell] * 50 for name, cell in (cells | {"discharged": "2022-01-05"}).items()}).to_csv(
        tmp_path / "stays.csv", index=False
    )
    (tmp_path / "codes.csv").write_text(CODEBOOK)
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="stays.csv", codebook="codes.csv", form="codebook").status_code == 200
    return client


def row(client: StudioClient, name: str) -> str:
    return next(each for each in client.get("/columns").text.split("<tr id=")[1:] if f'value="{name}"' in each)


def test_each_question_is_shown_and_counted(asked: StudioClient) -> None:
    page = asked.get("/columns").text
    assert re.search(r">3 to decide<", page)
    assert "levels proposed: the first 1 and 3 letters and digits of a code" in row(asked, "zip")
    assert "perhaps missing: 1900-01-01" in row(asked, "born")
    assert "perhaps 2022-01-01 to 2023-12-31, if it is at least admitted" in row(asked, "discharged")
    assert "Take it" not in row(asked, "payer")


def test_a_click_decides_each(asked: StudioClient) -> None:
    asked.post("/columns/apply", do="confirm", names=["zip"], whom="ticked")
    asked.post("/columns/apply", do="propose", names=["born", "discharged"], whom="ticked")
    facts = {each.name: each.facts for each in asked.project.columns}
    assert facts["zip"]["levels"] == [1, 3]
    assert facts["born"]["missing"] == ["1900-01-01"]
    assert facts["discharged"]["bounds"] == ["2022-01-01", "2023-12-31"]
    assert facts["discharged"]["missing"] is True
    page = asked.get("/columns").text
    assert "to decide<" not in page
    assert "Take it<" not in page
    assert "Right as it is<" not in page


def test_bounds_that_are_declared_later_are_followed_too(asked: StudioClient) -> None:
    fields = {"many_lower": "2020-01-01", "many_upper": "2021-12-31"}
    asked.post("/columns/apply", do="bounds", names=["admitted"], whom="ticked", **fields)
    assert "perhaps 2020-01-01 to 2021-12-31" in row(asked, "discharged")


def test_a_column_that_becomes_codes_has_levels_in_its_form_and_by_the_button(asked: StudioClient) -> None:
    answer = asked.get("/columns/fields?name=payer&edit--type=code")
    assert 'name="edit--levels" type="text" value=""' in answer.text  # no two of its values begin alike
    asked.post("/columns/apply", do="values", names=["payer"], whom="ticked", many_values="S1|S2|P1|P2")
    answer = asked.get("/columns/fields?name=payer&edit--type=code")
    assert 'name="edit--levels" type="text" value="1"' in answer.text
    assert "proposed by public words" in answer.text
    asked.post("/columns/apply", do="retype", names=["payer"], whom="ticked", type="code")
    assert asked.project.column("payer").facts["levels"] == [1]


def test_a_misfit_is_mapped_to_a_value_in_the_form(asked: StudioClient) -> None:
    asked.post("/columns/apply", do="propose", names=["born", "discharged"], whom="ticked")
    asked.post("/people/keep", who="one", unit_name="stay", counted="public", units="50")
    page = asked.post("/columns/misfits", owner="yes").text
    assert "Statutory" not in page
    (link,) = re.findall(r'<a href="(/columns\?edit=payer&amp;declare=spellings[^"]*)">Declare it', page)
    form = asked.get(unquote_plus(link.replace("&amp;", "&")).partition("#")[0])
    assert link.endswith("#edit--spellings")
    assert 'id="edit--spellings"' in form.text
    entered = said_again(form, "/columns/keep") | {"edit--spellings": "Statutory = statutory | PKV = private"}
    assert asked.post("/columns/keep", **entered).status_code == 200
    assert asked.project.column("payer").facts["spellings"] == {"Statutory": "statutory", "PKV": "private"}
    assert "Every cell fits" in asked.post("/columns/misfits", owner="yes").text
    refused = asked.post("/columns/keep", **(entered | {"edit--spellings": "Statutory = state"}))
    assert refused.status_code == 422
    assert "name a value that is not declared" in refused.text
