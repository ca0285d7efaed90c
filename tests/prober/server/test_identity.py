"""Certificate and token: made once, readable by the owner only, the same at every start."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from prober.errors import ServerError
from prober.server.identity import MARKER, StateDirectory


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
    assert modes.pop(MARKER) & 0o022 == 0
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
    identity(tmp_path)
    (tmp_path / "captures" / "left").mkdir(parents=True)
    (tmp_path / "captures" / "left" / "x.pcap").write_bytes(b"x")
    (tmp_path / "captures-of-mine").mkdir()
    state = StateDirectory(tmp_path)
    assert not (tmp_path / "captures").exists()
    assert (tmp_path / "captures-of-mine").exists()
    state.close()


def test_captures_are_removed_at_their_end(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    with state.captures() as directory:
        (directory / "x.pcap").write_bytes(b"x")
        assert directory.is_relative_to(tmp_path / "captures")
    assert not directory.exists()
    state.close()


@pytest.mark.parametrize("name", ["captures-of-mine", "captures", "letter.txt"])
def test_a_directory_that_holds_other_things_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "x.pcap").write_bytes(b"x")
    tmp_path.chmod(0o755)
    with pytest.raises(ServerError, match=f"must be empty or a probe server's, but it holds {name}"):
        StateDirectory(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "x.pcap").read_bytes() == b"x"
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_directory_of_a_server_without_the_mark_is_taken_over(tmp_path: Path) -> None:
    made = identity(tmp_path)
    (tmp_path / MARKER).unlink()
    assert identity(tmp_path) == made
    assert (tmp_path / MARKER).exists()


def test_an_impossible_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ServerError, match="cannot be used"):
        StateDirectory(tmp_path / "file" / "state")
