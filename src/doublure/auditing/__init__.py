"""Where a run, its plan, real data and attacks meet; ``attack/`` itself knows of no method.

What is found is internal. Attacks that fit again train as the plan says, on records that the owner holds anyway;
nothing of it is released, so that no ledger is charged.
"""

from doublure.auditing.audit import audit
from doublure.auditing.worst_case import audit_method

__all__ = ["audit", "audit_method"]
