"""``load()``: a synthesizer from a finished run's folder, or from a published generator."""

from __future__ import annotations

from pathlib import Path

from doublure.errors import RunFolderError
from doublure.run import published, weights
from doublure.run.folder import RunFolder
from doublure.run.synthesizer import Synthesizer
from doublure.support.tensors import damaged_file


def load(path: str | Path) -> Synthesizer:
    """Read a finished run folder, or a generator that :func:`doublure.releasing.generator.publish` wrote.

    Raises:
        RunFolderError: It is no run folder, not finished, or damaged.

    Example:
        >>> syn.save("saved")
        >>> db.load("saved").sample(3, seed=7).equals(syn.sample(3, seed=7))
        True
    """
    folder = Path(path)
    return published.read(folder) if published.is_published(folder) else read_synthesizer(RunFolder.open(folder))


def read_synthesizer(folder: RunFolder) -> Synthesizer:
    """Return the synthesizer of a finished run.

    Raises:
        RunFolderError: The run is not finished, or a file is damaged.
    """
    run, schema = folder.run, folder.schema
    if run.get("status") != "done":
        raise RunFolderError("is not finished", field=folder.path, remedy="go on with doublure fit --resume")
    if schema is None:
        raise damaged_file(folder.path / "schema.yaml")
    plan, guarantee = folder.plan, folder.guarantee
    if not plan.may_claim(guarantee):
        raise RunFolderError(
            "is not what the plan gives",
            field=f"{folder.path.name}/guarantee.json",
            remedy=weights.EDITED,
        )
    tensors = folder.load_weights(schema, plan)
    generator, schema = weights.load_generator(tensors, schema, plan, folder.path / weights.FILE)
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
