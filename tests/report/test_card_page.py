import pytest

from doublure.guarantee import CHOICE_OF_KIND
from doublure.releasing.card import card_page

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
        "abab",
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
    }
    text = text_of(with_guarantee(card, **facts), parse)
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
    assert not [value for _, name, value in page.attributes if name in ("src", "href")]
