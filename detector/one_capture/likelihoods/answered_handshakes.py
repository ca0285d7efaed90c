"""Handshakes that something answers for others: SYN proxies and SYN cookies, which split nothing.

Where host and handshake are one, data are acknowledged as fast as the SYN was, or a delayed acknowledgement later. A
box that answers SYNs only and then lets data pass makes the handshake shorter than any acknowledgement of data, by
whatever the path behind it takes.
"""

from __future__ import annotations

import numpy as np

from detector.one_capture.likelihoods.timing_tables import Floats

#: Where one host answers both: acknowledgements as fast as the handshake, delayed by Linux's timer, or by another's.
_ALIKE, _DELAYED, _OTHERWISE = 0.75, 0.2, 0.05
_DELAYED_S = (0.038, 0.046)

#: Behind an answered handshake, the share whose path behind the box is too short to show.
_NEARBY = 0.02

#: Paths behind the box (s), log-uniform.
_LEAST_S, _MOST_S = 0.001, 1.0


def handshake_nats(handshake_s: Floats, plain_s: Floats, variation_s: Floats) -> tuple[Floats, Floats]:
    """Log-likelihoods by member of its least plain round trip of data, given its least handshake: of one host, and of
    an answered handshake. Zero where either is unknown (NaN)."""
    beyond_s = plain_s - handshake_s
    known = ~np.isnan(beyond_s)
    beyond_s = np.where(known, beyond_s, 0.0)
    blur_s = _LEAST_S + np.nan_to_num(variation_s)
    alike = np.exp(-np.abs(beyond_s) / blur_s) / (2 * blur_s)
    least_s, most_s = _DELAYED_S
    delayed = np.where((beyond_s > least_s) & (beyond_s < most_s), 1 / (most_s - least_s), 0.0)
    anything = np.where(
        beyond_s > _LEAST_S, 1 / (np.maximum(beyond_s, _LEAST_S) * np.log(_MOST_S / _LEAST_S)), 0.0
    )  # fmt: skip
    one_host = _ALIKE * alike + _DELAYED * delayed + _OTHERWISE * anything + 1e-6
    answered = (1 - _NEARBY) * anything + _NEARBY * alike + 1e-6
    return np.where(known, np.log(one_host), 0.0), np.where(known, np.log(answered), 0.0)
