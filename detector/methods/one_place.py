"""One capture point: both captures were taken at one place, so that comparing them shows nothing of the path."""

from __future__ import annotations

from detector.method import Context, Findings, Method
from detector.vantage.one_place import OnePlace
from pepscope.results.finding import Finding, inapplicable
from pepscope.results.verdicts import Evidence

NAME = "one_place"


class OneVantagePointFinding(Finding):
    """Two captures of one place."""

    ONE_VANTAGE_POINT = inapplicable("one-vantage-point", is_missing=True)


def examine(context: Context) -> Findings:
    """The finding that both captures of a connection were taken at one place, and why."""
    places = {row: each.place for row, each in enumerate(context.observations) if each.place is not None}
    return Findings.of_rows({row: _found(place) for row, place in places.items()}, ())


def _found(place: OnePlace) -> Evidence:
    if place.round_trip_ns is None:
        shown = (
            f"the times of all {place.common} packets in common, which travel in one direction, differ by a constant"
        )
    else:
        shown = (
            f"{place.common} packets in common show no round trip between the captures beyond the resolution of "
            f"their time stamps ({place.resolution_ns / 1e3:g} us), and the same hop limits"
        )
    return OneVantagePointFinding.ONE_VANTAGE_POINT.undecided(
        NAME,
        f"Both captures were taken at one place ({shown}): there is no path between them, and they were judged as one "
        "capture.",
        {
            "packets_in_common": place.common,
            "round_trip_between_s": None if place.round_trip_ns is None else place.round_trip_ns / 1e9,
            "time_resolution_s": place.resolution_ns / 1e9,
        },
    )


METHOD = Method(NAME, "one place", (OneVantagePointFinding,), examine, judges_plain=False)
