"""One client a protocol, made of the standard library: they move an object and say how it went."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pepscope.packets import Direction
from prober.experiment import Application
from prober.plain_requests import Reading
from prober.transfer import Transfer

if TYPE_CHECKING:
    from prober.mobile_end import MobileEnd


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
            from prober.clients.ftp import transfer
        case Application.HTTPS:
            from prober.clients.https import transfer
        case Application.HTTP_DATA | Application.HTTP_IMAGE:
            from prober.clients.http import transfer
        case Application.TCP:
            from prober.clients.raw_tcp import transfer
    return transfer
