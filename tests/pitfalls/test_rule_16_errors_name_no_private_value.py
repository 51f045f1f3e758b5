"""Rule 16: error messages name the field and the remedy, never a private value (rows 2 and 9)."""

from __future__ import annotations

import datetime
import gzip
import json
import traceback
import zipfile

import numpy as np
import pandas as pd
import pytest

from doublure.cli import terminal
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.tables import cells
from doublure.data.tables import opening as tables
from doublure.data.tables.opening import open_table
from doublure.errors import DoublureError
from doublure.ledger import Ledger
from doublure.run import fitting
from doublure.schema import Schema
from doublure.schema.columns import listed_cells

TEXT, NUMBER, DAY = "Qv9Sentinel", 918273.5546, datetime.date(1937, 3, 21)
SECRETS = (TEXT, "918273", "5546", "1937", "03-21", "3-21", "Qv9")
COLUMNS = {
    "category": "{type: category, values: [a, b], missing: false}",
    "ordinal": "{type: ordinal, values: [1, 2], missing: false}",
    "boolean": "{type: boolean, missing: false}",
    "integer": "{type: integer, bounds: [0, 9], missing: false}",
    "real": "{type: real, bounds: [0, 9], missing: false}",
    "date": "{type: date, bounds: [2000-01-01, 2001-01-01], missing: false}",
    "datetime": "{type: datetime, bounds: [2000-01-01, 2001-01-01], missing: false}",
}
GOOD = {
    "category": "a", "ordinal": 1, "boolean": True, "integer": 3, "real": 2.5, "date": "2000-02-02",
    "datetime": "2000-02-02T10:00:00",
}  # fmt: skip


class Odd:
    """A cell whose every way of showing itself tells the secret."""

    def __str__(self):
        return TEXT

    def __repr__(self):
        return TEXT

    def __float__(self):
        raise ValueError(TEXT)

    def __hash__(self):
        return 1


BAD = [
    TEXT, f"{NUMBER}", NUMBER, -NUMBER, DAY, DAY.isoformat(), datetime.datetime(1937, 3, 21, 5, 46),
    f"{DAY.isoformat()}T25:00", "1e999", f"\0{TEXT}", [TEXT], {TEXT: NUMBER}, TEXT.encode(), complex(NUMBER, 1),
    Odd(), (TEXT,), np.array([NUMBER]), 10**400 + 9182735546, None,
]  # fmt: skip
ARRAYS = [
    [1.5, NUMBER, np.inf],
    pd.array([TEXT, TEXT, "x"], dtype="string"),
    pd.Categorical([TEXT, "a", "b"]),
    pd.to_datetime(["1937-03-21"] * 3),
    pd.to_datetime(["1937-03-21"] * 3).tz_localize("Europe/Paris"),
    pd.timedelta_range("918273s", periods=3),
]
OTHER = "  other: {type: integer, bounds: [0, 1], missing: false}\n"


def schema_of(column, text):
    return Schema.parse(f"doublure: 1\nkind: table\nunits: 5\ncolumns:\n  {column}: {text}\n{OTHER}")


def frames():
    """Yield tables with one bad cell each, and the schema that they break."""
    for column, text in COLUMNS.items():
        for bad in BAD:
            for missing in ("missing: false", "missing: {learn: 0.1}"):
                listed = pd.Series([GOOD[column], bad, GOOD[column]], dtype=object)
                yield (
                    schema_of(column, text.replace("missing: false", missing)),
                    pd.DataFrame({column: listed, "other": 1}),
                )
        for array in ARRAYS:
            yield schema_of(column, text), pd.DataFrame({column: array, "other": 1})
    several = Schema.parse(
        "doublure: 1\nkind: table\nunits: 5\nunit: {name: person, id: who, max_records: 2}\ncolumns:\n"
        f"  who: {{type: id}}\n{OTHER}"
    )
    for who in ([TEXT, None, TEXT], [TEXT, "", TEXT], [[TEXT], [TEXT], [TEXT]], [Odd(), Odd(), None]):
        yield several, pd.DataFrame({"who": pd.Series(who, dtype=object), "other": 1})
    yield several, pd.DataFrame({"who": [TEXT], "other": [1]})
    yield several, pd.DataFrame({"who": [TEXT] * 3})


def assert_tells_nothing(error, where):
    shown = "".join(traceback.format_exception(error))
    lines = [line for line in shown.splitlines() if not line.startswith(("  ", "Traceback"))]  # not the source
    for text in (str(error), error.message, str(error.field), str(error.remedy), "\n".join(lines)):
        assert not any(secret in text for secret in SECRETS), (where, text)
    assert error.field
    assert error.remedy


def refusal(source, schema):
    """Return the refusal of a table, None if it is taken; anything but a refusal is a defect."""
    try:
        open_table(source).load(schema)
    except DoublureError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of a refusal") from error
    return None


REFUSED = "DataError(f'has cells that are no {column.type}', field=name, remedy=column.expected)"


def check_frames_tell_nothing():
    refused = 0
    for schema, frame in frames():
        error = refusal(frame, schema)
        if error is not None:
            refused += 1
            assert_tells_nothing(error, next(iter(frame.columns)))
    assert refused > 150


def test_tables_in_memory_tell_nothing():
    check_frames_tell_nothing()


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (cells, "_refusals",
         (f"raise {REFUSED} from None", "raise DataError(str(sys.exc_info()[1]), field=name, remedy='mend it')")),
        (cells, "_refusals", (f"raise {REFUSED} from None", f"raise {REFUSED}")),
        (listed_cells, "_other_places", ('"has values outside the schema\'s list"', "f'{text} is not listed'")),
    ],
    ids=["cells shown", "cause shown", "value shown"],
)  # fmt: skip
def test_a_message_that_shows_a_cell_is_caught(lab, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_frames_tell_nothing()


def files(folder):
    """Write tables that are damaged beside, or in, a row with secrets."""
    header, good, row = "category,other", "a,1\n" * 5, f"{TEXT},{NUMBER}"
    texts = {
        "ragged.csv": f"{header}\n{good}{row},{DAY}\n",
        "short.csv": f"{header}\n{good}{TEXT}\n",
        "quote.csv": f'{header}\n{good}"{row}\n{good}',
        "nul.csv": f"{header}\n{good}\0{row}\n",
        "unlisted.csv": f"{header}\n{good}{TEXT},1\n",
        "number.csv": f"{header}\n{good}a,{TEXT}\n",
        "infinite.csv": f"{header}\n{good}a,1e999\n",
        "blank.csv": f"{header}\n{good},{NUMBER}\n",
        "decimal.csv": f'{header}\n{good}a,"918273,5546"\n',
        "huge.csv": f"{header}\n{good}a,{'9182735546' * 40}\n",
        "one.csv": f"{header}\na,1\n",
        "columns.csv": f"category\n{TEXT}\n{TEXT}\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes(f"{header}\n{good}{TEXT}\xe9,{NUMBER}\n".encode("latin-1"))
    whole = gzip.compress((f"{header}\n" + f"{TEXT},1\n" * 2000).encode())
    (folder / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(folder / "two.csv.zip", "w") as archive:
        archive.writestr("one.csv", texts["unlisted.csv"])
        archive.writestr("two.csv", texts["unlisted.csv"])
    pd.DataFrame({"category": [TEXT] * 3, "other": [NUMBER] * 3}).to_parquet(folder / "values.parquet")
    content = (folder / "values.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(content[: len(content) // 2])
    (folder / "forged.parquet").write_bytes(content.replace(b"PAR1", b"PAR2"))
    middle = content.replace(TEXT.encode(), b"\xff" * len(TEXT))
    (folder / "damaged.parquet").write_bytes(middle)
    pd.DataFrame({"category": [[TEXT]] * 3, "other": [{"x": NUMBER}] * 3}).to_parquet(folder / "nested.parquet")
    return sorted(folder.iterdir())


def check_files_tell_nothing(folder):
    schema = schema_of("category", COLUMNS["category"])
    for path in files(folder):
        error = refusal(path, schema)
        assert error is not None, path.name
        assert_tells_nothing(error, path.name)


def test_files_tell_nothing(tmp_path):
    check_files_tell_nothing(tmp_path)


@pytest.mark.parametrize("mutant", ["the reader's own words", "the reader's own error"])
def test_a_reader_that_shows_a_row_is_caught(lab, tmp_path, mutant):
    from doublure.data.tables import csv_files

    edits = {
        "the reader's own words": (
            "read_batches",
            "raise refused(path.name, found, header.dialect.encoding)",
            "raise DataError(repr(block), field=path.name, remedy='mend it')",
        ),
        "the reader's own error": ("_first_record", "raise unreadable(path) from None", "raise"),
    }
    name, *edit = edits[mutant]
    lab.plant(csv_files, name, tuple(edit))
    with lab.caught():
        check_files_tell_nothing(tmp_path)


# -- the command line --------------------------------------------------------------------------------------------------


def check_the_command_line_tells_nothing(capsys, folder, plan):
    """Whatever goes wrong, and be it a defect, stdout and stderr hold no cell."""
    plan.save(folder / "plan.json")
    Ledger.create(folder / "ledger", dataset="people", epsilon=50.0, delta=0.1)
    data = folder / "data.csv"
    good = "age,pay,job,out\n" + "30,100,cook,yes\n" * 5
    paths = {"--plan": "plan.json", "--ledger": "ledger", "-o": "run"}
    words = [word for flag, name in paths.items() for word in (flag, str(folder / name))]
    bad = [f"30,{TEXT},cook,yes\n", f"{NUMBER},100,cook,no\n", f"{TEXT},100,cook,yes\n", f"1,2,3,4,{TEXT}\n"]
    for row, flags in zip(bad, ([], ["--json"]) * 2, strict=True):
        data.write_text(good + row)
        code = run_guarded(app, ["fit", str(data), *words, *flags])
        shown = capsys.readouterr()
        assert code in (1, 2)
        assert not any(secret in shown.out + shown.err for secret in SECRETS), shown
        assert "Traceback" not in shown.out + shown.err
        if flags:
            assert json.loads(shown.out)["ok"] is False


def test_the_command_line_tells_nothing(capsys, declared_plan, tmp_path):
    check_the_command_line_tells_nothing(capsys, tmp_path, declared_plan)


def broken(source, schema, **named):
    raise KeyError(TEXT)


def test_a_defect_tells_nothing_either(monkeypatch, capsys, declared_plan, tmp_path):
    monkeypatch.setattr(tables.TableSource, "load", broken)
    check_the_command_line_tells_nothing(capsys, tmp_path, declared_plan)


@pytest.mark.parametrize("mutant", ["defect shown", "warning printed"])
def test_a_command_line_that_shows_a_cell_is_caught(lab, monkeypatch, capsys, declared_plan, tmp_path, mutant):
    if mutant == "defect shown":
        monkeypatch.setattr(tables.TableSource, "load", broken)
        shown = "f'a defect of doublure: {type(error).__name__} at {place}'"
        lab.plant(terminal, "_unforeseen", (shown, shown.replace("type(error).__name__", "error")))
    else:
        check = "source.check(plan.schema)"
        lab.plant(fitting, "fit", (check, f"{check}\n        print(Path(data).read_text())"))
    with lab.caught():
        check_the_command_line_tells_nothing(capsys, tmp_path, declared_plan)
