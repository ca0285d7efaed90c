"""Objects: the same bytes at both ends for ever, of the very size that was asked for, and what they claim to be."""

from __future__ import annotations

import gzip
import hashlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pepscope.errors import UsageError
from prober.protocol.objects import PIECE_BYTES, ObjectKind, ObjectName, object_bytes
from prober.protocol.pictures import LEAST_BYTES

# Made once and written down: an object that changes with a version invalidates every earlier archive.
KNOWN = {
    ("bin", 100_000, 7): "197649c424edd3c44887d99f0f0e8a6fdf06d4ba2b1429b9c8544e524d8bf647",
    ("txt", 100_000, 7): "3bc60b9741435c15f4d9918474ed02c0ea7b5a332d1683929985875d965aea99",
    ("jpg", 100_000, 7): "c20b9974aac43587ac0b57fd2e4c173b73c0ec2c4a724dd3c6c5672b1dec1ffd",
    ("png", 100_000, 7): "6b40e7dfb407a73e335d2c9a06a6d7cfd2563df7cef6abd33608a0964a1fe644",
}


@pytest.mark.parametrize(("kind", "size", "seed"), KNOWN)
def test_bytes_are_those_of_earlier_versions(kind: str, size: int, seed: int) -> None:
    assert ObjectName(ObjectKind(kind), size, seed).sha256() == KNOWN[kind, size, seed]


@given(
    st.sampled_from([ObjectKind.BINARY, ObjectKind.TEXT]),
    st.integers(0, 3 * PIECE_BYTES + 2),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=40, deadline=None)
def test_size_and_digest_are_those_of_the_bytes(kind: ObjectKind, size: int, seed: int) -> None:
    data = object_bytes(kind, size, seed)
    assert len(data) == size
    assert hashlib.sha256(data).hexdigest() == ObjectName(kind, size, seed).sha256()
    assert b"".join(ObjectName(kind, size, seed).pieces()) == data


@given(st.sampled_from([ObjectKind.JPEG, ObjectKind.PNG]), st.integers(LEAST_BYTES, 300_000), st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_pictures_have_the_size_and_can_be_read(kind: ObjectKind, size: int, seed: int) -> None:
    data = object_bytes(kind, size, seed)
    assert len(data) == size
    with Image.open(io.BytesIO(data)) as picture:
        picture.load()
        assert picture.format == {ObjectKind.JPEG: "JPEG", ObjectKind.PNG: "PNG"}[kind]
        assert picture.mode == "RGB"


@pytest.mark.parametrize(("kind", "most"), [(ObjectKind.JPEG, 0.4), (ObjectKind.PNG, 0.8)])
def test_pictures_shrink_in_the_hands_of_a_proxy(kind: ObjectKind, most: float) -> None:
    data = object_bytes(kind, 200_000, 1)
    smaller = io.BytesIO()
    with Image.open(io.BytesIO(data)) as picture:
        picture.save(smaller, picture.format, quality=40, optimize=True)
    assert len(smaller.getvalue()) < most * len(data)


def test_text_can_be_compressed_and_binary_cannot() -> None:
    assert len(gzip.compress(object_bytes("txt", 200_000, 1))) < 100_000
    assert len(gzip.compress(object_bytes("bin", 200_000, 1))) > 200_000


def test_other_seeds_make_other_objects() -> None:
    for kind in ObjectKind:
        assert object_bytes(kind, 5000, 1) != object_bytes(kind, 5000, 2)


@pytest.mark.parametrize("text", ["", "1-2", "1-2.exe", "-1-2.bin", "1-2.bin/..", "../1-2.bin", "10-1.jpg", "1-2.BIN"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        ObjectName.parse(text)


@given(st.text(max_size=60))
def test_any_text_is_an_object_or_refused(text: str) -> None:
    try:
        name = ObjectName.parse(text)
    except UsageError:
        return
    assert ObjectName.parse(str(name)) == name


def test_arabic_digits_are_no_digits_here() -> None:
    with pytest.raises(UsageError):
        ObjectName.parse("١-٢.bin")
