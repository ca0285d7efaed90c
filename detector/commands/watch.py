"""The command `watch`."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detector.commands.detect import FailOn
from pepscope.command_line.options import (
    Duration,
    OptionType,
    SizeType,
    filter_option,
    least_probability_option,
    memory_option,
    refuse_given,
)
from pepscope.command_line.reports import ReportingCommand, json_option
from pepscope.errors import UsageError
from pepscope.processes.signals import stopped_by_signals
from pepscope.settings.socket_address import parse_socket_address

if TYPE_CHECKING:
    from detector.corpora.watch.sources import Source
    from detector.corpora.watch.watching import Watch

_ASSETS = Path(__file__).parents[1] / "corpora" / "watch" / "assets"
#: Parameters of how an interface is captured.
_OF_AN_INTERFACE = ("slice_s", "spool", "spool_bytes", "keep", "snap_bytes")
_SHOWN = {"dashboard": "grafana-dashboard.json", "unit": "pepscope-watch.service"}


class Address(OptionType[tuple[str, int]]):
    """`ADDRESS:PORT` or `[ADDRESS]:PORT`, the address in digits."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Host and port."""
        address = parse_socket_address(str(value))
        if address is None:
            self.fail(f"{value!r} is not ADDRESS:PORT with the address in digits.", param, ctx)
        return address


def _show(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None and not ctx.resilient_parsing:
        click.echo((_ASSETS / _SHOWN[value]).read_text(encoding="utf-8"), nl=False)
        ctx.exit()


@click.command(
    cls=ReportingCommand, short_help="Continuously judge an interface, or a directory that receives captures."
)
@click.argument("directory", required=False, metavar="[DIRECTORY]")
@click.option(
    "-i",
    "--interface",
    metavar="INTERFACE",
    help="Capture on this network interface, or on `any`. Needs Linux, and root or CAP_NET_RAW.",
)
@click.option(
    "--window",
    "window_s",
    type=Duration(),
    default="1h",
    show_default=True,
    metavar="T",
    help="Judge by connections that ended within the last T.",
)
@click.option(
    "--connections",
    "most_connections",
    type=click.IntRange(1000),
    default=50_000,
    show_default=True,
    metavar="N",
    help="Judge by at most N of them, equally many of each network and port; each takes 4 kB of memory.",
)
@click.option("--duration", "duration_s", type=Duration(), metavar="T", help="Stop after T.")
@click.option("--once", is_flag=True, help="Judge what is in the directory now, and exit.")
@click.option(
    "--slice",
    "slice_s",
    type=Duration(),
    default="60s",
    show_default=True,
    metavar="T",
    help="Judge what came on the interface every T.",
)
@click.option(
    "--spool",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Directory for captured packets until they are judged.  [default: a private directory]",
)
@click.option(
    "--spool-size",
    "spool_bytes",
    type=SizeType(),
    default="1GiB",
    show_default=True,
    metavar="SIZE",
    help="Largest size of the spool; beyond it the oldest packets are dropped and counted.",
)
@click.option(
    "--keep",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Keep the latest N judged files of the spool.",
)
@click.option(
    "--snap-length",
    "snap_bytes",
    type=click.IntRange(68, 262_144),
    default=160,
    show_default=True,
    metavar="BYTES",
    help="Capture this many bytes of each packet; beyond the beginnings of TLS records and requests, no payload is "
    "used.",
)
@filter_option
@click.option(
    "--taken-at",
    type=click.Choice(["client", "server"]),
    help="The end at which captures are taken, if pepscope infers the wrong one.",
)
@click.option(
    "--networks",
    metavar="FILE",
    help="Lines `prefix,name` that say which client addresses belong together.  [default: /24, and /48 of IPv6]",
)
@least_probability_option
@memory_option
@click.option(
    "--state",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Keep the evidence and the list of judged files in FILE, so that the next run continues from there.",
)
@click.option(
    "--log",
    "log_path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append changes of verdicts to FILE as JSON Lines.",
)
@click.option("--metrics", type=Address(), metavar="ADDRESS:PORT", help="Serve metrics to Prometheus at /metrics.")
@click.option(
    "--webhook", metavar="URL", help="POST changes to and from the verdicts of --fail-on to this URL (default: split)."
)
@click.option(
    "--fail-on",
    type=FailOn(),
    metavar="VERDICTS",
    help="Exit with status 1 if a network and port had one of these verdicts at any time, or if nothing could be "
    "judged: split, split-tcp, tcp-proxy, regular, inconclusive; separated by commas.",
)
@json_option("Write a summary as JSON at the end.")
@click.option(
    "--show", type=click.Choice(list(_SHOWN)), is_eager=True, expose_value=False, callback=_show,
    help="Print the Grafana dashboard or the systemd unit, and exit.",
)  # fmt: skip
def watch(
    directory: str | None,
    interface: str | None,
    window_s: float,
    most_connections: int,
    duration_s: float | None,
    once: bool,
    slice_s: float,
    spool: str | None,
    spool_bytes: int,
    keep: int,
    snap_bytes: int,
    filter_expression: str | None,
    taken_at: str | None,
    networks: str | None,
    least_probability: float,
    memory_bytes: int | None,
    state: str | None,
    log_path: str | None,
    metrics: tuple[str, int] | None,
    webhook: str | None,
    fail_on: frozenset[str] | None,
    as_json: bool,
) -> None:
    """Judge networks and ports by what comes on an interface, or by the captures that come into a DIRECTORY, which were
    taken at one place.

    On a terminal it shows a table; otherwise it writes changes of verdicts to standard output as JSON Lines. Ctrl-C and
    SIGTERM end it after the last verdicts; a second Ctrl-C ends it immediately.
    """
    _check_options(directory, interface, once=once, window_s=window_s, slice_s=slice_s)
    from detector.commands.watch_outputs import WatchOutputs
    from detector.corpora.watch.directory_source import DirectorySource
    from detector.corpora.watch.metrics import WatchCollector
    from detector.corpora.watch.sources import InterfaceSource, Spool
    from detector.corpora.watch.state_file import read_state
    from detector.corpora.watch.watching import Watch, WatchOptions
    from detector.corpora.watch.webhook import Webhook
    from pepscope.results.verdicts import GroupSide, Verdict

    name = interface or str(directory)
    alert_on = {"split-tcp", "tcp-proxy"} if fail_on is None else fail_on
    options = WatchOptions(
        window_s=window_s, least_probability=least_probability, most_connections=most_connections,
        taken_at=None if taken_at is None else GroupSide(taken_at), networks=networks,
        filter_expression=filter_expression if interface is None else None, memory_bytes=memory_bytes,
        alert_on=frozenset(map(Verdict, alert_on)), state=None if state is None else Path(state),
    )  # fmt: skip
    with ExitStack() as running:
        outputs = WatchOutputs(running, as_json=as_json, title=name, log_path=log_path)
        left, evidence = ({}, None) if options.state is None else read_state(options.state, name)
        hook = None if webhook is None else Webhook(webhook)
        if hook is not None:
            running.callback(hook.close)
        source: Source
        if interface is not None:
            spooled = Spool(spool, spool_bytes, slice_s, snap_bytes, keep)
            source = InterfaceSource(interface, filter_expression, spooled)
            running.callback(source.close)
        elif once:
            source = DirectorySource(name, settled_s=0, state=left)
        else:
            source = DirectorySource(name, state=left)
        running.callback(source.finish)
        watching = Watch(
            source, options, evidence=evidence, webhook=hook, on_changes=outputs.tell,
            on_tick=lambda: outputs.tick(watching),
        )  # fmt: skip
        if metrics is not None:
            from pepscope.command_line.metrics import serve_metrics

            running.callback(serve_metrics(*metrics, WatchCollector(watching.snapshot), with_process=True))
        with stopped_by_signals() as stopped, outputs.shown():
            failure = _run(watching, stopped, duration_s, once)
    outputs.summarise(watching)
    if failure is not None:
        raise failure
    if fail_on is not None and _fails({verdict.value for verdict in watching.verdicts_seen}, fail_on):
        raise SystemExit(1)


def _check_options(
    directory: str | None, interface: str | None, *, once: bool, window_s: float, slice_s: float
) -> None:
    """Raise UsageError where options contradict each other."""
    if (directory is None) == (interface is None):
        raise UsageError("watch needs a directory or an interface (-i), one of the two")
    if once and interface is not None:
        raise UsageError("--once is for a directory: give --duration with an interface")
    if interface is None:
        refuse_given(_OF_AN_INTERFACE, "is for an interface (-i), got DIRECTORY")
    if not slice_s > 0 or not window_s >= slice_s:
        raise UsageError(f"the window must be at least as long as a slice, got {window_s:g} s and {slice_s:g} s")


def _run(watching: Watch, stopped: threading.Event, duration_s: float | None, once: bool) -> Exception | None:
    """What ended the watch before its time, which is to be said behind the last verdicts."""
    from pepscope.errors import PepscopeError

    try:
        watching.run(stopped, duration_s=duration_s, once=once)
    except PepscopeError as error:
        return error
    return None


def _fails(verdicts: set[str], kinds: frozenset[str]) -> bool:
    if verdicts <= {"inconclusive"}:
        click.echo("pepscope: nothing could be judged, which --fail-on does not take for success.", err=True)
        return True
    return bool(verdicts & kinds)
