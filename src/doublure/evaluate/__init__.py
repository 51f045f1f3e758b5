"""EVALUATE: how good the artificial rows are, and for whom. Computed on real data: internal, never published.

Every figure stands beside that of independent columns (the least to expect) and of real rows (the most).
"""

from doublure.evaluate import expected_loss, overlap
from doublure.evaluate.images import classifiers as students
from doublure.evaluate.images import feature_extractors as extractors
from doublure.evaluate.images.evaluation import ImageEvaluation, evaluate_images
from doublure.evaluate.scores import Score
from doublure.evaluate.series import SeriesEvaluation, evaluate_series
from doublure.evaluate.tables import baseline, fidelity, utility
from doublure.evaluate.tables.evaluation import TableEvaluation, evaluate_table
from doublure.evaluate.tables.verdict import Verdict, verdict
from doublure.review.comparison import Comparison, compare
from doublure.review.evaluation import ImageReport, Report, SeriesReport, about, report
from doublure.review.inspection import Inspection, inspect

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
