"""`python -m prober.check`, and what the single-file client runs: a check with the standard library alone."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from pepscope.errors import PepscopeError
from prober.check.given import Given, read_echo, read_slow_reader
from prober.check.report import document, json_text, plan_lines, text_lines
from prober.check.session import DEFAULT_TIME_S, chosen_targets, places_of, run
from prober.check.targets import DEFAULT_PORTS, read_ports


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 2 with a sentence where nothing could be checked."""
    parser = argparse.ArgumentParser(prog="pepscope-client check", description="Does this network split my TCP?")
    parser.add_argument("command", nargs="?", choices=["check"], help="the only one there is, and may be left out")
    parser.add_argument("--targets", metavar="FILE", help="hosts to contact, a line each: HOST PORT [tls|plain]")
    parser.add_argument("--ports", default=",".join(map(str, DEFAULT_PORTS)), help="ports of the public hosts")
    parser.add_argument("--time", type=float, default=DEFAULT_TIME_S, metavar="S", help="begin nothing new after this")
    parser.add_argument("--echo", metavar="URL", help="a service that answers a request's head as it received it")
    parser.add_argument("--slow-reader", metavar="HOST:PORT:RATE:BUFFER", help="a host that reads slowly, in bytes")
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")
    parser.add_argument("--dry-run", action="store_true", help="say what would be contacted, and end")
    given = parser.parse_args(arguments)
    try:
        given_hosts = Given(
            None if given.echo is None else read_echo(given.echo),
            None if given.slow_reader is None else read_slow_reader(given.slow_reader),
        )
        places, unresolved = places_of(chosen_targets(given.targets, read_ports(given.ports)))
        for line in plan_lines(places, given.time, given_hosts, unresolved):
            sys.stderr.write(line + "\n")
        if given.dry_run:
            return 0
        verdicts, observations = run(places, unresolved, given.time, given_hosts)
    except PepscopeError as error:
        sys.stderr.write(f"pepscope-client: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("pepscope-client: interrupted\n")
        return 130
    width = shutil.get_terminal_size().columns
    lines = [json_text(document(verdicts, observations))] if given.json else text_lines(verdicts, observations, width)
    text = "\n".join(lines)
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
