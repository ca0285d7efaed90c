"""What the site asks the tables of an audit, as SQL, and the answers as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from reports.corpora.shares import Share

if TYPE_CHECKING:
    from detector.corpora.query import Tables

#: Rows of each kind that a network's page shows at most, and connections of each verdict that are listed.
MAX_SERVERS, MAX_REASONS, MAX_LISTED = 100, 8, 500

#: Rows of the tables of the overview.
MAX_ROWS = 25

#: A network is what a manifest names, otherwise the network of the clients.
_NETWORK = "CASE WHEN network <> 'unnamed' THEN network ELSE coalesce(client_network, 'no network') END"
_IS_SPLIT = "verdict IN ('split-tcp', 'tcp-proxy')"
#: A split that no network is accused of: at the server's site, or at a proxy that clients ask for.
_AT_ENDS = f"{_IS_SPLIT} AND coalesce(group_where, 'network') <> 'network'"
_SERVER = "coalesce(server_a, server_b)"

#: Between which methods' opinions the evidence is divided, and where a group's verdict is another one.
_AT_ODDS = "methods_split <> '' AND methods_intact <> ''"
_AGAINST_GROUP = "group_verdict <> 'inconclusive' AND verdict NOT IN ('inconclusive', group_verdict)"

_JUDGED = f"""
SELECT {_NETWORK} AS place, port, strftime(date_trunc('week', started), '%Y-%m-%d') AS week, verdict, mechanism,
  {_IS_SPLIT} AND NOT ({_AT_ENDS}) AS is_split, {_AT_ENDS} AS is_split_at_ends, client_network, group_verdict,
  group_where, group_hidden_round_trip_s AS hidden_s,
  methods_split, methods_intact, regexp_replace({_SERVER}, ':[0-9]+$', '') AS server
FROM connections
"""

_COUNTS = "count(*), count(*) FILTER (is_split), count(*) FILTER (verdict = 'regular')"

#: The more telling first: divided evidence, then splits, then what is open; of these the surest and the largest.
_ATTENTION = f"""
({_AT_ODDS} OR {_AGAINST_GROUP}) DESC, {_IS_SPLIT} DESC, verdict = 'inconclusive' DESC,
greatest(probability_split_tcp, probability_tcp_proxy) DESC, payload_bytes_up + payload_bytes_down DESC
"""

_CONNECTION = f"""
SELECT {_NETWORK} AS place, unit, coalesce(client_a, client_b) AS client, {_SERVER} AS server, port,
  strftime(started, '%Y-%m-%d %H:%M:%S') AS began, started_ns, duration_s, verdict, mechanism,
  CASE WHEN {_IS_SPLIT} THEN probability_split_tcp + probability_tcp_proxy ELSE probability_regular END AS probability,
  group_verdict, group_where, payload_bytes_up + payload_bytes_down AS payload_bytes,
  methods_split, methods_intact, reason
FROM connections
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """Connections of one network to one port in one week (its Monday, ISO 8601; None where no time is known).

    The share is of what lies between the ends: the connections `split_at_ends`, at the server's site or at a proxy that
    clients ask for, are in neither of its numbers.
    """

    network: str
    port: int
    week: str | None
    connections: int
    share: Share
    split_at_ends: int = 0


@dataclass(frozen=True, slots=True)
class JudgedConnection:
    """A row of the table of connections."""

    network: str
    unit: str
    client: str
    server: str
    port: int
    began: str | None
    started_ns: int
    duration_s: float
    verdict: str
    mechanism: str | None
    probability: float
    group_verdict: str | None
    group_where: str | None
    payload_bytes: int
    methods_split: str
    methods_intact: str
    reason: str


class Questions:
    """The questions of a site, to tables that are open. Raises UsageError where there is no connection."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        tables.keep("judged", _JUDGED)

    def cells(self) -> list[Cell]:
        """Counts by network, port and week."""
        return [
            Cell(place, port, week, count, Share(split, split + regular), at_ends)
            for place, port, week, count, split, regular, at_ends in self._ask(
                f"SELECT place, port, week, {_COUNTS}, count(*) FILTER (is_split_at_ends) FROM judged "
                "GROUP BY ALL ORDER BY place, port, week"
            )
        ]

    def verdicts(self) -> dict[str, int]:
        """Connections by verdict."""
        return dict(self._ask("SELECT verdict, count(*) FROM judged GROUP BY 1"))

    def captures(self) -> int:
        """Files that were read."""
        return int(self._ask("SELECT count(*) FROM captures")[0][0])

    def failures(self) -> list[tuple[str, str]]:
        """Names and reasons of what could not be read or judged."""
        return self._ask("SELECT name, reason FROM errors ORDER BY name")

    def divided(self) -> list[tuple[Any, ...]]:
        """Where methods disagree: network, port, those that say split, those that say not, verdict, connections."""
        return self._ask(
            f"SELECT place, port, methods_split, methods_intact, verdict, count(*) AS n FROM judged WHERE {_AT_ODDS} "
            f"GROUP BY ALL ORDER BY n DESC, place, port, verdict, methods_split LIMIT {MAX_ROWS}"
        )

    def against_groups(self) -> list[tuple[Any, ...]]:
        """Where connections disagree with their groups: network, port, verdict, the group's, connections."""
        return self._ask(
            f"SELECT place, port, verdict, group_verdict, count(*) AS n FROM judged WHERE {_AGAINST_GROUP} "
            f"GROUP BY ALL ORDER BY n DESC, place, port, verdict LIMIT {MAX_ROWS}"
        )

    def between_vantage_points(self) -> list[tuple[Any, ...]]:
        """Where vantage points disagree about a connection: network, client, server, day, verdicts."""
        return self._ask(
            f"SELECT {_NETWORK} AS place, client_a, server_a, day, string_agg(DISTINCT verdict, ', ' ORDER BY verdict) "
            "FROM connections WHERE client_a IS NOT NULL GROUP BY ALL HAVING count(DISTINCT unit) > 1 AND "
            "count(DISTINCT verdict) FILTER (verdict <> 'inconclusive') > 1 "
            f"ORDER BY place, client_a, server_a, day LIMIT {MAX_ROWS}"
        )

    def hidden_legs(self) -> list[tuple[Any, ...]]:
        """The slowest hidden legs: network, clients, port, place of the split point, median and greatest round trip
        (s), connections."""
        return self._ask(
            "SELECT place, client_network, port, group_where, median(hidden_s), max(hidden_s) AS most, count(*) "
            "FROM judged WHERE hidden_s IS NOT NULL GROUP BY ALL "
            f"ORDER BY most DESC, place, client_network, port, group_where LIMIT {MAX_ROWS}"
        )

    def servers(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """By network its servers: address, port, connections, split, regular, hidden leg (s), split at an end, and
        servers in all."""
        return self._by_network(
            f"SELECT place, server, port, {_COUNTS}, max(hidden_s), count(*) FILTER "
            "(is_split_at_ends), count(*) OVER (PARTITION BY place) FROM judged "
            "GROUP BY place, server, port QUALIFY row_number() OVER (PARTITION BY place ORDER BY "
            f"count(*) FILTER (is_split) DESC, count(*) DESC, server, port) <= {MAX_SERVERS} "
            "ORDER BY place, count(*) FILTER (is_split) DESC, count(*) DESC, server, port"
        )

    def mechanisms(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """By network how its connections are split: mechanism, port, connections."""
        return self._by_network(
            "SELECT place, mechanism, port, count(*) AS n FROM judged WHERE mechanism IS NOT NULL "
            "GROUP BY place, mechanism, port QUALIFY row_number() "
            f"OVER (PARTITION BY place ORDER BY n DESC, mechanism, port) <= {MAX_REASONS} "
            "ORDER BY place, n DESC, mechanism, port"
        )

    def undecided(self) -> Mapping[str, list[tuple[Any, ...]]]:
        """By network why connections are undecided: the reason's first sentence with n for numbers, connections."""
        numberless = "regexp_replace(reason, '[0-9]+([.,:][0-9]+)*', 'n', 'g')"
        return self._by_network(
            f"SELECT {_NETWORK} AS place, regexp_extract({numberless}, '^[^.]*[.]?') AS begins, count(*) AS n "
            "FROM connections WHERE verdict = 'inconclusive' GROUP BY 1, 2 "
            f"QUALIFY row_number() OVER (PARTITION BY place ORDER BY n DESC, begins) <= {MAX_REASONS} "
            "ORDER BY place, n DESC, begins"
        )

    def telling(self, count: int) -> list[JudgedConnection]:
        """The connections that tell most: of each network, port and verdict one, then the next of each."""
        return [
            JudgedConnection(*row)
            for row in self._ask(
                f"{_CONNECTION} ORDER BY row_number() OVER (PARTITION BY {_NETWORK}, port, verdict, "
                f"{_AT_ODDS} ORDER BY {_ATTENTION}, started_ns, client, server), {_ATTENTION}, place, client, server "
                f"LIMIT {count}"
            )
        ]

    def listed(self) -> Iterator[tuple[str, list[JudgedConnection]]]:
        """Network by network, in the order of names, the connections to list: of each verdict the most telling."""
        rows = self._tables.rows(
            f"{_CONNECTION} QUALIFY row_number() OVER (PARTITION BY {_NETWORK}, verdict ORDER BY {_ATTENTION}, "
            f"started_ns, client, server) <= {MAX_LISTED} ORDER BY place, {_ATTENTION}, started_ns, client, server"
        )
        for network, found in groupby(rows, key=lambda row: str(row[0])):
            yield network, [JudgedConnection(*row) for row in found]

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self._tables.ask(sql).rows)

    def _by_network(self, sql: str) -> Mapping[str, list[tuple[Any, ...]]]:
        found: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for network, *values in self._ask(sql):
            found[network].append(tuple(values))
        return found
