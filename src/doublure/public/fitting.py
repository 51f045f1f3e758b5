"""Making a public generator: training one on public data, or taking weights that somebody else has trained.

No privacy is needed, and none is claimed: whoever runs this vouches, in the provenance, that the data is public. It
opens no ledger. The same loaders and encoders read public data as read private data, so that both are encoded alike.
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
from doublure.public.facts import Provenance, PublicFacts, made_of
from doublure.public.folder import PublicFolder, PublicWeights, read_weights
from doublure.public.settings import PublicSettings, read, resolve_defaults
from doublure.schema import ResolvedSchema, Schema
from doublure.support import seeding
from doublure.support.devices import check_device, use_threads
from doublure.support.extras import require_torch
from doublure.support.progress import Progress, following
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
        schema: Its schema, every fact declared. A table's columns must be those of the private schema to come; labels
            and conditions are left out of what is learned.
        provenance: What data it is, whose people are in it, under which licence.
        out: The folder to make.
        resume: Go on with a fit that was cut off there.
        seed: Makes the fit repeatable; with ``resume`` the one that it was begun with.
        device: Where to compute.
        threads: CPU threads.
        progress: Receives progress events; None: a line where it is seen, False: nothing.
        settings: Of :class:`~doublure.public.settings.PublicSettings` for the kind of data.

    Returns:
        What is known of it now; ``out`` holds the weights.

    Raises:
        InputError: Data, schema, provenance, settings or folder do not fit; with ``resume``, they are not those that
            the fit was begun with.
        Interrupted: Stopped; the state is kept, and ``resume`` goes on.
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
        with following(progress, "fit") as listener, stop.listening():
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
    """Take a public generator that somebody else has trained.

    Args:
        weights: A safetensors file of the generator that the settings describe: ``noise_width`` (d), ``channels``,
            ``activation``, ``normalisation`` on images; ``width``, ``depth``, ``bins`` and ``numerics`` on tables.
        schema: What it makes.
        provenance: As in :func:`fit`.
        out: The folder to make.
        encoder: Weights of its encoder, if there are any.
        settings: See ``weights``.

    Raises:
        InputError: The weights do not fit the settings, or something is missing.
    """
    require_torch("a public generator")
    said, resolved = Provenance.read(provenance), _resolved(schema)
    own = read(resolved.kind, settings)
    shapes = encoder_of(resolved, own)
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


def encoder_of(schema: Schema, settings: PublicSettings) -> Encoder:
    """Return the encoder of records as a public generator makes them."""
    from doublure.encode.choice import encoder_for

    return encoder_for(schema, settings.encoding)  # type: ignore[arg-type]


def _replaced() -> torch.Generator:
    """Return randomness for weights that all give way to a file's."""
    import torch

    return torch.Generator().manual_seed(0)


def _fitting(path: Path, build: Callable[[], nn.Module], settings: str) -> tuple[nn.Module, dict[str, Any]]:
    """Return a network with a file's weights, and the weights, once it is sure that they are those of this network."""
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
    """Refuse networks in which rows meet, or which overflow, before anything is planned with them."""
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
    encoder = encoder_of(counted, own)
    # The class that holds private records holds these too; what makes a record private is where it came from.
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
    from doublure.public.training import trained

    if not isinstance(job.settings, PublicSettings):
        raise SettingError("are not those of a public generator", field="settings")
    return trained(job, job.settings)


def _facts(schema: Schema, settings: PublicSettings, provenance: Provenance, objective: str) -> dict[str, Any]:
    return {
        "kind": schema.kind,
        "objective": objective,
        "makes": made_of(schema),
        "schema_sha256": schema.sha256,
        "settings": settings.model_dump(mode="json"),
        "latent": settings.noise_width,
        "provenance": provenance.model_dump(mode="json"),
    }
