import pytest

from doublure.errors import SettingError
from doublure.guarantee import CHOICE_OF_KIND
from doublure.releasing.card import card_page, describe_precision
from doublure.releasing.declared import ReleaseDetails
from doublure.releasing.examples import ExampleRecords
from doublure.schema.release_words import ReleaseWords

CHOSEN = "Which claim was made depends on the private data and is not accounted for."
REFUSAL = "No privacy guarantee. Do not publish."


def with_guarantee(card, **facts):
    return {**card, "guarantee": {**dict.fromkeys(card["guarantee"]), **facts}}


@pytest.fixture
def refused(card):
    return with_guarantee(card, kind="none", epsilon=1.0, unit="person", sentence=REFUSAL) | {"touches": []}


def text_of(card, parse):
    return " ".join(parse(card_page(card)).text.split())


def test_a_card_shows_what_it_holds(card, parse):
    text = text_of(card, parse)
    for part in (
        "Adult: synthetic rows",
        "Synthetic data",
        card["guarantee"]["sentence"],
        "Review by 2027-01-02",
        "steward@example.org",
        "gaussian: noise multiplier 1.7, steps 1,200",
        "the declared schema is public",
        "timing side channels",
        "Three-way relations are weak.",
        "data.parquet",
        "30,000",
        "1212",
        "a codebook",
    ):
        assert part in text


def test_plain_words_give_the_factor(card, parse):
    assert "by at most a factor of 2.72 (e^ε for ε = 1), plus δ = 1e-05" in text_of(card, parse)


def test_a_huge_epsilon_is_called_what_it_is(card, parse):
    card = with_guarantee(card, kind="dp", epsilon=1e6, delta=0.0, unit="person")
    assert "more than a million, which protects hardly anybody" in text_of(card, parse)
    assert "plus δ" not in text_of(card, parse)


def test_without_a_guarantee_the_page_refuses_loudly(refused, parse):
    page = parse(card_page(refused))
    assert page.text.count(REFUSAL) >= 4
    assert ("section", "role", "alert") in page.attributes
    assert any("refused" in value for tag, name, value in page.attributes if (tag, name) == ("body", "class"))
    assert f'content: "{REFUSAL}"' in card_page(refused)
    assert "Everything: the method read" in page.text


def test_a_card_without_guarantee_is_refused_too(parse):
    assert REFUSAL in text_of({}, parse)


def test_a_dp_card_does_not_refuse(card, parse):
    assert "Do not publish" not in card_page(card)


@pytest.mark.parametrize("kind", ["none", "empirical"])
def test_no_epsilon_is_printed_where_there_is_none(card, parse, kind):
    facts = {"kind": kind, "epsilon": 4.25, "delta": 0.0625, "mu": 0.3, "gamma": 0.05, "unit": "person"}
    text = text_of(with_guarantee(card, **facts) | {"touches": []}, parse)
    assert "4.25" not in text
    assert "0.0625" not in text
    assert "unit of privacy" not in text
    if kind == "empirical":
        assert "expected privacy loss (not ε)" in text
        assert "does not bound the risk of any individual person" in text
        assert "γ, chance that the loss of one more record is above μ 0.05" in text


def test_a_card_says_whether_anything_was_measured(card, parse):
    facts = {"kind": "empirical", "epsilon": None, "delta": None, "unit": "person"}
    assert "Nothing has been measured yet" in text_of(with_guarantee(card, **facts), parse)
    stated = text_of(with_guarantee(card, **facts, mu=0.3, gamma=0.05), parse)
    assert "Nothing has been measured" not in stated
    assert "computed from real records without noise" in stated


def test_a_bayesian_card_names_its_worst_case(card, parse):
    facts = {
        "kind": "bayesian-dp",
        "epsilon": 2.0,
        "delta": 1e-5,
        "epsilon_mu": 0.5,
        "delta_mu": 1e-10,
        "gamma": 1e-11,
        "unit": "meter",
        "excluded": [CHOICE_OF_KIND],
    }
    text = text_of(with_guarantee(card, **facts), parse)
    assert CHOSEN not in text_of(with_guarantee(card, **facts | {"excluded": []}), parse)
    assert "ε, worst case 2" in text
    assert "ε_μ (Bayesian, estimated) ≤ 0.5" in text
    assert "γ, chance that the estimate of ε_μ is too low, over all orders (union bound) 1e-11" in text
    assert "only the worst case counts: a factor of 7.39" in text
    assert CHOSEN in text


def test_a_worst_case_that_is_left_says_that_it_was_chosen(card, parse):
    left = {"kind": "dp", "epsilon": 1.0, "delta": 1e-5, "excluded": ["internal reports", CHOICE_OF_KIND]}
    assert CHOSEN not in text_of(card, parse)
    assert CHOSEN in text_of(with_guarantee(card, **left), parse)


def test_cards_use_no_word_that_promises_too_much(card, refused, parse):
    kinds = [with_guarantee(card, kind=kind, epsilon=1.0, unit="person") for kind in ("bayesian-dp", "empirical")]
    for text in (text_of(entry, parse).lower() for entry in (card, refused, *kinds)):
        assert "privacy card" in text
        assert "anonym" not in text
        assert "safe" not in text


def test_hostile_fields_stay_text(card, parse):
    bad = "<img src=x onerror=alert(1)>\u202e"
    hostile = {
        **card,
        "title": bad,
        "watermark": bad,
        "contact": bad,
        "limits": [bad],
        "public_sources": [{"name": bad}],
        "files": [{"path": bad, "sha256": bad, "rows": 1}],
        "touches": [{"purpose": bad, "event": {bad: bad}, "epsilon": 1.0, "delta": None}],
        "guarantee": {**card["guarantee"], "sentence": bad, "unit": bad},
        "ledger": {"dataset": bad},
    }
    html = card_page(hostile)
    page = parse(html)
    assert "img" not in page.tags
    assert "\u202e" not in html
    assert page.text.count("<img src=x") >= 9


def test_the_card_loads_nothing(card, parse):
    page = parse(card_page(card))
    assert page.attribute("meta", "content")[0].startswith(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    )
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not page.attribute("img", "src")
    kinds = {value.split(":")[0] if ":" in value else value[0] for _, name, value in page.attributes if name == "href"}
    assert kinds == {"#", ".", "mailto"}  # sections, the files beside it, and whom to ask
    assert {tag for tag, name, _ in page.attributes if name == "href"} == {"a"}


MARGINS = {"confidence": 0.95, "units": 60_000, "columns": {"age": 66, "job": 120, "sex": 173}}
COLUMNS = {
    "columns": [
        {"name": "age", "type": "integer", "bounds": [0, 99], "missing": True},
        {"name": "job", "type": "category", "values": [f"job {number}" for number in range(9)]},
        {"name": "sex", "type": "category", "values": ["f", "m"]},
    ]
}


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1.0, 1e-5, "73.2 times in 100"),
        (0.1, 0.0, "52.5 times in 100"),
        (6.0, 1e-5, "99.8 times in 100"),
        (30.0, 0.0, "up to 100 times in 100"),
    ],
)
def test_the_guarantee_is_said_as_a_bet(card, parse, epsilon, delta, said):
    """(e^ε + δ) / (e^ε + 1), rounded up."""
    text = text_of(with_guarantee(card, kind="dp", epsilon=epsilon, delta=delta, unit="person"), parse)
    assert said in text
    assert ("protects hardly anybody" in text) == (epsilon == 30.0)


def test_nobody_is_offered_a_bet_without_a_guarantee(card, refused, parse):
    for entry in (refused, with_guarantee(card, kind="empirical", unit="person")):
        text = text_of(entry, parse)
        assert "Suppose that a coin" not in text
        assert "nothing limits what these rows tell of you" in text
        assert "How precise is it?" not in text


def test_columns_first_rows_and_margins_stand_in_one_table(card, parse):
    cells = {"age": ("41", "(missing)", "7"), "job": ("job 1", "job 2", "<b>"), "sex": ("f", "m", "f")}
    examples = ExampleRecords(rows={"": cells})
    page = parse(card_page({**card, "margins": MARGINS}, "rows", COLUMNS, examples))
    text = " ".join(page.text.split())
    for part in (
        "ageinteger ± 66 41 (missing) 7 0 to 99; may be missing",
        "job 5 and 3 more",
        "sexcategory ± 173 f m f f, m",
    ):
        assert part in text
    assert "By its noise alone a count is off by about ± 120 people." in text
    assert "from ± 66 (age) to ± 173 (sex); ± 120 is the middle one" in text
    assert "of 60,000 private people, and this release of 30,000: multiply a count of its rows by 2 first" in text
    assert "b" not in page.tags[page.tags.index("table") : page.tags.index("table") + 40]


def test_channels_of_the_first_series_say_between_which_values_they_lie(card, parse):
    channel = {"name": "litres", "type": "real", "bounds": [-40.0, 1000.5], "missing": True}
    columns = {"columns": [channel, {"name": "month", "type": "ordinal", "values": [1, 2]}]}
    series = ({"litres": (3.0, 88.125, float("nan"))}, {"litres": (float("nan"),)}, {"litres": (0.0, 23456.7)})
    page = parse(
        card_page(card, "series", columns, ExampleRecords(rows={"": {"month": ("1", "2", "2")}}, series=series))
    )
    text = " ".join(page.text.split())
    assert "litresreal 3 to 88.12 missing throughout 0 to 23,457 -40 to 1000.5; may be missing" in text
    assert "monthordinal 1 2 2 1, 2" in text


def test_rows_are_no_people_where_one_may_have_several(card, parse):
    several = {**card["guarantee"], "max_records": 4}
    text = text_of({**card, "margins": MARGINS, "guarantee": several}, parse)
    assert "± 120 rows." in text
    assert "multiply a count" not in text


def test_without_bought_counts_no_margin_is_stated(card, parse):
    text = text_of(card, parse)
    assert "No margin of a count follows from what this run bought" in text
    assert "off by" not in text


def test_counts_that_the_plan_pays_for_have_the_margin_of_their_noise(card, parse):
    """The card of images whose plan counted pairs said that no margin follows."""
    event = {"type": "discrete-gaussian", "scale": 15.0, "tables": 3, "records": 1}
    text = text_of({**card, "touches": [{"purpose": "count pairs", "event": event}]}, parse)
    assert "Noise of “count pairs”: ± 30 rows in each cell, in 19 of 20 cases." in text
    assert "No margin" not in text


def test_votes_are_no_count_of_records():
    """Of votes on labels, which a label moves by two, it was said that ± 20 images are in each cell."""
    votes = {"purpose": "votes", "event": {"type": "discrete-gaussian", "scale": 10.0, "tables": 2, "records": 1}}
    said = describe_precision({"guarantee": {"kind": "empirical"}, "touches": [votes]}, "images")
    assert "No margin of a count follows" in " ".join(said["lines"])
    assert "±" not in " ".join(said["lines"])


def test_what_the_steward_declares_is_shown_and_nothing_else_is(card, parse):
    assert "none is declared: ask before you use" in text_of(card, parse)
    said = {"description": "One row a person.", "licence": "CC BY 4.0", "citation": "Doe (2026)."}
    links = ["https://example.org/a", "javascript:alert(1)"]
    page = parse(card_page({**card, **said, "links": links}))
    text = " ".join(page.text.split())
    assert all(part in text for part in said.values())
    addresses = page.attribute("a", "href")
    assert "https://example.org/a" in addresses
    assert "mailto:steward@example.org" in addresses
    assert not [address for address in addresses if "javascript" in address]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"licence": ""}, "licence"),
        ({"citation": "x" * 3000}, "citation"),
        ({"links": ["example.org"]}, "links"),
        ({"links": ["javascript:alert(1)"]}, "links"),
        ({"links": ["https://"]}, "links"),
        ({"links": "https://example.org"}, "links"),
    ],
)
def test_words_that_are_none_are_refused(said, field):
    with pytest.raises(SettingError) as caught:
        ReleaseDetails(**said)
    assert caught.value.field == field
    assert caught.value.remedy


def test_what_a_schema_declares_holds_where_nothing_else_is_said():
    said = ReleaseWords(licence="CC0", contact="a@example.org", links=("https://example.org/a",))
    assert ReleaseDetails().over(said) == ReleaseDetails(
        licence="CC0", contact="a@example.org", links=("https://example.org/a",)
    )
    own = ReleaseDetails(licence="CC BY 4.0", links=["https://example.org/b"], title="Towns")
    assert own.over(said) == ReleaseDetails(
        licence="CC BY 4.0", links=["https://example.org/b"], title="Towns", contact="a@example.org"
    )
    assert own.over(None) is own


def test_files_are_linked_and_nothing_runs(card, parse):
    files = [{"path": "javascript:alert(1)", "sha256": "1", "rows": 1}, {"path": "a b.csv", "sha256": "1", "rows": 1}]
    addresses = parse(card_page({**card, "files": files})).attribute("a", "href")
    assert "./javascript%3Aalert%281%29" in addresses
    assert "./a%20b.csv" in addresses


def test_a_column_says_what_it_means_and_what_it_may_hold(card, parse):
    columns = [
        {"name": "PAY_AMT1.in_NT", "type": "integer", "bounds": [-400_000, 2_000_000], "description": "paid in June"},
        {"name": "year", "type": "integer", "bounds": [1990, 2020], "description": "<b>of birth</b>"},
        {"name": "silent", "type": "boolean"},
    ]
    html = card_page(card, "rows", {"columns": columns}, ExampleRecords(rows={"": {"year": ("1999", "2001")}}))
    text = " ".join(parse(html).text.split())
    assert "paid in June" in text
    assert "-400,000 to 2,000,000" in text
    assert "1990 to 2020" in text
    assert "<b>of birth</b>" in text
    assert html.count('class="means"') == 2
    assert "PAY_<wbr>AMT1.<wbr>in_<wbr>NT" in html
    assert "row 1" in text
    assert 'data-label="row 2">2001' in html


def test_a_hostile_name_that_may_be_broken_stays_text(card, parse):
    name = "<img_src=x.y>"
    html = card_page(card, "rows", {"columns": [{"name": name, "type": "boolean"}]}, ExampleRecords())
    assert parse(html).attribute("img", "src") == []
    assert name in parse(html).text
