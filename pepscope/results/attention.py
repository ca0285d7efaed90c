"""Which verdicts deserve attention first: what is listed, drawn and explained where there is no room for all."""

from __future__ import annotations

from pepscope.results.verdicts import GroupResult, SplitPlace, Verdict

#: Splits first, then what could not be decided, then what is in order.
ATTENTION = {Verdict.SPLIT_TCP: 0, Verdict.TCP_PROXY: 0, Verdict.INCONCLUSIVE: 1, Verdict.REGULAR: 2}


def group_attention(group: GroupResult) -> tuple[int, int, int, int]:
    """Sort key of groups: by verdict, splits inside a server's own site behind others, then the larger group first."""
    own_site = group.where is SplitPlace.SERVER
    return ATTENTION[group.verdict], own_site, -len(group.pairs), -(group.exchanges or 0)
