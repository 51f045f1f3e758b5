import numpy as np
import pandas as pd
import pytest

from doublure.data.tables.opening import open_table
from doublure.encode.columns import ListedEncoding, MinMaxEncoding, encoding
from doublure.errors import DataError
from doublure.measures.tables.coding import BINS, MISSING, Coder
from doublure.schema import Schema


def test_ids_and_derived_columns_stay_out(schema):
    assert "copy" not in Coder(schema=schema).names
    with_id = Schema.parse(
        "{doublure: 1, kind: table, units: 9, columns: {key: {type: id}, sex: {type: boolean, missing: false}}}"
    ).resolve({})
    assert Coder(schema=with_id).names == ("sex",)


def test_canonical_frames_and_sampled_frames_have_the_same_codes(schema, real):
    coder = Coder(schema=schema)
    canonical = open_table(real).load(schema).frame
    sampled = pd.DataFrame({name: restored(schema.columns[name], canonical[name]) for name in coder.names})
    left, right = coder.read(canonical, "a"), coder.read(sampled, "b")
    assert str(sampled["member"].dtype) == "bool"
    assert str(sampled["number"].dtype) == "int64"
    assert (left.codes == right.codes).all()


def restored(column, cells):
    """The column as decoding writes it, in the schema's own dtype."""
    encoding = ListedEncoding(column=column) if column.listed else MinMaxEncoding(column=column)
    return encoding.restore(encoding.compact(cells), None)


def test_reading_twice_changes_nothing(schema, real):
    coder = Coder(schema=schema)
    canonical = open_table(real).load(schema).frame
    once, raw = coder.read(canonical, "a"), coder.read(real, "b")
    assert (once.codes == raw.codes).all()
    assert all(np.array_equal(once.numbers[name], raw.numbers[name], equal_nan=True) for name in once.numbers)


def test_missing_is_a_code_of_its_own_even_where_the_schema_denies_it(schema, real):
    holed = real.assign(size=real["size"].where(np.arange(len(real)) > 4), number=real["number"].astype("float"))
    holed.loc[:4, "number"] = np.nan
    coder = Coder(schema=schema)
    coded = coder.read(holed, "table")
    for name in ("size", "number"):
        place = coder.names.index(name)
        assert (coded.codes[:5, place] == coder.sizes[place] - 1).all()
        assert (coded.codes[5:, place] < coder.sizes[place] - 1).all()
    assert coder.labels("size") == ("S", "M", "L", MISSING)


def test_moments_are_numbers_since_1970(schema, real):
    numbers = Coder(schema=schema).read(real, "table").numbers
    assert numbers["day"][0] == (real["day"][0] - pd.Timestamp(0)).days
    assert numbers["moment"][0] == (real["moment"][0] - pd.Timestamp(0)).total_seconds()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda frame: frame.drop(columns="size"), "size: is not a column"),
        (lambda frame: frame.assign(size="XXL"), "size: has values outside"),
        (lambda frame: frame.iloc[:0], "has no rows"),
    ],
)
def test_a_table_of_another_schema_is_refused_in_one_line(schema, real, spoil, words):
    with pytest.raises(DataError, match=words) as caught:
        Coder(schema=schema).read(spoil(real), "the synthetic table")
    assert "\n" not in str(caught.value)
    assert "XXL" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "edges"),
    [
        ("bounds: [0, 3], zero_inflated: true", [1, 2, 3, 4]),
        ("bounds: [-3, 0], spikes: [0]", [-3, -2, -1, 0]),
        ("bounds: [0, 3]", [0, 1, 2, 3, 4]),
        ("bounds: [0, 64], zero_inflated: true", [*range(1, 66, 2)]),
    ],
)
def test_bins_begin_beside_zero_where_zero_is_apart(facts, edges):
    """As the encoders' bins do: the first held [0, 2) where zeros have a code of their own, and held ones alone."""
    schema = Schema.parse(
        f"{{doublure: 1, kind: table, units: 9, columns: {{a: {{type: integer, {facts}, missing: false}}}}}}"
    ).resolve({})
    coder = Coder(schema=schema)
    assert coder.edges("a").tolist() == edges
    assert encoding(schema.columns["a"], "bins", BINS).edges.tolist() == edges
    codes = coder.read(pd.DataFrame({"a": [0]}), "table").codes
    assert codes.tolist() == [[len(edges) - 1 if "0]" in facts or "zero" in facts else 0]]
