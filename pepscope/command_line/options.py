"""Command line options that several commands share."""

from __future__ import annotations

from typing import Any

import click

from pepscope.errors import UsageError
from pepscope.sizes import parse_size

__all__ = ["filter_option", "memory_option", "output_option", "parse_size"]

MINIMUM_MEMORY_BYTES = 1 << 20


class SizeType(click.ParamType[int]):
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


filter_option = click.option(
    "--filter",
    "filter_expression",
    metavar="EXPRESSION",
    help="Read only packets that match, in the language of tcpdump (pcap-filter).",
)

memory_option = click.option(
    "--memory",
    "memory_bytes",
    type=SizeType(),
    metavar="SIZE",
    help="Captures whose packets take more are analysed by parts, through temporary files.  [default: 1GiB each]",
)

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    default="-",
    help="Write to this file instead of standard output.",
)
