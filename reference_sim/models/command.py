"""The command `model`: closed forms by name, with units, and a refusal outside their domains."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pepscope.command_line.options import Number
from pepscope.command_line.reports import ReportingCommand, json_option
from pepscope.errors import UsageError

if TYPE_CHECKING:
    from reference_sim.models.split_throughput import Half

SCHEMA = 1
#: Options that each model of throughput heeds, beside the round trip and the bytes of a segment.
_HEEDED = {
    "padhye": ("loss", "timeout", "window", "acknowledge"),
    "padhye-short": ("loss", "timeout", "window", "acknowledge"),
    "mathis": ("loss", "acknowledge"),
    "split": (
        *("loss", "timeout", "window", "link", "acknowledge", "buffer"),
        *("downstream_loss", "downstream_round_trip", "downstream_window", "downstream_link"),
    ),
    "variable": ("rates", "buffer", "drops"),
}

#: Rates, times, windows.
_AMOUNT = Number(0)

_json = json_option("Write the numbers as JSON.")


@click.group(short_help="Compute what closed forms say of throughput, of a split's gain, of a proxy's parameters.")
def model() -> None:
    """Compute what the papers' closed forms say.

    docs/models describes the assumptions of each, and compares it with the simulator.
    """


def _leg(command: Callable[..., None]) -> Callable[..., None]:
    """The options of the half behind the split point."""
    for option in (
        click.option("--downstream-loss", type=Number(0, 1), metavar="P", help="split: loss behind the split point."),
        click.option("--downstream-round-trip", type=_AMOUNT, metavar="S", help="split: round trip behind it."),
        click.option("--downstream-window", type=_AMOUNT, metavar="N", help="split: window of the receiver behind it."),
        click.option(
            "--downstream-link",
            type=_AMOUNT,
            metavar="N",
            help="split: rate of the link there, in segments per second.",
        ),
        click.option(
            "--buffer", type=_AMOUNT, metavar="N", help="Buffer of the split point (split) or of the link (variable)."
        ),
    ):
        command = option(command)
    return command


@model.command(cls=ReportingCommand)
@click.option(
    "--model",
    "name",
    type=click.Choice(["padhye", "padhye-short", "mathis", "split", "variable"]),
    default="padhye",
    show_default=True,
    help="Which closed-form model.",
)
@click.option("--loss", type=Number(0, 1), metavar="P", help="Probability that a segment is lost.")
@click.option("--round-trip", type=_AMOUNT, required=True, metavar="S", help="Round trip in seconds, without queueing.")
@click.option("--timeout", type=_AMOUNT, default=1.0, show_default=True, metavar="S", help="First timeout, in seconds.")
@click.option("--window", type=_AMOUNT, metavar="N", help="Receive window, in segments.")
@click.option("--link", type=_AMOUNT, metavar="N", help="split: rate of the link, in segments per second.")
@click.option(
    "--acknowledge", type=_AMOUNT, default=2.0, show_default=True, metavar="N", help="Segments that one ACK covers."
)
@click.option(
    "--segment-bytes", type=_AMOUNT, default=1460.0, show_default=True, metavar="N", help="Payload of a segment."
)
@_leg
@click.option(
    "--rates", metavar="R,R,...", help="variable: rate of each cycle of the variation, in packets per second."
)
@click.option("--drops", type=click.IntRange(0), metavar="N", help="variable: number of measured drops.")
@_json
@click.pass_context
def throughput(context: click.Context, /, name: str, as_json: bool, segment_bytes: float, **given: Any) -> None:
    """Throughput of a long transfer.

    padhye, padhye-short: Padhye et al., equations 32 and 33. mathis: Mathis et al. split: Padhye for each half, joined
    by the split point's buffer. variable: Ren and Lin, equations 5 to 16, over a link of variable rate.
    """
    from reference_sim.models.domain import require_positive

    for option in given:
        is_given = context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE
        if is_given and option not in ("round_trip", *_HEEDED[name]):
            raise UsageError(f"the model {name} must not have --{option.replace('_', '-')}")
    require_positive("segment_bytes", segment_bytes)
    numbers = _throughput(name, given)
    numbers["goodput_bit_s"] = 8.0 * segment_bytes * numbers["segments_s"]
    require_positive("goodput_bit_s", numbers["goodput_bit_s"])
    sentence = f"{name}: {numbers['segments_s']:.4g} segments/s, {numbers['goodput_bit_s'] / 1e6:.4g} Mbit/s"
    if numbers.get("pipe_runs_dry"):
        sentence += "; the buffer is smaller than the pipe, which the model was not made for: it is too high"
    _print(sentence, numbers, as_json)


def _throughput(name: str, given: dict[str, Any]) -> dict[str, Any]:
    from reference_sim.models import mathis, padhye

    round_trip_s = given["round_trip"]
    if name == "variable":
        return _variable(given)
    loss = _required(given, "loss", name)
    if name == "mathis":
        rate = mathis.rate_segments_s(loss, round_trip_s, segments_an_acknowledgement=given["acknowledge"])
        return {"segments_s": rate}
    if name == "split":
        return _split(given, loss)
    compute = padhye.send_rate_segments_s if name == "padhye" else padhye.approximate_send_rate_segments_s
    rate = compute(
        loss,
        round_trip_s,
        given["timeout"],
        window_limit_segments=_unlimited(given["window"]),
        segments_an_acknowledgement=given["acknowledge"],
    )
    return {"segments_s": rate}


def _split(given: dict[str, Any], loss: float) -> dict[str, Any]:
    from reference_sim.models.split_throughput import Half, split_rate_segments_s, whole_rate_segments_s

    def half(loss: float, round_trip_s: float, window: float, link: float) -> Half:
        return Half(loss, round_trip_s, given["timeout"], window, link, given["acknowledge"])

    upstream = half(loss, given["round_trip"], _unlimited(given["window"]), _unlimited(given["link"]))
    downstream = half(
        _required(given, "downstream_loss", "split"),
        _required(given, "downstream_round_trip", "split"),
        _unlimited(given["downstream_window"]),
        _unlimited(given["downstream_link"]),
    )
    rate = split_rate_segments_s(upstream, downstream, _required(given, "buffer", "split"))
    whole = whole_rate_segments_s(upstream, downstream)
    return {
        "segments_s": rate,
        "upstream_segments_s": upstream.rate_segments_s(),
        "downstream_segments_s": downstream.rate_segments_s(),
        "not_split_segments_s": whole,
    }


def _unlimited(limit: float | None) -> float:
    return math.inf if limit is None else limit


def _variable(given: dict[str, Any]) -> dict[str, Any]:
    from reference_sim.models.variable_bandwidth import throughput as variable_throughput

    text = _required(given, "rates", "variable")
    try:
        rates = [float(rate) for rate in text.split(",")]
    except ValueError:
        raise UsageError(f"--rates must be a list of numbers such as 80,120,95, got {text}") from None
    found = variable_throughput(
        rates, given["round_trip"], _required(given, "buffer", "variable"), drops=given["drops"]
    )
    return {
        "segments_s": found.rate_packets_s,
        "timeout_share": found.timeout_share,
        "spurious_timeouts": found.spurious_timeouts,
        "mean_rate_packets_s": found.mean_rate_packets_s,
        "largest_window_packets": found.largest_window_packets,
        "pipe_runs_dry": found.pipe_runs_dry,
    }


@model.command(cls=ReportingCommand)
@click.option(
    "--rate", "rate_bit_s", type=_AMOUNT, required=True, metavar="BIT/S", help="v, the mobile's rate in bit/s."
)
@click.option(
    "--packet-bytes",
    type=_AMOUNT,
    default=1500.0,
    show_default=True,
    metavar="N",
    help="s, the size of a packet in bytes.",
)
@click.option(
    "--upstream",
    "upstream_s",
    type=_AMOUNT,
    required=True,
    metavar="S",
    help="r1, the round trip from the server to the split point, in seconds.",
)
@click.option(
    "--downstream",
    "downstream_s",
    type=_AMOUNT,
    required=True,
    metavar="S",
    help="r2, the round trip from there to the mobile, in seconds.",
)
@click.option(
    "--slow-start/--filled",
    default=True,
    help="Whether the split point starts downstream in slow start or with a filled pipe.  [default: slow start]",
)
@_json
def split_gain(
    rate_bit_s: float, packet_bytes: float, upstream_s: float, downstream_s: float, slow_start: bool, as_json: bool
) -> None:
    """How much sooner a split connection reaches the mobile's rate (Wei et al., section IV-A)."""
    from reference_sim.models.split_gain import split_gain as compute

    found = compute(rate_bit_s, packet_bytes, upstream_s, downstream_s, downstream_slow_start=slow_start)
    sentence = (
        f"end to end after {found.regular_s:.3f} s, split after {found.split_s:.3f} s: {found.gain_s:.3f} s sooner "
        f"(the paper's short form: {found.approximate_gain_s:.3f} s)"
    )
    names = ("regular_s", "split_s", "gain_s", "approximate_gain_s")
    _print(sentence, {name: getattr(found, name) for name in names}, as_json)


@model.command(cls=ReportingCommand)
@click.option(
    "--step", "step_s", type=_AMOUNT, required=True, metavar="S", help="Ts, the time between two reports, in seconds."
)
@click.option("--approach", "approach_per_s", type=_AMOUNT, required=True, metavar="1/S", help="delta, per second.")
@click.option(
    "--switching", "switching_frames_s", type=_AMOUNT, required=True, metavar="N", help="epsilon, in frames per second."
)
@click.option(
    "--reference",
    "reference_frames",
    type=_AMOUNT,
    default=100.0,
    show_default=True,
    metavar="N",
    help="q0, in frames.",
)
@click.option(
    "--buffer", "buffer_frames", type=_AMOUNT, default=200.0, show_default=True, metavar="N", help="Bmax, in frames."
)
@click.option(
    "--mean-rate",
    "mean_rate_frames_s",
    type=_AMOUNT,
    required=True,
    metavar="N",
    help="Mean rate of the link, in frames per second.",
)
@click.option(
    "--variation-period",
    "variation_period_s",
    type=_AMOUNT,
    metavar="S",
    help="Tb, the shortest period of the rate's variation, in seconds.",
)
@_json
def window_parameters(
    step_s: float,
    approach_per_s: float,
    switching_frames_s: float,
    reference_frames: float,
    buffer_frames: float,
    mean_rate_frames_s: float,
    variation_period_s: float | None,
    as_json: bool,
) -> None:
    """Which constraints of Ren and Lin's guideline a choice of parameters breaks (equation 43, section 5.2)."""
    from reference_sim.models.window_parameters import check

    found = check(
        step_s,
        approach_per_s,
        switching_frames_s,
        reference_frames=reference_frames,
        buffer_frames=buffer_frames,
        mean_rate_frames_s=mean_rate_frames_s,
        variation_period_s=variation_period_s,
    )
    broken = len(found.broken)
    verdict = "the choice keeps to the guideline"
    if broken:
        verdict = f"the choice breaks {broken} constraint{'s' if broken > 1 else ''}"
    lines = [verdict, *(f"  {constraint.sentence}" for constraint in found.constraints)]
    numbers = {
        "holds": found.holds,
        "broken": [constraint.name for constraint in found.broken],
        "deviation_frames": found.deviation_frames if math.isfinite(found.deviation_frames) else None,
        "reaching_steps": found.reaching_steps,
        "constraints": [
            {
                "name": constraint.name,
                "rule": constraint.rule,
                "value": constraint.value if math.isfinite(constraint.value) else None,
                "bound": constraint.bound,
                "unit": constraint.unit,
                "holds": constraint.holds,
            }
            for constraint in found.constraints
        ],
    }
    _print("\n".join(lines), numbers, as_json)


def _required(given: dict[str, Any], name: str, model_name: str) -> Any:
    if given[name] is None:
        raise UsageError(f"the model {model_name} needs --{name.replace('_', '-')}")
    return given[name]


def _print(text: str, numbers: dict[str, Any], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"schema": SCHEMA, **numbers}, allow_nan=False) + "\n")
    else:
        click.echo(text)
