"""Creation of a public generator, by training on public data or from weights trained elsewhere.

No privacy is needed, and none is claimed: the user vouches, in the provenance, that the data is public. No ledger is
opened. Public data goes through the same loaders and encoders as private data, so that both are encoded alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure.data.opening import Given, open_data
from doublure.errors import Interrupted, RunFolderError, SchemaError, SettingError
from doublure.private.mechanism import Mechanism
from doublure.private.noise import source
from doublure.public.architectures import inversion_encoder_of
from doublure.public.facts import Provenance, PublicFacts, record_form
from doublure.public.folder import PublicFolder, PublicWeights, read_weights
from doublure.public.settings import PublicSettings, read, resolve_defaults
from doublure.schema import ResolvedSchema, Schema
from doublure.support import seeding
from doublure.support.devices import check_device, use_threads
from doublure.support.extras import require_torch
from doublure.support.progress import Progress, listen
from doublure.support.stopping import StopSignal
from doublure.training.architectures import generator_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.networks.latent import PublicNetworks
    from doublure.training.job import Job


def fit(
    data: Given,
    schema: Schema | str | Path,
    *,
    provenance: Provenance | str | Path | dict[str, Any],
    out: str | Path,
    resume: bool = False,
    seed: int | None = None,
    device: str = "cpu",
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> PublicFacts:
    """Train a generator on public data.

    Args:
        data: Public data, in any form that private data may have.
        schema: Its schema, with every fact declared. A table's columns must be those of the later private schema;
            labels and conditions are not learned.
        provenance: The data, the people in it and its licence.
        out: The folder to create.
        resume: Continue a fit that was cut off there.
        seed: Repeats the fit, which has no privacy noise; with ``resume`` the seed of the first start.
        device: The device to compute on.
        threads: CPU threads.
        progress: Receives progress events; None: a line on a terminal, False: nothing.
        settings: Fields of :class:`~doublure.public.settings.PublicSettings` for the kind of data.

    Returns:
        The generator's facts; ``out`` holds the weights.

    Raises:
        InputError: Data, schema, provenance, settings or folder do not fit, or differ from those of the fit that
            ``resume`` continues.
        Interrupted: The fit was stopped; its state is kept, and ``resume`` continues it.
    """
    require_torch("a public generator")
    said = Provenance.read(provenance)
    resolved = _resolved(schema)
    own = read(resolved.kind, settings)
    check_device(device)
    if threads is not None:
        use_threads(threads)
    source = open_data(data, resolved.kind, resolved.written)
    source.check(resolved)
    begun = (PublicFolder(out).reads_begun() if resume else None) or {}
    public_seed = seeding.choose_seed(begun.get("seed") if seed is None else seed)
    fitting = {
        "schema_sha256": resolved.sha256,
        "settings": own.model_dump(mode="json"),
        "seed": public_seed,
        "provenance": said.model_dump(mode="json"),
    }
    folder = PublicFolder.begun(out, fitting, resume=resume)
    stop = StopSignal()
    try:
        with listen(progress, "fit") as listener, stop.listening():
            listener.stage("read the public records")
            job = _job(source.load(resolved), resolved, own, folder, public_seed, device, listener, stop)
            folder.refuse_other_records(job.records.fingerprint)
            networks = _trained(job)
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted("stopped; what was learned is kept", field=out, remedy="go on with --resume") from None
    except BaseException:
        folder.discard()
        raise
    facts = _facts(resolved, job.settings, said, own.objective)  # type: ignore[arg-type]
    return folder.finish(facts, PublicWeights(*(None if one is None else one.state_dict() for one in networks)))  # type: ignore[arg-type]


def adopt(
    weights: str | Path,
    schema: Schema | str | Path,
    *,
    provenance: Provenance | str | Path | dict[str, Any],
    out: str | Path,
    encoder: str | Path | None = None,
    **settings: Any,
) -> PublicFacts:
    """Take a public generator that was trained elsewhere.

    Args:
        weights: A safetensors file of the generator that the settings describe: ``noise_width`` (d), ``channels``,
            ``activation``, ``normalisation`` on images; ``width``, ``depth``, ``bins`` and ``numerics`` on tables.
        schema: The schema of its records.
        provenance: As in :func:`fit`.
        out: The folder to create.
        encoder: Weights of its encoder, if it has one.
        settings: See ``weights``.

    Raises:
        InputError: The weights do not fit the settings, or something is missing.
    """
    require_torch("a public generator")
    said, resolved = Provenance.read(provenance), _resolved(schema)
    own = read(resolved.kind, settings)
    shapes = record_encoder(resolved, own)
    network, found = _fitting(Path(weights), lambda: generator_of(own, shapes, _replaced()), own.generator_named)
    proposer, beside = None, None
    if encoder is not None:
        proposer, beside = _fitting(
            Path(encoder), lambda: inversion_encoder_of(own, shapes, _replaced()), own.encoder_named
        )
    _refuse_unfit_to_invert(network, own.noise_width, proposer, shapes.body_shape)
    folder = PublicFolder.begun(out, {"adopted": True}, resume=False)
    try:
        return folder.finish(_facts(resolved, own, said, "given"), PublicWeights(found, beside))
    except BaseException:
        folder.discard()
        raise


# -- networks --------------------------------------------------------------------------------------------------------


def record_encoder(schema: Schema, settings: PublicSettings) -> Encoder:
    """Return the encoder of a public generator's records."""
    from doublure.encode.choice import encoder_for

    return encoder_for(schema, settings.encoding)  # type: ignore[arg-type]


def _replaced() -> torch.Generator:
    """Return randomness for initial weights that a file's will replace."""
    import torch

    return torch.Generator().manual_seed(0)


def _fitting(path: Path, build: Callable[[], nn.Module], settings: str) -> tuple[nn.Module, dict[str, Any]]:
    """Return a network with a file's weights, and the weights; refuse weights of another network."""
    try:
        found = read_weights(path)
    except RunFolderError as error:
        raise RunFolderError(
            error.message, field=path, remedy="give a safetensors file of finite weights in float32"
        ) from None
    network = build()
    own = network.state_dict()
    if any(own[name].is_floating_point() > value.is_floating_point() for name, value in found.items() if name in own):
        raise RunFolderError("holds whole numbers for weights", field=path, remedy="save them as float32")
    try:
        network.load_state_dict(found)
    except RuntimeError:
        remedy = f"give the settings that it was made with: {settings}"
        raise RunFolderError("does not fit the settings' networks", field=path, remedy=remedy) from None
    return network.eval(), found


def _refuse_unfit_to_invert(
    generator: nn.Module, width: int, proposer: nn.Module | None, shape: tuple[int, ...]
) -> None:
    """Refuse networks whose rows interact, or which overflow, before they enter a plan."""
    from doublure.networks.inversion import Inversion, InversionSettings

    Inversion(generator, width, InversionSettings(steps=1, restarts=1, rate=0.1), proposer=proposer, shape=shape)


# -- inside ----------------------------------------------------------------------------------------------------------


def _resolved(schema: Schema | str | Path) -> ResolvedSchema:
    """Return a schema with every fact declared; the number of units is counted, since the data is public."""
    found = schema if isinstance(schema, Schema) else Schema.load(schema)
    bought = [question.path for question in found.questions if question.path != "units"]
    missing = [path for path in found.undeclared if path != "units"]
    if bought or missing:
        remedy = "declare it: a public generator is made for known columns"
        raise SchemaError("is not declared", field=(bought or missing)[0], remedy=remedy)
    return found.model_copy(update={"units": 1}).resolve({})


def _job(
    loaded: Any,
    schema: ResolvedSchema,
    settings: PublicSettings,
    folder: PublicFolder,
    seed: int,
    device: str,
    progress: Progress,
    stop: StopSignal,
) -> Job:
    from doublure.training.job import Job, encoded_records

    counted = schema.model_copy(update={"units": max(1, loaded.n_units)})
    own = resolve_defaults(settings, counted)
    encoder = record_encoder(counted, own)
    # PrivateRecords is only the container here: these records are public.
    records = encoded_records(encoder, encoder.compact(loaded.content), loaded.unit, loaded.n_units, device)
    return Job(
        encoder=encoder,
        records=records.bodies(),
        settings=own,
        accesses=(),
        mechanism=Mechanism((), noise=source(), authorise=lambda access, step: None),
        sample_rate=min(1.0, (own.lot_size or 1) / max(1, loaded.n_units)),
        units=max(1, loaded.n_units),
        authorise=lambda _: stop.check(),
        check_stop=stop.check,
        checkpoints=folder,
        progress=progress,
        seed=seed,
        device=device,
    )


def _trained(job: Job) -> PublicNetworks:
    from doublure.public.training import train

    if not isinstance(job.settings, PublicSettings):
        raise SettingError("are not those of a public generator", field="settings")
    return train(job, job.settings)


def _facts(schema: Schema, settings: PublicSettings, provenance: Provenance, objective: str) -> dict[str, Any]:
    return {
        "kind": schema.kind,
        "objective": objective,
        "makes": record_form(schema),
        "schema_sha256": schema.sha256,
        "settings": settings.model_dump(mode="json"),
        "latent": settings.noise_width,
        "provenance": provenance.model_dump(mode="json"),
    }
