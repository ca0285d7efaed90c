"""The rules of RFC 9111 by its sections; the clock is the test's."""

from __future__ import annotations

import pytest

from reference_proxy.http.cache import Cache, Use, is_unmodified
from reference_proxy.http.freshness import Headers, Heuristic, http_date, initial_age_s, lifetime_s, may_store

NOW = 1_700_000_000.0
HEURISTIC = Heuristic(share=0.1, limit_s=86_400.0)
URI = b"example.org/"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Cache:
    return Cache(100_000, 50_000, HEURISTIC, clock)


def fields(text: str) -> Headers:
    """`name: value` a line, and the Date of now."""
    lines = [line.split(":", 1) for line in text.splitlines() if line]
    read = [(name.strip().lower().encode(), value.strip().encode()) for name, value in lines]
    return [*read, (b"date", http_date(NOW))]


def keep(cache: Cache, response: str, request: str = "", body: bytes = b"body", status: int = 200) -> bool:
    return cache.store(b"GET", URI, fields(request), (status, fields(response), body), NOW)


def use(cache: Cache, request: str = "", method: bytes = b"GET") -> Use:
    return cache.look_up(method, URI, fields(request)).use


@pytest.mark.parametrize(
    ("request_fields", "response", "status", "stored"),
    [
        ("", "cache-control: max-age=60", 200, True),
        ("", "cache-control: no-store, max-age=60", 200, False),
        ("cache-control: no-store", "cache-control: max-age=60", 200, False),
        ("", "cache-control: private", 200, False),
        ("", "cache-control: max-age=60", 206, False),
        ("", "cache-control: max-age=60", 302, True),
        ("", "", 302, False),
        ("", "", 404, True),
        ("", "vary: *\ncache-control: max-age=60", 200, False),
        ("authorization: Basic x", "cache-control: max-age=60", 200, False),
        ("authorization: Basic x", "cache-control: s-maxage=60", 200, True),
        ("authorization: Basic x", "cache-control: public, max-age=60", 200, True),
    ],
)
def test_section_3_storing(request_fields: str, response: str, status: int, stored: bool) -> None:
    assert may_store(b"GET", fields(request_fields), status, fields(response)) == stored
    assert not may_store(b"POST", fields(request_fields), status, fields(response))


@pytest.mark.parametrize(
    ("response", "lifetime"),
    [
        ("cache-control: max-age=60, s-maxage=5", 5),
        ("cache-control: max-age=60\nexpires: Thu, 01 Jan 1970 00:00:00 GMT", 60),
        ("cache-control: max-age=sixty", 0),
        ("expires: 0", 0),
        (f"expires: {http_date(NOW + 30).decode()}", 30),
        (f"last-modified: {http_date(NOW - 1000).decode()}", 100),
        (f"last-modified: {http_date(NOW - 1e8).decode()}", 86_400),
        ("cache-control: max-age=99999999999999999999999", 1 << 31),
        ("", 0),
    ],
)
def test_section_4_2_1_lifetime(response: str, lifetime: float) -> None:
    assert lifetime_s(200, fields(response), HEURISTIC) == lifetime


def test_section_4_2_3_age_counts_other_caches_and_the_way() -> None:
    assert initial_age_s(fields("age: 20"), NOW - 2, NOW) == 22
    assert initial_age_s([(b"date", http_date(NOW - 50))], NOW, NOW) == 50
    assert initial_age_s(fields("age: rubbish"), NOW, NOW) == 0


def test_section_4_2_fresh_then_stale(cache: Cache, clock: Clock) -> None:
    assert keep(cache, 'cache-control: max-age=60\netag: "a"')
    clock.now += 59
    assert use(cache) is Use.FRESH
    assert use(cache, method=b"HEAD") is Use.FRESH
    clock.now += 2
    assert use(cache) is Use.VALIDATE


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("cache-control: no-cache", Use.VALIDATE),
        ("pragma: no-cache", Use.VALIDATE),
        ("cache-control: max-age=5", Use.VALIDATE),
        ("cache-control: max-age=30", Use.FRESH),
        ("cache-control: min-fresh=55", Use.VALIDATE),
        ("cache-control: no-store", Use.FETCH),
        ("range: bytes=0-1", Use.FETCH),
        ("cache-control: only-if-cached", Use.FRESH),
        ("cache-control: only-if-cached, no-cache", Use.UNAVAILABLE),
    ],
)
def test_section_5_2_1_what_the_client_asks(cache: Cache, clock: Clock, asked: str, expected: Use) -> None:
    keep(cache, 'cache-control: max-age=60\netag: "a"')
    clock.now += 10
    assert use(cache, asked) is expected


@pytest.mark.parametrize(
    ("response", "asked", "expected"),
    [
        ("cache-control: max-age=60", "cache-control: max-stale", Use.FRESH),
        ("cache-control: max-age=60", "cache-control: max-stale=60", Use.FRESH),
        ("cache-control: max-age=60", "cache-control: max-stale=20", Use.VALIDATE),
        ("cache-control: max-age=60, must-revalidate", "cache-control: max-stale", Use.VALIDATE),
        ("cache-control: s-maxage=60", "cache-control: max-stale", Use.VALIDATE),
        ("cache-control: no-cache, max-age=600", "", Use.VALIDATE),
    ],
)
def test_section_4_2_4_serving_stale(cache: Cache, clock: Clock, response: str, asked: str, expected: Use) -> None:
    keep(cache, f'{response}\netag: "a"')
    clock.now += 100
    assert use(cache, asked) is expected


def test_section_4_1_vary_separates_variants(cache: Cache) -> None:
    response = "cache-control: max-age=60\nvary: Accept-Language, accept-encoding"
    keep(cache, response, "accept-language: de,  en", b"deutsch")
    keep(cache, response, "accept-language: fr", b"francais")
    german = cache.look_up(b"GET", URI, fields("accept-language: de, en"))
    assert german.stored is not None
    assert german.stored.body == b"deutsch"
    assert use(cache, "accept-language: nl") is Use.FETCH
    assert use(cache) is Use.FETCH


def test_section_4_3_4_a_304_freshens_what_is_stored(cache: Cache, clock: Clock) -> None:
    keep(cache, 'cache-control: max-age=60\netag: "a"\ncontent-type: text/plain\nx-old: 1')
    clock.now += 100
    found = cache.look_up(b"GET", URI, fields(""))
    assert found.stored is not None
    update = [(b"cache-control", b"max-age=500"), (b"date", http_date(clock.now)), (b"content-type", b"image/png")]
    fresh = cache.freshen(URI, found.stored, update, clock.now)
    assert fresh.lifetime_s == 500
    assert (b"content-type", b"text/plain") in fresh.headers
    assert (b"x-old", b"1") in fresh.headers
    assert use(cache) is Use.FRESH


def test_section_4_4_unsafe_methods_invalidate(cache: Cache) -> None:
    keep(cache, "cache-control: max-age=60")
    cache.invalidate(URI)
    assert use(cache) is Use.FETCH


@pytest.mark.parametrize(
    ("condition", "unmodified"),
    [
        ('if-none-match: "a"', True),
        ('if-none-match: W/"a"', True),
        ('if-none-match: "b", "c"', False),
        ("if-none-match: *", True),
        (f"if-modified-since: {http_date(NOW - 5).decode()}", True),
        (f"if-modified-since: {http_date(NOW - 500).decode()}", False),
        (f'if-none-match: "b"\nif-modified-since: {http_date(NOW).decode()}', False),
        ("", False),
    ],
)
def test_rfc_9110_section_13_conditions(cache: Cache, condition: str, unmodified: bool) -> None:
    keep(cache, f'cache-control: max-age=60\netag: "a"\nlast-modified: {http_date(NOW - 100).decode()}')
    found = cache.look_up(b"GET", URI, fields(condition))
    assert found.stored is not None
    assert is_unmodified(fields(condition), found.stored) == unmodified


def test_memory_is_bounded_and_the_least_used_goes(cache: Cache) -> None:
    for number in range(20):
        cache.store(b"GET", b"%d" % number, [], (200, fields("cache-control: max-age=60"), bytes(20_000)), NOW)
        assert cache.held_bytes <= 100_000
    assert cache.look_up(b"GET", b"0", []).use is Use.FETCH
    assert cache.look_up(b"GET", b"19", []).use is Use.FRESH
    assert not keep(cache, "cache-control: max-age=60", body=bytes(60_000))


def test_variants_of_one_uri_share_the_bound(cache: Cache) -> None:
    for number in range(20):
        keep(cache, "cache-control: max-age=60\nvary: cookie", f"cookie: {number}", bytes(20_000))
        assert cache.held_bytes <= 100_000
    assert use(cache, "cookie: 19") is Use.FRESH


def test_stale_without_a_validator_is_not_worth_keeping(cache: Cache) -> None:
    assert not keep(cache, "cache-control: max-age=0")
    assert keep(cache, 'cache-control: max-age=0\netag: "a"')
    assert use(cache) is Use.VALIDATE
