"""What an echo service shows of the network: its own changes are no network's."""

from __future__ import annotations

import ssl

import pytest
import trustme

from pepscope.errors import UsageError
from prober.check.experiment import Asked, PlaceObservation, PortMaterial
from prober.check.experiments.echo_service import EchoExperiment
from prober.check.finding import Says
from prober.check.given import EchoService, Given, read_echo
from prober.check.probes.distances import Distance
from tests.prober.check.experiments.answering import answering

EXPERIMENT = EchoExperiment()


def echo(head: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + head


def canonical(head: bytes) -> bytes:
    """As programs write a head that read one: names with capitals."""
    first, *lines = head.decode().split("\r\n")
    named = (line.partition(":") for line in lines if line)
    return echo(
        "\r\n".join((first, *(f"{name.title()}: {value.strip()}" for name, _, value in named), "", "")).encode()
    )


def adding(field: bytes):
    return lambda head: echo(head.replace(b"\r\n\r\n", b"\r\n" + field + b"\r\n\r\n"))


@pytest.fixture(scope="module")
def over_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    return context


def found(plain, tls, context):
    """Findings where the service, or the way to it, answers so over plain HTTP and over TLS."""
    with answering(plain) as port, answering(tls, context) as tls_port:
        given = Given(EchoService("localhost", port, "/headers", tls_port))
        (place,) = [each for each in EXPERIMENT.subjects((), given) if each.address == "127.0.0.1"]
        measured = EXPERIMENT.measure(Asked(place, Distance.unknown(), given))
    assert measured is not None
    assert EXPERIMENT.document(measured)["sent"]
    observation = PlaceObservation(place, Distance.unknown(), {EXPERIMENT.name: measured})
    return list(EXPERIMENT.examine(PortMaterial(4, port, [observation])))


def test_a_request_that_arrives_as_sent_shows_nothing(over_tls):
    assert found(echo, echo, over_tls) == []


def test_what_the_service_does_itself_is_not_the_networks(over_tls):
    assert found(canonical, canonical, over_tls) == []
    assert found(adding(b"Via: 1.1 front"), adding(b"Via: 1.1 front"), over_tls) == []


@pytest.mark.parametrize("changed", [canonical, adding(b"Via: 1.1 box")])
def test_a_head_that_is_changed_over_plain_http_alone_is_a_proxys(over_tls, changed):
    (finding,) = found(changed, echo, over_tls)
    assert (finding.name, finding.says) == ("request-rewritten", Says.SPLIT)
    assert finding.sentence.endswith("and sends its own.") or "sends its own" in finding.sentence


def test_inserted_fields_alone_move_no_verdict(over_tls):
    (finding,) = found(adding(b"X-MSISDN: 1"), echo, over_tls)
    assert (finding.name, finding.says) == ("request-enriched", Says.NAMED)
    assert "x-msisdn" in finding.sentence


def test_what_is_no_echo_is_not_judged(over_tls):
    assert found(lambda head: b"HTTP/1.1 404 Not Found\r\n\r\n" + head[:0], echo, over_tls) == []


def test_services_are_read():
    assert read_echo("http://echo.example/x?y=1+tls") == EchoService("echo.example", 80, "/x?y=1", 443)
    assert read_echo("http://echo.example:8080") == EchoService("echo.example", 8080, "/", None)
    assert read_echo("http://[::1]:81/+tls:8443") == EchoService("::1", 81, "/", 8443)
    for bad in ("", "echo.example", "https://echo.example/", "http://h:99999/", "http://h/+tls:x", "http://h/ x\r\n"):
        with pytest.raises(UsageError, match="echo must be"):
            read_echo(bad)
