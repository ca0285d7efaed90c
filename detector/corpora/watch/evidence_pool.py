"""The evidence of the last hour, or of another window, in bounded memory: what verdicts on groups rest on.

Where connections are more than the bound, a sample stays. Each connection has a random rank, and of each group (network
and port) those with the lowest ranks stay, of every group equally many as far as it has them: so a busy port leaves
room for a quiet one, and a group's sample is spread over the window. Connections of which nothing was timed rank behind
all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from detector.one_capture.columns import VantageColumns, joined_vantages, selected
from detector.one_capture.networks import NetworkTable, places
from detector.one_capture.senders.declared_proxies import DECLARING

#: References that are kept, the latest ones: of each host and kind a slice has at most 256.
MOST_REFERENCES = 50_000

#: Exchanges that are kept of one connection, evenly chosen, beside the few that say what it is: all of them count as
#: one connection's anyway.
MOST_EXCHANGES = 256

_NS = 1_000_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Connections with what was timed of them, without their captures; `rank` has an element a connection."""

    vantage: VantageColumns
    rank: Floats

    def __len__(self) -> int:
        return len(self.rank)


def evidence_of(vantage: VantageColumns, seed: int) -> Evidence:
    """The evidence of a slice; ranks depend on the seed."""
    limited = _with_fewer_exchanges(replace(vantage, captures=()))
    count = len(vantage.capture)
    untimed = np.bincount(limited.exchanges.connection, minlength=count) == 0
    return Evidence(
        replace(limited, capture=np.zeros(count, np.int64)), np.random.default_rng(seed).random(count) + untimed
    )


def joined_evidence(every: Sequence[Evidence]) -> Evidence:
    """All of it."""
    if len(every) == 1:
        return every[0]
    return Evidence(joined_vantages([each.vantage for each in every]), np.concatenate([each.rank for each in every]))


def thinned(evidence: Evidence, most: int, table: NetworkTable) -> Evidence:
    """At most so many connections."""
    if len(evidence) <= most:
        return evidence
    columns = evidence.vantage.columns
    group = places(columns, at_client=True, table=table).group.astype(np.int64)
    counts = np.bincount(group)
    share = _share(counts, most)
    order = np.lexsort((evidence.rank, group))
    first = np.cumsum(counts) - counts
    place_in_group = np.arange(len(order)) - first[group[order]]
    kept = order[place_in_group < share]
    if len(kept) > most:  # more groups than connections may stay
        kept = kept[np.argsort(-columns["last_time_ns"][kept], kind="stable")[:most]]
    return _rows(evidence, np.sort(kept))


class EvidencePool:
    """The evidence of a window of time that moves on."""

    def __init__(self, window_s: float, most_connections: int, table: NetworkTable) -> None:
        self._window_ns = round(window_s * _NS)
        self._most = most_connections
        self._table = table
        self.now_ns = 0
        self.evidence: Evidence | None = None

    def __len__(self) -> int:
        return 0 if self.evidence is None else len(self.evidence)

    def add(self, evidence: Evidence | None, until_ns: int) -> None:
        """Take the evidence of a slice that ended at `until_ns` (since the epoch), and let go of what is too old."""
        self.now_ns = max(self.now_ns, until_ns)
        parts = [each for each in (self.evidence, evidence) if each is not None]
        if parts:
            self.evidence = thinned(self._recent(joined_evidence(parts)), self._most, self._table)

    def _recent(self, pooled: Evidence) -> Evidence:
        since_ns = self.now_ns - self._window_ns
        asked_ns = pooled.vantage.references.asked_ns
        latest = np.zeros(len(asked_ns), np.bool_)
        latest[np.argsort(asked_ns, kind="stable")[-MOST_REFERENCES:]] = True
        recent = np.flatnonzero(pooled.vantage.columns["last_time_ns"] >= since_ns)
        return _rows(pooled, recent, latest & (asked_ns >= since_ns))


def _rows(evidence: Evidence, rows: npt.NDArray[np.int64], references: npt.NDArray[np.bool_] | None = None) -> Evidence:
    if references is None:
        references = np.ones(len(evidence.vantage.references), np.bool_)
    return Evidence(selected(evidence.vantage, rows, references), evidence.rank[rows])


def _share(counts: npt.NDArray[np.int64], most: int) -> int:
    """How many connections each group may keep so that all of them keep at most `most`; one at least."""
    ascending = np.sort(counts)
    left = np.arange(len(counts), 0, -1)
    smaller = np.cumsum(ascending) - ascending
    shares = (most - smaller) // left  # if this group and all larger ones share what the smaller ones leave
    fits = np.flatnonzero(shares < ascending)
    return max(int(shares[fits[0]]) if len(fits) else int(ascending[-1]), 1)


def _with_fewer_exchanges(vantage: VantageColumns) -> VantageColumns:
    exchanges = vantage.exchanges
    counts = np.bincount(exchanges.connection, minlength=len(vantage.capture))
    if not np.any(counts > MOST_EXCHANGES):
        return vantage
    first = np.cumsum(counts) - counts
    connection = exchanges.connection.astype(np.int64)
    place, count = np.arange(len(exchanges)) - first[connection], counts[connection]
    limit = np.minimum(count, MOST_EXCHANGES)
    chosen = (place * limit) // count != ((place - 1) * limit) // count
    chosen |= np.isin(exchanges.kind, DECLARING)
    columns = {name: getattr(exchanges, name)[chosen] for name in exchanges.__struct_fields__ if name != "round_trips"}
    return replace(vantage, exchanges=replace(exchanges, **columns))
