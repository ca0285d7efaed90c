"""Uploads of archives on the control channel: an offer by digest and size, then part after part."""

from __future__ import annotations

import re
from collections.abc import Iterable

from prober.errors import MalformedMessageError
from prober.protocol.control_messages import MOST_PART_BYTES, ArchiveOffer, ArchiveState, is_digest
from prober.server.archives.archive_store import ArchiveStore
from prober.server.keys.client_key import ClientKey
from prober.server.refusal import RefusedError

ARCHIVE_PATH = re.compile(r"/v1/archives/([0-9a-f]{64})")
#: What a file's name may hold: it is shown, and offered when the archive is downloaded.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def offer_archive(store: ArchiveStore, key: ClientKey, offered: ArchiveOffer) -> ArchiveState:
    """Begin an upload, or say how far it is. Raises RefusedError, MalformedMessageError."""
    if not is_digest(offered.sha256):
        raise MalformedMessageError("sha256 must be 64 hexadecimal digits")
    if not _NAME.fullmatch(offered.name):
        raise MalformedMessageError("name must be letters, digits, dots, dashes and underscores")
    return store.offer(key, offered)


def take_part(
    store: ArchiveStore, key: ClientKey, sha256: str, offset: int, content: Iterable[bytes], site: str
) -> ArchiveState:
    """Append a part; how far the upload is then. Raises RefusedError; OSError where the connection breaks off.

    A part that is refused is read to its end all the same, so that the client gets the answer.
    """
    refused: RefusedError | None = None
    taken_bytes = 0
    for piece in content:
        if taken_bytes + len(piece) > MOST_PART_BYTES:
            raise refused or RefusedError(413, f"a part must have at most {MOST_PART_BYTES} bytes")
        if refused is None:
            try:
                store.append(key, sha256, offset + taken_bytes, piece)
            except RefusedError as error:
                refused = error
        taken_bytes += len(piece)
    if refused is not None:
        raise refused
    return store.finish(key, sha256, site)
