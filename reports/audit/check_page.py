"""The page of `check`: the verdict on each port, and how far data and handshakes came on the way to each host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pepscope.results.verdicts import Verdict
from pepscope.whole_file import write_output
from reports.audit.hop_ladder import hop_ladder
from reports.document import asset, fill, html_document
from reports.errors import cannot_write
from reports.page_parts import counted, verdict_badge
from reports.quantities import format_seconds


def write_check_page(document: Mapping[str, Any], path: str | Path) -> None:
    """Write what a check found (the contract `pepscope-check-1`) as one file to `path`. Raises ReportError."""
    try:
        write_output(path, check_page_text(document))
    except OSError as error:
        raise cannot_write(path, error) from error


def check_page_text(document: Mapping[str, Any]) -> str:
    """The page as text; everything that hosts and routers said is escaped."""
    ports = document["ports"]
    body = fill(
        asset("check.html"),
        {
            "headline": escape(_headline(ports)),
            "table": _table(ports),
            "ports": "".join(_section(port, document) for port in ports),
            "unreached": _unreached(document),
            "closing": re.sub("`(.+?)`", r"<code>\1</code>", escape(document["closing"])),
            "version": escape(document["pepscope"]),
        },
    )
    return html_document("pepscope: is TCP split here?", body, styles=("page.css", "check.css"))


def _headline(ports: Sequence[Mapping[str, Any]]) -> str:
    split = [_name(port) for port in ports if port["verdict"] == Verdict.SPLIT_TCP]
    unsure = sum(port["verdict"] == Verdict.INCONCLUSIVE for port in ports)
    rest = f"; {counted(unsure, 'port')} cannot be judged" if unsure else ""
    if split:
        named = split[0] if len(split) == 1 else f"{', '.join(split[:-1])} and {split[-1]}"
        return f"A middlebox splits connections to {named}{rest}."
    if unsure == len(ports):
        return "Nothing could be judged from this host."
    return f"Connections are end to end{rest}."


def _name(port: Mapping[str, Any]) -> str:
    return f"port {port['port']} over IPv{port['family']}"


def _table(ports: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="#{_id(port)}">{_name(port)}</a></th>'
        f"<td>{verdict_badge(Verdict(port['verdict']))}</td><td>{port['hosts_split']}</td>"
        f"<td>{port['hosts_regular']}</td><td>{port['hosts']}</td>"
        f"<td>{escape(', '.join(port['causes'])) or '-'}</td></tr>"
        for port in ports
    )
    heads = ("port", "verdict", "hosts split", "end to end", "asked", "also seen")
    named = "".join(f'<th scope="col">{each}</th>' for each in heads)
    return f"<thead><tr>{named}</tr></thead><tbody>{rows}</tbody>"


def _id(port: Mapping[str, Any]) -> str:
    return f"port-{port['family']}-{port['port']}"


def _section(port: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    places = [
        each
        for each in document["places"]
        if each["port"] == port["port"] and _family(each["address"]) == port["family"] and not each["error"]
    ]
    figure = f"<figure>{hop_ladder(places, _name(port))}</figure>" if places else ""
    return (
        f'<section id="{_id(port)}"><h2>{_name(port)} {verdict_badge(Verdict(port["verdict"]))}</h2>'
        f"<p>{escape(port['reason'])}</p>{_also_seen(port)}{figure}{_places_table(places)}"
        f"{_documentation(port, document)}</section>"
    )


def _also_seen(port: Mapping[str, Any]) -> str:
    """What was recognised and decides no verdict, a sentence each."""
    named = (each["sentence"] for each in port.get("findings", ()) if each["says"] in ("named", "several"))
    return "".join(f'<p class="limits">Also seen: {escape(each)}</p>' for each in named if each not in port["reason"])


def _family(address: str) -> int:
    return 6 if ":" in address else 4


def _places_table(places: Sequence[Mapping[str, Any]]) -> str:
    if not places:
        return ""
    heads = (
        "host",
        "address",
        "handshake",
        "first data acknowledged",
        "answered",
        "datagrams answered",
        "echo requests",
        "DNS",
        "QUIC",
    )
    named = "".join(f'<th scope="col">{each}</th>' for each in heads)
    rows = "".join(_place_row(each) for each in places)
    return f'<div class="wide"><table class="places"><thead><tr>{named}</tr></thead><tbody>{rows}</tbody></table></div>'


def _place_row(place: Mapping[str, Any]) -> str:
    # Questions with a hop limit are answered after it was raised again, which is no round trip.
    plain = [each for each in place["questions"] if each["hops"] is None]
    times = [_least(plain, name) for name in ("handshake_s", "acknowledged_after_s", "answered_after_s")]
    references = [place.get(f"{name}_round_trip_s") for name in ("datagram", "echo", "dns", "quic")]
    cells = "".join(f"<td>{_time(each)}</td>" for each in (*times, *references))
    return f'<tr><th scope="row">{escape(place["host"])}</th><td>{escape(place["address"])}</td>{cells}</tr>'


def _least(questions: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return min((each[name] for each in questions if each[name] is not None), default=None)


def _time(value_s: float | None) -> str:
    return "-" if value_s is None else f"after {format_seconds(value_s)}"


def _documentation(port: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    asked = [
        each
        for each in document["documentation_addresses"]
        if each["port"] == port["port"] and _family(each["address"]) == port["family"]
    ]
    if not asked:
        return ""
    taken = [each["address"] for each in asked if each["acknowledged"]]
    said = f"data were acknowledged at {', '.join(taken)}" if taken else "none acknowledged data"
    addresses = f"{len(asked)} documentation address{'' if len(asked) == 1 else 'es'}"
    return f'<p class="limits">Of {addresses}, at which no host can be, {said}.</p>'


def _unreached(document: Mapping[str, Any]) -> str:
    failed = [(f"{each['host']} port {each['port']}", each["error"]) for each in document["places"] if each["error"]]
    rows = "".join(
        f"<li>{escape(name)}: {escape(error)}</li>" for name, error in [*document["unresolved"].items(), *failed]
    )
    return f'<section><h2>Not reached</h2><ul class="warnings">{rows}</ul></section>' if rows else ""
