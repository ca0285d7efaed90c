"""Captures at addresses that fsspec knows: listed, looked at, and copied whole or not at all."""

from __future__ import annotations

import errno
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pepscope.errors import UsageError
from pepscope.extras import missing_package
from pepscope.whole_file import whole_file

_WEB = ("http://", "https://")
_BEGINNING_BYTES = 1 << 16

#: What says that a file is another one now, as far as file systems tell it.
_CHANGES = ("size", "ETag", "LastModified", "Last-Modified", "mtime", "md5Hash", "generation")


def copied(
    address: str, is_wanted: Callable[[io.BytesIO, str], bool], place: Callable[[str], Path]
) -> Iterator[tuple[str, Path | Exception]]:
    """Names and copies of the files at an address (one, those that match a pattern, or all below a directory) whose
    beginnings are wanted; instead of the copy what went wrong. Names have no passwords and no signatures.

    Raises UsageError where the address cannot be understood, OSError where there is no room for copies.
    """
    system, path = _file_system(address)
    try:
        remotes = _listed(system, path, address)
    except Exception as error:  # each file system has exceptions of its own
        yield shown(address), error
        return
    for remote in remotes:
        name = shown(str(system.unstrip_protocol(remote)))
        try:
            if is_wanted(_beginning(system, remote), name):
                yield name, _copy(system, remote, place(name))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            yield name, error


def shown(address: str) -> str:
    """An address without what is secret in it: user and password, and the query of a signed link."""
    if not address.startswith(_WEB):
        return address
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _file_system(address: str) -> tuple[Any, str]:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(missing_package("fsspec")) from None
    protocol = address.partition("://")[0]
    package = {"s3": "s3fs", "s3a": "s3fs", "http": "aiohttp", "https": "aiohttp"}.get(protocol)
    try:
        system, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        needs = f"another package: {error}" if package is None else missing_package(package)
        raise UsageError(f"{shown(address)}: {needs}") from None
    except ValueError as error:
        raise UsageError(f"{shown(address)} is no address that can be read: {error}") from None
    return system, str(path)


def _listed(system: Any, path: str, address: str) -> list[str]:
    system.invalidate_cache()
    # A question mark begins a query there, and asking whether a file is a directory would fetch it.
    is_web = address.startswith(_WEB)
    if any(mark in path for mark in ("*[" if is_web else "*?[")):
        found = sorted(str(each) for each in system.glob(path))
    elif path.endswith("/") if is_web else system.isdir(path):
        found = sorted(str(each) for each in system.find(path))
    else:
        system.info(path)
        return [path]
    if not found:
        raise FileNotFoundError(address)
    return found


def _beginning(system: Any, remote: str) -> io.BytesIO:
    with system.open(remote, "rb", block_size=_BEGINNING_BYTES, cache_type="none") as stream:
        return io.BytesIO(stream.read(_BEGINNING_BYTES))


def _copy(system: Any, remote: str, target: Path) -> Path:
    before = _state(system, remote)
    with whole_file(target) as copy:
        if remote.startswith(_WEB):
            system.get_file(remote, copy)  # one answer, which cannot be of two versions
        else:
            with system.open(remote, "rb") as stream:
                shutil.copyfileobj(stream, copy, 1 << 20)
        length = copy.tell()
    if _state(system, remote) != before or before.get("size") not in (None, length):
        target.unlink()
        raise OSError("it changed while it was read")
    return target


def _state(system: Any, remote: str) -> dict[str, Any]:
    system.invalidate_cache()
    found = system.info(remote)
    return {name: found[name] for name in _CHANGES if name in found}
