"""What a card says of its release is true: its first rows are those of the file, its margins are those of the noise."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import GateFailed
from doublure.releasing.bundle import verify
from doublure.releasing.card import card_page
from doublure.releasing.generator import publish
from doublure.releasing.tables import count_margins, middle

SCHEMA = """
doublure: 1
kind: table
release: {licence: ODbL, contact: steward@example.org}
unit: {name: person}
units: 2000
columns:
  town: {type: category, values: [north, south, east, west], missing: false}
  job: {type: category, values: [a, b, c, d, e, f, g, h], missing: false}
  sex: {type: category, values: [f, m], missing: false}
"""
SAID = {"description": "People of a town.", "licence": "CC0", "citation": "Nobody.", "links": ["https://example.org"]}


@pytest.fixture(scope="module")
def private():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(8))
    return pd.DataFrame(
        {
            "town": rng.choice(["north", "south", "east", "west"], 2000, p=[0.4, 0.3, 0.2, 0.1]),
            "job": rng.choice(list("abcdefgh"), 2000, p=shares),
            "sex": rng.choice(["f", "m"], 2000),
        }
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory, private):
    folder = tmp_path_factory.mktemp("card")
    schema = db.Schema.parse(SCHEMA)
    planned = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", components=8, starts=1)
    ledger = db.Ledger.create(folder / "l", dataset="people", epsilon=5, delta=1e-3)
    syn = db.fit(private, planned, ledger=ledger, out=folder / "run", seed=1)
    db.release(syn, folder / "bundle", n=300, seed=3, **SAID)
    return folder, syn


def test_the_first_rows_are_those_of_the_file(world, parse_card):
    folder, _ = world
    text = parse_card((folder / "bundle" / "card.html").read_text())
    rows = pd.read_csv(folder / "bundle" / "data.csv", dtype=str).head(3)
    card = json.loads((folder / "bundle" / "card.json").read_text())
    for name in rows:
        assert f"{name}category ± {card['margins']['columns'][name]} {' '.join(rows[name])} " in text


def test_the_steward_s_words_are_on_both_cards_and_in_the_ledger(world, parse_card):
    folder, _ = world
    card = json.loads((folder / "bundle" / "card.json").read_text())
    assert {key: card[key] for key in SAID} == SAID
    text = parse_card((folder / "bundle" / "card.html").read_text())
    assert all(part in text for part in ("People of a town.", "CC0", "Nobody.", "https://example.org"))
    assert verify(folder / "bundle", ledger=folder / "l")["ledger"] == card["ledger"]
    text = (folder / "bundle" / "card.json").read_text()
    (folder / "bundle" / "card.json").write_text(json.dumps({**card, "licence": "none"}))
    with pytest.raises(GateFailed):
        verify(folder / "bundle", ledger=folder / "l")
    (folder / "bundle" / "card.json").write_text(text)


def test_margins_are_of_the_noise_that_was_bought(world):
    folder, syn = world
    card = json.loads((folder / "bundle" / "card.json").read_text())
    errors = {table.columns[0]: table.standard_error for table in syn.tables if len(table.columns) == 1}
    assert set(errors) == {"town", "job", "sex"}
    expected = {name: math.ceil(1.96 * error) for name, error in errors.items()}
    assert card["margins"] == {"confidence": 0.95, "units": 2000, "columns": expected}
    scales = [access.event.scale for access in syn.plan.touches if "each column in groups" in access.purpose]
    assert max(errors.values()) <= max(scales) + 1


def test_noisy_counts_and_synthetic_ones_lie_within_the_margin(world, private):
    """In 19 of 20 cases by the noise; the generator's own error comes on top, so that 9 in 10 are asked for."""
    _, syn = world
    drawn = syn.sample(2000, seed=5)
    margins = count_margins(syn.schema, syn.tables)["columns"]
    near = []
    for name, margin in margins.items():
        real, synthetic = private[name].value_counts(), drawn[name].value_counts()
        near += [abs(real[value] - synthetic.get(value, 0)) <= margin for value in real.index]
    assert np.mean(near) >= 0.8
    assert max(margins.values()) < 400  # a margin that holds everything says nothing


def test_the_middle_margin_is_the_headline(world, parse_card):
    folder, _ = world
    card = json.loads((folder / "bundle" / "card.json").read_text())
    text = parse_card(card_page(card))
    assert (
        f"By its noise alone a count is off by about ± {middle(card['margins']['columns'].values()):,} people." in text
    )


def test_counts_of_the_same_rows_are_averaged_and_those_of_other_rows_added_up(world):
    _, syn = world
    (one,) = (table for table in syn.tables if table.columns == ("sex",))
    joined = replace(
        one, cells=((" | ".join(one.cells[0]),),), counts=one.counts.sum(keepdims=True), standard_error=1.0
    )
    visits = SimpleNamespace(
        columns=syn.schema.columns, only_columns=True, one_record=True, public_units=syn.schema.public_units
    )
    for schema, factor in ((syn.schema, 1 / math.sqrt(2)), (visits, math.sqrt(2))):
        twice = count_margins(schema, [one, one])["columns"]["sex"]
        assert twice == math.ceil(1.96 * factor * one.standard_error)
    assert count_margins(syn.schema, [joined, one]) == count_margins(syn.schema, [one])
    assert count_margins(syn.schema, []) is None


@pytest.fixture
def parse_card():
    from tests.report.conftest import Page

    return lambda text: " ".join(Page(text).text.split())


def test_a_schema_says_what_the_release_does_not(world):
    """From the file through plan and run to the card; what is said with a release comes first."""
    folder, syn = world
    card = json.loads((folder / "bundle" / "card.json").read_text())
    assert (card["licence"], card["contact"]) == ("CC0", "steward@example.org")
    assert db.load(folder / "run").schema.release == syn.schema.release
    told = publish(syn, folder / "gen").card
    assert (told["licence"], told["contact"], told["description"]) == ("ODbL", "steward@example.org", None)


def test_a_card_says_which_rows_figures_are_about():
    several = SCHEMA.replace("unit: {name: person}", "unit: {name: household, id: nr, max_records: 8}")
    said = "Figures are about the rows that were used: of each household at most 8, in a file the first ones."
    assert db.Schema.parse(several + "  nr: {type: id}\n").limits == (said,)
    assert db.Schema.parse(SCHEMA).limits == ()
