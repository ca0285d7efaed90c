"""The command `doctor`: what is installed and allowed, and what is missing for which command."""

from __future__ import annotations

import json
import platform
from typing import Any

import click

import pepscope
from pepscope.command_line.doctor.checks import Check, all_checks, interfaces
from pepscope.command_line.doctor.uses import USES, Availability, availability, missing
from pepscope.command_line.reports import ReportingCommand, json_option
from pepscope.errors import UsageError

_WORDS = {
    Availability.COMPLETE: "runs",
    Availability.PARTIAL: "runs in part",
    Availability.UNAVAILABLE: "does not run",
}


@click.command(cls=ReportingCommand)
@click.argument("commands", metavar="[COMMAND]...", nargs=-1)
@json_option("Write JSON (schema doctor-1).")
@click.pass_context
def doctor(ctx: click.Context, commands: tuple[str, ...], as_json: bool) -> None:
    """Check what is installed and allowed here, and for which commands it is enough.

    With COMMANDs only what they need, and exit status 1 unless all their uses are possible; without, of all commands,
    and exit status 1 unless captures can be judged.
    """
    if unknown := [name for name in commands if name not in USES]:
        raise UsageError(f"COMMAND must be one of {', '.join(USES)}, got {unknown[0]}")
    checks = all_checks()
    chosen = commands or tuple(USES)
    if as_json:
        click.echo(json.dumps(_document(chosen, checks), indent=2))
    else:
        click.echo("\n".join(_lines(chosen, checks)))
    if commands:
        is_well = all(availability(name, checks) is Availability.COMPLETE for name in commands)
    else:
        is_well = availability("detect", checks) is not Availability.UNAVAILABLE
    ctx.exit(0 if is_well else 1)


def _shown(commands: tuple[str, ...], checks: dict[str, Check]) -> list[Check]:
    wanted = {name for command in commands for use in USES[command] for name in use.needs}
    return [check for check in checks.values() if check.name in wanted]


def _lines(commands: tuple[str, ...], checks: dict[str, Check]) -> list[str]:
    lines = [
        f"pepscope {pepscope.__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"interfaces: {', '.join(interfaces()) or 'none'}",
        "",
    ]
    for check in _shown(commands, checks):
        lines.append(f"{'yes' if check.passed else 'no':<4}{check.name}: {check.found}")
        if check.remedy:
            lines.append(f"      {check.remedy}")
    lines.append("")
    for command in commands:
        lines.append(f"{command:<16}{_WORDS[availability(command, checks)]}")
        for use in USES[command]:
            if lacking := missing(use, checks):
                lines.append(f"      not here: {use.purpose} ({', '.join(check.name for check in lacking)})")
    return lines


def _document(commands: tuple[str, ...], checks: dict[str, Check]) -> dict[str, Any]:
    return {
        "schema": 1,
        "pepscope": pepscope.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "interfaces": interfaces(),
        "checks": [
            {"name": check.name, "passed": check.passed, "found": check.found, "remedy": check.remedy or None}
            for check in _shown(commands, checks)
        ],
        "commands": [
            {
                "name": command,
                "availability": availability(command, checks).value,
                "uses": [
                    {"purpose": use.purpose, "missing": [check.name for check in missing(use, checks)]}
                    for use in USES[command]
                ],
            }
            for command in commands
        ],
    }
