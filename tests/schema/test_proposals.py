"""What a draft proposes follows from names and from forms that 19 in 20 cells share; a person decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from doublure.drafting import proposals
from doublure.drafting.check import check
from doublure.drafting.draft import drafted
from doublure.drafting.proposals import rules_for
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema
from doublure.schema.columns import type_named

N = 200
DRAW = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "patient_id": np.arange(N),
        "mail": [f"a{n}@example.org" for n in range(N)],
        "code": np.arange(N) % 4,
        "amount": DRAW.integers(0, 100_000, N),
        "born": [f"{1 + n % 28}-{1 + n % 12}-19{10 + n % 90}" for n in range(N)],
        "born-us": [f"{1 + n % 12}/{1 + n % 28}/19{10 + n % 90}" for n in range(N)],
        "price": [f"{1 + n}.{n:03d},{n % 100:02d}" for n in range(N)],
        "points": [str(n * 7919 % 5000) if n % 3 else "N" for n in range(N)],
        "word": ["some", "other"] * (N // 2),
        "Fall-Nr": [f"F{1000 + n}" for n in range(N)],
        "remark": [f"patient {n // 2} was late" for n in range(N)],
        "weight": [f"{50 + n % 40},5" if n % 8 else "n/a" for n in range(N)],
        "kilos": [f"{50 + n}.{n % 10}0" if n % 50 else "61.123456" for n in range(N)],
        "debt": ["0.00" if n % 8 else f"{DRAW.random():.9f}" for n in range(N)],
        "cents": ["0.00" if n % 3 else f"{n}.{n % 90 + 9:02d}" for n in range(N)],
        "share": [f"{DRAW.random():.9f}" for _ in range(N)],
        "days": [f"{n % 60}.0" if n % 8 else "?" for n in range(N)],
        "height": [str(150 + n % 50) if n % 8 else "?" for n in range(N)],
    }
)
WANTED = {
    "patient_id": "{type: id}",
    "mail": "{type: fake, as: email}",
    "code": "{type: category, values: [CODE, CODE]}",
    "born": "{type: date, date_format: D-M-YYYY, bounds: undeclared, dtype: str}",
    "born-us": "{type: date, date_format: M/D/YYYY, bounds: undeclared, dtype: str}",
    "price": "{type: real, bounds: undeclared, dtype: str}",
    "points": "{type: integer, bounds: undeclared, missing: [TEXT], dtype: str}",
    "Fall-Nr": "{type: id, dtype: str}",
    "remark": "{type: constant, value: (removed)}",
    "weight": "{type: real, bounds: undeclared, missing: [TEXT], dtype: str}",
    "kilos": "{type: real, bounds: undeclared, precision: 1, dtype: str}",
    "cents": "{type: real, bounds: undeclared, precision: 2, format: '0.00', dtype: str}",
    "days": "{type: real, bounds: undeclared, precision: 0, missing: [TEXT], dtype: str}",
    "height": "{type: integer, bounds: undeclared, missing: [TEXT], dtype: str}",
}


def proposed(text: str) -> dict[str, str]:
    """Return the lines behind ``#`` of a draft: column -> description."""
    text = text[text.index("columns:") :]
    lines = [line.strip().removeprefix("# ") for line in text.splitlines() if "}  # if " in line]
    return dict(line.split("}  # if ")[0].split(": ", 1) for line in lines)


@pytest.fixture(autouse=True)
def _with_faker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "has_faker", lambda: True)


def test_types_are_proposed_beside_what_is_stored() -> None:
    made = drafted(FRAME)
    assert proposed(made.to_yaml()) == {name: wanted.removesuffix("}") for name, wanted in WANTED.items()}
    assert Schema.parse(made.to_yaml()) == made.schema
    assert made.schema.columns["patient_id"].type == "integer"  # nothing is decided
    assert "# decimal: ','\n# thousands: .\n" in made.to_yaml()


def test_ones_and_zeros_are_truths_and_whole_floats_are_whole() -> None:
    """R, SPSS and Stata store an indicator as 0 and 1, and every whole number as a float."""
    frame = pd.DataFrame(
        {
            "callback": [int(n % 3 == 0) for n in range(N)],
            "rare": [int(n == 7) for n in range(N)],  # hardly any: it may as well be a count
            "label": [float(1 + n % 4) for n in range(N)],
            "weight": [float(50 + n) for n in range(N)],
            "flag": [float("nan") if n % 9 == 0 else float(n % 2) for n in range(N)],
            "paid": [20240101.0 + n % 28 for n in range(N)],
            "edema": [(0.0, 0.5, 1.0)[n % 3] for n in range(N)],
            "height": [150 + n / 7 for n in range(N)],
        }
    )
    found = {name: dict(each.column or {}) for name, each in drafted(frame).proposals.items()}
    assert found["callback"] == {"type": "boolean", "written": {True: 1, False: 0}}
    assert found["flag"] == {"type": "boolean", "written": {True: 1, False: 0}}
    assert found["rare"]["type"] == found["label"]["type"] == "category"
    assert found["weight"]["type"] == "integer"
    assert (found["paid"]["type"], found["paid"]["date_format"]) == ("date", "YYYYMMDD")
    assert (found["edema"]["type"], found["edema"]["precision"]) == ("real", 1)
    assert "height" not in found


def test_free_text_is_proposed_as_an_empty_column_or_to_be_left_out() -> None:
    made = drafted(FRAME)
    assert (
        "  # remark: {type: constant, value: (removed)}  # if it is free text, which no method makes" in made.to_yaml()
    )
    assert "or take the line above out" in made.proposals["remark"].why
    few = FRAME.assign(remark=[f"one of {n % 4} long values" for n in range(N)])
    assert "remark" not in drafted(few).proposals  # a list of values, however long each is


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("name", "person_name"), ("Patient Name", "person_name"), ("first_name", "first_name"),
        ("surname", "last_name"),
        ("E-Mail", "email"), ("phone_number", "phone"), ("street address", "street"), ("IBAN", "iban"),
        ("filename", None), ("column_name", None), ("phones_sold", None),
    ],
)  # fmt: skip
def test_columns_about_people_are_proposed_by_their_names(name: str, subject: str | None) -> None:
    made = drafted(pd.DataFrame({name: ["q", "r"], "age": [1, 2]})).proposals.get(name)
    assert (None if made is None else made.column) == (subject and {"type": "fake", "as": subject})


def test_accounts_are_known_by_their_form() -> None:
    cells = [f"DE{n:02}50010517{n:010}" for n in range(60)]
    made = drafted(pd.DataFrame({"konto": cells, "age": range(60)}))
    assert made.proposals["konto"].column == {"type": "fake", "as": "iban"}
    assert "5001" not in made.to_yaml()


def test_without_faker_such_a_column_is_to_be_left_out_and_the_way_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "has_faker", lambda: False)
    text = drafted(pd.DataFrame({"email": ["q"], "phone": ["1"], "age": [1]})).to_yaml()
    assert "# take the line above out  # if by its name it holds names or addresses of people: it is then" in text
    assert "after pip install 'doublure[fake]' it may be {type: fake, as: email}" in text


def test_no_cell_and_no_single_record_reaches_a_proposal() -> None:
    text = drafted(FRAME).to_yaml()
    for private in ("example.org", "[N]", "some,", "1910", "7919", "F1000", "patient 7", "n/a"):
        assert private not in text
    odd = pd.DataFrame([dict.fromkeys(FRAME.columns, "!")])
    assert drafted(pd.concat([FRAME.astype(object), odd])).proposals == drafted(FRAME.astype(object)).proposals


def test_a_word_in_capitals_that_is_left_in_is_refused_or_means_nothing() -> None:
    with pytest.raises(SchemaError, match="names one value twice"):
        Schema.parse("doublure: 1\nkind: table\ncolumns: {code: {type: category, values: [CODE, CODE]}}")


def test_few_cells_and_declared_columns_get_no_proposal(tmp_path: Path) -> None:
    assert set(drafted(FRAME.head(30)).proposals) == {"patient_id", "Fall-Nr", "mail"}  # by their names alone
    path = tmp_path / "codes.csv"
    path.write_text("column,type,lower,upper\ncode,integer,0,9\n")
    assert "code" not in drafted(FRAME, path).proposals


def test_one_row_of_a_codebook_describes_columns_of_one_kind(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text(
        "column,type,values,lower,upper,missing,description\nBILL*,integer,,-10,10,false,A month's bill\n"
        "BILL2,integer,,0,5,false,\nNONE*,integer,,0,5,false,\n"
    )
    made = drafted(pd.DataFrame({"BILL1": [1], "BILL2": [2], "MY_BILL": [3]}), path)
    assert made.schema.columns["BILL1"].bounds == (-10, 10)
    assert made.schema.columns["BILL2"].bounds == (0, 5)
    assert made.schema.columns["MY_BILL"].bounds == "undeclared"
    assert made.unknown == ("NONE*",)
    assert made.schema.columns["BILL1"].description == "A month's bill"
    assert set(made.rows) == {"BILL1", "BILL2"}


def test_the_pattern_that_says_most_of_a_name_describes_it(tmp_path: Path) -> None:
    """Whichever stands first: amounts that counted as codes would be refused only after the plan."""
    path = tmp_path / "codes.csv"
    path.write_text("column,type,lower,upper\nPAY_*,integer,-2,9\nPAY_AMT*,integer,0,5000000\n*,integer,0,1\n")
    columns = drafted(pd.DataFrame({"PAY_0": [1], "PAY_AMT1": [2], "AGE": [1]}), path).schema.columns
    assert [column.bounds for column in columns.values()] == [(-2, 9), (0, 5_000_000), (0, 1)]


def test_rules_are_proposed_by_names_and_types() -> None:
    named = {"education": "ordinal", "education-num": "integer", "INDP": "category", "INDP_CAT": "category"}
    named |= {"start": "date", "end": "date", "seen": "datetime", "num": "integer"}
    columns = {name: type_named(type_)() for name, type_ in named.items()}
    assert [rule for rule, _ in rules_for(columns)] == [
        "- {equal: [education, education-num]}",
        "- {determines: [INDP, INDP_CAT], map: FILE}",
        "- {at_most: [start, end]}",
    ]


@pytest.mark.parametrize(
    ("named", "orders"),
    [
        ({"admitted": "datetime", "discharged": "datetime", "birth_date": "date"},
         [["birth_date", "admitted"], ["admitted", "discharged"]]),
        ({"date of birth": "date", "enrolled": "date", "left": "date"},
         [["date of birth", "enrolled"], ["enrolled", "left"]]),
        ({"enrolled": "date", "dob": "date", "seen": "datetime"}, [["dob", "enrolled"], ["dob", "seen"]]),
        ({"birthYear": "year", "visit": "date"}, [["birthYear", "visit"]]),
        ({"discharged": "date", "admitted": "date"}, [["admitted", "discharged"]]),
        ({"birth of mother": "date", "birth of child": "date"}, [["birth of mother", "birth of child"]]),
        ({"birth_weight": "real", "visit": "date"}, []),
    ],
)  # fmt: skip
def test_orders_of_times_are_proposed_with_a_birth_first(named, orders) -> None:
    columns = {name: type_named(type_)() for name, type_ in named.items()}
    assert [list(names) for rule, names in rules_for(columns) if "at_most" in rule] == orders


TERMS = """
doublure: 1
kind: table
units: 9
defaults: {missing: false}
columns:
  term: {type: integer, bounds: [1, 2]}
  start: {type: date, bounds: [2000-01-01, 2001-01-01]}
  end: {type: date, bounds: [2000-01-01, 2001-01-01]}
  seen: {type: date, bounds: [2000-01-01, 2001-01-01]}
constraints:
- {determines: [term, end], map: {1: 2000-06-01, 2: 2000-12-01}}
"""


def test_no_rule_is_proposed_that_the_schema_refuses() -> None:
    """An order was proposed with a column that a list gives; pasted, it was refused."""
    asks = [found for found in check(Schema.parse(TERMS)).findings if found.path == "constraints"]
    assert not asks  # neither start and end nor end and seen
    free = TERMS[: TERMS.index("constraints")]
    proposed = [found.declare for found in check(Schema.parse(free)).findings if found.path == "constraints"]
    assert proposed == ["- {at_most: [start, end]}", "- {at_most: [end, seen]}"]
    Schema.parse(free + "constraints:\n" + "\n".join(map(str, proposed)))
    # Two likenesses of one pair, of which a schema takes one.
    twins = free.replace(
        "term: {type: integer, bounds: [1, 2]}", "start_code: {type: date, bounds: [2000-01-01, 2001-01-01]}"
    )
    names = [found.declare for found in check(Schema.parse(twins)).findings if found.path == "constraints"]
    Schema.parse(twins + "constraints:\n" + "\n".join(map(str, names)))


def test_parts_of_a_question_are_asked_for_as_skipped_together() -> None:
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns:\n" + "".join(
        f"  {name}: {{type: boolean, missing: {missing}}}\n"
        for name, missing in {
            "Q1": "true",
            "Q2": "true",
            "Q28_1": "true",
            "Q28_2": "true",
            "Q5a": "true",
            "Q5b": "false",
        }.items()
    )
    asked = [found.declare for found in check(Schema.parse(text)).findings if found.path == "constraints"]
    assert asked == ["- {missing_together: [Q28_1, Q28_2]}"]
    said = Schema.parse(f"{text}constraints:\n{asked[0]}\n")
    assert not [found for found in check(said).findings if found.path == "constraints"]


def test_a_clash_names_the_rule_that_gives_the_column() -> None:
    with pytest.raises(SchemaError, match="at_most names end, which determines lists for term; take one"):
        Schema.parse(TERMS + "- {at_most: [start, end]}\n")


def test_check_asks_for_a_target_and_rules_and_nothing_stands_in_the_way() -> None:
    text = (
        "doublure: 1\nkind: table\nunits: 9\ndefaults: {missing: false}\ncolumns:\n"
        "  a: {type: date, bounds: [2000-01-01, 2001-01-01]}\n  b: {type: date, bounds: [2000-01-01, 2001-01-01]}\n"
        "  c: {type: boolean}\n"
    )
    found = check(Schema.parse(text))
    assert found.ok
    assert [(each.path, each.declare) for each in found.findings if each.kind == "ask"] == [
        ("roles", "roles: [target]"),
        ("constraints", "- {at_most: [a, b]}"),
    ]
    assert "such as c" in found.to_yaml()
    said = text.replace("boolean", "boolean, roles: [target]") + "constraints:\n  - {at_most: [a, b]}\n"
    assert not [each for each in check(Schema.parse(said)).findings if each.kind == "ask"]
    none = "doublure: 1\nkind: table\nunits: 9\ncolumns: {c: {type: boolean, missing: false, roles: [target]}}"
    (ask,) = [each for each in check(Schema.parse(none)).findings if each.kind == "ask"]
    assert "no rule is declared" in ask.message


def test_many_columns_are_told_of_defaults() -> None:
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: boolean}, b: {type: boolean}}"
    assert "#   defaults: {missing: false}" in check(Schema.parse(text)).to_yaml()
    assert "defaults" not in check(Schema.parse(text.replace(", b: {type: boolean}", ""))).to_yaml()


def test_a_file_in_another_encoding_is_drafted_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes("gr\xf6\xdfe^wort\n1^a\n2^b\n".encode("latin-1"))
    with pytest.raises(DataError, match="draft it with --encoding latin-1"):
        drafted(path)
    made = drafted(path, encoding="latin-1", delimiter="^")
    assert list(made.schema.columns) == ["gr\xf6\xdfe", "wort"]
    again = Schema.parse(made.to_yaml())
    assert again == made.schema
    assert [each.path for each in check(again, path).findings if each.kind == "absent"] == []
    with pytest.raises(SchemaError, match="encoding: is not an encoding"):
        drafted(path, encoding="nonsense")
    with pytest.raises(SchemaError, match="is for the files of tables and series"):
        drafted(path, kind="images", encoding="latin-1")


QUOTED = 'a,note,c\nu,"x\ny",3\nv,"z",4\n'


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        (QUOTED, True),
        (QUOTED.replace("\n", "\r\n"), True),
        ('a,note,c\nu,"x y",3\n', False),
        ('a,note,c\nu,x"\nv,y"z,3\n', False),
    ],
)
def test_line_ends_in_quotes_are_proposed_and_not_declared(tmp_path: Path, text: str, spans: bool) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode())
    if not spans and 'x"' in text:
        with pytest.raises(DataError, match="more or fewer fields"):
            drafted(path)
        return
    made = drafted(path)
    assert made.schema.columns["c"].type == "integer"
    assert ("# multiline: true\n" in made.to_yaml()) is spans
    assert "multiline" not in Schema.parse(made.to_yaml()).to_yaml()
    if spans:
        declared = Schema.parse(made.to_yaml().replace("# multiline: true\n", "multiline: true\n"))
        assert declared.written is not None
        assert declared.written.multiline
        assert drafted(path, kind="series").schema.kind == "series"
        assert "# multiline: true\n" in drafted(path, kind="series").to_yaml()


def test_an_open_quote_is_no_line_end_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('a,c\nu,3\n"v,4\n')
    with pytest.raises(DataError, match="an unclosed quote; declare multiline: true if"):
        drafted(path)
    path.write_bytes(b"a,c\nu\xe9,3\n")
    with pytest.raises(DataError, match="draft it with --encoding latin-1"):
        drafted(path)


def test_related_tables_are_drafted_with_line_ends_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("nr,age\n1,3\n2,4\n")
    (tmp_path / "stays.csv").write_text('patients_nr,note\n1,"x\ny"\n2,z\n')
    assert "# multiline: true\n" in drafted(tmp_path, kind="relational").to_yaml()


def test_a_codebook_that_gives_a_type_alone_keeps_what_names_propose(tmp_path: Path) -> None:
    codes = tmp_path / "codes.csv"
    codes.write_text("column,type,values\nname,id,\nicd10,category,\nzip,category,12345|12346\npatient_id,id,\n")
    made = drafted(pd.DataFrame({"name": ["A"], "icd10": ["A01"], "zip": ["12345"], "patient_id": [1]}), codes)
    assert set(made.proposals) == {"name", "icd10"}
    assert "  # name: {type: fake, as: person_name}  # if by its name" in made.to_yaml()
    assert "  # icd10: {type: code, values: {file: CODES.txt}, levels: [1, 3]}" in made.to_yaml()


DAYS = [pd.Timestamp("2021-01-01") + pd.Timedelta(days=5 * n, minutes=7 * n) for n in range(N)]
WRITTEN: dict[str, tuple[list[object], str]] = {
    "american": (
        [f"{t.month}/{t.day}/{t.year} {(t.hour + 11) % 12 + 1}:{t.minute:02} {'AP'[t.hour // 12]}M" for t in DAYS],
        "{type: datetime, date_format: 'M/D/YYYY h:mm AM', bounds: undeclared, step: 60}",
    ),
    "named": ([t.strftime("%d%b%Y").upper() for t in DAYS], "{type: date, date_format: DDMMMYYYY, bounds: undeclared}"),
    "slashes": ([t.strftime("%Y/%m/%d") for t in DAYS], "{type: date, date_format: YYYY/MM/DD, bounds: undeclared}"),
    "whole": ([t.strftime("%Y%m%d") for t in DAYS], "{type: date, date_format: YYYYMMDD, bounds: undeclared}"),
    "open end": (
        [t.strftime("%Y%m%d") if n % 5 else "99991231" for n, t in enumerate(DAYS)],
        "{type: date, date_format: YYYYMMDD, bounds: undeclared, missing: [TEXT]}",
    ),
    "paid": ([t.strftime("%Y%m%d") for t in DAYS], "{type: date, date_format: YYYYMMDD, bounds: undeclared}"),
    "months": ([t.strftime("%m.%Y") for t in DAYS], "{type: month, date_format: MM.YYYY, bounds: undeclared}"),
    "build_year": ([str(t.year) for t in DAYS], "{type: year, bounds: undeclared}"),
    "minutes": ([t.strftime("%Y-%m-%d %H:%M") for t in DAYS], "{type: datetime, step: 60, bounds: undeclared}"),
    "with T": (
        [t.strftime("%Y-%m-%dT%H:%M:%S") for t in DAYS],
        "{type: datetime, date_format: 'YYYY-MM-DDThh:mm:ss', bounds: undeclared}",
    ),
    "midnights": (
        [t.strftime("%Y-%m-%d 00:00:00") for t in DAYS],
        "{type: date, date_format: 'YYYY-MM-DD hh:mm:ss', bounds: undeclared}",
    ),
    "truth": (["Y" if n % 3 else "N" for n in range(N)], "{type: boolean, written: {true: 'Y', false: 'N'}}"),
    "rare": (["Y" if n == 1 else "N" for n in range(N)], "{type: boolean, written: {true: 'Y', false: 'N'}}"),
    "ja": (["J" if n % 3 else "N" for n in range(N)], "{type: boolean, written: {true: J, false: 'N'}}"),
    "upper": (
        ["TRUE" if n % 3 else "FALSE" for n in range(N)],
        "{type: boolean, written: {true: 'TRUE', false: 'FALSE'}}",
    ),
    "dollars": (
        [f"${37 * n:,.2f}" for n in range(N)],
        "{type: real, format: '$#,##0.00', bounds: undeclared, precision: 2}",
    ),
    "percent": (
        [f"{n / 7:.1f} %" for n in range(N)],
        "{type: real, format: 0.0 %, bounds: undeclared, precision: 1}",
    ),
    "swiss": (
        [f"{37 * n:,}".replace(",", "'") for n in range(N)],
        "{type: integer, format: '#''##0', bounds: undeclared}",
    ),
    "grouped": ([f"{37 * n:,}" for n in range(N)], "{type: integer, format: '#,##0', bounds: undeclared}"),
    "unit": (
        [f"{n / 7:.1f} g/dL" for n in range(N)],
        "{type: real, format: 0.0 UNIT, bounds: undeclared, precision: 1}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_a_form_is_proposed_that_most_cells_have_and_no_single_record_decides(tmp_path: Path, name: str) -> None:
    cells, wanted = WRITTEN[name]
    for odd in ("", "!", "2"):
        path = tmp_path / "a.csv"
        pd.DataFrame({name: [*cells, odd], "other": "x"}).to_csv(path, index=False)
        made = drafted(path)
        assert f"  # {name}: {wanted}  # if " in made.to_yaml()
    assert "g/dL" not in made.to_yaml()
    assert Schema.parse(made.to_yaml()) == made.schema  # nothing is decided


def test_words_around_numbers_are_no_format() -> None:
    frame = pd.DataFrame({"a": [f"room {n}" for n in range(N)], "b": [f"{n} of {N}" for n in range(N)]})
    assert all("format" not in (each.column or {}) for each in drafted(frame).proposals.values())
