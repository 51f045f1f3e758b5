"""A table in its own spelling: dates, numbers, encodings and delimiters that the schema declares."""

from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest
from planting import plant

import doublure as db
from doublure.data.opening import open_data
from doublure.data.tables import rewriting
from doublure.data.tables.opening import open_table
from doublure.data.tables.rewriting import RewrittenSource
from doublure.errors import DataError, SchemaError
from doublure.schema import Schema

HEAD = "doublure: 1\nkind: table\nunits: 9\n"
COLUMNS = """
columns:
  when: {type: date, bounds: [2000-01-01, 2030-12-31], missing: ["-"]}
  seen: {type: datetime, bounds: [2000-01-01, 2030-12-31], missing: true}
  cost: {type: real, bounds: [0, 1e7], missing: ["9,9"]}
  many: {type: integer, bounds: [-1e7, 1e7], missing: true}
  town: {type: category, values: [Zürich, Genève], missing: false}
"""
SPELLED = 'date_format: DD.MM.YYYY\ndecimal: ","\nthousands: "."\nencoding: latin-1\ndelimiter: ^\n'
LINES = (
    "when^seen^cost^many^town",
    "31.01.2024^1.2.2024 08:05^1.234,50^-1.234.567^Zürich",
    "-^^9,9^^Genève",
    "1.2.2024^01.02.2024^,5^12^Genève",
)


def loaded(data: object, text: str) -> pd.DataFrame:
    schema = Schema.parse(text)
    return open_data(data, "table", schema.written).load(schema).content  # type: ignore[arg-type]


def file(folder: Path, lines: tuple[str, ...] = LINES, encoding: str = "latin-1") -> Path:
    path = folder / "data.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    return path


def test_a_file_in_its_own_spelling_is_what_its_plain_copy_is(tmp_path: Path) -> None:
    found = loaded(file(tmp_path), HEAD + SPELLED + COLUMNS)
    plain = (
        "when,seen,cost,many,town",
        "2024-01-31,2024-02-01T08:05:00,1234.5,-1234567,Zürich",
        ",,,,Genève",
        "2024-02-01,2024-02-01,0.5,12,Genève",
    )
    pd.testing.assert_frame_equal(found, loaded(file(tmp_path, plain, "utf-8"), HEAD + COLUMNS))


def check_pieces_are_spelled_as_the_whole(folder: Path) -> None:
    """Workers read pieces; a piece that is read as it stands has dates and numbers that are none."""
    schema = Schema.parse(HEAD + SPELLED + COLUMNS)
    (folder / "parts").mkdir()
    for number, line in enumerate(LINES[1:]):
        (folder / "parts" / f"{number}.csv").write_bytes("\n".join((LINES[0], line)).encode("latin-1"))
    pieces = open_table(folder / "parts", schema.written).pieces()
    assert len(pieces) == 3
    for again in (pieces, pickle.loads(pickle.dumps(pieces))):  # noqa: S301 (as a worker is sent them)
        found = [piece.load(schema, at_least=1).frame for piece in again]
        whole = loaded(file(folder), HEAD + SPELLED + COLUMNS)
        pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), whole)


def test_pieces_are_spelled_as_the_whole(tmp_path: Path) -> None:
    check_pieces_are_spelled_as_the_whole(tmp_path)


def test_pieces_as_they_stand_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant(monkeypatch, RewrittenSource, "pieces", ("RewrittenSource(piece, self._written)", "piece"))
    with pytest.raises((AssertionError, DataError)):
        check_pieces_are_spelled_as_the_whole(tmp_path)


def test_texts_of_a_frame_are_read_alike(tmp_path: Path) -> None:
    cells = [line.split("^") for line in LINES]
    frame = pd.DataFrame(cells[1:], columns=cells[0])
    for text in (frame, frame.astype("string"), frame.astype("category")):
        pd.testing.assert_frame_equal(
            loaded(text, HEAD + SPELLED + COLUMNS), loaded(file(tmp_path), HEAD + SPELLED + COLUMNS)
        )
    numbers = frame.assign(cost=[1234.5, None, 0.5])
    pd.testing.assert_frame_equal(loaded(numbers, HEAD + SPELLED + COLUMNS), loaded(frame, HEAD + SPELLED + COLUMNS))


@pytest.mark.parametrize(
    ("place", "cell"),
    [(0, "2019-12-30"), (0, "31/01/2024"), (0, "31.02.2024"), (2, "1.5"), (2, "1,234.5"), (3, "1.23"), (3, "1.2345")],
)
def test_another_spelling_is_a_misfit_and_never_another_number(tmp_path: Path, place: int, cell: str) -> None:
    cells = LINES[1].split("^")
    cells[place] = cell
    with pytest.raises(DataError, match=f"^{LINES[0].split('^')[place]}: has cells that are no") as caught:
        loaded(file(tmp_path, (LINES[0], "^".join(cells), LINES[2])), HEAD + SPELLED + COLUMNS)
    assert cell not in str(caught.value)


def test_a_wrong_encoding_names_the_key_and_never_a_byte(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not UTF-8 text; write the encoding into the schema"):
        loaded(file(tmp_path), HEAD + SPELLED.replace("encoding: latin-1\n", "") + COLUMNS)
    with pytest.raises(DataError, match="not ascii text; correct the schema's encoding"):
        loaded(file(tmp_path), HEAD + SPELLED.replace("latin-1", "ascii") + COLUMNS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("date_format: DD-MM-YY", "date_format: is no form of dates"),
        ("date_format: DD-MM", "date_format: needs a year, a month and a day"),
        ("date_format: DD-MM-YYYY hh", "date_format: needs a year"),
        ("date_format: 3", "date_format: must be a form of dates"),
        ("decimal: '1'", "decimal: must be one character"),
        ("decimal: ',,'", "decimal: must be one character"),
        ("decimal: ','\nthousands: ','", "are the same"),
        ("encoding: utf-16", "encoding: is not an encoding that extends ASCII"),
        ("encoding: nonsense", "encoding: is not an encoding that extends ASCII"),
        ("delimiter: ab", "delimiter: must be one character"),
    ],
)
def test_a_key_that_is_wrong_is_one_line(line: str, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.parse(f"{HEAD}{line}\n{COLUMNS}")


def test_the_keys_are_part_of_the_schema_and_its_absence_changes_no_hash() -> None:
    schema = Schema.parse(HEAD + SPELLED + COLUMNS)
    assert Schema.parse(schema.to_yaml()) == schema
    plain = Schema.parse(HEAD + COLUMNS)
    assert not plain.text_form
    assert schema.sha256 != plain.sha256
    assert not {"decimal", "encoding"} & plain.to_plain().keys()


def test_a_fit_and_its_evaluation_read_the_same_spelling(tmp_path: Path) -> None:
    lines = ["when;cost"] + [f"{1 + n % 28}.3.2024;{n % 7},{n % 3}" for n in range(300)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines))
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunits: 300\ndate_format: DD.MM.YYYY\ndecimal: ','\ncolumns:\n"
        "  when: {type: date, bounds: [2024-01-01, 2024-12-31], missing: false}\n"
        "  cost: {type: real, precision: 1, bounds: [0, 9], missing: false}\n"
    )
    ledger = db.Ledger.create(tmp_path / "a.ledger", dataset="a", epsilon=1, delta=1e-5)
    syn = db.fit(path, db.plan(schema, epsilon=1, delta=1e-5), ledger=ledger, out=tmp_path / "run", seed=1)
    assert db.load(tmp_path / "run").schema.written == syn.schema.written
    assert syn.sample(5, seed=1)["when"].dt.year.eq(2024).all()
    assert len(db.evaluate.report(syn, path).scores)


# -- cells that are stored as numbers, and each by itself --------------------------------------------------------------

OWN = """
columns:
  day: {type: date, bounds: [2000-01-01, 2030-12-31], date_format: YYYYMMDD, missing: [99991231]}
  month: {type: month, bounds: [2000-01, 2030-12], date_format: YYYYMM, missing: true}
  truth: {type: boolean, written: {true: 2, false: 1}, missing: true}
  cost: {type: real, bounds: [0, 10000], precision: 2, format: '$#,##0.00', missing: true}
"""
CELLS: dict[str, list[object]] = {
    "day": [20230309, 20230309.0, "20230309", 99991231, None, 20230230, 2023030, "9.3.2023", True, "2023-03-09"],
    "month": [202303, "202303", 202313, None, "2023-03", 20233, 2.5, "x", False, 202303.0],
    "truth": [2, 1, "2", "1", None, 2.0, "true", 3, "Y", "x"],
    "cost": ["$1,234.50", "-$1.00", "$5", None, "5", 5.25, "€5", "$1.234,50", "x", 7],
}
READ = {
    "day": [19425.0] * 3 + [None] * 7,
    "month": [638.0, 638.0, None, None, None, None, None, None, None, 638.0],
    "truth": [1.0, 0.0, 1.0, 0.0, None, 1.0, None, None, None, None],
    "cost": [1234.5, 0.0, 5.0, None, None, 5.25, None, None, None, 7.0],
}


def check_each_cell_is_read_by_itself() -> None:
    """What stands beside a cell, and in what order, decides on nothing: neighbouring data sets read alike."""
    schema = Schema.parse(HEAD + "misfit: coerce\n" + OWN)

    def numbers(frame: pd.DataFrame) -> dict[str, list[object]]:
        found = open_data(frame, "table", schema.written).load(schema, at_least=1).content
        read = {name: column.numbers_of(found[name]) for name, column in schema.columns.items()}
        return {name: [None if cell != cell else cell for cell in cells] for name, cells in read.items()}

    whole = pd.DataFrame(CELLS, dtype=object)
    assert numbers(whole) == READ
    assert numbers(whole[::-1].reset_index(drop=True)) == {name: cells[::-1] for name, cells in READ.items()}
    for row in range(len(whole)):
        alone = numbers(whole.iloc[[row]].reset_index(drop=True))
        assert alone == {name: [cells[row]] for name, cells in READ.items()}


def test_each_cell_is_read_by_itself() -> None:
    check_each_cell_is_read_by_itself()


def test_a_spelling_that_looks_at_the_column_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch,
        rewriting,
        "rewritten",
        ("cells.dtype == object or numbers", "(cells.dtype == object and cells.map(type).nunique() == 1) or numbers"),
    )
    with pytest.raises(AssertionError):
        check_each_cell_is_read_by_itself()


def test_numbers_of_typed_columns_are_dates_in_every_container(tmp_path: Path) -> None:
    schema = Schema.parse(HEAD + OWN)
    frame = pd.DataFrame({"day": [20230309, 99991231], "month": [202303, 202312], "truth": [2, 1], "cost": [1.5, None]})
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    frame.astype({"day": "float64", "truth": "int8"}).to_parquet(tmp_path / "b.parquet", index=False)
    frame.assign(cost=["$1.50", ""]).to_csv(tmp_path / "c.csv", index=False)
    whole = loaded(frame, HEAD + OWN)
    assert schema.columns["day"].numbers_of(whole["day"])[0] == 19425
    for other in (frame.convert_dtypes(), *(tmp_path / name for name in ("a.parquet", "b.parquet", "c.csv"))):
        pd.testing.assert_frame_equal(whole, loaded(other, HEAD + OWN))


def test_the_form_of_cells_is_gone_once_they_are_read() -> None:
    """A fit sees what cells mean: no spelling, storage type or order of levels in them can reach what it makes."""
    text = (
        HEAD + "columns:\n  a: {type: boolean, missing: false}\n  b: {type: category, values: [x, z], missing: false}\n"
        "  c: {type: integer, bounds: [0, 9], missing: true}\n  d: {type: date, bounds: [2000-01-01, 2030-12-31]}\n"
    )
    plain = pd.DataFrame({"a": [True, False], "b": ["x", "z"], "c": [1, None], "d": ["2024-01-31", "2024-02-01"]})
    others = (
        plain.assign(a=["Y", "n"], c=pd.array([1, None], dtype="Int8"), d=pd.to_datetime(plain["d"])),
        plain.assign(a=pd.Categorical(["yes", "no"]), b=pd.Categorical(["x", "z"], categories=["z", "x"])),
        plain.assign(a=[1, 0], c=["1.0", ""], d=["2024-01-31T00:00", "2024-02-01 00:00:00"]),
        plain.assign(b=plain["b"].astype("category"), c=[1.0, float("nan")], d=pd.to_datetime(plain["d"]).dt.date),
    )
    for other in others:
        pd.testing.assert_frame_equal(loaded(other, text), loaded(plain, text))
