"""Certificate and token: made once, readable by the owner only, the same at every start."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from prober.errors import ServerError
from prober.server.identity import StateDirectory


def identity(path: Path) -> tuple[str, str]:
    state = StateDirectory(path)
    try:
        key = state.identity().key
    finally:
        state.close()
    return key.token, key.fingerprint


def test_a_restart_keeps_token_and_fingerprint(tmp_path: Path) -> None:
    assert identity(tmp_path / "a") == identity(tmp_path / "a")


def test_other_directories_are_other_servers(tmp_path: Path) -> None:
    first, second = identity(tmp_path / "a"), identity(tmp_path / "b")
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_the_fingerprint_is_that_of_the_certificate(tmp_path: Path) -> None:
    _, fingerprint = identity(tmp_path)
    certificate = x509.load_pem_x509_certificate((tmp_path / "certificate.pem").read_bytes())
    assert certificate.fingerprint(hashes.SHA256()).hex() == fingerprint


def test_other_users_cannot_read_them(tmp_path: Path) -> None:
    identity(tmp_path / "new")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()}
    assert modes == {"certificate.pem": 0o600, "token": 0o600, "lock": 0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["certificate.pem", "token"])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_what_others_could_read_is_not_trusted(tmp_path: Path, name: str, mode: int) -> None:
    identity(tmp_path)
    (tmp_path / name).chmod(mode)
    with pytest.raises(ServerError, match="can be read by others"):
        identity(tmp_path)


@pytest.mark.parametrize("name", ["certificate.pem", "token"])
@pytest.mark.parametrize("text", ["", "x", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", "a b" * 20])
def test_damage_is_reported(tmp_path: Path, name: str, text: str) -> None:
    identity(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(ServerError, match="remove it for a new one"):
        identity(tmp_path)


def test_two_servers_cannot_have_one_directory(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with pytest.raises(ServerError, match="another probe server"):
        StateDirectory(tmp_path)
    state.close()
    StateDirectory(tmp_path).close()


def test_what_a_killed_server_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "captures-left").mkdir()
    (tmp_path / "captures-left" / "x.pcap").write_bytes(b"x")
    state = StateDirectory(tmp_path)
    assert not (tmp_path / "captures-left").exists()
    state.close()


def test_an_impossible_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ServerError, match="cannot be used"):
        StateDirectory(tmp_path / "file" / "state")
