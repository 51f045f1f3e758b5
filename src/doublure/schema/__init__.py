"""Public facts about private data: columns, facts in three states, constraints, the unit of privacy."""

from doublure.schema import kinds as kinds  # registers them all
from doublure.schema.fact_states import UNDECLARED, Learn, known
from doublure.schema.schema import Question, ResolvedSchema, Schema, Unit

__all__ = ["UNDECLARED", "Learn", "Question", "ResolvedSchema", "Schema", "Unit", "known"]
