"""Split-TCP: two connections and a relay between them that passes both directions on at once (RFC 3135, section 2.1).

        server ---- leg ---- [ buffer down ] ---- leg ---- mobile
                             [ buffer up   ]

Either leg has a TCP of its own: its own acknowledgements, retransmissions, congestion control and windows. All that
joins them is two bounded buffers. A full buffer is not read into, so that the kernel's receive buffer fills too, its
advertised window closes and the fast sender waits for the slow leg: back-pressure without a message.

- The end of one direction (FIN) is passed on when the buffer of that direction is empty; the other goes on
  (half-close).
- An abort is forwarded at once, after a delay, or never; until then the other leg is neither read nor written, so that
  its sender finds the window closed and probes it. It ends with the idle limit at the latest.

The relay also serves the other modes: a `ReleasePolicy` for each direction decides when the held bytes may leave.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from reference_proxy.configuration import Aborts
from reference_proxy.relay.buffers import Buffer
from reference_proxy.sockets import reset

if TYPE_CHECKING:
    import asyncio

    from reference_proxy.relay.release import ReleasePolicy
    from reference_proxy.truth import LegTruth, Truth

#: Most that is taken from a socket at once: as much as a pipe between processes may hold on Linux by default for users.
CHUNK_BYTES = 256 << 10

#: Everything runs in one thread and this has no state, so one of them is enough.
_SCRATCH = memoryview(bytearray(CHUNK_BYTES))


class Side(IntEnum):
    """Whom a leg leads to. A direction is named after the side that its bytes come from."""

    MOBILE = 0
    SERVER = 1

    @property
    def other(self) -> Side:
        """The opposite one."""
        return Side(1 - self)


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """What all relays of a proxy have in common."""

    buffer_bytes: int
    aborts: Aborts
    abort_delay_s: float
    idle_s: float


class Relay:
    """Passes bytes between two connected sockets until both directions have ended; `over` is then done."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: tuple[socket.socket, socket.socket],
        policies: tuple[ReleasePolicy, ReleasePolicy],
        settings: RelaySettings,
        truth: Truth,
    ) -> None:
        """`sockets` and `policies` by side: the policy up first."""
        self._loop = loop
        self._sockets = sockets
        self._policies = policies
        self._settings = settings
        self._truth = truth
        self._told: tuple[LegTruth, LegTruth] = (truth.mobile, truth.server)
        self._buffers = (Buffer(settings.buffer_bytes), Buffer(settings.buffer_bytes))
        self._is_read = [False, False]
        self._is_written = [False, False]
        self._is_shut = [False, False]
        self._timer: asyncio.TimerHandle | None = None
        self._aborted_at: float | None = None
        self._active_at = loop.time()
        self.over: asyncio.Future[None] = loop.create_future()

    def start(self, from_mobile: bytes = b"") -> None:
        """Begin; `from_mobile` came before the relay did and is for the server."""
        buffer = self._buffers[Side.MOBILE]
        if from_mobile:
            buffer.put(from_mobile)
            self._policies[Side.MOBILE].came(buffer, len(from_mobile), self._loop.time())
        for side in Side:
            self._advance(side)

    def advance(self) -> None:
        """See whether anything may leave that was held back."""
        if self._aborted_at is None:
            for side in Side:
                self._advance(side)

    def end_if_idle(self, now: float) -> None:
        """End the connection if nothing has moved for too long."""
        if now - self._active_at >= self._settings.idle_s and not self.over.done():
            self._truth.ending = self._truth.ending or "idle"
            self._note_propagation(now)
            self._finish(aborts=True)

    def stop(self) -> None:
        """End the connection now."""
        if not self.over.done():
            self._truth.ending = self._truth.ending or "stopped"
            self._finish(aborts=True)

    def _take(self, side: Side) -> None:
        """A leg has bytes, its end, or its abort for us."""
        buffer, policy = self._buffers[side], self._policies[side]
        room = policy.room(buffer)
        if room <= 0:
            self._advance(side)
            return
        try:
            count = self._sockets[side].recv_into(_SCRATCH, min(room, CHUNK_BYTES))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._break(side)
            return
        now = self._active_at = self._loop.time()
        self._told[side].taken_bytes += count
        passed = 0
        if count == 0:
            buffer.ended = True
        elif policy.passes_all and not buffer.held:
            passed = self._give(side, _SCRATCH[:count])
            if passed < 0:
                return
        if passed < count or count == 0:
            buffer.put(bytes(_SCRATCH[passed:count]))
            policy.came(buffer, count - passed, now)
            self._advance(side)

    def _give(self, side: Side, piece: memoryview) -> int:
        """Hand bytes that came from `side` to the other leg: how many it took, -1 if it is broken."""
        target = side.other
        try:
            count = self._sockets[target].send(piece)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self._break(target)
            return -1
        self._told[target].given_bytes += count
        return count

    def _advance(self, side: Side) -> None:
        """Pass on what came from `side`, as far as it may and can, and say what to wait for."""
        if self.over.done() or self._aborted_at is not None:
            return
        buffer, policy, target = self._buffers[side], self._policies[side], side.other
        is_blocked = False
        while buffer.held and not is_blocked:
            now = self._loop.time()
            may = policy.releasable(buffer, self._sockets[target], now)
            if may <= 0:
                break
            piece = buffer.head(may, joined=not policy.passes_all)
            count = self._give(side, piece)
            if count < 0:
                return
            is_blocked = count < len(piece)
            if count:
                self._active_at = now
                buffer.drop(count)
                policy.gone(count)
        if buffer.ended and not buffer.held and not self._is_shut[target]:
            self._shut(target)
            if self.over.done():
                return
        self._await_room(target, is_blocked)
        self._await_bytes(side, not buffer.ended and self._wants_more(side))
        self._await_release()

    def _wants_more(self, side: Side) -> bool:
        """Reading stops without room and starts again with half of it: small reads cost as much as large ones."""
        room = self._policies[side].room(self._buffers[side])
        return room > 0 if self._is_read[side] else 2 * room >= self._settings.buffer_bytes

    def _shut(self, side: Side) -> None:
        """All that was for this side has been given: send its FIN, and end with the second of both."""
        self._is_shut[side] = True
        if all(self._is_shut):
            self._truth.ending = "finished"
            self._finish(aborts=False)
            return
        try:
            self._sockets[side].shutdown(socket.SHUT_WR)
        except OSError:
            self._break(side)

    def _break(self, side: Side) -> None:
        """A leg was reset or given up by its peer."""
        if self.over.done() or self._aborted_at is not None:
            return
        self._truth.ending = "mobile-aborted" if side is Side.MOBILE else "server-aborted"
        self._aborted_at = self._active_at = self._loop.time()
        self._ignore(Side.MOBILE)
        self._ignore(Side.SERVER)
        reset(self._sockets[side])
        if self._settings.aborts is Aborts.AT_ONCE:
            self._propagate()
        elif self._settings.aborts is Aborts.AFTER_DELAY:
            self._cancel_timer()
            self._timer = self._loop.call_later(self._settings.abort_delay_s, self._propagate)

    def _propagate(self) -> None:
        if not self.over.done():
            self._note_propagation(self._loop.time())
            self._finish(aborts=True)

    def _note_propagation(self, now: float) -> None:
        if self._aborted_at is not None:
            self._truth.abort_propagated_after_s = round(now - self._aborted_at, 6)

    def _finish(self, *, aborts: bool) -> None:
        self._cancel_timer()
        for side in Side:
            self._ignore(side)
            self._policies[side].close()
            if aborts:
                reset(self._sockets[side])
            else:
                self._sockets[side].close()
            self._truth.most_held_bytes = max(self._truth.most_held_bytes, self._buffers[side].most_held)
            self._buffers[side].clear()
        if not self.over.done():
            self.over.set_result(None)

    def _await_bytes(self, side: Side, wanted: bool) -> None:
        if wanted != self._is_read[side]:
            self._is_read[side] = wanted
            if wanted:
                self._loop.add_reader(self._sockets[side], self._take, side)
            else:
                self._loop.remove_reader(self._sockets[side])

    def _await_room(self, side: Side, wanted: bool) -> None:
        if wanted != self._is_written[side]:
            self._is_written[side] = wanted
            if wanted:
                self._loop.add_writer(self._sockets[side], self._advance, side.other)
            else:
                self._loop.remove_writer(self._sockets[side])

    def _ignore(self, side: Side) -> None:
        self._await_bytes(side, wanted=False)
        self._await_room(side, wanted=False)

    def _await_release(self) -> None:
        """Wake when a policy will let bytes go that wait for nothing else."""
        times = []
        for side in Side:
            if self._buffers[side].held and not self._is_written[side.other]:
                when = self._policies[side].next_release(self._loop.time())
                if when is not None:
                    times.append(when)
        self._cancel_timer()
        if times:
            self._timer = self._loop.call_at(min(times), self.advance)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
