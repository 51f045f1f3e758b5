"""Columns that name private rows beside the parent's: valid and acyclic in a sample, by cells and never by identity."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from linked_tables import TEXT, UNITS, made_up

import doublure as db
from doublure.attack.neighbours import _of_related
from doublure.data.relational import open_related
from doublure.data.relational.row_links import choose_rows
from doublure.errors import SchemaError
from doublure.evaluate.real_data import keep_unlisted
from doublure.measures.relational import evaluate_related
from doublure.methods.statistics.tables import work
from doublure.releasing.checking import check_contents
from doublure.releasing.reading import ContentMismatch
from doublure.releasing.verifying import verify
from doublure.schema.relational import RelationalSchema


@pytest.fixture(scope="module")
def syn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    schema = db.Schema.parse(TEXT)
    plan = db.plan(schema, epsilon=50.0, delta=1e-5, accountant="rdp", components=6, starts=1, fit_steps=30)
    ledger = db.Ledger.create(folder / "ledger", dataset="employees", epsilon=50.0, delta=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "DRAWN", 2000)
        return db.fit(made_up(), plan, ledger=ledger, out=folder / "run", seed=1)


def test_a_row_names_one_that_is_there_with_the_cells_that_it_is_to_have(syn):
    made = syn.sample(UNITS, seed=1)
    employees, posts = made["employees"].set_index("nr"), made["posts"].set_index("post")
    named = employees.boss.dropna()
    assert named.isin(employees.index).all()
    as_told = employees.level.loc[named].to_numpy() == employees.boss_level.loc[named.index].to_numpy()
    assert as_told.mean() > 0.9
    answered = posts.answers.dropna()
    assert (posts.author.loc[answered].to_numpy() == posts.author.loc[answered.index].to_numpy()).all()
    assert posts.likes.dropna().isin(employees.index).all()
    for cells, real in ((employees.boss, "employees"), (posts.likes, "posts")):
        assert 0 < cells.isna().mean() < 1
        assert abs(cells.isna().mean() - made_up()[real][cells.name].isna().mean()) < 0.15  # ε = 50: one row of noise


def test_no_chain_of_rows_comes_back(syn):
    made = syn.sample(UNITS, seed=2)
    for table, key, own in (("employees", "nr", "boss"), ("posts", "post", "answers")):
        above = made[table].set_index(key)[own]
        known = set(above.index[above.isna()])
        for _ in range(len(above)):
            more = set(above.index[above.isin(list(known))]) - known
            known |= more
            if not more:
                break
        assert len(known) == len(above)
    posts = made["posts"].set_index("post")
    answered = posts.answers.dropna()
    assert (answered < answered.index).all()  # in the order of days


def test_chunks_name_the_rows_that_the_whole_names(syn):
    chunks, done, frames = list(syn.sample_chunks(60, seed=3, chunk_rows=25)), {"employees": 0, "posts": 0}, []
    for chunk in chunks:
        frames.append(chunk.handed_out(done))
        done = {name: done[name] + len(frame) for name, frame in frames[-1].items()}
    assert len(frames) == 3
    for name, frame in chunks[0].joined(chunks).handed_out().items():
        if name in done:
            pd.testing.assert_frame_equal(frame, pd.concat([each[name] for each in frames], ignore_index=True))


def test_a_bundle_is_verified_and_says_what_names_what(syn, tmp_path):
    db.release(syn, tmp_path / "b", n=50, seed=1)
    assert verify(tmp_path / "b")["executed"]
    package = json.loads((tmp_path / "b" / "datapackage.json").read_text(encoding="utf-8"))
    csvs = [each for each in package["resources"] if each["path"].endswith(".csv")]
    own = {each["path"]: each["schema"].get("foreignKeys") for each in csvs if "schema" in each}
    assert own["employees.csv"] == [{"fields": ["boss"], "reference": {"resource": "", "fields": ["nr"]}}]
    assert {"fields": ["likes"], "reference": {"resource": "employees.csv", "fields": ["nr"]}} in own["posts.csv"]
    card = json.loads((tmp_path / "b" / "card.json").read_text(encoding="utf-8"))
    assert "employees.boss names another employee" in json.dumps(card)


@pytest.mark.parametrize("forged", [0, 51, 99])
def test_a_row_that_is_not_there_is_found(syn, tmp_path, forged):
    db.release(syn, tmp_path / "b", n=50, seed=1)
    for name in ("employees.csv", "employees.parquet"):
        path = tmp_path / "b" / name
        frame = pd.read_csv(path, dtype="str") if name.endswith("csv") else pd.read_parquet(path)
        frame.loc[frame.boss.notna().idxmax(), "boss"] = f"E-{forged:04}"
        frame.to_csv(path, index=False) if name.endswith("csv") else rewritten(frame, path)
    card = json.loads((tmp_path / "b" / "card.json").read_text(encoding="utf-8"))
    with pytest.raises(ContentMismatch, match="names a row that is not there"):
        check_contents(tmp_path / "b", card, {})


def rewritten(frame, path):
    """Write a Parquet file again with what it says of itself."""
    said = pq.read_schema(path).metadata
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table.replace_schema_metadata(said), path)


def loaded(data=None, text=TEXT):
    return open_related(made_up(40) if data is None else data).load(db.Schema.parse(text)).content


def test_what_is_handed_out_is_read_back():
    """Private rows count with what they name: so do the rows that are chosen in their place."""
    given = loaded()
    again = loaded(given.handed_out())
    for name, own in (("employees", ["boss"]), ("posts", ["answers", "likes"])):
        assert (again.frames[name][own] == given.frames[name][own]).all(axis=None)
    answered = (given.frames["posts"].answers == "true").to_numpy()
    topics = [data.frames["posts"]["topic of answers"][answered].tolist() for data in (given, again)]
    assert topics[0] == topics[1] == given.frames["posts"].topic[answered].tolist()
    some = given.take(np.array([7, 3, 7]))
    boss = some.handed_out()["employees"].boss
    assert boss.dropna().isin(["E-0001", "E-0002", "E-0003"]).all()


def test_the_form_of_a_column_says_nothing():
    """A column of whole numbers is one of floats as soon as any row names none."""
    as_floats = {
        name: frame.astype(dict.fromkeys(frame.columns.intersection(["boss", "answers", "likes"]), "float64"))
        for name, frame in made_up(40).items()
    }
    one, other = loaded(), loaded(as_floats)
    for name, frame in one.frames.items():
        pd.testing.assert_frame_equal(frame, other.frames[name])


def choose(match, levels, told, *, acyclic=False, seed=0):
    """Return which employee each one names."""
    schema = RelationalSchema.of(
        db.Schema.parse(
            TEXT.replace("match: {boss_level: level}", f"match: {match}").replace(
                "acyclic: true}}\n    columns:\n      nr",
                f"acyclic: {str(acyclic).lower()}}}}}\n    columns:\n      nr",
            )
        )
    )
    frames = {
        "employees": pd.DataFrame(
            {"boss": [each is not None for each in told], "level": levels, "boss_level": pd.array(told, dtype="Int64")}
        ),
        "posts": pd.DataFrame({"answers": [], "likes": [], "topic": [], "topic of answers": []}),
    }
    units = {"employees": np.arange(len(levels)), "posts": np.zeros(0, dtype=np.int64)}
    return choose_rows(frames, units, schema, 0, np.random.default_rng(seed))["employees"]["boss"].tolist()


def test_the_last_column_gives_way_where_no_row_has_all():
    assert choose("{boss_level: level}", [1, 2, 3], [2, 3, None]) == [1, 2, -1]
    assert set(choose("{boss_level: level}", [1, 2, 3], [4, 4, 4])) <= {0, 1, 2}  # of no such level: any other
    for seed in range(20):
        found = choose("{boss_level: level}", [1, 1, 2], [1, 1, 2], seed=seed)
        assert found[:2] == [1, 0]
        assert found[2] in (0, 1)  # nobody else is on level 2, and no row names itself
    assert choose("{}", [1], [1]) == [-1]


def test_rows_that_name_none_come_first_where_there_is_no_circle():
    for seed in range(20):
        found = choose("{}", [1, 2, 3, 1], [2, 3, None, 2], acyclic=True, seed=seed)
        assert found[0] == 2
        assert found[1] in (0, 2)
        assert found[3] in (0, 1, 2)
        assert found[2] == -1
    assert choose("{}", [1, 2], [2, 2], acyclic=True) == [-1, 0]


def test_an_evaluation_judges_who_is_named(syn):
    """Whether a row names one, and what is looked up of it: in its table, beside its parent, and from row to row."""
    schema = RelationalSchema.of(db.Schema.parse(TEXT).resolve({}))
    other = {name: frame.copy() for name, frame in made_up().items()}
    posts = other["posts"]
    topic = posts.set_index("post").topic
    away = posts.answers.map(topic).to_numpy() == posts.topic.to_numpy()
    posts.loc[away, "answers"] = None  # no answer stays on its topic
    as_it_is, changed = (evaluate_related(schema, each, made_up(), made_up(), seed=1) for each in (made_up(), other))

    def topics(found):
        pairs = found.tables["posts"].marginals.relations.pairs
        return next(each for each in pairs if {*each.names} == {"topic", "topic of answers"})

    assert topics(as_it_is).real == topics(as_it_is).synthetic > 0.9
    assert topics(changed).lost
    of_parent = {pair.names for pair in changed.relations[0].parent_child}
    assert {("level", "answers"), ("level", "likes"), ("boss", "topic")} <= of_parent
    assert not topics(evaluate_related(schema, syn.sample(UNITS, seed=1), made_up(), made_up(), seed=1)).lost


def test_what_is_looked_up_is_no_column_of_reports():
    schema = db.Schema.parse(TEXT.replace("values: [a, b]", "values: [a], other: c")).resolve({})
    content = open_related(made_up(40)).load(schema).content
    again = keep_unlisted(schema, made_up(40), content)
    assert set(again.frames["posts"].topic) == {"a", "b"}
    rows = np.zeros(1, dtype=np.int64)
    pictures = _of_related(SimpleNamespace(schema=schema, released=content), content, rows, rows)
    assert [each.header for each in pictures] == [("", "level", "boss_level"), ("", "day", "topic")]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("match: {boss_level: level}", "match: [level]", "boss names another employee, whose cells do not count"),
        ("{boss_level: level}", "{boss_level: topic}", "matches topic, which is no column of employees"),
        ("{boss_level: level}", "{nr: level}", "matches nr, which is no column like level"),
        ("match: [topic]", "match: {topic: topic}", "names rows of its own employee; list columns of posts"),
        ("match: [topic]", "match: [topik]", "matches topik"),
        ("match: [topic]", "match: [topic, topic]", "matches a column twice"),
        ("match: [topic]", "match: topic", "posts.links: must say what a column names, as in boss: {to: employees"),
        ("{to: posts,", "{to: notes,", "linked to notes, which is no private table"),
        ("likes: {to: employees}", "likes: {to: employees, acyclic: true}", "leave acyclic out"),
        ("likes: {to: employees}", "author: {to: employees}", "author is a key, and linked"),
        ("likes: {to: employees}", "topic: {to: employees}", "topic is linked; describe it with type: id"),
        ("      topic: {", "      topic of answers: {type: boolean, missing: false}\n      topic: {", "rename the one"),
        ("    key: post\n", "", "which has no key of one column"),
        ("values: [a, b]", "values: {learn: 1.0}, other: c", "which is no column of posts with declared facts"),
        ("parent: employees", "parent: [employees, firms]", "others in links or public"),
        ("    parent: employees\n", "", "must have one root, whose rows are the units; give each other table"),
        ("tables:\n", "tables:\n  firms: {key: f, columns: {f: {type: id}, at: {type: boolean}}}\n",
         "firms and employees have no parent: .* not protected; hang it on the units, list it under public"),
        ("parent: employees", "parent: posts", "its own parent; name the table above it, and its own rows in links"),
    ],
)  # fmt: skip
def test_what_could_not_be_named_or_protected_is_refused(old, new, said):
    assert old in TEXT
    with pytest.raises(SchemaError, match=said):
        db.Schema.parse(TEXT.replace(old, new))


def test_the_page_shows_tables_that_are_read():
    page = (Path(__file__).parents[1] / "docs" / "evidence" / "relational.md").read_text(encoding="utf-8")
    (tables,) = [block for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL) if "links:" in block]
    schema = db.Schema.parse(f"doublure: 1\nkind: relational\nunit: {{name: employee}}\nunits: 9\n{tables}")
    assert schema.tables["posts"].links["answers"].match == ("topic",)


def test_schemas_without_links_are_as_before():
    schema = RelationalSchema.of(db.Schema.parse(TEXT))
    assert db.Schema.parse(schema.to_yaml()) == schema
    bare = TEXT.replace("    links: {boss: {to: employees, match: {boss_level: level}, acyclic: true}}\n", "")
    assert "links" not in db.Schema.parse(bare).to_plain()["tables"]["employees"]
