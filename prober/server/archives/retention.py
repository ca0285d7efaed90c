"""Rules by which stored archives are deleted; without any, none is.

Which archive is older than another is decided by the order in which they came, and its age by how long servers ran
since, never by the time of day, so that a clock that is set deletes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from prober.server.archives.stored_archive import ArchiveRecord
from prober.server.settings import RetentionTable

DAY_S = 86_400.0


def overdue(
    records: Iterable[ArchiveRecord], rules: RetentionTable, running_s: float
) -> Iterator[tuple[ArchiveRecord, str]]:
    """What is to be deleted, with the rule as a sentence."""
    kept: dict[str, list[ArchiveRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.number):
        if rules.days is not None and running_s - record.received_running_s > rules.days * DAY_S:
            yield record, f"it is older than {rules.days:g} days of running"
        else:
            kept[record.client].append(record)
    for client, own in kept.items():
        if rules.client_archives is not None:
            while len(own) > rules.client_archives:
                yield own.pop(0), f"the client {client} has later ones, {rules.client_archives} at most"
        if rules.client_bytes is not None:
            while _bytes(own) > rules.client_bytes:
                yield own.pop(0), f"those of the client {client} must take at most {rules.client_bytes} bytes"
    if rules.total_bytes is not None:
        while sum(map(_bytes, kept.values())) > rules.total_bytes:
            # Of the client that takes most, so that a client that uploads a lot deletes nothing of the others.
            largest = max(kept.values(), key=_bytes)
            yield largest.pop(0), f"all together must take at most {rules.total_bytes} bytes"


def _bytes(records: Iterable[ArchiveRecord]) -> int:
    return sum(record.size_bytes for record in records)
