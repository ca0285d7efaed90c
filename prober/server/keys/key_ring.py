"""The keys that a running server accepts, as the stored ones are now."""

from __future__ import annotations

import threading

from prober.server.keys.client_key import DEFAULT_NAME, ClientKey, digest_of
from prober.server.keys.key_file import KeyFile, Version
from prober.server.refusal import RefusedError


class KeyRing:
    """Follows the file of keys; used by many threads."""

    def __init__(self, file: KeyFile, default_token: str) -> None:
        """`default_token` is that of the server's own key. Raises ServerError for a file that cannot be used."""
        self._file = file
        self._default = ClientKey(DEFAULT_NAME, token_sha256=digest_of(default_token))
        self._accepted: dict[str, ClientKey] = {}
        self._revoked: dict[str, str] = {}
        self._seen: Version | tuple[()] = ()
        self._lock = threading.Lock()
        self.refresh()

    def find(self, token: str) -> ClientKey:
        """The key of a token. Raises RefusedError with the reason, for a revoked one its own.

        Only digests are looked up, so that the time it takes says nothing of a token.
        """
        digest = digest_of(token)
        with self._lock:
            key, revoked = self._accepted.get(digest), self._revoked.get(digest)
        if revoked is not None:
            raise RefusedError(401, f"the key {revoked} was revoked")
        if key is None:
            raise RefusedError(401, "the token is missing or wrong")
        return key

    def refresh(self) -> list[ClientKey]:
        """Read the file where it changed; the keys that are accepted no longer.

        Raises ServerError for a file that cannot be used: then those of before are accepted further on.
        """
        version = self._file.version()
        if version == self._seen:
            return []
        self._seen = version
        records = self._file.read()
        revoked = {record.token_sha256: record.name for record in records if record.revoked_unix_s is not None}
        keys = [ClientKey(record.name, record.quotas, record.token_sha256, record.reads_all) for record in records]
        with self._lock:
            before = self._accepted
            self._accepted = {}
            for key in (self._default, *keys):
                if key.token_sha256 not in revoked:
                    known = before.get(key.token_sha256)
                    is_same = known is not None and _permits(known) == _permits(key)
                    self._accepted[key.token_sha256] = known if known is not None and is_same else key
            self._revoked = revoked
            kept = set(self._accepted.values())
            return [key for key in before.values() if key not in kept]

    @property
    def accepted(self) -> list[ClientKey]:
        """All keys that are accepted now."""
        with self._lock:
            return list(self._accepted.values())


def _permits(key: ClientKey) -> tuple[object, ...]:
    return key.name, key.quotas, key.reads_all
