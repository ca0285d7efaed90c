"""Transfers by HTTPS: those of HTTP over TLS, with a look at whose certificate it is."""

from __future__ import annotations

import hashlib
import socket
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING

from prober.client.applications import Request, http
from prober.client.transfer import Transfer
from prober.host.tls import over_tls

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd


def transfer(end: MobileEnd, request: Request) -> Transfer:
    """Move one object. Raises MeasurementError, OSError.

    A certificate that is not the server's does not end the transfer: it contains no secret, and that a middlebox reads
    along is what the measurement is for.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    fingerprints: list[str] = []

    def secure(plain: socket.socket) -> socket.socket:
        link = over_tls(context, plain, server_hostname=None if _is_address(end.host) else end.host)
        end.watch(link)
        fingerprints.append(hashlib.sha256(link.getpeercert(binary_form=True) or b"").hexdigest())
        return link

    moved = http.transfer(end, request, secure)
    return replace(moved, certificate_is_the_servers=fingerprints == [end.certificate_sha256])


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return True
    return False
