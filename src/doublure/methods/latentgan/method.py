"""``latentgan``: private records are learned as latents of a public generator (Chen et al. 2021, DPMI).

A generator G_p of public data comes from elsewhere (``doublure public fit``). Each private record is inverted by itself
to a latent (:mod:`doublure.networks.inversion`), which is a function of that record and of public numbers alone; a
private GAN then learns the latents, in few dimensions, with labels and conditions part of the record; and what is
released is G_p(G_ds(z)). The guarantee is that of the private GAN's noisy steps, for the private records, given a
generator that is truly public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from doublure.access import Access
from doublure.guarantee import Kind
from doublure.methods.latentgan.settings import ImageLatentSettings, LatentSettings, TableLatentSettings
from doublure.methods.method import Job, Method, MethodSettings, Work
from doublure.schema import Schema
from doublure.training.image_gan_settings import refuse_unsteered

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_FEW_UNITS = 2_000


class Latentgan(Method):
    """Inversion, then a private GAN of latents; see the module."""

    name: ClassVar[str] = "latentgan"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = {
        "table": TableLatentSettings,
        "images": ImageLatentSettings,
    }
    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.05, "smallest_lot": 64, "largest_lot": 4096, "steps": 1000}

    def settle(self, schema: Schema, settings: MethodSettings) -> LatentSettings:
        """Read what is known of the public generator, and decide sizes from it and the public number of units."""
        refuse_unsteered(schema)
        return _own(settings).settled_for(schema, **self.sizes)

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Return q of the critic's lots; with a labeller each access says its own."""
        own = _own(settings)
        if own.teacher != "critic":
            return 1.0
        return None if own.later_share else own.latent_events(schema, 1.0)[0].sample_rate

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Return what teaches the latents, and the labeller if there is one."""
        return _own(settings).accesses(schema, noise_multiplier)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what inversions and training compute and hold."""
        return _own(settings).work(schema)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say what the claim hangs on, and when there are few units."""
        said = _own(settings).facts.provenance
        found = ["the guarantee holds only if the public generator never saw a private record"]
        if said.shared_people == "possible":
            found.append("people of the public data may be among the private ones: the claim is about private records")
        if schema.public_units < _FEW_UNITS:
            found.append(f"{schema.public_units} units are few for a private GAN; expect rough shapes")
        return tuple(found)

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many numbers of noise a sample takes for a record."""
        own = _own(settings)
        return own.sample_noise if isinstance(own, ImageLatentSettings) else own.noise_width

    def max_grad_norm(self, settings: MethodSettings) -> float:
        """Return C, the bound on a unit's gradient."""
        return _own(settings).max_grad_norm

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untaught generator with both networks; the public folder is not needed."""
        return _own(settings).build(encoder, seed)

    def train(self, job: Job) -> nn.Module:
        """Invert the records, then teach the generator of latents."""
        from doublure.methods.latentgan.training import taught

        return taught(job, _own(job.settings))


def _own(settings: MethodSettings) -> LatentSettings:
    if not isinstance(settings, LatentSettings):
        raise TypeError("latentgan was given another method's settings")
    return settings


METHOD = Latentgan()
