"""Command line options that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pepscope.errors import UsageError
from pepscope.sizes import parse_size

__all__ = ["Duration", "filter_option", "memory_option", "parse_size"]

MINIMUM_MEMORY_BYTES = 1 << 20

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?")
_DURATION_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_LONGEST_D = 10_000  # the system's timers do not reach 300 years


if TYPE_CHECKING:
    OptionType = click.ParamType
else:

    class OptionType(click.ParamType):
        """What the words of an option mean, `OptionType[int]` for numbers; click 8.2 and 8.3 take no type of values."""

        def __class_getitem__(cls, values):
            return cls


class Duration(OptionType[float]):
    """A time such as `10s`, `500ms`, `1h` or `2`; seconds where no unit is given."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a duration such as 10s or 500ms.", param, ctx)
        duration_s = float(match[1]) * _DURATION_UNITS[match[2] or "s"]
        if duration_s > _LONGEST_D * _DURATION_UNITS["d"]:
            self.fail(f"a duration must be at most {_LONGEST_D}d, got {value!r}", param, ctx)
        return duration_s


class SizeType(OptionType[int]):
    """A size in bytes, written with a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes."""
        if isinstance(value, int):
            return value
        try:
            size = parse_size(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)
        if size < MINIMUM_MEMORY_BYTES:
            self.fail(f"{value} is too little, at least 1MiB is needed", param, ctx)
        return size


class Number(click.FloatRange):
    """A finite number in a range: comparisons with `nan` are all false, and nothing takes for ever."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def refuse_given(names: Collection[str], reason: str) -> None:
    """Raise UsageError if the user gave one of some parameters of the running command, which would do nothing here."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{max(option.opts, key=len)} {reason}")


filter_option = click.option(
    "--filter",
    "filter_expression",
    metavar="EXPRESSION",
    help="Read only packets that match, in tcpdump's syntax (pcap-filter).",
)

memory_option = click.option(
    "--memory",
    "memory_bytes",
    type=SizeType(),
    metavar="SIZE",
    help="Largest memory for the packets of captures; larger ones are kept in temporary files and analysed in parts.  "
    "[default: 1GiB each]",
)

#: As `detector.options.DECISION_PROBABILITY`: a test compares them, because options load no detector.
LEAST_PROBABILITY = 0.95

least_probability_option = click.option(
    "--least-probability",
    type=Number(0.5, 1),
    default=LEAST_PROBABILITY,
    show_default=True,
    metavar="P",
    help="Give no verdict below this probability of end to end or split.",
)
