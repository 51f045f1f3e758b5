"""Public rules between columns, kept by every sampled row, one file a rule.

=======================================================  ===============================================================
``{equal: [education, education-num]}``                  the i-th value of the first is the i-th of the others, which
                                                         are derived from it and not modelled
``{determines: [INDP, INDP_CAT], map: FILE}``            the second follows from the first by a list, and is derived
``{at_most: [start, end]}``                              the first is at most the second
``{implies: {when: {x: missing}, then: {y: [0, 9]}}}``   a row with such cells has such others
``{sum: {total: t, of: [a, b]}}``                        t is a + b
``{combinations: FILE}``                                 the tuples of some columns that there are
=======================================================  ===============================================================
"""

from doublure.schema.rules.at_most import AtMost, compared, ordered, reaches
from doublure.schema.rules.checks import check_rules
from doublure.schema.rules.equal import Equal
from doublure.schema.rules.numeric import NumericRules
from doublure.schema.rules.registry import MODELS, AnyRule, derived_by, proposed_rules, union_of
from doublure.schema.rules.rule import CellSource, DerivedColumn, NumericRule, Rule
from doublure.schema.rules.witness import clash, witness

__all__ = [
    "MODELS",
    "AnyRule",
    "AtMost",
    "CellSource",
    "DerivedColumn",
    "Equal",
    "NumericRule",
    "NumericRules",
    "Rule",
    "check_rules",
    "clash",
    "compared",
    "derived_by",
    "ordered",
    "proposed_rules",
    "reaches",
    "union_of",
    "witness",
]
