"""Answers to odd requests: one program's for all hosts, or each host's own."""

from __future__ import annotations

import contextlib

from prober.check.experiment import Asked, PlaceObservation, PortMaterial
from prober.check.experiments.odd_requests import OddRequests
from prober.check.experiments.questions import NAME, Questions
from prober.check.finding import Cause, Says
from prober.check.given import Given
from prober.check.probes.data_probe import ask
from prober.check.probes.distances import Distance
from prober.check.questions import question
from prober.check.targets import Place, Target
from tests.prober.check.experiments.answering import answering

EXPERIMENT = OddRequests()


def host(name: str, box: bool):
    """A server of that name; behind a box that answers what it does not know."""

    def answer(request: bytes) -> bytes:
        is_ordinary = request.startswith(b"HEAD /") and b".invalid" not in request
        if box and not is_ordinary:
            return b"HTTP/1.1 503 Service Unavailable\r\nServer: box/1\r\nVia: 1.1 box\r\n\r\n"
        status = b"200 OK" if is_ordinary else b"400 Bad Request"
        return b"HTTP/1.1 " + status + b"\r\nServer: " + name.encode() + b"\r\n\r\n"

    return answer


def found(boxes: tuple[bool, ...], names: tuple[str, ...] = ("one", "two", "three")):
    observations: list[PlaceObservation] = []
    with contextlib.ExitStack() as stack:
        for name, box in zip(names, boxes, strict=True):
            port = stack.enter_context(answering(host(name, box)))
            place = Place(Target(f"{len(observations)}.example", port, False), "127.0.0.1")
            asked = Questions((ask(place.address, port, question(place.target), None, 60, 60),))
            earlier: dict[str, object] = {NAME: asked}
            measured = EXPERIMENT.measure(Asked(place, Distance.unknown(), Given(), earlier))
            assert measured is not None
            observations.append(PlaceObservation(place, Distance.unknown(), {**earlier, EXPERIMENT.name: measured}))
    return observations, list(EXPERIMENT.examine(PortMaterial(4, 80, observations)))


def test_one_answer_for_all_hosts_is_named_and_moves_nothing():
    observations, (finding,) = found((True, True, True))
    assert (finding.says, finding.cause) == (Says.NAMED, Cause.HTTP_PROXY)
    assert "unknown host, unknown method, no more forwarding" in finding.sentence
    document = EXPERIMENT.document(observations[0].measured[EXPERIMENT.name])
    assert document["unknown-host"] == {"status": 503, "declared": ["via"]}


def test_each_hosts_own_answer_is_nothing():
    assert found((False, False, False))[1] == []
    assert found((True, True, False))[1] == []


def test_hosts_of_one_server_answer_alike_anyway():
    assert found((True, True, True), ("one", "one", "one"))[1] == []
