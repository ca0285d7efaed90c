"""One stack for many hosts: whether the SYN-ACKs (SYNs) of a group's far hosts are made in one place by one system.

The *form* of a SYN is what its stack chooses: option kinds in their order with padding, MSS, window, scale (p0f,
M. Zalewski, 2014, tells systems by these). With the hop limit that later packets arrive with, which counts the routers
to where they are made, two hosts rarely agree by chance. Behind a split point they nearly always do.

The log-likelihoods here are of members against the first member of their group that is known, as one of four cases:
same form or not, same hop limit or not. Hosts may truly stand beside each other (one site, one network of caches); the
caller weighs that, together with how far their round trips differ, since one cause explains both.

This is for servers. Clients of one network stand beside each other and are often of one make, so that they agree on any
path; there `likelihoods.client_stacks` asks whether their SYNs are of systems that split points run.

What this cannot see: a split point that copies what the host sent (transparent normalisers, some satellite PEPs copy
MSS and scale, few copy hop limits), members of which only SYN-ACKs of a SYN proxy were seen (those are left out: their
hop limit changes), and hosts of one make at equal distances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, json

from detector.one_capture.members import Floats, Ints, codes, most_frequent, numbered
from pepscope.captures.direction import Direction
from pepscope.captures.senders import Senders

#: Two servers taken at random have one form: most run Linux, with a handful of buffer settings. High is careful.
_SAME_FORM = 0.8

#: Hop counts of Internet paths have a standard deviation of about 3.5 routers around 15 (Begtasevic and Van Mieghem,
#: PAM 2001): two of them are equal with probability 1 / (2 sigma sqrt(pi)).
_SAME_HOP_LIMIT = 0.08

#: Behind one box a form differs where it copies the host's MSS or scale, hop limits where its routes do.
_BOX_OTHER_FORM, _BOX_OTHER_HOP_LIMIT = 0.05, 0.03

#: Initial hop limits that stacks use: a packet comes from the next one above what arrives.
INITIAL_HOP_LIMITS = (32, 64, 128, 255)


def form_codes(senders: Senders, columns: Mapping[str, npt.NDArray[Any]], far: Direction) -> Ints:
    """A number for the form of each connection's far SYN, equal for equal ones; -1 where it was not captured whole, or
    where the hop limit changes behind it (a box in the path made it).

    `columns` are those of `Capture.connection_columns`, `far` the direction that the far host sends in.
    """
    rows = slice(int(far), None, 2)
    prefix = "down_" if far is Direction.DOWN else "up_"
    own = (
        (senders.syn_hop_limit[rows] >= 0)
        & ((senders.hop_limit[rows] < 0) | (senders.hop_limit[rows] == senders.syn_hop_limit[rows]))
        & columns[prefix + "options_captured"]
    )
    fields = [senders.syn_window[rows], columns[prefix + "maximum_segment_size"], columns[prefix + "window_scale"]]
    options = np.ascontiguousarray(senders.option_kinds[rows][own]).view(np.uint64)
    form = np.full(len(own), -1, np.int64)
    if own.any():
        form[own] = codes([*options.T, *(field[own] for field in fields)])
    return form


def asked_alike(form: Ints, asked: Ints, member: Ints, member_group: Ints) -> Ints:
    """The forms of SYN-ACKs (by connection) that answer SYNs of one form, that of which most members of the group have
    any; -1 for the others, and where the SYN is not known.

    A SYN-ACK has no options but those that the SYN offers (RFC 7323, sections 2.2 and 3.2; RFC 2018, section 2), so
    that one box answers two clients by two forms. `asked` is the form of each connection's SYN.
    """
    known = np.flatnonzero((form >= 0) & (asked >= 0))
    _, first = numbered([member[known], asked[known]])
    pairs = known[first]
    usual = most_frequent(asked[pairs], member_group[member[pairs]], int(member_group.max(initial=-1)) + 1)
    return np.where((asked >= 0) & (asked == usual[member_group[member]]), form, -1)


class GroupStacks(Struct, frozen=True):
    """By group: members whose SYN is known, their forms, hop limits and pairs of both, and log-likelihoods.

    `box_nats`: one box answers for all. `beside_nats`: hosts of their own in one place. `apart_nats`: hosts of their
    own in places of their own.
    """

    members: Ints
    forms: Ints
    hop_limits: Ints
    pairs: Ints
    box_nats: Floats
    beside_nats: Floats
    apart_nats: Floats


def group_stacks(form: Ints, hop_limit: Ints, member: Ints, member_group: Ints, groups: int) -> GroupStacks:
    """Compare the members of each group. `form`, `hop_limit` (of later packets, -1 unknown) and `member` are by
    connection, `member_group` by member."""
    members = len(member_group)
    forms, limits = most_frequent(form, member, members), most_frequent(hop_limit, member, members)
    known = np.flatnonzero((forms >= 0) & (limits >= 0))
    group = member_group[known]
    first = np.full(groups, -1, np.int64)
    first[group[::-1]] = known[::-1]
    others = known[first[group] != known]
    against = first[member_group[others]]
    same_form, same_limit = forms[others] == forms[against], limits[others] == limits[against]

    def nats(form_share: float, limit_share: float) -> Floats:
        of_form = np.where(same_form, np.log(form_share), np.log(1 - form_share))
        of_limit = np.where(same_limit, np.log(limit_share), np.log(1 - limit_share))
        summed: Floats = np.bincount(member_group[others], weights=of_form + of_limit, minlength=groups).astype(
            np.float64
        )
        return summed

    return GroupStacks(
        members=np.bincount(group, minlength=groups),
        forms=_distinct(group, [forms[known]], groups),
        hop_limits=_distinct(group, [limits[known]], groups),
        pairs=_distinct(group, [forms[known], limits[known]], groups),
        box_nats=nats(1 - _BOX_OTHER_FORM, 1 - _BOX_OTHER_HOP_LIMIT),
        beside_nats=nats(_SAME_FORM, 1 - _BOX_OTHER_HOP_LIMIT),
        apart_nats=nats(_SAME_FORM, _SAME_HOP_LIMIT),
    )


def _distinct(group: Ints, values: Sequence[Ints], groups: int) -> Ints:
    _, first = numbered([group, *values])
    return np.bincount(group[first], minlength=groups)


class KnownStack(Struct, frozen=True):
    """What the SYNs of some systems look like; see `stacks.json`."""

    systems: frozenset[str]
    initial_hop_limit: int
    option_kinds: tuple[int, ...]


@cache
def known_stacks() -> tuple[KnownStack, ...]:
    """The table of stacks that is installed with the program."""
    content = json.decode(get_data(__package__, "stacks.json") or b"{}")
    return tuple(
        KnownStack(frozenset(each["systems"]), each["initial_hop_limit"], tuple(each["option_kinds"]))
        for each in content["stacks"]
    )


def systems_of(option_kinds: Sequence[int], hop_limit: int) -> frozenset[str]:
    """Systems whose SYN has these option kinds (with padding) and may arrive with this hop limit; none where the table
    knows no such SYN, which says nothing."""
    if hop_limit < 0:
        return frozenset()
    initial = next(limit for limit in INITIAL_HOP_LIMITS if limit >= min(hop_limit, 255))
    kinds = tuple(int(kind) for kind in option_kinds if kind)
    fitting = [stack for stack in known_stacks() if (stack.initial_hop_limit, stack.option_kinds) == (initial, kinds)]
    return frozenset().union(*(stack.systems for stack in fitting))
