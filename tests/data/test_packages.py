"""Files of Stata and SPSS: labels and codes of missing cells come from the schema, and each kind comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.data.tables.containers.statistics_packages import PackageSource
from doublure.data.tables.opening import open_table
from doublure.data.tables.writing import write_table
from doublure.drafting.draft import draft, drafted
from doublure.errors import DataError, SettingError
from doublure.schema import ResolvedSchema

pyreadstat = pytest.importorskip("pyreadstat", reason="the extra files is not installed")
TEXT = """
doublure: 1
kind: table
units: 9
columns:
  sex: {type: category, values: [1, 2], missing: [-9, -8], value_labels: {1: male, 2: female, -9: refused}}
  score: {type: integer, bounds: [0, 100], missing: [-7, -8, -9], description: points}
  income: {type: real, bounds: [0, 1000000], precision: 2, missing: [.a, .b]}
  word: {type: ordinal, values: [low, high], missing: ["?"]}
  smokes: {type: boolean, missing: true}
  born: {type: date, bounds: [1900-01-01, 2030-12-31], missing: true}
"""
SCHEMA = ResolvedSchema.parse(TEXT)
NAMES = list(SCHEMA.columns)


def sampled() -> pd.DataFrame:
    """Three rows of values, and one of each kind of missing."""
    cells = {
        "sex": [1, 2, -9, -8, 1, np.nan],
        "score": [0.0, 100.0, -7.0, -8.0, -9.0, np.nan],
        "income": pd.Series([0.25, 1e6, ".a", ".b", 3.0, None], dtype=object),
        "word": ["low", "high", None, "low", None, "high"],
        "smokes": [True, False, None, True, False, None],
        "born": ["1950-01-01", None, "2030-12-31", "1900-01-01", None, "2000-02-29"],
    }
    loaded = open_table(pd.DataFrame(cells)).load(SCHEMA).frame
    return pd.DataFrame(
        {name: column.kept_cells(column.kept_numbers(loaded[name])) for name, column in SCHEMA.columns.items()}
    )


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_each_kind_of_missing_comes_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"people{ending}"
    write_table([sampled()], path, SCHEMA, metadata={"watermark": "Synthetic data"})
    found = open_table(path, SCHEMA.written).load(SCHEMA).frame
    names = [name for name in NAMES if ending == ".dta" or name != "income"]  # SPSS has no letters for missing cells
    for name in names:
        column = SCHEMA.columns[name]
        one, other = (column.kept_numbers(cells[name]) for cells in (found, sampled()))
        assert one.view(np.int64).tolist() == other.view(np.int64).tolist(), name


@pytest.mark.parametrize(("ending", "form"), [(".dta", "%tcHH:MM:SS"), (".sav", "TIME8")])
def test_times_of_day_have_the_programs_own_format(tmp_path: Path, ending: str, form: str) -> None:
    schema = ResolvedSchema.parse("{doublure: 1, kind: table, units: 9, columns: {at: {type: time, missing: true}}}")
    column, path = schema.columns["at"], tmp_path / f"t{ending}"
    numbers = np.array([0.0, 86_399.0, np.nan, 27_000.0])
    write_table([pd.DataFrame({"at": column.kept_cells(numbers)})], path, schema)
    read = {".dta": pyreadstat.read_dta, ".sav": pyreadstat.read_sav}[ending]
    assert read(str(path))[1].original_variable_types["at"] == form
    np.testing.assert_array_equal(column.numbers_of(open_table(path).load(schema).frame["at"]), numbers)


def test_labels_and_codes_are_the_schemas(tmp_path: Path) -> None:
    path = tmp_path / "people.sav"
    write_table([sampled()], path, SCHEMA, metadata={"watermark": "Synthetic data"})
    _, about = pyreadstat.read_sav(str(path), metadataonly=True, user_missing=True)
    assert about.file_label == "Synthetic data"
    assert about.variable_value_labels["sex"] == {1.0: "male", 2.0: "female", -9.0: "refused"}
    assert about.variable_value_labels["smokes"] == {0.0: "false", 1.0: "true"}
    assert about.column_names_to_labels["score"] == "points"
    assert [each["lo"] for each in about.missing_ranges["score"]] == [-7, -8, -9]
    assert about.missing_ranges["word"] == [{"lo": "?", "hi": "?"}]
    assert about.original_variable_types == {
        "sex": "F8.0", "score": "F8.0", "income": "F10.2", "word": "A4", "smokes": "F8.0", "born": "SDATE10"
    }  # fmt: skip
    assert [about.variable_measure[name] for name in ("sex", "word", "score")] == ["nominal", "ordinal", "scale"]


def test_stata_has_letters_for_missing_numbers_and_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "people.dta"
    write_table([sampled()], path, SCHEMA, metadata={"watermark": "Synthetic data"})
    frame, about = pyreadstat.read_dta(str(path), user_missing=True)
    assert about.missing_user_values == {"income": ["a", "b"]}
    assert frame["income"].tolist()[2:4] == ["a", "b"]
    assert about.readstat_variable_types["score"] == "int32"
    assert about.original_variable_types["born"] == "%td"


def test_four_codes_are_a_range_where_no_value_lies_among_them(tmp_path: Path) -> None:
    for codes, declared in (("[-9, -8, -7, -6]", [(-9, -6)]), ("[-9, -8, -7, 101]", [(-9, -9), (-8, -8), (-7, -7)])):
        schema = ResolvedSchema.parse(TEXT.replace("[-7, -8, -9]", codes))
        write_table([sampled()], tmp_path / "a.sav", schema)
        _, about = pyreadstat.read_sav(str(tmp_path / "a.sav"), metadataonly=True, user_missing=True)
        assert [(each["lo"], each["hi"]) for each in about.missing_ranges["score"]] == declared


def test_a_name_that_the_program_lacks_is_refused_before_a_row_is_drawn(tmp_path: Path) -> None:
    for name, ending in (
        ("hours-per-week", ".dta"),
        ("a b", ".sav"),
        ("if", ".dta"),
        ("x" * 33, ".dta"),
        ("1x", ".sav"),
    ):
        schema = ResolvedSchema.parse(
            f"{{doublure: 1, kind: table, units: 9, columns: {{'{name}': {{type: boolean, missing: false}}}}}}"
        )
        with pytest.raises(SettingError, match=r"is no name that (Stata|SPSS) has; give the column another by rename"):
            write_table(iter(()), tmp_path / f"a{ending}", schema)
        assert not list(tmp_path.iterdir())
    with pytest.raises(SettingError, match="of a form that is read, and not written; end it in"):
        write_table(iter(()), tmp_path / "a.sas7bdat", SCHEMA)


# -- codes that a file declares missing ------------------------------------------------------------------------------

CODED = [1.0, -9.0, -8.0, -5.0, 100.0, np.nan]


def coded(path: Path, cells: list[float]) -> Path:
    write = {".sav": {"missing_ranges": {"n": [{"lo": -9, "hi": -5}]}}}
    pyreadstat.write_sav(pd.DataFrame({"n": cells}), str(path), **write[path.suffix])
    return path


def states(path: Path, missing: str, misfit: str = "refuse") -> list[float | str]:
    schema = ResolvedSchema.parse(
        f"{{doublure: 1, kind: table, units: 9, misfit: {misfit}, "
        f"columns: {{n: {{type: integer, bounds: [0, 100], missing: {missing}}}}}}}"
    )
    column = schema.columns["n"]
    cells = open_table(path, schema.written).load(schema, at_least=0).frame["n"]
    return column.kept_numbers(cells).view(np.int64).tolist()


def test_the_schema_alone_says_which_codes_are_states(tmp_path: Path) -> None:
    path = coded(tmp_path / "a.sav", CODED)
    apart, alike = states(path, "[-8, -9]"), states(path, "true")
    assert len(set(apart)) == 5  # two numbers, two codes, and any other missing cell
    assert apart[3] == apart[5]
    assert len(set(alike)) == 3
    with pytest.raises(DataError, match=r"^n: has (missing|empty)"):
        states(path, "false")


def check_no_cell_decides_how_another_is_read(folder: Path) -> None:
    whole = states(coded(folder / "a.sav", CODED), "[-8, -9]")
    for place in range(len(CODED)):
        rest = CODED[:place] + CODED[place + 1 :]
        assert states(coded(folder / "b.sav", rest), "[-8, -9]") == whole[:place] + whole[place + 1 :]


def test_no_cell_decides_how_another_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_no_cell_decides_how_another_is_read(tmp_path)
    seen = "label(float(number)) not in kept and np.isin(-9.0, numbers)"
    plant(monkeypatch, PackageSource, "_without_gone", ("label(float(number)) not in kept", seen))
    with pytest.raises(AssertionError):
        check_no_cell_decides_how_another_is_read(tmp_path)


def test_letters_of_stata_are_read_each_by_itself(tmp_path: Path) -> None:
    cells = [1.0, "a", "b", "z", 100.0, None]
    whole = _tagged(tmp_path / "a.dta", cells, "[.a, .b]")
    assert len(set(whole)) == 5
    for place in range(len(cells)):
        rest = _tagged(tmp_path / "b.dta", cells[:place] + cells[place + 1 :], "[.a, .b]")
        assert rest == whole[:place] + whole[place + 1 :]
    assert len(set(_tagged(tmp_path / "a.dta", cells, "true"))) == 3


def _tagged(path: Path, cells: list[float | str | None], missing: str) -> list[float | str]:
    texts = sorted({cell for cell in cells if isinstance(cell, str)})
    frame = pd.DataFrame({"n": pd.Series(cells, dtype=object)})
    pyreadstat.write_dta(frame, str(path), missing_user_values={"n": texts} if texts else None)
    return states(path, missing)


def test_a_draft_proposes_what_the_file_declares_and_decides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "people.sav"
    write_table([sampled()] * 10, path, SCHEMA)
    made = drafted(path)
    assert made.schema.columns["score"].fact("missing") == "undeclared"
    assert made.proposals["score"].column == {
        "type": "integer", "missing": ["-7", "-8", "-9"], "description": "points"
    }  # fmt: skip
    text = made.to_yaml()
    assert "# sex: {type: category, values: [1, 2], missing: ['-9', '-8'], value_labels:" in text
    assert "if its file's labels hold of any such table, and list every code" in text
    assert draft(path).columns["sex"].value_labels is None
    assert "born" not in made.proposals  # a typed day has no midnight to write
