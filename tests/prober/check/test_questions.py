"""What hosts say, read without trust: any bytes, and nothing that a terminal would obey."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prober.check.experiment import PlaceObservation, PortMaterial
from prober.check.experiments.echo_service import Echoed, EchoExperiment
from prober.check.probes.distances import Distance
from prober.check.questions import http_field, http_status, question
from prober.check.targets import Place, Target

FIELDS = st.dictionaries(st.sampled_from(["Server", "Location", "ETag"]), st.binary(max_size=40))


def test_answers_are_read():
    head = b"HTTP/1.1 302 Found\r\nserver: one\r\nLocation:  http://a.example/\r\n\r\nServer: two"
    assert (http_status(head), http_field(head, "Server"), http_field(head, "location")) == (
        302, "one", "http://a.example/",
    )  # fmt: skip
    assert (http_status(b"220 ready"), http_status(b""), http_field(b"", "Server")) == (None, None, "")


@given(st.binary(max_size=200), FIELDS)
def test_nothing_that_a_host_says_is_obeyed_by_a_terminal(noise, fields):
    lines = [name.encode() + b": " + value for name, value in fields.items()]
    head = b"\r\n".join([b"HTTP/1.1 200 OK", *lines, noise])
    for name in ("Server", "Location", "ETag"):
        assert http_field(head, name).isprintable()
    assert http_status(noise) is None or http_status(noise) >= 0


@given(st.lists(st.text(max_size=80).map(lambda text: f"{text}: 1"), max_size=80))
def test_names_of_added_fields_can_be_printed(added):
    sent = ("hOsT: h", "x-PePsCoPe: 1")
    place = Place(Target("h", 80, False), "203.0.113.1")
    echoed = Echoed(sent, (*sent, *added), sent)
    observed = PlaceObservation(place, Distance.unknown(), {EchoExperiment.name: echoed})
    for finding in EchoExperiment().examine(PortMaterial(4, 80, [observed])):
        assert finding.sentence.isprintable()
        assert len(finding.sentence) < 600


def test_questions_name_the_host():
    assert b"\r\nHost: host.example\r\n" in question(Target("host.example", 80, False))
    assert b"host.example" in question(Target("host.example", 443, True))
    assert question(Target("203.0.113.1", 443, True))[:1] == b"\x16"
