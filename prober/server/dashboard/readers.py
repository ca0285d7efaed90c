"""Who is logged in: with a key of the server, for as long as the key is accepted."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from prober.errors import MalformedMessageError
from prober.protocol.control_messages import KEY_PREFIX, Key
from prober.server.keys.client_key import ClientKey
from prober.server.keys.key_ring import KeyRing
from prober.server.refusal import RefusedError
from prober.server.sockets.admission import Rate

#: Since the last page.
LOGIN_S = 12 * 3600.0
_MOST_LOGINS = 1000


class Readers:
    """Used by many threads. A login is a random name of 256 bits in a cookie, of which only the SHA-256 stays here."""

    def __init__(self, keys: KeyRing, wrong_keys: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys, self._wrong_keys, self._clock = keys, wrong_keys, clock
        self._logins: OrderedDict[str, tuple[ClientKey, float]] = OrderedDict()
        self._lock = threading.Lock()

    def log_in(self, text: str, network: str) -> str:
        """The name of a login. Raises RefusedError for a wrong key, and where there were too many of one network."""
        token = text.strip()
        if token.startswith(f"{KEY_PREFIX}."):
            try:
                token = Key.parse(token).token
            except MalformedMessageError as error:
                raise RefusedError(401, str(error)) from None
        try:
            key = self._keys.find(token)
        except RefusedError as error:
            if not self._wrong_keys.take(network):
                raise RefusedError(429, "too many wrong keys came from this network; try again in a minute") from None
            revoked = "revoked" in str(error)
            raise RefusedError(401, str(error) if revoked else "the key is wrong") from None
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._logins[_digest(name)] = key, self._clock() + LOGIN_S
            while len(self._logins) > _MOST_LOGINS:
                self._logins.popitem(last=False)
        return name

    def find(self, name: str) -> ClientKey | None:
        """Whose login this is; `None` where it is over."""
        digest = _digest(name)
        with self._lock:
            found = self._logins.get(digest)
            if found is None or found[1] < self._clock():
                self._logins.pop(digest, None)
                return None
            self._logins[digest] = found[0], self._clock() + LOGIN_S
            return found[0]

    def log_out(self, name: str) -> None:
        """End a login."""
        with self._lock:
            self._logins.pop(_digest(name), None)

    def refresh(self) -> None:
        """End the logins of keys that are accepted no longer. Raises ServerError."""
        gone = set(self._keys.refresh())
        with self._lock:
            for digest in [digest for digest, (key, _) in self._logins.items() if key in gone]:
                del self._logins[digest]


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
