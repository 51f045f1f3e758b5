"""Measures of related tables: of each table, and of the relations between them."""

from doublure.measures.relational.evaluation import MOST_UNITS, RelationalEvaluation, evaluate_related

__all__ = ["MOST_UNITS", "RelationalEvaluation", "evaluate_related"]
