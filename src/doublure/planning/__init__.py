"""What a run will do and cost, before any record is read."""

from doublure.planning.plan import Plan
from doublure.planning.planner import plan

__all__ = ["Plan", "plan"]
