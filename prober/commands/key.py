"""The command `probe key`: keys of clients, in the state directory of a server that may run meanwhile."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pepscope.command_line.options import SizeType
from pepscope.sizes import format_size

if TYPE_CHECKING:
    from prober.server.keys.client_key import KeyRecord

SCHEMA = "pepscope-probe-keys-1"

_state_option = click.option(
    "--state", metavar="DIR", default="", help="The server's state directory.  [~/.local/state/pepscope/...]"
)


@click.group(short_help="Keys of clients: add, list, revoke.")
def key() -> None:
    """Give each client a key of its own, with quotas, and take it back.

    A server that runs accepts a new key, and ends all that a revoked one does, within a second.
    """


@key.command("add", short_help="Make a key, and print it.")
@click.argument("name")
@_state_option
@click.option("--sessions", type=click.IntRange(1, 10_000), metavar="N", help="Sessions at once.  [as the server]")
@click.option(
    "--connections", type=click.IntRange(1, 10_000), metavar="N", help="Connections at once.  [as the server]"
)
@click.option(
    "--day-bytes", type=SizeType(), metavar="SIZE", help="Payload in 24 hours, both ways together.  [as the server]"
)
@click.option(
    "--capture-bytes", type=SizeType(), metavar="SIZE", help="What its captures take on the disk.  [as the server]"
)
@click.option(
    "--archive-bytes", type=SizeType(), metavar="SIZE", help="What archives that it uploads take.  [as the server]"
)
@click.option("--reads-all", is_flag=True, help="The dashboard shows its holder the archives of all clients.")
@click.option("--json", "as_json", is_flag=True, help="Write the key as JSON (schema probe-keys-1).")
def add(name: str, state: str, reads_all: bool, as_json: bool, **quotas: int | None) -> None:
    """Make a key for the client NAME, with quotas, and print it; it is shown this once, and not stored as it is."""
    from pepscope.strict_reading import read_as
    from prober.errors import ServerError
    from prober.protocol.control_messages import Key
    from prober.server.identity import fingerprint_in
    from prober.server.keys.client_key import Quotas
    from prober.server.keys.key_file import KeyFile

    wanted = read_as(Quotas, quotas, ServerError)
    directory = _directory(state)
    fingerprint = fingerprint_in(directory)
    made = Key(KeyFile(directory).add(name, wanted, reads_all=reads_all), fingerprint)
    click.echo(json.dumps({"schema": SCHEMA, "name": name, "key": str(made)}) if as_json else f"KEY {made}")


@key.command("list", short_help="List keys with their quotas.")
@_state_option
@click.option("--json", "as_json", is_flag=True, help="Write JSON (schema probe-keys-1).")
def list_keys(state: str, as_json: bool) -> None:
    """List keys with their quotas, those that were revoked too; never the keys themselves."""
    from prober.server.identity import known_keys

    records = known_keys(_directory(state))
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "keys": [_described(record) for record in records]}, indent=2))
        return
    rows = [
        ("NAME", "ADDED", "SESSIONS", "CONNECTIONS", "BYTES A DAY", "CAPTURES", "ARCHIVES", "READS", "REVOKED"),
        *map(_row, records),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@key.command("revoke", short_help="Take a key back.")
@click.argument("name")
@_state_option
def revoke(name: str, state: str) -> None:
    """Take the key NAME back: a server that runs ends its sessions, transfers and captures within a second.

    For `default`, the server's own key, the next start makes and prints another.
    """
    from prober.server.identity import revoke as revoke_key

    revoke_key(_directory(state), name)
    click.echo(f"revoked {name}")


def _directory(state: str) -> Path:
    from prober.server.settings import ServerSettings

    return ServerSettings(state=state).state_directory


def _described(record: KeyRecord) -> dict[str, object]:
    quotas = record.quotas
    return {
        "name": record.name,
        "added": _time(record.added_unix_s) or None,
        "revoked": _time(record.revoked_unix_s) or None,
        "reads_all": record.reads_all,
        "quotas": {
            "sessions": quotas.sessions,
            "connections": quotas.connections,
            "day_bytes": quotas.day_bytes,
            "capture_bytes": quotas.capture_bytes,
            "archive_bytes": quotas.archive_bytes,
        },
    }


def _row(record: KeyRecord) -> tuple[str, ...]:
    quotas = record.quotas
    counts = (None if count is None else str(count) for count in (quotas.sessions, quotas.connections))
    sizes = (quotas.day_bytes, quotas.capture_bytes, quotas.archive_bytes)
    shown = ("as server" if limit is None else limit for limit in (*counts, *map(_size, sizes)))
    reads = "all" if record.reads_all else "own"
    return record.name, _time(record.added_unix_s) or "-", *shown, reads, _time(record.revoked_unix_s) or "-"


def _size(size_bytes: int | None) -> str | None:
    return None if size_bytes is None else format_size(size_bytes)


def _time(unix_s: int | None) -> str:
    """Empty for 0 and for none."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if unix_s else ""
