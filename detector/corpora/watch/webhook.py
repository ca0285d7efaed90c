"""Alerts to a web address: posted from a thread of its own, tried again, and never waited for."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import pepscope
from detector.corpora.watch.standing import Change
from pepscope.errors import UsageError

#: Seconds between one try and the next; after the last an alert is given up.
_PAUSES_S = (1.0, 3.0, 9.0, 27.0)
_TIMEOUT_S = 10.0

#: Alerts that wait at most; older ones go.
_MOST_WAITING = 1000

#: For what waits when the watch ends.
_LAST_TRIES_S = 15.0

_LOG = logging.getLogger("pepscope.watch")


class Webhook:
    """Where alerts go. `posted` and `failed` count alerts, each the changes of one slice."""

    def __init__(self, url: str, *, pauses_s: Sequence[float] = _PAUSES_S) -> None:
        """Raises UsageError where the address is none of the web."""
        try:
            parts = urlsplit(url)
            is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_web = False
        if not is_web:
            raise UsageError(f"the webhook must be an address such as https://host/path, got {url!r}")
        self.posted = 0
        self.failed = 0
        self._url = url
        self._pauses_s = pauses_s
        self._waiting: deque[bytes] = deque(maxlen=_MOST_WAITING)
        self._some = threading.Condition()
        self._ends_s: float | None = None
        self._thread = threading.Thread(target=self._work, name="pepscope-webhook", daemon=True)
        self._thread.start()

    def post(self, changes: Sequence[Change], source: str) -> None:
        """Have an alert posted."""
        document: dict[str, Any] = {
            "schema": 1,
            "source": source,
            "text": "\n".join(f"pepscope on {source}: {change.sentence()}" for change in changes),
            "changes": [change.to_dict() for change in changes],
        }
        with self._some:
            if len(self._waiting) == _MOST_WAITING:
                self.failed += 1
            self._waiting.append(json.dumps(document, ensure_ascii=False).encode())
            self._some.notify()

    def close(self) -> None:
        """Give what waits some seconds more."""
        with self._some:
            self._ends_s = time.monotonic() + _LAST_TRIES_S
            self._some.notify()
        self._thread.join(_LAST_TRIES_S + _TIMEOUT_S)
        if self._waiting:
            _LOG.warning("%d alerts did not reach %s before the end", len(self._waiting), self._url)

    def _work(self) -> None:
        while True:
            with self._some:
                self._some.wait_for(lambda: self._waiting or self._ends_s is not None)
                if not self._waiting or self._is_over():
                    return
                body = self._waiting[0]
            cause = self._delivered(body)
            with self._some:
                if self._waiting and self._waiting[0] is body:
                    self._waiting.popleft()
            if cause is None:
                self.posted += 1
            else:
                self.failed += 1
                _LOG.warning("the webhook %s did not take an alert: %s", self._url, cause)

    def _delivered(self, body: bytes) -> str | None:
        """None, or why not after all tries."""
        cause: str | None = None
        for pause_s in (*self._pauses_s, None):
            cause = self._posted(body)
            if cause is None or pause_s is None:
                break
            self._rest(pause_s)
            if self._is_over():
                break
        return cause

    def _rest(self, pause_s: float) -> None:
        """Wait, until the time for the last tries is over at most."""
        until_s = time.monotonic() + pause_s
        with self._some:
            while (left_s := min(until_s, self._ends_s or until_s) - time.monotonic()) > 0:
                self._some.wait(left_s)

    def _posted(self, body: bytes) -> str | None:
        headers = {"Content-Type": "application/json", "User-Agent": f"pepscope/{pepscope.__version__}"}
        try:
            request = urllib.request.Request(self._url, body, headers)
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
                return None
        except urllib.error.HTTPError as error:
            with error:
                return f"it answered {error.code}"
        except urllib.error.URLError as error:
            return str(getattr(error.reason, "strerror", None) or error.reason)
        except (OSError, ValueError) as error:  # what urllib raises while it reads, and http.client for bad answers
            return str(error) or type(error).__name__
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _is_over(self) -> bool:
        return self._ends_s is not None and time.monotonic() >= self._ends_s
