"""The command `probe serve`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from pepscope.errors import UsageError
from prober.commands.options import unit_option

if TYPE_CHECKING:
    from prober.protocol.control_messages import About, Key, Ports
    from prober.server.settings import ServerSettings

PORT_NAMES = (
    "control",
    "http",
    "https",
    "ftp",
    "tcp",
    "udp_echo",
    "dead",
    "http_free",
    "https_free",
    "ftp_free",
    "ftp_data",
)


@click.command(short_help="Run the server at the wired end, against which plans are measured.")
@click.option("--config", "file", metavar="FILE", help="Settings as a TOML file; options override it.")
@click.option(
    "--listen", multiple=True, metavar="ADDRESS", help="Listen on this address only. Repeatable.  [default: all]"
)
@click.option(
    "--port",
    "ports",
    multiple=True,
    metavar="NAME=PORT",
    help=f"Use another port for a service: {', '.join(PORT_NAMES)}. ftp_data is a range, FIRST-LAST; tcp may have "
    "several ports, separated by commas; 0 chooses a free port. Repeatable.",
)
@click.option(
    "--state", metavar="DIR", help="Directory for certificate and key.  [default: ~/.local/state/pepscope/...]"
)
@click.option(
    "--interface",
    metavar="NAME",
    help="Capture on this interface.  [default: that of the address that the mobile contacts]",
)
@click.option(
    "--host", metavar="NAME", help="Name or address of this host for the mobile, as the printed command shows it."
)
@click.option("--metrics", metavar="ADDRESS:PORT", help="Serve metrics to Prometheus at this address.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set any other field, such as limits.sessions=4. Repeatable.",
)
@unit_option("pepscope-probe.service")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="info", show_default=True
)
def serve(
    file: str | None,
    listen: tuple[str, ...],
    ports: tuple[str, ...],
    changes: tuple[str, ...],
    log_format: str,
    log_level: str,
    **values: str | None,
) -> None:
    """Serve HTTP, HTTPS, FTP, raw TCP and UDP echo to clients that have the key, and capture what is asked for.

    The key is made at the first start and printed at every start. Root (or CAP_NET_BIND_SERVICE, CAP_NET_RAW,
    CAP_NET_ADMIN) is for ports below 1024, captures, and holding ACKs back. SIGTERM and SIGINT end it. Needs Linux.
    docs/guide/probe-server.md describes its protection.
    """
    settings = _configure(file, {**values, "listen": list(listen)}, ports, changes)
    _run(settings, log_format, log_level)


def _configure(
    file: str | None, values: dict[str, Any], ports: tuple[str, ...], changes: tuple[str, ...]
) -> ServerSettings:
    from pepscope.settings import assign, parse_change, read_toml, toml_value
    from prober.errors import ServerError
    from prober.server.settings import ServerSettings

    document: dict[str, Any] = read_toml(file, ServerError) if file is not None else {}
    for name, value in values.items():
        if value:
            assign(document, name, value, ServerError)
    for text in ports:
        name, numbers = _read_port(text)
        assign(document, f"ports.{name}", numbers, ServerError)
    for change in changes:
        name, value = parse_change(change, toml_value)
        assign(document, name, value, ServerError)
    return ServerSettings.from_mapping(document)


def _read_port(text: str) -> tuple[str, int | list[int]]:
    name, _, numbers = text.partition("=")
    name = name.strip().replace("-", "_")
    if name not in PORT_NAMES:
        raise UsageError(f"--port must name one of {', '.join(PORT_NAMES)}, got {text}")
    try:
        read = [int(number) for number in numbers.split("-" if name == "ftp_data" else ",")]
    except ValueError:
        raise UsageError(f"--port must be {name}=NUMBER, got {text}") from None
    if name in ("tcp", "ftp_data"):
        return name, read
    if len(read) > 1:
        raise UsageError(f"--port must give {name} one port, got {text}")
    return name, read[0]


def _run(settings: ServerSettings, log_format: str, log_level: str) -> None:
    import logging

    from pepscope.command_line.logs import configure

    try:
        from prober.server.service import run
    except ModuleNotFoundError as error:
        raise UsageError(f"the server needs the package {error.name}: pip install 'pepscope[probe]'") from None
    configure("prober", log_format, log_level)

    def ready(key: Key, ports: Ports, about: About) -> None:
        _tell(settings, key, ports)
        fields = {"event": "ready", "ports": ports.to_json(), "can": about.can.to_json()}
        logging.getLogger("prober").info("ready", extra={"fields": fields})

    run(settings, ready)


def _tell(settings: ServerSettings, key: Key, ports: Ports) -> None:
    """The key, and the line for the mobile, on standard output."""
    host = settings.host or _own_address(settings) or "HOST"
    host = f"[{host}]" if ":" in host else host
    click.echo(f"KEY {key}")
    click.echo(f"MOBILE PEPSCOPE_PROBE_KEY={key} pepscope probe run plan.toml --server {host}:{ports.control}")
    sys.stdout.flush()


def _own_address(settings: ServerSettings) -> str:
    """What is listened on, if that is one address; else where this host's default route leaves from."""
    from prober.host.network_devices import local_address_towards

    chosen = [address for address in settings.listen if address not in ("0.0.0.0", "::")]
    if chosen:
        return chosen[0]
    for elsewhere in ("192.0.2.1", "2001:db8::1"):
        try:
            return local_address_towards(elsewhere)
        except OSError:
            continue
    return ""
