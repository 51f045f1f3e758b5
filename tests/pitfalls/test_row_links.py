"""Rules 1, 2, 9 and 16 for columns that name private rows beside the parent's: no unit's cells depend on another unit.

Employees name a boss, who may be missing, and posts name posts: of their author, of others, of nobody. Keys of posts
repeat within an author and between authors. A neighbour lacks one employee with all posts, and nobody else changes.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from linked_tables import POSTS, TEXT

from doublure import planning as plans
from doublure.data.relational import open_related, opening, row_links
from doublure.encode.relational import RelationalEncoder
from doublure.schema import ResolvedSchema, Schema

UNITS = 16
PUBLIC = TEXT.replace("units: 400", f"units: {UNITS}")
FEW = {"components": 2, "fit_steps": 3, "groups": 2, "starts": 1}


def base(seed=4):
    """Return employees, one of them twice, and posts whose keys repeat, that name anything."""
    draw = np.random.default_rng(seed)
    names = [f"e{n}" for n in range(UNITS)]

    def somebody():
        return draw.choice([*names, "nobody", None])

    employees = pd.DataFrame(
        {
            "nr": [*names, "e3"],
            "boss": [somebody() for _ in range(UNITS + 1)],
            "level": draw.integers(1, 5, UNITS + 1),
            "boss_level": draw.choice([1, 2, 3, 4, None], UNITS + 1),
        }
    )
    rows = [
        (f"p{draw.integers(0, 30)}", author, int(draw.integers(0, 101)), draw.choice(["a", "b"]),
         draw.choice([f"p{draw.integers(0, 30)}", None], p=[0.9, 0.1]), somebody())
        for author in [*names, *names, *names, "nobody", None]
        for _ in range(draw.integers(1, 4))
    ]  # fmt: skip
    draw.shuffle(rows)
    return {
        "employees": employees,
        "posts": pd.DataFrame(rows, columns=["post", "author", "day", "topic", "answers", "likes"]),
    }


def without(data, nr):
    """Return the neighbour that lacks an employee: rows that name one who is gone stay as they are."""
    return {name: data[name][data[name][own] != nr].reset_index(drop=True)
            for name, own in (("employees", "nr"), ("posts", "author"))}  # fmt: skip


def shown(data):
    """Return each unit's numbers as it is counted, by its mark."""
    schema = Schema.parse(PUBLIC)
    found = open_related(data).load(schema, at_least=0)
    compact = RelationalEncoder(ResolvedSchema.of(schema.resolve({}))).compact(found.content)
    return dict(zip(found.content.marks.tolist(), map(tuple, compact.tolist()), strict=True))


def check_a_unit_shows_the_same_whoever_else_there_is():
    whole = base()
    everybody = shown(whole)
    assert len(everybody) == UNITS
    for n in range(UNITS):
        fewer = shown(without(whole, f"e{n}"))
        assert len(fewer) == UNITS - 1
        assert fewer.items() <= everybody.items()


def test_a_unit_shows_the_same_whoever_else_there_is():
    check_a_unit_shows_the_same_whoever_else_there_is()


def test_what_is_looked_up_is_the_units_own():
    """By hand: the first row of the same author, among those that are kept, has a key."""
    data = base()
    content = open_related(data).load(Schema.parse(PUBLIC), at_least=0).content
    posts = data["posts"][data["posts"].author.isin(data["employees"].nr)]
    posts = posts.sort_values("day", kind="stable").groupby("author", sort=False).head(POSTS)
    found, looked_up = content.frames["posts"], 0
    for unit, author in enumerate(data["employees"].nr[:UNITS]):
        own = posts[posts.author == author]
        rows = found[content.parents["posts"] == unit]
        for (_, row), (_, counted) in zip(own.iterrows(), rows.iterrows(), strict=True):
            named = own[own.post == row.answers] if pd.notna(row.answers) else own[:0]
            assert (counted.answers == "true") == (len(named) > 0)
            assert (counted.likes == "true") == pd.notna(row.likes)
            if len(named):
                assert counted["topic of answers"] == named.topic.iloc[0]
                looked_up += 1
            else:
                assert pd.isna(counted["topic of answers"])
    assert looked_up > 3


KEYS, ASKED = "[units, keys.to_numpy()]", "[unit, label.to_numpy()]"


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (row_links, "look_up", [("label.notna()", "label.isin(keys[schema.root])")]),
        (row_links, "_rows_of_unit", [(KEYS, "[units * 0, keys.to_numpy()]"), (ASKED, "[unit * 0, label.to_numpy()]")]),
        (row_links, "_rows_of_unit", [("np.append(first, -1)[place]", "np.append(first[::-1], -1)[place]")]),
        (row_links, "look_up", [("numbers[places]", "numbers[places - 1]")]),
        (opening.RelatedSource, "load", [("each.iloc[link.kept]", "each.iloc[link.kept[::-1]]")]),
    ],
    ids=["a boss who is there", "posts of anybody", "another's post", "the cells of the row before", "another's label"],
)  # fmt: skip
def test_units_that_meet_are_caught(lab, owner, name, edits):
    lab.plant(owner, name, *edits)
    with lab.caught():
        check_a_unit_shows_the_same_whoever_else_there_is()


@cache
def planned():
    return plans.plan(Schema.parse(PUBLIC), method="statistics", epsilon=0.1, delta=1e-3, accountant="rdp", **FEW)


def counted(lab, data, like=None):
    return lab.counted(open_related(data), planned(), like=like)


def check_a_unit_moves_no_more_than_was_paid_for(lab):
    whole = base()
    kept, most = counted(lab, whole), 0.0
    for nr in ("e3", "e7"):
        other = counted(lab, without(whole, nr), like=kept)
        lab.assert_same_public(kept, other)
        assert lab.price(kept, other) <= (1 + 1e-9) / kept.public["noise_multiplier"]
        most = max(most, *(float((a - b).abs().max()) for a, b in zip(kept.queries, other.queries, strict=True)))
    assert most == 1


def test_a_unit_moves_no_more_than_was_paid_for(lab):
    check_a_unit_moves_no_more_than_was_paid_for(lab)


def test_a_boss_whose_people_count_otherwise_is_caught(lab):
    lab.plant(row_links, "look_up", ("label.notna()", "label.isin(keys[schema.root])"))
    with lab.caught():
        check_a_unit_moves_no_more_than_was_paid_for(lab)
