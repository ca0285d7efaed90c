"""One client a protocol, made of the standard library: they move an object and say how it went."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pepscope.captures.direction import Direction
from prober.client.transfer import Transfer
from prober.protocol.application import Application
from prober.protocol.plain_requests import Reading

if TYPE_CHECKING:
    from prober.client.mobile_end import MobileEnd


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be moved, and how; the arguments of `MobileEnd.transfer`."""

    application: Application
    direction: Direction
    size_bytes: int
    seed: int
    port: int
    prepare: Callable[[socket.socket], None] | None = None
    on_bytes: Callable[[int], None] | None = None
    cache_s: int = 0
    reading: Reading = field(default_factory=Reading)


Client = Callable[["MobileEnd", Request], Transfer]


def client(application: Application) -> Client:
    """The client of an application, loaded when it is used."""
    match application:
        case Application.FTP:
            from prober.client.applications.ftp import transfer
        case Application.HTTPS:
            from prober.client.applications.https import transfer
        case Application.HTTP_DATA | Application.HTTP_IMAGE:
            from prober.client.applications.http import transfer
        case Application.TCP:
            from prober.client.applications.raw_tcp import transfer
    return transfer
