"""What a page draws of groups comes from the same exchanges that were judged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from detector.detection import detect
from detector.one_capture import group_series
from pepscope.results.verdicts import DetectionResult, GroupSeries

CAPTURES = Path(__file__).parents[2] / "one_ended"


@cache
def judged(name: str) -> DetectionResult:
    return detect(str(CAPTURES / f"{name}.mobile.pcap.gz"), series=True)


def drawn(name: str) -> Sequence[GroupSeries]:
    return [group.series for group in judged(name).groups if group.series is not None]


@pytest.mark.parametrize("name", ["lte-none", "lte-split", "lte-synproxy"])
def test_series_hold_the_exchanges_that_were_counted(name: str) -> None:
    for group in judged(name).groups:
        series = group.series
        assert series is not None
        assert series.exchange_count == group.exchanges == len(series.exchange_s)
        of_host = np.bincount(series.exchange_host, minlength=len(group.by_host))
        assert of_host.tolist() == [host.exchanges for host in group.by_host]
        assert (series.exchange_transport_s <= series.exchange_s + 1e-9).mean() > 0.9
        for place, host in enumerate(group.by_host):
            shaken = series.handshake_s[series.handshake_host == place]
            assert len(shaken) <= host.connections
            assert host.near_round_trip_s is None or not len(shaken) or shaken.min() >= host.near_round_trip_s - 1e-9


def test_a_split_shows_in_what_is_drawn() -> None:
    def beyond(name: str) -> float:
        return float(np.median(np.concatenate([each.exchange_s - each.exchange_transport_s for each in drawn(name)])))

    assert beyond("lte-split") > 0.01
    assert beyond("lte-none") < 0.01


def test_references_are_those_of_the_groups_hosts() -> None:
    for group in judged("lte-split").groups:
        assert group.series is not None
        assert set(group.series.reference_kind) == {"icmp-echo", "quic-initial"}
        for place, host in enumerate(group.by_host):
            of_host = group.series.reference_s[group.series.reference_host == place]
            assert host.reference_round_trip_s is not None
            assert of_host.min() <= host.reference_round_trip_s <= of_host.max()


def test_points_and_groups_have_limits_and_nothing_is_collected_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_series, "SERIES_GROUPS", 1)
    monkeypatch.setattr(group_series, "SERIES_POINTS", 7)
    path = str(CAPTURES / "lte-split.mobile.pcap.gz")
    kept = [group.series for group in detect(path, series=True).groups if group.series is not None]
    assert len(kept) == 1
    assert len(kept[0].exchange_s) == len(kept[0].exchange_kind) == len(kept[0].handshake_s) == 7
    assert kept[0].exchange_count > 7
    assert all(group.series is None for group in detect(path).groups)
