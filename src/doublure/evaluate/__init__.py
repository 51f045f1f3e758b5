"""Evaluation of synthesizers: quality and utility of synthetic records against real ones.

Every figure stands beside that of a baseline (the least to expect) and of real records (the most). All are computed on
real data: internal, never published.
"""

from doublure.evaluate import inference
from doublure.evaluate.comparison import compare
from doublure.evaluate.evaluation import about, report
from doublure.evaluate.inspection import inspect
from doublure.measures import expected_loss, overlap
from doublure.measures.evaluation import verdict
from doublure.measures.images import classifiers
from doublure.measures.images import feature_extractors as extractors
from doublure.measures.images.evaluation import ImageEvaluation, evaluate_images
from doublure.measures.scores import Score
from doublure.measures.series import SeriesEvaluation, evaluate_series
from doublure.measures.tables import baseline, fidelity, utility
from doublure.measures.tables.evaluation import TableEvaluation, evaluate_table
from doublure.report.comparison import Comparison
from doublure.report.evaluation import Report
from doublure.report.inspection import Inspection
from doublure.results import Verdict

__all__ = [
    "Comparison",
    "ImageEvaluation",
    "Inspection",
    "Report",
    "Score",
    "SeriesEvaluation",
    "TableEvaluation",
    "Verdict",
    "about",
    "baseline",
    "classifiers",
    "compare",
    "evaluate_images",
    "evaluate_series",
    "evaluate_table",
    "expected_loss",
    "extractors",
    "fidelity",
    "inference",
    "inspect",
    "overlap",
    "report",
    "utility",
    "verdict",
]
