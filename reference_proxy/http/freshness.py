"""What may be stored and how long it is fresh: RFC 9111, as arithmetic on header fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

Headers = list[tuple[bytes, bytes]]

#: Statuses that are cacheable by default, less 206 and 501, which this cache does not need (RFC 9110, section 15.1).
CACHEABLE_BY_DEFAULT = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414})

#: Stands for "for ever" where a number overflows (RFC 9111, section 1.2.2).
LONGEST_S = 1 << 31


@dataclass(frozen=True, slots=True)
class Heuristic:
    """How long an answer without a lifetime is fresh (section 4.2.2)."""

    share: float
    limit_s: float


def values(headers: Headers, name: bytes) -> list[bytes]:
    """All values of a field, by its name in lower case."""
    return [value for key, value in headers if key.lower() == name]


def value(headers: Headers, name: bytes) -> bytes | None:
    """First value of a field."""
    return next(iter(values(headers, name)), None)


def directives(headers: Headers, name: bytes = b"cache-control") -> dict[str, str | None]:
    """Cache directives by name; a value that stands twice counts as it stands first (section 4.2.1)."""
    found: dict[str, str | None] = {}
    for part in _split(b",".join(values(headers, name)).decode("latin-1")):
        key, separator, argument = part.partition("=")
        if key := key.strip().lower():
            found.setdefault(key, argument.strip().strip('"') if separator else None)
    return found


def _split(text: str) -> list[str]:
    """At commas that stand outside of quotes."""
    parts, quoted, start = [], False, 0
    for place, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def seconds(text: str | None) -> int | None:
    """A delta-seconds value (section 1.2.2); None for what is none."""
    if text is None or not text.isascii() or not text.isdigit():
        return None
    return min(int(text[:20]), LONGEST_S)


def date(headers: Headers, name: bytes) -> float | None:
    """A date field in Unix seconds; None for what is none (`Expires: 0`)."""
    raw = value(headers, name)
    if raw is None:
        return None
    try:
        read = parsedate_to_datetime(raw.decode("ascii"))
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def http_date(time_s: float) -> bytes:
    """A date field's value."""
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    when = datetime.fromtimestamp(time_s, UTC)
    clock = when.strftime("%H:%M:%S")
    return f"{days[when.weekday()]}, {when.day:02d} {months[when.month - 1]} {when.year:04d} {clock} GMT".encode(
        "ascii"
    )


def may_store(method: bytes, request: Headers, status: int, response: Headers) -> bool:
    """Whether a shared cache may keep the answer (section 3)."""
    asked, answered = directives(request), directives(response)
    if method != b"GET" or status < 200 or status in (206, 304) or "no-store" in asked or "no-store" in answered:
        return False
    if "private" in answered or value(response, b"vary") == b"*":
        return False
    if value(request, b"authorization") is not None and not answered.keys() & {"public", "s-maxage", "must-revalidate"}:
        return False
    explicit = bool(answered.keys() & {"public", "max-age", "s-maxage"}) or value(response, b"expires") is not None
    return explicit or status in CACHEABLE_BY_DEFAULT


def lifetime_s(status: int, response: Headers, heuristic: Heuristic) -> float:
    """Freshness lifetime in a shared cache (section 4.2.1)."""
    answered = directives(response)
    for name in ("s-maxage", "max-age"):
        if name in answered:
            # What cannot be read counts as stale.
            return seconds(answered[name]) or 0
    sent_at = date(response, b"date")
    if value(response, b"expires") is not None:
        expires_at = date(response, b"expires")
        return max(0.0, expires_at - sent_at) if expires_at is not None and sent_at is not None else 0.0
    changed_at = date(response, b"last-modified")
    may_guess = status in CACHEABLE_BY_DEFAULT or "public" in answered
    if may_guess and changed_at is not None and sent_at is not None:
        return min(max(0.0, (sent_at - changed_at) * heuristic.share), heuristic.limit_s)
    return 0.0


def initial_age_s(response: Headers, requested_at: float, received_at: float) -> float:
    """Corrected initial age (section 4.2.3); the times are Unix seconds."""
    sent_at = date(response, b"date")
    apparent = max(0.0, received_at - sent_at) if sent_at is not None else 0.0
    age = value(response, b"age")
    answered = seconds(age.decode("latin-1").strip()) if age is not None else None
    return max(apparent, (answered or 0) + (received_at - requested_at))


def must_revalidate(response: Headers) -> bool:
    """Whether a stale answer may in no case be used (sections 5.2.2.2, 5.2.2.8, 5.2.2.10)."""
    return bool(directives(response).keys() & {"must-revalidate", "proxy-revalidate", "s-maxage"})
