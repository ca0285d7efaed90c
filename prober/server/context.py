"""What every service of a running server has in common."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Protocol

from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError
from prober.server.sessions import Session, Sessions
from prober.server.settings import LimitsTable
from prober.server.sockets.admission import Admission, Admitted, Complaints, Rate
from prober.server.sockets.connections import Connection


class Owned(Protocol):
    """A connection that was admitted, and on whose behalf it is served."""

    admitted: Admitted
    owner: object


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Limits, sessions, who may come in; one for all services and threads."""

    limits: LimitsTable
    sessions: Sessions
    admission: Admission
    complaints: Complaints
    #: Wrong tokens, by address.
    refusals: Rate
    tls: ssl.SSLContext = field(repr=False)

    def session(self, name: str, connection: Connection) -> Session:
        """The session that lives under this name, to which the connection then belongs. Raises RefusedError."""
        session = self.sessions.find(name)
        if session is None:
            self.complaints.complain(
                "no-session", "a client asks without a session that exists", address=connection.address
            )
            raise RefusedError(403, "there is no session of this name; it may have ended")
        self.know(connection, session.key)
        return session

    def know(self, connection: Owned, key: ClientKey) -> None:
        """From now on a connection is a key's. Raises RefusedError where the key has as many as its quota allows."""
        self.admission.know(connection.admitted, key)
        connection.owner = key
