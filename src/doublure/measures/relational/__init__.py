"""Measures of related tables: each by itself, and how they hang together."""

from doublure.measures.relational.evaluation import MOST_UNITS, RelationalEvaluation, evaluate_related

__all__ = ["MOST_UNITS", "RelationalEvaluation", "evaluate_related"]
