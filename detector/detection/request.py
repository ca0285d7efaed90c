"""What one call of `detect` gives beside captures, checked: how to judge, what to show, and how the work is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from detector.options import DetectOptions
from detector.presentation.requested import RequestedDetails
from pepscope.captures.files.digest import FileDigest

if TYPE_CHECKING:
    from pepscope.captures.provenance import Tool


class DetectionRequest(Struct, frozen=True):
    """How captures are judged, and what results carry: details beside verdicts, the tool that judged, with its options,
    and the digest of each file."""

    options: DetectOptions
    details: RequestedDetails
    tool: Tool
    digests: Sequence[FileDigest]


class Work(Struct, frozen=True):
    """How captures are judged without an effect on results: by how many processes, in how much memory together (None:
    unlimited), and what is called with the connections judged and in all."""

    processes: int
    memory_bytes: int | None
    progress: Callable[[int, int], object] | None
