"""Making objects smaller: images by Pillow at a lower quality, text by gzip; an original that is smaller wins."""

from __future__ import annotations

import gzip
import io
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reference_proxy.http.freshness import Headers, directives, value, values

if TYPE_CHECKING:
    from PIL import Image

logger = logging.getLogger("reference_proxy")

FORMATS = {b"image/jpeg": "JPEG", b"image/png": "PNG", b"image/webp": "WEBP"}

TEXT_TYPES = frozenset(
    {
        b"application/javascript",
        b"application/json",
        b"application/xhtml+xml",
        b"application/xml",
        b"image/svg+xml",
    }
)

#: What fits one segment of 1460 bytes with its head gains no packet.
SMALLEST_TEXT_BYTES = 1024

#: zlib's own default: beyond it time grows faster than bytes shrink.
GZIP_LEVEL = 6

#: Colours of a palette in PNG (one byte a pixel).
PALETTE_COLOURS = 256


@dataclass(frozen=True, slots=True)
class Smaller:
    """An object that was made smaller, with the fields that go with it."""

    headers: Headers
    body: bytes
    saved_bytes: int


def may_transform(status: int, headers: Headers) -> bool:
    """Whether a proxy may change this answer (RFC 9110, sections 7.7 and 14)."""
    return status == 200 and "no-transform" not in directives(headers) and value(headers, b"content-range") is None


def media_type(headers: Headers) -> bytes:
    """Without parameters, in lower case."""
    return (value(headers, b"content-type") or b"").partition(b";")[0].strip().lower()


def is_encoded(headers: Headers) -> bool:
    """Whether the body is not the object itself but an encoding of it."""
    return any(text.strip().lower() not in (b"", b"identity") for text in values(headers, b"content-encoding"))


def recompress_image(headers: Headers, body: bytes, quality: int, pixel_limit: int) -> Smaller | None:
    """The same picture in the same format at `quality` (1-95); None where that is not smaller or cannot be."""
    name = FORMATS.get(media_type(headers))
    if name is None or is_encoded(headers):
        return None
    try:
        smaller = _encode(body, name, quality, pixel_limit)
    except Exception as error:  # Pillow's decoders raise whatever a damaged picture leads them to
        logger.debug("an image stays as it is: %s", error, extra={"fields": {"event": "image-kept"}})
        return None
    if smaller is None or len(smaller) >= len(body):
        return None
    return _changed(headers, smaller, len(body))


def _encode(body: bytes, name: str, quality: int, pixel_limit: int) -> bytes | None:
    from PIL import Image, ImageOps

    with Image.open(io.BytesIO(body), formats=[name]) as opened:
        # The size is in the head: nothing is decoded that would not fit.
        if opened.width * opened.height > pixel_limit or getattr(opened, "n_frames", 1) > 1:
            return None
        profile = opened.info.get("icc_profile")
        # The orientation is in fields that are dropped.
        picture = ImageOps.exif_transpose(opened)
        target = io.BytesIO()
        if name == "JPEG":
            picture.save(target, name, quality=quality, optimize=True, progressive=True, icc_profile=profile)
        elif name == "WEBP":
            picture.save(target, name, quality=quality, icc_profile=profile or b"")
        else:
            _palette(picture).save(target, name, optimize=True, icc_profile=profile)
        return target.getvalue()


def _palette(picture: Image.Image) -> Image.Image:
    """PNG has no quality of its own: fewer colours are its loss."""
    from PIL import Image

    if picture.mode in ("1", "L", "P"):
        return picture
    transparent = picture.has_transparency_data
    coloured = picture.convert("RGBA" if transparent else "RGB")
    method = Image.Quantize.FASTOCTREE if transparent else Image.Quantize.MEDIANCUT
    return coloured.quantize(PALETTE_COLOURS, method=method)


def compress_text(request: Headers, headers: Headers, body: bytes) -> Smaller | None:
    """Text as gzip, for a client that takes it; None where that is not smaller or cannot be."""
    kind = media_type(headers)
    is_text = kind.startswith(b"text/") or kind in TEXT_TYPES
    if not is_text or is_encoded(headers) or len(body) < SMALLEST_TEXT_BYTES or not accepts_gzip(request):
        return None
    smaller = gzip.compress(body, GZIP_LEVEL, mtime=0)
    if len(smaller) >= len(body):
        return None
    changed = _changed(headers, smaller, len(body))
    changed.headers.append((b"content-encoding", b"gzip"))
    if not any(b"accept-encoding" in text.lower() or text.strip() == b"*" for text in values(headers, b"vary")):
        changed.headers.append((b"vary", b"accept-encoding"))
    return changed


def accepts_gzip(request: Headers) -> bool:
    """Whether the client takes gzip (RFC 9110, section 12.5.3)."""
    weights: dict[bytes, bytes] = {}
    for part in b",".join(values(request, b"accept-encoding")).split(b","):
        name, _, parameters = part.partition(b";")
        weights[name.strip().lower()] = parameters.replace(b" ", b"").lower()
    weight = weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*")))
    return weight is not None and weight not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")


def _changed(headers: Headers, body: bytes, original_bytes: int) -> Smaller:
    """Fields of a changed body: another length, and a tag that no longer promises the same bytes."""
    dropped = (b"content-length", b"content-md5", b"digest", b"content-digest", b"repr-digest", b"accept-ranges")
    kept = []
    for name, text in headers:
        lower = name.lower()
        if lower == b"etag" and not text.startswith(b"W/"):
            kept.append((name, b"W/" + text))
        elif lower not in dropped and lower != b"content-encoding":
            kept.append((name, text))
    return Smaller(kept, body, original_bytes - len(body))
