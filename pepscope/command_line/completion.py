"""The command `completion`: what a shell sources to complete our commands, by click's own completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pepscope.errors import UsageError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write the shell's completion script to standard output.

    \b
    bash: pepscope completion bash > ~/.local/share/bash-completion/completions/pepscope
    zsh:  pepscope completion zsh > "${fpath[1]}/_pepscope"
    fish: pepscope completion fish > ~/.config/fish/completions/pepscope.fish
    """
    made = get_completion_class(shell)
    if made is None:
        raise UsageError(f"SHELL must be one that click completes, got {shell}")
    root = ctx.find_root()
    click.echo(made(root.command, {}, "pepscope", "_PEPSCOPE_COMPLETE").source())
