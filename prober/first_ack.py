"""When payload was first sent and first acknowledged, seen by the sender's own kernel: no capture, no right needed."""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass
from types import TracebackType

from prober.tcp_info import tcp_info

#: Between two looks. A time seen late by so much is all that this adds to what a capture would say.
LOOK_S = 0.001


@dataclass(slots=True)
class _Watched:
    link: socket.socket
    mobile_port: int = 0
    sent_s: float | None = None
    acked_s: float | None = None


class FirstAcknowledgements:
    """Watches connections from before they are made; a context manager that lets them go.

    It keeps a descriptor of its own for each, so that it can look until the first acknowledgement came even if the
    connection is handed to TLS; it closes it then, since the connection does not end before.
    """

    def __init__(self, patience_s: float) -> None:
        """Each connection is watched for at most `patience_s` after its first payload was sent."""
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._watched: list[_Watched] = []
        self._done: list[_Watched] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pepscope-first-ack", daemon=True)

    def __enter__(self) -> FirstAcknowledgements:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        for item in self._watched:
            item.link.close()

    def watch(self, link: socket.socket) -> None:
        """Watch a socket that is about to connect."""
        twin = socket.socket(fileno=os.dup(link.fileno()))
        with self._lock:
            self._watched.append(_Watched(twin))

    def round_trip_s(self, mobile_port: int) -> float | None:
        """From the first payload of a connection to its first acknowledgement; `None` where none was seen."""
        with self._lock:
            for item in (*self._done, *self._watched):
                if item.mobile_port == mobile_port and item.sent_s is not None and item.acked_s is not None:
                    return item.acked_s - item.sent_s
        return None

    def _run(self) -> None:
        while not self._ending.wait(LOOK_S):
            with self._lock:
                over = [item for item in self._watched if self._look(item)]
                self._watched = [item for item in self._watched if item not in over]
                self._done += over
            for item in over:
                item.link.close()

    def _look(self, item: _Watched) -> bool:
        """Note what is new; whether there is nothing more to wait for."""
        now_s = time.monotonic()
        try:
            facts = tcp_info(item.link)
            if not item.mobile_port:
                item.mobile_port = int(item.link.getsockname()[1])
        except OSError:
            return True
        if item.sent_s is None and facts.get("data_segs_out", 0) > 0:
            item.sent_s = now_s
        # The SYN counts as one byte.
        if item.sent_s is not None and facts.get("bytes_acked", 0) > 1:
            item.acked_s = now_s
            return True
        return item.sent_s is not None and now_s - item.sent_s > self._patience_s
