"""The smallest application in Python: `pepscope simulate examples/guessing-game.toml -o run`.

The client guesses a number, the server says whether it is more or less, until it is found.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from reference_sim.plug_ins import Application

_SECOND_NS = 1_000_000_000


class GuessingGame(Application):
    """Both ends of it; `settings`: `most`, the largest number, and `think_s`, how long a guess takes."""

    def __init__(self, settings: Mapping[str, Any], seed: int, name: str, is_client: bool) -> None:
        super().__init__(settings, seed, name, is_client)
        self.low, self.high = 1, int(settings.get("most", 1000))
        self.think_ns = round(float(settings.get("think_s", 0.3)) * _SECOND_NS)
        self.number = random.Random(f"{seed} {name}").randint(self.low, self.high)

    @property
    def guess(self) -> int:
        """What the client asks next."""
        return (self.low + self.high) // 2

    def on_connected(self, now_ns: int) -> None:
        """The client begins."""
        if self.is_client:
            self.wake_at(now_ns + self.think_ns)

    def on_timer(self, now_ns: int) -> None:  # noqa: ARG002 - of any time
        """A guess is ready."""
        self.write(b"GUESS %d\r\n" % self.guess)

    def on_data(self, now_ns: int, data: bytes) -> None:
        """The server answers, the client thinks or is done."""
        if not self.is_client:
            guess = int(data.split()[1])
            answer = b"RIGHT" if guess == self.number else b"MORE" if guess < self.number else b"LESS"
            self.write(answer + b"\r\n")
        elif data == b"RIGHT\r\n":
            self.close()
        else:
            guess = self.guess
            self.low, self.high = (guess + 1, self.high) if data == b"MORE\r\n" else (self.low, guess - 1)
            self.wake_at(now_ns + self.think_ns)
