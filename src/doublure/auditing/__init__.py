"""Audits: attacks on a run, with its plan and real data; ``attack/`` itself knows no method.

Results are internal. Attacks that refit follow the plan on records the owner holds anyway. Nothing of that is released,
so no ledger is charged.
"""

from doublure.auditing.audit import audit
from doublure.auditing.worst_case import audit_method

__all__ = ["audit", "audit_method"]
