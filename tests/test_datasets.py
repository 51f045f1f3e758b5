"""Public data sets: the bundled one is what its publisher published, and downloads are checked before they are kept."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import hashlib
import http.server
import importlib
import io
import lzma
import os
import shutil
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from doublure import datasets
from doublure.datasets.downloading import ArchiveMember, RemoteFile
from doublure.errors import DataError, InputError, SettingError

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT / ".." / "shared" / "data"
SCHEMAS = {
    "adult": datasets.adult_schema_path(),
    "mushroom": ROOT / "examples" / "schemas" / "mushroom.schema.yaml",
    "diabetes130": ROOT / "examples" / "schemas" / "diabetes130.schema.yaml",
}


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return path


# --- the bundled Adult --------------------------------------------------------------------------------------------


def test_bundled_adult_is_what_uci_publishes() -> None:
    text = lzma.decompress(datasets.bundled_adult().read_bytes()).decode("ascii")
    header, *rows = text.splitlines()
    assert tuple(header.split(",")) == datasets.info("adult").columns
    published = "".join(row.replace(",", ", ") + "\n" for row in rows) + "\n"
    # SHA-256 of adult.data, as recorded by everyone who checks it (TensorFlow Datasets among them).
    wanted = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
    assert hashlib.sha256(published.encode()).hexdigest() == wanted


def test_bundled_adult_equals_the_shared_copy_row_for_row() -> None:
    ours = lzma.decompress(datasets.bundled_adult().read_bytes()).decode("ascii").splitlines()
    theirs = gzip.decompress(shared("adult_train.csv.gz").read_bytes()).decode("ascii").splitlines()
    assert len(ours) == len(theirs) == 32_562
    assert all(mine == other for mine, other in zip(ours, theirs, strict=True))


def test_bundled_adult_rows_and_classes() -> None:
    path = datasets.bundled_adult()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == datasets.BUNDLED_ADULT_SHA256
    frame = datasets.load_adult()
    assert len(frame) == datasets.info("adult").splits["train"] == 32_561
    assert frame["income"].value_counts().to_dict() == {"<=50K": 24_720, ">50K": 7_841}
    assert (frame["workclass"] == "?").sum() == 1_836
    assert frame.loc[0, ["age", "native-country"]].tolist() == [39, "United-States"]


def test_a_damaged_bundle_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(datasets.bundled_adult().read_bytes())
    content[1000] ^= 1
    (tmp_path / "adult_train.csv.xz").write_bytes(content)
    monkeypatch.setattr(datasets, "_BUNDLED", tmp_path)
    with pytest.raises(DataError, match="damaged"):
        datasets.load_adult()


def test_demo_split_is_fixed_and_a_partition() -> None:
    learn, aside = datasets.demo_split()
    assert (len(learn), len(aside)) == (24_421, 8_140)
    assert len(learn) == yaml.safe_load(SCHEMAS["adult"].read_text())["units"]
    whole = datasets.load_adult()
    pd.testing.assert_frame_equal(aside, whole.iloc[3::4].reset_index(drop=True))
    pd.testing.assert_frame_equal(learn, whole.drop(index=whole.index[3::4]).reset_index(drop=True))


def test_notice_attributes_the_bundle() -> None:
    notice = (ROOT / "NOTICE").read_text()
    entry = datasets.info("adult")
    assert entry.licence_url in notice
    assert entry.licence in notice
    assert entry.citation.split("https")[1] in " ".join(notice.split())
    assert "adult_train.csv.xz" in notice


# --- schemas and codebook -----------------------------------------------------------------------------------------


def outside(frame: pd.DataFrame, schema: dict) -> dict[str, set[str]]:
    """Columns -> cells (as text) that are neither in the declared domain nor a declared missing token."""
    found = {}
    for name, column in schema["columns"].items():
        cells = {str(cell) for cell in frame[name].unique()} - set(
            column["missing"] if isinstance(column.get("missing"), list) else ()
        )
        if isinstance(column.get("values"), list):
            bad = cells - {str(value) for value in column["values"]}
        elif isinstance(column.get("bounds"), list):
            lower, upper = column["bounds"]
            bad = {cell for cell in cells if not lower <= int(cell) <= upper}
        else:
            bad = set()
        if bad:
            found[name] = bad
    return found


def frame_of(name: str) -> pd.DataFrame:
    if name == "adult":
        return datasets.load_adult()
    return pd.read_csv(shared(f"{name}.csv.gz"), dtype=str, na_filter=False)


@pytest.mark.parametrize("name", SCHEMAS)
def test_real_rows_lie_in_the_declared_domain(name: str) -> None:
    schema = yaml.safe_load(SCHEMAS[name].read_text())
    frame = frame_of(name)
    assert list(schema["columns"]) == list(frame.columns)
    assert outside(frame, schema) == {}


def test_adult_test_split_lies_in_the_declared_domain_too() -> None:
    frame = pd.read_csv(shared("adult_test.csv.gz"), dtype=str, na_filter=False)
    assert outside(frame, yaml.safe_load(SCHEMAS["adult"].read_text())) == {}


def test_a_cell_outside_the_domain_would_be_noticed() -> None:
    schema = yaml.safe_load(SCHEMAS["adult"].read_text())
    frame = datasets.load_adult().head(20)
    frame.loc[3, "age"] = 16
    frame.loc[4, "sex"] = "?"
    assert outside(frame, schema) == {"age": {"16"}, "sex": {"?"}}


def test_adult_education_is_its_number() -> None:
    schema = yaml.safe_load(SCHEMAS["adult"].read_text())
    assert schema["constraints"] == [{"equal": ["education", "education-num"]}]
    number = {level: place for place, level in enumerate(schema["columns"]["education"]["values"], start=1)}
    frame = datasets.load_adult()
    assert (frame["education"].map(number) == frame["education-num"]).all()


@pytest.mark.parametrize(("name", "spent"), [("adult", 0.10), ("mushroom", 0.0), ("diabetes130", 0.30)])
def test_schemas_buy_little(name: str, spent: float) -> None:
    def bought(value: object) -> float:
        if isinstance(value, dict):
            return value["learn"] if "learn" in value else sum(map(bought, value.values()))
        return 0.0

    assert bought(yaml.safe_load(SCHEMAS[name].read_text())) == pytest.approx(spent)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_complete(name: str) -> None:
    """Nothing is undeclared, so a plan can be made at once."""
    from doublure.schema import Schema

    schema = Schema.load(SCHEMAS[name])
    assert [path for path in str(schema.model_dump()).split("'") if path == "undeclared"] == []
    targets = [name for name, column in schema.columns.items() if "target" in column.roles]
    assert targets == [{"adult": "income", "mushroom": "class", "diabetes130": "readmitted"}[name]]


def test_diabetes_codes_are_those_of_the_mapping() -> None:
    columns = yaml.safe_load(SCHEMAS["diabetes130"].read_text())["columns"]
    mapping: dict[str, list[int]] = {}
    with gzip.open(shared("diabetes130_IDs_mapping.csv.gz"), "rt") as source:
        for row in csv.reader(source):
            if row and row[0].endswith("_id"):
                codes = mapping.setdefault(row[0], [])
            elif row and row[0]:
                codes.append(int(row[0]))
    assert len(mapping) == 3
    assert {name: sorted(columns[name]["values"]) for name in mapping} == {k: sorted(v) for k, v in mapping.items()}


def test_codebook_says_what_the_schema_says() -> None:
    columns = yaml.safe_load(SCHEMAS["adult"].read_text())["columns"]
    with datasets.adult_codebook_path().open(newline="") as source:
        rows = list(csv.DictReader(source))
    assert list(rows[0]) == ["column", "type", "values", "lower", "upper", "missing", "description"]
    assert [row["column"] for row in rows] == list(columns)
    for row in rows:
        column = columns[row["column"]]
        assert row["type"] == column["type"]
        assert row["values"] == "|".join(column.get("values", []))
        bounds = column.get("bounds")
        assert [row["lower"], row["upper"]] == ([str(b) for b in bounds] if isinstance(bounds, list) else ["", ""])
        assert row["missing"] == ("?" if column["missing"] == ["?"] else "false")
        assert row["description"]


# --- the registry -------------------------------------------------------------------------------------------------


def test_registry_names_what_it_should() -> None:
    assert datasets.names() == [
        *("adult", "mushroom", "mnist", "fashion-mnist", "svhn", "cifar-10", "celeba", "daiad-water", "ettm1"),
    ]
    for name in datasets.names():
        entry = datasets.info(name)
        assert entry.licence
        assert entry.citation
        assert entry.licence_url.startswith("http")
        assert entry.homepage.startswith("http")
        for file in entry.files:
            assert len(file.sha256) == 64
            assert set(file.sha256) <= set("0123456789abcdef")
            assert file.bytes > 0
            assert file.split in {"all", *entry.splits}
            assert not file.name.endswith((".pkl", ".pickle"))
    assert datasets.info("mnist").rows == 70_000
    assert [name for name in datasets.names() if datasets.info(name).bundled] == ["adult"]


def test_unknown_names_and_splits_are_refused() -> None:
    with pytest.raises(SettingError, match="use one of: adult, mushroom"):
        datasets.info("imagenet")
    with pytest.raises(SettingError, match="choose train or test"):
        datasets.load("mnist", "dev")
    with pytest.raises(SettingError, match="at least 1"):
        datasets.load("adult", limit=0)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "C:x"])
def test_a_file_name_stays_in_its_folder(name: str) -> None:
    with pytest.raises(SettingError, match="plain file name"):
        RemoteFile(name=name, url="https://example.org/x", sha256="0" * 64, bytes=1)


def test_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOUBLURE_DATA", str(tmp_path / "here"))
    assert datasets.data_folder() == tmp_path / "here"
    monkeypatch.delenv("DOUBLURE_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder() == tmp_path / "doublure"


# --- downloads ----------------------------------------------------------------------------------------------------

CONTENT = b"two rows of nothing in particular\n" * 100


class _Handler(http.server.BaseHTTPRequestHandler):
    """``/good`` is whole, ``/short`` breaks off, ``/long`` goes on, ``/other`` is something else, the rest is 404."""

    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        body = {
            "/good": CONTENT,
            "/short": CONTENT[:500],
            "/long": CONTENT + b"!",
            "/other": CONTENT[::-1],
        }.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/long":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    _Handler.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def described(*urls: str, name: str = "tiny", content: bytes = CONTENT, **more: object) -> datasets.DatasetInfo:
    """A data set of one file."""
    file = RemoteFile(
        name="file.bin",
        url=urls[0],
        mirrors=urls[1:],
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        **more,  # type: ignore[arg-type]
    )
    return dataclasses.replace(datasets.info("mnist"), name=name, files=(file,))


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_good_download_is_kept_and_not_repeated(server: str, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    entry = described(f"{server}/good")
    place = datasets.fetch(entry, folder=tmp_path, progress=lambda *step: seen.append(step))
    assert place == tmp_path / "tiny"
    assert (place / "file.bin").read_bytes() == CONTENT
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert left(tmp_path) == ["file.bin"]
    datasets.fetch(entry, folder=tmp_path)
    assert _Handler.asked == ["/good"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/other", "another checksum"),
        ("/short", "ended after 500 of 3,400 bytes"),
        ("/long", "longer than the published 3,400 bytes"),
        ("/nowhere", "answered 404"),
    ],
)
def test_a_bad_download_leaves_nothing(server: str, tmp_path: Path, path: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        datasets.fetch(described(server + path), folder=tmp_path)
    line = str(caught.value)
    assert line.startswith("tiny: file.bin is not there and could not be downloaded")
    assert reason in line
    assert "\n" not in line
    assert hashlib.sha256(CONTENT).hexdigest() in line
    assert str(tmp_path / "tiny") in line
    assert left(tmp_path) == []


def test_offline_is_one_line(server: str, tmp_path: Path) -> None:
    refused = "http://127.0.0.1:1/file.bin"
    with pytest.raises(DataError, match=r"tiny: .*refused.*go online, or put file\.bin") as caught:
        datasets.fetch(described(refused), folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.__cause__ is None


def test_a_name_that_does_not_resolve_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def unresolved(*args: object, **more: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    for variable in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(DataError, match=r"mushroom: .*not known.*or agaricus-lepiota\.data from it"):
        datasets.load("mushroom", folder=tmp_path)


def test_mirrors_are_tried_in_order(server: str, tmp_path: Path) -> None:
    datasets.fetch(described(f"{server}/nowhere", f"{server}/other", f"{server}/good"), folder=tmp_path)
    assert _Handler.asked == ["/nowhere", "/other", "/good"]
    assert left(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("there", [CONTENT[:1000], CONTENT[::-1]], ids=["broken off", "of the right size"])
def test_what_is_there_is_not_trusted(server: str, tmp_path: Path, there: bytes) -> None:
    place = tmp_path / "tiny" / "file.bin"
    place.parent.mkdir()
    place.write_bytes(there)
    with pytest.raises(DataError, match="is there with another checksum"):
        datasets.fetch(described(f"{server}/nowhere"), folder=tmp_path)
    assert place.read_bytes() == there
    datasets.fetch(described(f"{server}/good"), folder=tmp_path)
    assert place.read_bytes() == CONTENT


def test_a_file_put_there_by_hand_needs_no_network(tmp_path: Path) -> None:
    place = tmp_path / "tiny" / "file.bin"
    place.parent.mkdir()
    place.write_bytes(CONTENT)
    entry = described("https://example.org/page", by_hand=True)
    assert datasets.fetch(entry, folder=tmp_path) == place.parent
    place.unlink()
    with pytest.raises(DataError, match=r"by hand; follow https://example\.org/page and put file\.bin"):
        datasets.fetch(entry, folder=tmp_path)


def test_celeba_names_every_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="by hand") as caught:
        datasets.load("celeba", "valid", folder=tmp_path)
    for file in datasets.info("celeba").files:
        assert file.name in str(caught.value)


def test_only_http_is_spoken(tmp_path: Path) -> None:
    source = tmp_path / "secret"
    source.write_bytes(CONTENT)
    with pytest.raises(DataError, match="neither http nor https"):
        datasets.fetch(described(source.as_uri()), folder=tmp_path / "data")
    assert left(tmp_path / "data") == []


def test_a_full_disk_is_seen_before_the_download(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(DataError, match="room for 0; free some space"):
        datasets.fetch(described(f"{server}/good"), folder=tmp_path)
    assert _Handler.asked == []


def test_a_disk_that_fails_is_not_called_a_network(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="cannot be written \\(No space left on device\\)"):
        datasets.fetch(described(f"{server}/good"), folder=tmp_path)
    assert left(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be made"):
        datasets.fetch(described("http://127.0.0.1:1/x"), folder=tmp_path / "file")


def test_an_interrupted_download_leaves_nothing(server: str, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datasets.fetch(described(f"{server}/good"), folder=tmp_path, progress=stop)
    assert left(tmp_path) == []


def test_optional_files_wait_to_be_asked_for(tmp_path: Path) -> None:
    entry = placed("svhn", {f"{split}_32x32.mat": mat(digits()) for split in ("train", "test", "extra")}, tmp_path)
    files = tuple(dataclasses.replace(file, url="http://127.0.0.1:1/x") for file in entry.files)
    entry = dataclasses.replace(entry, files=files)
    (tmp_path / "svhn" / "extra_32x32.mat").unlink()
    assert datasets.fetch(entry, folder=tmp_path) == tmp_path / "svhn"
    with pytest.raises(DataError, match=r"extra_32x32\.mat"):
        datasets.fetch(entry, folder=tmp_path, splits=["extra"])


# --- readers ------------------------------------------------------------------------------------------------------


def placed(name: str, contents: dict[str, bytes], folder: Path, **members: ArchiveMember) -> datasets.DatasetInfo:
    """Put files where a data set's own would be, and describe them under its name."""
    entry = datasets.info(name)
    files = []
    (folder / name).mkdir(parents=True)
    for file in entry.files:
        if file.name in contents:
            content = contents[file.name]
            (folder / name / file.name).write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            inside = tuple(members.values()) or file.members
            files.append(dataclasses.replace(file, sha256=digest, bytes=len(content), members=inside))
    return dataclasses.replace(entry, files=tuple(files))


def zipped(contents: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return sink.getvalue()


def test_mushroom_from_its_published_file(tmp_path: Path) -> None:
    """The real checksum is met, and the file may lie there without its archive."""
    frame = pd.read_csv(shared("mushroom.csv.gz"), na_filter=False)
    body = gzip.decompress(shared("mushroom.csv.gz").read_bytes()).split(b"\n", 1)[1]
    (tmp_path / "mushroom").mkdir()
    (tmp_path / "mushroom" / "agaricus-lepiota.data").write_bytes(body)
    loaded = datasets.load("mushroom", folder=tmp_path)
    pd.testing.assert_frame_equal(loaded, frame)


def test_adult_test_split_from_its_published_file(tmp_path: Path) -> None:
    path = shared("adult_test.csv.gz")
    rows = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    body = "|1x3 Cross validator\n" + "".join(row.replace(",", ", ") + ".\n" for row in rows) + "\n"
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.test").write_bytes(body.encode())
    loaded = datasets.load_adult("test", folder=tmp_path)
    pd.testing.assert_frame_equal(loaded, pd.read_csv(path, na_filter=False))
    assert loaded["income"].value_counts().to_dict() == {"<=50K": 12_435, ">50K": 3_846}
    assert list(datasets.load_adult().dtypes) == list(loaded.dtypes)


def test_a_table_is_read_out_of_its_archive(tmp_path: Path) -> None:
    body = b"p,x,s\ne,b,?\n"
    member = ArchiveMember(
        path="inside/agaricus-lepiota.data", bytes=len(body), sha256=hashlib.sha256(body).hexdigest()
    )
    archive = zipped({"../evil": b"outside", "inside/agaricus-lepiota.data": body})
    entry = placed("mushroom", {"mushroom.zip": archive}, tmp_path, member=member)
    frame = datasets.load(dataclasses.replace(entry, columns=("class", "cap-shape", "cap-surface")), folder=tmp_path)
    assert frame.to_numpy().tolist() == [["p", "x", "s"], ["e", "b", "?"]]
    assert left(tmp_path) == ["mushroom.zip"]  # nothing was unpacked, here or elsewhere


@pytest.mark.parametrize("inside", [{"else": b"x"}, {"agaricus-lepiota.data": b"another"}])
def test_an_archive_without_the_member_is_one_line(tmp_path: Path, inside: dict[str, bytes]) -> None:
    entry = placed("mushroom", {"mushroom.zip": zipped(inside)}, tmp_path)
    with pytest.raises(DataError, match="not of the form"):
        datasets.load(entry, folder=tmp_path)


def test_water_meters_from_their_published_form(tmp_path: Path) -> None:
    """Moments become moments; the name, the semicolons and the rest are the publisher's."""
    body = b"user key;datetime;meter reading;diff\nm1;01/03/2016 00:28:55;68321;10\nm1;31/03/2016 23:59:59;68325;4\n"
    member = ArchiveMember(path="swm_trialA.csv", bytes=len(body), sha256=hashlib.sha256(body).hexdigest())
    entry = placed("daiad-water", {"swm_trialA.zip": zipped({"swm_trialA.csv": body})}, tmp_path, member=member)
    frame = datasets.load(entry, folder=tmp_path)
    assert list(frame.columns) == ["meter", "time", "reading", "litres"]
    assert frame["time"].astype(str).tolist() == ["2016-03-01 00:28:55", "2016-03-31 23:59:59"]
    assert len(datasets.load(entry, folder=tmp_path, limit=1)) == 1


def test_transformer_readings_from_their_published_file(tmp_path: Path) -> None:
    (tmp_path / "ettm1").mkdir()
    (tmp_path / "ettm1" / "ETTm1.csv").write_bytes(gzip.decompress(shared("ETTm1.csv.gz").read_bytes()))
    frame = datasets.load("ettm1", folder=tmp_path)  # the checksum is the published one
    assert frame.shape == (69_680, 8)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(header + array.tobytes())


def test_idx_images(tmp_path: Path) -> None:
    images = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
    labels = np.array([7, 0, 9], dtype=np.uint8)
    contents = {"train-images-idx3-ubyte.gz": idx(images), "train-labels-idx1-ubyte.gz": idx(labels)}
    loaded = datasets.load(placed("mnist", contents, tmp_path), folder=tmp_path)
    np.testing.assert_array_equal(loaded["x"], images[..., None])
    np.testing.assert_array_equal(loaded["y"], [7, 0, 9])
    assert (loaded["x"].dtype, loaded["y"].dtype) == (np.uint8, np.int64)


BROKEN = {
    "cut off": idx(np.zeros((3, 4, 5), np.uint8))[:-9],
    "empty": gzip.compress(b""),
    "of floats": gzip.compress(bytes([0, 0, 13, 1, 0, 0, 0, 3])),
    "too short": gzip.compress(bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2])),
    "too long": gzip.compress(bytes([0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4])),
    "no images": gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3])),
    "not gzip": b"not gzip",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_idx_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    contents = {"train-images-idx3-ubyte.gz": content, "train-labels-idx1-ubyte.gz": idx(np.zeros(3, np.uint8))}
    with pytest.raises(DataError, match="mnist: a file is not of the form"):
        datasets.load(placed("mnist", contents, tmp_path), folder=tmp_path)


def digits() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)


def mat(images: np.ndarray) -> bytes:
    """Return SVHN's form of images of 0, 1, 2 and 9."""
    import scipy.io

    sink = io.BytesIO()
    scipy.io.savemat(sink, {"X": images.transpose(1, 2, 3, 0), "y": np.array([[10], [1], [2], [9]], np.uint8)})
    return sink.getvalue()


def test_svhn(tmp_path: Path) -> None:
    images = digits()
    entry = placed("svhn", {"train_32x32.mat": mat(images)}, tmp_path)
    loaded = datasets.load(entry, folder=tmp_path, limit=3)
    np.testing.assert_array_equal(loaded["x"], images[:3])
    np.testing.assert_array_equal(loaded["y"], [0, 1, 2])
    assert left(tmp_path) == ["train_32x32.mat"]


def read_by_fit(path: Path, name: str) -> Any:
    """Return the images of a file as the example's schema of a data set has them."""
    from doublure.data.images import open_images
    from doublure.schema import Schema

    return open_images(path).load(Schema.load(ROOT / "examples" / "schemas" / f"{name}.schema.yaml")).content


def test_svhn_is_fetched_as_what_fit_reads(tmp_path: Path) -> None:
    contents = {"train_32x32.mat": mat(digits()), "test_32x32.mat": mat(digits()[::-1])}
    entry = placed("svhn", contents, tmp_path)
    entry = dataclasses.replace(entry, files=tuple(file for file in entry.files if not file.optional))
    for _ in range(2):  # whatever lies in its place is written anew
        place = datasets.fetch(entry, folder=tmp_path)
        assert left(tmp_path) == ["test.npz", "test_32x32.mat", "train.npz", "train_32x32.mat"]
        found = read_by_fit(place / "train.npz", "svhn")
        np.testing.assert_array_equal(found.images, digits())
        assert found.labels.astype(int).tolist() == [0, 1, 2, 9]
        np.testing.assert_array_equal(read_by_fit(place / "test.npz", "svhn").images, digits()[::-1])
        (place / "train.npz").write_bytes(b"something else")


def test_cifar10_comes_from_the_binary_archive(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(6, dtype=np.uint8)
    records = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(6, -1)], axis=1)
    members = {
        f"m{place}": ArchiveMember(path=f"cifar-10-batches-bin/{name}", bytes=2 * 3073, split=split)
        for place, (name, split) in enumerate([("one.bin", "train"), ("two.bin", "train"), ("test.bin", "test")])
    }
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        for name, content in [
            ("../../evil.bin", b"outside"),
            ("cifar-10-batches-bin/two.bin", records[2:4].tobytes()),  # not in the order of the description
            ("cifar-10-batches-bin/one.bin", records[:2].tobytes()),
            ("cifar-10-batches-bin/test.bin", records[4:].tobytes()),
        ]:
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    entry = placed("cifar-10", {"cifar-10-binary.tar.gz": sink.getvalue()}, tmp_path, **members)
    train = datasets.load(entry, folder=tmp_path)
    np.testing.assert_array_equal(train["x"], images[:4])
    np.testing.assert_array_equal(train["y"], [0, 1, 2, 3])
    np.testing.assert_array_equal(datasets.load(entry, "test", folder=tmp_path)["y"], [4, 5])
    assert left(tmp_path) == ["cifar-10-binary.tar.gz"]


COLOURS = [(250, 0, 0), (0, 250, 0), (0, 0, 250)]


def celeba(folder: Path) -> datasets.DatasetInfo:
    """Put three pictures in the publisher's form, each with a middle of one colour."""
    from PIL import Image

    pictures = {}
    for place, colour in enumerate(COLOURS, start=1):
        picture = Image.new("RGB", (178, 218), (9, 9, 9))
        picture.paste(colour, (25, 45, 153, 173))
        sink = io.BytesIO()
        picture.save(sink, "PNG")  # exact; the reader goes by content
        pictures[f"img_align_celeba/00000{place}.jpg"] = sink.getvalue()
    contents = {
        "img_align_celeba.zip": zipped(pictures),
        "list_eval_partition.txt": b"000001.jpg 0\n000002.jpg 1\n000003.jpg 0\n",
        "list_attr_celeba.txt": b"3\nMale Smiling \n000001.jpg -1  1\n000002.jpg  1  1\n000003.jpg  1 -1\n",
    }
    return placed("celeba", contents, folder)


def test_celeba(tmp_path: Path) -> None:
    entry = celeba(tmp_path)
    loaded = datasets.load(entry, folder=tmp_path)
    assert loaded["x"].shape == (2, 48, 48, 3)
    assert (loaded["x"] == np.array([COLOURS[0], COLOURS[2]])[:, None, None]).all()
    np.testing.assert_array_equal(loaded["y"], [[0, 1], [1, 0]])
    assert loaded["names"].tolist() == ["Male", "Smiling"]
    assert len(datasets.load(entry, "valid", folder=tmp_path)["x"]) == 1


def test_celeba_is_fetched_as_what_fit_reads(tmp_path: Path) -> None:
    place = datasets.fetch(celeba(tmp_path), folder=tmp_path)
    assert [path.name for path in sorted(place.glob("*.npz"))] == ["test.npz", "train.npz", "valid.npz"]
    found = read_by_fit(place / "train.npz", "celeba")
    assert (found.images == np.array([COLOURS[0], COLOURS[2]])[:, None, None]).all()
    assert found.labels.astype(str).tolist() == ["0 1", "1 0"]


def svhn_in_small(folder: Path) -> datasets.DatasetInfo:
    """Put forty house numbers for training and ten for tests in the publisher's form."""
    import scipy.io

    contents = {}
    for split, number in (("train", 40), ("test", 10)):
        images = np.random.default_rng(number).integers(0, 256, (number, 32, 32, 3), dtype=np.uint8)
        sink, labels = io.BytesIO(), (np.arange(number) % 10 + 1).astype(np.uint8)[:, None]  # the publisher's 10 is a 0
        scipy.io.savemat(sink, {"X": images.transpose(1, 2, 3, 0), "y": labels})
        contents[f"{split}_32x32.mat"] = sink.getvalue()
    entry = placed("svhn", contents, folder)
    return dataclasses.replace(entry, files=tuple(file for file in entry.files if not file.optional))


def celeba_in_small(folder: Path) -> datasets.DatasetInfo:
    """Put thirty portraits for training and ten for tests in the publisher's form."""
    from PIL import Image

    rng = np.random.default_rng(3)
    pictures, parts, marks = {}, [], []
    for place in range(1, 41):
        sink = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (218, 178, 3), dtype=np.uint8)).save(sink, "PNG")
        pictures[f"img_align_celeba/{place:06}.jpg"] = sink.getvalue()
        parts.append(f"{place:06}.jpg {0 if place <= 30 else 2}\n")
        marks.append(f"{place:06}.jpg {-1 if place % 3 else 1} {1 if place % 2 else -1}\n")
    contents = {
        "img_align_celeba.zip": zipped(pictures),
        "list_eval_partition.txt": "".join(parts).encode(),
        "list_attr_celeba.txt": ("40\nMale Smiling \n" + "".join(marks)).encode(),
    }
    return placed("celeba", contents, folder)


@pytest.mark.parametrize(("name", "made"), [("svhn", svhn_in_small), ("celeba", celeba_in_small)])
def test_a_row_of_the_papers_follows_from_the_publishers_files(
    name: str, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``datasets fetch`` and then 2019's row (F in docs/evidence/papers.md), on small originals and with few steps."""
    entry = made(tmp_path)
    assert datasets.fetch(entry, folder=tmp_path) == tmp_path / name
    monkeypatch.setenv("DOUBLURE_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "_registry", lambda: {name: entry})
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for module in ("images", "real_images", "results", "fits", "bayesian_rows", "tuning", "lines", "peers"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    images, fits, results, real = (importlib.import_module(m) for m in ("images", "fits", "results", "real_images"))
    monkeypatch.setattr(fits, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(results, "MEASURED", tmp_path / "measured")
    monkeypatch.setattr(real, "SHARED", tmp_path / "nothing")
    tiny = [
        "steps=4",
        "lot_size=8",
        "channels=[4]",
        "critic_channels=[4]",
        "features=4",
        "noise_width=4",
        "recipe=doublure",
    ]
    asked = [
        "run",
        "--data",
        name,
        "--method",
        "noisecritic",
        "--seeds",
        "0",
        "--samples",
        "40",
        "--students",
        "logistic",
    ]
    options = images.arguments([*asked, "--set", *tiny])
    results.measure("images", images.cases(options))
    (row,) = results.finished("images")
    assert row["cell"][:2] == [name, "noisecritic"]
    assert 0 <= row["students"]["logistic"] <= 1
    results.measure("images", images.cases(options))  # a finished row is not made again
    assert len(results.finished("images")) == 1


# --- series -------------------------------------------------------------------------------------------------------

# schema -> (shared file, names of its arrays where they are others, whole series, share of values inside the bounds)
SERIES = {
    "daiad-water": ("daiad_water_hourly_derived.npz", {"user": "meter", "date": "time"}, 19_317, 0.998),
    "london-power": ("london_smart_meter_2013.npz", {}, 34_691, 1.0),
    "ettm1": ("ETTm1.csv.gz", {}, 725, 1.0),
    "ecg200": ("ucr_ECG200.npz#train", {}, 100, 1.0),
    "powercons": ("ucr_PowerCons.npz#train", {}, 180, 1.0),
    "simbench-load": ("simbench_load_15min_2016.npz", {}, 27 * 366, 1.0),
}


@pytest.mark.parametrize("name", SERIES)
def test_real_series_fit_their_schema(name: str) -> None:
    from doublure.data.series import open_series
    from doublure.schema import Schema

    file, names, count, inside = SERIES[name]
    path = shared(file.partition("#")[0])
    schema = Schema.load(ROOT / "examples" / "schemas" / f"{name}.schema.yaml")
    data: object = path.with_name(file)
    if names:
        with np.load(path, allow_pickle=False) as arrays:
            data = {names.get(key, key): np.floor(arrays[key]) if key == "litres" else arrays[key] for key in arrays}
    found = open_series(data).load(schema).content
    assert len(found) == count
    assert schema.undeclared == ()
    for channel, facts in schema.channels.items():
        values = found.channel(channel)
        assert ((values >= facts.bounds[0]) & (values <= facts.bounds[1])).mean() >= inside


def test_the_demos_files_are_written_once_and_never_over_others(tmp_path):
    from doublure.datasets.demo import FILES

    assert [path.name for path in datasets.demo_files(tmp_path / "here")] == list(FILES)
    before = {name: (tmp_path / "here" / name).read_bytes() for name in FILES}
    assert datasets.demo_files(tmp_path / "here") == ()
    train, kept = datasets.demo_split()
    assert pd.read_csv(tmp_path / "here" / "adult.csv", na_filter=False).equals(train)
    assert pd.read_csv(tmp_path / "here" / "kept.csv", na_filter=False).equals(kept)
    (tmp_path / "here" / "kept.csv").unlink()
    (tmp_path / "here" / "adult.schema.yaml").write_text("mine")
    with pytest.raises(InputError, match="is there already and is not the demo's"):
        datasets.demo_files(tmp_path / "here")
    assert not (tmp_path / "here" / "kept.csv").exists()
    (tmp_path / "here" / "adult.schema.yaml").write_bytes(before["adult.schema.yaml"])
    assert [path.name for path in datasets.demo_files(tmp_path / "here")] == ["kept.csv"]
    assert {name: (tmp_path / "here" / name).read_bytes() for name in FILES} == before
