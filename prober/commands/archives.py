"""The command `probe archives`: archives of clients, in the state directory of a server that may run meanwhile."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pepscope.command_line.reports import ReportingCommand, json_option
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from prober.server.archives.stored_archive import ArchiveRecord

SCHEMA = "pepscope-probe-archives-1"
#: As many digits of a digest as the server's log has.
_LEAST_DIGITS = 12

_state_option = click.option(
    "--state", metavar="DIR", default="", help="The server's state directory.  [~/.local/state/pepscope/...]"
)
_client_option = click.option("--client", metavar="NAME", help="Those that were uploaded with this key alone.")


@click.group(short_help="Archives of clients: list, delete.")
def archives() -> None:
    """List what clients uploaded to the server on this host, and delete it.

    A server and a dashboard that run meanwhile know within seconds.
    """


@archives.command("list", cls=ReportingCommand, short_help="List stored archives in the order in which they came.")
@_state_option
@_client_option
@json_option("Write JSON (schema probe-archives-1).")
def list_archives(state: str, client: str | None, as_json: bool) -> None:
    """List stored archives in the order in which they came."""
    records = _records(state, client)[1]
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "archives": [_described(each) for each in records]}, indent=2))
        return
    rows = [("RECEIVED", "CLIENT", "NETWORK", "BYTES", "SHA-256", "NAME"), *map(_row, records)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@archives.command("delete", cls=ReportingCommand, short_help="Delete stored archives.")
@click.argument("digests", nargs=-1, metavar="SHA-256...")
@_state_option
@_client_option
@click.option("--all", "is_all", is_flag=True, help="All archives of the client that --client names.")
@json_option("Write what was deleted as JSON (schema probe-archives-1).")
def delete(digests: tuple[str, ...], state: str, client: str | None, is_all: bool, as_json: bool) -> None:
    """Delete archives by their SHA-256, of which the first twelve digits are enough, or all of a client.

    Nothing is deleted where one of them is not there.
    """
    from prober.server.archives.stored_archive import delete_archive

    if is_all == bool(digests) or (is_all and client is None):
        raise UsageError("name archives by SHA-256, or a client by --client NAME --all")
    root, records = _records(state, client)
    chosen = records if is_all else [each for digest in digests for each in _named(digest, records)]
    for record in chosen:
        delete_archive(root, record)
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "archives": [_described(each) for each in chosen]}, indent=2))
    else:
        click.echo("\n".join(f"deleted {each.sha256} of {each.client} ({each.name})" for each in chosen))


def _records(state: str, client: str | None) -> tuple[Path, list[ArchiveRecord]]:
    """Where archives are, and which, in order. Raises ServerError."""
    from prober.server.archives.stored_archive import DIRECTORY, stored_archives
    from prober.server.identity import known_keys
    from prober.server.settings import ServerSettings

    directory = ServerSettings(state=state).state_directory
    known_keys(directory)  # refuses what is no server's
    root = directory / DIRECTORY
    records = [each for each in stored_archives(root) if client in (None, each.client)]
    return root, sorted(records, key=lambda each: each.number)


def _named(digest: str, records: list[ArchiveRecord]) -> list[ArchiveRecord]:
    """The archives of this digest: one for each client that uploaded it. Raises UsageError."""
    if len(digest) < _LEAST_DIGITS:
        raise UsageError(f"an archive must be named by at least {_LEAST_DIGITS} digits of its SHA-256, got {digest}")
    found = [each for each in records if each.sha256.startswith(digest.lower())]
    if not found:
        raise UsageError(f"no stored archive has the SHA-256 {digest}")
    return found


def _described(record: ArchiveRecord) -> dict[str, object]:
    return {
        "client": record.client, "sha256": record.sha256, "name": record.name, "size_bytes": record.size_bytes,
        "received": _time(record), "network": record.network,
    }  # fmt: skip


def _row(record: ArchiveRecord) -> tuple[str, ...]:
    digits = record.sha256[:_LEAST_DIGITS]
    return _time(record), record.client, record.network, str(record.size_bytes), digits, record.name


def _time(record: ArchiveRecord) -> str:
    """By the server's clock."""
    return datetime.fromtimestamp(record.received_unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
