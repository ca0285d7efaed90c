"""Random conversations for hypothesis: whatever two stacks and a lossy capture may show, with its truth."""

from __future__ import annotations

from hypothesis import strategies as st

from pepscope.captures.packets import Direction, TcpFlag
from tests.captures.conversation import START_NS, Conversation, Endpoint, stream

_SEQUENCE_NUMBERS = st.one_of(st.integers(0, 2**32 - 1), st.integers(2**32 - 5000, 2**32 - 1))
_SCALES = st.one_of(st.none(), st.integers(0, 14))


@st.composite
def endpoints(draw: st.DrawFn, version: int, port: int) -> Endpoint:
    """An end point of the given IP version."""
    host = draw(st.integers(1, 250))
    address = f"10.0.{port % 256}.{host}" if version == 4 else f"2001:db8::{port:x}:{host:x}"
    return Endpoint(
        address,
        port,
        draw(_SEQUENCE_NUMBERS),
        draw(st.integers(64, 65_535)),
        draw(_SCALES),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(1, 255)),
    )


@st.composite
def conversations(draw: st.DrawFn, *, with_syn: bool = True) -> Conversation:
    """A conversation of up to forty segments after its handshake: data both ways, some again, some never captured."""
    version = draw(st.sampled_from((4, 6)))
    port = draw(st.integers(10_000, 60_000))
    talk = Conversation(draw(endpoints(version, port)), draw(endpoints(version, 443)), START_NS)
    if with_syn:
        talk.handshake(draw(st.floats(0.01, 500)))
    sent = [0, 0]
    for _ in range(draw(st.integers(0, 40))):
        talk.wait(draw(st.floats(0.001, 800)))
        direction = draw(st.sampled_from(Direction))
        reached, seen = sent[direction], sent[direction.reverse]
        length = draw(st.integers(0, 1500))
        again = length > 0 and reached >= length and draw(st.integers(0, 9)) == 0
        offset = reached - length if again else reached
        talk.send(
            direction,
            offset,
            seen,
            stream(offset, length, direction),
            draw(st.sampled_from((TcpFlag(0), TcpFlag.PSH))),
            window=draw(st.integers(0, 65_535)),
            captured=draw(st.integers(0, 19)) > 0,
        )
        sent[direction] = max(reached, offset + length)
    return talk
