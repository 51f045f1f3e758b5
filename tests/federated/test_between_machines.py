"""What ``federate init`` writes so that machines find each other, and what ``federate logs`` shows."""

from __future__ import annotations

import ipaddress
import threading
import tomllib
from pathlib import Path

import pytest
from cryptography import x509
from owners import plan_of, with_owners
from parted import SEVERAL
from typer.testing import CliRunner

from doublure.cli.main import app as cli
from doublure.errors import InputError, SettingError
from doublure.federated import network
from doublure.federated.rounds_log import LOG, RoundsLog, follow_log, read_log


@pytest.fixture
def flower_home(tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flower"))
    return tmp_path / "flower"


def mode(path):
    return path.stat().st_mode & 0o777


def test_the_servers_certificate_is_for_all_hosts_and_its_key_is_the_owners_alone(tmp_path):
    made = network.write_certificates(tmp_path / "tls", ["link.example.org", "10.0.0.7"])
    assert sorted(path.name for path in (tmp_path / "tls").iterdir()) == sorted(made)
    assert (mode(tmp_path / "tls"), mode(tmp_path / "tls" / network.KEY)) == (0o700, 0o600)
    authority, server = (
        x509.load_pem_x509_certificate((tmp_path / "tls" / name).read_bytes())
        for name in (network.AUTHORITY, network.CERTIFICATE)
    )
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["link.example.org", "localhost"]
    assert ipaddress.ip_address("10.0.0.7") in names.get_values_for_type(x509.IPAddress)
    assert server.public_key() != authority.public_key()  # which signs nothing else: its key is nowhere


def test_flowers_configuration_keeps_all_else(flower_home):
    before = '# mine\n[superlink]\ndefault = "other"\n\n[superlink.other]\naddress = "a:1"'
    flower_home.mkdir()
    (flower_home / "config.toml").write_text(before)
    network.add_entry("hospitals", host="::1", port=8001, authority=flower_home / 'c"a.pem')
    written = (flower_home / "config.toml").read_text()
    assert written.startswith(before)
    found = tomllib.loads(written)["superlink"]
    assert found["hospitals"] == {"address": "[::1]:8001", "root-certificates": str(flower_home / 'c"a.pem')}
    assert (found["default"], found["other"]) == ("other", {"address": "a:1"})
    with pytest.raises(InputError, match="names a connection hospitals already"):
        network.require_free_entry("hospitals")
    (flower_home / "config.toml").write_text("[")
    with pytest.raises(InputError, match="cannot be read"):
        network.require_free_entry("others")


@pytest.mark.parametrize("host", ["link.example.org:8000", "https://link", "", "-x", "a b"])
def test_a_host_that_is_none_is_refused(host):
    with pytest.raises(SettingError, match="host: is no host"):
        network.require_hosts([host])


def initialised(tmp_path, *more):
    pytest.importorskip("flwr", reason="Flower is an extra: scripts/test --all installs it beside")
    plan_of(with_owners(SEVERAL)).save(tmp_path / "plan.json")
    asked = ["federate", "init", str(tmp_path / "hospitals"), "--plan", str(tmp_path / "plan.json"), *more]
    return CliRunner().invoke(cli, asked, standalone_mode=False, catch_exceptions=False).return_value


def test_init_writes_the_entry_and_prints_each_command_with_its_host(tmp_path, flower_home):
    made = initialised(tmp_path, "--host", "link.example.org", "--port", "8443")
    link, node, started, logs = made.data["commands"]
    assert "--host 0.0.0.0 --port 8443 " in link
    assert "--superlink link.example.org:8443 " in node
    assert started == f"flwr run {tmp_path / 'hospitals'} hospitals"
    assert logs == f"doublure federate logs {tmp_path / 'hospitals'} --follow"
    entry = tomllib.loads((flower_home / "config.toml").read_text())["superlink"]["hospitals"]
    assert entry["address"] == "link.example.org:8443"
    assert Path(entry["root-certificates"]).read_bytes().startswith(b"-----BEGIN CERTIFICATE")


def test_a_name_that_flower_knows_is_refused_before_anything_is_written(tmp_path, flower_home):
    network.add_entry("hospitals", host="localhost", port=8000, authority=tmp_path / "ca.pem")
    with pytest.raises(InputError, match="names a connection hospitals already"):
        initialised(tmp_path)
    assert not (tmp_path / "hospitals").exists()


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_no_key_and_no_log_is_sent_to_owners(tmp_path, flower_home):
    """Flower sends the app's files to every SuperNode."""
    initialised(tmp_path)
    (tmp_path / "hospitals" / LOG).write_text("north failed")
    import io
    import zipfile

    from flwr.cli.build import build_fab_from_disk

    bundle = build_fab_from_disk(tmp_path / "hospitals")
    sent = zipfile.ZipFile(io.BytesIO(bundle)).namelist()
    assert "hospitals/client_app.py" in sent
    assert not [name for name in sent if name.startswith(network.TLS) or name == LOG]


# -- the log -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def test_a_log_shows_the_last_run_and_how_it_ended(folder):
    log = RoundsLog(folder / LOG)
    with pytest.raises(InputError), log.run("begins run"):
        raise InputError("did not answer", field="client north")
    assert [(line.said, line.end) for line in read_log(folder)][-1] == ("client north: did not answer", "failed")
    with log.run("goes on with run"):
        log.add("round 1: who is there")
    with (folder / LOG).open("a") as file:
        file.write('{"utc": "half')
    assert [line.said for line in read_log(folder)] == ["goes on with run", "round 1: who is there", "done"]
    assert mode(folder / LOG) == 0o600


def test_a_defect_is_logged_by_its_type_alone(folder):
    with pytest.raises(ValueError, match="41"), RoundsLog(folder / LOG).run("begins"):
        raise ValueError("age 41")
    assert "41" not in (folder / LOG).read_text().partition("ended by")[2]


def test_a_log_that_cannot_be_written_stops_no_run(folder):
    (folder / LOG).mkdir()
    told = []
    with RoundsLog(folder / LOG, told.append).run("begins"):
        pass
    assert told == ["begins", "done"]


def test_a_log_is_followed_until_the_run_ends(folder, monkeypatch):
    monkeypatch.setattr("doublure.federated.rounds_log._WAIT", 0.01)
    log, seen, half = RoundsLog(folder / LOG), [], threading.Event()

    def follow():
        for line in follow_log(folder):
            seen.append(line.said)
            half.set()

    follower = threading.Thread(target=follow)
    follower.start()
    with log.run("begins"):
        assert half.wait(10)
    follower.join(10)
    assert seen == ["begins", "done"]


def test_logs_of_no_app_are_refused(tmp_path):
    with pytest.raises(InputError, match="is no app"):
        read_log(tmp_path)
