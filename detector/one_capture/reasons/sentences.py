"""Why a group or a connection of one capture has its verdict, in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from detector.one_capture.classes import ASKING, LEAST_SPLIT, LEAST_SPLIT_OF_ONE, LEAST_WHOLE, Explanation
from detector.one_capture.likelihoods.timing_tables import HIDDEN_S
from detector.one_capture.members import Ints, numbered
from detector.one_capture.reasons.declared_proxies import asked_as_proxy, asked_for
from detector.one_capture.reasons.quantities import counted, duration, percent
from detector.one_capture.sides import OWN_HOST_S
from pepscope.captures.tables.texts import GivenTexts, SlicedTexts, durations, gathered, joined
from pepscope.results.distinct import distinct
from pepscope.results.verdicts import GroupSide

Columns = Mapping[str, npt.NDArray[Any]]


class PoolFigures(Struct, frozen=True):
    """One pool in figures, times in seconds and NaN where unknown; see `detector.one_capture.pools.Pools`.

    `others` are the other connections of its group without which what explains a connection would be another; `needed`
    is how probable a verdict needs a split, and `own_ends` whether near ends alone show that there is none. `form` has
    the `ProxyForm` in which clients ask for a proxy, and `beside` counts connections to its port that ask for none.
    """

    side: GroupSide
    hosts: int
    connections: int
    exchanges: int
    near_s: float
    handshake_s: float
    plain_s: float
    reference_s: float
    fast_excess_s: float
    least_fast_s: float
    most_fast_s: float
    leg_s: float
    leg_low_s: float
    leg_high_s: float
    split: float
    late: float
    dialogues: int
    others: int = 0
    needed: float = LEAST_SPLIT[GroupSide.CLIENT]
    own_ends: bool = False
    form: int = 0
    beside: int = 0


#: Who answers, by side: how answers are introduced, one host, and several.
_FAR = {GroupSide.CLIENT: ("server", "servers"), GroupSide.SERVER: ("client", "clients")}

#: Why the place stays open, by side.
_ONE_HOST = {
    GroupSide.CLIENT: "One server alone does not show",
    GroupSide.SERVER: "That all connections come from one address leaves open",
}
_SEVERAL_SERVERS = "These servers alone do not show"
_MORE_SERVERS = " Servers in other networks, or pings to these, would."

_EVERY = ("every answer", "the answer")
_HALF = 0.5

#: What the times of most captures can tell apart (s).
_TELLABLE_S = 1e-6

#: What comes sooner has crossed no leg that is thought of (s).
_CROSSES_A_LEG_S = float(HIDDEN_S[0])

#: People take longer than that to answer (s), programs seldom.
_SURELY_PEOPLE_S = 1.0

_HELD_BACK = "unless a box holds its acknowledgements back, or makes only those of what comes the other way"


#: Why a connection is undecided of which no side could be judged.
NO_PATH = "No packet shows which way this connection goes."


def reason(figures: PoolFigures, explanation: Explanation) -> str:
    """One or two sentences that give the grounds of a verdict, or what an undecided pool lacks."""
    if figures.exchanges == 0 and explanation not in ASKING:
        return (
            f"No exchange of question and answer with the {_far(figures)} can be timed: "
            f"{_settle(figures, explanation)}"
        )  # fmt: skip
    writer = _WRITERS.get(explanation)
    return _undecided(figures, explanation) if writer is None else writer(figures)


def reasons(side: GroupSide, figures: Columns, explanation: Ints) -> SlicedTexts:
    """What `reason` says of many pools; `figures` are the fields of `PoolFigures` behind the side."""
    said = []
    is_timed = (figures["exchanges"] > 0) | np.isin(explanation, ASKING)
    kind = np.where(is_timed, explanation, _NOT_TIMED)
    for code in distinct(kind):
        rows = np.flatnonzero(kind == code)
        of_rows = {name: column[rows] for name, column in figures.items()}
        many = _WRITERS_OF_MANY.get(code)
        if many is None:
            pools = zip(*(column.tolist() for column in of_rows.values()), strict=True)
            of_code = zip(pools, explanation[rows].tolist(), strict=True)
            texts = SlicedTexts.of([reason(PoolFigures(side, *pool), Explanation(each)) for pool, each in of_code])
        else:
            texts = many(side, of_rows)
        said.append((rows, texts))
    return gathered(said, np.arange(len(explanation)))


#: Stands for the explanation of pools without an exchange.
_NOT_TIMED = -1


def _one(figures: PoolFigures) -> Columns:
    """One pool as columns."""
    names = PoolFigures.__struct_fields__[1:]
    return {name: np.asarray([getattr(figures, name)]) for name in names}


def _split(figures: PoolFigures) -> str:
    one, several = _FAR[figures.side]
    legs = f"{duration(figures.leg_low_s)} to {duration(figures.leg_high_s)}"
    if figures.hosts == 1 or figures.side is GroupSide.SERVER:
        whose = f"the {one if figures.hosts == 1 else several}"
        later, leg = duration(figures.fast_excess_s), f"a leg of {legs}"
    else:
        whose = f"{figures.hosts} {several}"
        later, leg = f"{duration(figures.least_fast_s)} to {duration(figures.most_fast_s)}", f"legs of {legs}"
    shown = f"so that answers cross {leg} that acknowledgements do not"
    if figures.side is GroupSide.SERVER and figures.fast_excess_s > max(_SURELY_PEOPLE_S, 2 * figures.leg_high_s):
        shown = f"as people answer; what programs send, mostly at the end, crosses {leg} that acknowledgements do not"
    return (
        f"{_extent(figures)}: what {whose} answered came {later} later than the transport's round trip of "
        f"{duration(figures.near_s)}, {shown}.{_decided_with(figures.others)}"
    )


def _network(figures: PoolFigures) -> str:
    far = "servers" if figures.side is GroupSide.CLIENT else "clients"
    stands = f"{_split(figures)} The split point stands {duration(figures.near_s)} of round trip from this capture"
    if figures.side is GroupSide.CLIENT and figures.near_s < OWN_HOST_S:
        beside = "the NAT of a virtual machine, a local proxy or tunnel"
        return f"{stands}: on the capture's own host, or beside it ({beside})."
    return f"{stands}, in the network between it and the {far}."


def _site(figures: PoolFigures) -> str:
    what = "a load balancer or a front end" if figures.side is GroupSide.CLIENT else "a load balancer in front of it"
    return f"{_split(figures)} It lies inside the server's own site ({what}), not in the network."


def _network_or_site(figures: PoolFigures) -> str:
    of_servers = figures.side is GroupSide.CLIENT and figures.hosts > 1
    open_by, more = (_SEVERAL_SERVERS, _MORE_SERVERS) if of_servers else (_ONE_HOST[figures.side], "")
    return (
        f"{_split(figures)} {open_by} whether the split point stands in the network or belongs to the server's own "
        f"site (a load balancer, a CDN's edge).{more}"
    )


def _end_to_end(figures: PoolFigures) -> str:
    return _ends_to_end(figures.side, _one(figures))[0]


def _ends_to_end(side: GroupSide, figures: Columns) -> SlicedTexts:
    said = []
    for own_ends, say in ((False, _answered_in_time), (True, _ends_of_their_own)):
        rows = np.flatnonzero(figures["own_ends"] == own_ends)
        if len(rows):
            said.append((rows, say(side, {name: column[rows] for name, column in figures.items()})))
    return gathered(said, np.arange(len(figures["own_ends"])))


def _ends_of_their_own(side: GroupSide, figures: Columns) -> SlicedTexts:
    pools = zip(*(column.tolist() for column in figures.values()), strict=True)
    return SlicedTexts.of([_end_of_its_own(PoolFigures(side, *pool)) for pool in pools])


def _end_of_its_own(figures: PoolFigures) -> str:
    near, later = duration(figures.near_s), duration(figures.fast_excess_s)
    if figures.side is GroupSide.SERVER:
        # One address may be several clients'.
        own = f"how round trips vary, first words and SYNs are those of clients at access links, {near} and more away"
        late = "by what clients or their sites do"
    else:
        ends = f"the transport to {figures.hosts} {_far(figures)} ends at distances of their own"
        own = f"{ends}, the nearest {near} of round trip away"
        late = f"by what these {_far(figures)} or their sites do"
    shown = f"{_extent(figures)}: {own}, as behind no split point ({_HELD_BACK})."
    return f"{shown} Answers come {later} and more later {late}."


def _answered_in_time(side: GroupSide, figures: Columns) -> SlicedTexts:
    later_s, near_s = figures["least_fast_s"], figures["near_s"]
    is_late, is_near = _are_late(later_s), ~np.isnan(near_s)
    soon = _given(is_late, "as fast as", "within "), _durations_where(is_late, later_s), _given(is_late, "", " of")
    near = _given(is_near, "", " of "), _durations_where(is_near, near_s)
    behind = f", as nothing can behind a longer hidden leg ({_HELD_BACK})."
    pieces = ["", ": the ", " answered ", "", "", " the transport's round trip", "", behind, ""]
    given = [_extents(figures), _fars(side, figures), *soon, *near, _of_others(_decided_with, figures["others"])]
    return joined(len(is_near), pieces, given)


def _are_late(later_s: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which answers come later than the transport's round trip by what a capture's times can tell."""
    return ~(later_s < _TELLABLE_S)


def _given(is_there: npt.NDArray[np.bool_], without: str, where: str) -> GivenTexts:
    """One text `where` something is there, and another `without`."""
    return is_there.astype(np.uint32), [without, where]


def _durations_where(is_there: npt.NDArray[np.bool_], seconds: npt.NDArray[Any]) -> SlicedTexts:
    """The durations of the rows of which something is there, nothing of the others."""
    rows = np.flatnonzero(is_there)
    return gathered([(rows, durations(seconds[rows]))], np.where(is_there, np.arange(len(is_there)), -1))


def _answered(figures: PoolFigures) -> str:
    return (
        f"{_extent(figures)}: something answers handshakes for the {_far(figures)} "
        f"({duration(figures.handshake_s)}, data take {duration(figures.plain_s)}), as SYN proxies and SYN cookies do; "
        f"data pass end to end ({_HELD_BACK}).{_decided_with(figures.others)}"
    )


def _undecided(figures: PoolFigures, explanation: Explanation) -> str:
    if explanation is not Explanation.LATE_OR_SPLIT:
        return _undecided_ones(figures.side, _one(figures))[0]
    word = _FAR[figures.side][0]
    if figures.fast_excess_s < _CROSSES_A_LEG_S:
        shown = f"some answers come {_soon(figures.fast_excess_s)} the transport's round trip, others later"
        split, late = " whose leg only these cross", "takes its time for these"
    else:
        later = f"{duration(figures.fast_excess_s)}{'' if figures.exchanges == 1 else ' and more'}"
        shown = f"{_EVERY[figures.exchanges == 1]} comes {later} later than the transport's round trip"
        split, late = "", "always takes its time"
    return (
        f"{_extent(figures)}: {shown}: a split of either kind{split} ({percent(figures.split)}), or a {word} that "
        f"{late} ({percent(figures.late)}). {_settle(figures, explanation).capitalize()}"
    )


def _undecided_ones(side: GroupSide, figures: Columns) -> SlicedTexts:
    later_s = figures["fast_excess_s"]
    is_late = _are_late(later_s)
    later = _given(is_late, "as fast as", ""), _durations_where(is_late, later_s), _given(is_late, "", " later than")
    rides = np.isnan(figures["plain_s"]) & (side is GroupSide.CLIENT)
    kind, first = numbered([figures["split"], figures["needed"], rides])  # many connections show the same
    of_kind = zip(*(each[first].tolist() for each in (figures["split"], figures["needed"], rides)), strict=True)
    weighed = kind.astype(np.uint32), [_weighed(side, *each) for each in of_kind]
    # What settles it depends on whether there is a reference.
    wanted = [
        _wanted(side, Explanation.UNDECIDED, has_reference=known, one_server=one_server).capitalize()
        for one_server in (False, True)
        for known in (False, True)
    ]
    settled = 2 * (figures["needed"] >= LEAST_SPLIT_OF_ONE) + ~np.isnan(figures["reference_s"])
    whose = _given(figures["exchanges"] == 1, ": the fastest answers come ", ": the answer comes ")
    pieces = ["", "", "", "", "", " the transport's round trip. ", "", " ", ""]
    doubted = _of_others(_doubted_by, figures["others"])
    return joined(
        len(kind), pieces, [_extents(figures), whose, *later, weighed, doubted, (settled.astype(np.uint32), wanted)]
    )


def _weighed(side: GroupSide, split: float, needed: float, rides: bool) -> str:
    """How probable a split is, what a verdict `needed`, and what else explains what was seen; `rides`: whether all
    acknowledgements ride on answers. Results give each kind of split a probability of its own, so that the sentence
    says that it means both."""
    likely, hosts = f"A split of either kind has {percent(split)}", _FAR[side][1]
    if split >= _HALF:
        return f"{likely}, a verdict needs {percent(needed)}: {hosts} that take their time are not ruled out."
    if rides:
        return (
            f"{likely}: every acknowledgement rides on an answer, so that only handshakes time the transport, which "
            "wait for the server where a relay connects first."
        )
    if split <= 1 - LEAST_WHOLE[side]:
        return f"{likely}, but no answer proves that there is none."
    return f"{likely}: too little to accuse, too much to call it regular; {hosts} that take their time are likelier."


def _settle(figures: PoolFigures, explanation: Explanation) -> str:
    """What would decide."""
    of_one = figures.needed >= LEAST_SPLIT_OF_ONE
    return _wanted(figures.side, explanation, has_reference=not math.isnan(figures.reference_s), one_server=of_one)


def _wanted(side: GroupSide, explanation: Explanation, *, has_reference: bool, one_server: bool) -> str:
    other = "servers" if side is GroupSide.CLIENT else "clients"
    wanted = [f"a second capture at the {other}"]
    if not has_reference:
        wanted.append(f"pings to the same {other} in the capture")
    if one_server:  # no number of answers tells that it does not always take its time
        wanted.append("connections to other servers on this port")
    elif explanation is not Explanation.LATE_OR_SPLIT:
        wanted.append("more connections")
    return f"{' or '.join([', '.join(wanted[:-1]), wanted[-1]]) if wanted[1:] else wanted[0]} would decide."


_WRITERS = {
    Explanation.NETWORK: _network,
    Explanation.SITE: _site,
    Explanation.NETWORK_OR_SITE: _network_or_site,
    Explanation.END_TO_END: _end_to_end,
    Explanation.HANDSHAKES_ANSWERED: _answered,
    Explanation.DECLARED: asked_for,
    Explanation.ASKED_AS_PROXY: asked_as_proxy,
}

#: By code of the explanation, for those that very many connections have.
_WRITERS_OF_MANY = {int(Explanation.END_TO_END): _ends_to_end, int(Explanation.UNDECIDED): _undecided_ones}


def group_verdict_remark(port: int, network: str, verdict: str) -> str:
    """What is added to the reason of an undecided connection whose group is decided."""
    return f"Its group (port {port}, clients in {network}) is {verdict}."


def leg_too_short(figures: PoolFigures) -> str:
    """Why a connection without a visible leg stays undecided in a network that splits."""
    return (
        f"{_extent(figures)}: the {_far(figures)} answered {_soon(figures.fast_excess_s)} the transport's round trip, "
        "but other connections of its group are split, and so short a leg would not show."
    )


def at_odds(figures: PoolFigures) -> str:
    """Why a connection that looks split stays undecided in a network that is end to end."""
    return (
        f"{_extent(figures)}: answers come {duration(figures.fast_excess_s)} and more later than the transport's round "
        "trip, but the other connections of its group are end to end, so that its far host may just be slow."
    )


def _soon(later_s: float) -> str:
    return "as fast as" if later_s < _TELLABLE_S else f"within {duration(later_s)} of"


def _decided_with(others: int) -> str:
    """What is added where a connection is decided by the help of others of its group."""
    return f" Its own exchanges would not decide this without the {_others(others)}." if others else ""


def _doubted_by(others: int) -> str:
    """What is added where a connection would be decided but for others of its group."""
    return f" By itself it would be decided, but for the {_others(others)}." if others else ""


def _others(others: int) -> str:
    return f"other {'connection' if others == 1 else f'{others:,} connections'} of its network and port"


def _of_others(say: Callable[[int], str], others: Ints) -> GivenTexts:
    kind, first = numbered([others])
    return kind.astype(np.uint32), [say(each) for each in others[first].tolist()]


def _extent(figures: PoolFigures) -> str:
    return _extent_of(figures.exchanges, figures.connections)


def _extents(figures: Columns) -> GivenTexts:
    kind, first = numbered([figures["exchanges"], figures["connections"]])
    of_kind = zip(figures["exchanges"][first].tolist(), figures["connections"][first].tolist(), strict=True)
    return kind.astype(np.uint32), [_extent_of(*each) for each in of_kind]


def _extent_of(exchanges: int, connections: int) -> str:
    some = counted(exchanges, "exchange")
    return (some if connections == 1 else f"{some} in {counted(connections, 'connection')}").capitalize()


def _far(figures: PoolFigures) -> str:
    one, several = _FAR[figures.side]
    return one if figures.hosts == 1 else several


def _fars(side: GroupSide, figures: Columns) -> GivenTexts:
    return (figures["hosts"] != 1).astype(np.uint32), [*_FAR[side]]
