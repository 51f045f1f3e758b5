"""doublure: private data goes in, a synthesizer comes out, with a guarantee that means what it says.

Example:
    >>> import doublure as db
    >>> schema = db.Schema.load("people.schema.yaml")
    >>> plan = db.plan(schema, epsilon=1.0, delta=1e-5)
    >>> ledger = db.Ledger.create("people.ledger", dataset="people", epsilon=3.0, delta=1e-4)
    >>> syn = db.fit("people.csv", plan, ledger=ledger, seed=1, progress=False)
    >>> syn.sample(5, given={"sex": "Female"}, seed=7)["sex"].unique().tolist()
    ['Female']

Names are imported when they are first used, so that ``import doublure`` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from doublure._version import __version__ as __version__

if TYPE_CHECKING:
    from doublure import attack, datasets, errors, evaluate, private
    from doublure.auditing import audit
    from doublure.drafting.check import check
    from doublure.drafting.draft import draft
    from doublure.guarantee import Guarantee
    from doublure.ledger import Ledger
    from doublure.planning import Plan, plan
    from doublure.releasing.bundle import release
    from doublure.releasing.verifying import verify
    from doublure.run.fitting import fit, synthesize
    from doublure.run.loading import load
    from doublure.run.synthesizer import Synthesizer
    from doublure.schema import Schema

_HOMES = {
    "Schema": "doublure.schema",
    "draft": "doublure.drafting.draft",
    "check": "doublure.drafting.check",
    "synthesize": "doublure.run.fitting",
    "audit": "doublure.auditing",
    "plan": "doublure.planning",
    "Plan": "doublure.planning",
    "fit": "doublure.run.fitting",
    "load": "doublure.run.loading",
    "Synthesizer": "doublure.run.synthesizer",
    "Ledger": "doublure.ledger",
    "Guarantee": "doublure.guarantee",
    "release": "doublure.releasing.bundle",
    "verify": "doublure.releasing.verifying",
}
_MODULES = ("evaluate", "attack", "datasets", "errors", "private")

__all__ = [
    "Guarantee",
    "Ledger",
    "Plan",
    "Schema",
    "Synthesizer",
    "attack",
    "audit",
    "check",
    "datasets",
    "draft",
    "errors",
    "evaluate",
    "fit",
    "load",
    "plan",
    "private",
    "release",
    "synthesize",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"doublure.{name}")
    raise AttributeError(f"module 'doublure' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
