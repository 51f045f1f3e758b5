"""Labelling synthetic images: by hand (Triastcyn & Faltings 2022, task T5), or by a classifier of public data.

::

    task/
      schema.yaml     shape and classes, as the run knows them
      labels.csv      file,label: to be filled in; a line left empty is an image left out
      about.json      the mark of the images, their claim, and the SHA-256 of each picture
      images/         the pictures, with their watermark, in an order that says nothing

Annotators see synthetic images alone, so labelling is post-processing: it costs nothing, and the run's guarantee covers
it. Labels that a method gave the images are not handed out. Pictures that were added or changed since are refused: no
claim covers them.

A classifier that was trained on labelled public images may label them at no cost, too (Chen et al. 2021, section IV-A,
whose own labelling set is private and has no guarantee). The claim then rests on those images' being public, which
their provider vouches for, as for a public generator; the claim says so.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pandas as pd

from doublure.data.images.pictures import Reader
from doublure.data.images.records import Images
from doublure.data.opening import Given, open_data
from doublure.data.tables import cells
from doublure.encode.columns import ListedEncoding
from doublure.errors import DataError, InputError, SchemaError, SettingError, counted
from doublure.public.facts import Provenance
from doublure.run.synthesizer import Synthesizer
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.schema.schema import Unit
from doublure.support import files, seeding
from doublure.support.progress import Progress, listen

if TYPE_CHECKING:
    from doublure.measures.classification import Labels

_SCHEMA, _LABELS, _ABOUT, _PICTURES = "schema.yaml", "labels.csv", "about.json", "images"
_HEADER = ["file", "label"]
_SAID, _SUMS = ("doublure", "watermark", "guarantee"), "sha256"


@dataclass(frozen=True, kw_only=True)
class LabelledImages:
    """Labelled images.

    Attributes:
        images: The images that have a label, in the order of their lines.
        left: The number of images without a label.
        schema: Their shape and classes.
        about: Their metadata: the watermark and the guarantee of the run.
    """

    images: Images
    left: int
    schema: ImageSchema
    about: Mapping[str, str]

    def save(self, path: str | Path) -> None:
        """Write them as ``.npz``, a contact sheet ``.png`` or a folder by class, as ``doublure sample`` does."""
        from doublure.data.images.writing import write_images

        write_images([self.images], Path(path), self.schema, len(self.images), about=self.about)


def hand_out(syn: Synthesizer, folder: str | Path, n: SupportsIndex, *, seed: SupportsIndex | None = None) -> int:
    """Write ``n`` synthetic images to be labelled.

    Args:
        syn: A fitted synthesizer of images.
        folder: A folder that does not exist yet, or is empty.
        n: How many.
        seed: Makes them repeatable.

    Returns:
        How many were written.

    Raises:
        SettingError: The synthesizer is of another kind than images.
        InputError: The folder is not empty, or cannot be written.
    """
    from doublure.data.images.sheets import picture_of, png

    schema = _image_schema(syn)
    target = Path(folder)
    if files.holds_anything(target):
        raise InputError("is not empty", field=target, remedy="choose another -o")
    about = syn.guarantee.about
    sums: dict[str, str] = {}
    with files.staged_folder(target) as staging:
        (staging / _PICTURES).mkdir(parents=True)
        for chunk in syn.sample_chunks(n, seed=seed):
            for pixels in chunk.images:
                name, content = f"{len(sums) + 1:06d}.png", png(picture_of(pixels), about)
                (staging / _PICTURES / name).write_bytes(content)
                sums[name] = hashlib.sha256(content).hexdigest()
        (staging / _SCHEMA).write_text(schema.to_yaml(), encoding="utf-8")
        files.write_json(staging / _ABOUT, {**about, _SUMS: sums})
        with (staging / _LABELS).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([_HEADER, *([name, ""] for name in sums)])
    return len(sums)


def read_back(folder: str | Path, schema: Schema | str | Path | None = None) -> LabelledImages:
    """Read the labels of a task, and the images that have one.

    Args:
        folder: The folder of :func:`hand_out`, with ``labels.csv`` filled in.
        schema: The schema of the labels, for images of the same shape; None: the run's labels, or any where it lists
            none.

    Raises:
        SchemaError: The schema describes other images, or no label with its values.
        DataError: A line of ``labels.csv`` names no picture, or one twice, or a label that the schema does not list;
            a picture is not the one that was handed out; or nothing was labelled.
        InputError: The folder is no labelling task.
    """
    path = Path(folder)
    known = _schema(path)
    known = known if schema is None else _labelled_schema(known, schema)
    about, sums = _handed_out(path)
    given = _filled_in(path / _LABELS, sums, known)
    if not given:
        raise DataError("has no label yet", field=_LABELS, remedy="fill in its second column")
    reader = Reader(known.images.model_copy(update={"range": None, "dtype": None}), known.shape)
    contents = (_unchanged(path / _PICTURES / name, sums[name]) for name in given)
    pixels = [reader.decode(content, place) for place, content in enumerate(contents, start=1)]
    reader.faults.refuse(_PICTURES, list(given).__getitem__)
    return LabelledImages(
        images=Images(images=np.stack(pixels), labels=_labels(list(given.values()), known)),
        left=len(sums) - len(given),
        schema=known,
        about=about,
    )


def by_classifier(
    syn: Synthesizer,
    public: Given,
    schema: Schema | str | Path,
    n: SupportsIndex,
    *,
    provenance: Provenance | str | Path | dict[str, Any],
    seed: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> LabelledImages:
    """Draw ``n`` synthetic images, and label them by a classifier that was trained on labelled public images.

    Args:
        syn: A fitted synthesizer of images.
        public: Labelled public images, in any form that private ones may have.
        schema: Theirs: the synthesizer's shape, and a label with its values.
        n: How many.
        provenance: The origin, people and licence of the public data; it is saved with the images.
        seed: Makes images and labels repeatable.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Raises:
        SettingError: The synthesizer is of another kind than images, or the provenance says too little.
        SchemaError: The public images have another shape, or no label with its values.
        InputError: The public images do not fit their schema.
    """
    from doublure.measures.images.classifiers import predict
    from doublure.measures.images.feature_extractors import encode_labels

    said, theirs = Provenance.read(provenance), _labelled_schema(_image_schema(syn), schema)
    own_seed, column = seeding.choose_seed(seed), theirs.columns[LABEL]
    source = open_data(public, theirs.kind)
    source.check(theirs)
    with listen(progress, "label") as listener:
        listener.stage("read the public images")
        training = source.load(theirs).content
        codes = encode_labels(theirs, training)
        _refuse_unseen_classes(theirs, codes)
        listener.stage("draw synthetic images")
        drawn = syn.draw(n, seed=own_seed)
        listener.stage("train a classifier on the public images")
        chances = predict("cnn", training, codes, drawn, len(column.domain), own_seed)
    labels = ListedEncoding(column=column).restore([chances.argmax(axis=1).astype(np.float64)], None)
    claim = syn.guarantee.with_public_labels(shared_people=said.shared_people != "none")
    return LabelledImages(
        images=Images(images=drawn.images, labels=labels),
        left=0,
        schema=theirs,
        about=claim.about | {"labelled_by": f"a classifier trained on public data: {said.line}"},
    )


def _image_schema(syn: Synthesizer) -> ImageSchema:
    message = f"are labelled, and this run is of kind {syn.schema.kind}"
    return ImageSchema.of(syn.schema, SettingError(message, field="images", remedy="sample instead"))


def _labelled_schema(made: ImageSchema, schema: Schema | str | Path) -> ImageSchema:
    """Return the schema of labelled images, which have the shape of the run's."""
    message = f"does not describe images of shape {list(made.shape)}, which the run makes"
    wrong = SchemaError(message, field="schema", remedy="give that of images of the same shape")
    theirs = ImageSchema.of(schema if isinstance(schema, Schema) else Schema.load(schema), wrong)
    if theirs.images.shape != made.shape:
        raise wrong
    label = None if theirs.label is None else theirs.label.model_copy(update={"shares": None})  # which do not matter
    bare = theirs.model_copy(update={"units": 1, "unit": Unit(name="image"), "label": label})
    if label is None or bare.undeclared or bare.questions:
        remedy = "add label: {values: [...]} to the images' schema"
        raise SchemaError("is not declared with its values", field=LABEL, remedy=remedy)
    return bare.resolve({})  # type: ignore[return-value]


def _refuse_unseen_classes(schema: ImageSchema, codes: Labels) -> None:
    """Refuse a list with classes that no public image shows: a classifier could not learn them."""
    column = schema.label
    if column is None:
        raise TypeError("needs a label")
    unseen = [value for code, value in enumerate(column.domain) if value != column.other and not (codes == code).any()]
    if unseen or len(np.unique(codes)) < 2:
        what = f"lists {counted(len(unseen), 'class')} that no public image shows" if unseen else "has one class alone"
        raise DataError(what, field=LABEL, remedy="list the classes that the public images show, at least two")


def _schema(path: Path) -> ImageSchema:
    if not (path / _SCHEMA).is_file() or not (path / _LABELS).is_file():
        raise InputError("is no labelling task", field=path, remedy="give the folder that doublure label out made")
    wrong = InputError("describes no images", field=_SCHEMA, remedy="put back the file that was handed out")
    return ImageSchema.of(ResolvedSchema.load(path / _SCHEMA), wrong)


def _handed_out(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the metadata of the images as handed out, and each picture's SHA-256."""
    given = files.read_json(path / _ABOUT, "labelling task")
    said, sums = {key: given.get(key) for key in _SAID}, given.get(_SUMS)
    if not isinstance(sums, dict) or not all(isinstance(value, str) for value in (*said.values(), *sums.values())):
        remedy = "put back the file that was handed out"
        raise InputError("does not say what the images are", field=path / _ABOUT, remedy=remedy)
    return said, sums


def _filled_in(path: Path, handed_out: Collection[str], schema: ImageSchema) -> dict[str, str]:
    """Return the label of each file that has one."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        # In locales with decimal commas, spreadsheets put semicolons between cells.
        delimiter = ";" if text.lower().startswith(";".join(_HEADER)) else ","
        rows = [
            [cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        ]
    except (OSError, ValueError, csv.Error):
        raise DataError("cannot be read as CSV in UTF-8", field=_LABELS, remedy="save it as such") from None
    if not rows or [cell.lower() for cell in rows[0][:2]] != _HEADER:
        raise DataError("does not begin with file,label", field=_LABELS, remedy="put back its first line")
    found: dict[str, str] = {}
    listed = cache(partial(_is_listed, schema))
    for number, row in enumerate(rows[1:], start=2):
        if not any(row):
            continue
        name, label, line = row[0], row[1] if len(row) > 1 else "", f"{_LABELS} line {number}"
        if name not in handed_out or name in found:
            what = "names a picture twice" if name in found else "names no picture of the task"
            raise DataError(what, field=line, remedy="leave the first column as it was")
        if label and not listed(label):
            remedy = "write one of the labels that the schema lists, or leave it empty"
            raise DataError("has a label that is not listed", field=line, remedy=remedy)
        found[name] = label
    return {name: label for name, label in found.items() if label}


def _is_listed(schema: ImageSchema, label: str) -> bool:
    try:
        _labels([label], schema)
    except DataError:
        return False
    return True


def _labels(given: list[str], schema: ImageSchema) -> pd.Series[Any]:
    """Return labels as the schema lists them, or as they were given where it lists none."""
    column = pd.Series(given, dtype=object)
    if schema.label is None:
        return column.astype("category")
    encoding = ListedEncoding(column=schema.label)
    return encoding.restore(encoding.compact(cells.canonical(column, schema.label, LABEL)), None)


def _unchanged(path: Path, sha256: str) -> bytes:
    """Return a picture's bytes; refuse others than those that were handed out."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        remedy = "put the picture back, or leave its label empty"
        raise DataError("is missing", field=path.name, remedy=remedy) from None
    except OSError:
        content = b""
    if hashlib.sha256(content).hexdigest() != sha256:
        remedy = "put back the picture as it was, or leave its label empty"
        raise DataError("is not the picture that was handed out", field=path.name, remedy=remedy)
    return content
