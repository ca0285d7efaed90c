"""Networks that limits are counted by: what one client has for itself, and what one site has.

An IPv4 address may be one client, a /24 one site. An IPv6 client has a /64 at least (RFC 4291, 2.5.1; RFC 7421), whose
addresses it chooses as it likes, and a site up to a /48 (RFC 6177).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

_CLIENT_BITS, _SITE_BITS = {4: 32, 6: 64}, {4: 24, 6: 48}


@lru_cache(maxsize=10_000)
def networks_of(address: str) -> tuple[str, str]:
    """The client's network and the site's, of an address in digits; IPv4 within IPv6 counts as IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    client, site = (
        str(ipaddress.ip_network((found, bits[found.version]), strict=False)) for bits in (_CLIENT_BITS, _SITE_BITS)
    )
    return client, site
