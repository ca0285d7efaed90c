"""The command `probe dashboard`: a read-only web page about the archives of a server's clients."""

from __future__ import annotations

from pathlib import Path

import click

from pepscope.errors import UsageError
from pepscope.settings.socket_address import parse_socket_address
from prober.commands.options import unit_option


@click.command("dashboard", short_help="Show the archives of a server's clients as a web page.")
@click.option(
    "--state", metavar="DIR", default="", help="The server's state directory.  [default: ~/.local/state/pepscope/...]"
)
@click.option(
    "--listen", default="127.0.0.1:8450", show_default=True, metavar="ADDRESS:PORT",
    help="Serve here; addresses other than loopback use TLS.",
)  # fmt: skip
@click.option(
    "--certificate", type=click.Path(dir_okay=False), metavar="FILE",
    help="PEM file with private key and certificate, if browsers are to trust it.  [default: the server's own]",
)  # fmt: skip
@click.option(
    "--judged", type=click.Path(file_okay=False), metavar="DIR",
    help="Cache of verdicts and pages; may be deleted.  [default: judged, in the state directory]",
)  # fmt: skip
@unit_option("pepscope-dashboard.service")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", show_default=True)
def dashboard(state: str, listen: str, certificate: str | None, judged: str | None, log_format: str) -> None:
    """Serve a read-only web page about the archives that clients uploaded to `probe serve`.

    The page shows networks with their verdicts over time, changes, clients, and archives to download. Readers log in
    with a key of the server and see what was uploaded with that key; a key that was added with --reads-all shows
    everything. SIGTERM and SIGINT end the dashboard.
    """
    from pepscope.command_line.logs import configure
    from prober.server.settings import ServerSettings

    try:
        from prober.server.dashboard.service import DashboardSettings, run
    except ModuleNotFoundError as error:
        raise UsageError(f"the dashboard needs the package {error.name}: pip install 'pepscope[probe,html]'") from None
    configure("prober", log_format, "info")
    address = parse_socket_address(listen)
    if address is None:
        raise UsageError(f"--listen must be ADDRESS:PORT with the address in digits, got {listen}")
    settings = DashboardSettings(
        ServerSettings(state=state).state_directory,
        *address,
        None if certificate is None else Path(certificate),
        None if judged is None else Path(judged),
    )
    run(settings, lambda where: click.echo(f"DASHBOARD {where}"))
