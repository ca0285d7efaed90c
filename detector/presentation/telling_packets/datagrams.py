"""Datagrams and segments that carry the same bytes, where a middlebox changes the transport."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.presentation.telling_packets.rows import row_of_byte
from detector.presentation.telling_packets.telling import Scene, Telling, counted, spread
from pepscope.captures.files.named_packets import EvidencePacket


def carried_bytes(scene: Scene) -> Sequence[Telling | EvidencePacket]:
    """Datagrams whose place in the stream is known, with the segments that carry the same bytes."""
    leg, vantages = scene.pair.datagram_leg, scene.pair.vantages
    capture = None if leg is None else scene.captures.get(leg.capture)
    if leg is None or capture is None or not vantages:
        return []
    tcp, made = vantages[0], list[Telling | EvidencePacket]()
    samples, frames = capture.datagram_samples(leg.flow.id), capture.datagram_frame_numbers(leg.flow.id)
    for direction, stream in leg.streams.items():
        side = leg.client if direction == 0 else 1 - leg.client
        for place in spread(np.arange(stream.located), max(1, scene.most // len(leg.streams))).tolist():
            time_ns, offset = int(stream.time_ns[place]), int(stream.stream_offset[place])
            at = np.flatnonzero(samples[side].time_ns == time_ns)
            row = row_of_byte(tcp, direction, max(offset, 0))
            if len(at) == 0 or row is None:
                continue
            begins = f"byte {max(offset, 0):,} of the {direction.name.lower()} stream"
            found = capture.located(int(frames[side][at[0]]))
            size = counted(int(samples[side].payload_bytes[at[0]]), "byte")
            made += [
                EvidencePacket(*found, time_ns, f"carries {begins} in UDP, in {size}"),
                Telling(tcp, row, f"carries {begins} in TCP"),
            ]
    return made
