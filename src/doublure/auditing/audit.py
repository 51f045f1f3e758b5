"""Attacks on a finished run, with everything its owner holds."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from doublure.access import events
from doublure.attack import registry as table
from doublure.attack.attack_data import AttackData, make_attack_data
from doublure.attack.f_dp import Profile
from doublure.attack.results import Claim
from doublure.auditing.white_box import WhiteBoxAccess, make_refit
from doublure.data.opening import Given
from doublure.errors import DataWarning, SettingError
from doublure.evaluate.evaluation import about, load_both
from doublure.evaluate.real_data import perhaps_swapped
from doublure.planning import Plan
from doublure.private.accounting import delta_of
from doublure.report.audit import AttackReport
from doublure.results import versions
from doublure.run.folder import RunFolder
from doublure.run.loading import read_synthesizer
from doublure.run.synthesizer import Synthesizer
from doublure.schema import ResolvedSchema
from doublure.support.progress import Progress, listen
from doublure.support.views import list_values


def audit(
    run: str | Path | Synthesizer,
    attack: str | Sequence[str],
    real: Given,
    holdout: Given | None = None,
    *,
    shadows: int = 16,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> AttackReport:
    """Attack a run. The result is internal: do not publish it.

    Args:
        run: A run folder, or a synthesizer in memory, which keeps no critic.
        attack: Names of attacks or of groups of them, see :data:`doublure.attack.registry.ATTACKS`.
        real: The data it was fitted on.
        holdout: Real records of the same kind that it never saw; half of them go to the attacker. Attacks with canaries
            need none.
        shadows: Number of refits of an attack.
        seed: Fixes every random choice but privacy noise.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Raises:
        InputError: The run, the data or a name is wrong, or there are too few records.

    Example:
        >>> found = db.audit(syn, "gan-leaks", "people.csv", "kept.csv", progress=False)
        >>> [each.alarm for each in found.attacks]
        [False]
    """
    wanted = table.named([attack] if isinstance(attack, str) else list(attack))
    if shadows < 1:
        raise SettingError("must be at least 1", field="shadows", remedy="use 16 or more")
    compared = [name for name in wanted if name not in table.OWN_RECORDS]
    if holdout is None and compared:
        raise _no_holdout(run, real, compared)
    if isinstance(run, Synthesizer):
        syn, kept = run, None
    else:
        folder = RunFolder.open(Path(run))
        syn, kept = read_synthesizer(folder), folder.load()
    with listen(progress, "audit") as listener:
        data = read_attack_data(
            syn, real, holdout, inside=WhiteBoxAccess(syn, kept), seed=seed, shadows=shadows, progress=listener
        )
        found = table.run(data, wanted)
    return AttackReport(about=about(syn), claim=data.claim, attacks=found, seed=seed, versions=versions())


def _no_holdout(run: object, real: object, compared: Sequence[str]) -> SettingError:
    """Return the refusal of attacks without a holdout, with the command of one that needs none."""
    placed, data = (
        shlex.quote(str(each)) if isinstance(each, (str, Path)) and "://" not in str(each) else word
        for each, word in ((run, "RUN"), (real, "DATA"))  # a URL may hold a password
    )
    command = f"doublure audit {placed} --attack one-run --real {data}"
    message = f"is needed by {list_values(compared, 3)}: fitted records are compared with others"
    remedy = f"give records that the fit never saw; if none were kept aside: {command}"
    return SettingError(message, field="--holdout", remedy=remedy)


_EPSILONS = tuple(float(epsilon) for epsilon in np.linspace(0.0, 12.0, 25))
"""Where a plan's δ is asked for: fewer places show less, and never more."""


def plan_profile(plan: Plan) -> Callable[[], Profile] | None:
    """Return what computes δ(ε) of a plan's training, which a refit repeats; None where nothing is claimed."""
    if plan.accountant is None or not all(access.event is not None for access in plan.training):
        return None
    composed = events(plan.training)

    def profile() -> Profile:
        return [(each, delta_of(composed, each, accountant=plan.accountant)) for each in _EPSILONS]  # type: ignore[arg-type]

    return profile


def read_attack_data(
    syn: Synthesizer,
    real: Given,
    holdout: Given | None,
    *,
    inside: WhiteBoxAccess,
    seed: int,
    shadows: int,
    progress: Progress,
) -> AttackData:
    """Read both sides and return the attack data.

    Args:
        syn: The synthesizer.
        real: The data it was fitted on.
        holdout: Records that it never saw; None where no attack compares with them.
        inside: The training's internals.
        seed: Fixes every random choice.
        shadows: Number of refits of an attack.
        progress: Receives progress events.
    """
    progress.stage("read the real records")
    seen, kept = load_both(syn, real, holdout)
    if (swapped := perhaps_swapped(syn, seen, kept)) is not None:
        warnings.warn(swapped, DataWarning, stacklevel=2)
    return make_attack_data(
        ResolvedSchema.of(syn.schema.flat),
        Claim.of(syn.guarantee),
        (seen.content, seen.unit),
        None if kept is None else (kept.content, kept.unit),
        lambda n, draw: syn.draw(n, seed=draw),
        seed=seed,
        white_box=inside,
        refit=make_refit(syn.schema, syn.plan, syn.guarantee) if syn.schema.flat is syn.schema else None,
        crafted=inside.crafted,
        profile=plan_profile(syn.plan),
        shadows=shadows,
        progress=progress,
    )
