"""Lines between namespaces that delay, lose and sleep: `python -m benchmarks.check_campaign.lines LINES` (JSON).

Each line has a TUN device at either end. Commands come on standard input, a JSON object each, which names a line and
what to change of it; `ok` answers each. The process ends with its standard input.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import random
import select
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import count

from benchmarks.check_campaign.inside import inside
from pepscope.captures.live.tun import open_tun

_MOST_BYTES = 65_536
#: Packets of a device that are read before the others have their turn.
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Line:
    """How a line treats packets; both directions alike."""

    delay_s: float = 0.0
    #: Drawn evenly for each packet, without reordering.
    jitter_s: float = 0.0
    loss: float = 0.0
    #: After so long without a packet the line sleeps, and the next one waits up to `wake_s`.
    sleeps_after_s: float = float("inf")
    wake_s: float = 0.0


@dataclass(slots=True)
class State:
    """A line while it carries packets."""

    line: Line
    last_s: float = 0.0
    awake_s: float = 0.0
    #: When the last packet of each direction is due: none overtakes another.
    due_s: dict[int, float] = field(default_factory=dict)

    def due(self, now_s: float, towards: int, chance: random.Random) -> float | None:
        """When a packet that comes now leaves; None where it is lost."""
        if now_s - self.last_s > self.line.sleeps_after_s:
            self.awake_s = now_s + self.line.wake_s * chance.uniform(0.2, 1.0)
        self.last_s = now_s
        if chance.random() < self.line.loss:
            return None
        due_s = max(now_s, self.awake_s) + self.line.delay_s + chance.uniform(0, self.line.jitter_s)
        self.due_s[towards] = max(due_s, self.due_s.get(towards, 0.0))
        return self.due_s[towards]


def main() -> None:
    """Carry packets until standard input ends."""
    states, ends = {}, {}
    for name, places in json.loads(sys.argv[1]).items():
        descriptors = []
        for namespace, device in places:
            with inside(namespace):
                descriptors.append(open_tun(device))
        states[name] = State(Line())
        ends[descriptors[0]] = (descriptors[1], states[name])
        ends[descriptors[1]] = (descriptors[0], states[name])
    _say("ok")
    _carry(ends, states)


def _carry(ends: dict[int, tuple[int, State]], states: dict[str, State]) -> None:
    chance, waiting, numbers = random.Random(), list[tuple[float, int, int, bytes]](), count()
    poll = select.epoll()
    for descriptor in (0, *ends):
        poll.register(descriptor, select.EPOLLIN)
    while True:
        left_s = waiting[0][0] - time.monotonic() if waiting else 3600.0
        for descriptor, _ in poll.poll(max(0.0, left_s)):
            if descriptor == 0:
                if not _obey(states):
                    return
                continue
            towards, state = ends[descriptor]
            with contextlib.suppress(BlockingIOError):
                for _ in range(_AT_ONCE):
                    packet = os.read(descriptor, _MOST_BYTES)
                    due_s = state.due(time.monotonic(), towards, chance)
                    if due_s is not None:
                        heapq.heappush(waiting, (due_s, next(numbers), towards, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, towards, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # the device is down, or has no room: lost, as on any line
                os.write(towards, packet)


def _obey(states: dict[str, State]) -> bool:
    line = sys.stdin.readline()
    if not line:
        return False
    changes = json.loads(line)
    state = states[changes.pop("line")]
    state.line = replace(Line(), **changes)
    state.last_s, state.awake_s = time.monotonic(), 0.0
    _say("ok")
    return True


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
