"""Texts that are made block by block and written in another order, by way of a temporary file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from pepscope.results.encoding.templates import Octets
from pepscope.results.evidence.columns import Int64Array
from pepscope.whole_file import named_in_errors


def reordered(blocks: Iterable[tuple[Octets, Int64Array]], order: Int64Array, together: int) -> Iterator[bytes]:
    """The texts of `blocks`, which say where each of theirs ends, in this order; so many at a time.

    Each block is made once. The texts of all take more memory than one of them, hence the file. Raises OSError, which
    names the directory of temporary files where that is full: the texts may go elsewhere.
    """
    import tempfile

    ends = [np.zeros(1, np.int64)]
    with named_in_errors(tempfile.gettempdir()), tempfile.TemporaryFile() as file:
        for text, ends_in_block in blocks:
            ends.append(file.tell() + ends_in_block)
            file.write(text)
        until = np.concatenate(ends)
        begins, lengths = until[:-1][order], np.diff(until)[order]

        def read(begin: int, length: int) -> bytes:
            file.seek(begin)
            return file.read(length)

        for first in range(0, len(begins), together):
            some = slice(first, first + together)
            yield b"".join(map(read, begins[some].tolist(), lengths[some].tolist()))
