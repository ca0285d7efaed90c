"""Command line options that several commands of the prober share, and the plan that comes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from prober.plan import Plan

Command = TypeVar("Command", bound=Callable[..., Any])

KEY_VARIABLE = "PEPSCOPE_PROBE_KEY"

server_option = click.option(
    "--server",
    metavar="HOST[:PORT]",
    help="Host and control port of `pepscope probe serve`.  [default: those of the plan]",
)

key_option = click.option(
    "--key",
    envvar=KEY_VARIABLE,
    metavar="KEY",
    help=f"The key that the server printed. Safer in {KEY_VARIABLE}: other users can see command lines.",
)

runs_option = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    default=".",
    show_default="here",
    metavar="DIR",
    help="Directory for archives and unfinished runs.",
)

note_option = click.option(
    "--note",
    "notes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Store this with the run: operator=..., cell=..., signal_dbm=... Repeatable.",
)

upload_option = click.option(
    "--upload", "uploads", is_flag=True, help="Upload the archive to the server, which keeps it; see `probe upload`."
)

restart_option = click.option("--restart", is_flag=True, help="Start a new run instead of resuming an interrupted one.")


def unit_option(file: str) -> Callable[[Command], Command]:
    """The option `--show unit`, which prints a systemd unit of `prober/assets` and ends."""

    def show(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None and not ctx.resilient_parsing:
            click.echo((Path(__file__).parents[1] / "assets" / file).read_text(encoding="utf-8"), nl=False)
            ctx.exit()

    return click.option(
        "--show",
        type=click.Choice(["unit"]),
        callback=show,
        is_eager=True,
        expose_value=False,
        help="Print a systemd unit, and end.",
    )


def load_plan(path: str | None, server: str | None, key: str | None) -> Plan:
    """The plan in a file with the command line's settings of the server, or the plan that can decide here.

    Says which one was chosen. Raises PlanError, ControlError, OSError.
    """
    from prober.plan import Plan
    from prober.run.chosen_plan import choose_plan
    from prober.run.server_address import with_server

    if path is not None:
        return with_server(Plan.from_toml(Path(path)), server, key)
    chosen = choose_plan(with_server(Plan(), server, key))
    click.echo(chosen.why, err=True)
    return chosen.plan


def tell_cost(plan: Plan) -> None:
    """Say on standard error what a run will cost, before it begins.

    Raises PlanError, and ControlError where the server does not answer within a few seconds.
    """
    from prober.run.dry_run import dry_run
    from prober.run.run_report import cost_line

    click.echo(cost_line(dry_run(plan, must_answer=True)), err=True)


def upload_archive_of(plan: Plan, archive: Path) -> bool:
    """Upload a run's archive, and say on standard error what came of it; whether it is at the server."""
    from pepscope.command_line.progress import Progress
    from prober.run.archive_uploads import upload_after_run

    with Progress("uploading") as progress:
        outcome = upload_after_run(plan, archive, progress)
    click.echo(outcome.sentence(), err=True)
    if outcome.uploaded is None:
        click.echo(f"upload it later: pepscope probe upload {archive} --server {plan.server.host}", err=True)
    return outcome.uploaded is not None
