"""Which connections are shown where there is no room for all: those that a user names, or deserve attention first."""

from __future__ import annotations

from collections.abc import Sequence

from pepscope.errors import UsageError
from pepscope.results.pair_table import PairTable
from pepscope.results.verdicts import GroupResult, PairResult, SplitPlace, Verdict

#: A client and a server as results write them: `192.0.2.7:40001`, `[2001:db8::7]:443`.
EndPoints = tuple[str, str]

#: Splits first, then what could not be decided, then what is in order.
ATTENTION = {Verdict.SPLIT_TCP: 0, Verdict.TCP_PROXY: 0, Verdict.INCONCLUSIVE: 1, Verdict.REGULAR: 2}


def group_attention(group: GroupResult) -> tuple[int, int, int, int]:
    """Sort key of groups: by verdict, splits that no network makes behind others, then the larger group first."""
    is_elsewhere = group.where in (SplitPlace.SERVER, SplitPlace.PROXY)
    return ATTENTION[group.verdict], is_elsewhere, -len(group.pairs), -(group.exchanges or 0)


def places_between(pairs: Sequence[PairResult], ends: EndPoints) -> list[int]:
    """The places of a client's connections with a server: more than one where a port was used again.

    The end points are those that any of the captures shows. Raises UsageError where there is no such connection.
    """
    table = PairTable.of(pairs)
    client, server = ends
    found = [
        place
        for place, row in enumerate(table.rows)
        if any(each.client[row] == client and each.server[row] == server for each in table.columns.vantages)
    ]
    if not found:
        raise UsageError(
            f"the connection must be one of the captures', written as in their results, got {client} and {server}"
        )
    return found
