"""The plan's server: the command line's settings, its address, and the control channel to it."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from dataclasses import replace

import msgspec

from prober.client.control_client import ANSWER_S, ControlClient
from prober.errors import PlanError, UnreachableError
from prober.plan import Plan
from prober.protocol.control_messages import Key

#: How long a server may take to answer when it is asked first: who mistyped an address should not wait for minutes.
CONTACT_S = 5.0
#: Between two tries to resolve a name, or to reach the server.
_RESOLVE_PAUSE_S = 2.0
#: Between the beginnings of connections to one address and the next (RFC 8305, section 5).
_NEXT_ADDRESS_S = 0.25
_LEAST_TRY_S = 1.0
_UNNAMED = "no server is named: give --server HOST, or server.host in the plan"


def with_server(plan: Plan, host: str | None, key: str | None) -> Plan:
    """The plan with the command line's settings of the server. Raises PlanError."""
    server = plan.server
    if host:
        name, port = _host_and_port(host, server.control_port)
        server = msgspec.structs.replace(server, host=name, control_port=port)
    if key:
        server = msgspec.structs.replace(server, key=key)
    return replace(plan, server=server)


def _host_and_port(text: str, port: int) -> tuple[str, int]:
    """`HOST`, `HOST:PORT`, `2001:db8::1`, `[2001:db8::1]:PORT`."""
    name, rest = text, ""
    if text.startswith("["):
        name, closing, rest = text[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise PlanError(f"a server must be HOST, HOST:PORT or [ADDRESS]:PORT, got {text!r}")
        rest = rest[1:]
    elif text.count(":") == 1:
        name, _, rest = text.partition(":")
    if rest and not (rest.isascii() and rest.isdigit() and 1 <= int(rest) <= 65_535):
        raise PlanError(f"the port of a server must be between 1 and 65535, got {text!r}")
    return name, int(rest) if rest else port


def resolve(host: str, patience_s: float) -> str:
    """The first address of a name. Raises UnreachableError where there is none for so long, PlanError."""
    return _addresses(host, patience_s)[0]


def reach(host: str, port: int, patience_s: float = CONTACT_S) -> str:
    """The address of a name that takes a connection to a port, for all of a run.

    Raises UnreachableError, which names what was tried, where none does within `patience_s`; PlanError.
    """
    begun_s = time.monotonic()
    addresses = _addresses(host, patience_s)
    while True:
        left_s = begun_s + patience_s - time.monotonic()
        found, errors = _first_to_connect(addresses, port, max(_LEAST_TRY_S, min(CONTACT_S, left_s)))
        if found is not None:
            return found
        if time.monotonic() - begun_s + _RESOLVE_PAUSE_S > patience_s or patience_s <= CONTACT_S:
            tried = ", ".join(f"{address} port {port} ({error})" for address, error in errors.items())
            raise UnreachableError(
                f"the server {host} did not answer within {max(patience_s, _LEAST_TRY_S):g} s; tried: {tried}"
            )
        time.sleep(_RESOLVE_PAUSE_S)


def _first_to_connect(addresses: tuple[str, ...], port: int, limit_s: float) -> tuple[str | None, dict[str, str]]:
    """The address that takes a connection first, each tried a little after the one before; else every error."""
    begun_s = time.monotonic()
    errors: dict[str, str] = {}
    waiting = list(addresses)
    with contextlib.ExitStack() as closing:
        selector = closing.enter_context(selectors.DefaultSelector())
        while len(errors) < len(addresses) and (passed_s := time.monotonic() - begun_s) < limit_s:
            is_due = passed_s >= _NEXT_ADDRESS_S * (len(addresses) - len(waiting))
            if waiting and (is_due or not selector.get_map()):
                address = waiting.pop(0)
                link = closing.enter_context(socket.socket(_family(address), socket.SOCK_STREAM))
                link.setblocking(False)
                try:
                    link.connect((address, port))
                except BlockingIOError:
                    selector.register(link, selectors.EVENT_WRITE, address)
                except OSError as error:
                    errors[address] = error.strerror or str(error)
                else:
                    return address, errors
            wait_s = _NEXT_ADDRESS_S if waiting else limit_s - passed_s
            for key, _ in selector.select(wait_s if selector.get_map() else 0):
                code = key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # type: ignore[union-attr]
                if code == 0:
                    return str(key.data), errors
                errors[str(key.data)] = os.strerror(code)
                selector.unregister(key.fileobj)
    return None, {address: errors.get(address, f"no answer for {limit_s:.0f} s") for address in addresses}


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _addresses(host: str, patience_s: float) -> tuple[str, ...]:
    if not host:
        raise PlanError(_UNNAMED)
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            return tuple(dict.fromkeys(str(where[0]) for *_, where in found))
        except socket.gaierror as error:
            if error.errno != socket.EAI_AGAIN or time.monotonic() + _RESOLVE_PAUSE_S > deadline_s:
                raise UnreachableError(f"the server's name {host!r} has no address: {error.strerror}") from None
        except (UnicodeError, ValueError):
            raise PlanError(f"a host must be a name or an address, got {host!r}") from None
        time.sleep(_RESOLVE_PAUSE_S)


def connect(plan: Plan, address: str, patience_s: float | None = None, answer_s: float = ANSWER_S) -> ControlClient:
    """The control channel to the plan's server. Raises PlanError where there is no key, ControlError."""
    patience_s = plan.limits.patience_s if patience_s is None else patience_s
    return ControlClient(address, plan.server.control_port, plan_key(plan), patience_s=patience_s, answer_s=answer_s)


def plan_key(plan: Plan) -> Key:
    """The key of the plan's server. Raises PlanError where server or key is not named, MalformedMessageError."""
    if not plan.server.host:
        raise PlanError(_UNNAMED)
    if not plan.server.key:
        raise PlanError("no key is given: --key, PEPSCOPE_PROBE_KEY or server.key in the plan; the server prints it")
    return Key.parse(plan.server.key)
