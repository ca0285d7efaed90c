"""The `pepscope` command: a group whose commands are entry points, loaded only when they are run."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

import pepscope
from pepscope.command_line.failures import INTERRUPTED, complain, exit_status, written_out
from pepscope.errors import UsageError
from pepscope.plugins import find, names
from pepscope.processes.garbage import freeze_imports

COMMANDS = "pepscope.commands"

#: One-line helps of the commands in this distribution, so that `--help` imports none of them.
SUMMARIES = {
    "annotate": "Copy captures with a comment on each packet that shows a finding.",
    "audit": "Run a plan, and report which applications are split, how, and in which direction.",
    "audit-captures": "Judge every connection of many captures, and write tables.",
    "check": "Test port by port whether this network splits TCP, from this host alone.",
    "completion": "Write a shell's completion script.",
    "detect": "Judge whether the connections in one or two captures are split.",
    "doctor": "Check what is installed and permitted, and which commands can run.",
    "emulate": "Run a command behind a scenario's path, between real kernels.",
    "explain": "Explain the evidence of a verdict in prose.",
    "host-times": "Measure a host's processing times, for scenarios.",
    "inspect": "List the TCP connections of a capture.",
    "model": "Compute throughput, a split's gain and a proxy's parameters in closed form.",
    "probe": "Make measurements that show splits: a server, a mobile, a plan.",
    "proxy": "Run a real proxy of a known kind, and record the ground truth.",
    "query": "Query the tables of audit-captures in SQL.",
    "reproduce": "Run the experiments of the seed papers again, and judge each published statement.",
    "simulate": "Simulate a path with known ground truth, and capture at both ends.",
    "site": "Write a site of pages from the tables of audit-captures.",
    "trace": "Convert a trace of a carrier's rate, or make one from a capture.",
    "validate": "Score verdicts on captures with known ground truth.",
    "watch": "Continuously judge an interface, or a directory that receives captures.",
}


class EntryPointGroup(click.Group):
    """A click group that finds its commands among the entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names of all installed commands."""
        return list(names(COMMANDS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        entry = find(COMMANDS, cmd_name)
        if entry is None:
            return None
        command = entry.load()
        freeze_imports()
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names. Raises UsageError, with what may have been meant."""
        word = args[0]
        if find(COMMANDS, word) is None and not word.startswith("-") and not ctx.resilient_parsing:
            import shlex  # as all else here, for mistakes alone
            from difflib import get_close_matches
            from pathlib import Path

            if "." in word or "/" in word or Path(word).is_file():  # no command's name has a dot or a slash
                raise UsageError(f"no such command '{word}': `pepscope detect {shlex.quote(word)}` judges a capture")

            alike = get_close_matches(word, names(COMMANDS), n=1)
            ctx.fail(f"No such command '{word}'" + "".join(f": perhaps '{name}'" for name in alike))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries; only commands from elsewhere are loaded for it."""
        rows = []
        for name in self.list_commands(ctx):
            summary = SUMMARIES.get(name)
            if summary is None:
                command = self.get_command(ctx, name)
                summary = command.get_short_help_str(limit=70) if command is not None else ""
            rows.append((name, summary))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe is no error of ours."""
        run = super().invoke
        return written_out(lambda: run(ctx))


@click.group(
    cls=EntryPointGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="See `pepscope COMMAND --help`.",
)
@click.version_option(pepscope.__version__, prog_name="pepscope")
def pepscope_command() -> None:
    """Does a middlebox in the network split my TCP connections, and how?"""


def main() -> None:
    """Run the command line; every failure ends in one sentence on standard error and an exit status."""
    sys.exit(_run())


def _run() -> int:
    return exit_status(_parsed_and_run)


def _parsed_and_run() -> int:
    """Run what the words ask for, as click reads them."""
    try:
        status = pepscope_command.main(prog_name="pepscope", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        hint = f"; see `{error.ctx.command_path} --help`" if error.ctx is not None else ""
        return complain(_sentence(error.format_message()) + hint, error.exit_code)
    except click.ClickException as error:
        return complain(error.format_message(), error.exit_code)
    except click.Abort:
        return complain("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _sentence(text: str) -> str:
    """click's messages as ours: lower case at the start, no full stop, no brackets about an argument's name."""
    text = re.sub(r"'\[([A-Z]+)\]'", r"\1", " ".join(text.split()).removesuffix("."))
    return text[:1].lower() + text[1:]
