"""Addresses of sockets as people write them: `192.0.2.7:80`, `[2001:db8::7]:80`."""

from __future__ import annotations

import ipaddress

LARGEST_PORT = 65_535


def parse_socket_address(text: str) -> tuple[str, int] | None:
    """The address, in digits, and the port (0: any); None where the text is no such thing."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError:
        return None
    return (host, number) if 0 <= number <= LARGEST_PORT else None
