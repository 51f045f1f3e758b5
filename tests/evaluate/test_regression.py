"""A regression's coefficients: against scikit-learn's, and against a planted turn of sign."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.features import find_target
from doublure.measures.tables.fidelity import Tables
from doublure.measures.tables.regression import Coefficient, Regression, fit_logistic, regression


def test_the_fit_is_scikit_learns():
    rng = np.random.default_rng(0)
    design = rng.normal(size=(500, 3))
    truth = (rng.random(500) < 1 / (1 + np.exp(-design @ [1.0, -2.0, 0.0] - 0.5))).astype(float)
    found, errors, _ = fit_logistic(design, truth)
    other = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(design, truth)
    assert found == pytest.approx(other.coef_[0], abs=1e-4)
    assert (np.abs(found - [1.0, -2.0, 0.0]) < 4 * errors).all()


def test_a_term_that_decides_the_outcome_has_a_coefficient():
    design = np.linspace(-1, 1, 100)[:, None]
    found, errors, _ = fit_logistic(design, (design[:, 0] > 0).astype(float))
    assert np.isfinite([found, errors]).all()
    assert found[0] > 2


@pytest.fixture(scope="module")
def of(schema, real, holdout, drawn, shuffle_columns):
    coder = Coder(schema=schema)
    train = coder.read(real, "real")

    def found(synthetic):
        tables = Tables(
            train=train,
            synthetic=coder.read(synthetic, "synthetic"),
            baseline=coder.read(shuffle_columns(real), "baseline"),
            holdout=coder.read(holdout, "holdout"),
        )
        return regression(coder, find_target(coder, train), tables, np.random.default_rng(0))

    return found


def test_what_the_label_follows_is_clear_and_has_its_sign(of, drawn):
    found = of(drawn(900, 3))
    assert found.outcome == "label = yes"
    terms = {entry.term: entry for entry in found.coefficients}
    assert terms["number"].real > 2
    assert terms["number"].synthetic > 2
    signs, errors = found.scores
    assert signs.value == 1
    assert errors.value < errors.baseline
    assert all(abs(entry.real) > 2 * entry.error for entry in found.coefficients)


def test_a_turned_sign_is_counted(of, drawn):
    turned = drawn(900, 3)
    turned["number"] = 99 - turned["number"]
    turned["copy"] = turned["number"]
    found = of(turned)
    terms = {entry.term: entry for entry in found.coefficients}
    assert terms["number"].synthetic < -2
    assert found.scores[0].value == pytest.approx(1 - 1 / len(found.coefficients))
    assert found.coefficients[0].term == "number"  # the furthest off first


def test_a_constant_outcome_has_no_right_sign(of, drawn):
    collapsed = drawn(900, 3).assign(label="no")
    found = of(collapsed)
    assert found is not None
    assert np.isfinite([entry.synthetic for entry in found.coefficients]).all()


def test_columns_that_say_the_same_share_one_term(schema, real, holdout):
    """The copy is derived and no feature; a number twice under two names would share its coefficient."""
    columns = {name: schema.columns[name] for name in ("number", "copy", "label")}
    twice = schema.model_copy(update={"columns": columns, "constraints": ()})
    coder = Coder(schema=twice)
    coded = {name: coder.read(frame[list(columns)], name) for name, frame in {"a": real, "b": holdout}.items()}
    tables = Tables(train=coded["a"], synthetic=coded["b"], baseline=coded["b"], holdout=coded["b"])
    found = regression(coder, find_target(coder, coded["a"]), tables, np.random.default_rng(0))
    assert found.terms == 1


def test_the_sizes_of_coefficients_tell_what_signs_hide():
    """A right sign of +0.13 for +1.35 is a tenth of a slope, whatever one large coefficient keeps."""
    each = [
        Coefficient(term=str(at), real=real, error=0.1, synthetic=synthetic, holdout=real)
        for at, (real, synthetic) in enumerate([(1.35, 0.135), (-2.0, -0.4), (8.5, 8.5)])
    ]
    found = Regression(outcome="t = yes", scores=(), coefficients=tuple(each), terms=3)
    assert found.sizes == pytest.approx((0.1, 1.0))
