"""The dashboard as readers and strangers meet it: who sees what, and what hostile archives and requests can do."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from prober.client.archive_upload import upload_archive
from prober.client.control_client import ControlClient
from prober.errors import ServerError
from prober.protocol.control_messages import Key
from prober.server.dashboard import judged_archives
from prober.server.dashboard.readers import LOGIN_S, Readers
from prober.server.dashboard.service import DashboardSettings, dashboard
from prober.server.identity import fingerprint_in, revoke
from prober.server.keys.client_key import Quotas
from prober.server.keys.key_file import KeyFile
from prober.server.keys.key_ring import KeyRing
from prober.server.refusal import RefusedError
from prober.server.sockets.admission import Rate
from tests.browser import browser
from tests.prober.runs_made_by_hand import whole_run
from tests.prober.server.running import TIMEOUT_S, serving_here
from tests.prober.serving import PEPSCOPE

__all__ = ["browser"]


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str
    content: bytes = field(repr=False)


class Reader:
    """A browser without a window: it keeps its cookie and follows nothing."""

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        self._tls = None
        if parts.scheme == "https":
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._port = parts.port or 0
        self.cookie = ""

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Answer:
        given = {**({"Cookie": self.cookie} if self.cookie else {}), **headers}
        if self._tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=TIMEOUT_S, context=self._tls)
        with contextlib.closing(connection):
            connection.request(method, path, body, given)
            response = connection.getresponse()
            content = response.read()
        if set_cookie := response.headers.get("Set-Cookie"):
            self.cookie = set_cookie.partition(";")[0]
        return Answer(response.status, response.headers, content.decode("utf-8", "replace"), content)

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def log_in(self, key: Key | str) -> Answer:
        return self.ask("POST", "/login", urllib.parse.urlencode({"key": str(key)}))


@dataclass
class Shown:
    """A dashboard over archives of two clients; `boss` reads all."""

    state: Path
    keys: dict[str, Key]
    address: str
    sweep: Callable[[], None]
    #: By client, the digests of its archives.
    digests: dict[str, str]

    def reader(self, name: str = "") -> Reader:
        reader = Reader(self.address)
        if name:
            assert reader.log_in(self.keys[name]).status == 303
        return reader


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Key], dict[str, str]]:
    """A state directory as a server leaves it, to be copied: one client's archive can be judged, the other's not."""
    state, runs = tmp_path_factory.mktemp("filled") / "state", tmp_path_factory.mktemp("runs")
    fingerprint = fingerprint_in(state)
    keys = {
        name: Key(KeyFile(state).add(name, Quotas(), reads_all=name == "boss"), fingerprint)
        for name in ("alice", "bob", "boss")
    }
    files = {"alice": whole_run(runs / "alice.pepscope.zip"), "bob": runs / "bob.pepscope.zip"}
    with zipfile.ZipFile(files["bob"], "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("manifest.json", bytes(200 << 20))
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    with serving_here(state) as here:
        for name, file in files.items():
            with ControlClient("127.0.0.1", here.ports.control, keys[name]) as mobile:
                upload_archive(mobile, file, 60.0)
        keys["default"] = here.key
    return state, keys, digests


@contextlib.contextmanager
def showing(
    filled: tuple[Path, dict[str, Key], dict[str, str]], place: Path, address: str = "127.0.0.1"
) -> Iterator[Shown]:
    state, keys, digests = filled
    shutil.copytree(state, place, dirs_exist_ok=True)
    with dashboard(DashboardSettings(place, address, 0)) as (at, sweep):
        yield Shown(place, keys, at, sweep, digests)


@pytest.fixture(scope="module")
def shown(filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    with showing(filled, tmp_path_factory.mktemp("shown")) as here:
        until(lambda: "waits" not in here.reader("boss").get("/").text)
        yield here


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def every_page(shown: Shown) -> list[str]:
    return [
        "/", "/clients/alice", "/clients/bob", "/networks/127.0.0.0%2F24",
        *(f"/{kind}/{name}/{digest}" for kind in ("runs", "archives") for name, digest in shown.digests.items()),
    ]  # fmt: skip


def test_without_a_login_there_is_nothing_but_the_login(shown: Shown) -> None:
    stranger = shown.reader()
    for path in [*every_page(shown), "/nothing", "/../etc/passwd", "/runs/", "//x"]:
        answer = stranger.get(path)
        assert (answer.status, answer.headers["Location"], answer.text) == (303, "/login", "")
    for cookie in ("pepscope-login=", "pepscope-login=x", 'a=b; pepscope-login=""', "\xff", "=" * 5000):
        stranger.cookie = cookie
        assert stranger.get("/").status == 303
    page = stranger.get("/login")
    assert page.status == 200
    assert "alice" not in page.text


def test_each_key_shows_its_own_and_a_reader_of_all_all(shown: Shown) -> None:
    boss, alice = shown.reader("boss"), shown.reader("alice")
    assert {path: boss.get(path).status for path in every_page(shown)} == dict.fromkeys(every_page(shown), 200)
    text = alice.get("/").text
    assert "1 run of 1 client in 1 network" in text
    assert "bob" not in text
    for path in every_page(shown):
        assert alice.get(path).status == (404 if "bob" in path else 200), path
    assert shown.reader("default").get("/").text.count("No archive was uploaded yet.") == 1


def test_an_archive_is_downloaded_as_it_was_uploaded(shown: Shown) -> None:
    answer = shown.reader("alice").get(f"/archives/alice/{shown.digests['alice']}")
    assert hashlib.sha256(answer.content).hexdigest() == shown.digests["alice"]
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="alice.pepscope.zip"'
    head = shown.reader("alice").ask("HEAD", f"/archives/alice/{shown.digests['alice']}")
    assert (head.content, head.headers["Content-Length"]) == (b"", str(len(answer.content)))


def test_a_run_is_shown_and_a_hostile_one_is_one_sentence(shown: Shown) -> None:
    boss = shown.reader("boss")
    page = boss.get(f"/runs/alice/{shown.digests['alice']}")
    assert "alice.pepscope.zip" in page.text
    assert "What each verdict rests on" in page.text
    refused = boss.get(f"/runs/bob/{shown.digests['bob']}")
    assert (
        "bob.pepscope.zip cannot be judged: bob.pepscope.zip: the member &#x27;manifest.json&#x27; must" in refused.text
    )
    assert str(shown.state) not in refused.text, "no path of the server"


def test_pages_allow_browsers_little(shown: Shown) -> None:
    boss = shown.reader("boss")
    for path in every_page(shown):
        answer = boss.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox allow-scripts" if path.startswith("/runs/alice") else "default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert path.startswith(("/runs/alice", "/archives")) or "<script" not in answer.text
    cookie = Reader(shown.address).log_in(shown.keys["alice"]).headers["Set-Cookie"]
    assert re.fullmatch(r"pepscope-login=[A-Za-z0-9_-]{43}; Path=/; HttpOnly; SameSite=Lax", cookie)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/", "x", 405),
        ("DELETE", "/runs/alice/" + "a" * 64, None, 405),
        ("PUT", "/login", "x", 405),
        ("GET", "/runs/alice/" + "a" * 64, None, 404),
        ("GET", "/archives/..%2f../" + "a" * 64, None, 404),
        ("GET", "/clients/%00", None, 404),
        ("GET", "/networks/%ff%fe", None, 404),
        ("GET", "/clients/" + "%41" * 3000, None, 404),
        ("POST", "/login", "key=" + "x" * 5000, 413),
        ("POST", "/login", b"\xff\xfe", 401),
        ("POST", "/login", "a=1&" * 100, 401),
    ],
)
def test_requests_that_make_no_sense_are_pages_of_one_sentence(shown, method, path, body, status) -> None:
    answer = shown.reader("boss").ask(method, path, body)
    assert answer.status == status
    assert "Traceback" not in answer.text
    assert answer.text.count("<h1>") == 1


def test_garbage_gets_little(shown: Shown) -> None:
    import socket

    port = urllib.parse.urlsplit(shown.address).port
    for garbage in (b"\x16\x03\x01" + bytes(500), b"GET / HTTP/9\r\n\r\n", b"x" * 40_000, b"\r\n" * 20_000):
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as sock, contextlib.suppress(ConnectionError):
            sock.sendall(garbage)
            sock.shutdown(socket.SHUT_WR)
            said = b""
            while piece := sock.recv(65_536):
                said += piece
            assert len(said) < 1000
    assert shown.reader("boss").get("/").status == 200


def test_who_logs_out_or_has_a_revoked_key_is_out(filled, tmp_path: Path) -> None:
    with showing(filled, tmp_path) as shown:
        first, second = shown.reader("alice"), shown.reader("alice")
        old = first.cookie
        assert first.ask("POST", "/logout").headers["Location"] == "/login"
        first.cookie = old
        assert first.get("/").status == 303, "not even with the cookie of before"
        assert second.get("/").status == 200
        revoke(shown.state, "alice")
        shown.sweep()
        assert second.get("/").status == 303
        refused = Reader(shown.address).log_in(shown.keys["alice"])
        assert (refused.status, "The key alice was revoked." in refused.text) == (401, True)


def test_wrong_keys_are_refused_and_slowed(tmp_path: Path) -> None:
    now = [0.0]
    keys = KeyFile(tmp_path)
    token = keys.add("alice", Quotas())
    readers = Readers(KeyRing(keys, "d" * 43), Rate(1.0, 3.0, lambda: now[0]), lambda: now[0])
    for _ in range(3):
        with pytest.raises(RefusedError, match=r"^the key is wrong$"):
            readers.log_in("x" * 43, "192.0.2.1/32")
    with pytest.raises(RefusedError, match=r"^too many wrong keys came from this network; try again in a minute$"):
        readers.log_in("x" * 43, "192.0.2.1/32")
    with pytest.raises(RefusedError, match=r"^the key is wrong$"):
        readers.log_in("x" * 43, "198.51.100.1/32")
    with pytest.raises(RefusedError, match=r"^a key must be pepscope1"):
        readers.log_in("pepscope1.x", "192.0.2.1/32")
    login = readers.log_in(f" {token}\n", "192.0.2.1/32")
    assert readers.find(login).name == "alice"
    now[0] += LOGIN_S - 1
    assert readers.find(login).name == "alice", "each page counts"
    now[0] += LOGIN_S + 1
    assert readers.find(login) is None


def test_beyond_loopback_it_speaks_tls_and_its_cookie_stays_there(filled, tmp_path: Path) -> None:
    with showing(filled, tmp_path, "0.0.0.0") as shown:
        assert shown.address.startswith("https://")
        answer = Reader(shown.address).log_in(shown.keys["alice"])
        assert answer.headers["Set-Cookie"].endswith("; SameSite=Lax; Secure")


def test_a_judge_that_takes_too_long_is_ended(filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_archives, "MOST_TIME_S", 0.2)
    with showing(filled, tmp_path) as shown:
        boss = shown.reader("boss")
        until(lambda: "waits" not in boss.get("/").text)
        assert "it could not be judged within 0.2 s" in boss.get("/clients/alice").text


def test_pages_are_made_again_where_they_were_thrown_away(shown: Shown) -> None:
    alice = shown.reader("alice")
    path = f"/runs/alice/{shown.digests['alice']}"
    before = alice.get(path).text
    for page in (shown.state / "judged").glob("*.html"):
        page.unlink()
    answer = alice.get(path)
    assert f'content="3;url={path}"' in answer.text
    until(lambda: "being judged" not in alice.get(path).text)
    assert alice.get(path).text == before


def test_what_is_deleted_is_forgotten(filled, tmp_path: Path) -> None:
    with showing(filled, tmp_path) as shown:
        boss = shown.reader("boss")
        until(lambda: "waits" not in boss.get("/").text)
        for suffix in ("zip", "json"):
            (shown.state / "archives" / "alice" / f"{shown.digests['alice']}.{suffix}").unlink()
        assert "alice" not in boss.get("/").text
        assert boss.get(f"/runs/alice/{shown.digests['alice']}").status == 404
        shown.sweep()
        until(lambda: not list((shown.state / "judged").glob("alice.*")))


def test_a_directory_that_is_no_servers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="the state directory must be a probe server's, got"):
        dashboard(DashboardSettings(tmp_path)).__enter__()


def held_by_threads(pid: int) -> Iterator[dict[str, str]]:
    """The privileges of each thread of a process; one that served a reader may end meanwhile."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield dict(re.findall(r"(?m)^(Cap\w+|NoNewPrivs):\s*(\w+)$", (task / "status").read_text()))


def test_the_command_has_no_privileges_and_ends_in_order(filled, tmp_path: Path) -> None:
    state, keys, _ = filled
    shutil.copytree(state, tmp_path, dirs_exist_ok=True)
    command = [str(PEPSCOPE), "probe", "dashboard", "--state", str(tmp_path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, contextlib.ExitStack() as ending:
        ending.callback(process.terminate)
        reader = Reader(process.stdout.readline().split()[1])
        assert reader.log_in(keys["alice"]).status == 303
        assert reader.get("/").status == 200
        threads = list(held_by_threads(process.pid))
    assert process.returncode == 0
    assert {held.pop("NoNewPrivs") for held in threads} == {"1"}
    assert {int(value, 16) for held in threads for value in held.values()} == {0}
    assert not [path for path in (tmp_path / "judged").iterdir() if path.is_dir()], "no scratch is left"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--listen", "localhost"], "--listen must be ADDRESS:PORT with the address in digits, got localhost"),
        (["--certificate", "nowhere.pem"], "nowhere.pem must hold a private key and its certificate as PEM: "),
    ],
)
def test_wrong_options_are_one_sentence(filled, words: list[str], sentence: str) -> None:
    command = [str(PEPSCOPE), "probe", "dashboard", "--state", str(filled[0]), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=dict(os.environ))
    assert done.returncode == 2
    assert done.stderr.startswith(f"pepscope: {sentence}")
    assert done.stderr.count("\n") == 1


def test_a_reader_finds_the_run_in_a_browser(shown: Shown, browser: Browser) -> None:
    """From the login to the verdicts, the archive, and out again; the browser has nothing to complain about."""
    page = browser.new_context().new_page()
    page.set_default_timeout(TIMEOUT_S * 1000)
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(shown.address)
    page.get_by_label("Key").fill(str(shown.keys["boss"]))
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="alice", exact=True).first.click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("alice: ")
    page.locator("table.matrix a").first.click()
    page.get_by_role("heading", name="What each verdict rests on").wait_for()
    page.go_back()
    with page.expect_download() as download:
        page.get_by_role("link", name="download alice.pepscope.zip").click()
    assert hashlib.sha256(download.value.path().read_bytes()).hexdigest() == shown.digests["alice"]
    page.get_by_role("button", name="Log out").click()
    assert page.url.endswith("/login")
    assert complaints == []
    page.context.close()


def test_verdicts_that_are_kept_follow_the_contract(shown: Shown) -> None:
    (path,) = (shown.state / "judged").glob("alice.*.json")
    document = json.loads(path.read_bytes())
    assert document["schema"] == "pepscope-judged-1"
    assert path.stat().st_mode & 0o077 == 0
