"""Addresses of connections as texts."""

from __future__ import annotations

import ipaddress

import numpy as np
import numpy.typing as npt

_IPV4_PREFIX = bytes(10) + b"\xff\xff"


def address_texts(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.object_]:
    """Addresses of 16 bytes a row (IPv4 behind ::ffff:0:0/96) as text; each distinct one is written once."""
    packed = np.ascontiguousarray(rows).view("V16").ravel()
    distinct, inverse = np.unique(packed, return_inverse=True)
    texts = np.empty(len(distinct), dtype=object)
    for index, address in enumerate(distinct):
        texts[index] = _address_text(bytes(address))
    return texts[inverse]


def _address_text(packed: bytes) -> str:
    if packed.startswith(_IPV4_PREFIX):
        return str(ipaddress.IPv4Address(packed[12:]))
    return str(ipaddress.IPv6Address(packed))
