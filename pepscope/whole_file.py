"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: What stands for standard output in place of a path.
STANDARD_OUTPUT = "-"


@contextlib.contextmanager
def whole_file(path: Path, *, mode: int = 0o666, durable: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that takes its name when the block ends, and leaves nothing behind if the block raises.

    Its permissions are those of the file whose place it takes, as far as `mode` has them, else `mode` less the umask.
    Several processes may write the same file at the same time, unless it is `durable`: then it survives a loss of
    power, and what a killed process left goes with the next try. Raises OSError.
    """
    partial = path.with_name(f".{path.name}.partial") if durable else _partial(path)
    try:
        with _failing_as(path):
            partial.unlink(missing_ok=True)
            # Nobody may read what is secret, not for a moment.
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & _permissions(path, mode))
        with os.fdopen(descriptor, "wb") as stream:
            _take_permissions(partial, path, mode)
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


@contextlib.contextmanager
def whole_path(path: Path) -> Iterator[Path]:
    """As `whole_file`, for what opens the file by its name: the empty file to write to."""
    with whole_file(path) as stream:
        yield _partial(path)
        stream.flush()


@contextlib.contextmanager
def whole_files(directory: Path) -> Iterator[Path]:
    """As `whole_file`, for files that belong together: the directory to write them into, beside nothing else.

    They take their places in `directory` when the block ends, and none does if it raises.
    """
    import tempfile

    with _failing_as(directory):
        partial = tempfile.TemporaryDirectory(prefix=f".{os.getpid()}-", dir=directory)
    with partial as place:
        yield type(directory)(place)
        for each in sorted(type(directory)(place).iterdir()):
            with _failing_as(directory / each.name):
                _take_permissions(each, directory / each.name, 0o666)
                each.replace(directory / each.name)


def write_whole(path: Path, content: bytes | str, *, mode: int = 0o666, durable: bool = False) -> None:
    """Write `content` (text as UTF-8) as a `whole_file`."""
    with whole_file(path, mode=mode, durable=durable) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def is_stream(path: str | Path) -> bool:
    """Whether what is written to an `output_file` is gone with it: standard output, a device or a pipe."""
    if str(path) == STANDARD_OUTPUT:
        return True
    from pathlib import Path  # which standard output does without

    target = Path(path)
    return target.exists() and not target.is_file()


@contextlib.contextmanager
def output_path(path: Path) -> Iterator[Path]:
    """As `output_file`, for what makes the file itself: the name to make it under."""
    if is_stream(path):
        yield path
        return
    target = path.resolve()
    with whole_files(target.parent) as directory:
        yield directory / target.name


@contextlib.contextmanager
def output_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A `whole_file` where a user wants it: links are followed, devices and pipes are written to as they are.

    `-` is standard output. Raises OSError.
    """
    if str(path) == STANDARD_OUTPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from pathlib import Path  # which standard output does without

    target = Path(path)
    # What a pipe without a name (/dev/stdout, /dev/fd/63) resolves to is no file.
    with named_in_errors(path), target.open("wb") if is_stream(path) else whole_file(target.resolve()) as stream:
        yield stream


def check_output(path: str | Path) -> None:
    """See that an `output_file` can be written, before the work whose result it is to hold. Raises OSError."""
    from pathlib import Path

    if Path(path).is_fifo():
        return  # its reader would take this for all that comes
    with _failing_as(Path(path)):
        target = Path(path).resolve()
        if target.exists():
            with target.open("ab"):
                return
        trial = target.with_name(f".{target.name}.{os.getpid()}.trial")
        with whole_file(trial) as _:
            pass
        trial.unlink(missing_ok=True)


def write_output(path: str | Path, text: str) -> None:
    """Write text as UTF-8 to an `output_file`."""
    # Names of files that are no Unicode get question marks.
    content = text.encode("utf-8", "replace")
    with output_file(path) as stream:
        stream.write(content)


@contextlib.contextmanager
def named_in_errors(path: str | Path) -> Iterator[None]:
    """Have errors of the system that name no file, as those of writing, name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _permissions(path: Path, otherwise: int) -> int:
    """Those of the file that is there."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        return otherwise


def _take_permissions(new: Path, earlier: Path, mode: int) -> None:
    """Give a file the permissions that an earlier one has, as far as `mode` has them and the file system knows them."""
    with contextlib.suppress(OSError):
        new.chmod(earlier.stat().st_mode & mode)


def _partial(path: Path) -> Path:
    """Where a file is while it is not whole."""
    return path.with_name(f".{path.name}.{os.getpid()}")


@contextlib.contextmanager
def _failing_as(path: Path) -> Iterator[None]:
    """Have errors of the system name `path`, which the user gave, and not the file that takes its name later."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def sync_directory(directory: Path) -> None:
    """Have what was renamed in a directory survive a loss of power."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError as error:
        # File systems of memory cards cannot sync a directory (fsync(2)); what was renamed is whole all the same.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)
