"""Certificates that this system does not trust, of one issuer at hosts of different operators: TLS is intercepted.

A company's gateway and an antivirus do that on purpose, and either ends connections; so does a host with a certificate
of its own making. The finding is named and moves no verdict: other experiments say who ends the connections.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prober.check.experiment import Asked, CheckExperiment, Cost, PortMaterial
from prober.check.finding import Cause, CheckFinding, Says
from prober.check.given import Given
from prober.check.probes.certificate_names import issuer_of
from prober.check.targets import Place
from prober.host.reset import reset_on_close
from prober.host.tls import over_tls

NAME = "certificates"
#: An issuer at one host is that host's affair.
_LEAST_HOSTS = 2
_PATIENCE_S = 5.0
_HANDSHAKE_BYTES = 3_000


@dataclass(frozen=True, slots=True)
class CertificateSeen:
    """The certificate of one host, and whether this system's authorities vouch for it."""

    is_trusted: bool
    #: Why not, in OpenSSL's words; empty where it is.
    why: str
    #: The issuer as the certificate names it, and a digest of the name's bytes.
    issuer: str
    issuer_digest: str


class Certificates(CheckExperiment[CertificateSeen]):
    """Completes a TLS handshake, and compares issuers."""

    name = NAME
    title = "certificates"
    summary = "Complete a TLS handshake: certificates of one untrusted issuer at several hosts are an interceptor's."
    measured = CertificateSeen

    def subjects(self, places: Sequence[Place], given: Given) -> Iterable[Place]:  # noqa: ARG002
        """Ports that speak TLS."""
        return [place for place in places if place.target.tls]

    def cost(self) -> Cost:
        """A handshake, and another where the first is refused."""
        return Cost(2, 0, 2 * _HANDSHAKE_BYTES)

    def measure(self, asked: Asked) -> CertificateSeen | None:
        """None where the host speaks no TLS."""
        place = asked.place
        try:
            return _seen(place, ssl.create_default_context(), "")
        except ssl.SSLCertVerificationError as error:
            why = error.verify_message
        except (OSError, ValueError):
            return None
        try:
            return _seen(place, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), why)
        except (OSError, ValueError):
            return None

    def examine(self, port: PortMaterial) -> Iterable[CheckFinding]:
        """One untrusted issuer at several hosts."""
        by_issuer: dict[str, list[tuple[str, CertificateSeen]]] = {}
        for each, seen in self.observed(port):
            if not seen.is_trusted:
                by_issuer.setdefault(seen.issuer_digest, []).append((each.host, seen))
        for found in by_issuer.values():
            hosts = tuple(sorted({host for host, _ in found}))
            if len(hosts) >= _LEAST_HOSTS:
                yield CheckFinding(
                    "one-untrusted-issuer", Says.NAMED,
                    f"{len(hosts)} hosts show certificates of {found[0][1].issuer or 'one unnamed issuer'}, which this "
                    "system does not trust: TLS is intercepted, by a gateway or by a program on this host.",
                    hosts, Cause.TLS_INTERCEPTION,
                )  # fmt: skip

    def document(self, measured: CertificateSeen) -> Mapping[str, Any]:
        """The issuer."""
        return {"trusted": measured.is_trusted, "why": measured.why, "issuer": measured.issuer}


def _seen(place: Place, context: ssl.SSLContext, why: str) -> CertificateSeen:
    """Complete a handshake; a reason `why` it was not trusted lets everything pass. Raises OSError, ValueError."""
    # Names are not compared: whether an authority vouches for the certificate is the question.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE if why else ssl.CERT_REQUIRED
    with socket.create_connection((place.address, place.target.port), _PATIENCE_S) as plain:
        reset_on_close(plain)
        with over_tls(context, plain, server_hostname=place.target.host) as link:
            issuer = issuer_of(link.getpeercert(True) or b"")
    return CertificateSeen(not why, why, issuer.words, hashlib.sha256(issuer.encoded).hexdigest()[:16])
