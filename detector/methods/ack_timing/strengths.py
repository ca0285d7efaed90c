"""How firmly the timing of acknowledgements shows something, and from which counts and shares on."""

from __future__ import annotations

#: Coarsest tick of an ordinary host's capture clock (64 Hz timers): a slack of this size counts half.
COARSE_TICK_S = 1 / 64

#: Acknowledgements needed at the sender before their absence of violations is evidence.
LEAST_ACKS = 10

#: Weight of a fit: a split point without a queue fits as well. A least acknowledgement round trip that is the whole
#: path's, as data in both directions show it, leaves only split points at the receiver's end of the path. A handshake
#: that crossed the whole path is a second, independent measurement of the path's round trip.
FIT_STRENGTH = 0.3
WHOLE_PATH_STRENGTH = 0.6
WHOLE_PATH_SHARE = 0.98

#: The path's round trip as data show it is not credible below this share of the least acknowledgement's: a clock that
#: was set during the connection shortens the one and not the other, by any amount.
CREDIBLE_SHARE = 0.75

#: The same of the handshake's round trip, which one clock timed; it may be twice the path's where a radio woke up.
HANDSHAKE_SHARE = 0.5

#: Share of the acknowledgements that have one of the receiver's own beside them from which their being earlier is a
#: body: a capture that loses records loses few of the first ones only.
OWN_SHARE = 0.25

#: An acknowledgement round trip below this share of the path's, as data in both directions show it, suggests that
#: acknowledgements come from nearer than the receiver.
NEARER_SHARE = 0.5

#: Acknowledgements that must have come from nearer than the handshake: one may be measured from the wrong copy.
SEVERAL_ACKS = 2

#: Share of the acknowledgements at the sender that the receiver's capture must hold for their delays to be known: a
#: middlebox acknowledges at most a few times as often as the receiver, and filters keep one in many.
KEPT_SHARE = 0.25
