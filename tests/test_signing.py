"""Keys and signatures of releases: made once, kept apart from what is published, and accepted by their name alone."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import planting
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import GateFailed, InputError, LedgerError, SettingError
from doublure.releasing import bundle as releasing
from doublure.releasing import signing
from doublure.releasing.generator import publish


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("mine", "theirs"):
        signing.new_keys(folder / name)
    return folder


@pytest.fixture(scope="module")
def signed(small, keys, tmp_path_factory):
    """Return a signed bundle and its ledger; they are only read, or copied."""
    folder = tmp_path_factory.mktemp("signed")
    run, ledger = small.copies(folder)
    made = db.release(db.load(run), folder / "bundle", n=20, seed=1, sign=keys / "mine", progress=False)
    assert made.files[-1].name == "SIGNATURE"
    return folder / "bundle", ledger


@pytest.fixture
def mine(signed, tmp_path):
    return Path(shutil.copytree(signed[0], tmp_path / "bundle"))


def said(words, capsys):
    code = run_guarded(app, [str(word) for word in words])
    found = capsys.readouterr()
    return code, " ".join((found.out + found.err).split())


# -- keys ------------------------------------------------------------------------------------------------------------


def test_a_private_key_is_its_owner_s_alone_and_both_are_plain_pem(tmp_path, capsys):
    code, text = said(["keys", "new", "-o", tmp_path / "k"], capsys)
    assert code == 0
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    private = load_pem_private_key((tmp_path / "k").read_bytes(), None)
    public = load_pem_public_key((tmp_path / "k.pub").read_bytes())
    assert private.public_key() == public
    assert signing.spelt(signing.key_fingerprint(public)) in text
    assert "PRIVATE" not in (tmp_path / "k.pub").read_text() + text


@pytest.mark.parametrize("there", ["k", "k.pub"])
def test_no_key_is_written_over(tmp_path, there, capsys):
    (tmp_path / there).write_text("precious")
    code, text = said(["keys", "new", "-o", tmp_path / "k"], capsys)
    assert (code, "never written over" in text) == (2, True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("name", ["card.json", "run.json"])
def test_no_key_is_made_in_what_is_published_or_kept(tmp_path, name):
    (tmp_path / name).write_text("{}")
    (tmp_path / "deeper").mkdir()
    for place in (tmp_path / "k", tmp_path / "deeper" / "k"):
        with pytest.raises(InputError, match="would lie in a bundle or a run folder"):
            signing.new_keys(place)
    assert not list((tmp_path / "deeper").iterdir())


def foreign(tmp_path):
    other = ec.generate_private_key(ec.SECP256R1())
    pem = {
        "a curve": other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "a curve.pub": other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "encrypted": other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")),
        "text": b"secret",
        "large": b"-" * 20_000,
    }
    for name, content in pem.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "what"),
    [("mine.pub", "is a public key"), ("a curve", "no Ed25519 key"), ("encrypted", "is an encrypted key"),
     ("text", "no key in PEM"), ("large", "too large"), ("none", "no such file")],
)  # fmt: skip
def test_only_a_private_key_signs_and_is_read_before_anything_is_made(small, keys, tmp_path, name, what):
    run, ledger = small.copies(tmp_path)
    before = ledger.read_bytes()
    path = keys / name if name.startswith("mine") else foreign(tmp_path) / name
    for way in (lambda: db.release(db.load(run), tmp_path / "bundle", n=5, sign=path),
                lambda: publish(db.load(run), tmp_path / "bundle", sign=path)):  # fmt: skip
        with pytest.raises(InputError, match=what) as caught:
            way()
        assert str(path).endswith(str(caught.value.field).removeprefix("…"))  # a long path is cut
        assert caught.value.remedy
    assert not (tmp_path / "bundle").exists()
    assert ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "what"),
    [("mine", "is a private key"), ("a curve.pub", "no Ed25519 key"), ("encrypted", "is a private key"),
     ("text", "no key in PEM"), ("none", "no such file")],
)  # fmt: skip
def test_only_a_public_key_verifies(signed, keys, tmp_path, name, what):
    path = keys / name if name == "mine" else foreign(tmp_path) / name
    with pytest.raises(InputError, match=what) as caught:
        db.verify(signed[0], key=path)
    assert caught.value.exit_code == 2


def test_a_key_in_the_folder_that_is_released_is_refused(small, tmp_path):
    run, _ = small.copies(tmp_path)
    (tmp_path / "bundle").mkdir()
    signing.new_keys(tmp_path / "bundle" / "k")
    (tmp_path / "link").symlink_to(tmp_path / "bundle" / "k")
    for key in (tmp_path / "bundle" / "k", tmp_path / "link"):
        with pytest.raises(InputError):
            db.release(db.load(run), tmp_path / "bundle", n=5, sign=key)
        with pytest.raises(InputError, match="lies in the folder that is released"):
            signing.signing_key(key, tmp_path / "bundle")


# -- signatures ------------------------------------------------------------------------------------------------------


def test_only_the_given_key_is_accepted(signed, keys, capsys):
    bundle, ledger = signed
    mine, theirs = keys / "mine.pub", keys / "theirs.pub"
    own = signing.spelt(signing.key_fingerprint(signing.verifying_key(mine)))
    code, text = said(["verify", bundle], capsys)
    assert code == 0
    assert f"signed by an unknown key, {own}" in text
    assert "who wrote the card is not checked: compare this fingerprint with the publisher's" in text
    code, text = said(["verify", bundle, "--key", mine], capsys)
    assert (code, f"signed by the given key, {own}" in text, "not checked" in text) == (0, True, False)
    code, text = said(["verify", bundle, "--key", theirs], capsys)
    assert (code, "by another key than the given one" in text, own in text) == (4, True, True)
    code, text = said(["verify", bundle, "--ledger", ledger, "--key", theirs], capsys)
    assert code == 4


def test_the_fingerprint_that_is_printed_is_the_one_that_is_found(small, keys, tmp_path, capsys):
    run, _ = small.copies(tmp_path)
    for words in (["-n", "5"], ["--generator"]):
        out = tmp_path / words[0].strip("-")
        asked = ["release", run, *words, "-o", out, "--sign", keys / "mine", "--json"]
        assert run_guarded(app, [str(word) for word in asked]) == 0
        told = json.loads(capsys.readouterr().out)["result"]
        assert run_guarded(app, ["verify", str(out), "--json", "--key", str(keys / "mine.pub")]) == 0
        found = json.loads(capsys.readouterr().out)["result"]
        assert found == db.verify(out, key=keys / "mine.pub")
        assert told["fingerprint"] == found["fingerprint"]
        assert found["signature"] == {"key": told["signed_by"], "known": True}


def test_only_a_bundle_of_the_given_fingerprint_is_accepted(signed, capsys):
    bundle, _ = signed
    own = db.verify(bundle)["fingerprint"]
    code, text = said(["verify", bundle, "--fingerprint", signing.spelt(own).upper()], capsys)
    assert code == 0
    assert "its fingerprint is the one that was given" in text
    other = own[:-1] + ("0" if own[-1] != "0" else "1")
    with pytest.raises(GateFailed, match="and not the one that was given"):
        db.verify(bundle, fingerprint=other)
    for none in ("", own[:12], "x" * 64):
        with pytest.raises(SettingError, match="is no SHA-256"):
            db.verify(bundle, fingerprint=none)


def test_a_bundle_without_a_signature_passes_for_no_key(signed, keys, mine):
    (mine / "SIGNATURE").unlink()
    db.verify(mine)
    db.verify(mine, ledger=signed[1])
    with pytest.raises(GateFailed, match="is not signed"):
        db.verify(mine, key=keys / "mine.pub")


def broken(text, card):
    head, key, signature = text.splitlines()
    return {
        "nothing": "",
        "a line more": text + "Smith\n",
        "a space more": text.replace(": ", ":  "),
        "no key": f"{head}\npublic-key: AAAA\n{signature}\n",
        "no base64": f"{head}\n{key}\nsignature: !\n",
        "another version": text.replace("signature: 1", "signature: 2", 1),  # a signature in base64 may begin with 1
        "of something else": f"{head}\n{key}\nsignature: {'A' * 86}==\n",
    }


@pytest.mark.parametrize("how", broken("a\nb\nc", b""))
def test_a_signature_that_is_none_is_found_by_everybody(signed, keys, mine, how):
    path = mine / "SIGNATURE"
    path.write_text(broken(path.read_text(), mine)[how])
    for told in ({}, {"ledger": signed[1]}, {"key": keys / "mine.pub"}):
        with pytest.raises(GateFailed) as caught:
            db.verify(mine, **told)
        assert caught.value.field == "SIGNATURE"


def test_no_key_is_written_into_a_bundle_through_a_link(tmp_path):
    (tmp_path / "bundle" / "tables").mkdir(parents=True)
    (tmp_path / "bundle" / "card.json").write_text("{}")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "bundle" / "tables")
    with pytest.raises(InputError, match="would lie in a bundle"):
        signing.new_keys(tmp_path / "elsewhere" / "mine")
    assert not any((tmp_path / "bundle" / "tables").iterdir())


def test_the_text_of_a_key_given_as_its_path_is_not_printed(tmp_path):
    signing.new_keys(tmp_path / "mine")
    text = (tmp_path / "mine").read_text()
    for read in (signing.verifying_key, lambda given: signing.signing_key(given, tmp_path / "out")):
        with pytest.raises(InputError, match="text of a key") as caught:
            read(text)
        assert text.splitlines()[1] not in str(caught.value)


def test_a_card_that_was_changed_does_not_fit_its_signature(keys, mine):
    card = mine / "card.json"
    card.write_text(card.read_text() + "\n")
    for told in ({}, {"key": keys / "mine.pub"}):
        with pytest.raises(GateFailed, match="does not fit"):
            db.verify(mine, **told)


def test_a_link_or_a_listed_signature_is_none(keys, mine, tmp_path):
    (mine / "SIGNATURE").rename(tmp_path / "elsewhere")
    (mine / "SIGNATURE").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GateFailed, match="is a link"):
        db.verify(mine)


@pytest.mark.parametrize(
    ("name", "edit", "key"),
    [
        ("check_signature", ("found != key_fingerprint(wanted)", "False"), "theirs.pub"),
        ("check_signature", ("made_by.verify(signature, card)", "None"), "mine.pub"),
        ("_read", ("_written(made_by, found).encode() != content", "False"), "mine.pub"),
    ],
)
def test_a_check_that_is_left_out_is_missed(keys, mine, monkeypatch, name, edit, key):
    told = {"key": keys / key}
    if key == "mine.pub":
        other = broken((mine / "SIGNATURE").read_text(), mine)
        (mine / "SIGNATURE").write_text(other["of something else" if name == "check_signature" else "another version"])
    with pytest.raises(GateFailed):
        db.verify(mine, **told)
    planting.plant(monkeypatch, signing, name, edit)
    db.verify(mine, **told)


# -- the generator that the ledger knows -----------------------------------------------------------------------------


def swapped(small, tmp_path):
    """Return a run that holds the generator of a fit of other data, with its hash in ``run.json``, and its ledger."""
    run, ledger = small.copies(tmp_path)
    book = small.book(tmp_path / "other") if (tmp_path / "other").mkdir() is None else None
    db.fit(small.frame().assign(sex="Male"), small.plan, ledger=book, out=tmp_path / "other" / "run", progress=False)
    shutil.copy(tmp_path / "other" / "run" / "generator.safetensors", run)
    state = json.loads((tmp_path / "other" / "run" / "run.json").read_text())
    own = json.loads((run / "run.json").read_text()) | {"generator_sha256": state["generator_sha256"]}
    (run / "run.json").write_text(json.dumps(own))
    return run, ledger


def test_the_generator_of_other_data_is_not_released_under_this_claim(small, tmp_path, monkeypatch):
    run, ledger = swapped(small, tmp_path)
    before = ledger.read_bytes()
    syn = db.load(run)
    ways = (lambda out: db.release(syn, out, n=5, progress=False), lambda out: publish(syn, out))
    for way in ways:
        with pytest.raises(LedgerError, match="ended with another generator") as caught:
            way(tmp_path / "out")
        assert "release the run folder as fit left it" in caught.value.remedy
    assert ledger.read_bytes() == before
    left_out = 'book.refuse_other_generator(kept["reservation"], syn.run.get("generator_sha256"))'
    planting.plant(monkeypatch, releasing, "check_payment", (left_out, "pass"))
    for number, way in enumerate(ways):
        way(tmp_path / f"out{number}")


def test_a_published_card_tells_nothing_of_refused_fits(small, tmp_path):
    """Two cards, one of a ledger with a refused fit before it: nothing but random hashes and times differs."""
    cards = []
    for refused in (False, True):
        folder = tmp_path / str(refused)
        folder.mkdir()
        book = small.book(folder)
        if refused:
            with pytest.raises(db.errors.DoublureError):
                db.fit(small.frame().assign(sex="X"), small.plan, ledger=book, progress=False)
        syn = db.fit(small.frame(), small.plan, ledger=book, progress=False)
        bundle = db.release(syn, folder / "bundle", n=5, seed=1, progress=False)
        cards.append(bundle.card)
        page = bundle.page.read_text()
        assert bundle.card["ledger"]["head_sha256"] not in page
    assert set(cards[1]["ledger"]) == {"dataset", "head_sha256"}
    changing = {"created", "files", "ledger"}
    assert [{key: said for key, said in card.items() if key not in changing} for card in cards[:1]] == [
        {key: said for key, said in card.items() if key not in changing} for card in cards[1:]
    ]
