"""The evidence behind a group's verdict: what exchanges, near ends, references and handshakes show, each by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from detector.one_capture.classes import ASKING, Explanation
from detector.one_capture.likelihoods.timing_tables import Floats
from detector.one_capture.members import Ints
from detector.one_capture.reasons.declared_proxies import NAME as DECLARED
from detector.one_capture.reasons.declared_proxies import caveats
from detector.one_capture.reasons.findings import (
    NAME,
    AnsweredHandshakeFinding,
    ClientStackFinding,
    DeclaredProxyFinding,
    ExchangeFinding,
    NearEndFinding,
    PortFinding,
    ReferenceFinding,
)
from detector.one_capture.reasons.quantities import counted, duration
from detector.one_capture.reasons.sentences import PoolFigures, reason, reasons
from detector.one_capture.reasons.stated_numbers import COUNTS, SHARE_DIGITS, SHARES, TIME_DIGITS, TIMES, numbers_of
from detector.one_capture.senders.declared_proxies import ProxyForm
from pepscope.captures.tables.texts import SlicedTexts, gathered
from pepscope.results.distinct import distinct
from pepscope.results.evidence.columns import EvidenceColumns, Form, Words, rounded
from pepscope.results.evidence.growing import Coded
from pepscope.results.finding import Finding
from pepscope.results.verdicts import Evidence, GroupSide

if TYPE_CHECKING:
    from detector.one_capture.side_posteriors import SidePosteriors

#: Nats that a finding of strength 1 is worth.
_CERTAIN_NATS = 8.0

#: Near ends are evidence for one box from so many nats, and against one.
_ONE_END_NATS, OWN_ENDS_NATS = 0.7, -3.0

#: Clients' stacks are evidence against a box from so many nats.
_OWN_STACKS_NATS = -1.5

#: A reference this much longer than the transport's round trip (s) shows a leg; a shorter one shows that there is none.
_LONGER_S = 0.008

_CAVEATS = ("Clients or servers that always take the same time before they answer look alike.",)

_OF_EXPLANATION = {
    Explanation.NETWORK: ExchangeFinding.LEG_BEHIND_ANSWERS,
    Explanation.NETWORK_OR_SITE: ExchangeFinding.LEG_BEHIND_ANSWERS,
    Explanation.SITE: ExchangeFinding.LEG_INSIDE_THE_SITE,
    Explanation.END_TO_END: ExchangeFinding.ANSWERS_AT_TRANSPORT_SPEED,
    Explanation.HANDSHAKES_ANSWERED: ExchangeFinding.ANSWERS_AT_TRANSPORT_SPEED,
    Explanation.LATE_OR_SPLIT: ExchangeFinding.LATE_OR_SPLIT,
    Explanation.DECLARED: DeclaredProxyFinding.PROXY_ASKED_FOR,
    Explanation.ASKED_AS_PROXY: DeclaredProxyFinding.ASKED_AS_PROXY,
}

#: What may be found of exchanges, by whom.
_FINDINGS: Mapping[Finding, str] = {
    **dict.fromkeys(ExchangeFinding, NAME),
    **dict.fromkeys(DeclaredProxyFinding, DECLARED),
}


def exchange_evidence(figures: PoolFigures, explanation: Explanation) -> Evidence:
    """What the exchanges of a pool show."""
    finding = _finding(figures.exchanges, explanation)
    words = _words(figures, explanation)
    strength = float(_strength(np.asarray([figures.split]))[0]) if finding.row.weight is not None else 0.0
    return finding.evidence(_FINDINGS[finding], strength, words.summary, numbers_of(figures), words.caveats)


def exchange_evidence_columns(
    side: GroupSide, figures: Mapping[str, npt.NDArray[Any]], explanation: Ints
) -> list[EvidenceColumns]:
    """What the exchanges of many pools show; `figures` are the fields of `PoolFigures` behind the side as columns."""
    exchanges = figures["exchanges"]
    stated = [
        *(figures[name] for name in COUNTS),
        *(rounded(figures[field], TIME_DIGITS) for field in TIMES.values()),
        *(rounded(figures[field], SHARE_DIGITS) for field in SHARES.values()),
        np.full(len(exchanges), _SIDES.index(side)), *figures.values(), explanation,
    ]  # fmt: skip
    strength = _strength(figures["split"])
    number_of = {finding: number for number, finding in enumerate(_FINDINGS)}
    of_explanation, untimed = (
        np.asarray([number_of[_finding(count, each)] for each in Explanation])[explanation] for count in (1, 0)
    )
    found = np.where(exchanges == 0, untimed, of_explanation)
    parts = []
    for number, (finding, method) in enumerate(_FINDINGS.items()):
        rows = np.flatnonzero(found == number)
        if not len(rows):
            continue
        form = Form(method, finding.row.outcome, finding, _STATED, (), None, _pool_words, _POOL, _pool_sentences)
        firmly = strength[rows] if finding.row.weight is not None else np.zeros(len(rows))
        parts.append(EvidenceColumns(form, rows, firmly, tuple(column[rows] for column in stated)))
    return parts


#: What evidence on exchanges states, and what its sentences are made of: the fields of `PoolFigures`, and what explains
#: the pool.
_STATED = (*COUNTS, *TIMES, *SHARES)
_POOL = tuple(f"pool_{name}" for name in (*PoolFigures.__struct_fields__, "explanation"))
_SIDES = tuple(GroupSide)


#: Of each form in which clients may ask for a proxy.
_FORM_CAVEATS = tuple(caveats(form) for form in range(2 * max(ProxyForm)))


def _pool_words(numbers: Mapping[str, Any]) -> Words:
    side, *values, explanation = [numbers[name] for name in _POOL]
    return _words(PoolFigures(_SIDES[side], *values), Explanation(explanation))


def _pool_sentences(numbers: Mapping[str, Any]) -> tuple[SlicedTexts, Coded[tuple[str, ...]]]:
    side, *columns, explanation = [np.asarray(numbers[name]) for name in _POOL]
    figures = dict(zip(PoolFigures.__struct_fields__[1:], columns, strict=True))
    said = []
    for number in distinct(side):
        rows = np.flatnonzero(side == number)
        texts = reasons(_SIDES[number], {name: column[rows] for name, column in figures.items()}, explanation[rows])
        said.append((rows, texts))
    texts = gathered(said, np.arange(len(explanation)))
    is_declared = explanation == Explanation.DECLARED
    code = np.asarray(np.where(is_declared, figures["form"] + 2, figures["exchanges"] != 0))
    return texts, Coded(code.astype(np.uint32), [(), _CAVEATS, *_FORM_CAVEATS])


def _words(figures: PoolFigures, explanation: Explanation) -> Words:
    if explanation is Explanation.DECLARED:
        return Words(reason(figures, explanation), caveats(figures.form))
    return Words(reason(figures, explanation), _CAVEATS if figures.exchanges else ())


def _finding(exchanges: int, explanation: Explanation) -> Finding:
    if exchanges == 0 and explanation not in ASKING:
        return ExchangeFinding.NO_EXCHANGES
    return _OF_EXPLANATION.get(explanation, ExchangeFinding.TOO_FEW_EXCHANGES)


def _strength(split: Floats) -> Floats:
    odds = np.log(np.maximum(split, 1e-9) / np.maximum(1 - split, 1e-9))
    return np.minimum(1.0, np.abs(odds) / _CERTAIN_NATS)


def group_evidence(
    posteriors: SidePosteriors, number: int, figures: PoolFigures, explanation: Explanation
) -> tuple[Evidence, ...]:
    """All that a group shows, exchanges first."""
    found = [exchange_evidence(figures, explanation)]
    if posteriors.side is GroupSide.CLIENT and figures.hosts > 1:
        found += _near_ends(float(posteriors.near_nats[number]), figures)
    if (nats := float(posteriors.stack_nats[number])) < _OWN_STACKS_NATS:
        text = "SYNs are of several stacks, or of a system that middleboxes do not run: the clients' own."
        found.append(
            ClientStackFinding.CLIENTS_OWN_STACKS.evidence(
                "client_stacks", -nats / _CERTAIN_NATS, text, {"nats": round(nats, 2)}
            )
        )
    if not math.isnan(figures.reference_s) and not math.isnan(figures.near_s):
        found.append(_reference(figures, explanation))
    found += _other_port(posteriors, number)
    if explanation is Explanation.HANDSHAKES_ANSWERED:
        found.append(
            AnsweredHandshakeFinding.HANDSHAKES_ANSWERED.undecided(
                "handshake",
                f"Handshakes take {duration(figures.handshake_s)}, data {duration(figures.plain_s)}.",
                {"handshake_s": figures.handshake_s, "data_round_trip_s": figures.plain_s},
            )
        )
    return tuple(found)


def _near_ends(nats: float, figures: PoolFigures) -> list[Evidence]:
    """Whether the transport of several hosts ends in one place."""
    if OWN_ENDS_NATS < nats < _ONE_END_NATS:
        return []
    hosts = counted(figures.hosts, "server")
    if nats > 0:
        finding = NearEndFinding.ONE_NEAR_END
        text = f"The transport of {hosts} ends at one distance, {duration(figures.near_s)} of round trip."
    else:
        finding = NearEndFinding.OWN_NEAR_ENDS
        text = f"The transport of {hosts} ends at distances of their own, the nearest {duration(figures.near_s)} away."
    return [finding.evidence("near_ends", min(1.0, abs(nats) / _CERTAIN_NATS), text, {"nats": round(nats, 2)})]


def _reference(figures: PoolFigures, explanation: Explanation) -> Evidence:
    """What ICMP or UDP to the same hosts says."""
    transport_s = figures.plain_s if explanation is Explanation.HANDSHAKES_ANSWERED else figures.near_s
    beyond = figures.reference_s - transport_s
    numbers = {"reference_round_trip_s": figures.reference_s, "transport_round_trip_s": transport_s}
    text = (
        f"What no TCP split shortens (ICMP echo, UDP) takes {duration(figures.reference_s)}, the transport "
        f"to the same {'host' if figures.hosts == 1 else 'hosts'} {duration(transport_s)} and more."
    )  # fmt: skip
    finding = ReferenceFinding.REFERENCE_IS_LONGER if beyond > _LONGER_S else ReferenceFinding.REFERENCE_AGREES
    return finding.evidence("reference", min(1.0, 0.3 + abs(beyond - _LONGER_S) / 0.1), text, numbers)


def _other_port(posteriors: SidePosteriors, number: int) -> list[Evidence]:
    """What another port of the same hosts says, where it serves as a reference: of the host where it is most longer."""
    first, end = np.searchsorted(posteriors.places.member_group, [number, number + 1]).tolist()
    others_s, near_s = posteriors.other_port_s[first:end], posteriors.timing.near_s[first:end]
    if np.isnan(others_s).all():
        return []
    host = int(np.nanargmax(others_s - near_s))
    other_s, transport_s = float(others_s[host]), float(near_s[host])
    numbers = {"other_port_round_trip_s": other_s, "transport_round_trip_s": transport_s}
    text = (
        f"On another port {posteriors.places.member_address[first + host]} is {duration(other_s)} of round trip away, "
        f"on this one {duration(transport_s)}."
    )
    strength = min(1.0, (other_s - transport_s) / 0.1)
    return [PortFinding.OTHER_PORT_IS_LONGER.evidence("other_port", strength, text, numbers)]
