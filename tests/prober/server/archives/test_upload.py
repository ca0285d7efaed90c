"""One upload: whatever pieces come in whatever order, what is stored is the archive or nothing."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.server.archives.upload import Upload
from prober.server.refusal import RefusedError

ARCHIVE = b"PK\x03\x04" + bytes(range(256)) * 4
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()
SIZE = len(ARCHIVE)


@given(pieces=st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, SIZE), st.booleans()), max_size=40))
def test_whatever_was_cut_an_upload_ends_whole(tmp_path_factory: pytest.TempPathFactory, pieces) -> None:
    """Pieces from anywhere to anywhere, and a server that starts again in between, which finds the file alone."""
    path = tmp_path_factory.mktemp("upload") / "part"
    upload = Upload(path, DIGEST, SIZE)
    for first, last, is_killed in pieces:
        before = upload.stored_bytes
        leaves_a_gap = pytest.raises(RefusedError, match="goes on at") if first > before else contextlib.nullcontext()
        with leaves_a_gap:
            upload.append(first, ARCHIVE[first:last])
        assert upload.stored_bytes == (max(before, last) if first <= before and last > first else before)
        assert path.read_bytes() == ARCHIVE[: upload.stored_bytes]
        if is_killed:
            upload = Upload(path, DIGEST, SIZE)
    assert upload.finish() == (upload.stored_bytes == SIZE)
    if upload.stored_bytes < SIZE:
        upload.append(upload.stored_bytes, ARCHIVE[upload.stored_bytes :])
        assert upload.finish()
    assert path.read_bytes() == ARCHIVE
    assert not upload.finish(), "once"


@pytest.mark.parametrize(
    ("sent", "digest", "sentence"),
    [
        (ARCHIVE[:-1] + b"x", DIGEST, "the bytes that arrived must have the digest that was announced; .* again"),
        (b"x" + ARCHIVE[1:], hashlib.sha256(b"x" + ARCHIVE[1:]).hexdigest(), "an upload must be an archive of a run"),
    ],
)
def test_what_is_not_what_was_announced_is_removed(tmp_path: Path, sent: bytes, digest: str, sentence: str) -> None:
    upload = Upload(tmp_path / "part", digest, SIZE)
    upload.append(0, sent)
    with pytest.raises(RefusedError, match=f"^{sentence}$"):
        upload.finish()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RefusedError, match="over"):
        upload.append(0, sent)


def test_bytes_beyond_the_announced_ones_are_refused(tmp_path: Path) -> None:
    upload = Upload(tmp_path / "part", DIGEST, SIZE)
    upload.append(0, ARCHIVE[:-1])
    with pytest.raises(RefusedError, match=f"the archive must have {SIZE} bytes, as announced"):
        upload.append(0, ARCHIVE + b"more")
    assert upload.stored_bytes == SIZE - 1
    upload.append(SIZE - 1, ARCHIVE[-1:])
    assert upload.finish()


def test_many_connections_bring_one_archive(tmp_path: Path) -> None:
    """All at once, in pieces of different sizes: one of them finds it complete, and no byte is in a wrong place."""
    upload = Upload(tmp_path / "part", DIGEST, SIZE)
    finished: list[int] = []
    begin = threading.Barrier(8)

    def bring(size: int) -> None:
        begin.wait(60)
        for first in range(0, SIZE, size):
            with contextlib.suppress(RefusedError):  # it is over, by another one
                upload.append(first, ARCHIVE[first : first + size])
        if upload.finish():
            finished.append(size)

    threads = [threading.Thread(target=bring, args=(size,)) for size in (1, 2, 3, 7, 64, 100, 500, 1028)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(finished) == 1
    assert (tmp_path / "part").read_bytes() == ARCHIVE
