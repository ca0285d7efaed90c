"""What the detector says of each group of a capture, beside what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.one_ended_score.connections import ConnectionJudgement, connection_judgements
from benchmarks.one_ended_score.truths import GroupTruth, read_truths
from detector.detection import detect
from pepscope.errors import PepscopeError
from pepscope.results.verdicts import GroupResult, GroupSide, HostResult, SplitPlace, Verdict

#: An estimate of a round trip is right within this time or this share, whichever is more.
RIGHT_WITHIN_S, RIGHT_WITHIN_SHARE = 0.006, 0.2


@dataclass(frozen=True, slots=True)
class Judgement:
    """A group's truth and the verdict on it; `verdict` is None where the detector reports no such group."""

    truth: GroupTruth
    verdict: Verdict | None
    split_probability: float
    where: SplitPlace | None
    near_s: float | None
    hidden_s: float | None
    hidden_interval_s: tuple[float, float] | None
    exchanges: int
    connections: int
    hosts: int
    reason: str
    has_reference: bool = False  # the capture holds what no TCP split shortens, to one of its hosts

    @property
    def says_split(self) -> bool:
        """The verdict is a split of whichever kind."""
        return self.verdict is not None and self.verdict.is_split

    @property
    def accuses_network(self) -> bool:
        """It says that the network splits."""
        return self.says_split and self.where is SplitPlace.NETWORK

    @property
    def false_alarm(self) -> bool:
        """A split is reported where none is, or the network is accused of what stands at the server's site."""
        if not self.truth.is_split:
            return self.says_split
        return self.accuses_network and not self.truth.is_split_in_network

    @property
    def cleared(self) -> bool:
        """Called regular."""
        return self.verdict is Verdict.REGULAR

    @property
    def cleared_wrongly(self) -> bool:
        """Called regular though all of it is split."""
        return self.cleared and self.truth.is_split and self.truth.whole

    @property
    def location_error_s(self) -> float | None:
        """Distance of the estimated hidden leg from what it is (from the range of its hosts)."""
        if self.hidden_s is None or self.truth.hidden_s is None or not self.says_split:
            return None
        low_s, high_s = self.truth.hidden_s
        return max(low_s - self.hidden_s, self.hidden_s - high_s, 0.0)

    @property
    def location_right(self) -> bool | None:
        """Whether that is close enough."""
        error_s = self.location_error_s
        if error_s is None or self.truth.hidden_s is None:
            return None
        return error_s <= max(RIGHT_WITHIN_S, RIGHT_WITHIN_SHARE * self.truth.hidden_s[1])


@dataclass(frozen=True, slots=True)
class CaptureScore:
    """The groups of one capture, and what the detector reported besides."""

    judgements: tuple[Judgement, ...]
    strays: int  # groups that the truth does not know
    stray_splits: int
    failure: str | None
    connections: tuple[ConnectionJudgement, ...] = ()


def score_network(folder: Path) -> list[CaptureScore]:
    """Detect on every capture of a network, one by one."""
    return [score_capture(folder / file, truths) for file, truths in read_truths(folder).items()]


def score_capture(path: Path, truths: Sequence[GroupTruth]) -> CaptureScore:
    """Detect on one capture and compare by side, network, port and host."""
    try:
        result = detect(str(path))
    except PepscopeError as error:
        return CaptureScore(tuple(_unjudged(truth) for truth in truths), 0, 0, f"{path}: {error}")
    rows = {_key(group, None): group for group in result.groups}
    rows |= {_key(group, host.host): _alone(group, host) for group in result.groups for host in group.by_host}
    judgements, known = [], set()
    for truth in truths:
        key = (truth.side, truth.prefix, truth.port, truth.host)
        known.add(key)
        if key in rows:
            judgements.append(_judgement(truth, rows[key]))
        elif truth.host is None:
            judgements.append(_unjudged(truth))
    strays = [group for key, group in rows.items() if key not in known and key[3] is None]
    splits = sum(group.verdict.is_split for group in strays)
    single = connection_judgements(str(path), truths, result)
    return CaptureScore(tuple(judgements), len(strays), splits, None, single)


def _alone(group: GroupResult, host: HostResult) -> GroupResult:
    """One host of a group as a group."""
    fields = ("exchanges", "verdict", "probability", "where", "near_round_trip_s", "hidden_round_trip_s")
    interval = host.hidden_round_trip_interval_s
    own = {name: getattr(host, name) for name in fields}
    return replace(group, hosts=(host.host,), by_host=(), hidden_round_trip_interval_s=interval, **own)


def _key(group: GroupResult, host: str | None) -> tuple[str, str, int, str | None]:
    side = "client" if group.side is GroupSide.CLIENT else "server"
    return side, group.network, group.port, host


def _judgement(truth: GroupTruth, group: GroupResult) -> Judgement:
    exchanges = truth.exchanges if group.exchanges is None else group.exchanges
    return Judgement(
        truth,
        group.verdict,
        sum(share for verdict, share in group.probability.items() if verdict.is_split),
        group.where,
        group.near_round_trip_s,
        group.hidden_round_trip_s,
        group.hidden_round_trip_interval_s,
        exchanges or 0,
        len(group.pairs),
        len(group.hosts),
        group.reason,
        any(evidence.method == "reference" for evidence in group.evidence),
    )


def _unjudged(truth: GroupTruth) -> Judgement:
    return Judgement(truth, None, 0.5, None, None, None, None, truth.exchanges or 0, 0, 0, "")
