"""Metadata in other forms: what it says is a fact, what it lacks is a question, and nothing is taken from cells."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from doublure.drafting.draft import drafted
from doublure.drafting.metadata import form
from doublure.drafting.metadata.registry import FORMS, read_metadata
from doublure.errors import DoublureError, InputError, SchemaError, SettingError
from doublure.schema import Schema

REDCAP = """\
"Variable / Field Name","Form Name","Section Header","Field Type","Field Label",\
"Choices, Calculations, OR Slider Labels","Field Note","Text Validation Type OR Show Slider Number",\
"Text Validation Min","Text Validation Max",Identifier?,"Branching Logic (Show field only if...)","Required Field?"
record_id,intake,,text,Study ID,,,,,,,,
first_name,intake,,text,First name,,,,,,y,,
mail,intake,,text,E-mail,,,email,,,y,,
sex,intake,,radio,"<div>Sex at birth</div>","1, Male | 2, Female | -9, Unknown",,,,,,,y
age,intake,,text,Age,,,integer,18,99,,,y
weight,intake,,text,Weight,,,number_1dp,,300,,,
visit,intake,,text,Visit,,,date_dmy,01-02-2020,31-12-2024,,"[sex] = '1'",y
seen,visit,,text,Seen at,,,datetime_ymd,,,,,
woke,visit,,text,Woke at,,,time,,,,,
pain,visit,,slider,Pain,0 | 10,,,0,10,,,
drugs,visit,,checkbox,Drugs,"1, Aspirin | NA, None of these",,,,,,,
smoker,visit,,yesno,Smokes?,,,,,,,,
bmi,visit,,calc,BMI,"[weight] / 2",,,,,,,
story,visit,,notes,Story,,,,,,,,
hint,visit,,descriptive,Read this,,,,,,,,
town,visit,,text,Town,,,,,,,,
"""
PACKAGE = {
    "name": "clinic",
    "resources": [
        {
            "name": "people",
            "path": "people.csv",
            "dialect": {"delimiter": ";"},
            "encoding": "latin-1",
            "schema": {
                "primaryKey": "nr",
                "missingValues": ["", "NA"],
                "fields": [
                    {"name": "nr", "type": "integer"},
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
                    {"name": "pay", "type": "number", "decimalChar": ",", "constraints": {"minimum": 0}},
                    {"name": "sex", "type": "string", "title": "Sex", "constraints": {"enum": ["f", "m"]}},
                    {
                        "name": "grade",
                        "type": "integer",
                        "categories": [{"value": 1, "label": "low"}, {"value": 2, "label": "high"}],
                        "categoriesOrdered": True,
                    },
                    {"name": "born", "type": "date", "format": "%d.%m.%Y", "description": "Birth"},
                    {"name": "mail", "type": "string", "format": "email"},
                    {"name": "note", "type": "string"},
                    {"name": "raw", "type": "object"},
                    {"name": "on", "type": "boolean"},
                ],
            },
        }
    ],
}
WEB = {
    "@context": ["http://www.w3.org/ns/csvw", {"@language": "en"}],
    "url": "data/people.csv",
    "dialect": {"delimiter": ";", "encoding": "iso-8859-1"},
    "null": ["", "NA"],
    "tableSchema": {
        "primaryKey": "nr",
        "columns": [
            {"name": "nr", "titles": "No.", "datatype": "integer"},
            {
                "name": "age", "required": True, "dc:description": "Age",
                "datatype": {"base": "nonNegativeInteger", "minimum": 0, "maximum": "120"},
            },
            {"name": "pay", "datatype": {"base": "decimal", "format": {"decimalChar": ","}, "minInclusive": 0}},
            {"name": "sex", "datatype": {"base": "string", "format": "^(f|m)$"}},
            {"name": "born", "datatype": {"base": "date", "format": "dd.MM.yyyy"}},
            {"name": "seen", "datatype": "dateTime", "null": "-"},
            {"name": "note"},
            {"name": "url", "datatype": "anyURI"},
            {"name": "made", "virtual": True},
        ],
    },
}  # fmt: skip
SDV_ONE = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "guest",
    "columns": {
        "guest": {"sdtype": "id", "regex_format": "G-[0-9]{5}"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "rate": {"sdtype": "numerical", "computer_representation": "Float"},
        "room": {"sdtype": "categorical"},
        "member": {"sdtype": "boolean"},
        "arrived": {"sdtype": "datetime", "datetime_format": "%d %m %Y"},
        "called": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
        "mail": {"sdtype": "email", "pii": True},
        "secret": {"sdtype": "unknown", "pii": True},
        "some": {"sdtype": "numerical"},
    },
}
SDV_TWO = {
    "METADATA_SPEC_VERSION": "MULTI_TABLE_V1",
    "tables": {
        "hotels": {"primary_key": "hotel", "columns": {"hotel": {"sdtype": "id"}, "city": {"sdtype": "categorical"}}},
        "guests": {
            "primary_key": "guest",
            "columns": {
                "guest": {"sdtype": "id"},
                "at": {"sdtype": "id"},
                "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
            },
        },
    },
    "relationships": [
        {
            "parent_table_name": "hotels",
            "parent_primary_key": "hotel",
            "child_table_name": "guests",
            "child_foreign_key": "at",
        }
    ],
}


def described(folder: Path, what: str, said: object, *columns: str):
    path = folder / ("metadata.csv" if isinstance(said, str) else "metadata.json")
    path.write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    made = drafted(pd.DataFrame(columns=columns) if columns else None, path, form=what)
    assert Schema.parse(made.to_yaml()) == made.schema
    return made


def test_a_redcap_dictionary_says_all_but_bounds_that_it_lacks(tmp_path: Path) -> None:
    made = described(tmp_path, "redcap", REDCAP, *(
        "record_id", "first_name", "mail", "sex", "age", "weight", "visit", "intake_complete", "seen", "woke", "pain",
        "drugs___1", "drugs___na", "smoker", "bmi", "story", "town", "visit_complete", "redcap_event_name",
    ))  # fmt: skip
    columns = made.schema.columns
    assert {name: column.type for name, column in columns.items()} == {
        "record_id": "id", "first_name": "fake", "mail": "fake", "sex": "category", "age": "integer",
        "weight": "real", "visit": "date", "intake_complete": "ordinal", "seen": "datetime", "woke": "time",
        "pain": "integer", "drugs___1": "boolean", "drugs___na": "boolean", "smoker": "boolean", "bmi": "real",
        "town": "category", "visit_complete": "ordinal", "redcap_event_name": "category",
    }  # fmt: skip
    assert (columns["sex"].values, columns["sex"].missing) == ((1, 2, -9), False)
    assert columns["sex"].description == "Sex at birth"
    assert columns["sex"].value_labels == {"1": "Male", "2": "Female", "-9": "Unknown"}
    assert (columns["age"].bounds, columns["age"].missing) == ((18, 99), False)
    assert (columns["weight"].bounds, columns["weight"].precision, columns["weight"].missing) == ("undeclared", 1, True)
    assert [str(end) for end in columns["visit"].bounds] == ["2020-02-01", "2024-12-31"]
    assert columns["visit"].missing is True  # shown only after an answer
    assert (columns["seen"].step, columns["woke"].step, columns["pain"].bounds) == (60, 60, (0, 10))
    assert columns["drugs___1"].description == "Drugs: Aspirin"
    assert columns["visit_complete"].values == (0, 1, 2)
    text = made.to_yaml()
    assert "# said of its values: at most 300" in text
    assert "# calculated: [weight] / 2" in text
    assert "Left out, as metadata.csv says: story" in text
    assert made.unknown == ()
    assert "columns.weight.bounds" in made.schema.undeclared


def test_a_data_package_is_read(tmp_path: Path) -> None:
    names = [each["name"] for each in PACKAGE["resources"][0]["schema"]["fields"]]  # type: ignore[index]
    made = described(tmp_path, "frictionless", PACKAGE, *names)
    schema, columns = made.schema, made.schema.columns
    assert list(columns) == [name for name in names if name != "raw"]
    assert (schema.encoding, schema.delimiter, schema.decimal) == ("iso8859-1", ";", ",")
    assert (columns["age"].bounds, columns["age"].missing) == ((0, 120), False)
    assert (columns["pay"].bounds, columns["pay"].missing) == ("undeclared", ("NA",))
    assert (columns["sex"].values, columns["sex"].description) == (("f", "m"), "Sex")
    assert (columns["grade"].type, columns["grade"].values) == ("ordinal", (1, 2))
    assert (columns["grade"].description, columns["grade"].value_labels) == (None, {"1": "low", "2": "high"})
    assert (columns["nr"].type, columns["mail"].type, columns["on"].type) == ("id", "fake", "boolean")
    assert "DD.MM.YYYY" in (schema.date_format, columns["born"].fact("date_format"))


def test_a_table_schema_by_itself_is_read(tmp_path: Path) -> None:
    fields = [each for each in PACKAGE["resources"][0]["schema"]["fields"] if each["name"] != "note"]  # type: ignore[index]
    made = described(tmp_path, "frictionless", {"fields": fields})
    assert made.schema.columns["age"].bounds == (0, 120)
    assert made.schema.columns["pay"].missing is True  # an empty cell means missing where nothing else is said


def test_csv_on_the_web_is_read(tmp_path: Path) -> None:
    columns = ("No.", "age", "pay", "sex", "born", "seen", "note", "url")
    made = described(tmp_path, "csvw", WEB, *columns)
    schema, found = made.schema, made.schema.columns
    assert tuple(found) == columns
    assert (schema.encoding, schema.delimiter, schema.decimal) == ("iso8859-1", ";", ",")
    assert (found["No."].type, found["url"].type) == ("id", "id")
    assert (found["age"].bounds, found["age"].missing, found["age"].description) == ((0, 120), False, "Age")
    assert (found["sex"].values, found["sex"].missing) == (("f", "m"), ("NA",))
    assert found["seen"].missing == ("-",)
    assert "DD.MM.YYYY" in (schema.date_format, found["born"].fact("date_format"))
    assert "# said of its values: at least 0" not in made.to_yaml()  # 0 is said, and only an upper end lacks
    assert "columns.pay.bounds" in schema.undeclared


def test_metadata_of_sdv_is_read(tmp_path: Path) -> None:
    made = described(tmp_path, "sdv", SDV_ONE, *SDV_ONE["columns"])  # type: ignore[misc]
    columns = made.schema.columns
    assert {name: column.type for name, column in columns.items()} == {
        "guest": "id", "nights": "integer", "rate": "real", "room": "category", "member": "boolean", "arrived": "date",
        "called": "datetime", "mail": "fake", "secret": "id", "some": "category",
    }  # fmt: skip
    assert "DD MM YYYY" in (made.schema.date_format, columns["arrived"].fact("date_format"))
    assert "columns.nights.bounds" in made.schema.undeclared
    assert "columns.room.values" in made.schema.undeclared
    assert "Programs write such files from data" in made.to_yaml()


def test_metadata_of_several_tables_says_how_they_hang_together(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text(json.dumps(SDV_TWO))
    tables = {
        "hotels": pd.DataFrame({"hotel": ["a"], "city": ["x"]}),
        "guests": pd.DataFrame({"guest": [1], "at": ["a"], "nights": [2]}),
    }
    made = drafted(tables, tmp_path / "metadata.json", form="sdv")
    guests = made.schema.tables["guests"]
    assert (guests.parent, guests.foreign_key, guests.key) == ("hotels", "at", "guest")
    assert made.schema.columns["guests.nights"].type == "integer"
    assert "tables.guests.max_children" in made.schema.undeclared
    assert Schema.parse(made.to_yaml()) == made.schema
    assert "# links:" not in made.to_yaml()
    tables["guests"].to_csv(tmp_path / "guests.csv", index=False)
    one = drafted(tmp_path / "guests.csv", tmp_path / "metadata.json", form="sdv").schema
    assert {name: column.type for name, column in one.columns.items()} == {
        "guest": "id",
        "at": "id",
        "nights": "integer",
    }
    tables["guests"].to_csv(tmp_path / "else.csv", index=False)
    with pytest.raises(SchemaError, match="describes several tables"):
        drafted(tmp_path / "else.csv", tmp_path / "metadata.json", form="sdv")


def test_a_second_foreign_key_is_offered_as_a_link(tmp_path: Path) -> None:
    """Neither name says so: the keys that a form of metadata declares do."""
    fields = {"hotels": ["hotel", "city"], "guests": ["guest", "at", "knows", "nights"]}
    frames = {name: pd.DataFrame(columns=columns) for name, columns in fields.items()}
    keys = {"at": ("hotels", "hotel"), "knows": ("guests", "guest")}
    package = {
        "resources": [
            {
                "name": name,
                "schema": {
                    "fields": [{"name": column, "type": "string"} for column in columns],
                    "primaryKey": [columns[0]],
                    "foreignKeys": [
                        {"fields": [own], "reference": {"resource": "" if to == name else to, "fields": [key]}}
                        for own, (to, key) in keys.items()
                        if own in columns
                    ],
                },
            }
            for name, columns in fields.items()
        ]
    }
    shape = {name: {"parent_table_name": to, "child_foreign_key": name} for name, (to, _) in keys.items()}
    sdv = json.loads(json.dumps(SDV_TWO)) | {
        "relationships": [each | {"child_table_name": "guests"} for each in shape.values()]
    }
    sdv["tables"]["guests"]["columns"] |= {"knows": {"sdtype": "id"}}
    for what, said in (("frictionless", package), ("sdv", sdv)):
        (tmp_path / "metadata.json").write_text(json.dumps(said))
        made = drafted(frames, tmp_path / "metadata.json", form=what)
        assert made.schema.tables["guests"].parent == "hotels"
        assert "    # links: {knows: {to: guests}}\n    columns:" in made.to_yaml(), what


@pytest.mark.parametrize("program", ["spss", "stata"])
def test_labels_of_files_are_read_and_no_cell(tmp_path: Path, program: str) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed (doublure[files])")
    frame = pd.DataFrame({
        "sex": [1.0, 2.0, -9.0], "income": [1.5, 2.5, -8.0], "name": ["Smith", "Jones", "Doe"],
        "day": pd.to_datetime(["2020-01-01"] * 3).date, "at": pd.to_datetime(["2020-01-01 10:00"] * 3),
    })  # fmt: skip
    labels = {"sex": {1: "male", 2: "female", -9: "refused"}}
    ending, write = {"spss": (".sav", pyreadstat.write_sav), "stata": (".dta", pyreadstat.write_dta)}[program]
    more = {
        "missing_ranges": {"sex": [-9], "income": [{"lo": -9, "hi": -7}]},
        "variable_measure": {"sex": "nominal", "income": "scale"},
    }
    if program == "spss":
        labels["income"] = {-8: "refused"}
    path = tmp_path / f"people{ending}"
    write(
        frame,
        str(path),
        column_labels={"sex": "Sex"},
        variable_value_labels=labels,
        **(more if program == "spss" else {}),
    )
    made = drafted(frame, path, form=program)
    columns = made.schema.columns
    assert columns["sex"].description == "Sex"
    assert columns["sex"].value_labels == {"1": "male", "2": "female", "-9": "refused"}
    assert {name: column.type for name, column in columns.items()} == {
        "sex": "category", "income": "real", "name": "category", "day": "date", "at": "datetime",
    }  # fmt: skip
    if program == "spss":
        assert (columns["sex"].values, columns["sex"].missing) == ((1, 2), ("-9",))
        assert columns["income"].missing == ("-8",)
    assert "Programs write such files from data" in made.to_yaml()
    assert "Smith" not in made.to_yaml()
    assert "columns.name.values" in made.schema.undeclared


def test_labels_need_a_library_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from doublure.drafting.metadata import labels

    monkeypatch.setattr(labels, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    (tmp_path / "people.sav").write_bytes(b"x")
    with pytest.raises(InputError, match=r"pip install 'doublure\[files\]'"):
        read_metadata(tmp_path / "people.sav", "spss")


# -- one form for another, and what is none ----------------------------------------------------------------------------

SAID = {"redcap": REDCAP, "frictionless": PACKAGE, "csvw": WEB, "sdv": SDV_ONE}


@pytest.mark.parametrize("what", SAID)
@pytest.mark.parametrize("asked", ["codebook", *SAID])
def test_a_file_of_another_form_is_named(tmp_path: Path, what: str, asked: str) -> None:
    if what == asked:
        return
    path = tmp_path / ("m.csv" if what == "redcap" else "m.json")
    path.write_text(REDCAP if what == "redcap" else json.dumps(SAID[what]))
    with pytest.raises(SchemaError, match=f"--from {what}") as caught:
        read_metadata(path, asked)
    assert FORMS[what].title in str(caught.value)


@pytest.mark.parametrize("what", [name for name in FORMS if name not in ("spss", "stata")])
@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"resources": 3}', '{"resources": [{"schema": {"fields": [3]}}]}', '{"tables": {"a": 3}}',
     '{"columns": {"a": 3}, "METADATA_SPEC_VERSION": 1}', '{"tableSchema": {"columns": [{}]}}', '{"tables": 3}',
     "field_name,field_type\na", '{"tables": {"a": {"columns": {}, "primary_key": []}}, "METADATA_SPEC_VERSION": 1}',
     '{"fields": [{"name": "a", "type": {}}]}', 'field_name,field_type\n"a', "\0", '{"fields": [{"name": 3}]}'],
)  # fmt: skip
def test_what_is_no_metadata_is_refused_in_one_line(tmp_path: Path, what: str, content: str) -> None:
    (tmp_path / "m").write_text(content)
    with pytest.raises(DoublureError) as caught:
        drafted(None, tmp_path / "m", form=what)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_a_form_that_there_is_not() -> None:
    with pytest.raises(SettingError, match="redcap, frictionless"):
        read_metadata("a.csv", "excel")


def test_neighbouring_tables_give_the_same_draft_with_metadata(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(SDV_ONE))
    frame = pd.DataFrame({name: ["x"] * 60 for name in SDV_ONE["columns"]})  # type: ignore[union-attr]
    odd = pd.concat([frame, pd.DataFrame([dict.fromkeys(frame, "Smith, Jones")])])
    first, second = (drafted(each, tmp_path / "m.json", form="sdv").to_yaml() for each in (frame, odd))
    assert first == second


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("%d.%m.%Y", "DD.MM.YYYY"), ("%m/%d/%Y %H:%M", "MM/DD/YYYY hh:mm"), ("%Y-%m-%d", None), ("%b %Y", None),
     ("%Y-%m-%dT%H:%M:%S", None), ("%H:%M", None)],
)  # fmt: skip
def test_forms_of_dates_are_those_of_schemas(pattern: str, found: str | None) -> None:
    assert form.date_format(pattern) == found
