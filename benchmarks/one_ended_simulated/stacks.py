"""Stacks of clients, servers and boxes: option layouts, windows and habits as captures of such systems show them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from benchmarks.one_ended_simulated.habits import AckHabit, Identification, Stack

_LINUX = Stack("linux", 64, "MSTNW", identification=Identification.COUNTER)
_WINDOWS = Stack(
    "windows",
    128,
    "MNWNNS",
    scale=8,
    timestamps=False,
    habit=AckHabit.DELAYED,
    least_timeout_s=0.3,
)
_APPLE = Stack(
    "apple", 64, "MNWNNTSE", scale=6, receive_bytes=131_072, habit=AckHabit.DELAYED, ack_delay_s=0.1,
    identification=Identification.ZERO, least_timeout_s=0.3,
)  # fmt: skip
_BSD = Stack(
    "bsd", 64, "MNWST", scale=6, receive_bytes=65_536, habit=AckHabit.DELAYED, ack_delay_s=0.04,
    identification=Identification.RANDOM, least_timeout_s=0.23,
)  # fmt: skip


def linux(random: Random) -> Stack:
    """Any Linux: kernels differ in when they hold a connection for interactive."""
    return replace(
        _LINUX,
        scale=random.choice((7, 7, 7, 9, 10, 12)),
        receive_bytes=random.choice((64_240, 262_144, 1_048_576)),
        turns_to_interactive=random.choice((1, 1, 3)),
        segment_size=random.choice((1460, 1460, 1460, 1440, 1400)),
        timestamps=random.random() < 0.93,
    )


def client_stack(random: Random, *, radio: bool) -> Stack:
    """A phone's, a laptop's or a machine's."""
    kinds = (linux(random), _APPLE, _WINDOWS)
    stack = random.choices(kinds, (6, 3, 0.3) if radio else (4, 2, 4))[0]
    if stack is _WINDOWS:
        stack = replace(stack, ack_delay_s=random.choice((0.04, 0.2)))
    return replace(stack, segment_size=random.choice((1460, 1460, 1400, 1370, 1360) if radio else (1460, 1460, 1440)))


def server_stack(random: Random) -> Stack:
    """Mostly Linux."""
    stack = random.choices((linux(random), _BSD, _WINDOWS), (8, 1, 1))[0]
    return replace(stack, initial_segments=random.choice((10, 10, 10, 10, 4, 20, 32)))


def box_stack(random: Random) -> Stack:
    """A proxy's or balancer's; some acknowledge everything at once, and some set their hop limit to hide."""
    hops = random.choice((64, 64, 64, 63, 61, 128, 255))
    stack = replace(random.choices((linux(random), _BSD), (5, 1))[0], hops=hops)
    if random.random() < 0.15:
        return replace(stack, habit=AckHabit.QUICK)
    if random.random() < 0.15:
        return replace(stack, habit=AckHabit.DELAYED, ack_delay_s=random.choice((0.04, 0.1, 0.2)))
    return stack
