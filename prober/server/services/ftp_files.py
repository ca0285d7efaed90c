"""The files that FTP shows: objects made on the fly, uploads counted and thrown away, and no file system behind them.

Every method of pyftpdlib's file system that would touch the real one is overridden here.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from pyftpdlib.authorizers import AuthenticationFailed, DummyAuthorizer
from pyftpdlib.filesystems import AbstractedFS, FilesystemError

from pepscope.errors import UsageError
from prober.protocol.control_messages import is_session
from prober.protocol.objects import ObjectName
from prober.server.refusal import RefusedError

if TYPE_CHECKING:
    from prober.server.context import ServiceContext
    from prober.server.sessions import Session

_MOST_NAME = 100


class SessionAuthorizer(DummyAuthorizer):  # type: ignore[misc]
    """The user is a session that lives; any password will do."""

    def __init__(self, context: ServiceContext) -> None:
        super().__init__()
        self._context = context

    def validate_authentication(self, username: str, password: str, handler: Any) -> None:  # noqa: ARG002
        """Raise AuthenticationFailed where there is no such session."""
        session = self._context.sessions.find(username) if is_session(username) else None
        if session is None:
            self._context.complaints.complain(
                "no-session", "a client asks without a session that exists", address=handler.remote_ip
            )
            raise AuthenticationFailed("there is no session of this name")
        try:
            self._context.know(handler, session.key)
        except RefusedError as error:
            raise AuthenticationFailed(str(error)) from None

    def get_home_dir(self, username: str) -> str:  # noqa: ARG002
        """The only directory that there is."""
        return "/"

    def has_user(self, username: str) -> bool:
        """Whether there is such a session."""
        return self._context.sessions.find(username) is not None

    def has_perm(self, username: str, perm: str, path: str | None = None) -> bool:  # noqa: ARG002
        """Change directory, ask for sizes, read and write files: nothing else."""
        return perm in "elrw"

    def get_perms(self, username: str) -> str:  # noqa: ARG002
        """As `has_perm`."""
        return "elrw"

    def get_msg_login(self, username: str) -> str:  # noqa: ARG002
        """The message after the login."""
        return "Objects are named SIZE-SEED.bin, .txt, .jpg or .png; uploads are counted and thrown away."

    def get_msg_quit(self, username: str) -> str:  # noqa: ARG002
        """The message at the end."""
        return "Goodbye."


class ObjectFile:
    """An object as a file that is read once, from the offset of FTP's REST."""

    def __init__(self, name: ObjectName, session: Session) -> None:
        self.name = f"/{name}"
        self.closed = False
        self.size_bytes = name.size_bytes
        self._session = session
        self._pieces: Iterator[bytes] = name.pieces()
        self._left = b""

    def read(self, count: int) -> bytes:
        """The next bytes, at most `count`. Raises OSError where the session may move no more."""
        if not self._left:
            self._left = next(self._pieces, b"")
        piece, self._left = self._left[:count], self._left[count:]
        _take(self._session, len(piece))
        return piece

    def seek(self, offset: int) -> None:
        """Begin there; only before reading."""
        while offset > 0:
            self._left = self._left or next(self._pieces, b"")
            if not self._left:
                return
            skipped = min(offset, len(self._left))
            self._left, offset = self._left[skipped:], offset - skipped

    def close(self) -> None:
        """Done."""
        self.closed = True


class UploadFile:
    """A file that takes everything and keeps nothing."""

    def __init__(self, name: str, session: Session, most_bytes: int) -> None:
        self.name = name
        self.closed = False
        self._session, self._left_bytes = session, most_bytes

    def write(self, piece: bytes) -> int:
        """Count a piece. Raises OSError where it is one too many."""
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        _take(self._session, len(piece))
        return len(piece)

    def close(self) -> None:
        """Done."""
        self.closed = True


def _take(session: Session, count: int) -> None:
    try:
        session.take(count)
    except RefusedError as error:
        raise OSError(errno.EDQUOT, str(error)) from None


class ObjectFiles(AbstractedFS):  # type: ignore[misc]
    """One directory in which every object there can be is a file."""

    def validpath(self, path: str) -> bool:  # noqa: ARG002
        """No path leads anywhere else."""
        return True

    def realpath(self, path: str) -> str:
        """There are no links."""
        return path

    def open(self, filename: str, mode: str) -> ObjectFile | UploadFile:
        """A file to read or to write. Raises FilesystemError."""
        context: ServiceContext = self.cmd_channel.server.context
        session = context.sessions.find(self.cmd_channel.username)
        if session is None:
            raise FilesystemError("the session is over")
        if "r" in mode and "+" not in mode:
            name = self._object(filename)
            if name.size_bytes > context.limits.object_bytes:
                raise FilesystemError(f"an object must have at most {context.limits.object_bytes} bytes")
            return ObjectFile(name, session)
        if mode != "wb":
            raise FilesystemError("an upload must begin at offset 0")
        return UploadFile(filename[:_MOST_NAME], session, context.limits.object_bytes)

    def _object(self, path: str) -> ObjectName:
        try:
            return ObjectName.parse(path.removeprefix("/"))
        except UsageError as error:
            raise FilesystemError(str(error)) from None

    def chdir(self, path: str) -> None:
        """There is but one directory."""
        if path != "/":
            raise FilesystemError("there is no such directory")

    def isdir(self, path: str) -> bool:
        """Whether it is the directory."""
        return path == "/"

    def isfile(self, path: str) -> bool:
        """Whether it is an object."""
        try:
            ObjectName.parse(path.removeprefix("/"))
        except UsageError:
            return False
        return True

    def islink(self, path: str) -> bool:  # noqa: ARG002
        """There are no links."""
        return False

    def lexists(self, path: str) -> bool:
        """Whether there is such a file or directory."""
        return self.isdir(path) or self.isfile(path)

    def getsize(self, path: str) -> int:
        """Of an object. Raises FilesystemError."""
        return self._object(path).size_bytes

    def getmtime(self, path: str) -> float:  # noqa: ARG002
        """Objects are made when they are read."""
        return time.time()

    def stat(self, path: str) -> os.stat_result:
        """As a read-only file. Raises FilesystemError."""
        return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, self._object(path).size_bytes, 0, 0, 0))

    lstat = stat

    def listdir(self, path: str) -> list[str]:  # noqa: ARG002
        """There are too many."""
        return []

    listdirinfo = listdir

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:  # noqa: ARG002
        raise FilesystemError("the files of the server must not be changed")

    mkdir = rmdir = remove = rename = chmod = utime = mkstemp = readlink = _refuse
