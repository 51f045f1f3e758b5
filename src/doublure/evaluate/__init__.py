"""EVALUATE: how good the artificial rows are, and for whom. Computed on real data: internal, never published.

Every figure stands beside that of independent columns (the least to expect) and of real rows (the most).
"""

from doublure.evaluate import baseline, fidelity, utility
from doublure.evaluate.scores import Score
from doublure.evaluate.table import TableEvaluation, evaluate_table
from doublure.evaluate.understudy import Report, report
from doublure.evaluate.words import Verdict, verdict

__all__ = [
    "Report",
    "Score",
    "TableEvaluation",
    "Verdict",
    "baseline",
    "evaluate_table",
    "fidelity",
    "report",
    "utility",
    "verdict",
]
