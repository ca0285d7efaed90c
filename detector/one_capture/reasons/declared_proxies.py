"""What is said of proxies that clients ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from detector.one_capture.columns import VantageColumns
from detector.one_capture.members import Ints
from detector.one_capture.reasons.findings import DeclaredProxyFinding
from detector.one_capture.reasons.quantities import counted, duration
from detector.one_capture.senders.declared_proxies import ProxyForm
from pepscope.results.verdicts import Evidence, GroupSide

if TYPE_CHECKING:
    from detector.one_capture.reasons.sentences import PoolFigures
    from detector.one_capture.side_posteriors import SidePosteriors

#: Method of these findings.
NAME = "declared_proxy"

_ABSOLUTE = ProxyForm.ABSOLUTE | ProxyForm.ABSOLUTE_ALONE
_NAMES = {ProxyForm.CONNECT: "CONNECT", ProxyForm.SOCKS: "SOCKS", _ABSOLUTE: "requests in absolute-form"}

#: What the server's side shows of proxies.
_SERVES = (
    "the client asks this server for other hosts, as a proxy. What is judged is the stretch between the clients and "
    "this capture alone"
)
_COMES = (
    "a header of the PROXY protocol comes first: its sender is a proxy itself. What is judged is the stretch between "
    "that proxy and this capture, and not the one to its clients"
)

#: How requests in absolute-form could mislead.
_OTHER_SERVERS = ("A server that accepts requests in absolute-form for other hosts, and is no proxy, looks alike.",)


def caveats(form: int) -> tuple[str, ...]:
    """What could mislead where clients ask in these forms."""
    return _OTHER_SERVERS if form & ProxyForm.ABSOLUTE_ALONE else ()


def asked_for(figures: PoolFigures) -> str:
    """Why connections are split whose client asks for a proxy."""
    one = figures.connections == 1
    who = "the connection asks" if one else f"{counted(figures.connections, 'connection')} ask"
    return (
        f"{who.capitalize()} {_proxies(figures.form, figures.hosts)}, {_what(figures.form, one)}. The client declares "
        f"this split; no middlebox in the network makes it.{_later(figures)}{_beside(figures.beside)}"
    )


def asked_as_proxy(figures: PoolFigures) -> str:
    """Why connections are undecided whose client may ask for a proxy."""
    who = "the connection asks" if figures.connections == 1 else f"{counted(figures.connections, 'connection')} ask"
    is_timed = not math.isnan(figures.fast_excess_s)
    taken = f" ({duration(figures.fast_excess_s)} beyond acknowledgements)" if is_timed else ""
    return (
        f"{who.capitalize()} for what other servers have, in absolute-form as of an HTTP proxy. What answers take"
        f"{taken} does not tell a proxy, with a cache or close to its servers, from a server that takes such requests "
        "for its own. A tunnel (CONNECT) through the same port, or a capture at the server, would decide."
        f"{_beside(figures.beside)}"
    )


def _proxies(form: int, hosts: int) -> str:
    is_socks, is_http = bool(form & ProxyForm.SOCKS), bool(form & ~ProxyForm.SOCKS)
    kind = {(True, False): "SOCKS proxy", (False, True): "HTTP proxy"}.get((is_socks, is_http), "proxy")
    article = "an" if kind == "HTTP proxy" else "a"
    how = [name for each, name in _NAMES.items() if form & each and kind != "SOCKS proxy"]
    which = f"{article} {kind}" if hosts == 1 else f"{hosts:,} {kind.replace('proxy', 'proxies')}"
    return f"{which} ({' and '.join(how)})" if how else which


def _what(form: int, one: bool) -> str:
    ends, from_it = ("it ends", "it leads") if one else ("they end", "they lead")
    if form & (ProxyForm.CONNECT | ProxyForm.SOCKS):
        return f"which grants it: {ends} there, and the proxy connects further to where {from_it}"
    return f"which answers: {ends} there, and the proxy connects further or answers from its cache"


def _later(figures: PoolFigures) -> str:
    """How late answers are, which holds the way behind the proxy."""
    if figures.exchanges == 0 or math.isnan(figures.near_s) or math.isnan(figures.fast_excess_s):
        return ""
    return (
        f" The proxy is {duration(figures.near_s)} of round trip away, and answers take "
        f"{duration(figures.fast_excess_s)} and more beyond that."
    )


def _beside(beside: int) -> str:
    if not beside:
        return ""
    others = counted(beside, "other connection")
    get, are = ("gets", "is") if beside == 1 else ("get", "are")
    return f" {others} to this port {get} none, and {are} judged apart."


def declared_roles(vantage: VantageColumns, posteriors: SidePosteriors) -> Iterable[tuple[int, Evidence]]:
    """Groups at the server's side whose servers are asked as proxies, or whose clients declare to be some, with what is
    said of that. Neither says anything of the stretch between: both are named, not weighed."""
    if posteriors.side is not GroupSide.SERVER:
        return
    declared, group = vantage.declared, posteriors.places.group
    roles = {
        DeclaredProxyFinding.SERVES_AS_PROXY: (declared.asks, _SERVES),
        DeclaredProxyFinding.COMES_FROM_PROXY: (declared.is_of_proxy, _COMES),
    }
    for finding, (which, role) in roles.items():
        for number, count, of in _counted(group, which):
            text = f"In {count:,} of {counted(of, 'connection')} {role}."
            yield number, finding.undecided(NAME, text, {"declared": count, "connections": of})


def _counted(group: Ints, which: np.ndarray) -> list[tuple[int, int, int]]:
    """Groups with such connections: how many there are, and of how many."""
    found, of = np.bincount(group[which], minlength=int(group.max(initial=-1)) + 1), np.bincount(group)
    return [(number, int(found[number]), int(of[number])) for number in np.flatnonzero(found).tolist()]
