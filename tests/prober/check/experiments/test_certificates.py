"""Certificates of an authority that this system does not trust; their issuers by another reader."""

from __future__ import annotations

import contextlib
import ssl

import pytest
import trustme
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from prober.check.experiment import Asked, PlaceObservation, PortMaterial
from prober.check.experiments.certificates import Certificates
from prober.check.finding import Cause, Says
from prober.check.given import Given
from prober.check.probes.certificate_names import issuer_of
from prober.check.probes.distances import Distance
from prober.check.targets import Place, Target
from tests.prober.check.experiments.answering import answering

EXPERIMENT = Certificates()


def seen(authority: trustme.CA, name: str) -> PlaceObservation:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    with answering(lambda text: text, context) as port:
        place = Place(Target(name, port, True), "127.0.0.1")
        measured = EXPERIMENT.measure(Asked(place, Distance.unknown(), Given()))
    assert measured is not None
    assert not measured.is_trusted
    return PlaceObservation(place, Distance.unknown(), {EXPERIMENT.name: measured})


def test_one_untrusted_issuer_at_two_hosts_is_named():
    box, own = trustme.CA(organization_name="Box \N{SNOWMAN}"), trustme.CA(organization_name="Own")
    both = [seen(box, "a.example"), seen(box, "b.example"), seen(own, "c.example")]
    (finding,) = EXPERIMENT.examine(PortMaterial(4, 443, both))
    assert (finding.says, finding.cause, finding.hosts) == (
        Says.NAMED, Cause.TLS_INTERCEPTION, ("a.example", "b.example"),
    )  # fmt: skip
    assert "Box \N{SNOWMAN}" in finding.sentence
    assert list(EXPERIMENT.examine(PortMaterial(4, 443, both[1:]))) == []


def test_a_port_without_tls_has_no_certificate():
    with answering(lambda text: b"220 hello\r\n") as port:
        place = Place(Target("a.example", port, True), "127.0.0.1")
        assert EXPERIMENT.measure(Asked(place, Distance.unknown(), Given())) is None


def _certificate() -> bytes:
    pem = trustme.CA(organization_name="An Organisation").issue_cert("x.example").cert_chain_pems[0].bytes()
    return ssl.PEM_cert_to_DER_cert(pem.decode())


CERTIFICATE = _certificate()


def test_the_issuer_is_what_another_reader_says():
    issuer = x509.load_der_x509_certificate(CERTIFICATE).issuer
    found = issuer_of(CERTIFICATE)
    assert issuer.public_bytes().endswith(found.encoded)
    for attribute in issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME):
        assert str(attribute.value) in found.words


@given(st.integers(0, len(CERTIFICATE)), st.lists(st.tuples(st.integers(0, len(CERTIFICATE) - 1), st.integers(0, 255)),
                                                  max_size=8))  # fmt: skip
def test_broken_certificates_are_refused_or_read(length, changes):
    broken = bytearray(CERTIFICATE)
    for place, value in changes:
        broken[place] = value
    with contextlib.suppress(ValueError):
        assert isinstance(issuer_of(bytes(broken[:length])).words, str)


def test_nothing_is_no_certificate():
    with pytest.raises(ValueError, match="must not end"):
        issuer_of(b"")
