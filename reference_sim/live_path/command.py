"""The command `emulate`."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pepscope.command_line.options import Number
from pepscope.command_line.reports import ReportingCommand, json_option, report_option
from pepscope.command_line.volume import announce
from pepscope.errors import UsageError
from pepscope.processes.signals import ending_by_signal

if TYPE_CHECKING:
    from reference_sim.live_path import LiveEmulation, LiveRun, LiveSettings
    from reference_sim.scenario import Scenario

SCHEMA = 1
#: Packets later than this make a path that is another than the scenario's.
_TOO_LATE_S = 1e-3


@click.command(cls=ReportingCommand, short_help="Run a command behind a scenario's path, between real kernels.")
@click.argument("scenario", required=False, metavar="[SCENARIO]")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), metavar="DIR", help="Directory for captures and ground truth."
)
@click.option("--server-command", metavar="COMMAND", help="Run this in the server's namespace meanwhile.")
@click.option(
    "--middle-command", metavar="COMMAND", help="Run this in the namespace in the middle of the path: a proxy."
)
@click.option(
    "--middle",
    type=click.IntRange(0),
    metavar="HOPS",
    help="Put that namespace behind so many hops of the path.  [default: where the scenario has its proxy]",
)
@click.option("--keep", is_flag=True, help="Stay up until interrupted, and print how to enter the namespaces.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Change a field, such as path[0].down.delay_s=0.1. Repeatable.",
)
@click.option("--seed", type=click.IntRange(0), metavar="S", help="Use this seed instead of the scenario's.")
@click.option("--mtu", type=click.IntRange(576, 65_535), default=1500, show_default=True, metavar="BYTES")
@click.option(
    "--spin",
    type=Number(0, 1e6),
    default=100.0,
    show_default=True,
    metavar="US",
    help="Busy-wait for this many microseconds before a packet is due.",
)
@click.option(
    "--real-time/--no-real-time",
    default=True,
    show_default=True,
    help="Schedule the process that carries packets in real time.",
)
@click.option(
    "--report-port",
    type=click.IntRange(1, 65_535),
    default=31_000,
    show_default=True,
    metavar="PORT",
    help="UDP port in that namespace to which a cell reports its queue.",
)
@click.option("--compare", is_flag=True, help="Run each SCENARIO simulated and live, and compare the results.")
@report_option("html", "With --compare: write a page.")
@json_option("Write what happened as JSON.")
def emulate(
    scenario: str | None,
    command: tuple[str, ...],
    output: str | None,
    server_command: str | None,
    middle_command: str | None,
    middle: int | None,
    keep: bool,
    changes: tuple[str, ...],
    seed: int | None,
    mtu: int,
    spin: float,
    real_time: bool,
    report_port: int,
    compare: bool,
    html_to: str | None,
    as_json: bool,
) -> int:
    """Run COMMAND in the mobile's network namespace, behind a scenario's path in real time.

    SCENARIO is the name of a scenario that comes with pepscope (`pepscope simulate --list`) or a TOML file. Without a
    COMMAND, the scenario's own downloads and uploads run. PEPSCOPE_SERVER, PEPSCOPE_SERVER_6 and so on give commands
    the addresses. Needs Linux and root (`pepscope doctor emulate` says what is missing), and leaves the host's own
    network alone.
    """
    from reference_sim.live_path import LiveSettings

    if scenario is None:
        raise UsageError("name a scenario; `pepscope simulate --list` lists them")
    settings = LiveSettings(
        server_command=_words("--server-command", server_command),
        middle_command=_words("--middle-command", middle_command),
        middle_after=middle,
        spin_s=spin * 1e-6,
        packet_bytes=mtu,
        real_time=real_time,
        report_port=report_port,
    )
    if html_to is not None and not compare:
        raise UsageError("--html draws a comparison: give --compare")
    with ending_by_signal():
        if compare:
            return _compare((scenario, *command), changes, seed, settings, html_to, as_json)
        loaded = load(scenario, changes, seed)
        run = _run(loaded, command, output, settings, keep)
    _print(run, as_json)
    return run.exit_status


def load(name: str, changes: tuple[str, ...], seed: int | None) -> Scenario:
    """A scenario with changes as the command line gives them."""
    from pepscope.settings import parse_change
    from reference_sim.library import load_scenario

    values: dict[str, Any] = dict(parse_change(change, json.loads) for change in changes)
    if seed is not None:
        values["seed"] = seed
    scenario = load_scenario(name)
    return scenario.with_values(values) if values else scenario


def _words(option: str, text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        raise UsageError(f"{option} must be words of a shell command: {error}") from None


def _run(
    scenario: Scenario, command: tuple[str, ...], output: str | None, settings: LiveSettings, keep: bool
) -> LiveRun:
    from reference_sim.live_path import emulate as run

    return run(scenario, command, output, settings=settings, while_up=_stay_up if keep else None)


def _stay_up(emulation: LiveEmulation) -> None:
    click.echo("the path is up until Ctrl-C; to enter:", err=True)
    for namespace in emulation.network.namespaces:
        click.echo(f"  {namespace.name:8}nsenter --net={namespace.path}", err=True)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        while True:
            emulation.sleep(3600)


def _print(run: LiveRun, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"schema": SCHEMA, **run.truth}) + "\n")
    for line in _lines(run):
        click.echo(line, err=True)


def _lines(run: LiveRun) -> Iterator[str]:
    truth = run.truth
    yield f"{run.scenario.name}: {truth['simulated_s']:.1f} s"
    for hop in truth["hops"]:
        for direction in ("down", "up"):
            counts = hop[direction]
            yield (
                f"  {hop['name']}, {direction}: {counts['delivered_packets']:,} of {counts['offered_packets']:,} "
                f"packets came through, {counts['overflowed_packets']:,} overflowed, {counts['lost_packets']:,} lost"
            )
    for part in truth["live"]["parts"]:
        late, dropped = part["lateness"], part["dropped_by_device_packets"]
        yield (
            f"  {part['from']} - {part['to']}: packets left {late['median_s'] * 1e6:,.0f} us late (median; 99 %: "
            f"{late['quantile_99_s'] * 1e6:,.0f} us, at most {late['maximum_s'] * 1e6:,.0f} us)"
        )
        if any(dropped.values()):
            yield f"  {part['from']} - {part['to']}: {sum(dropped.values()):,} packets came faster than they were taken"
        if late["quantile_99_s"] > _TOO_LATE_S:
            yield f"  {part['from']} - {part['to']}: the machine was too busy for this path"
    for path in run.captures.values():
        yield f"  {path}"


def _compare(
    names: tuple[str, ...],
    changes: tuple[str, ...],
    seed: int | None,
    settings: LiveSettings,
    html: str | None,
    as_json: bool,
) -> int:
    from reference_sim.live_path import check_comparable, compare

    scenarios = [load(name, changes, seed) for name in names]
    for scenario in scenarios:
        check_comparable(scenario, settings)
    comparisons = []
    for scenario in scenarios:
        click.echo(f"comparing {scenario.name}", err=True)
        comparisons.append(compare(scenario, settings))
        if not as_json:
            click.echo(comparisons[-1].table())
    if html is not None:
        from pepscope.plugins import writer

        writer("comparison-html")(comparisons, html)
        announce(html)
    if as_json:
        rows = [comparison.to_dict() for comparison in comparisons]
        sys.stdout.write(json.dumps({"schema": SCHEMA, "comparisons": rows}) + "\n")
    return 0 if all(comparison.is_within_bounds for comparison in comparisons) else 1
