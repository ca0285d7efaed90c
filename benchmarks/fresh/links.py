"""What one direction of an emulated link does to packets."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a link.

    `delay_ms` is one way; `rate_bit_s` 0 is unlimited; `queue_bytes` the drop-tail queue in front of the rate;
    `rate_swing` the relative amplitude with which the rate swings over `swing_period_s`; `jitter_ms` the most that is
    added at random without changing the order; `reordered` the share of packets held back `reorder_ms` more, so that
    others overtake them; `acknowledgements_lost` the share of pure ACKs that are filtered out; `rewrite` names header
    fields that are rewritten: `ip-id`, `ttl`, `dscp`.
    """

    delay_ms: float = 10.0
    rate_bit_s: float = 0.0
    queue_bytes: int = 200_000
    rate_swing: float = 0.0
    swing_period_s: float = 1.5
    loss: float = 0.0
    jitter_ms: float = 0.0
    reordered: float = 0.0
    reorder_ms: float = 8.0
    duplicated: float = 0.0
    acknowledgements_lost: float = 0.0
    rewrite: tuple[str, ...] = field(default=())
