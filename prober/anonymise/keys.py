"""The key of an anonymisation, and the keyed functions that are made of it."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32
BLOCK_BYTES = 16


class SecretKey:
    """One secret from which every keyed function takes a key of its own; nothing of it is ever written."""

    def __init__(self, secret: bytes | None = None) -> None:
        """`secret` has at least `KEY_BYTES`; without one it is drawn anew, and gone with this object."""
        self._secret = secrets.token_bytes(KEY_BYTES) if secret is None else secret
        if len(self._secret) < KEY_BYTES:
            raise ValueError(f"a key must have at least {KEY_BYTES} bytes")
        self._digests: dict[str, bytes] = {}

    def derived(self, purpose: str) -> bytes:
        """32 bytes for one purpose, from which neither the secret nor another purpose's bytes can be found."""
        if purpose not in self._digests:
            self._digests[purpose] = hmac.digest(self._secret, purpose.encode(), hashlib.sha256)
        return self._digests[purpose]

    def hashed(self, purpose: str, data: bytes, length: int) -> bytes:
        """`length` bytes that equal data of equal purpose share."""
        key = self.derived(purpose)
        count = -(-length // hashlib.sha256().digest_size)
        # What is long is hashed once, not once for every part of the result.
        digest = hmac.digest(key, data, hashlib.sha256)
        return b"".join(
            hmac.digest(key, number.to_bytes(4, "big") + digest, hashlib.sha256) for number in range(count)
        )[:length]

    def blocks(self, purpose: str, data: bytes) -> bytes:
        """Each 16-byte block of `data` through AES-128 by itself: a keyed permutation of blocks (FIPS 197)."""
        # Each block stands for a value of its own; that equal ones stay equal is what is wanted here.
        cipher = Cipher(algorithms.AES(self.derived(purpose)[:BLOCK_BYTES]), modes.ECB())
        encryptor = cipher.encryptor()
        return encryptor.update(data) + encryptor.finalize()
