"""Texts and JSON without identities: addresses, hardware addresses, names of hosts, sessions, digests, heads of HTTP.

What is hidden is hidden as in the captures: an address in a sentence becomes what it became in the packets.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterable, Mapping

from prober.anonymise.crypto_pan import CryptoPan
from prober.anonymise.http_heads import HeadHider
from prober.anonymise.keys import SecretKey
from prober.protocol.json_documents import Json

_HARDWARE = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_IPV6 = re.compile(
    r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\d{1,3}\.){3}\d{1,3})?(?![0-9A-Za-z:])"
)
#: Identifiers that are no words: digests, sessions, tokens.
_HEXADECIMAL = re.compile(r"(?<![0-9A-Za-z])[0-9A-Fa-f]{16,}(?![0-9A-Za-z])")
_TOKEN = re.compile(
    r"(?<![0-9A-Za-z_-])(?=[A-Za-z_-]*\d)(?=[0-9a-z_-]*[A-Z])(?=[0-9A-Z_-]*[a-z])[0-9A-Za-z_-]{20,}(?![0-9A-Za-z_-])"
)
#: Base32, as the measuring server names its sessions.
_SESSION = re.compile(r"(?<![0-9A-Za-z_-])[a-z2-7]{26}(?![0-9A-Za-z_-])")
#: A name of the domain name system, in three parts at least or under a top-level domain that no file name ends in.
_NAME = re.compile(
    r"(?<![\w.-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
    r"(?:com|net|org|info|edu|gov|mil|int|arpa|example|invalid|test|local|lan|internal|home|[a-z]{2})(?![\w.-])",
    re.IGNORECASE,
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
#: Parts of a measurement that a server or middlebox sent: none of their values is kept.
_FOREIGN = frozenset({"answer_fields", "answer_head", "added_fields", "status_line", "request_head"})
#: Parts of the metadata that their owner wrote, or that name a host.
_DROPPED = frozenset({"notes", "hostname", "node", "host_name"})


class TextHider:
    """Hides texts under one key; `names` are hosts that are known to be named."""

    def __init__(self, key: SecretKey, addresses: CryptoPan, heads: HeadHider, names: Iterable[str] = ()) -> None:
        self._key = key
        self._addresses = addresses
        self._heads = heads
        # A name may stand in a sentence; one letter or digit does so by chance.
        self._names = sorted({name for name in names if len(name) > 2 and not _is_address(name)}, key=len, reverse=True)

    def json(self, value: Json, *, is_foreign: bool = False) -> Json:
        """A document with all its texts hidden; numbers and the names of fields stay."""
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): self.json(item, is_foreign=is_foreign or name in _FOREIGN)
                for name, item in value.items()
                if name not in _DROPPED
            }
        if isinstance(value, list | tuple):
            return [self.json(item, is_foreign=is_foreign) for item in value]
        if not isinstance(value, str):
            return value
        return self._foreign(value) if is_foreign else self.text(value)

    def text(self, text: str) -> str:
        """One text."""
        head = self._encoded_head(text)
        if head is not None:
            return head
        for name in self._names:
            text = text.replace(name, self.host(name))
        text = _HARDWARE.sub(lambda match: self._hardware(match[0]), text)
        text = _IPV6.sub(lambda match: self._address(match[0]), text)
        text = _IPV4.sub(lambda match: self._address(match[0]), text)
        text = _HEXADECIMAL.sub(lambda match: self._hexadecimal(match[0]), text)
        for pattern in (_TOKEN, _SESSION):
            text = pattern.sub(lambda match: self._heads.value(match[0].encode()).decode(), text)
        return _NAME.sub(lambda match: match[0] if match[0].endswith(".invalid") else self.host(match[0]), text)

    def host(self, name: str) -> str:
        """A host: an address as in the captures, a name as one that no resolver resolves (RFC 6761)."""
        if _is_address(name):
            return self._addresses.text(name)
        return f"host-{self._key.hashed('host', name.lower().encode(), 5).hex()}.invalid" if name else ""

    def _foreign(self, text: str) -> str:
        head = self._encoded_head(text)
        if head is not None:
            return head
        data = text.encode("utf-8", "surrogateescape")
        made = self._heads.hidden(data)
        if made is not None and made[1]:
            return made[0].decode("latin-1")
        if made is not None:
            return made[0].decode("latin-1").rstrip()
        return self._heads.value(data).decode("latin-1")

    def _encoded_head(self, text: str) -> str | None:
        """A head of HTTP in base64, hidden; `None` where the text is none."""
        if _BASE64.fullmatch(text) is None or len(text) % 4:
            return None
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        made = self._heads.hidden(data)
        if made is None:
            return None
        head, is_whole = made
        rest = data[len(head) :] if is_whole else b""
        return base64.b64encode(head + self._heads.value(rest)).decode("ascii")

    def _address(self, text: str) -> str:
        try:
            return self._addresses.text(text)
        except ValueError:
            return text

    def _hardware(self, text: str) -> str:
        made = bytearray(self._key.hashed("hardware", bytes.fromhex(text.replace(":", "").replace("-", "")), 6))
        made[0] = made[0] & 0xFE | 0x02
        return made.hex(":")

    def _hexadecimal(self, text: str) -> str:
        return self._key.hashed("digest", text.lower().encode(), (len(text) + 1) // 2).hex()[: len(text)]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
