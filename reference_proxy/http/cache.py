"""A shared HTTP cache in memory (RFC 9111), least recently used first out, bounded in bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from cachetools import LRUCache

from reference_proxy.http.freshness import (
    Headers,
    Heuristic,
    date,
    directives,
    initial_age_s,
    lifetime_s,
    may_store,
    must_revalidate,
    seconds,
    value,
    values,
)

#: What an entry takes beside its body, roughly: the object and the bookkeeping of its fields.
ENTRY_BYTES = 512
FIELD_BYTES = 128

#: Fields of a 304 that do not replace the stored ones (section 3.2).
_KEPT_AT_UPDATE = frozenset({b"content-encoding", b"content-length", b"content-range", b"content-type"})


class Use(Enum):
    """What can be done with a request."""

    FRESH = "fresh"
    VALIDATE = "validate"
    FETCH = "fetch"
    #: only-if-cached, and nothing is (section 5.2.1.7).
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored answer; times are Unix seconds."""

    status: int
    headers: Headers
    body: bytes
    #: The request's fields that Vary names, as they were.
    selected_by: tuple[tuple[bytes, tuple[bytes, ...]], ...]
    initial_age_s: float
    received_at: float
    lifetime_s: float

    def age_s(self, now: float) -> float:
        """Section 4.2.3."""
        return self.initial_age_s + max(0.0, now - self.received_at)

    @property
    def size_bytes(self) -> int:
        """What it takes, by and large."""
        fields = sum(FIELD_BYTES + len(name) + len(text) for name, text in self.headers)
        return ENTRY_BYTES + len(self.body) + fields


@dataclass(frozen=True, slots=True)
class Answer:
    """The cache's decision on a request."""

    use: Use
    stored: StoredResponse | None = None


_Variants = tuple[StoredResponse, ...]


class Cache:
    """Answers to GET by URI, with the variants that Vary distinguishes."""

    def __init__(
        self, limit_bytes: int, object_bytes: int, heuristic: Heuristic, clock: Callable[[], float] = time.time
    ) -> None:
        def size(variants: _Variants) -> int:
            return sum(variant.size_bytes for variant in variants)

        self._kept: LRUCache[bytes, _Variants] = LRUCache(limit_bytes, getsizeof=size)
        self._object_bytes = object_bytes
        self._heuristic = heuristic
        self._clock = clock

    @property
    def held_bytes(self) -> int:
        """What all entries take."""
        return int(self._kept.currsize)

    def look_up(self, method: bytes, uri: bytes, request: Headers) -> Answer:
        """What to do with a request (section 4)."""
        asked = directives(request)
        if not asked and b"no-cache" in (value(request, b"pragma") or b"").lower():
            asked = {"no-cache": None}
        stored = self._select(uri, request) if method in (b"GET", b"HEAD") else None
        if stored is None or value(request, b"range") is not None or "no-store" in asked:
            return Answer(Use.UNAVAILABLE if "only-if-cached" in asked else Use.FETCH)
        if self._may_use(stored, asked):
            return Answer(Use.FRESH, stored)
        if "only-if-cached" in asked:
            return Answer(Use.UNAVAILABLE)
        # HEAD has no body to validate against; only a GET's 304 can freshen what is stored.
        return Answer(Use.VALIDATE if method == b"GET" and validators(stored) else Use.FETCH, stored)

    def _may_use(self, stored: StoredResponse, asked: dict[str, str | None]) -> bool:
        answered = directives(stored.headers)
        age = stored.age_s(self._clock())
        left = stored.lifetime_s - age
        limit = seconds(asked.get("max-age"))
        if "no-cache" in asked or "no-cache" in answered or (limit is not None and age > limit):
            return False
        if left > (seconds(asked.get("min-fresh")) or 0):
            return True
        if "max-stale" not in asked or "min-fresh" in asked or must_revalidate(stored.headers):
            return False
        tolerated = seconds(asked["max-stale"])
        return asked["max-stale"] is None or (tolerated is not None and -left <= tolerated)

    def _select(self, uri: bytes, request: Headers) -> StoredResponse | None:
        variants: _Variants = self._kept.get(uri, ())
        for variant in reversed(variants):
            if all(_normal(request, name) == found for name, found in variant.selected_by):
                return variant
        return None

    def store(
        self,
        method: bytes,
        uri: bytes,
        request: Headers,
        answer: tuple[int, Headers, bytes],
        requested_at: float,
    ) -> bool:
        """Store an answer if it may be stored and fits."""
        status, response, body = answer
        if not may_store(method, request, status, response) or len(body) > self._object_bytes:
            return False
        now = self._clock()
        stored = StoredResponse(
            status,
            response,
            body,
            _selecting(request, response),
            initial_age_s(response, requested_at, now),
            now,
            lifetime_s(status, response, self._heuristic),
        )
        if stored.lifetime_s <= stored.initial_age_s and not validators(stored):
            return False
        others = tuple(one for one in self._kept.get(uri, ()) if one.selected_by != stored.selected_by)
        while others and sum(one.size_bytes for one in (*others, stored)) > self._kept.maxsize:
            others = others[1:]
        if stored.size_bytes > self._kept.maxsize:
            return False
        self._kept[uri] = (*others, stored)
        return True

    def freshen(self, uri: bytes, stored: StoredResponse, not_modified: Headers, requested_at: float) -> StoredResponse:
        """The stored answer after a 304 (section 4.3.4)."""
        names = {name.lower() for name, _ in not_modified} - _KEPT_AT_UPDATE
        headers = [field for field in stored.headers if field[0].lower() not in names]
        headers += [field for field in not_modified if field[0].lower() in names]
        now = self._clock()
        fresh = replace(
            stored,
            headers=headers,
            initial_age_s=initial_age_s(headers, requested_at, now),
            received_at=now,
            lifetime_s=lifetime_s(stored.status, headers, self._heuristic),
        )
        variants = tuple(fresh if one is stored else one for one in self._kept.get(uri, ()))
        if variants and sum(one.size_bytes for one in variants) <= self._kept.maxsize:
            self._kept[uri] = variants
        return fresh

    def invalidate(self, uri: bytes) -> None:
        """Remove what an unsafe request may have changed (section 4.4)."""
        self._kept.pop(uri, None)


def validators(stored: StoredResponse) -> Headers:
    """Fields that ask whether a stored answer still holds (section 4.3.1)."""
    fields: Headers = []
    if (tag := value(stored.headers, b"etag")) is not None:
        fields.append((b"if-none-match", tag))
    if (changed := value(stored.headers, b"last-modified")) is not None:
        fields.append((b"if-modified-since", changed))
    return fields


def is_unmodified(request: Headers, stored: StoredResponse) -> bool:
    """Whether the client has what is stored (RFC 9110, section 13.1): it gets a 304."""
    tags = values(request, b"if-none-match")
    if tags:
        tag = value(stored.headers, b"etag")
        wanted = {_weak(one) for one in b",".join(tags).split(b",")}
        return b"*" in wanted or (tag is not None and _weak(tag) in wanted)
    since, changed = date(request, b"if-modified-since"), date(stored.headers, b"last-modified")
    return since is not None and changed is not None and changed <= since


def _weak(tag: bytes) -> bytes:
    """For weak comparison (RFC 9110, section 8.8.3.2)."""
    return tag.strip().removeprefix(b"W/")


def _selecting(request: Headers, response: Headers) -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    names = sorted({name.strip().lower() for name in b",".join(values(response, b"vary")).split(b",")} - {b""})
    return tuple((name, _normal(request, name)) for name in names)


def _normal(request: Headers, name: bytes) -> tuple[bytes, ...]:
    """A field's values without what may not matter: spaces, and how they are spread over lines (section 4.1)."""
    return tuple(part.strip() for part in b",".join(values(request, name)).split(b",") if part.strip())
