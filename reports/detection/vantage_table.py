"""Groups of one vantage point on the terminal: networks and ports with the legs on both sides of a split point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pepscope.results.verdicts import DetectionResult, GroupResult, GroupSide, HostResult, Verdict
from pepscope.terminal import printable
from reports.detection.ranking import class_probability, groups_by_attention, hosts_by_attention
from reports.quantities import format_count, format_percent, format_seconds
from reports.terminal import COLOURS, FAINT, PROBABILITY_WIDTH, VERDICT_WIDTH, faint, paint, wrapped
from reports.wording import STRETCHES, hidden_leg, place_name

#: Groups that are listed, and far hosts of one of them.
MAX_GROUPS = 20
_MOST_HOSTS = 5

#: Up to so many groups, the hosts of regular ones are listed, too; beyond, only those of their hosts that are not.
_FEW_GROUPS = 4

_PORT_WIDTH = 5
_TIME_WIDTH = 8
_PLACE_WIDTH = 7
_COUNT_WIDTH = 5

#: Gaps between columns; the hidden leg's interval is written where it fits.
_GAPS = 8
_INTERVAL_WIDTH = 22
_LEAST_NETWORK_WIDTH = 18


def vantage_lines(result: DetectionResult, colour: bool, width: int) -> Iterator[str]:
    """The groups side by side, each with its reason and, where they say more, its far hosts."""
    groups = groups_by_attention(result.groups)
    shown = groups[:MAX_GROUPS]
    sides = [side for side in GroupSide if any(group.side is side for group in shown)]
    for side in sides:
        of_side = [group for group in shown if group.side is side]
        yield from wrapped(f"{STRETCHES[side]}:", width, "", "")
        yield from _side_lines(of_side, colour, width, every_host=len(groups) <= _FEW_GROUPS)
        yield ""
    if len(groups) > len(shown):
        text = (
            f"{format_count(len(groups) - len(shown))} more networks and ports not listed here (split ones come first, "
            "then inconclusive ones, then the largest); --html, --parquet or --json writes them all"
        )
        yield from faint(text, width, colour, indent="")
        yield ""


def _side_lines(groups: Sequence[GroupResult], colour: bool, width: int, *, every_host: bool) -> Iterator[str]:
    fixed = _PORT_WIDTH + _PLACE_WIDTH + 2 * _COUNT_WIDTH + VERDICT_WIDTH + PROBABILITY_WIDTH + _TIME_WIDTH + _GAPS
    wide = width - fixed - _INTERVAL_WIDTH >= _LEAST_NETWORK_WIDTH
    leg_width = _INTERVAL_WIDTH if wide else _TIME_WIDTH
    network_width = min(width - fixed - leg_width, 40)
    heading = (
        f"{'NETWORK':<{network_width}} {'PORT':>{_PORT_WIDTH}} {'NEAR LEG':>{_TIME_WIDTH}} "
        f"{'HIDDEN LEG' if wide else 'HIDDEN':>{leg_width}} {'WHERE':<{_PLACE_WIDTH}} {'EXCH.':>{_COUNT_WIDTH}} "
        f"{'CONN.':>{_COUNT_WIDTH}} {'VERDICT':<{VERDICT_WIDTH}} {'PROB.':>{PROBABILITY_WIDTH}}"
    )
    yield paint(heading, FAINT, colour)
    for group in groups:
        yield (
            f"{_shortened(group.network, network_width):<{network_width}} {group.port:>{_PORT_WIDTH}} "
            f"{_time(group.near_round_trip_s):>{_TIME_WIDTH}} {hidden_leg(group, interval=wide):>{leg_width}} "
            f"{place_name(group):<{_PLACE_WIDTH}} {_count(group.exchanges):>{_COUNT_WIDTH}} "
            f"{_count(len(group.pairs)):>{_COUNT_WIDTH}} {_judged(group, colour)}"
        )
        yield from wrapped(printable(group.reason), width, "  ", "  ")
        yield from _host_lines(group, colour, width, every_host=every_host)


def _host_lines(group: GroupResult, colour: bool, width: int, *, every_host: bool) -> Iterator[str]:
    """The far hosts that differ from a regular group, or those of a group that is not regular."""
    if len(group.by_host) < 2:
        return
    every = hosts_by_attention(group)
    told = every_host or group.verdict is not Verdict.REGULAR
    hosts = [host for host in every if told or host.verdict is not group.verdict]
    if not hosts:
        return
    host_width = max(*(len(host.host) for host in hosts[:_MOST_HOSTS]), 4)
    heading = (
        f"  {'HOST':<{host_width}} {'NEAR LEG':>{_TIME_WIDTH}} {'HIDDEN':>{_TIME_WIDTH}} {'REFERENCE':>9} "
        f"{'EXCH.':>{_COUNT_WIDTH}} {'VERDICT':<{VERDICT_WIDTH}} {'PROB.':>{PROBABILITY_WIDTH}}"
    )
    yield paint(heading, FAINT, colour)
    for host in hosts[:_MOST_HOSTS]:
        yield (
            f"  {printable(host.host):<{host_width}} {_time(host.near_round_trip_s):>{_TIME_WIDTH}} "
            f"{_time(host.hidden_round_trip_s):>{_TIME_WIDTH}} {_time(host.reference_round_trip_s):>9} "
            f"{_count(host.exchanges):>{_COUNT_WIDTH}} {_judged(host, colour)}"
        )
    if len(hosts) > _MOST_HOSTS:
        yield from faint(f"and {format_count(len(hosts) - _MOST_HOSTS)} more hosts", width, colour)


def _judged(judged: GroupResult | HostResult, colour: bool) -> str:
    share = class_probability(judged)
    probability = "-" if share is None else format_percent(share)
    verdict = paint(f"{judged.verdict.value:<{VERDICT_WIDTH}}", COLOURS[judged.verdict], colour)
    return f"{verdict} {probability:>{PROBABILITY_WIDTH}}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)


def _count(count: int | None) -> str:
    """A number in five columns."""
    if count is None:
        return "-"
    return str(count) if count < 100_000 else f"{count // 1000}k" if count < 10_000_000 else f"{count // 1_000_000}M"


def _shortened(name: str, width: int) -> str:
    name = printable(name)
    return name if len(name) <= width else f"{name[: width - 2]}.."
