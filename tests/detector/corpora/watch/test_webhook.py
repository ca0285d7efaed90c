"""Alerts reach a web server that is there, are tried again where it fails, and are given up where it is dead."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from detector.corpora.watch import webhook
from detector.corpora.watch.standing import Change, Standing
from detector.corpora.watch.webhook import Webhook
from detector.detection import detect
from pepscope.errors import UsageError
from pepscope.results.verdicts import Verdict
from tests.detector.corpora.watch.cut_captures import SPLIT

PATIENCE_S = 300


class Hook:
    """A web server that answers with these statuses, then with 204; keeps what it got."""

    def __init__(self, statuses: list[int]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.asked = threading.Event()
        self.all_well = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.bodies.append(json.loads(body))
                hook.asked.set()
                status = statuses.pop(0) if statuses else 204
                self.send_response(status)
                self.end_headers()
                if status == 204:
                    hook.all_well.set()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def changes() -> list[Change]:
    return Standing().update(detect(str(SPLIT)).groups, 1_700_000_000_000_000_000)


@pytest.fixture(params=[[], [503, 500]])
def hook(request: pytest.FixtureRequest) -> Iterator[Hook]:
    made = Hook(list(request.param))
    yield made
    made.close()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Messages of the log."""
    messages: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    monkeypatch.setattr(logging.getLogger("pepscope.watch"), "handlers", [Kept()])
    return messages


def dead_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_an_alert_arrives(hook: Hook, changes: list[Change]) -> None:
    alerts = Webhook(hook.url, pauses_s=(0.01,) * 4)
    alerts.post(changes, "eth0")
    assert hook.all_well.wait(PATIENCE_S)
    alerts.close()
    assert (alerts.posted, alerts.failed) == (1, 0)
    body = hook.bodies[-1]
    assert body["source"] == "eth0"
    assert [each["verdict"] for each in body["changes"]] == ["split-tcp", "split-tcp"]
    assert body["text"].splitlines()[0].startswith("pepscope on eth0: port 80 of 10.45.0.0/24: split-tcp. ")


def test_a_dead_webhook_costs_a_sentence_each(changes: list[Change], said: list[str]) -> None:
    url = f"http://127.0.0.1:{dead_port()}/"
    alerts = Webhook(url, pauses_s=(0.01, 0.01))
    alerts.post(changes, "eth0")
    alerts.post(changes, "eth0")
    alerts.close()
    assert (alerts.posted, alerts.failed) == (0, 2)
    assert said == [f"the webhook {url} did not take an alert: Connection refused"] * 2


def test_the_end_does_not_wait_for_long(
    changes: list[Change], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_LAST_TRIES_S", 0.1)
    hook = Hook([503])
    alerts = Webhook(hook.url, pauses_s=(3600,))
    for _ in range(3):
        alerts.post(changes, "eth0")
    assert hook.asked.wait(PATIENCE_S)
    alerts.close()
    hook.close()
    assert alerts.failed == 1
    assert said[-1] == f"2 alerts did not reach {hook.url} before the end"


def test_of_too_many_the_oldest_go(changes: list[Change], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_MOST_WAITING", 2)
    monkeypatch.setattr(webhook, "_LAST_TRIES_S", 0.1)
    alerts = Webhook(f"http://127.0.0.1:{dead_port()}/", pauses_s=(3600,))
    for _ in range(5):
        alerts.post(changes, "eth0")
    assert alerts.failed == 3
    alerts.close()


@pytest.mark.parametrize("url", ["", "host/path", "ftp://host", "http://", "http://[::1", "http://host:99999/"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="the webhook must be an address such as"):
        Webhook(url)


def test_what_changes_is_told_once(changes: list[Change]) -> None:
    results = detect(str(SPLIT)).groups
    standing = Standing()
    standing.update(results, 1)
    assert standing.update(results, 2) == []
    assert {each.since_ns for each in standing.groups} == {1}
    (gone,) = standing.update(results[:1], 3)
    assert (gone.kind, gone.before, gone.after) == ("ended", Verdict.SPLIT_TCP, None)
    assert gone.sentence() == "port 443 of 10.45.0.0/24: no connection any more in the window (it was split-tcp)."
    (back,) = standing.update(results, 4)
    assert (back.kind, back.before, back.group.since_ns) == ("appeared", None, 4)
