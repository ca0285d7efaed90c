"""Detections as JSON and JSON Lines, written piece by piece to a stream or to a file that appears when it is whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pepscope.results.encoding.detections import detection_document, json_chunks, line_chunks
from pepscope.results.encoding.templates import Octets
from pepscope.whole_file import output_file

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult


def write_json(result: DetectionResult, destination: str | Path | TextIO, *, jobs: int = 1) -> None:
    """Write the JSON contract `detect-2`, whose text up to so many processes make. Raises OSError."""
    _write(chain(json_chunks(result, jobs=jobs), (b"\n",)), destination)


def write_json_lines(result: DetectionResult, destination: str | Path | TextIO, *, jobs: int = 1) -> None:
    """Write the JSON contract `detect-lines-2`: a line with the captures, then one a pair, one a group.

    Up to so many processes make the text. Raises OSError.
    """
    _write(line_chunks(result, jobs=jobs), destination)


def json_text(result: DetectionResult, indent: int | None) -> str:
    """The JSON contract `detect-2` as text, indented by so many spaces."""
    if indent is None or indent < 1:
        return json.dumps(detection_document(result), indent=indent, ensure_ascii=False, allow_nan=False)
    return b"".join(json_chunks(result, indent=indent)).decode("utf-8", "surrogatepass")


def json_lines_text(result: DetectionResult) -> str:
    """The JSON contract `detect-lines-2` as text."""
    return b"".join(line_chunks(result)).decode("utf-8", "surrogatepass")


def _write(chunks: Iterable[Octets], destination: str | Path | TextIO) -> None:
    if isinstance(destination, str | Path):
        with output_file(destination) as stream:
            stream.writelines(chunks)
        return
    for chunk in chunks:
        destination.write(str(chunk, "utf-8", "surrogatepass"))
