"""Where slices come from, as the watch sees it: a network interface, or a directory that grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from pepscope.captures.live.bounded import MOST_BYTES, SNAP_BYTES
from pepscope.captures.live.device import PacketCounts
from pepscope.captures.live.slices import SlicedCapture
from pepscope.errors import UsageError

#: A file of the spool has at most this share of its size.
_SLICES_IN_SPOOL = 8


@dataclass(frozen=True, slots=True)
class Slice:
    """A capture file that is whole. Slices of one `series` follow each other.

    `ended_ns` is when it ended, None where the file says it. What began before `after_ns` was judged before.
    """

    path: Path
    series: str
    ended_ns: int | None = None
    after_ns: int | None = None


class Source(Protocol):
    """Gives slices. `failure` says why it ended by itself, if it did."""

    @property
    def name(self) -> str:
        """An interface or a directory."""

    @property
    def counts(self) -> PacketCounts | None:
        """Packets as libpcap counts them; None of files."""

    @property
    def waiting(self) -> int:
        """Slices that are whole and not taken yet."""

    @property
    def lost_slices(self) -> int:
        """Slices that had to go before they were taken."""

    @property
    def failure(self) -> Exception | None:
        """Why nothing comes any more."""

    @property
    def may_wait(self) -> bool:
        """Whether a slice that is not judged now can be judged by the next run."""

    def take(self, timeout_s: float) -> Slice | None:
        """The next slice; None where none came in time."""

    def judged(self, of: Slice, last_ns: int | None) -> None:
        """A slice that was taken has been judged, up to a packet of this time; or could not be."""

    def finish(self) -> None:
        """No slice begins any more."""

    def state(self) -> dict[str, object]:
        """What the next run must know."""


@dataclass(frozen=True, slots=True)
class Spool:
    """Where packets of an interface wait. `keep` judged files stay, the latest ones."""

    directory: str | None = None
    most_bytes: int = MOST_BYTES
    slice_s: float = 60.0
    snap_bytes: int = SNAP_BYTES
    keep: int = 0


class InterfaceSource:
    """A network interface."""

    def __init__(self, interface: str, filter_expression: str | None, spool: Spool) -> None:
        """Begin to capture. Raises CaptureError, FilterError, and UsageError where the spool cannot be used."""
        self.name = interface
        self.may_wait = False
        self._spool = spool
        self._kept: list[Path] = []
        self._private: TemporaryDirectory[str] | None = None
        if spool.directory is None:
            self._private = TemporaryDirectory(prefix="pepscope-spool-")
            directory = Path(self._private.name)
        else:
            directory = Path(spool.directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for left in directory.glob(f"pepscope-{interface}-*.pcap"):
                left.unlink()  # by a run that was killed
        except OSError as error:
            raise UsageError(f"the spool {directory} cannot be used: {error.strerror}") from None
        self._capture = SlicedCapture(
            interface, directory, spool.snap_bytes, filter_expression or "", slice_s=spool.slice_s,
            slice_bytes=spool.most_bytes // _SLICES_IN_SPOOL, waiting_bytes=spool.most_bytes,
        )  # fmt: skip

    @property
    def counts(self) -> PacketCounts:
        """As libpcap counts them."""
        return self._capture.counts

    @property
    def waiting(self) -> int:
        """Files that are whole and not taken yet."""
        return self._capture.waiting

    @property
    def lost_slices(self) -> int:
        """Files that had to go because the spool was full."""
        return self._capture.lost_slices

    @property
    def failure(self) -> Exception | None:
        """Why the capture ended by itself."""
        return self._capture.failure

    def take(self, timeout_s: float) -> Slice | None:
        """The next file."""
        taken = self._capture.take(timeout_s)
        return None if taken is None else Slice(taken.path, self.name, taken.ended_ns)

    def judged(self, of: Slice, last_ns: int | None) -> None:  # noqa: ARG002  # as sources of files need it
        """Remove the file, or one that was kept for longer."""
        self._kept.append(of.path)
        while len(self._kept) > self._spool.keep:
            self._kept.pop(0).unlink(missing_ok=True)

    def finish(self) -> None:
        """End the capture."""
        self._capture.finish()

    def state(self) -> dict[str, object]:
        """Nothing."""
        return {}

    def close(self) -> None:
        """Remove a private spool."""
        if self._private is not None:
            self._private.cleanup()
