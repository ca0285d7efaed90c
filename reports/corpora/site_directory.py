"""The directory of a site: nothing in it is deleted that a site did not write, and every file appears whole."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType

from pepscope.errors import PepscopeError, UsageError
from pepscope.whole_file import write_whole
from reports.errors import cannot_write

#: What says that a directory is a site's; a line for each of its files follows.
MARKER = "pepscope-site.jsonl"
_HEAD = {"pepscope-site": 1}


class SiteDirectory:
    """A directory that is written as a context: files of an earlier site that were not written again go at its end.

    Raises UsageError for a directory that holds something else; an OSError inside the context becomes a ReportError.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._earlier: set[str] = set()
        self._written: set[str] = set()

    def __enter__(self) -> SiteDirectory:
        try:
            self._claim()
        except OSError as error:
            raise cannot_write(self.path, error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and not isinstance(error, PepscopeError):
            raise cannot_write(self.path, error) from error
        if error is None:
            self._finish()

    def write(self, name: str, content: str | bytes) -> None:
        """Write one file by its path in the site."""
        self._note(name)
        target = self.path / name
        target.parent.mkdir(exist_ok=True)
        write_whole(target, content)

    def holds(self, name: str) -> bool:
        """Whether a file is there that this site has written, or that no site did: a page made on demand."""
        return name in self._written or (name not in self._earlier and (self.path / name).is_file())

    def _claim(self) -> None:
        marker = self.path / MARKER
        if marker.is_file():
            head, *names = marker.read_text(encoding="utf-8").splitlines() or [""]
            if head != json.dumps(_HEAD):
                raise UsageError(f"{self.path} is the site of another version: give another directory")
            self._earlier = {name for line in names if (name := _name(line)) is not None}
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise UsageError(f"{self.path} must be empty, or a site that pepscope wrote, got one with other files")
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(marker, json.dumps(_HEAD) + "\n")

    def _note(self, name: str) -> None:
        """Remember a file before it is there, so that the site that follows a killed one knows it."""
        if name not in self._written:
            with (self.path / MARKER).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(name) + "\n")
            self._written.add(name)

    def _finish(self) -> None:
        top = self.path.resolve()
        try:
            for name in self._earlier - self._written:
                stale = top / name
                if stale.parent.resolve().is_relative_to(top) and not stale.is_dir():
                    stale.unlink(missing_ok=True)
            lines = [json.dumps(_HEAD), *(json.dumps(name) for name in sorted(self._written))]
            write_whole(self.path / MARKER, "\n".join(lines) + "\n")
        except OSError as error:
            raise cannot_write(self.path, error) from error


def _name(line: str) -> str | None:
    try:
        name = json.loads(line)
    except ValueError:  # a line that was cut short when its writer was killed
        return None
    return name if isinstance(name, str) and name else None
