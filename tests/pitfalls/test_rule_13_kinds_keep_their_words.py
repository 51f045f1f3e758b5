"""Rule 13: empirical and Bayesian figures are never printed as ε, and no claim says more than the design's words
(rows 6 and 17; that kinds never add up is in ``test_ledger_kinds_never_add.py``)."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import doublure
from doublure import guarantee as words
from doublure.guarantee import REFUSALS, Guarantee
from doublure.planning import planner
from doublure.releasing import plain_words
from doublure.releasing.card import card_page

SOURCE = Path(doublure.__file__).parent
EPSILON = re.compile(r"(ε|epsilon)\s*(?:\(.*?\))?\s*(?:=|:|of|is)\s*[0-9<≤]|>\s*ε\s*<|\bε[_ ]?[0-9]", re.IGNORECASE)
KINDS = {
    "dp": Guarantee(
        kind="dp", epsilon=1.2, delta=1e-5, accountant="pld", sample_rate=0.1, noise_multiplier=1.0, steps=10,
    ),
    "bayesian-dp": Guarantee(
        kind="bayesian-dp", epsilon_mu=0.31, delta_mu=1e-6, epsilon=4.7, delta=1e-5, gamma=1e-9, distances=32,
        bound="Student-t", excluded=(words.CHOICE_OF_KIND,),
    ),
    "empirical": Guarantee(kind="empirical", mu=0.42, gamma=1e-5),
    "empirical, not estimated": Guarantee(kind="empirical"),
    "none": Guarantee(kind="none"),
}  # fmt: skip


def visible(page):
    """Return a page's text as a reader sees it."""
    body = re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def card(kind, **more):
    made = KINDS[kind].to_json() | more
    return card_page({"guarantee": made, "watermark": KINDS[kind].watermark, "touches": [], "limits": [], "files": []})


def check_only_dp_prints_an_epsilon():
    for kind in ("empirical", "empirical, not estimated", "none"):
        for text in (KINDS[kind].sentence, KINDS[kind].watermark, visible(card(kind)), card(kind)):
            assert not EPSILON.search(text), (kind, EPSILON.search(text))
            assert "differentially private" not in text
        # A card that was edited to hold one prints none either.
        assert not EPSILON.search(visible(card(kind, epsilon=0.5, delta=1e-5)))
    assert EPSILON.search(KINDS["dp"].sentence)
    assert "This is not ε" in KINDS["empirical"].sentence
    assert "μ=" not in KINDS["empirical, not estimated"].sentence
    assert KINDS["none"].sentence == "No privacy guarantee. Do not publish."


def test_only_dp_prints_an_epsilon():
    check_only_dp_prints_an_epsilon()


@pytest.mark.parametrize("mutant", ["sentence", "none as dp", "card"])
def test_another_epsilon_is_caught(lab, monkeypatch, mutant):
    if mutant == "sentence":
        monkeypatch.setitem(words._SENTENCES, "empirical", lambda g: f"Empirical ε={g.mu}. This is not ε")
    elif mutant == "none as dp":
        monkeypatch.setitem(words._SENTENCES, "none", lambda g: "(ε=0, δ=0)-differentially private")
    else:
        lab.plant(plain_words, "figure_names", ("key not in _NOT_SHOWN.get(kind, ())", "True"))
    with lab.caught():
        check_only_dp_prints_an_epsilon()


def check_a_run_without_a_claim_prices_nothing(small, folder):
    """Not even the facts that it learns with noise: plan, explanation, ledger and card hold no ε at all."""
    schema = doublure.Schema.parse(small.bought_text)
    plan = doublure.plan(schema, method="gan", **small.tiny)
    assert len(plan.learned) == 3
    check_unpriced([access.to_json() for access in plan.touches])
    ledger = small.book(folder)
    doublure.release(doublure.fit(small.frame(), plan, ledger=ledger), folder / "bundle", n=5)
    check_unpriced(json.loads((folder / "bundle" / "card.json").read_text())["touches"])
    (reserved,) = [record.body["plan"] for record in ledger.entries if record.kind == "reserve"]
    check_unpriced(reserved["touches"])
    page = visible((folder / "bundle" / "card.html").read_text())
    for purpose in (access.purpose for access in plan.learned):
        assert f"{purpose} – – –" in page
        assert re.search(rf"{purpose} +–\n", plan.explain())
    for text in (page, plan.explain()):
        assert not EPSILON.search(text)
        assert "epsilon 0" not in text


def check_unpriced(touches):
    assert len(touches) == 4
    for touch in touches:
        assert {key for key, value in touch.items() if value is not None} == {"purpose"}


def test_a_run_without_a_claim_prices_nothing(small, tmp_path):
    check_a_run_without_a_claim_prices_nothing(small, tmp_path)


def test_a_priced_fact_is_caught(lab, small, tmp_path):
    lab.plant(planner, "assemble", ("budget.epsilon is None", "False"))
    with lab.caught():
        check_a_run_without_a_claim_prices_nothing(small, tmp_path)


@pytest.mark.parametrize("kind", ["empirical", "none"])
def test_an_epsilon_cannot_even_be_held(kind):
    with pytest.raises(ValueError, match="never states"):
        Guarantee(kind=kind, mu=0.1, gamma=0.1, epsilon=1.0)


def check_a_bayesian_claim_says_whom_it_leaves_out():
    sentence = KINDS["bayesian-dp"].sentence
    assert "(ε_μ ≤ 0.31, δ_μ=1e-06)-Bayesian DP for records drawn from the data's own distribution" in sentence
    assert "a record from elsewhere is covered only by the worst-case (ε=4.7, δ=1e-05)" in sentence
    page = visible(card("bayesian-dp"))
    assert "ε_μ (Bayesian, estimated)" in page
    assert "ε, worst case" in page
    assert "computed from private data" in page


def test_a_bayesian_claim_says_whom_it_leaves_out():
    check_a_bayesian_claim_says_whom_it_leaves_out()


@pytest.mark.parametrize("mutant", ["estimate alone", "estimate as ε"])
def test_a_bayesian_claim_that_does_not_is_caught(lab, monkeypatch, mutant):
    if mutant == "estimate alone":
        monkeypatch.setitem(words._SENTENCES, "bayesian-dp", lambda g: words._bayesian(g).split(";")[0])
    else:
        monkeypatch.setitem(plain_words._FIGURES, "epsilon_mu", "ε")
    with lab.caught():
        check_a_bayesian_claim_says_whom_it_leaves_out()


RESTS_ON = (
    "(ε=1.2, δ=1e-05)",
    "add/remove neighbours",
    "Poisson lots q=0.1",
    "10 noisy steps",
    "accountant pld",
    "given the declared schema",
    "Not covered: floating-point and timing side channels; internal reports.",
)


def check_a_claim_names_everything_it_rests_on():
    """Figures, unit, relation, sampling, steps, accountant, schema; and what is not covered."""
    for unit, records in (("person", 1), ("meter", 31)):
        made = KINDS["dp"].model_copy(update={"unit": unit, "max_records": records})
        for part in (*RESTS_ON, f"for one {unit}"):
            assert part in made.sentence
        assert (f"at most {records} records" in made.sentence) == (records > 1)


def test_a_claim_names_everything_it_rests_on(plan):
    check_a_claim_names_everything_it_rests_on()
    assert plan.guarantee.excluded == ("floating-point and timing side channels", "internal reports", REFUSALS)


def check_a_claim_through_a_public_generator_says_so():
    base = KINDS["dp"]
    rests = f"{words.PUBLIC_GENERATOR} (SHA-256 0123…) was made and chosen without the private records"
    shared = base.model_copy(
        update={"assumptions": (*base.assumptions, rests), "excluded": (*base.excluded, words.SHARED_PEOPLE)}
    )
    assert f"; given the declared schema, and that {rests}. Not covered: " in shared.sentence
    assert shared.sentence.endswith(f"internal reports; {words.SHARED_PEOPLE}.")
    apart = base.model_copy(update={"assumptions": (*base.assumptions, rests, words.NO_SHARED_PEOPLE)})
    assert f"and that {rests} and that {words.NO_SHARED_PEOPLE}. Not covered: " in apart.sentence
    assert "public" not in base.sentence
    labelled = base.with_public_labels(shared_people=True)
    assert (
        f", and that {words.PUBLIC_LABELS} was made and chosen without the private records. Not covered: "
        in labelled.sentence
    )
    assert labelled.sentence.endswith(f"internal reports; {words.SHARED_PEOPLE}.")
    apart = base.with_public_labels(shared_people=False)
    assert f" and that {words.NO_SHARED_PEOPLE_IN_LABELS}. Not covered: " in apart.sentence
    assert apart.sentence.endswith("internal reports.")


def check_a_sentence_leaves_out_what_its_claim_does():
    left = (words.TIMING, words.INTERNAL, REFUSALS, words.ENDED, words.of_records("row"), words.SHARED_PEOPLE)
    for kind in ("dp", "bayesian-dp"):
        made = KINDS[kind].model_copy(update={"excluded": (*left, words.UNPROTECTED_ROWS, words.CHOICE_OF_KIND)})
        said = made.sentence.casefold()
        assert all(each.casefold() in said for each in made.excluded), kind


def test_a_sentence_leaves_out_what_its_claim_does():
    check_a_sentence_leaves_out_what_its_claim_does()


def test_a_sentence_that_names_fewer_is_caught(lab):
    lab.plant(words, "_uncovered", ("left not in _SENTENCES_OF_THEIR_OWN", "False"))
    with lab.caught():
        check_a_sentence_leaves_out_what_its_claim_does()


def test_a_claim_through_a_public_generator_says_so():
    check_a_claim_through_a_public_generator_says_so()


def test_a_claim_that_leaves_its_public_generator_out_is_caught(lab):
    lab.plant(words, "_given_public", ("said.startswith(known)", "False"))
    with lab.caught():
        check_a_claim_through_a_public_generator_says_so()


def test_a_claim_that_leaves_its_public_labels_out_is_caught(lab):
    lab.plant(
        words,
        "_given_public",
        (
            "(PUBLIC_GENERATOR, PUBLIC_LABELS, PUBLIC_CANDIDATES, PUBLIC_ROWS, NO_SHARED_PEOPLE, "
            "NO_SHARED_PEOPLE_IN_LABELS)",
            "(PUBLIC_GENERATOR, PUBLIC_CANDIDATES, PUBLIC_ROWS, NO_SHARED_PEOPLE, NO_SHARED_PEOPLE_IN_LABELS)",
        ),
    )
    with lab.caught():
        check_a_claim_through_a_public_generator_says_so()


@pytest.mark.parametrize(
    "part", [", add/remove neighbours", "floating-point and timing side channels; ", "; given the declared schema"]
)
def test_a_claim_that_leaves_something_out_is_caught(lab, monkeypatch, part):
    dp = words._dp
    assert part in KINDS["dp"].sentence
    monkeypatch.setitem(words._SENTENCES, "dp", lambda g: dp(g).replace(part, ""))
    with lab.caught():
        check_a_claim_names_everything_it_rests_on()


@pytest.mark.parametrize(("value", "printed"), [(1.23401, "1.235"), (0.99999, "1"), (1e-5, "1e-05")])
def test_printed_figures_never_claim_less(value, printed):
    assert words.figure(value) == printed
    assert float(printed) >= value


# -- words that are never printed --------------------------------------------------------------------------------------

NEVER = re.compile(r"\banonym|\bsafe(ly|ty|st|r)?\b|\bGDPR[- ]compliant|\bde-?identified\b", re.IGNORECASE)
NAMES = re.compile(r"spreadsheet[-_]safe|safetensors|safe_(?:open|load|dump)|Safe(?:Loader|Dumper)")


def forbidden(text):
    """Return the forbidden words in a module's texts. Names of options are none; docstrings are not printed."""
    nodes = list(ast.walk(ast.parse(text)))
    quiet = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    texts = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
    ]
    return [text for text in texts if NEVER.search(NAMES.sub("", text))]


def test_no_text_says_a_forbidden_word():
    files = list(SOURCE.rglob("*.py"))
    assert len(files) > 60
    assert {str(path): found for path in files if (found := forbidden(path.read_text()))} == {}
    pages = [*SOURCE.rglob("*.j2"), *(SOURCE / "datasets" / "bundled").rglob("*.yaml")]
    assert len(pages) > 3
    for path in pages:
        text = path.read_text().replace("'unsafe-inline'", "")  # the name of a browser's rule, which is set
        assert not NEVER.search(NAMES.sub("", text)), path.name


@pytest.mark.parametrize(
    "planted",
    ["x = 'This data is anonymous'", "print(f'safe to publish {x}')", "say('de-identified')", "say('Anonymised rows')"],
)
def test_a_forbidden_word_is_caught(planted):
    assert forbidden(planted)


def test_every_claim_that_can_be_printed_is_free_of_them():
    for kind, made in KINDS.items():
        assert not NEVER.search(made.sentence + made.watermark + visible(card(kind)))
