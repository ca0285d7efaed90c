"""From a requested destination to a connected socket: what is allowed, what would be a loop, how to connect."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from typing import TYPE_CHECKING

from reference_proxy.errors import ProxyError, RefusedError
from reference_proxy.sockets import allow_foreign_addresses, family_of, is_local, prepare_leg, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reference_proxy.interception.allow_list import AllowList
    from reference_proxy.interception.requested_destination import RequestedDestination
    from reference_proxy.sockets import Address, LegSettings


class Destinations:
    """Decides which destinations may be connected to."""

    def __init__(self, allow: AllowList, *, needs_allowance: bool) -> None:
        self._allow = allow
        self._needs_allowance = needs_allowance
        self._own: frozenset[int] = frozenset()

    def avoid(self, own: Iterable[Address]) -> None:
        """Never connect to these listeners of ours."""
        self._own = frozenset(port for _, port in own)

    async def resolve(self, requested: RequestedDestination) -> list[Address]:
        """Addresses to dial, in order. Raises RefusedError."""
        return await self.resolve_name(requested.host, requested.port)

    async def resolve_name(self, host: str, port: int) -> list[Address]:
        """Addresses to dial, in order. Raises RefusedError."""
        by_name = self._allow.allows_name(host, port)
        try:
            ipaddress.ip_address(host)
            found = [host]
        except ValueError:
            # Names that cannot be allowed are not even looked up.
            found = await self._look_up(host, port) if by_name or self._allow.has_networks else []
        allowed = [address for address in found if by_name or self._may(address, port)]
        if not allowed:
            raise RefusedError("not-allowed", f"{show((host, port))} is not on the list of allowed destinations")
        if any(self._is_own(address, port) for address in allowed):
            raise RefusedError("loop", f"{show((host, port))} is this proxy itself")
        return [(address, port) for address in allowed]

    def refuse_loop(self, host: str, port: int) -> None:
        """Raises RefusedError where an address in digits is one of our listeners."""
        with contextlib.suppress(ValueError):
            if self._is_own(host, port):
                raise RefusedError("loop", f"{show((host, port))} is this proxy itself")

    def _may(self, address: str, port: int) -> bool:
        return self._allow.allows_address(address, port) if self._allow or self._needs_allowance else True

    def _is_own(self, address: str, port: int) -> bool:
        return port in self._own and (ipaddress.ip_address(address).is_unspecified or is_local(address))

    async def _look_up(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise RefusedError("unreachable", f"the name {host} has no address") from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def dial(
    addresses: list[Address], settings: LegSettings, *, spoofed: Address | None, connect_s: float
) -> socket.socket:
    """Connect to the first address that answers; from `spoofed` where it is given. Raises RefusedError."""
    failure = RefusedError("unreachable", "the server cannot be reached")
    try:
        async with asyncio.timeout(connect_s):
            for address in addresses:
                try:
                    return await _connect(address, settings, spoofed)
                except OSError as error:
                    reason = "server-refused" if error.errno == errno.ECONNREFUSED else "unreachable"
                    failure = RefusedError(reason, f"{show(address)}: {error.strerror or error}")
    except TimeoutError:
        failure = RefusedError("connect-timeout", f"{show(addresses[0])} did not answer within {connect_s:g} s")
    raise failure


async def _connect(address: Address, settings: LegSettings, spoofed: Address | None) -> socket.socket:
    if spoofed is not None:
        try:
            return await _connect_from(address, settings, spoofed)
        except OSError as error:
            # The client's port may still be in use by the last connection to the same server (TIME-WAIT).
            if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                raise
            return await _connect_from(address, settings, (spoofed[0], 0))
    return await _connect_from(address, settings, None)


async def _connect_from(address: Address, settings: LegSettings, source: Address | None) -> socket.socket:
    sock = socket.socket(family_of(address[0]), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        prepare_leg(sock, settings)
        if source is not None:
            allow_foreign_addresses(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(source)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except (OSError, ProxyError, asyncio.CancelledError):
        sock.close()
        raise
    return sock
