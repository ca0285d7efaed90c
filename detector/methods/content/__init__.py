"""Content: the same transfer with other bytes or another size, an answer from a cache, or an encrypted leg."""

from __future__ import annotations

from detector.method import Method, by_connection
from detector.methods.content import cache, encryption
from detector.methods.content.comparison import examine
from detector.methods.content.encryption import EncryptionFinding
from detector.methods.content.findings import NAME, ContentFinding
from pepscope.results.transfer_findings import TransferFinding

METHOD = Method(NAME, "content", (ContentFinding, TransferFinding), examine)
UNPAIRED = Method(NAME, "content", (ContentFinding, TransferFinding), by_connection(cache.examine), judges_plain=False)
ENCRYPTION = Method(
    NAME, "content", (EncryptionFinding,), by_connection(encryption.examine), encryption.applies, judges_plain=False
)

__all__ = ["ENCRYPTION", "METHOD", "UNPAIRED", "ContentFinding", "EncryptionFinding", "examine"]
