"""The score as tables: by side, number of exchanges and hidden leg, as the goals are stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.calibration.report import table as reliability_table
from benchmarks.one_ended_score.judgements import CaptureScore, Judgement
from detector.corpora.validation.calibration import Claims
from detector.corpora.validation.intervals import Share

Test = Callable[[Judgement], bool]

#: Side, name, least and most exchanges: the rows in which the goals are stated.
SIZES: tuple[tuple[str, str, float, float], ...] = (
    ("server", "under 4", 0, 3),
    ("server", "4-15", 4, 15),
    ("server", "16 and more", 16, math.inf),
    ("client", "under 4", 0, 3),
    ("client", "4-7", 4, 7),
    ("client", "8 and more", 8, math.inf),
)
#: Name, least and most round trip of the hidden leg in seconds.
LEGS = (("below 5 ms", 0.0, 0.005), ("5-15 ms", 0.005, 0.015), ("15-40 ms", 0.015, 0.04), ("40 ms and more", 0.04, 1e9))


@dataclass(frozen=True, slots=True)
class Row:
    """One count: of which groups, in words, and what is counted."""

    table: str
    side: str
    exchanges: str
    groups: str
    what: str
    share: Share


def share(judgements: Iterable[Judgement], counted: Test) -> Share:
    """How many of them are counted."""
    return Share.that(counted(judgement) for judgement in judgements)


def by_size(judgements: Sequence[Judgement], *, by_host: bool) -> list[tuple[str, str, list[Judgement]]]:
    """Side, exchanges, and the groups of all hosts (or of one host) that have so many."""
    made = []
    for side, size, least, most in SIZES:
        inside = [
            each
            for each in judgements
            if each.truth.side == side and least <= each.exchanges <= most and (each.truth.host is not None) == by_host
        ]
        if inside:
            made.append((side, size, inside))
    return made


def rows(judgements: Sequence[Judgement], *, by_host: bool = False) -> list[Row]:
    """Every count, in the order of the goals."""
    name = "by host" if by_host else "by network and port"
    made = [
        Row(name, side, size, groups, what, counts)
        for side, size, inside in by_size(judgements, by_host=by_host)
        for groups, what, counts in (*_harmless(inside), *_split(inside), *_at_server(inside))
    ]
    return [row for row in made if row.share.of]


Counts = list[tuple[str, str, Share]]


def _harmless(inside: Sequence[Judgement]) -> Counts:
    harmless = [each for each in inside if not each.truth.is_split]
    plain = [each for each in harmless if each.truth.kind == "regular" and not each.truth.thinks]
    thinking = [each for each in harmless if each.truth.thinks]
    handshakes = [each for each in harmless if each.truth.kind == "syn-proxy"]
    return [
        ("not split", "false alarm", share(harmless, lambda each: each.false_alarm)),
        ("not split, client thinks", "false alarm", share(thinking, lambda each: each.false_alarm)),
        ("not split, SYN proxy", "false alarm", share(handshakes, lambda each: each.false_alarm)),
        ("not split", "cleared", share(harmless, lambda each: each.cleared)),
        ("regular, no think time", "cleared", share(plain, lambda each: each.cleared)),
    ]


def _split(inside: Sequence[Judgement]) -> Counts:
    made: Counts = []
    for name, low_s, high_s in LEGS:
        split = _hidden_between(inside, low_s, high_s)
        for kind, answers_itself in (("split", False), ("split, box answers itself", True)):
            members = [each for each in split if each.truth.answers_itself is answers_itself]
            made += [
                (f"{kind}, {name}", "found", share(members, lambda each: each.says_split)),
                (f"{kind}, {name}", "called regular", share(members, lambda each: each.cleared_wrongly)),
            ]
        hosts = [each for each in split if each.hosts >= 3 and not each.truth.answers_itself]
        made.append((f"split, {name}, 3 hosts or more", "found", share(hosts, lambda each: each.says_split)))
        found = [each for each in split if each.says_split]
        placed = [each for each in found if each.location_right is not None]
        spanned = [each for each in found if each.hidden_interval_s is not None]
        made += [
            (f"split, {name}", "where right", share(found, lambda each: each.where == "network")),
            (f"split, {name}", "located", share(placed, lambda each: each.location_right is True)),
            (f"split, {name}", "in its interval", share(spanned, _in_interval)),
        ]
    return made


def _at_server(inside: Sequence[Judgement]) -> Counts:
    made: Counts = []
    for name, low_s, high_s in LEGS:
        own = _hidden_between(inside, low_s, high_s, in_network=False)
        made += [
            (f"split at the server, {name}", "network accused", share(own, lambda each: each.accuses_network)),
            (f"split at the server, {name}", "found as such", share(own, lambda each: each.where == "server")),
            (f"split at the server, {name}", "called regular", share(own, lambda each: each.cleared_wrongly)),
        ]
    return made


def _hidden_between(
    inside: Sequence[Judgement], low_s: float, high_s: float, *, in_network: bool = True
) -> list[Judgement]:
    """Groups that are split, in the network or else at the server, with such a hidden leg."""
    return [
        each
        for each in inside
        if each.truth.is_split and each.truth.is_split_in_network is in_network and low_s <= _hidden_s(each) < high_s
    ]


def goals(judgements: Sequence[Judgement], *, by_host: bool) -> list[str]:
    """The goals' table: false alarms of any kind, cleared, and found where the box answers nothing itself."""
    lines = [
        "| side | exchanges | false alarms | cleared | "
        + " | ".join(f"found, {name}" for name, low_s, _ in LEGS if low_s)
        + " | found, 15 ms and more | called regular, 15 ms and more | found, 3 distant hosts | found, a reference"
        " | found, acknowledgements not held back |",
        "|---|---|" + "---|" * (len(LEGS) + 6),
    ]
    for side, size, inside in by_size(judgements, by_host=by_host):
        blameless = [each for each in inside if not each.truth.is_split_in_network]
        plain = [each for each in inside if each.truth.kind == "regular" and not each.truth.thinks]
        cells = [
            share(blameless, lambda each: each.false_alarm),
            share(plain, lambda each: each.cleared),
        ]
        spans = [(low_s, high_s) for _, low_s, high_s in LEGS if low_s] + [(0.015, math.inf)]
        for low_s, high_s in spans:
            split = [each for each in _hidden_between(inside, low_s, high_s) if not each.truth.answers_itself]
            cells.append(share(split, lambda each: each.says_split))
        split = _hidden_between(inside, 0.015, math.inf)
        cells.append(share(split, lambda each: each.cleared_wrongly))
        relayed = [each for each in split if not each.truth.answers_itself and not by_host]
        eased: tuple[Test, ...] = (
            lambda each: each.truth.distant_hosts >= 3,
            lambda each: each.has_reference,
            lambda each: not each.truth.holds_acknowledgements,
        )
        cells += [share(filter(easier, relayed), lambda each: each.says_split) for easier in eased]
        lines.append(f"| {side} | {size} | " + " | ".join(map(str, cells)) + " |")
    return lines


def single(scores: Sequence[CaptureScore]) -> list[Row]:
    """Counts of single connections of clients' captures."""
    connections = [each for score in scores for each in score.connections]
    made = []
    for size, least, most in (("under 4", 0, 3), ("4 and more", 4, math.inf)):
        inside = [each for each in connections if least <= each.exchanges <= most]
        harmless = [each for each in inside if not each.truth.is_split]
        plain = [each for each in harmless if each.truth.kind == "regular"]
        counts = [
            ("not split", "false alarm", Share(sum(each.false_alarm for each in harmless), len(harmless))),
            ("regular", "cleared", Share(sum(each.verdict == "regular" for each in plain), len(plain))),
        ]
        for name, low_s, high_s in (*LEGS[:-1], ("40-90 ms", 0.04, 0.09), ("90 ms and more", 0.09, math.inf)):
            split = [
                each
                for each in inside
                if each.truth.is_split_in_network
                and not each.truth.answers_itself
                and each.truth.hidden_s is not None
                and low_s <= each.truth.hidden_s[1] < high_s
            ]
            found = Share(sum(each.verdict.is_split for each in split), len(split))
            cleared = Share(sum(each.verdict == "regular" for each in split), len(split))
            counts += [(f"split, {name}", "found", found), (f"split, {name}", "called regular", cleared)]
        made += [Row("single connections", "client", size, groups, what, share) for groups, what, share in counts]
    return [row for row in made if row.share.of]


def located(judgements: Sequence[Judgement]) -> list[str]:
    """How near the estimated hidden legs are, by side, and whether the place is right."""
    lines = [
        "| side | hidden leg located | median error | 80 % quantile | in its interval | where right |",
        "|---|---|---|---|---|---|",
    ]
    for side in ("server", "client"):
        found = [each for each in judgements if each.truth.side == side and each.truth.is_split and each.says_split]
        errors_s = sorted(each.location_error_s for each in found if each.location_error_s is not None)
        placed = [each for each in found if each.location_right is not None]
        spanned = [each for each in found if each.hidden_interval_s is not None]
        middle, upper = (
            f"{errors_s[int(part * len(errors_s))] * 1e3:.1f} ms" if errors_s else "-" for part in (0.5, 0.8)
        )
        right = share(placed, lambda each: each.location_right is True)
        where = share(found, lambda each: each.where == each.truth.where)
        cells = [str(right), middle, upper, str(share(spanned, _in_interval)), str(where)]
        lines.append(f"| {side} | " + " | ".join(cells) + " |")
    return lines


def _hidden_s(judgement: Judgement) -> float:
    return judgement.truth.hidden_s[1] if judgement.truth.hidden_s is not None else 0.0


def _in_interval(judgement: Judgement) -> bool:
    interval, truth = judgement.hidden_interval_s, judgement.truth.hidden_s
    return interval is not None and truth is not None and interval[0] <= truth[1] and truth[0] <= interval[1]


def claims(judgements: Sequence[Judgement], side: str) -> Claims:
    """Probabilities of a split on one side, of groups that are all of one kind."""
    judged = [
        each
        for each in judgements
        if each.truth.side == side and each.truth.host is None and each.truth.whole and each.verdict is not None
    ]
    return Claims(
        f"split, {side} side",
        tuple(each.split_probability for each in judged),
        tuple(each.truth.is_split for each in judged),
    )


def worst(judgements: Sequence[Judgement], limit: int) -> list[tuple[str, Judgement]]:
    """The errors that weigh most: false alarms, splits called regular, wrong places, wide hidden legs not found."""
    kinds: tuple[tuple[str, Test], ...] = (
        ("false alarm", lambda each: each.false_alarm),
        ("called regular", lambda each: each.cleared_wrongly and _hidden_s(each) >= LEGS[0][2]),
        ("wrong place", lambda each: each.truth.is_split_in_network and each.says_split and each.where == "server"),
        ("badly located", lambda each: each.location_right is False),
        ("not found", lambda each: each.truth.is_split_in_network and not each.says_split and not each.cleared),
    )
    made: list[tuple[str, Judgement]] = []
    for name, test in kinds:
        wrong = sorted((each for each in judgements if test(each)), key=_weight, reverse=True)
        made += [(name, each) for each in wrong[:limit]]
    return made


def _weight(judgement: Judgement) -> tuple[float, float, int]:
    if judgement.false_alarm:
        return judgement.split_probability, float(judgement.exchanges), judgement.connections
    return _hidden_s(judgement), float(judgement.exchanges), judgement.connections


def text(scores: Sequence[CaptureScore], errors: int, *, details: bool) -> str:
    """The report."""
    judgements = [each for score in scores for each in score.judgements]
    lines = [_summary(scores, judgements), "", "Groups by network and port:", "", *goals(judgements, by_host=False)]
    if any(each.truth.host is not None for each in judgements):
        lines += ["", "Groups by host:", "", *goals(judgements, by_host=True)]
    if any(score.connections for score in scores):
        lines += ["", "Single connections, client side:", "", "| exchanges | of those that are | what | share |"]
        lines += ["|---|---|---|---|"]
        lines += [f"| {row.exchanges} | {row.groups} | {row.what} | {row.share} |" for row in single(scores)]
    lines += ["", "Splits found:", "", *located(judgements)]
    if details:
        lines += ["", "| groups | side | exchanges | of those that are | what | count, share, 95 % interval |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| {row.table} | {row.side} | {row.exchanges} | {row.groups} | {row.what} | {row.share} |"
            for row in rows(judgements) + rows(judgements, by_host=True)
        ]
    for side in ("server", "client"):
        made = claims(judgements, side)
        if made.said:
            lines += ["", f"Probabilities of a {made.name}: Brier score {made.brier:.4f} on {len(made.said)} groups."]
            lines += ["", reliability_table(made)]
    lines += ["", "Worst errors:"]
    lines += [_line(name, judgement) for name, judgement in worst(judgements, errors)]
    return "\n".join(lines)


def _summary(scores: Sequence[CaptureScore], judgements: Sequence[Judgement]) -> str:
    missing = sum(each.verdict is None for each in judgements)
    strays, splits = sum(score.strays for score in scores), sum(score.stray_splits for score in scores)
    failures = [score.failure for score in scores if score.failure is not None]
    head = (
        f"{len(scores)} captures, {len(judgements)} groups; {missing} groups not reported, "
        f"{strays} reported that the truth does not know ({splits} called split)."
    )
    return "\n".join([head, *failures])


def _line(name: str, judgement: Judgement) -> str:
    truth = judgement.truth
    hidden = (
        "" if truth.hidden_s is None else f", hidden {truth.hidden_s[0] * 1e3:.1f}-{truth.hidden_s[1] * 1e3:.1f} ms"
    )
    said = "" if judgement.hidden_s is None else f" hidden {judgement.hidden_s * 1e3:.1f} ms"
    host = "" if truth.host is None else f" {truth.host}"
    return (
        f"- {name}: {truth.network}/{truth.capture} {truth.side} {truth.prefix} port {truth.port}{host} "
        f"[{truth.access}, {truth.middle}, {truth.kind} {truth.where or ''}{hidden}{', thinks' if truth.thinks else ''}"
        f"{', cut' if truth.cut else ''}] said {judgement.verdict} {judgement.split_probability:.3f}{said} on "
        f"{judgement.exchanges} exchanges: {judgement.reason}"
    )
