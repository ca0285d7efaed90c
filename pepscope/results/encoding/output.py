"""Detections as JSON and JSON Lines, written piece by piece to a stream or to a file that appears when it is whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pepscope.results.encoding.detections import detection_document, json_chunks, line_chunks
from pepscope.results.encoding.templates import Octets
from pepscope.whole_file import output_file

if TYPE_CHECKING:
    from pepscope.results.verdicts import DetectionResult


#: What stands for a byte of a path that is no Unicode, and how `surrogatepass` encodes it.
_STANDS_FOR_A_BYTE = re.compile("[\ud800-\udfff]")
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def write_json(result: DetectionResult, destination: str | Path | TextIO, *, jobs: int = 1) -> None:
    """Write the JSON contract `detect-2`, whose text up to so many processes make. Raises OSError."""
    _write(_valid(result, chain(json_chunks(result, jobs=jobs), (b"\n",))), destination)


def write_json_lines(result: DetectionResult, destination: str | Path | TextIO, *, jobs: int = 1) -> None:
    """Write the JSON contract `detect-lines-2`: a line with the captures, then one a pair, one a group.

    Up to so many processes make the text. Raises OSError.
    """
    _write(_valid(result, line_chunks(result, jobs=jobs)), destination)


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


def _valid(result: DetectionResult, chunks: Iterable[Octets]) -> Iterable[Octets]:
    """JSON as valid UTF-8: surrogates, which paths of captures and in options alone may hold, as the escapes of RFC
    8259, section 8.2."""
    options = () if result.tool is None else result.tool.options.values()
    given = [*(capture.path for capture in result.captures), *(each for each in options if isinstance(each, str))]
    if not any(map(_STANDS_FOR_A_BYTE.search, given)):
        return chunks
    return (
        _SURROGATE.sub(lambda found: b"\\u%04x" % ord(found[0].decode("utf-8", "surrogatepass")), each)
        for each in chunks
    )
