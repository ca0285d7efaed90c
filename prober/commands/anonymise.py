"""The command `probe anonymise`: an archive that can be shared."""

from __future__ import annotations

from pathlib import Path

import click

from pepscope.errors import UsageError


@click.command("anonymise", short_help="Hide the hosts and the payload of a run, so that it can be shared.")
@click.argument("archive", type=click.Path(dir_okay=False, exists=True))
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), metavar="FILE", help="Write the new archive here."
)
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, exists=True),
    metavar="FILE",
    help="A secret of at least 32 bytes: archives of equal keys can be compared. Without it the key is drawn and lost.",
)
def anonymise(archive: str, output: str, key_file: str | None) -> None:
    """Rewrite ARCHIVE so that it can be shared and still gives the same verdicts, which is checked.

    Addresses keep their common prefixes and nothing else; hardware addresses, tunnel identifiers, payload, names of
    hosts and sessions become keyed hashes, alike in both captures. Notes are dropped. Times, sizes, ports, sequence
    numbers and TCP timestamps stay: verdicts rest on them.
    """
    _need_cryptography()
    from prober.anonymise.keys import KEY_BYTES

    if Path(output).exists() and Path(output).samefile(archive):
        raise UsageError("the new archive cannot take the place of the old one: give another --output")
    secret = None if key_file is None else Path(key_file).read_bytes()
    if secret is not None and len(secret) < KEY_BYTES:
        raise UsageError(f"{key_file} must hold a key of at least {KEY_BYTES} bytes, got {len(secret)}")
    write_shared(archive, output, secret)


def write_shared(archive: str, output: str, secret: bytes | None = None) -> None:
    """Write the anonymised archive and say what came of it; without `secret` the key is drawn and lost.

    Raises UsageError where a package is missing, ArchiveError.
    """
    _need_cryptography()
    from pepscope.command_line.progress import Progress
    from prober.anonymise.sharing import anonymise_archive

    with Progress("anonymising") as progress:
        shared = anonymise_archive(archive, output, secret=secret, progress=progress)
    counts = shared.counts
    counted = f"{shared.cells} cell{'' if shared.cells == 1 else 's'}"
    click.echo(f"{shared.path}: the same verdicts in {counted}, {counts.kept} packets", err=True)
    if counts.left_out:
        click.echo(f"left out: {counts.left_out} packets that are no TCP or UDP over IP", err=True)


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise UsageError(
            "anonymising needs the package cryptography, which is not installed: run 'pip install pepscope[probe]'"
        ) from None
