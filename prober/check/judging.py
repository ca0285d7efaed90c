"""From findings to verdicts, one for each version of IP and port.

A finding that must be out of the way (a program on this host, a tunnel, a captive portal) comes first. Then one finding
that decides, or two of different experiments that support the same, say that the port is split; hosts reached end to
end say that it is regular where nothing speaks for a split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from prober.check.experiment import PortMaterial
from prober.check.experiments.hop_limits import LEAST_HOSTS
from prober.check.experiments.questions import NAME as QUESTIONS
from prober.check.experiments.questions import Questions
from prober.check.experiments.round_trips import ONE_TIME
from prober.check.finding import Cause, CheckFinding, Says
from prober.check.measuring import Observations
from prober.check.registry import check_experiments
from prober.check.targets import is_documentation_address


class CheckVerdict(StrEnum):
    """What this network does to connections to a port; the words of `pepscope detect`, as far as one end can tell."""

    REGULAR = "regular"
    SPLIT_TCP = "split-tcp"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class PortVerdict:
    """The verdict on one port over one version of IP."""

    family: int
    port: int
    verdict: CheckVerdict
    reason: str
    #: What else was recognised.
    causes: tuple[Cause, ...]
    hosts: int
    hosts_split: int
    hosts_regular: int
    #: The router count at which data are acknowledged, and the router before that place.
    box_hops: int | None = None
    router_before: str = ""
    numbers: Mapping[str, float | int | None] = field(default_factory=dict)
    findings: tuple[CheckFinding, ...] = ()


#: Findings of other measurements, by version of IP and port.
Further: TypeAlias = Mapping[tuple[int, int], Sequence[CheckFinding]]


def judge(
    observations: Observations, tunnel: str | None = None, further: Further | None = None
) -> tuple[PortVerdict, ...]:
    """Verdicts by family and port; `tunnel` is the device of a tunnel that the default route takes, if any.

    `further` are findings beside those of experiments, as those of a capture.
    """
    keys = dict.fromkeys((found.place.family, found.place.target.port) for found in observations.places)
    return tuple(
        judge_port(
            PortMaterial(
                family,
                port,
                [each for each in observations.places if (each.place.family, each.place.target.port) == (family, port)],
                tunnel,
            ),
            () if further is None else further.get((family, port), ()),
        )
        for family, port in sorted(keys)
    )


def judge_port(port: PortMaterial, further: Sequence[CheckFinding] = ()) -> PortVerdict:
    """The verdict on one port, by all experiments' findings and further ones."""
    sources = [*(tuple(experiment.examine(port)) for experiment in check_experiments()), tuple(further)]
    findings = _guarded([found for source in sources for found in source])
    supported = sum(any(each.says is Says.SPLIT_SUPPORT for each in source) for source in sources)
    verdict, reason = _verdict(port, findings, supported)
    box = next((each for each in findings if each.box_hops is not None), None)
    is_split = verdict is CheckVerdict.SPLIT_TCP
    # Behind a split the leg that it hides explains late answers.
    causes = [each.cause for each in findings if each.says is Says.FIRST and each.cause] or [
        each.cause for each in findings if each.cause and not (is_split and each.cause is Cause.SLOW_SERVER)
    ]
    return PortVerdict(
        family=port.family,
        port=port.port,
        verdict=verdict,
        reason=reason,
        causes=tuple(dict.fromkeys(causes)),
        hosts=len({each.host for each in port.places if not is_documentation_address(each.place.address)}),
        hosts_split=len(_hosts(findings, Says.SPLIT, Says.SPLIT_SUPPORT)),
        hosts_regular=len(_hosts(findings, Says.REGULAR)),
        box_hops=box.box_hops if box and is_split else None,
        router_before=box.router_before if box and is_split else "",
        numbers=_numbers(port, findings),
        findings=findings,
    )


def _guarded(findings: Sequence[CheckFinding]) -> tuple[CheckFinding, ...]:
    """Findings of which none rests on equal times of hosts that several machines answer for."""
    several = _of(findings, Says.SEVERAL)
    if not several:
        return tuple(findings)
    why = f"Hosts at different distances acknowledge data after one time, but no middlebox does. {several[0].sentence}"
    return tuple(replace(each, says=Says.NAMED, sentence=why) if each.name == ONE_TIME else each for each in findings)


def _verdict(port: PortMaterial, findings: Sequence[CheckFinding], supported: int) -> tuple[CheckVerdict, str]:
    """The verdict with its reason; so many experiments `supported` a split."""
    reached = {each.host for each in port.places if QUESTIONS in each.measured}
    if not reached:
        return CheckVerdict.INCONCLUSIVE, "No host could be reached on this port."
    first = _of(findings, Says.FIRST)
    if first:
        return CheckVerdict.INCONCLUSIVE, first[0].sentence
    decisive, support = _of(findings, Says.SPLIT), _of(findings, Says.SPLIT_SUPPORT)
    if decisive or supported > 1:
        return CheckVerdict.SPLIT_TCP, _sentences((*decisive, *support))
    regular = _of(findings, Says.REGULAR)
    if not support and len(_hosts(findings, Says.REGULAR)) >= min(LEAST_HOSTS, len(reached)):
        named = [each for each in findings if each.cause is Cause.SYN_PROXY][:1]
        return CheckVerdict.REGULAR, _sentences((*regular, *named)) + _silent_addresses(findings, port)
    return CheckVerdict.INCONCLUSIVE, _open_reason(port, support, findings)


def _silent_addresses(findings: Sequence[CheckFinding], port: PortMaterial) -> str:
    asked = any(is_documentation_address(each.place.address) for each in port.places)
    if not asked or any("documentation_addresses_asked" in each.numbers for each in findings):
        return ""
    return " None are acknowledged at documentation addresses, at which no host can be."


def _open_reason(port: PortMaterial, support: Sequence[CheckFinding], findings: Sequence[CheckFinding]) -> str:
    if support:
        why = "Nothing else shows the same, and a site may answer from another place: more targets would decide."
        return f"{support[0].sentence} {why}"
    guarded = next((each for each in findings if each.name == ONE_TIME), None)
    if guarded:
        return guarded.sentence
    reached = [each for each in port.places if QUESTIONS in each.measured]
    late = next((each.sentence for each in findings if each.cause is Cause.SLOW_SERVER), "")
    if all(not each.distance.beyond_hops for each in reached):
        unknown = "No router reports what it drops, so that distances are unknown; a probe server of one's own decides."
        return f"{unknown} {late}".strip()
    if all(each.distance.beyond_hops <= 1 for each in reached):
        return "The hosts are so near that no router between could be told from them; farther targets would decide."
    return "Too few hosts answered in a way that shows how far their data travel: more targets would decide."


def _numbers(port: PortMaterial, findings: Sequence[CheckFinding]) -> dict[str, float | int | None]:
    asked = [each for each in port.places if is_documentation_address(each.place.address)]
    reached = list(port.of(QUESTIONS, Questions))
    numbers: dict[str, float | int | None] = {
        "documentation_addresses_asked": len(asked),
        "documentation_addresses_acknowledged": 0,
        "least_acknowledgement_s": _least(found.acknowledged_s for _, found in reached),
        "least_datagram_round_trip_s": _least(each.distance.round_trip_s for each, _ in reached),
        "least_answer_gap_s": _least(found.answer_gap_s for _, found in reached),
    }
    for each in findings:
        numbers |= each.numbers
    return numbers


def _least(times_s: Iterable[float | None]) -> float | None:
    return min((each for each in times_s if each is not None), default=None)


def _of(findings: Sequence[CheckFinding], says: Says) -> list[CheckFinding]:
    return [each for each in findings if each.says is says]


def _hosts(findings: Sequence[CheckFinding], *says: Says) -> set[str]:
    return {host for each in findings if each.says in says for host in each.hosts}


def _sentences(findings: Iterable[CheckFinding]) -> str:
    return " ".join(dict.fromkeys(each.sentence for each in findings))
