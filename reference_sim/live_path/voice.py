"""Speakers over UDP between the ends of a live path: AMR at 7.95 kbit/s in bursts of talk, as simulations have them."""

from __future__ import annotations

import contextlib
import heapq
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from reference_sim.live_path.namespaces import Namespace
from reference_sim.live_path.network import FIRST_MOBILE, SERVER, nth_address
from reference_sim.live_path.opening import OpenedInSteps

#: As in captures of simulations.
VOICE_PORT = 16_384
#: RTP payloads (RFC 4867, octet-aligned): a frame of 7.95 kbit/s and a silence descriptor.
_SPEECH_BYTES, _SILENCE_BYTES = 22, 7
_FRAME_S = 0.02
#: In silence a descriptor in the first frame, one three frames later, and one in every eighth from there (TS 26.093).
_FIRST_UPDATE, _UPDATE_EVERY = 3, 8
_RTP = struct.Struct("!BBHII")
_RTP_VERSION, _AMR_TYPE = 0x80, 96
_LOOK_S = 0.1


def frames(entry: Mapping[str, Any], until_s: float, chance: random.Random) -> Iterator[tuple[float, int]]:
    """When the frames of one speaker leave, in seconds of the path's time, and their payload bytes."""
    talk_s, silence_s = float(entry["mean_talk_s"]), float(entry["mean_silence_s"])
    talks = chance.random() < talk_s / (talk_s + silence_s)
    at_s = entry["start_s"] + chance.random() * _FRAME_S
    changes_s = at_s + _sojourn(talk_s if talks else silence_s, chance)
    silent_frames = 0
    while at_s < until_s:
        while silence_s > 0 and changes_s <= at_s:
            talks, silent_frames = not talks, 0
            changes_s += _sojourn(talk_s if talks else silence_s, chance)
        if talks or silence_s <= 0:
            yield at_s, _SPEECH_BYTES
        else:
            is_update = silent_frames >= _FIRST_UPDATE and (silent_frames - _FIRST_UPDATE) % _UPDATE_EVERY == 0
            if silent_frames == 0 or is_update:
                yield at_s, _SILENCE_BYTES
            silent_frames += 1
        at_s += _FRAME_S


def _sojourn(mean_s: float, chance: random.Random) -> float:
    return chance.expovariate(1 / mean_s) if mean_s > 0 else 0.0


class Speakers(OpenedInSteps):
    """All speakers of a scenario, both ways; a context manager."""

    def __init__(self, scenario: Any, server: Namespace, mobile: Namespace, started_ns: int) -> None:
        super().__init__()
        self._entries = [entry for entry in scenario.traffic if entry["kind"] == "voice"]
        self._server, self._mobile = server, mobile
        self._started_ns, self._duration_s, self._seed = started_ns, scenario.duration_s, scenario.seed
        self._stopping = threading.Event()
        self._sent = {place: {_SPEECH_BYTES: 0, _SILENCE_BYTES: 0} for place in ("server", "mobile")}
        self._heard: dict[str, dict[tuple[str, int], set[int]]] = {"server": {}, "mobile": {}}

    def _open_steps(self) -> None:
        users = sorted(
            {user for entry in self._entries for user in range(entry["user"], entry["user"] + entry["count"])}
        )
        if not users:
            return
        sockets = {
            "server": {-1: self._open(self._server, SERVER[4])},
            "mobile": {user: self._open(self._mobile, nth_address(FIRST_MOBILE[4], user)) for user in users},
        }
        for place, own in sockets.items():
            for work in (self._listen, self._speak):
                thread = threading.Thread(target=work, args=(place, own), name="pepscope-voice", daemon=True)
                thread.start()
                self._closing.callback(thread.join)
                self._closing.callback(self._stopping.set)

    def _open(self, namespace: Namespace, address: str) -> socket.socket:
        made = namespace.call(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
        self._closing.callback(made.close)
        made.bind((address, VOICE_PORT))
        made.setblocking(False)
        return made

    def report(self) -> dict[str, Any]:
        """Frames sent and received, as truth.json has them."""
        sent = {
            f"sent_by_{place}": {"speech_frames": counts[_SPEECH_BYTES], "silence_descriptors": counts[_SILENCE_BYTES]}
            for place, counts in self._sent.items()
        }
        heard = {
            f"heard_by_{place}": {
                "frames": sum(len(numbers) for numbers in speakers.values()),
                "missing_frames": sum(max(numbers) + 1 - len(numbers) for numbers in speakers.values()),
            }
            for place, speakers in self._heard.items()
        }
        return {**sent, **heard}

    def _now(self) -> float:
        return (time.monotonic_ns() - self._started_ns) * 1e-9

    def _speak(self, place: str, sockets: Mapping[int, socket.socket]) -> None:
        schedules = []
        direction = {"server": "down", "mobile": "up"}[place]
        for entry in self._entries:
            until_s = min(self._duration_s, entry["until_s"] if entry["until_s"] is not None else self._duration_s)
            if entry["direction"] in (direction, "both"):
                for user in range(entry["user"], entry["user"] + entry["count"]):
                    chance = random.Random(f"{self._seed} voice {direction} {user}")
                    schedules.append(_numbered(user, frames(entry, until_s, chance)))
        for at_s, user, number, payload_bytes in heapq.merge(*schedules):
            while (left_s := at_s - self._now()) > 0:
                if self._stopping.wait(min(left_s, _LOOK_S)):
                    return
            target = SERVER[4] if place == "mobile" else nth_address(FIRST_MOBILE[4], user)
            head = _RTP.pack(_RTP_VERSION, _AMR_TYPE, number & 0xFFFF, round(at_s * 8000) & 0xFFFFFFFF, number)
            with contextlib.suppress(OSError):  # a full buffer drops a frame, as one does on the air
                sockets[user if place == "mobile" else -1].sendto(head + bytes(payload_bytes), (target, VOICE_PORT))
                self._sent[place][payload_bytes] += 1

    def _listen(self, place: str, sockets: Mapping[int, socket.socket]) -> None:
        poll = select.poll()
        by_descriptor = {one.fileno(): one for one in sockets.values()}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        while not self._stopping.is_set():
            for descriptor, _ in poll.poll(1e3 * _LOOK_S):
                with contextlib.suppress(OSError):
                    datagram, (address, _) = by_descriptor[descriptor].recvfrom(2048)
                    if len(datagram) >= _RTP.size:
                        numbers = self._heard[place].setdefault((address, descriptor), set())
                        numbers.add(_RTP.unpack_from(datagram)[4])


def _numbered(user: int, sent: Iterator[tuple[float, int]]) -> Iterator[tuple[float, int, int, int]]:
    for number, (at_s, payload_bytes) in enumerate(sent):
        yield at_s, user, number, payload_bytes
