"""The command `probe withdraw`: has the server delete archives that were uploaded."""

from __future__ import annotations

import json

import click

from pepscope.command_line.reports import ReportingCommand, json_option
from prober.commands.options import key_option, server_option


@click.command("withdraw", cls=ReportingCommand, short_help="Have the server delete uploaded archives.")
@click.argument("archives", nargs=-1, required=True, metavar="ARCHIVE...")
@server_option
@key_option
@json_option("Write JSON (schema probe-withdraw-1).")
def withdraw(archives: tuple[str, ...], server: str | None, key: str | None, as_json: bool) -> int:
    """Have the server delete ARCHIVEs that were uploaded with this key, whole ones and those that are coming in.

    An ARCHIVE is the file that was uploaded, or its SHA-256. Exit status 0: all are deleted; 1: some are not, for the
    reasons given; 2: an archive cannot be read, or there is no server.
    """
    from prober.plan import Plan
    from prober.run.archive_withdrawals import digests_to_withdraw, withdraw_all, withdrawals_document
    from prober.run.server_address import with_server

    digests = digests_to_withdraw(archives)
    outcomes = list(withdraw_all(with_server(Plan(), server, key), digests))
    if as_json:
        click.echo(json.dumps(withdrawals_document(outcomes), indent=2))
    else:
        click.echo("\n".join(outcome.sentence() for outcome in outcomes))
    return int(any(outcome.reason for outcome in outcomes))
