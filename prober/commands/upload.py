"""The command `probe upload`: archives of runs to the server, which keeps them."""

from __future__ import annotations

import json

import click

from pepscope.command_line.reports import ReportingCommand, json_option
from prober.commands.options import key_option, server_option


@click.command("upload", cls=ReportingCommand, short_help="Upload archives to the server, which keeps them.")
@click.argument("archives", nargs=-1, required=True, type=click.Path(exists=True), metavar="ARCHIVE...")
@server_option
@key_option
@json_option("Write JSON (schema probe-upload-1).")
def upload(archives: tuple[str, ...], server: str | None, key: str | None, as_json: bool) -> int:
    """Upload ARCHIVEs, or all archives in directories, to the server, which keeps them.

    The same command goes on with an upload that was interrupted, and leaves alone what the server has already. Exit
    status 0: all are at the server; 1: some are not, for the reasons given; 2: there is no archive, or no server.
    """
    from pepscope.command_line.progress import Progress
    from prober.plan import Plan
    from prober.run.archive_uploads import archives_to_upload, outcomes_document, upload_all
    from prober.run.server_address import with_server

    plan = with_server(Plan(), server, key)
    with Progress("uploading") as progress:
        outcomes = list(upload_all(plan, archives_to_upload(archives), progress))
    if as_json:
        click.echo(json.dumps(outcomes_document(outcomes), indent=2))
    else:
        click.echo("\n".join(outcome.sentence() for outcome in outcomes))
    return int(any(outcome.uploaded is None for outcome in outcomes))
