"""Publishing a generator, from which recipients sample on their own.

Sampling is post-processing of what the plan paid for, so the run's claim covers it as it covers a bundle of records
(Frigerio et al. 2019, section 4: the generator is released to the analyst). The ledger records it before it appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from doublure.access import COVERED
from doublure.errors import RunFolderError
from doublure.ledger import Ledger
from doublure.releasing.bundle import check_executed, check_payment, make_card, refuse_taken
from doublure.releasing.declared import ReleaseDetails
from doublure.releasing.dictionary import dictionary
from doublure.releasing.issuing import Bundle, file_entry, issue
from doublure.releasing.signing import signing_key
from doublure.run import published
from doublure.run.synthesizer import Synthesizer
from doublure.schema.kinds import KINDS
from doublure.support import files
from doublure.support.outputs import find_folder

_LIMITS = (
    "The guarantee covers the weights themselves and all that is sampled from them, any number of records under any "
    "conditions: sampling reads no private record.",
    "Records that are sampled are not listed here, and no ledger records them.",
)


def publish(
    syn: Synthesizer,
    out: str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    title: str | None = None,
    description: str | None = None,
    licence: str | None = None,
    citation: str | None = None,
    contact: str | None = None,
    links: Sequence[str] = (),
    sign: str | Path | None = None,
) -> Bundle:
    """Write a generator to publish: ``generator.safetensors``, ``schema.yaml``, ``card.json`` and ``card.html``.

    :func:`doublure.load` reads it, and ``doublure sample`` takes it, where there is neither run nor ledger.

    Args:
        syn: A fitted synthesizer.
        out: A folder that does not exist yet, or is empty.
        ledger: The ledger that records the release; found through the run when left out.
        title: The card's title; what is left out of this and the following is as the schema's ``release`` says.
        description: A description of its records, in a sentence or a few.
        licence: The licence of the generator.
        citation: How to cite it.
        contact: An address for questions.
        links: Addresses of further pages.
        sign: The private key that signs the card, as :func:`doublure.releasing.signing.new_keys` makes it.

    Returns:
        The released generator: its folder, its card with the keys of a bundle's, and its files.

    Raises:
        InputError: The folder is not empty, the guarantee covers no generator or is not one that the plan gives,
            something else ran than was priced, the ledger is not found or knows another generator, or the key cannot
            be used.
    """
    asked = find_folder(out)
    declared = ReleaseDetails(
        title=title, description=description, licence=licence, citation=citation, contact=contact, links=links
    ).over(syn.schema.release)
    refuse_taken(asked)
    kind = syn.guarantee.kind
    if kind not in COVERED:
        message = f"is of kind {kind}, which covers no generator"
        raise RunFolderError(message, field="guarantee", remedy="fit a method of kind dp or bayesian-dp")
    key = None if sign is None else signing_key(sign, asked)
    executed = check_executed(syn)
    book, reservation = check_payment(syn, ledger)
    with files.staged_folder(asked) as staging:
        published.write(syn, staging)
        listed = [file_entry(staging, name) for name in published.FILES]
        named = declared.titled(f"Generator of synthetic {KINDS[syn.schema.kind].called} for {book.dataset}")
        card = make_card(syn, listed, executed, declared=named, limits=_LIMITS)
        return issue(staging, asked, card, dictionary(syn.schema), book, reservation, key)
