"""The `pepscope` command: a group whose commands are entry points, loaded only when they are run."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import click

import pepscope
from pepscope.errors import PepscopeError
from pepscope.plugins import find, names

COMMANDS = "pepscope.commands"

#: One-line helps of the commands in this distribution, so that `--help` imports none of them.
SUMMARIES = {
    "annotate": "Copy captures with a comment on each packet that shows a finding.",
    "audit": "Run a plan, and report which applications are split, how, and in which direction.",
    "audit-captures": "Judge every connection of many captures, into tables.",
    "check": "Say port by port whether this network splits TCP, from this host alone.",
    "completion": "Write a shell's completion script.",
    "detect": "Judge whether the connections in one or two captures are split.",
    "doctor": "Check what is installed and allowed, and for which commands it is enough.",
    "emulate": "Run a command behind a scenario's path, between real kernels.",
    "explain": "Explain the evidence of a verdict in prose.",
    "host-times": "Measure how long a machine takes, for scenarios.",
    "inspect": "List the TCP connections of a capture.",
    "model": "Compute throughput, a split's gain and a proxy's parameters in closed form.",
    "probe": "Make measurements that show splits: a server, a mobile, a plan.",
    "proxy": "Run a real proxy of a known kind, and write down the truth.",
    "query": "Ask the tables of audit-captures in SQL.",
    "reproduce": "Run the experiments of the seed papers again, and judge each published statement.",
    "simulate": "Simulate a path with known truth, and capture at both ends.",
    "site": "Write a site of pages from the tables of audit-captures.",
    "trace": "Convert a trace of a carrier's rate, or make one of a capture.",
    "validate": "Score verdicts on captures whose truth is known.",
    "watch": "Judge a network interface, or a directory that grows, all the time.",
}

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE_CLOSED = 141  # 128 + SIGPIPE
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h


class _PipeClosedError(Exception):
    """The reader of our standard output closed it; a separate class because click would treat it as a failure."""


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
        # What is imported stays: it need not be gone through again, neither while the command runs nor at its end.
        gc.freeze()
        gc.enable()
        return command if isinstance(command, click.Command) else None

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
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _PipeClosedError from error
        return result


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
    try:
        status = pepscope_command.main(prog_name="pepscope", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.UsageError as error:
        hint = f"; see `{error.ctx.command_path} --help`" if error.ctx is not None else ""
        return _complain(_sentence(error.format_message()) + hint, error.exit_code)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except click.Abort:
        return _complain("interrupted", INTERRUPTED)
    except PepscopeError as error:
        return _complain(str(error), error.exit_status)
    except _PipeClosedError:
        # Python flushes standard output once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        # What has no name is standard output: everything else is opened by name.
        where = f"{error.filename}: " if error.filename else "standard output cannot be written: "
        return _complain(f"{where}{error.strerror or error}", PepscopeError.exit_status)
    except ModuleNotFoundError as error:
        if os.environ.get("PEPSCOPE_DEBUG"):
            raise
        from pepscope.extras import EXTRA_OF_COMMAND, missing_package

        sentence = missing_package(error.name or str(error), EXTRA_OF_COMMAND.get(_command()))
        return _complain(sentence, PepscopeError.exit_status)
    except MemoryError:
        return _complain("out of memory; a lower --memory bounds what is held at once", PepscopeError.exit_status)
    except SystemExit:
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        if os.environ.get("PEPSCOPE_DEBUG"):
            raise
        detail = " ".join(str(error).split())
        return _complain(
            f"internal error, {type(error).__name__}: {detail}; PEPSCOPE_DEBUG=1 shows where", INTERNAL_ERROR
        )
    return status if isinstance(status, int) else 0


def _command() -> str:
    """The command that was asked for."""
    return next((word for word in sys.argv[1:] if not word.startswith("-")), "")


def _sentence(text: str) -> str:
    """click's messages as ours: lower case at the start, no full stop."""
    text = " ".join(text.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _complain(message: str, status: int) -> int:
    click.echo(f"pepscope: {message.strip().removesuffix('.')}", err=True)
    return status
