"""EVALUATE: how good the artificial rows are, and for whom. Computed on real data: internal, never published.

Every figure stands beside that of independent columns (the least to expect) and of real rows (the most).
"""

from doublure.evaluate import baseline, expected_loss, extractors, fidelity, overlap, students, utility
from doublure.evaluate.comparison import Comparison, compare
from doublure.evaluate.images import ImageEvaluation, evaluate_images
from doublure.evaluate.inspection import Inspection, inspect
from doublure.evaluate.scores import Score
from doublure.evaluate.series import SeriesEvaluation, evaluate_series
from doublure.evaluate.table import TableEvaluation, evaluate_table
from doublure.evaluate.understudy import ImageReport, Report, SeriesReport, about, report
from doublure.evaluate.words import Verdict, verdict

__all__ = [
    "Comparison",
    "ImageEvaluation",
    "ImageReport",
    "Inspection",
    "Report",
    "Score",
    "SeriesEvaluation",
    "SeriesReport",
    "TableEvaluation",
    "Verdict",
    "about",
    "baseline",
    "compare",
    "evaluate_images",
    "evaluate_series",
    "evaluate_table",
    "expected_loss",
    "extractors",
    "fidelity",
    "inspect",
    "overlap",
    "report",
    "students",
    "utility",
    "verdict",
]
