"""Scores the detector on simulated captures: the campaign `detector-validation`, several times over.

Every run brings its truth. Where the truth says that the captures show the answer (`expectation`), the verdict has to
be it; elsewhere *inconclusive* is right as well. A regular connection called split, or a split one called regular, is
wrong anywhere. `python -m benchmarks.validation.simulated [--times N] [--write docs/validation/simulated.md]`
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.validation.marked_sections import write_section
from pepscope import detect
from pepscope.results.verdicts import Verdict
from reference_sim.library import campaign_path
from reference_sim.run import Run
from reference_sim.scenario import Scenario
from reference_sim.simulation import simulate
from reference_sim.sweep import Campaign

CAMPAIGN = "detector-validation"
SECTION = "simulated"

#: Data segments that each capture has to show at least: three initial windows.
ENOUGH_SEGMENTS = 30

#: What a store has to hold when the receiver's first byte comes, as a share of everything, to look like no relay.
STORED_SHARE = 0.9

#: Kinds of proxy that relay.
_RELAYS = ("split-proxy", "window-adaptation-proxy")

_FORWARDED = {"download": (False, "server", "mobile"), "http": (False, "server", "mobile")}
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expectation:
    """The verdicts that are right for a connection."""

    truth: Verdict
    #: Verdicts that are right.
    right: frozenset[Verdict]

    @property
    def shows(self) -> str:
        """What of the truth shows: `class`; `split`, but not by which kind; or `nothing` for sure."""
        if Verdict.INCONCLUSIVE in self.right:
            return "nothing"
        return "class" if self.right == {self.truth} else "split"


@dataclass(frozen=True, slots=True)
class Judged:
    """One run and the detector's verdicts on it."""

    variant: str
    expectation: Expectation
    verdict: Verdict
    reason: str
    seed: int


def expectation(run: Run, flow: Mapping[str, Any]) -> Expectation:
    """What the captures of `run` can show of a flow, derived from the truth alone.

    Packets tell themselves by timestamps, or by IPv4 identifications, as far as no middlebox strips, shifts or zeroes
    them; a relay from a store, if more is transferred than the relay can hold, or if the store holds next to everything
    when the receiver's first byte comes, the unknown clocks taken at their friendliest.
    """
    truth = Verdict(flow["class"])
    is_up, sender, receiver = _FORWARDED.get(flow["kind"], (True, "mobile", "server"))
    enough = flow[sender]["tcp"]["data_segments_sent"] >= ENOUGH_SEGMENTS and flow[receiver]["read_bytes"] > 0
    if truth is Verdict.REGULAR:
        shown = enough and (_has_timestamps(run.truth["scenario"]) or _has_identifications(run.truth["scenario"], flow))
        return Expectation(truth, frozenset({truth} if shown else {truth, Verdict.INCONCLUSIVE}))
    right = {truth}
    if not _kind_shows(run, flow, is_up, receiver):
        right |= {Verdict.SPLIT_TCP, Verdict.TCP_PROXY}
    if not (enough and _has_timestamps(run.truth["scenario"])):
        right.add(Verdict.INCONCLUSIVE)
    return Expectation(truth, frozenset(right))


def _has_timestamps(scenario: Mapping[str, Any]) -> bool:
    """Whether any leg has timestamps that are as their sender made them."""
    boxes = [hop for hop in scenario["path"] if hop["kind"] == "rewriter"]
    if any(hop["strips_timestamps"] or hop["shifts_timestamps"] for hop in boxes):
        return False
    ends = [scenario["server"], *(hop[leg] for hop in _proxies(scenario) for leg in ("server_leg", "mobile_leg"))]
    ends.append(scenario["mobile"])
    return any(near["timestamps"] and far["timestamps"] for near, far in zip(ends[::2], ends[1::2], strict=True))


def _has_identifications(scenario: Mapping[str, Any], flow: Mapping[str, Any]) -> bool:
    address = next(iter(flow["addresses"].values()))["server"]["address"]
    zeroed = any(hop["kind"] == "rewriter" and hop["zeroes_ip_identification"] for hop in scenario["path"])
    return ":" not in address and not zeroed


def _proxies(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [hop for hop in scenario["path"] if "server_leg" in hop]


def _kind_shows(run: Run, flow: Mapping[str, Any], is_up: bool, receiver: str) -> bool:
    proxy = _proxies(run.truth["scenario"])[0]
    if proxy["kind"] in _RELAYS:
        leg = proxy["mobile_leg" if is_up else "server_leg"]
        room = leg["receive_buffer_bytes"] + proxy["buffer_bytes"]
        return bool(flow[receiver]["read_bytes"] > 2 * room)
    return _stored_share(run, flow["flow"], is_up) >= STORED_SHARE


def _stored_share(run: Run, flow: int, is_up: bool) -> float:
    """Share acknowledged to the sender when the receiver's first byte came, under the friendliest clock."""
    legs = (1, 0) if is_up else (0, 1)
    (sent, taken, near_end), (_, arrived, far_end) = (_first_arrivals(run, flow, is_up, leg) for leg in legs)
    if not len(near_end) or not len(far_end):
        return 0.0
    # When the sender first sent what each arrival at the receiver completes.
    places = np.minimum(np.searchsorted(near_end, far_end), len(near_end) - 1)
    fastest = float(np.min(arrived - sent[places]))
    acknowledged = taken + (taken - sent)
    return float(near_end[acknowledged <= arrived[0] - fastest].max(initial=0.0) / near_end[-1])


def _first_arrivals(run: Run, flow: int, is_up: bool, leg: int) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Sending time, arrival and end in the stream of each piece of data that came to the end of a leg first."""
    seen = run.arrivals
    chosen = (seen["flow"] == flow) & (seen["leg"] == leg) & (seen["is_up"] == is_up) & (seen["payload_bytes"] > 0)
    sequence = seen["sequence"][chosen].astype(np.int64)
    if not len(sequence):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    start = (sequence - sequence[0] + 2**31) % 2**32
    ends = start - start.min() + seen["payload_bytes"][chosen]
    order = np.argsort(ends, kind="stable")
    times = (seen[name][chosen][order].astype(np.float64) for name in ("sent_ns", "arrived_ns"))
    sent, arrived = times
    kept = np.concatenate([[True], np.diff(ends[order]) > 0])
    return sent[kept], arrived[kept], ends[order][kept].astype(np.float64)


def judge(variant: str, scenario: Scenario) -> list[Judged]:
    """Run a scenario, hand its captures to the detector, and compare."""
    with tempfile.TemporaryDirectory() as directory:
        run = simulate(scenario.with_values({"record.one_way_delays": True}), directory)
        result = detect(str(run.captures["server"]), str(run.captures["mobile"]))
    ports = {flow["addresses"]["mobile"]["mobile"]["port"]: flow for flow in run.truth["flows"]}
    judged = []
    for pair in result.pairs:
        port = next((_port(one.client) for one in pair.vantages if one.capture == str(run.captures["mobile"])), None)
        if port in ports and len(pair.vantages) == 2:
            expected = expectation(run, ports.pop(port))
            judged.append(Judged(variant, expected, pair.verdict, pair.reason, scenario.seed))
    for flow in ports.values():
        # One capture alone may say nothing.
        expected = expectation(run, flow)
        if flow["mobile"]["read_bytes"] and flow["server"]["read_bytes"]:
            judged.append(Judged(variant, expected, Verdict.INCONCLUSIVE, "in one capture only", scenario.seed))
    return judged


def _port(client: str) -> int:
    return int(client.rsplit(":", 1)[1])


def judge_point(given: tuple[str, str]) -> list[Judged]:
    """`judge`, of a variant and its scenario as JSON."""
    variant, scenario = given
    return judge(variant, Scenario.from_mapping(json.loads(scenario)))


def points(times: int) -> Iterator[tuple[str, str]]:
    """Variant and scenario (JSON) of every run, `times` campaigns with seeds of their own."""
    campaign = Campaign.from_toml(campaign_path(CAMPAIGN))
    for number in range(times):
        for point in replace(campaign, seed=campaign.seed + 1000 * number).points():
            yield point.variant, point.scenario.to_json()


def table(judged: list[Judged]) -> str:
    """Class by verdict, where the truth shows and where it does not, as Markdown."""
    kinds = list(Verdict)
    counts = Counter((one.variant, one.expectation.truth, one.expectation.shows, one.verdict) for one in judged)
    lines = [
        "| in the path | truth | shows | " + " | ".join(kinds) + " |",
        "|---|---|---|" + "---:|" * len(kinds),
    ]
    for variant, truth, shows in dict.fromkeys(sorted(key[:3] for key in counts)):
        row = [str(counts[variant, truth, shows, kind] or "") for kind in kinds]
        lines.append(f"| {variant} | {truth} | {shows} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def section(judged: list[Judged]) -> str:
    """The section of docs/validation/simulated.md."""
    shown = [one for one in judged if one.expectation.shows == "class"]
    right = sum(one.verdict is one.expectation.truth for one in shown)
    split = [one for one in judged if one.expectation.shows == "split"]
    found = sum(one.verdict.is_split for one in split)
    false = sum(one.expectation.truth is Verdict.REGULAR and one.verdict.is_split for one in judged)
    missed = sum(one.expectation.truth is not Verdict.REGULAR and one.verdict is Verdict.REGULAR for one in judged)
    wrong = sum(one.verdict not in one.expectation.right for one in judged)
    return (
        f"{len(judged)} simulated connections: {false} false alarms, {missed} split ones called regular. Where the "
        f"truth says that the class shows, {right} of {len(shown)} verdicts are right; where only the split shows, "
        f"{found} of {len(split)}; {wrong} of all {len(judged)} are not among those that the truth allows.\n\n"
        f"{table(judged)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=1, help="campaigns, each with other draws")
    parser.add_argument("--write", type=Path, help="a page with the marked section")
    chosen = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        judged = [one for several in pool.map(judge_point, points(chosen.times), chunksize=8) for one in several]
    text = section(judged)
    print(text)
    for one in judged:
        if one.verdict not in one.expectation.right:
            print(
                f"\n{one.variant}, seed {one.seed}: {one.expectation.truth} called {one.verdict}: {one.reason}",
                file=sys.stderr,
            )
    if chosen.write:
        write_section(chosen.write, SECTION, text)
    alarms = any(
        one.expectation.truth is Verdict.REGULAR and one.verdict not in one.expectation.right for one in judged
    )
    return int(alarms)


if __name__ == "__main__":
    raise SystemExit(main())
