"""What is known of a stored archive, and where it is: read by the server and by the dashboard.

Each client has a directory of its name. A whole archive is there as `DIGEST.zip`, beside its record `DIGEST.json`,
which is written first; one that is still coming in is `DIGEST.SIZE.part`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pepscope.strict_reading import Amount, Table, WholeNumber, read_as
from prober.errors import ServerError
from prober.server.keys.key_file import KEY_NAME, read_private, write_private

#: Below the state directory.
DIRECTORY = "archives"
_PART = re.compile(r"([0-9a-f]{64})\.([0-9]{1,18})\.part")
_RECORD = re.compile(r"([0-9a-f]{64})\.json")
_MOST_RECORD_BYTES = 1 << 16


class ArchiveRecord(Table, frozen=True):
    """A stored archive."""

    schema: Literal[1]
    #: Name of the key that uploaded it.
    client: Annotated[str, Meta(min_length=1, max_length=40)]
    sha256: Annotated[str, Meta(min_length=64, max_length=64, pattern=r"^[0-9a-f]+$")]
    size_bytes: WholeNumber
    #: What the client called the file.
    name: Annotated[str, Meta(max_length=200)]
    #: Rises with every archive that is stored, whatever the clock says.
    number: WholeNumber
    #: By the server's clock, for readers; ages are counted by `received_running_s` (`RunningTime`).
    received_unix_s: WholeNumber
    received_running_s: Amount
    #: The /24 or /48 that it came from.
    network: Annotated[str, Meta(max_length=60)]


def archive_path(root: Path, record: ArchiveRecord) -> Path:
    """Where the archive is."""
    return root / record.client / f"{record.sha256}.zip"


def record_path(root: Path, record: ArchiveRecord) -> Path:
    """Where its record is."""
    return root / record.client / f"{record.sha256}.json"


def part_path(root: Path, client: str, sha256: str, size_bytes: int) -> Path:
    """Where an archive of this size is while it comes in."""
    return root / client / f"{sha256}.{size_bytes}.part"


def write_record(root: Path, record: ArchiveRecord) -> None:
    """Have the record on the disk. Raises ServerError."""
    write_private(record_path(root, record), msgspec.json.encode(record))


def delete_archive(root: Path, record: ArchiveRecord) -> None:
    """Delete a stored archive; one that is gone already is no error. Raises OSError."""
    # The archive first: a record without it counts for nothing, an archive without record is never found again.
    archive_path(root, record).unlink(missing_ok=True)
    record_path(root, record).unlink(missing_ok=True)


def stored_archives(root: Path) -> Iterator[ArchiveRecord]:
    """All whole archives, in no order. Raises ServerError for a record that cannot be used."""
    for directory in client_directories(root):
        for path in directory.iterdir():
            if _RECORD.fullmatch(path.name) and path.with_suffix(".zip").is_file():
                record = _read_record(path)
                if record is not None:
                    yield record


def unfinished_parts(root: Path) -> Iterator[tuple[str, str, int, Path]]:
    """Client, digest and announced size of what is still coming in, with its file."""
    for directory in client_directories(root):
        for path in directory.iterdir():
            if match := _PART.fullmatch(path.name):
                yield directory.name, match[1], int(match[2]), path


def client_directories(root: Path) -> list[Path]:
    """Of all clients that have uploaded anything."""
    if not root.is_dir():
        return []
    return [path for path in root.iterdir() if KEY_NAME.fullmatch(path.name) and path.is_dir()]


def _read_record(path: Path) -> ArchiveRecord | None:
    data = read_private(path, _MOST_RECORD_BYTES)
    if data is None:
        # Deleted meanwhile.
        return None
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise ServerError(f"{path} must be the record of an archive; remove it together with its .zip") from None
    record = read_as(ArchiveRecord, document, ServerError, place=str(path))
    if (record.client, record.sha256) != (path.parent.name, path.stem):
        raise ServerError(f"{path} must be the record of the archive beside it; remove it together with its .zip")
    return record
