"""Crypto-PAn: addresses that share a prefix of n bits share one of n bits afterwards, and of no more.

Xu, Fan, Ammar and Moon, "Prefix-preserving IP address anonymization: measurement-based security evaluation and a new
cryptography-based scheme", ICNP 2002. For IPv6 the same function over 128 bits.
"""

from __future__ import annotations

import ipaddress

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32
_BLOCK_BITS = 128


class CryptoPan:
    """The map under one key: 16 bytes for AES, 16 bytes that AES turns into the padding."""

    def __init__(self, key: bytes) -> None:
        """`key` has `KEY_BYTES`."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key of Crypto-PAn must have {KEY_BYTES} bytes, got {len(key)}")
        # One block at a time, as the scheme is defined.
        self._encryptor = Cipher(algorithms.AES(key[:16]), modes.ECB()).encryptor()
        self._padding = int.from_bytes(self._encryptor.update(key[16:]), "big")
        self._known: dict[bytes, bytes] = {}

    def packed(self, address: bytes) -> bytes:
        """An address of 4 or 16 bytes as others will see it."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._map(address)
        return found

    def text(self, address: str) -> str:
        """An address in writing. Raises ValueError for what is none."""
        return str(ipaddress.ip_address(self.packed(ipaddress.ip_address(address).packed)))

    def _map(self, address: bytes) -> bytes:
        bits, value = 8 * len(address), int.from_bytes(address, "big")
        at_top = value << (_BLOCK_BITS - bits)
        blocks = []
        for kept in range(bits):
            mask = ((1 << kept) - 1) << (_BLOCK_BITS - kept)
            blocks.append(((at_top & mask) | (self._padding & ~mask & ((1 << _BLOCK_BITS) - 1))).to_bytes(16, "big"))
        made = self._encryptor.update(b"".join(blocks))
        flips = 0
        for kept in range(bits):
            flips = flips << 1 | made[16 * kept] >> 7
        return (value ^ flips).to_bytes(len(address), "big")
