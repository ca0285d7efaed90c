"""The command `simulate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pepscope.command_line.options import refuse_given
from pepscope.command_line.reports import ReportingCommand, json_option, report_option
from pepscope.command_line.volume import announce
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from reference_sim.run import Run
    from reference_sim.scenario import Scenario

SCHEMA = 1
#: Parameters that a campaign has in its file or not at all, and those that it alone has.
_OF_A_SCENARIO = ("repeat", "seed", "changes", "no_captures", "html_to", "shows")
_OF_A_CAMPAIGN = ("processes", "scheduler")


@click.command(cls=ReportingCommand, short_help="Simulate a path with known truth, and capture at both ends.")
@click.argument("scenario", required=False, metavar="[SCENARIO]")
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), metavar="DIR", help="Directory for captures and ground truth."
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of runs; each has its own seed.",
)
@click.option("--seed", type=click.IntRange(0), metavar="S", help="Seed of the first run, instead of the scenario's.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Change a field, such as path[0].down.delay_s=0.1. Repeatable.",
)
@click.option("--no-captures", is_flag=True, help="Write no captures.")
@click.option("--campaign", metavar="FILE", help="Run a campaign, by its name or TOML file, instead of one scenario.")
@click.option(
    "--processes", type=click.IntRange(1), metavar="N", help="Processes of a campaign.  [default: one per usable core]"
)
@click.option("--scheduler", metavar="ADDRESS", help="Run the campaign on the Dask cluster of this scheduler.")
@report_option("html", "Write a page that draws the first run.")
@json_option("Write the delivered bytes and times as JSON.")
@click.option("--list", "lists", is_flag=True, help="List the scenarios and campaigns that come with pepscope.")
@click.option("--show", "shows", is_flag=True, help="Print SCENARIO as TOML, so that you can change a copy.")
def simulate(
    scenario: str | None,
    output: str | None,
    repeat: int,
    seed: int | None,
    changes: tuple[str, ...],
    no_captures: bool,
    campaign: str | None,
    processes: int | None,
    scheduler: str | None,
    html_to: str | None,
    as_json: bool,
    lists: bool,
    shows: bool,
) -> None:
    """Simulate a path with known ground truth.

    SCENARIO is a TOML file or the name of a scenario that comes with pepscope (see --list). Captures from both ends,
    the ground truth and the recorded series go to DIR.
    """
    from reference_sim.library import scenario_path

    if lists:
        refuse_given({*_OF_A_SCENARIO, *_OF_A_CAMPAIGN, "scenario", "output", "campaign"}, "does nothing with --list")
        _list(as_json)
    elif campaign is not None:
        if scenario is not None:
            raise UsageError("a campaign names its scenarios itself: give either SCENARIO or --campaign")
        refuse_given(_OF_A_SCENARIO, "is for one SCENARIO, got --campaign")
        _run_campaign(campaign, output, processes, scheduler, as_json)
    elif scenario is None:
        raise UsageError("name a scenario, or a campaign with --campaign; --list lists them")
    elif shows:
        refuse_given({*_OF_A_SCENARIO, *_OF_A_CAMPAIGN, "output", "as_json"} - {"shows"}, "does nothing with --show")
        click.echo(scenario_path(scenario).read_text(encoding="utf-8"), nl=False)
    else:
        refuse_given(_OF_A_CAMPAIGN, "is for --campaign, got SCENARIO")
        chosen = _scenario(scenario, seed, changes, html_to is not None)
        if output is None and not (no_captures or html_to or as_json):
            raise UsageError("give -o DIR for the captures, or --no-captures")
        runs = _simulate(chosen, output, repeat, not no_captures)
        if html_to is not None:
            from pepscope.plugins import writer

            writer("simulation-html")(runs[0], html_to)
            announce(html_to)
        _print(runs, as_json)


def _scenario(name: str, seed: int | None, changes: tuple[str, ...], draws: bool) -> Scenario:
    from pepscope.settings import parse_change
    from reference_sim.library import load_scenario

    scenario = load_scenario(name)
    values: dict[str, Any] = dict(parse_change(change, json.loads) for change in changes)
    if seed is not None:
        values["seed"] = seed
    if draws:
        values.setdefault("record.one_way_delays", True)
        if scenario.record.get("series_interval_s") is None:
            values.setdefault("record.series_interval_s", max(1e-3, scenario.duration_s / 2000))
    return scenario.with_values(values) if values else scenario


def _simulate(scenario: Scenario, output: str | None, repeat: int, captures: bool) -> list[Run]:
    from pepscope.command_line.progress import Progress
    from reference_sim.simulation import simulate

    runs = []
    with Progress("simulating") as progress:
        for number in range(repeat):
            directory = None if output is None else Path(output)
            if directory is not None and repeat > 1:
                directory /= f"{number:04d}"

            def report(done: int, total: int, number: int = number) -> None:
                progress(number * total + done, repeat * total)

            seed = scenario.seed + number
            runs.append(simulate(scenario, directory, seed=seed, captures=captures, progress=report))
    return runs


def _print(runs: list[Run], as_json: bool) -> None:
    summaries = [run.summary() for run in runs]
    if as_json:
        sys.stdout.write(json.dumps({"schema": SCHEMA, "runs": summaries}) + "\n")
        return
    for summary in summaries:
        click.echo(_sentence(summary))
        for path in summary["captures"].values():
            click.echo(f"  {path}")


def _sentence(summary: dict[str, Any]) -> str:
    return (
        f"{summary['scenario']}, seed {summary['seed']} ({summary['class'] or 'no flows'}): "
        f"{summary['simulated_s']:.3f} s, {summary['delivered_bytes']:,} bytes at "
        f"{summary['goodput_bit_s'] / 1e6:.3f} Mbit/s, {summary['data_packets']:,} data packets, "
        f"{summary['retransmitted_packets']:,} sent again, {summary['timeouts']:,} timeouts; "
        f"{summary['events']:,} events in {summary['wall_s']:.3f} s"
    )


def _run_campaign(name: str, output: str | None, processes: int | None, scheduler: str | None, as_json: bool) -> None:
    from pepscope.command_line.progress import Progress
    from reference_sim.campaign import RESULTS_FILE, SUMMARY_FILE, run_campaign
    from reference_sim.library import campaign_path
    from reference_sim.sweep import Campaign

    if output is None:
        raise UsageError("give -o DIR for the results of the campaign")
    campaign = Campaign.from_toml(campaign_path(name))
    with Progress(f"simulating {campaign.name}") as progress:
        result = run_campaign(campaign, output, processes=processes, scheduler=scheduler, progress=progress)
    if as_json:
        rows = json.loads(result.summary.to_json(orient="records"))
        sys.stdout.write(json.dumps({"schema": SCHEMA, "campaign": campaign.name, "points": rows}) + "\n")
        return
    columns = ["scenario", "variant", *campaign.fields, "runs", "goodput_bit_s", "goodput_bit_s.half_width", "timeouts"]
    click.echo(result.summary[columns].to_string(index=False, float_format=lambda value: f"{value:,.4g}"))
    click.echo(
        f"{campaign.runs:,} runs; every measure is in {Path(output) / RESULTS_FILE} and {Path(output) / SUMMARY_FILE}"
    )


def _list(as_json: bool) -> None:
    from reference_sim.library import campaign_names, campaign_path, load_scenario, scenario_names
    from reference_sim.sweep import Campaign

    scenarios = {name: load_scenario(name).description for name in scenario_names()}
    campaigns = {name: Campaign.from_toml(campaign_path(name)).description for name in campaign_names()}
    if as_json:
        sys.stdout.write(json.dumps({"schema": SCHEMA, "scenarios": scenarios, "campaigns": campaigns}) + "\n")
        return
    for title, entries in (("Scenarios", scenarios), ("Campaigns", campaigns)):
        if entries:
            click.echo(f"{title}:")
            width = max(map(len, entries))
            for name, description in entries.items():
                click.echo(f"  {name.ljust(width)}  {' '.join(description.split())}")
