"""The command `proxy`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from pepscope.errors import UsageError

if TYPE_CHECKING:
    from reference_proxy.configuration import Configuration
    from reference_proxy.interception.rules import Command
    from reference_proxy.sockets import Address

MODES = ("split", "store-and-forward", "window-adaptation", "udp-tunnel")
INTERCEPTIONS = ("transparent", "destination-transparent", "explicit", "fixed")


@click.command(short_help="Run a real proxy of a known kind, and write down the truth.")
@click.argument("mode", required=False, type=click.Choice(MODES), metavar="[MODE]")
@click.option("--config", "file", metavar="FILE", help="Settings as a TOML file; options override it.")
@click.option(
    "--listen",
    multiple=True,
    metavar="ADDRESS:PORT",
    help="Accept clients here. Repeatable.  [default: 127.0.0.1:8888]",
)
@click.option(
    "--interception",
    type=click.Choice(INTERCEPTIONS),
    help="How the proxy learns the requested server: packets are diverted to it and it keeps both addresses "
    "(transparent) or the server's only (destination-transparent), clients name the server by HTTP or SOCKS5 "
    "(explicit), or there is one (fixed).  [default: explicit]",
)
@click.option("--target", metavar="ADDRESS:PORT", help="The only server; implies --interception fixed.")
@click.option(
    "--allow",
    multiple=True,
    metavar="DEST",
    help="Destinations that clients may reach: HOST, NETWORK or *, with or without :PORT,... Repeatable.",
)
@click.option("--device", metavar="NAME", help="Interface of the clients, for --setup.")
@click.option("--ports", metavar="PORT,FIRST-LAST,...", help="Destination ports to intercept, for --setup.  [80]")
@click.option("--truth", metavar="FILE", help="Append the ground truth of each connection as one line of JSON.")
@click.option("--metrics", metavar="ADDRESS:PORT", help="Serve metrics to Prometheus at this address.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set any other field, such as limits.idle_s=60. Repeatable.",
)
@click.option("--setup", is_flag=True, help="Install the firewall rules that divert packets, and exit.")
@click.option("--teardown", is_flag=True, help="Remove these rules, and exit.")
@click.option("--dry-run", is_flag=True, help="Print the rules' commands instead of running them.")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="info", show_default=True
)
def proxy(
    mode: str | None,
    file: str | None,
    listen: tuple[str, ...],
    allow: tuple[str, ...],
    ports: str | None,
    changes: tuple[str, ...],
    setup: bool,
    teardown: bool,
    dry_run: bool,
    log_format: str,
    log_level: str,
    **values: str | None,
) -> None:
    """Run a proxy of the kind MODE until a signal ends it.

    split relays data in both directions while they arrive; store-and-forward takes whole objects first (HTTP with cache
    and recompression); window-adaptation sends at the rate of a control law; udp-tunnel carries the mobile's leg in
    UDP. The first SIGTERM lets connections finish, the second ends them. docs/guide/reference-proxy.md has a figure of
    each kind. Needs Linux, and root to intercept connections: `pepscope doctor proxy` shows what is missing.
    """
    if setup and teardown:
        raise UsageError("give either --setup or --teardown")
    if dry_run and not (setup or teardown):
        raise UsageError("--dry-run goes with --setup or --teardown")
    lists = {"listen": list(listen), "allow": list(allow), "rules.ports": _read_ports(ports)}
    fields = {"mode": mode, **{_field(name): value for name, value in values.items()}, **lists}
    configuration = _configure(file, fields, changes)
    if setup or teardown:
        from reference_proxy.interception import rules

        _apply(rules.setup(configuration) if setup else rules.teardown(configuration), dry_run)
    else:
        _run(configuration, log_format, log_level)


def _field(option: str) -> str:
    return "rules.device" if option == "device" else option


def _read_ports(ports: str | None) -> list[int]:
    from pepscope.settings.socket_address import LARGEST_PORT

    numbers: list[int] = []
    for span in ports.split(",") if ports else []:
        first, dash, last = span.partition("-")
        try:
            begin, end = int(first), int(last if dash else first)
        except ValueError:
            begin = end = 0
        if not 1 <= begin <= end <= LARGEST_PORT:
            raise UsageError(
                f"--ports must be ports up to {LARGEST_PORT} or ranges of them (21,26900-26931), got {span!r}"
            )
        numbers += range(begin, end + 1)
    return numbers


def _configure(file: str | None, values: dict[str, Any], changes: tuple[str, ...]) -> Configuration:
    from pepscope.settings import assign, parse_change, read_toml, toml_value
    from reference_proxy.consistency import read_configuration
    from reference_proxy.errors import ConfigurationError

    document: dict[str, Any] = read_toml(file, ConfigurationError) if file is not None else {}
    for name, value in values.items():
        if value not in (None, []):
            assign(document, name, value, ConfigurationError)
    if values["target"] and not values["interception"]:
        document["interception"] = "fixed"
    for change in changes:
        name, value = parse_change(change, toml_value)
        assign(document, name, value, ConfigurationError)
    if "mode" not in document:
        raise UsageError(f"name a mode: {', '.join(MODES)}")
    return read_configuration(document)


def _apply(commands: list[Command], dry_run: bool) -> None:
    from reference_proxy.interception.rules import execute

    if dry_run:
        for command in commands:
            click.echo(str(command))
    else:
        execute(commands)


def _run(configuration: Configuration, log_format: str, log_level: str) -> None:
    import logging

    from pepscope.command_line.logs import configure
    from reference_proxy.service import run

    configure("reference_proxy", log_format, log_level)

    def ready(addresses: list[Address]) -> None:
        fields = {
            "event": "ready",
            "mode": configuration.mode.value,
            "interception": configuration.interception.value,
            "listen": json.dumps([f"{host}:{port}" for host, port in addresses]),
        }
        logging.getLogger("reference_proxy").info("ready", extra={"fields": fields})

    run(configuration, ready)
