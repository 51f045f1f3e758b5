"""load(): a synthesizer from a finished run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from doublure.encode.choice import encoder_for
from doublure.errors import RunFolderError
from doublure.methods import registry as methods
from doublure.run.folder import GENERATOR, RunFolder
from doublure.run.synthesizer import Synthesizer
from doublure.support.tensors import damaged

if TYPE_CHECKING:
    from torch import nn

    from doublure.planning import Plan
    from doublure.schema import ResolvedSchema


def load(path: str | Path) -> Synthesizer:
    """Read a finished run folder.

    Raises:
        RunFolderError: There is none, it is not finished, or it is damaged.
    """
    return synthesizer_of(RunFolder.open(Path(path)))


def synthesizer_of(folder: RunFolder) -> Synthesizer:
    """Return the synthesizer of a finished run.

    Raises:
        RunFolderError: The run is not finished, or a file is damaged.
    """
    run, schema = folder.run, folder.schema
    if run.get("status") != "done":
        raise RunFolderError("is not finished", field=folder.path, remedy="go on with doublure fit --resume")
    if schema is None:
        raise damaged(folder.path / "schema.yaml")
    plan, guarantee = folder.plan, folder.guarantee
    if not plan.may_claim(guarantee):
        raise RunFolderError(
            "is not what the plan gives",
            field=f"{folder.path.name}/guarantee.json",
            remedy="the run folder was edited",
        )
    generator = _generator(folder, schema, plan)
    facts = {key: value for key, value in run.items() if key not in ("version", "status")}
    return Synthesizer(
        schema=schema,
        plan=plan,
        guarantee=guarantee,
        generator=generator,
        run=facts,
        executed=folder.executed,
        read_tables=lambda: folder.tables,
    )


def _generator(folder: RunFolder, schema: ResolvedSchema, plan: Plan) -> nn.Module:
    """Read the weights into a generator of the shape that the plan gives.

    Raises:
        RunFolderError: They are damaged, or of another shape.
    """
    weights = folder.load_weights(schema, plan)
    generator = methods.method(plan.method).build(encoder_for(schema, plan.settings.encoding), plan.settings, seed=0)
    try:
        generator.load_state_dict(weights)
    except RuntimeError:
        raise damaged(folder.path / GENERATOR) from None
    return generator.eval()
