"""A plan as people use it: read, written, explained, and asked whether a claim is one of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from doublure.guarantee import Guarantee
from doublure.ledger.chain import canonical
from doublure.methods import registry as methods
from doublure.planning import display, plan_file
from doublure.planning.contents import PlanContents
from doublure.planning.explain import explain
from doublure.support.files import read_json, write_json

_BINDS_NOBODY = frozenset({"seconds_estimate", "memory_bytes", "warnings"})


@dataclass(frozen=True, kw_only=True)
class Plan(PlanContents):
    """What a run will do. Made by :func:`doublure.plan`, read by :func:`doublure.fit`; its attributes are inherited."""

    def __repr__(self) -> str:
        """Return what it is in one line; :meth:`explain` says the rest."""
        return display.short(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    @property
    def sha256(self) -> str:
        """The SHA-256 of what it does and claims; estimates of time and memory, and warnings, have no part in it."""
        kept = {key: value for key, value in self.to_json().items() if key not in _BINDS_NOBODY}
        return hashlib.sha256(canonical(kept)).hexdigest()

    @classmethod
    def of(cls, contents: PlanContents) -> Plan:
        """Return the plan of these contents."""
        return cls(**vars(contents))

    def may_claim(self, guarantee: Guarantee) -> bool:
        """Whether a run of this plan can end with a claim: the plan's, or what its method may come to instead.

        No figure of a Bayesian claim is decided afterwards: another ceiling is another plan, and another charge.
        """
        return methods.method(self.method).may_claim(guarantee, self.guarantee, self.settings)

    def does_as(self, other: Plan) -> bool:
        """Return whether another plan is the same but for how long this machine would take."""
        return replace(self, seconds_estimate=other.seconds_estimate) == other

    def explain(self) -> str:
        """Return the plan in words and figures, for a terminal."""
        return explain(self)

    def save(self, path: str | Path) -> None:
        """Write ``plan.json``."""
        write_json(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read ``plan.json`` and check that its figures are those its settings give.

        Raises:
            InputError: The file is missing, of another version, or was edited into something it does not pay for.
        """
        return cls.from_json(read_json(Path(path), "plan"), name=Path(path).name)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], name: str = "plan.json", *, reprice: bool = True) -> Plan:
        """Read what :meth:`to_json` wrote; see :meth:`load`.

        Args:
            data: The JSON object.
            name: The file's name, for errors.
            reprice: Compose the accesses again. A run folder leaves it out: its plan was paid for when it was
                reserved, the ledger has its own record of it, and loading has to be quick.
        """
        return cls.of(plan_file.read(data, name, reprice=reprice))
