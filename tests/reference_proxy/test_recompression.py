from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from reference_proxy.http.freshness import Headers, value
from reference_proxy.http.recompression import accepts_gzip, compress_text, may_transform, recompress_image

PIXELS = 1_000_000


def picture(name: str, mode: str = "RGB", size: tuple[int, int] = (160, 120), quality: int = 95) -> bytes:
    noise = Image.effect_noise(size, 60)
    target = io.BytesIO()
    Image.merge("RGB", (noise, noise.rotate(90).resize(size), noise.rotate(180))).convert(mode).save(
        target, name, quality=quality
    )
    return target.getvalue()


def headers(kind: str) -> Headers:
    return [(b"content-type", kind.encode()), (b"content-length", b"1"), (b"etag", b'"a"')]


@pytest.mark.parametrize(("name", "mode"), [("JPEG", "RGB"), ("WEBP", "RGB"), ("PNG", "RGB"), ("PNG", "RGBA")])
def test_images_get_smaller_and_stay_the_picture(name: str, mode: str) -> None:
    body = picture(name, mode)
    smaller = recompress_image(headers(f"image/{name.lower()}"), body, 40, PIXELS)
    assert smaller is not None
    assert len(smaller.body) == len(body) - smaller.saved_bytes < len(body)
    with Image.open(io.BytesIO(smaller.body)) as shown:
        assert shown.format == name
        assert shown.size == (160, 120)
    assert value(smaller.headers, b"etag") == b'W/"a"'
    assert value(smaller.headers, b"content-length") is None


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["JPEG", "WEBP"]), st.integers(1, 95), st.integers(1, 95), st.integers(1, 40))
def test_recompressed_pictures_are_never_larger(name: str, before: int, quality: int, side: int) -> None:
    body = picture(name, size=(side, side), quality=before)
    smaller = recompress_image(headers(f"image/{name.lower()}"), body, quality, PIXELS)
    assert smaller is None or len(smaller.body) < len(body)


def test_the_orientation_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    target = io.BytesIO()
    Image.effect_noise((160, 120), 60).convert("RGB").save(target, "JPEG", quality=95, exif=exif)
    smaller = recompress_image(headers("image/jpeg"), target.getvalue(), 40, PIXELS)
    assert smaller is not None
    with Image.open(io.BytesIO(smaller.body)) as shown:
        assert shown.size == (120, 160)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_what_is_no_picture_stays(body: bytes) -> None:
    assert recompress_image(headers("image/jpeg"), body, 40, PIXELS) is None


def test_large_animated_encoded_and_mislabelled_pictures_stay() -> None:
    body = picture("JPEG", quality=95)
    assert recompress_image(headers("image/jpeg"), body, 40, 160 * 120 - 1) is None
    assert recompress_image(headers("image/png"), body, 40, PIXELS) is None
    assert recompress_image([*headers("image/jpeg"), (b"content-encoding", b"gzip")], body, 40, PIXELS) is None
    frames = [Image.effect_noise((60, 60), 60).convert("RGB") for _ in range(3)]
    moving = io.BytesIO()
    frames[0].save(moving, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    assert recompress_image(headers("image/webp"), moving.getvalue(), 40, PIXELS) is None


@settings(deadline=None)
@given(st.binary(max_size=5000))
def test_text_becomes_gzip_only_where_that_is_smaller(body: bytes) -> None:
    smaller = compress_text([(b"accept-encoding", b"gzip")], headers("text/html"), body)
    if smaller is not None:
        assert gzip.decompress(smaller.body) == body
        assert len(smaller.body) < len(body)
        assert value(smaller.headers, b"content-encoding") == b"gzip"
        assert value(smaller.headers, b"vary") == b"accept-encoding"


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
def test_text_is_compressed_only_for_clients_that_accept_it(accepted: str, takes: bool) -> None:
    request = [(b"accept-encoding", accepted.encode())] if accepted else []
    assert accepts_gzip(request) == takes
    assert (compress_text(request, headers("text/plain"), b"same " * 1000) is not None) == takes


def test_no_transform_and_parts_are_respected() -> None:
    assert may_transform(200, [])
    assert not may_transform(200, [(b"cache-control", b"public, no-transform")])
    assert not may_transform(206, [])
    assert not may_transform(200, [(b"content-range", b"bytes 0-1/2")])
