"""A kind of data has one home: few places ask which it is, and one from elsewhere goes as far as its parts go."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest
import torch

import doublure as db
from doublure.access import Access
from doublure.data.opening import READERS
from doublure.data.records import Loaded
from doublure.drafting.draft import DRAFTS
from doublure.encode.choice import ENCODERS
from doublure.encode.encoder import Encoder
from doublure.errors import DataError, SettingError
from doublure.evaluate.evaluation import EVALUATIONS
from doublure.measures.embedding import POINTS
from doublure.methods import registry
from doublure.methods.choice import CHOICES
from doublure.methods.method import Method
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.counts import Axis, Counts
from doublure.releasing.bundle import dictionary
from doublure.releasing.catalogue_names import NAMES
from doublure.releasing.writing import WRITERS, Writer, write_sample
from doublure.schema import ResolvedSchema, Schema, kinds
from doublure.schema.kinds import KINDS, ByKind, Kind
from doublure.schema.schema import MODELS
from doublure.training.settings import MethodSettings, Work

SOURCE = Path(db.__file__).parent
KNOWN = {"table", "images", "series"}
ASKED_OF = {model.__name__ for kind in KINDS.values() for model in (kind.schema, kind.resolved)}
WRITTEN = re.compile(rf"""["'](?:{"|".join(KNOWN)})["']|\b(?:{"|".join(ASKED_OF)})\b""")


def texts(node):
    """Return the texts that an expression is, or is a tuple, list or set of."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return set().union(*map(texts, node.elts))
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def names(node):
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def asks(node):
    """Whether a node asks which kind of data something is, or says something else for each."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return bool(names(node.args[1]) & ASKED_OF)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(texts(side) & KNOWN for side in sides) and any({"kind", "page"} & names(side) for side in sides)
    if isinstance(node, ast.Dict):
        return len(KNOWN & set().union(*(texts(key) for key in node.keys if key))) > 1
    if isinstance(node, ast.match_case):
        return any(
            (isinstance(part, ast.MatchValue) and texts(part.value) & KNOWN)
            or (isinstance(part, ast.MatchClass) and names(part.cls) & ASKED_OF)
            for part in ast.walk(node.pattern)
        )
    return False


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("isinstance(schema, (TableSchema, ResolvedImageSchema))", 1),
        ("isinstance(settings, ImageSettings)", 0),
        ("schema.kind in ('images', 'series') or 'table' == kind", 2),
        ("guarantee.kind == 'dp'", 0),
        ("MOST = {'table': 1, 'images': 2}", 1),
        ("{'images': pixels, 'labels': labels}", 0),
        ("match page:\n case 'images': pass\n case 'audit': pass", 1),
    ],
)
def test_what_counts_as_a_question(source, asked):
    assert sum(map(asks, ast.walk(ast.parse(source)))) == asked


def test_few_places_ask_which_kind_of_data_it_is():
    found = [
        (path.relative_to(SOURCE).as_posix(), node.lineno)
        for path in SOURCE.rglob("*.py")
        if WRITTEN.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if not isinstance(node, ast.match_case) and asks(node)
    ]
    assert len(found) <= 10, found


# -- a kind from elsewhere: bags of words ----------------------------------------------------------------------------


class BagSchema(Schema):
    """A record is which of some words it has."""

    kind: Literal["bags"]
    words: tuple[str, ...]

    @property
    def columns(self) -> Mapping[str, Any]:
        return {}

    @property
    def constraints(self) -> tuple[Any, ...]:
        return ()


class ResolvedBagSchema(BagSchema, ResolvedSchema):
    """The same."""


@dataclasses.dataclass(frozen=True)
class Bags:
    """``(N, words)`` bool."""

    has: Any

    def __len__(self):
        return len(self.has)

    def take(self, rows):
        return Bags(self.has[rows])

    @staticmethod
    def joined(parts):
        return Bags(np.concatenate([part.has for part in parts]))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BagSet(Loaded):
    """Private bags."""

    content: Bags

    @property
    def frame(self):
        return pd.DataFrame(index=range(len(self.content)))


class BagSource:
    """A file of words, a bag a line."""

    def __init__(self, path):
        self.name, self.path = Path(path).name, Path(path)

    def check(self, schema):
        if not self.path.read_text():
            raise DataError("is empty", field=self.name, remedy="give some")

    def load(self, schema, *, at_least=2):
        lines = [set(line.split()) for line in self.path.read_text().splitlines()]
        has = np.array([[word in line for word in BagSchema.of(schema).words] for line in lines])
        return BagSet(content=Bags(has), unit=np.arange(len(has)), n_units=len(has))


class BagEncoder(Encoder):
    """One code a word."""

    def __init__(self, schema):
        self.schema, self.width = schema, len(schema.words)
        self.condition_width, self.condition_sizes, self.body_shape = 0, {}, (self.width,)

    def compact(self, content):
        return content.has.astype(np.float32)

    def expand(self, compact):
        return compact

    def decode(self, rows, rng=None):
        return Bags(rows > 0.5)


class Chances(torch.nn.Module):
    """Each word by itself, as often as it was counted."""

    def __init__(self, words):
        super().__init__()
        self.register_buffer("chances", torch.zeros(words))

    def forward(self, noise, condition):
        return (torch.special.ndtr(noise) < self.chances).float()


class CountWords(Method):
    """A noisy count of each word."""

    name: ClassVar[str] = "count-words"
    kinds: ClassVar[frozenset[str]] = frozenset({"bags"})
    guarantee: ClassVar[str] = "dp"
    settings_type: ClassVar[type[MethodSettings]] = MethodSettings

    def resolve_defaults(self, schema, settings):
        return settings

    def sample_rate(self, schema, settings):
        return None

    def sample_noise(self, settings):
        return 3

    def accesses(self, schema, settings, noise_multiplier):
        words = len(schema.words)
        event = DiscreteGaussianEvent(scale=max(0.01, noise_multiplier * words**0.5), tables=words, records=1)
        return (Access(purpose="count words", event=event),)

    def work(self, schema, settings):
        return Work(flops=1.0, steps=1, memory_bytes=1000)

    def warnings(self, schema, settings):
        return ()

    def build(self, encoder, settings, seed):
        return Chances(encoder.width)

    def train(self, job):
        tables = [(Axis.of_codes(place, 2),) for place in range(job.encoder.width)]
        noisy = job.mechanism.release(Counts(tables=tables, max_records=1), job.accesses[0], job.records)
        counts = np.maximum(np.asarray(noisy, dtype=np.float64).reshape(-1, 2), 0.5)
        made = self.build(job.encoder, job.settings, job.seed)
        made.chances.copy_(torch.from_numpy(counts[:, 1] / counts.sum(axis=1)))
        return made


SCHEMA = "doublure: 1\nkind: bags\nunits: 400\nwords: [rain, sun, wind]\n"
BAGS = Kind(
    name="bags", schema=BagSchema, resolved=ResolvedBagSchema, records="bags", lines="bags", least="single words",
    limits=("Every bag is synthetic.",), chunk=70,
)  # fmt: skip


def written(chunks, path, schema, n, spreadsheet_safe, about):
    bags = Bags.joined(list(chunks))
    path.write_text("".join(" ".join(np.array(schema.words)[row]) + "\n" for row in bags.has))
    return len(bags)


@pytest.fixture
def bags(tmp_path):
    """Register the kind with a reader, an encoder and a method; return its data's path."""
    tables = (KINDS, MODELS, READERS, ENCODERS, WRITERS, registry.METHODS, registry._SUMMARIES)
    kept = [dict(table) for table in tables]
    kinds.register(BAGS)
    READERS["bags"], ENCODERS["bags"] = BagSource, lambda schema, encoding: BagEncoder(schema)
    registry.register(CountWords(), "a noisy count of each word")
    path = tmp_path / "bags.txt"
    path.write_text("rain wind\nsun\nsun\nsun wind\n" * 100)
    yield path
    for table, before in zip(tables, kept, strict=True):
        table.clear()
        table.update(before)


@pytest.fixture
def syn(bags, tmp_path):
    plan = db.plan(db.Schema.parse(SCHEMA), method="count-words", epsilon=20.0, delta=1e-6)
    ledger = db.Ledger.create(tmp_path / "bags.ledger", dataset="bags", epsilon=20.0, delta=1e-6)
    return db.fit(bags, plan, ledger=ledger, out=tmp_path / "run")


def test_a_kind_from_elsewhere_is_planned_fitted_kept_and_sampled(syn, tmp_path):
    again = db.load(tmp_path / "run")
    assert isinstance(again.schema, ResolvedBagSchema)
    drawn = again.sample(1000, seed=3)  # several chunks
    assert len(drawn) == 1000
    assert np.allclose(drawn.has.mean(axis=0), [0.25, 0.75, 0.5], atol=0.06)
    assert repr(syn).startswith("Synthesizer(method='count-words', bags, ")
    assert syn.executed is not None


def test_it_is_written_and_released_once_it_has_a_writer(syn, tmp_path):
    with pytest.raises(SettingError, match="is of kind bags, which has no writer"):
        write_sample(syn, tmp_path / "out.txt", 5)
    WRITERS["bags"] = Writer(forms=("txt",), check=lambda *_: None, write=written)
    assert write_sample(syn, tmp_path / "out.txt", 150, seed=1) == 150
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 150
    card = db.release(syn, tmp_path / "bundle", n=20, seed=1).card
    assert card["limits"][0] == "Every bag is synthetic."
    assert {file["path"] for file in card["files"]} == {"data.txt", "dictionary.json", "card.html", *NAMES}
    assert dictionary(syn.schema)["kind"] == "bags"


def test_a_part_that_it_lacks_is_named(syn, bags):
    with pytest.raises(SettingError, match="is of kind bags, which has no evaluation"):
        db.evaluate.report(syn, bags)
    for table in (EVALUATIONS, POINTS, DRAFTS, CHOICES):
        with pytest.raises(SettingError, match=f"has no {table.part}"):
            table["bags"]


def test_a_kind_of_this_package_is_not_replaced(bags):
    with pytest.raises(SettingError, match="known already"):
        kinds.register(dataclasses.replace(BAGS, name="table"))
    with pytest.raises(SettingError, match="is of kind sounds, which has no schema"):
        KINDS["sounds"]
    assert list(ByKind("part", table=1)) == ["table"]
    with pytest.raises(TypeError, match="ImageSchema is needed, and BagSchema was given"):
        KINDS["images"].schema.of(db.Schema.parse(SCHEMA))
    assert isinstance(BagSchema.of(db.Schema.parse(SCHEMA)), BagSchema)
